"""Synthetic tasks: random functions as [Deng22] Section 7 has them, that jump, walk or rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_gym.envs.episode import Episode
from wgp_gym.envs.knot_process import (
    HiddenChanges,
    IndependentFunctions,
    KnotProcess,
    RecurringFunctions,
)
from wgp_gym.envs.laws import Drawable
from wgp_gym.envs.noise import NoiseParameters, make_noise
from wgp_gym.envs.optimum import grid, number_of_points
from wgp_gym.envs.task import Task
from wgp_gym.kernels import KernelName, Linear, make_kernel
from wgp_gym.rkhs import DomainKernel
from wgp_gym.schedules import (
    Schedule,
    checked_change_points,
    piecewise_constant,
    piecewise_linear,
)
from wgp_gym.validation import (
    MAX_NUMBERS,
    MAX_WORK,
    check_choice,
    check_float,
    check_int,
    check_size,
    check_unused,
    reject,
)

__all__ = ["SyntheticTask"]

OWNER = "SyntheticTask"
SCHEDULES = ("abrupt", "piecewise_linear", "constant", "recurring", "hidden")
JUMPS = {  # the default change points, in shares of T
    "abrupt": (0.2, 0.4),
    "recurring": (0.2, 0.4, 0.6, 0.8),
    "hidden": (0.2, 0.4),
}
USUAL_WORLDS, MOST_WORLDS = 2, 1000
USUAL_RISE, SMALLEST_RISE, LARGEST_RISE = 0.5, 1e-3, 100
LEAST_LEFT = 0.01  # variance of some point, where the function is known around a corner
USUAL = {
    "dim": 1,
    "points_per_dim": 100,
    "points_per_dim^dim": 100,
    "horizon": 500,
    "change_points": 2,
    "num_worlds": 2,
    "functions": 3,
    "num_terms": 100,
}


class SyntheticTask(Task):
    """Functions f = sum of `num_terms` alpha_i k(., x_i), alpha_i uniform in [-1, 1], x_i on D.

    Args:
        schedule: "abrupt": one function until each change point, then the next;
            "piecewise_linear": from f_4 to f_5 at T/2 to f_6 at T; "constant"; "recurring":
            `num_worlds` functions that take turns, A, B, A, B, ...; "hidden": at each change point
            a better optimum appears away from the one so far, around which the function stays.
        kernel: "se", "matern", "linear" or "modified-matern" (a product over the axes).
        lengthscale: The kernel's length l, in [1e-9, 1e9].
        nu: The smoothness of "matern" and "modified-matern": 0.5, 1.5 or 2.5.
        dim: The dimension d of the decision set; of a box at most 6.
        points_per_dim: The points of D along each dimension, at least 2; at most 100,000 in all.
        horizon: The number of steps T.
        change_points: With "abrupt", "recurring" and "hidden": the steps, counted from 1, that
            are the first to meet a new function. Default 0.2 T and 0.4 T ([100, 200] for T = 500);
            of "recurring" 0.6 T and 0.8 T, too.
        num_worlds: Only with "recurring": how many functions take turns, in [2, 1000]. Default: 2.
        rise: Only with "hidden": how far each optimum is above the one before it, at the least,
            in [1e-3, 100], over the difference of f_1's largest and smallest value. Default: 0.5.
        num_terms: The terms of each function.
        noise_std: The standard deviation of the noise, in [0, 1e30], in units of the reward.
        norm_bound: The largest RKHS norm B to give each episode, 0 or in [1e-100, 1e30]; None:
            as drawn.
        variation_budget: The variation B_T to give each episode, likewise; None: as drawn.
        continuous: Whether any point of [0, 1]^d may be played.
        **noise: `noise`, another law than the Gaussian, and its parameters: see `make_noise`.

    Hidden changes are those of `HiddenChanges`. On a box the optimum is that of the grid. A
    `norm_bound` alone leaves them hidden; a `variation_budget` below what was drawn may leave the
    old optimum the best one.

    In an environment's arguments `noise_std`, `lengthscale`, `kernel` and `change_points` may be
    laws, drawn anew for each episode: see `RandomTask`.

    Raises:
        ValueError: If a parameter is out of its range, an episode is too large to hold, or a
            budget cannot be met.
    """

    drawable: ClassVar[Mapping[str, Drawable]] = {
        "noise_std": "range",
        "lengthscale": "range",
        "kernel": "choice",
        "change_points": "times",
    }

    def __init__(
        self,
        schedule: Literal["abrupt", "piecewise_linear", "constant", "recurring", "hidden"],
        *,
        kernel: KernelName = "se",
        lengthscale: float = 0.2,
        nu: float = 2.5,
        dim: int = 1,
        points_per_dim: int = 100,
        horizon: int = 500,
        change_points: ArrayLike | None = None,
        num_worlds: int | None = None,
        rise: float | None = None,
        num_terms: int = 100,
        noise_std: float = 0.1,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
        continuous: bool = False,
        **noise: Unpack[NoiseParameters],
    ) -> None:
        check_choice("schedule", schedule, OWNER, SCHEDULES)
        count = number_of_points(OWNER, dim, points_per_dim, continuous)
        horizon = check_int("horizon", horizon, OWNER, 1)
        self.num_terms = check_int("num_terms", num_terms, OWNER, 1)
        check_size(OWNER, {"horizon": horizon}, USUAL)
        moves = make_schedule(schedule, horizon, change_points)
        own = {"recurring": ("num_worlds", num_worlds), "hidden": ("rise", rise)}
        unused = dict(pair for of, pair in own.items() if of != schedule)
        check_unused(OWNER, f"for the schedule {schedule!r}", unused)
        worlds = USUAL_WORLDS if num_worlds is None else num_worlds
        worlds = check_int("num_worlds", worlds, OWNER, 2, MOST_WORLDS)
        rise = USUAL_RISE if rise is None else rise
        rise = check_float("rise", rise, OWNER, SMALLEST_RISE, LARGEST_RISE)
        check_sizes(schedule, moves, worlds, count, self.num_terms, continuous)
        super().__init__(
            kernel=make_kernel(kernel, lengthscale, nu),
            domain=grid(points_per_dim, dim),
            schedule=moves,
            noise=make_noise("gaussian", noise_std, OWNER, **noise),
            norm_bound=norm_bound,
            variation_budget=variation_budget,
            continuous=continuous,
        )
        self._knot_process = self._make_process(schedule, worlds, rise, lengthscale)

    def _make_process(
        self, schedule: str, worlds: int, rise: float, lengthscale: float
    ) -> KnotProcess:
        """Return what draws the functions at the knots.

        Raises:
            ValueError: If the kernel with its lengthscale lets no function change in one place.
        """
        kernel = DomainKernel(self.kernel, self.domain)
        count, terms = self.schedule.num_knots, self.num_terms
        if schedule == "recurring":
            return RecurringFunctions(kernel, count, terms, worlds)
        if schedule != "hidden":
            return IndependentFunctions(kernel, count, terms)
        process = HiddenChanges(kernel, count, terms, rise)
        if isinstance(self.kernel, Linear):
            rule = "a local one, with which a function may change in one place alone"
            reject("kernel", OWNER, rule, self.kernel)
        if process.largest_left(0) < LEAST_LEFT:
            rule = "short enough for a function to change in one place alone"
            reject("lengthscale", OWNER, rule, lengthscale)
        return process

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the functions of one episode."""
        return SyntheticTask.draw_batch(self, [rng]).of_batch(0)

    def draw_batch(self, generators: Sequence[np.random.Generator]) -> Episode:
        """Draw the functions of an episode from each generator."""
        return self.in_blocks(self._draw_block, generators)

    def _draw_block(self, generators: Sequence[np.random.Generator]) -> Episode:
        return self.episode(self._knot_process.draw(generators))


def check_sizes(
    name: str, schedule: Schedule, worlds: int, points: int, terms: int, continuous: bool
) -> None:
    """Raise ValueError unless an episode can be held, and its optimum found in some seconds."""
    count, positions = schedule.num_knots, len(schedule.left)
    functions = {"functions": count}
    if name in JUMPS:
        functions = {"change_points": max(count - 1, 1)}
    drawn = {"num_worlds": worlds} if name == "recurring" else functions
    size = {"points_per_dim^dim": points}
    check_size(OWNER, drawn | {"num_terms": terms}, USUAL)
    check_size(OWNER, drawn | size, USUAL)
    check_size(OWNER, functions | size, USUAL)
    if name == "piecewise_linear":
        check_size(OWNER, {"horizon": positions} | size, USUAL)
    at_once = {"recurring": worlds * terms, "hidden": terms}.get(name, count * terms)
    if min(points, at_once) * points > MAX_NUMBERS:
        check_size(OWNER, drawn | {"num_terms": terms} | size, USUAL)
    all_centres = HiddenChanges.most_centres(count, terms) if name == "hidden" else at_once
    centres = min(points, all_centres)
    if continuous and positions * centres * points > MAX_WORK:
        rule = f"False for {positions:,} functions of {centres:,} centres on {points:,} points"
        reject("continuous", OWNER, rule, True)


def make_schedule(name: str, horizon: int, change_points: ArrayLike | None) -> Schedule:
    """Return the schedule that `SyntheticTask` names; else raise ValueError."""
    if name in JUMPS:
        default = [round(share * horizon) for share in JUMPS[name]]
        points = checked_change_points(change_points, default, horizon, OWNER)
        return piecewise_constant(horizon, points)
    check_unused(OWNER, f"for the schedule {name!r}", {"change_points": change_points})
    return piecewise_constant(horizon, []) if name == "constant" else piecewise_linear(horizon)
