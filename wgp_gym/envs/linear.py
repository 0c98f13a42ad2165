"""Linear bandits: f_t(x) = theta_t^T x on the unit ball, with theta that jumps or turns.

References:
    [RVC19] Russac, Vernade, Cappe. Weighted Linear Bandits for Non-Stationary Environments.
        NeurIPS 2019.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_gym import paths
from wgp_gym.envs.episode import Episode, rescale
from wgp_gym.envs.noise import make_noise
from wgp_gym.envs.task import Task, refuse
from wgp_gym.envs.truth import linear_rewards
from wgp_gym.envs.walks import Jumps, Rotation, Walk, on_sphere
from wgp_gym.kernels import CentredLinear
from wgp_gym.problem import LINKS
from wgp_gym.rkhs import Functions
from wgp_gym.sizes import MAX_WORK, check_size
from wgp_gym.types import Array
from wgp_gym.validation import check_bool, check_choice, check_float, check_int, reject

__all__ = ["LinearTask"]

PATHS = ("jumps", "rotation")
OWNER = "LinearTask"
KERNEL = CentredLinear()
MAX_DIM = 1000
SMALLEST_ANGLE = 1e-6  # but for 0; a step's share of it still stands out from rounding
# What the arms that stay, their rewards and the functions grow with, by the path.
REWARDED: dict[str, list[tuple[str, ...]]] = {
    "jumps": [("num_arms", "dim"), ("horizon",)],
    "rotation": [("num_arms", "dim"), ("num_arms", "horizon"), ("dim", "horizon")],
}
USUAL = {"dim": 2, "num_arms": 50, "horizon": 6000, "change_points": 3}
USUAL_NOISE, USUAL_ANGLE = 1.0, math.pi / 2
LOGISTIC_SLOPE = 0.25  # the steepest that 1 / (1 + e^{-z}) is


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
        path: "jumps": theta rests until each change point, then is the next; "rotation": theta
            turns at an even pace before each of the steps 2 .. T/2 + 1, then rests.
        dim: The dimension d, in [2, 1000].
        num_arms: The number of arms n >= 2.
        horizon: The number of steps T.
        change_points: Only with "jumps": the steps, counted from 1, that are the first to meet
            a new theta. Default T/6 + 1, T/3 + 1 and T/2 + 1.
        theta: With "jumps": the vectors of all segments, each of norm at most 1. With
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

    The `sup_variation` of a contextual episode is that on the unit ball: ||theta_{t+1} -
    theta_t|| for the identity; for the logistic link a quarter of it, an upper bound.

    Raises:
        ValueError: If a parameter is out of its range, or a budget cannot be met.
    """

    def __init__(
        self,
        path: str,
        *,
        dim: int = 2,
        num_arms: int = 50,
        horizon: int = 6000,
        change_points: list[int] | None = None,
        theta: list[list[float]] | None = None,
        link: str = "identity",
        noise_std: float | None = None,
        contextual: bool = False,
        arms_seed: int = 0,
        angle: float | None = None,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
    ) -> None:
        check_choice("path", path, OWNER, PATHS)
        check_choice("link", link, OWNER, LINKS)
        if path == "jumps":
            refuse(OWNER, "for the path 'jumps'", {"angle": angle})
        dim = check_int("dim", dim, OWNER, 2, MAX_DIM)
        num_arms = check_int("num_arms", num_arms, OWNER, 2)
        horizon = check_int("horizon", horizon, OWNER, 1)
        check_bool("contextual", contextual, OWNER)
        check_sizes(path, {"num_arms": num_arms, "dim": dim, "horizon": horizon}, contextual)
        schedule = make_path(path, horizon, change_points)
        changes = {"change_points": schedule.num_knots - 1}
        check_size(OWNER, {"num_arms": num_arms} | changes, USUAL)
        check_size(OWNER, {"dim": dim} | changes, USUAL)
        check_size(OWNER, {"num_arms": num_arms, "dim": dim} | changes, USUAL, MAX_WORK)
        reward = "gaussian" if link == "identity" else "bernoulli"
        rng = np.random.default_rng(check_int("arms_seed", arms_seed, OWNER, 0))
        super().__init__(
            kernel=KERNEL,
            domain=in_box(on_sphere(rng, (num_arms, dim))),
            path=paths.stepwise(schedule) if contextual else schedule,
            noise=make_noise(reward, noise_std, OWNER, USUAL_NOISE),
            norm_bound=norm_bound,
            variation_budget=variation_budget,
            reward_range=None if link == "identity" else (0.0, 1.0),
            contextual=contextual,
            link=link,
        )
        turn = USUAL_ANGLE if angle is None else check_float("angle", angle, OWNER, 0, 2 * math.pi)
        if 0 < turn < SMALLEST_ANGLE:
            reject("angle", OWNER, f"0 or at least {SMALLEST_ANGLE:g}", angle)
        self._walk: Walk = (
            Jumps(schedule.num_knots, dim, theta)
            if path == "jumps"
            else Rotation(schedule.num_knots, dim, theta, turn)
        )

    @property
    def kept_numbers(self) -> int:
        """How many numbers an environment keeps of an episode, about."""
        rewarded = 0 if self.contextual else len(self.path.left) * len(self.domain)
        return super().kept_numbers + rewarded

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the vectors of one episode, and its arms where they are drawn anew."""
        arms = None
        if self.contextual:  # a stream of their own
            shape = (self.horizon, *self.domain.shape)
            arms = in_box(on_sphere(rng.spawn(1)[0], shape)).astype(np.float32)
        vectors = self._walk.draw(rng)
        # theta^T x is the sum of its coordinates times k(., e_i): their centres are e_1 .. e_d.
        functions = Functions(np.arange(vectors.shape[1]), vectors, vectors)
        functions = rescale(self.path, functions, self.norm_bound, self.variation_budget)
        return self._episode(functions, arms)

    def _episode(self, functions: Functions, arms: NDArray[np.float32] | None) -> Episode:
        path, theta = self.path, functions.coefficients[self.path.left]
        shown: NDArray[Any] = self.domain if arms is None else arms
        rewards = linear_rewards(theta, KERNEL.features(shown), self.link)  # (U, n)
        best = rewards.argmax(axis=1)
        increments = path.increments(functions.differences())
        variation = np.cumsum(increments)
        if arms is None:
            moved = np.abs(np.diff(rewards, axis=0, prepend=rewards[:1])).max(axis=1)
        else:
            moved = increments * (1.0 if self.link == "identity" else LOGISTIC_SLOPE)
        bound = self.norm_bound
        return Episode(
            values=rewards if arms is None else functions.values,
            coefficients=functions.coefficients,
            centres=functions.centres,
            optimal_reward=rewards[np.arange(len(best)), best],
            optimal_action=best,
            variation=variation,
            sup_variation=np.cumsum(moved),
            norm_bound=float(path.norms(functions).max()) if bound is None else bound,
            variation_budget=float(variation[-1]),
            arms=arms,
        )


def in_box(points: Array) -> Array:
    """Return where points of [-1, 1]^d stand in [0, 1]^d."""
    place: Array = np.clip((points + 1) / 2, 0.0, 1.0)
    return place


def check_sizes(path: str, sizes: dict[str, int], contextual: bool) -> None:
    """Check that an episode's arms, and the rewards of arms that stay, can be held.

    Raises:
        ValueError: If they are too many.
    """
    if contextual:
        check_size(OWNER, sizes, USUAL)
        return
    for names in REWARDED[path]:
        check_size(OWNER, {name: sizes[name] for name in names}, USUAL)
    if path == "rotation":
        check_size(OWNER, sizes, USUAL, MAX_WORK)


def make_path(name: str, horizon: int, change_points: list[int] | None) -> paths.Path:
    """Return the path that `LinearTask` names.

    Raises:
        ValueError: If change points are given for a path that has none, or do not fit.
    """
    if name == "jumps":
        default = [round(horizon / 6) + 1, round(horizon / 3) + 1, round(horizon / 2) + 1]
        return paths.jumps(horizon, paths.change_steps(change_points, default, horizon, OWNER))
    paths.no_change_steps(change_points, name, OWNER)
    return paths.table(horizon, min(max(horizon // 2, 1), horizon - 1))
