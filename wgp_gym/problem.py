"""What a learner may know of a task before it plays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from wgp_gym.arrays import ReadOnlyArrays, frozen
from wgp_gym.kernels import Empirical, Kernel
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, check_bool, check_choice, check_int, check_range, reject

__all__ = ["BanditProblem"]

SHARED = ("kernel", "horizon", "continuous", "reward_range", "contextual", "link")
LINKS = ("identity", "logistic")
DOMAIN_RULE = "points of [0, 1]^d, in an array (n, d)"
QUANTITIES = ("noise_scale", "norm_bound", "variation_budget")
LONGEST = 2**53  # the last int up to which a float tells each from the next
LARGEST = {"noise_scale": 1e30, "norm_bound": 1e60, "variation_budget": 1e60}  # squares are finite


@dataclass(frozen=True, eq=False)
class BanditProblem(ReadOnlyArrays):
    """The public side of a bandit task.

    In a batch of B episodes the quantities that differ between episodes are `(B,)` arrays; the
    others are shared. Arrays are copied, and cannot be written to.

    Attributes:
        kernel: The kernel k in whose RKHS every f_t lies.
        domain: The decision set's points in [0, 1]^d, `(n, d)`. Arms without coordinates stand
            at i / (n - 1). With `continuous`, a grid of the box; with `contextual`, n points that
            stand for those of which nothing was shown yet.
        horizon: The number of steps T, at most 2^53; None where it is unknown.
        noise_scale: The sub-Gaussian scale R of the noise, in units of the reward, in [0, 1e30];
            None where it is unknown, or the noise has none.
        norm_bound: The bound B on the RKHS norm of every f_t, in [0, 1e60]; None before an
            episode is drawn.
        variation_budget: The variation budget B_T, likewise.
        continuous: Whether any point of the box [0, 1]^d may be played, not the domain's alone.
        reward_range: The bounds that every expected reward lies between; None where nothing is
            known but |f_t(x)| <= B k(x, x)^{1/2}.
        contextual: Whether the arms are drawn anew at each step, and shown in the observation.
        stand_ins: With `contextual`, points `(q, d)` spread over all places where arms may stand,
            on which the features of kernels with infinitely many are made. Default: the domain.
        link: What the expected reward is of the function in the RKHS: "identity", itself;
            "logistic", 1 / (1 + e^{-f}). B and B_T are those of the function.
        episodes: The number B of episodes of a batch of which no quantity above is an array.
            Default: what these say.

    Raises:
        ValueError: If an attribute is out of its range.
    """

    kernel: Kernel
    domain: Array
    horizon: int | None = None
    noise_scale: float | Array | None = None
    norm_bound: float | Array | None = None
    variation_budget: float | Array | None = None
    continuous: bool = False
    reward_range: tuple[float, float] | None = None
    contextual: bool = False
    link: Literal["identity", "logistic"] = "identity"
    stand_ins: Array | None = None
    episodes: int | None = None

    def __post_init__(self) -> None:
        owner = "BanditProblem"
        if not isinstance(self.kernel, Kernel):
            reject("kernel", owner, "a Kernel", self.kernel)
        for name, most in (("horizon", LONGEST), ("episodes", LONGEST)):
            if getattr(self, name) is not None:
                self._keep(name, check_int(name, getattr(self, name), owner, 1, most))
        domain = checked_points("domain", self.domain, owner, DOMAIN_RULE)
        if isinstance(self.kernel, Empirical) and len(self.kernel.matrix) != len(domain):
            reject("domain", owner, f"the {len(self.kernel.matrix)} arms of its kernel", domain)
        self.kernel(domain[:1], domain[:1])  # refuses points of another dimension
        self._keep("domain", frozen(domain))
        check_bool("continuous", self.continuous, owner)
        if check_bool("contextual", self.contextual, owner) and self.continuous:
            reject("contextual", owner, "False on a box", True)
        if self.stand_ins is not None:
            rule = f"points of [0, 1]^{domain.shape[1]}, in an array (q, {domain.shape[1]})"
            points = checked_points("stand_ins", self.stand_ins, owner, rule)
            if not self.contextual or points.shape[1] != domain.shape[1]:
                rule = rule if self.contextual else "None where arms stay"
                reject("stand_ins", owner, rule, points)
            self._keep("stand_ins", frozen(points))
        check_choice("link", self.link, owner, LINKS)
        if self.reward_range is not None:
            ends = check_range("reward_range", self.reward_range, owner)
            self._keep("reward_range", ends)
        for name in QUANTITIES:
            if getattr(self, name) is not None:
                self._keep(name, quantity(name, getattr(self, name)))
        for name in QUANTITIES:
            value = getattr(self, name)
            if isinstance(value, np.ndarray) and len(value) != self.batch_size:
                reject(name, owner, f"a number, or {self.batch_size}, one for each episode", value)

    def _keep(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # frozen, so set through object

    def known_horizon(self, owner: str, *instead: str) -> int:
        """Return T, for an agent that cannot do without.

        Args:
            owner: The agent's name.
            instead: Its parameters that would do in the place of T.

        Raises:
            ValueError: If T is unknown.
        """
        if self.horizon is None:
            what = f"the number of steps T, by which {owner} tunes itself{or_give(instead)}"
            reject("horizon", "BanditProblem", what, None)
        return self.horizon

    def known_noise(self, owner: str, *instead: str) -> float | Array:
        """Return R, a number or `(B,)`, for an agent that cannot do without. See `known_horizon`.

        Raises:
            ValueError: If R is unknown.
        """
        if self.noise_scale is None:
            what = f"the scale R of the noise, which {owner} does not learn{or_give(instead)}"
            reject("noise_scale", "BanditProblem", what, None)
        return self.noise_scale

    @cached_property
    def batch_size(self) -> int | None:
        """The number B of episodes, or None for a single one."""
        if self.episodes is not None:
            return self.episodes
        for value in (self.noise_scale, self.norm_bound, self.variation_budget):
            if isinstance(value, np.ndarray):
                return len(value)
        return None

    @property
    def spread(self) -> Array:
        """The points that features are made on, `(q, d)`: `stand_ins`, or else the domain."""
        return self.domain if self.stand_ins is None else self.stand_ins

    @staticmethod
    def stack(problems: Sequence[BanditProblem]) -> BanditProblem:
        """Join single problems on one domain into a batch.

        Raises:
            ValueError: If there are none, or they differ in what they must share.
        """
        if not problems:
            reject("problems", "BanditProblem.stack", "at least one", problems)
        first = problems[0]
        for other in problems[1:]:
            same = all(getattr(other, n) == getattr(first, n) for n in SHARED)
            same &= np.array_equal(other.spread, first.spread)
            if not same or not np.array_equal(other.domain, first.domain):
                raise ValueError(f"Problems of one batch must share domain, {', '.join(SHARED)}.")

        def _column(name: str) -> Any:
            values = [getattr(problem, name) for problem in problems]
            unknown = [value is None for value in values]
            if any(unknown) and not all(unknown):
                rule = f"such that all of them know {name!r}, or none"
                reject("problems", "BanditProblem.stack", rule, values)
            return None if all(unknown) else np.array(values, float)

        columns = {name: _column(name) for name in QUANTITIES}
        known = any(column is not None for column in columns.values())
        return replace(first, **columns, episodes=None if known else len(problems))


def checked_points(name: str, value: object, owner: str, rule: str) -> Array:
    """Return points of [0, 1]^d, at least one, `(n, d)`."""
    points = as_floats(name, value, owner, rule)
    if points.ndim != 2 or not points.size or not (points.min() >= 0 and points.max() <= 1):
        reject(name, owner, rule, value)
    return points


def or_give(instead: Sequence[str]) -> str:
    """Return what an agent may be given instead, for a message."""
    return f", or give it {' and '.join(map(repr, instead))}" if instead else ""


def quantity(name: str, value: object) -> float | Array:
    """Return a number, or one for each episode, as a float or a read-only array `(B,)`."""
    owner = "BanditProblem"
    largest = LARGEST[name]
    array = as_floats(name, value, owner, "a number, or one for each episode")
    if not ((array >= 0) & (array <= largest)).all():
        reject(name, owner, f"in [0, {largest:g}]", value)
    if array.ndim == 0:
        return float(array)
    if array.ndim > 1 or not array.size:
        reject(name, owner, "a number, or one for each episode, (B,)", value)
    return frozen(array)
