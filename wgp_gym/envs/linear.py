"""Linear bandits: f_t(x) = theta_t^T x on the unit ball, with theta that jumps or turns.

References:
    [RVC19] Russac, Vernade, Cappe. Weighted Linear Bandits for Non-Stationary Environments.
        NeurIPS 2019.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_gym.arrays import blocks
from wgp_gym.envs.episode import Episode, linear_episode
from wgp_gym.envs.laws import Drawable
from wgp_gym.envs.noise import NoiseParameters, make_noise
from wgp_gym.envs.task import Task
from wgp_gym.envs.theta_process import IndependentVectors, Rotation, ThetaProcess, on_sphere
from wgp_gym.kernels import CentredLinear
from wgp_gym.problem import LINKS
from wgp_gym.rkhs import Functions, linear_functions
from wgp_gym.schedules import (
    Schedule,
    checked_change_points,
    knot_per_step,
    piecewise_constant,
)
from wgp_gym.types import Array
from wgp_gym.validation import (
    MAX_WORK,
    check_bool,
    check_choice,
    check_float,
    check_int,
    check_size,
    check_unused,
    reject,
)

__all__ = ["LinearTask"]

SCHEDULES = ("abrupt", "rotation")
OWNER = "LinearTask"
KERNEL = CentredLinear()
MAX_DIM = 1000
SMALLEST_ANGLE = 1e-6  # but for 0; a step's share of it still stands out from rounding
# What the arms that stay, their rewards and the functions grow with, by the schedule.
REWARDED: dict[str, list[tuple[str, ...]]] = {
    "abrupt": [("num_arms", "dim"), ("horizon",)],
    "rotation": [("num_arms", "dim"), ("num_arms", "horizon"), ("dim", "horizon")],
}
USUAL = {"dim": 2, "num_arms": 50, "horizon": 6000, "change_points": 3}
USUAL_NOISE, USUAL_ANGLE = 1.0, math.pi / 2


class LinearTask(Task):
    """f_t(x) = theta_t^T x for arms x on the unit sphere, theta_t in the unit ball of R^d.

    The task of [RVC19] Section 5 has T = 6000, d = 2, 50 arms and sigma = 1. Abrupt: theta =
    [[1, 0], [-1, 0], [0, 1], [0, -1]], new at the steps 1001, 2001 and 3001; slow: theta =
    [[1, 0]], turned by a right angle over the first half. A point x stands in the box [0, 1]^d
    at (x + 1) / 2.

    Deviation: the authors' code draws arms anew at each step (`contextual`), uniformly from the
    cube and onto the sphere if outside; here they are uniform on the sphere, and stay unless
    `contextual`.

    Args:
        schedule: "abrupt": theta rests until each change point, then is the next;
            "rotation": theta turns at an even pace before each of the steps 2 .. T/2 + 1, then
            rests.
        dim: The dimension d, in [2, 1000].
        num_arms: The number of arms n >= 2.
        horizon: The number of steps T.
        change_points: Only with "abrupt": the steps, counted from 1, that are the first to meet
            a new theta. Default T/6 + 1, T/3 + 1 and T/2 + 1.
        theta: With "abrupt": the vectors of all segments, each of norm at most 1. With
            "rotation": the one to start from, and for d > 2 optionally one more to turn
            towards; for d = 2 it turns counter-clockwise. Default: drawn anew in each episode,
            uniformly on the sphere, as is the plane of the rotation. A norm is 0 or at least
            1e-100.
        link: "identity": arms pay theta^T x and Gaussian noise; "logistic": they pay 1 with
            probability 1 / (1 + e^{-theta^T x}), else 0. B and B_T are those of theta.
        noise_std: Only with "identity": the standard deviation of the noise, in [0, 1e30].
            Default: 1.0.
        contextual: Whether all arms are drawn anew at each step, independent and uniform on the
            sphere, in single precision. The observation shows them.
        arms_seed: The seed that fixed arms are drawn from, and the domain of `contextual` tasks.
        angle: Only with "rotation": the whole angle, in radians, 0 or in [1e-6, 2 pi]. Default:
            pi / 2.
        norm_bound: The largest norm B of theta to give each episode, 0 or in [1e-100, 1e30];
            None: as drawn.
        variation_budget: The variation B_T to give each episode, likewise; None: as drawn. These
            two may carry theta out of the unit ball.
        **noise: Only with "identity": `noise`, another law, and its parameters: see `make_noise`.

    In an environment's arguments `noise_std` and, where theta is drawn, `change_points` may be
    laws, drawn anew for each episode: see `RandomTask`.

    The `sup_variation` of a contextual episode is that on the unit ball: ||theta_{t+1} -
    theta_t|| for the identity; for the logistic link a quarter of it, an upper bound.

    Raises:
        ValueError: If a parameter is out of its range, or a budget cannot be met.
    """

    drawable: ClassVar[Mapping[str, Drawable]] = {"noise_std": "range", "change_points": "times"}

    def __init__(
        self,
        schedule: Literal["abrupt", "rotation"],
        *,
        dim: int = 2,
        num_arms: int = 50,
        horizon: int = 6000,
        change_points: ArrayLike | None = None,
        theta: ArrayLike | None = None,
        link: Literal["identity", "logistic"] = "identity",
        noise_std: float | None = None,
        contextual: bool = False,
        arms_seed: int = 0,
        angle: float | None = None,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
        **noise: Unpack[NoiseParameters],
    ) -> None:
        check_choice("schedule", schedule, OWNER, SCHEDULES)
        check_choice("link", link, OWNER, LINKS)
        if schedule == "abrupt":
            check_unused(OWNER, f"for the schedule {schedule!r}", {"angle": angle})
        dim = check_int("dim", dim, OWNER, 2, MAX_DIM)
        num_arms = check_int("num_arms", num_arms, OWNER, 2)
        horizon = check_int("horizon", horizon, OWNER, 1)
        check_bool("contextual", contextual, OWNER)
        check_sizes(schedule, {"num_arms": num_arms, "dim": dim, "horizon": horizon}, contextual)
        moves = make_schedule(schedule, horizon, change_points)
        changes = {"change_points": moves.num_knots - 1}
        check_size(OWNER, {"num_arms": num_arms} | changes, USUAL)
        check_size(OWNER, {"dim": dim} | changes, USUAL)
        check_size(OWNER, {"num_arms": num_arms, "dim": dim} | changes, USUAL, MAX_WORK)
        reward = "gaussian" if link == "identity" else "bernoulli"
        rng = np.random.default_rng(check_int("arms_seed", arms_seed, OWNER, 0))
        super().__init__(
            kernel=KERNEL,
            domain=in_box(on_sphere(rng, (num_arms, dim))),
            schedule=moves,
            noise=make_noise(reward, noise_std, OWNER, USUAL_NOISE, **noise),
            norm_bound=norm_bound,
            variation_budget=variation_budget,
            reward_range=None if link == "identity" else (0.0, 1.0),
            contextual=contextual,
            link=link,
        )
        turn = USUAL_ANGLE if angle is None else check_float("angle", angle, OWNER, 0, 2 * math.pi)
        if 0 < turn < SMALLEST_ANGLE:
            reject("angle", OWNER, f"0 or at least {SMALLEST_ANGLE:g}", angle)
        self._theta_process: ThetaProcess = (
            IndependentVectors(moves.num_knots, dim, theta)
            if schedule == "abrupt"
            else Rotation(moves.num_knots, dim, theta, turn)
        )

    @property
    def kept_numbers(self) -> int:
        """How many numbers an environment keeps of an episode, about."""
        rewarded = 0 if self.contextual else len(self.schedule.left) * len(self.domain)
        return super().kept_numbers + rewarded

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the vectors of one episode, and its arms where they are drawn anew."""
        return LinearTask.draw_batch(self, [rng]).of_batch(0)

    def draw_batch(self, generators: Sequence[np.random.Generator]) -> Episode:
        """Draw an episode from each generator."""
        if not self.contextual:
            return self.in_blocks(self._draw_fixed, generators)
        # Many numbers, so that they are written once, where they stay.
        arms = np.empty((len(generators), self.horizon, *self.domain.shape), np.float32)

        def _draw_block(block: slice) -> Episode:
            for rng, own in zip(generators[block], arms[block], strict=True):
                stream = rng.spawn(1)[0]  # of their own
                for steps in blocks(0, self.horizon, self.domain.size):
                    own[steps] = in_box(on_sphere(stream, own[steps].shape))
            drawn = self.episode(self._functions(generators[block]), arms[block])
            return replace(drawn, arms=None)

        joined = self.over_blocks(_draw_block, len(generators))
        arms.setflags(write=False)
        return replace(joined, arms=arms)

    def _functions(self, generators: Sequence[np.random.Generator]) -> Functions:
        """Draw the vectors of an episode from each generator."""
        return linear_functions(np.stack([self._theta_process.draw(rng) for rng in generators]))

    def _draw_fixed(self, generators: Sequence[np.random.Generator]) -> Episode:
        """Draw episodes whose arms stay."""
        functions = self.rescaled(self._functions(generators))
        phi = KERNEL.features(self.domain)
        return linear_episode(self.schedule, functions, phi, self.norm_bound, self.link)


def in_box(points: Array) -> Array:
    """Return where points of the unit sphere stand in [0, 1]^d.

    No coordinate x / ||x|| leaves [-1, 1] by rounding, as the root of x^2, both rounded, is |x|.
    """
    place = points + 1
    place *= 0.5
    return place


def check_sizes(schedule: str, sizes: dict[str, int], contextual: bool) -> None:
    """Check that an episode's arms, and the rewards of arms that stay, can be held."""
    if contextual:
        check_size(OWNER, sizes, USUAL)
        return
    for names in REWARDED[schedule]:
        check_size(OWNER, {name: sizes[name] for name in names}, USUAL)
    if schedule == "rotation":
        check_size(OWNER, sizes, USUAL, MAX_WORK)


def make_schedule(name: str, horizon: int, change_points: ArrayLike | None) -> Schedule:
    """Return the schedule that `LinearTask` names; else raise ValueError."""
    if name == "abrupt":
        default = [round(horizon / 6) + 1, round(horizon / 3) + 1, round(horizon / 2) + 1]
        points = checked_change_points(change_points, default, horizon, OWNER)
        return piecewise_constant(horizon, points)
    check_unused(OWNER, f"for the schedule {name!r}", {"change_points": change_points})
    return knot_per_step(horizon, min(max(horizon // 2, 1), horizon - 1))
