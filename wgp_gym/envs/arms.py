"""K independent arms with means in [0, 1] that jump or drift.

References:
    [BGZ14] Besbes, Gur, Zeevi. Stochastic multi-armed-bandit problem with non-stationary
        rewards. NeurIPS 2014.
    [BK19] Besson, Kaufmann. The generalized likelihood ratio test meets klUCB: an improved
        algorithm for piece-wise non-stationary bandits. 2019.
    [GM11] Garivier, Moulines. On upper-confidence bound policies for switching bandit problems.
        ALT 2011.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_gym.envs.episode import Episode, make_episode
from wgp_gym.envs.laws import Drawable
from wgp_gym.envs.noise import SMALLEST, BernoulliNoise, NoiseParameters, make_noise
from wgp_gym.envs.rescaling import rescale
from wgp_gym.envs.rounding import check_rounding
from wgp_gym.envs.task import Task
from wgp_gym.kernels import Empirical
from wgp_gym.rkhs import Functions, linear_functions
from wgp_gym.schedules import (
    Schedule,
    checked_change_points,
    knot_per_step,
    piecewise_constant,
)
from wgp_gym.types import Array
from wgp_gym.validation import (
    as_floats,
    check_choice,
    check_float,
    check_int,
    check_size,
    check_unused,
    reject,
)

__all__ = ["ArmsTask"]

SCHEDULES = ("abrupt", "sinusoidal")
OWNER = "ArmsTask"
MAX_ARMS = 1000
USUAL = {"num_arms": 10, "horizon": 5000, "change_points": 4}
USUAL_NOISE, USUAL_CYCLES, USUAL_AMPLITUDE = 0.1, 1.5, 0.5
SEGMENTS = 5  # as in the problems of [BK19] with T = 5000
ROUNDING = 1e-9
# Beyond, a wave's change, its frequency or its start would be lost in rounding.
SMALLEST_AMPLITUDE, SMALLEST_CYCLES, LARGEST_CYCLES, LARGEST_PHASE = 1e-6, 1e-6, 1e6, 1e6


class ArmsTask(Task):
    """K arms whose means have nothing to do with each other: the kernel is the identity.

    Arm i stands at i / (K - 1). The norm of f_t is the Euclidean norm of the K means.

    Args:
        schedule: "abrupt": the means rest until each change point, and are then drawn anew,
            uniformly in [0, 1]; "sinusoidal": mean 1/2 + amplitude sin(2 pi cycles t / T + phase)
            at step t.
        num_arms: The number of arms K in [2, 1000]. Default: as many as `means` or `phases` has,
            or 10.
        horizon: The number of steps T.
        change_points: Only with "abrupt": the steps, counted from 1, that are the first to meet
            new means. Default: four, T/5 + 1 to 4T/5 + 1, as in [BK19]'s problems with T = 5000.
        means: Only with "abrupt": K means for each segment, in place of drawn ones. Those of
            [GM11]: [[.5, .3, .4], [.5, .3, .9], [.5, .3, .4]] with change points 3000 and 5000
            and T = 10,000.
        changing_arms: Only with "abrupt": how many arms, drawn anew at each change, get a new
            mean. Default: all.
        reward: "bernoulli": an arm pays 1 with its mean's probability, else 0; "gaussian".
        noise_std: Only with "gaussian": the standard deviation of the noise, in [0, 1e30]. Default:
            0.1.
        cycles: Only with "sinusoidal": the periods in T steps, in [1e-6, 1e6]. Default: 1.5.
            [BGZ14] have V_T / 2 for a variation V_T = 3 of two arms, with the phases 0 and pi.
        amplitude: Only with "sinusoidal": the height of a wave over 1/2, 0 or in [1e-6, 0.5].
            Default: 0.5.
        phases: Only with "sinusoidal": one for each arm, in radians, in [-1e6, 1e6]. Default: drawn
            anew in each episode, uniformly.
        norm_bound: The largest norm B of the means to give each episode, 0 or at least 1e-100;
            None: as drawn.
        variation_budget: The variation B_T to give each episode, likewise; None: as drawn.
        **noise: Only with "gaussian": `noise`, another law, and its parameters: see `make_noise`.

    In an environment's arguments `noise_std` and, where means are drawn, `change_points` may be
    laws, drawn anew for each episode: see `RandomTask`.

    Raises:
        ValueError: If a parameter is out of its range, or a budget cannot be met; when an
            episode is drawn, if a bound carries a mean out of [0, 1], or rounding to single
            precision takes more than a thousandth of the differences of the means of "gaussian".
    """

    drawable: ClassVar[Mapping[str, Drawable]] = {"noise_std": "range", "change_points": "times"}

    def __init__(
        self,
        schedule: Literal["abrupt", "sinusoidal"],
        *,
        num_arms: int | None = None,
        horizon: int = 5000,
        change_points: ArrayLike | None = None,
        means: ArrayLike | None = None,
        changing_arms: int | None = None,
        reward: Literal["gaussian", "bernoulli"] = "bernoulli",
        noise_std: float | None = None,
        cycles: float | None = None,
        amplitude: float | None = None,
        phases: ArrayLike | None = None,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
        **noise: Unpack[NoiseParameters],
    ) -> None:
        check_choice("schedule", schedule, OWNER, SCHEDULES)
        horizon = check_int("horizon", horizon, OWNER, 1)
        self._jumping = schedule == "abrupt"
        jumps = {"means": means, "changing_arms": changing_arms}
        waves = {"cycles": cycles, "amplitude": amplitude, "phases": phases}
        unused = waves if self._jumping else jumps
        check_unused(OWNER, f"for the schedule {schedule!r}", unused)
        self._means = None if means is None else checked_means(means)
        self._phases = None if phases is None else checked_phases(phases)
        count = number_of_arms(num_arms, self._means, self._phases)
        sizes = {"horizon": horizon} if self._jumping else {"num_arms": count, "horizon": horizon}
        check_size(OWNER, sizes, USUAL)
        moves = make_schedule(schedule, horizon, change_points)
        check_size(OWNER, {"num_arms": count, "change_points": moves.num_knots - 1}, USUAL)
        if self._means is not None:
            check_segments(self._means, moves.num_knots, changing_arms)
        self._changing_arms = count
        if changing_arms is not None:
            self._changing_arms = check_int("changing_arms", changing_arms, OWNER, 1, count)
        cycles = USUAL_CYCLES if cycles is None else cycles
        self._cycles = check_float("cycles", cycles, OWNER, SMALLEST_CYCLES, LARGEST_CYCLES)
        height = USUAL_AMPLITUDE if amplitude is None else amplitude
        self._amplitude = check_float("amplitude", height, OWNER, 0, 0.5)
        if 0 < self._amplitude < SMALLEST_AMPLITUDE:
            reject("amplitude", OWNER, f"0 or at least {SMALLEST_AMPLITUDE:g}", amplitude)
        super().__init__(
            kernel=Empirical(np.eye(count)),
            domain=np.linspace(0.0, 1.0, count)[:, None],
            schedule=moves,
            noise=make_noise(reward, noise_std, OWNER, USUAL_NOISE, **noise),
            norm_bound=norm_bound,
            variation_budget=variation_budget,
            arm_names=[f"arm {i}" for i in range(count)],
            reward_range=(0.0, 1.0),
        )

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the means of one episode.

        Raises:
            ValueError: If a budget cannot be met, or a bound carries a mean out of [0, 1].
        """
        means = self._jumps(rng) if self._jumping else self._waves(rng)
        drawn = linear_functions(means)
        functions = self._rescaled(drawn, self.norm_bound, self.variation_budget)
        drawn_means = self._jumping and self._means is None  # these may come close by chance
        if not (isinstance(self.noise, BernoulliNoise) or drawn_means):
            check_rounding(functions.values, OWNER, "Set the means further apart.")
        return make_episode(self.schedule, functions, self._search, self.norm_bound)

    def _jumps(self, rng: np.random.Generator) -> Array:
        """Return the means of every segment, `(K, n)`."""
        if self._means is not None:
            return self._means
        segments, n = self.schedule.num_knots, len(self.domain)
        order = rng.random((segments, n)).argsort(axis=1)
        means = rng.random((segments, n))
        for earlier, later, arms in zip(means, means[1:], order[1:], strict=False):
            kept = arms[self._changing_arms :]
            later[kept] = earlier[kept]
        return means

    def _waves(self, rng: np.random.Generator) -> Array:
        """Return the means of every step, `(T, n)`."""
        phases = self._phases
        if phases is None:
            phases = 2 * math.pi * rng.random(len(self.domain))
        t = np.arange(1, self.horizon + 1)[:, None]
        angle = 2 * math.pi * self._cycles * t / self.horizon
        means: Array = 0.5 + self._amplitude * np.sin(angle + phases)
        return means

    def _rescaled(self, drawn: Functions, bound: float | None, budget: float | None) -> Functions:
        """Rescale as asked for.

        Raises:
            ValueError: If that cannot be, or a mean is not in [0, 1] then: the parameter that
                carries it out is named, the bound where the budget alone does not.
        """
        functions = rescale(self.schedule, drawn, bound, budget)
        if fits(functions):
            return functions
        rule = "such that every mean is in [0, 1]"
        if budget is not None and (
            bound is None or not fits(rescale(self.schedule, drawn, None, budget))
        ):
            reject("variation_budget", OWNER, rule, budget)
        reject("norm_bound", OWNER, rule, bound)


def fits(functions: Functions) -> bool:
    """Return whether all values are in [0, 1], but for rounding."""
    values = functions.values
    return bool(values.min() >= -ROUNDING and values.max() <= 1 + ROUNDING)


def checked_means(given: ArrayLike) -> Array:
    """Return means as an array, a row for each segment; else raise ValueError."""
    rule = f"lists of numbers in [0, 1], equally long, with 2 to {MAX_ARMS} in each"
    means = as_floats("means", given, OWNER, rule)
    fit = means.ndim == 2 and means.size and 2 <= means.shape[1] <= MAX_ARMS
    if not fit or not (means.min() >= 0 and means.max() <= 1):
        reject("means", OWNER, rule, given)
    if ((means > 0) & (means < SMALLEST)).any():
        reject("means", OWNER, f"lists of numbers that are 0 or in [{SMALLEST:g}, 1]", given)
    return means.astype(float)


def check_segments(means: Array, segments: int, changing_arms: int | None) -> None:
    """Check that given means `(K, n)` are those of all segments, and leave nothing to draw."""
    if len(means) != segments:
        rule = f"one list for each of the {segments} segments between change points"
        reject("means", OWNER, rule, means.tolist())
    if changing_arms is not None:
        reject("changing_arms", OWNER, "None where means are given", changing_arms)


def checked_phases(given: ArrayLike) -> Array:
    """Return phases as an array; else raise ValueError."""
    rule = f"a list of finite numbers in [-1e6, 1e6], 2 to {MAX_ARMS} of them"
    phases = as_floats("phases", given, OWNER, rule)
    fit = phases.ndim == 1 and 2 <= len(phases) <= MAX_ARMS
    if not fit or not (np.abs(phases) <= LARGEST_PHASE).all():
        reject("phases", OWNER, rule, given)
    return phases.astype(float)


def number_of_arms(given: int | None, means: Array | None, phases: Array | None) -> int:
    """Return how many arms there are; else raise ValueError."""
    if given is not None:
        given = check_int("num_arms", given, OWNER, 2, MAX_ARMS)
    shown = {"means": means, "phases": phases}
    counts = {name: int(array.shape[-1]) for name, array in shown.items() if array is not None}
    for name, count in counts.items():
        if given is not None and count != given:
            reject("num_arms", OWNER, f"{count}, as many as {name} has", given)
        return count
    return USUAL["num_arms"] if given is None else given


def make_schedule(name: str, horizon: int, change_points: ArrayLike | None) -> Schedule:
    """Return the schedule that `ArmsTask` names; else raise ValueError."""
    if name == "abrupt":
        default = [round(horizon * i / SEGMENTS) + 1 for i in range(1, SEGMENTS)]
        points = checked_change_points(change_points, default, horizon, OWNER)
        return piecewise_constant(horizon, points)
    check_unused(OWNER, f"for the schedule {name!r}", {"change_points": change_points})
    return knot_per_step(horizon)
