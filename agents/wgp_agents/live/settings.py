"""What a live bandit is made with, and the agent that follows from it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from wgp_agents.base import Agent
from wgp_agents.core.resume import FORMAT, package_version
from wgp_agents.live.arms import Choices
from wgp_agents.live.choices import choices_of
from wgp_agents.live.events import as_text, from_text
from wgp_agents.live.knobs import Knobs
from wgp_agents.live.rewards import RewardKind, Rewards, Unit
from wgp_agents.live.storage import Session
from wgp_agents.registry import agent_class, make
from wgp_gym.kernel_algebra import OnColumns
from wgp_gym.kernels import Categorical, Kernel
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Json
from wgp_gym.validation import check_bool, check_float, check_int, check_names, cut, reject

__all__ = ["DEFAULT_AGENT", "Settings", "agreed", "check_agent_name", "checked_unit", "version"]

DEFAULT_AGENT = "adaptive-wgp-ucb"
LENGTHSCALES = (1.0, 4.0, 0.25)  # times 0.2 of the range of arms; the first has a nat ahead
EXPLORATION = 0.03  # of the default agent: fewer bad years than with 0, see docs/live.md
NOISE_SCALE = 0.5  # R of agents that are told it, in the learned unit
NORM_BOUND = 1.0  # B likewise
STAND_INS = 400  # points of arms with contexts on which features are built
SHARED = 0.5  # what two names share of their answer to a context


@dataclass(frozen=True)
class Settings:
    """What a live bandit is made with. See `LiveBandit`."""

    choices: Mapping[str, object]
    agent: str = DEFAULT_AGENT
    parameters: Mapping[str, object] = field(default_factory=dict)
    contexts: Mapping[str, object] | None = None
    reward: RewardKind = "real"
    minimize: bool = False
    unit: tuple[float, float] | None = None
    timescale: float | None = None
    dated: bool = False
    horizon: int | None = None
    seed: int = 0
    lookback: int = 100
    names: tuple[str, ...] | None = None
    kernel: Kernel | None = None

    def __post_init__(self) -> None:
        owner = "LiveBandit"
        plain = {
            "seed": check_int("seed", self.seed, owner, 0),
            "lookback": check_int("lookback", self.lookback, owner, 1, 10_000),
        }
        if self.horizon is not None:
            plain["horizon"] = check_int("horizon", self.horizon, owner, 1)
        for name, number in plain.items():  # an int of numpy's is none that the log can hold
            object.__setattr__(self, name, number)
        if not isinstance(self.parameters, Mapping):
            reject("parameters", owner, "a dict of the agent's parameters", self.parameters)
        check_bool("minimize", self.minimize, owner)
        if self.unit is not None and self.reward == "clicks":
            reject("unit", owner, "left out: clicks are counted as they are", self.unit)
        self.rewards  # noqa: B018  # checks itself

    @cached_property
    def rewards(self) -> Rewards:
        """How rewards are read."""
        return Rewards(self.reward, self.minimize)

    @cached_property
    def knobs(self) -> Knobs | None:
        """The contexts, if there are some."""
        return None if self.contexts is None else Knobs.from_json(self.contexts)

    @property
    def given_unit(self) -> Unit | None:
        """The unit of rewards, if it was given."""
        return None if self.unit is None else Unit(*self.unit)

    def to_json(self) -> dict[str, Json]:
        """Return the settings as JSON may hold them."""
        found = dict(vars(self))
        for name in ("rewards", "knobs"):
            found.pop(name, None)
        for name in ("unit", "names"):
            found[name] = None if found[name] is None else list(found[name])
        found["kernel"] = None if self.kernel is None else kernel_text(self.kernel)
        return found

    def fingerprint(self, arms: Mapping[str, object] | None = None) -> str:
        """Return what tells settings, and arms that changed since, from others."""
        both: dict[str, Json] = {"settings": self.to_json(), "arms": cast(Json, arms)}
        return hashlib.sha256(as_text(both).encode()).hexdigest()

    @staticmethod
    def from_json(found: Mapping[str, Json], kernel: Kernel | None = None) -> Settings:
        """Return the settings that `to_json` wrote.

        Raises:
            ValueError: If they are of another version, or of another kernel.
        """
        if found.get("kernel") != (None if kernel is None else kernel_text(kernel)):
            rule = f"{cut(str(found.get('kernel')))}, which the bandit was made with"
            reject("kernel", "LiveBandit.open", rule, kernel)
        check_names(found, "LiveBandit.open", [*Settings.__dataclass_fields__])
        listed = {name: found.get(name) for name in ("unit", "names")}
        rows = {
            name: None if row is None else tuple(cast("list[Json]", row))
            for name, row in listed.items()
        }
        return Settings(**{**found, **rows, "kernel": kernel})  # type: ignore[arg-type]  # as `to_json` has them

    def new_choices(self) -> Choices:
        """Return what is chosen from, as it was at first."""
        return choices_of(self.choices)

    def make_agent(self, choices: Choices, learners: int | None = None) -> Agent:
        """Return a new agent of one learner, or of several.

        Raises:
            ValueError: If it cannot play these choices, or a parameter is out of its range.
        """
        parameters = {**self._defaults(choices), **self.parameters}
        problem = self.problem(choices)
        if learners is not None:
            problem = replace(problem, noise_scale=np.full(learners, NOISE_SCALE))
        agent = make(self.agent, problem, **parameters)
        if self.timescale is not None and not agent.takes_elapsed:
            rule = f"left out: {type(agent).__name__} counts plays, it knows no elapsed time"
            reject("timescale", "LiveBandit", rule, self.timescale)
        return agent

    def problem(self, choices: Choices) -> BanditProblem:
        """Return what the agent is told."""
        low, high = (-1.0, 0.0) if self.minimize else (0.0, 1.0)
        told = {
            "horizon": self.horizon,
            "noise_scale": NOISE_SCALE,
            "norm_bound": NORM_BOUND,
            "reward_range": (low, high) if self.reward == "clicks" else (-NORM_BOUND, NORM_BOUND),
        }
        if not self.is_contextual(choices):
            return BanditProblem(self._joint_kernel(choices), choices.places, **told)  # type: ignore[arg-type]
        domain = self.shown(choices, None, None)
        return BanditProblem(
            self._joint_kernel(choices),
            domain,
            contextual=True,
            stand_ins=self._stand_ins(choices),
            **told,  # type: ignore[arg-type]
        )

    def is_contextual(self, choices: Choices) -> bool:
        """Tell whether the agent is shown places anew at each decision."""
        return choices.changing or self.knobs is not None

    def shown(self, choices: Choices, context: Array | None, offers: Array | None) -> Array:
        """Return the places that the agent is shown, `(n, d)`.

        Args:
            choices: What is chosen from.
            context: The place of the context, `(c,)`; None: its middle.
            offers: The places of the offers, `(q, d)`; those beyond are filled up.
        """
        places = choices.places
        if offers is not None:
            places = np.resize(offers, places.shape)
        if self.knobs is None:
            return places
        at = np.full(self.knobs.dim, 0.5) if context is None else context
        return np.column_stack([places, np.broadcast_to(at, (len(places), len(at)))])

    def _joint_kernel(self, choices: Choices) -> Kernel:
        """Return the kernel given, or the product of one over choices and one over contexts."""
        if self.kernel is not None:
            return self.kernel
        if self.knobs is None:
            return choices.kernel
        dim = choices.places.shape[1]
        chosen: Kernel = Categorical(SHARED) if choices.independent else choices.kernel
        return OnColumns(chosen, tuple(range(dim))) * self.knobs.kernel(first=dim)

    def _stand_ins(self, choices: Choices) -> Array:
        """Return points spread over choices and contexts, on which features are built."""
        points = choices.spread(STAND_INS)
        if self.knobs is None:
            return points
        contexts = np.array([self.knobs.place(dict(p)) for p in self.knobs.points(STAND_INS)])
        count = max(len(points), len(contexts), STAND_INS)
        first = np.resize(points, (count, points.shape[1]))
        second = np.resize(contexts, (count, contexts.shape[1]))
        return np.column_stack([first, np.random.default_rng(0).permutation(second)])

    def _defaults(self, choices: Choices) -> dict[str, object]:
        """Return the parameters that an agent gets unless others are given."""
        if self.agent != DEFAULT_AGENT:
            return {}
        if choices.independent and self.knobs is None:
            return {"exploration": EXPLORATION}
        return {"exploration": EXPLORATION, "lengthscales": lengthscales(self._dim(choices))}

    def _dim(self, choices: Choices) -> int:
        dim: int = choices.places.shape[1]
        return dim if self.knobs is None else dim + self.knobs.dim


def lengthscales(dim: int) -> object:
    """Return factors of the lengthscales that are learned among, `(G,)` or `(G, d)`.

    In several dimensions: all alike, and each of them far longer than the others, for what does
    not depend on it.
    """
    if dim == 1:
        return list(LENGTHSCALES)
    rows = [[factor] * dim for factor in (2.0, 1.0, 4.0)]
    for axis in range(dim):
        rows.append([10.0 if j == axis else 2.0 for j in range(dim)])
    return rows


def kernel_text(kernel: Kernel) -> str:
    """Return what tells a kernel from others, its arrays included, which `repr` shortens."""
    found = hashlib.sha256()
    parts: list[object] = [kernel]
    while parts:
        part = parts.pop()
        if isinstance(part, np.ndarray):
            found.update(part.tobytes())
        elif is_dataclass(part):
            parts += [getattr(part, one.name) for one in fields(part)]
        elif isinstance(part, list | tuple):
            parts += part
    return f"{cut(repr(kernel))} {found.hexdigest()[:16]}"


def checked_unit(unit: object, owner: str) -> tuple[float, float] | None:
    """Return a unit as two floats.

    Raises:
        ValueError: If it is no unit.
    """
    rule = "(centre, scale), two numbers, with scale > 0"
    if unit is None:
        return None
    if not isinstance(unit, Sequence) or isinstance(unit, str) or len(unit) != 2:
        reject("unit", owner, rule, unit)
    centre, scale = (check_float("unit", one, owner) for one in unit)
    if not scale > 0:
        reject("unit", owner, rule, unit)
    return centre, scale


def needs_code(agent: str) -> bool:
    """Tell whether an agent's name names a module to import."""
    return ":" in agent


def check_agent_name(agent: object) -> str:
    """Return an agent's name, if there is one.

    Raises:
        ValueError: If there is none.
    """
    if not isinstance(agent, str):
        reject("agent", "LiveBandit", "an agent's name", agent)
    agent_class(agent)
    return agent


def version() -> str:
    """Return what can read a snapshot: this version alone."""
    return f"{package_version()}/{FORMAT}"


def agreed(
    settings: Settings | None,
    session: Session,
    name: str,
    agent: str | None,
    kernel: Kernel | None = None,
    owner: str = "LiveBandit",
) -> Settings:
    """Return the settings of a bandit: those given, written down if it is new, or those kept.

    Raises:
        ValueError: If they are not the same, are of one bandit where they should be of many or
            the other way round, or there are none.
    """
    kept = session.settings()
    kind = "LiveBandit" if kept is None or kept.get("names") is None else "LiveBandits"
    if kept is not None and kind != owner:
        rule = f"free or that of {owner}: this one is of {kind}, see `{kind}.open`"
        reject("name", owner, rule, name)
    if kept is None:
        if settings is None:
            reject("name", f"{owner}.open", "that of a bandit in this storage", name)
        session.create(settings.to_json())
        return settings
    if settings is None:
        named = str(kept.get("agent"))
        if needs_code(named) and agent != named:
            reject("agent", f"{owner}.open", f"{named!r}, which the bandit was made with", agent)
        return Settings.from_json(kept, kernel)
    mine = from_text(as_text(settings.to_json()))
    for word, value in mine.items():
        if kept.get(word) != value:
            rule = f"{kept.get(word)}, as {name!r} was made with: see `{owner}.open`"
            if word == "choices" and owner == "LiveBandit":
                rule += ", and `add_arm` for new arms"
            reject("arms" if word == "choices" else word, owner, rule, value)
    return settings
