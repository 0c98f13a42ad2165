"""What a live bandit chooses from, as its user gives it: arms, points of knobs, or offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from wgp_agents.live.arms import Arms, Choices
from wgp_agents.live.knobs import Knobs, ranges_of
from wgp_gym.kernels import Kernel
from wgp_gym.types import Array, Indices, Mask
from wgp_gym.validation import check_int, reject

__all__ = ["KnobGrid", "Offers", "choices_of"]

CANDIDATES = 500  # points of knobs
MOST_OFFERS = 50


class KnobGrid(Choices):
    """Points of knobs, evenly spread, that are chosen from.

    What a person chose (`record`, `fit`, `replay`) counts as the nearest of them that has the same
    categories: numbers are rounded, a category never is.

    What is allowed is taken at its word, so that nothing is ever answered that was not named: a
    dict of all knobs is that point, which must be one of the grid; a dict of some of them, as
    `{"tool": "C"}`, is all points of the grid with these values.

    Args:
        knobs: The knobs.
        candidates: How many points.
    """

    def __init__(self, knobs: Knobs, candidates: int = CANDIDATES) -> None:
        self.knobs = knobs
        self.candidates = check_int("candidates", candidates, "LiveBandit", 2, 10_000)
        self.arms = [*knobs.points(self.candidates)]
        if len(self.arms) < 2:
            reject("arms", "LiveBandit", "Knobs(...) of at least two points", self.arms)
        self.there = np.ones(len(self.arms), bool)
        self._places = np.array([knobs.place(cast("dict[str, object]", a)) for a in self.arms])

    def check_categories(self) -> None:
        """Raise ValueError if a category is at none of the points: it could never be chosen."""
        for name, values in self.knobs.categories.items():
            held = len(np.unique(self._places[:, self.knobs.columns(name)]))
            if held < len(values):
                rule = f"more: so many points hold {held} of {len(values)} categories of {name!r}"
                reject("candidates", "LiveBandit", rule, self.candidates)

    @property
    def places(self) -> Array:
        """Where the points stand, `(n, d)`."""
        return self._places

    @property
    def kernel(self) -> Kernel:
        """That of the knobs."""
        return self.knobs.kernel()

    def index(self, arm: object, owner: str, name: str = "arm") -> int:
        """Return the nearest point with the same categories.

        Raises:
            ValueError: If it is no point, or none of the grid has its categories.
        """
        place = self.knobs.place(cast("Mapping[str, object]", arm), owner, name)
        same = self._agree(place, list(self.knobs.categories))
        if not same.any():
            rule = f"of categories that one of the {len(self.arms)} points has: see `candidates`"
            reject(name, owner, rule, arm)
        apart = np.sum((self._places - place) ** 2, axis=1)
        return int(np.where(same, apart, np.inf).argmin())

    def _agree(self, place: Array, names: Sequence[str]) -> Mask:
        """Return which points have the values of a place `(d,)` in some knobs, `(n,)`."""
        columns = list(self.knobs.columns(*names))
        same: Mask = (self._places[:, columns] == place[columns]).all(axis=1)
        return same

    def _named(self, arm: object, owner: str) -> Indices:
        """Return the points that have all values of a dict, which may leave knobs out."""
        if not isinstance(arm, Mapping) or not arm:
            rule = f"a list of dicts of {', '.join(self.knobs.names)}, or of some of them"
            reject("allowed", owner, rule, arm)
        whole = {**cast("dict[str, object]", self.arms[0]), **arm}
        found = np.flatnonzero(self._agree(self.knobs.place(whole, owner, "allowed"), list(arm)))
        if not len(found):
            rule = f"some of `Knobs.points({self.candidates})`, or dicts of some of their values"
            reject("allowed", owner, rule, arm)
        return found

    def to_json(self) -> dict[str, object]:
        """Return what `choices_of` makes again."""
        return {"kind": "Knobs", "knobs": self.knobs.to_json(), "candidates": self.candidates}


class Offers(Choices):
    """Arms that each decision brings with it, known by their features alone.

    `Offers(price=(0, 100), size=["S", "M"])`; then `ask(arms={id: {"price": 12, "size": "S"}})`.

    Args:
        most: How many there are at once, at most.
        features: The range of each feature, as in `Knobs`.
    """

    changing = True

    def __init__(self, most: int = MOST_OFFERS, **features: Sequence[object]) -> None:
        self.most = check_int("most", most, "Offers", 2, 10_000)
        self.knobs = Knobs(**features)
        self.arms, self.there = [], np.ones(self.most, bool)
        self._places = np.resize(self.spread(self.most), (self.most, self.knobs.dim))

    @property
    def places(self) -> Array:
        """Points that stand for the offers, `(most, d)`."""
        return self._places

    def spread(self, most: int) -> Array:
        """Return at most so many places that fill the ranges of the features, `(q, d)`."""
        return np.array([self.knobs.place(dict(p)) for p in self.knobs.points(most)])

    @property
    def kernel(self) -> Kernel:
        """That of the features."""
        return self.knobs.kernel()

    def to_json(self) -> dict[str, object]:
        """Return what `choices_of` makes again."""
        return {"kind": "Offers", "most": self.most, "features": self.knobs.to_json()}


def choices_of(given: object, candidates: int = CANDIDATES) -> Choices:
    """Return choices from what a user gives, or from `to_json`.

    Raises:
        ValueError: If there is nothing to choose from.
    """
    if candidates != CANDIDATES and not isinstance(given, Knobs):
        rule = "left out: Knobs alone are looked at on so many points"
        reject("candidates", "LiveBandit", rule, candidates)
    if isinstance(given, Choices):
        return given
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        return Arms(given)
    if isinstance(given, Knobs):
        grid = KnobGrid(given, candidates)
        grid.check_categories()
        return grid
    if isinstance(given, Mapping) and given.get("kind") == "Arms" and "features" in given:
        return Arms.from_json(given)
    if isinstance(given, Mapping) and given.get("kind") == "Knobs":
        knobs = Knobs.from_json(cast("dict[str, object]", given["knobs"]))
        return KnobGrid(knobs, cast(int, given["candidates"]))
    if isinstance(given, Mapping) and given.get("kind") == "Offers":
        features = cast("dict[str, object]", given["features"])
        return Offers(cast(int, given["most"]), **ranges_of(features))
    reject("arms", "LiveBandit", "Arms(...), Knobs(...) or Offers(...)", given)
