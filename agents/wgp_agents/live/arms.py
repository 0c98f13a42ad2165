"""Arms with the user's labels: what every choice has, and finite sets of arms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias, cast

import numpy as np

from wgp_agents.live.knobs import Knobs, knobs_of_columns
from wgp_agents.live.values import (
    KnobValue,
    check_kinds,
    checked_arm,
    features_of,
    hint_of,
    is_plain_number,
    kind_and_value,
)
from wgp_gym.kernels import Empirical, Kernel, SquaredExponential
from wgp_gym.types import Array, Indices, Mask
from wgp_gym.validation import reject

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Arm", "Arms", "Choices"]

Arm: TypeAlias = "KnobValue | dict[str, KnobValue]"
"""An arm as the user writes it: a number, a name, or a dict of knobs."""

LENGTHSCALE = 0.2  # of the range of ordered arms, to start from


class Choices(ABC):
    """What is chosen from.

    Attributes:
        arms: The arms as the user writes them, those that were removed included.
        there: Which of them are there, `(n,)`.
        changing: Whether each decision brings arms of its own.
    """

    arms: list[Arm]
    there: Mask
    changing: ClassVar[bool] = False
    _known: Mapping[tuple[str, object] | None, int] = MappingProxyType({})

    @property
    @abstractmethod
    def places(self) -> Array:
        """Where the arms stand in [0, 1]^d, `(n, d)`."""

    @property
    @abstractmethod
    def kernel(self) -> Kernel:
        """The kernel over these places."""

    @property
    def independent(self) -> bool:
        """Whether no arm tells anything of another."""
        return False

    def index(self, arm: object, owner: str, name: str = "arm") -> int:
        """Return the index of an arm: numbers are the same by value, texts and bools by kind.

        Raises:
            ValueError: If there is no such arm.
        """
        if self.has(arm):
            return self._by_value()[kind_and_value(arm)]
        hint = hint_of(arm, self.arms)
        reject(name, owner, f"one of the {len(self.arms)} arms{hint}", arm)

    def has(self, arm: object) -> bool:
        """Tell whether there is such an arm, or was."""
        same = kind_and_value(arm)
        return same is not None and same in self._by_value()

    def _by_value(self) -> Mapping[tuple[str, object] | None, int]:
        """Return the index of each arm."""
        if len(self._known) != len(self.arms):  # some were added
            self._known = {kind_and_value(arm): i for i, arm in enumerate(self.arms)}
        return self._known

    def mask(self, allowed: Sequence[object] | None, owner: str) -> Mask | None:
        """Return which arms may be played; None: all.

        Raises:
            ValueError: If none may, or one is unknown or was removed.
        """
        found = self.there.copy() if allowed is None else self.named(allowed, owner)
        gone = found & ~self.there
        if gone.any():
            reject("allowed", owner, "arms that are there", self.arms[int(gone.argmax())])
        if not found.any():
            reject("allowed", owner, "at least one arm that is there", allowed)
        return None if found.all() else found

    def named(self, allowed: Sequence[object], owner: str) -> Mask:
        """Return which arms a list names, whether they are there or not."""
        if isinstance(allowed, str) or not isinstance(allowed, Sequence | np.ndarray):
            reject("allowed", owner, "a list of arms", allowed)
        found = np.zeros(len(self.arms), bool)
        for arm in allowed:
            found[self._named(arm, owner)] = True
        return found

    def _named(self, arm: object, owner: str) -> Indices:
        """Return the arms that one of `allowed` names."""
        return np.array([self.index(arm, owner, "allowed")], np.int64)

    def spread(self, most: int) -> Array:
        """Return at most so many places that fill those where arms may stand, `(q, d)`."""
        return self.places

    def add(self, arm: object, features: Mapping[str, object] | None, owner: str) -> KnobValue:
        """Take in a new arm, or one that was removed, and return it as the log writes it."""
        reject("arm", owner, f"left out: {type(self).__name__} has no single arms", arm)

    def remove(self, arm: object, owner: str) -> None:
        """Take an arm out of the choice; what is known of it stays."""
        i = self.index(arm, owner)
        if not self.there[i]:
            reject("arm", owner, "an arm that is there", arm)
        if self.there.sum() == 1:
            reject("arm", owner, "one of several: at least one arm must stay", arm)
        self.there[i] = False

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """Return what `choices_of` makes again."""


class Arms(Choices):
    """A finite set of arms.

    Args:
        arms: Numbers: ordered arms, near ones alike. Names: arms that tell nothing of each other.
            A dict of names, or a table with one row for each: arms with features, each a number, a
            list of numbers or a dict of named values, categories included.

    Raises:
        ValueError: If there are fewer than two arms, or one is there twice.
    """

    def __init__(self, arms: Sequence[object] | Mapping[str, object] | DataFrame) -> None:
        self._features: dict[int, dict[str, KnobValue]] = {}
        if hasattr(arms, "to_dict") and hasattr(arms, "columns"):
            table = cast("DataFrame", arms)
            if not table.index.is_unique:
                reject("arms", "Arms", "a table that has no name twice", [*table.index])
            arms = dict(zip(table.index, table.to_dict("records"), strict=True))
        if isinstance(arms, Mapping):
            self.arms = [checked_arm(arm) for arm in arms]
            self._features = {
                i: features_of(row, "Arms", f"arms[{arm!r}]")
                for i, (arm, row) in enumerate(zip(self.arms, arms.values(), strict=True))
            }
        elif isinstance(arms, str) or not isinstance(arms, Sequence | np.ndarray | range):
            reject("arms", "Arms", "a list, a dict or a DataFrame", arms)
        else:
            self.arms = [checked_arm(arm) for arm in arms]
        if len(self.arms) < 2:
            reject("arms", "Arms", "at least two arms", self.arms)
        if len({*map(kind_and_value, self.arms)}) < len(self.arms):
            reject("arms", "Arms", "arms of which none is there twice", self.arms)
        self.there = np.ones(len(self.arms), bool)
        self._check_features()
        if not self._features:
            check_kinds(self.arms, "arms", "Arms")

    def _check_features(self) -> None:
        names = {tuple(sorted(row)) for row in self._features.values()}
        if len(names) > 1 or () in names:
            reject("arms", "Arms", "arms with the same features each, at least one", sorted(names))

    @property
    def ordered(self) -> bool:
        """Whether the arms are numbers."""
        return not self._features and all(map(is_plain_number, self.arms))

    @property
    def independent(self) -> bool:
        """Whether the arms are names without features."""
        return not self._features and not self.ordered

    @property
    def knobs(self) -> Knobs:
        """The features as knobs, whose ranges are those of the arms."""
        names = list(self._features[0])
        return knobs_of_columns({n: [row[n] for row in self._features.values()] for n in names})

    @property
    def places(self) -> Array:
        """Where the arms stand: numbers and features by their range, names at i / (n - 1)."""
        n = len(self.arms)
        if self.independent:
            return np.linspace(0.0, 1.0, n)[:, None]
        if self.ordered:
            values = np.array(self.arms, float)[:, None]
            scaled: Array = (values - values.min()) / (values.max() - values.min())
            return np.clip(scaled, 0.0, 1.0)
        knobs = self.knobs
        rows = [self._features[i] for i in range(n)]
        return np.array([knobs.place(row) for row in rows])

    @property
    def kernel(self) -> Kernel:
        """The kernel: squared exponential over numbers and features, none between names."""
        if self.independent:
            return Empirical(np.eye(len(self.arms)))
        return SquaredExponential(LENGTHSCALE) if self.ordered else self.knobs.kernel()

    def add(self, arm: object, features: Mapping[str, object] | None, owner: str) -> KnobValue:
        """Take in a new arm, with features where the others have some, or one that was removed.

        The places of ordered arms, and of features, follow from the range of all that ever were:
        one outside of it makes the others stand closer together.

        Raises:
            ValueError: If it is there, or is of another kind than the others.
        """
        new = checked_arm(arm, owner, "arm")
        if self.has(new):
            i = self.index(new, owner)
            if self.there[i]:
                reject("arm", owner, "a new arm", arm)
            self.there[i] = True
            return cast(KnobValue, self.arms[i])
        if (features is not None) != bool(self._features):
            rule = "given" if self._features else "left out: the others have none"
            reject("features", owner, rule, features)
        if self.ordered and not is_plain_number(new):
            reject("arm", owner, "a number, as the others", arm)
        if features is not None:
            row = features_of(features, owner)
            if set(row) != set(self._features[0]):
                reject("features", owner, f"a dict of {', '.join(self._features[0])}", features)
            self._features[len(self.arms)] = row
        self.arms.append(new)
        self.there = np.append(self.there, True)
        return new

    def to_json(self) -> dict[str, object]:
        """Return what `choices_of` makes again."""
        rows = [self._features[i] for i in range(len(self.arms))] if self._features else None
        return {"kind": "Arms", "arms": list(self.arms), "features": rows}

    @classmethod
    def from_json(cls, found: Mapping[str, object]) -> Self:
        """Return the arms that `to_json` wrote, added ones included."""
        rows = cast("list[object] | None", found["features"]) or []
        made = cls.__new__(cls)
        made.arms = [checked_arm(arm) for arm in cast("list[object]", found["arms"])]
        made._features = {i: features_of(row) for i, row in enumerate(rows)}
        made.there = np.ones(len(made.arms), bool)
        return made
