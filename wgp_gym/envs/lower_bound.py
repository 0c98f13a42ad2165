"""The hard instance behind lower bounds on regret: a needle that moves from block to block.

References:
    [CS21] Cai, Scarlett. On lower bounds for standard and robust Gaussian process bandit
        optimization. ICML 2021.
    [CS24] Cai, Scarlett. Lower bounds for time-varying kernelized bandits. arXiv 2410.16692,
        2024.
    [SBC17] Scarlett, Bogunovic, Cevher. Lower bounds on regret for noisy Gaussian process bandit
        optimization. COLT 2017.
"""

from __future__ import annotations

import bisect
import math
from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from wgp_gym.envs.episode import Episode, make_episode
from wgp_gym.envs.noise import LARGEST, SMALLEST, NoiseParameters, make_noise
from wgp_gym.envs.optimum import grid, number_of_points
from wgp_gym.envs.rescaling import common_factor
from wgp_gym.envs.task import Task, optional_bound
from wgp_gym.kernels import make_kernel
from wgp_gym.rkhs import Functions, interpolants, solvable
from wgp_gym.schedules import piecewise_constant
from wgp_gym.types import Array
from wgp_gym.validation import check_choice, check_float, check_int, check_size, reject

__all__ = ["LowerBoundTask", "least_regret"]

OWNER = "LowerBoundTask"
USUAL_NOISE = 0.1
KERNELS = ("matern", "modified-matern")
USUAL = {"horizon": 500, "blocks": 5, "points_per_dim^dim": 100}
MAX_POINTS = 2_000  # of the domain, whose kernel matrix is solved


class LowerBoundTask(Task):
    """A needle of height 2 epsilon at one of M places, zero elsewhere; each block has its own.

    Lower bounds on the regret of kernelized bandits rest on such functions ([SBC17]; [CS24] where
    functions change): a learner has to look at M places, and of none can it tell a needle from
    noise in less than some (R / epsilon)^2 plays. With epsilon such that a block is too short
    for that, no learner does much better than random play, whose regret is about 2 epsilon at
    each step: `least_regret` is a bound. An episode is the places of the needles, one for each
    block of T / blocks steps, drawn uniformly, no two in a row alike.

    The needle at z is 2 epsilon h((x - z) / w), h(u) = exp(1 - 1 / (1 - |u|^2)) where |u| < 1, else
    0, the bump of bounded support of [CS21], w half the distance of two needles: no point sees
    two of them. On the domain f_t is the function of least norm with these values, whose norm is
    exact; over the whole box h would have a larger one. A smooth kernel's functions have no such
    bumps among them: it is for the Matern kernels.

    Deviation: blocks of [CS24] draw their places independently, so that one in M changes is none.
    Here all are changes, and a budget can be met in every episode.

    Args:
        blocks: The number of blocks, in [1, T]. Default: 5, or, with a `variation_budget`,
            the fewest that spend it, or more, with the epsilon below. So needles come out no
            higher than that, but for some percent, as long as T blocks are enough.
        epsilon: Half of the needle's height, in [1e-100, 1e30]. Default: (R / 2) (M / tau)^{1/2}
            with tau = T / blocks: of tau plays shared out over the M places, the Kullback-Leibler
            divergence between a needle and none, 2 epsilon^2 tau / (M R^2), is then 1 / 2.
            R is `noise_std`, whatever the law; without noise 0.1.
        num_needles: The number M of places, at least 2: m^d on a grid, m a whole number of at most
            points_per_dim / 2, so that there are points between them.
        kernel: "matern" or "modified-matern" (a product over the axes).
        lengthscale: The kernel's length l, in [1e-9, 1e9].
        nu: The smoothness: 0.5, 1.5 or 2.5.
        dim: The dimension d of the decision set.
        points_per_dim: The points of D along each dimension; at most 2,000 in all.
        horizon: The number of steps T.
        noise_std: The standard deviation of the Gaussian noise, in [0, 1e30], in units of the
            reward.
        norm_bound: The largest RKHS norm B of each episode, 0 or in [1e-100, 1e30]; None: as
            epsilon has it.
        variation_budget: The variation B_T of each episode, likewise, but 0 only with one block.
            Both rescale all needles alike, since f_1 + c (f_t - f_1) would be two needles: with
            both, the budget is met, and an error where it takes norms above the bound.
        **noise: `noise`, another law than the Gaussian, and its parameters: see `make_noise`.

    Raises:
        ValueError: If a parameter is out of its range, the kernel's matrix on the domain is
            singular, or a budget cannot be met.
    """

    def __init__(
        self,
        *,
        blocks: int | None = None,
        epsilon: float | None = None,
        num_needles: int = 10,
        kernel: Literal["matern", "modified-matern"] = "matern",
        lengthscale: float = 0.2,
        nu: float = 2.5,
        dim: int = 1,
        points_per_dim: int = 100,
        horizon: int = 500,
        noise_std: float = USUAL_NOISE,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
        **noise: Unpack[NoiseParameters],
    ) -> None:
        horizon = check_int("horizon", horizon, OWNER, 1)
        check_size(OWNER, {"horizon": horizon}, USUAL)
        count = number_of_points(OWNER, dim, points_per_dim, False)
        if count > MAX_POINTS:
            rule = f"small enough for points_per_dim^dim to be at most {MAX_POINTS:,}"
            reject("points_per_dim", OWNER, rule, points_per_dim)
        check_choice("kernel", kernel, OWNER, KERNELS)
        made, domain = make_kernel(kernel, lengthscale, nu), grid(points_per_dim, dim)
        chance = make_noise("gaussian", noise_std, OWNER, **noise)
        places, width = needle_places(num_needles, points_per_dim, dim)
        values = bumps(domain, domain[places], width)
        self._needles = interpolants(values, solvable(made(domain, domain), lengthscale, OWNER))
        self._epsilon = epsilon
        if epsilon is not None:
            self._epsilon = check_float("epsilon", epsilon, OWNER, SMALLEST, LARGEST)
        self._noise_scale, self._steps = noise_std or USUAL_NOISE, horizon
        budget = optional_bound("variation_budget", variation_budget, OWNER)
        number = self._number_of_blocks(blocks, budget)
        check_size(OWNER, {"blocks": number, "points_per_dim^dim": count}, USUAL)
        starts = np.unique(np.arange(1, number) * horizon // number + 1)
        super().__init__(
            kernel=made,
            domain=domain,
            schedule=piecewise_constant(horizon, starts.tolist()),
            noise=chance,
            norm_bound=norm_bound,
            variation_budget=budget,
        )

    def epsilon(self, blocks: int) -> float:
        """Return half of a needle's height, where no bound was asked for, with so many blocks."""
        if self._epsilon is not None:
            return self._epsilon
        needles = len(self._needles.values)
        return self._noise_scale / 2 * math.sqrt(needles * blocks / self._steps)

    def _number_of_blocks(self, given: int | None, budget: float | None) -> int:
        """Return how many blocks there are; else raise ValueError."""
        if given is not None:
            return check_int("blocks", given, OWNER, 1, self._steps)
        if budget is None:
            return min(USUAL["blocks"], self._steps)
        if budget == 0:
            return 1
        # Needles hardly overlap: the distance of two is the root of 2 times a norm.
        norm = math.sqrt(2 * float(self._needles.squared_norms().mean()))

        def _spent(blocks: int) -> float:
            return 2 * self.epsilon(blocks) * norm * (blocks - 1)

        # One block fewer would ask for higher needles, which learners find.
        fewest = bisect.bisect_left(range(1, self._steps + 1), budget, key=_spent) + 1
        return min(fewest, self._steps)

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the places of the needles of one episode.

        Raises:
            ValueError: If a budget cannot be met.
        """
        knots, count = self.schedule.num_knots, len(self._needles.values)
        steps = rng.integers(1, count, size=knots)  # to any other place
        steps[0] = rng.integers(count)
        drawn = self._needles[np.cumsum(steps) % count].scaled(2 * self.epsilon(knots))
        return make_episode(self.schedule, self._met(drawn), self._search, self.norm_bound)

    def _met(self, drawn: Functions) -> Functions:
        """Return the needles with the norm and the variation that were asked for."""
        spent = float(self.schedule.increments(drawn.differences()).sum())
        largest = float(self.schedule.largest_norm(drawn))
        return drawn.scaled(common_factor(largest, spent, self.norm_bound, self.variation_budget))


def least_regret(height: float, steps: float, num_needles: int, noise_scale: float) -> float:
    """Return what no learner's expected regret in one block is below, in the way of [SBC17].

    Of the places but the last block's, M - 1 are equally likely. With no needle anywhere, the
    plays around one of them, N, have a mean of at most tau / (M - 1) on average over the places.
    With a needle there it is, by Pinsker's inequality, at most tau (KL / 2)^{1/2} larger,
    KL <= E N h^2 / (2 R^2), and every other play costs h. So the regret, averaged over the places,
    is at least h tau (1 - 1 / (M - 1) - h / (2 R) (tau / (M - 1))^{1/2}).

    Args:
        height: The height h = 2 epsilon of a needle.
        steps: The steps tau of a block.
        num_needles: The number M of places, at least 3.
        noise_scale: The standard deviation R > 0 of Gaussian noise.
    """
    each = steps / (num_needles - 1)  # plays of a place
    share = 1 / (num_needles - 1) + height / (2 * noise_scale) * math.sqrt(each)
    return height * steps * max(1 - share, 0.0)


def needle_places(count: int, points_per_dim: int, dim: int) -> tuple[NDArray[np.intp], float]:
    """Return the points of the grid at which the needles stand, `(M,)`, and their width w.

    Raises:
        ValueError: If there is no such number of places.
    """
    count = check_int("num_needles", count, OWNER, 2)
    side = round(count ** (1 / dim))
    if side**dim != count or 2 * side > points_per_dim:
        rule = f"m^{dim}, m a whole number of at most points_per_dim / 2, at least 2"
        reject("num_needles", OWNER, rule, count)
    axis = np.rint((np.arange(side) + 0.5) / side * (points_per_dim - 1)).astype(np.intp)
    places = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    width = float(np.diff(axis).min()) / (points_per_dim - 1) / 2
    return np.ravel_multi_index(tuple(places.T), (points_per_dim,) * dim), width


def bumps(domain: Array, places: Array, width: float) -> Array:
    """Return h((x - z) / w), [CS21], for every place z, `(M, d)`, and point x, as `(M, n)`."""
    square = np.sum(((domain - places[:, None]) / width) ** 2, axis=2)
    inside = square < 1
    return np.where(inside, np.exp(1 - 1 / (1 - np.where(inside, square, 0.0))), 0.0)
