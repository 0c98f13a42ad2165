"""The synthetic tasks of [Deng22] Section 7: random functions that jump, walk or rest."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from wgp_gym import paths
from wgp_gym.envs.episode import Episode, make_episode, rescale
from wgp_gym.envs.noise import make_noise
from wgp_gym.envs.optimum import BoxSearch, Search, search_points
from wgp_gym.envs.task import Task
from wgp_gym.kernels import make_kernel
from wgp_gym.rkhs import DomainKernel, Functions
from wgp_gym.sizes import MAX_NUMBERS, MAX_WORK, check_size
from wgp_gym.types import Array
from wgp_gym.validation import check_bool, check_choice, check_int, reject

__all__ = ["SyntheticTask", "grid"]

OWNER = "SyntheticTask"
MAX_POINTS = 100_000  # the path of a slow task over them all takes 400 MB at T = 500
MAX_BOX_DIM = 6  # where the search of a box takes 3^6 directions at each step
PATHS = ("jumps", "straight_lines", "constant")
USUAL = {
    "dim": 1,
    "points_per_dim": 100,
    "points_per_dim^dim": 100,
    "horizon": 500,
    "change_points": 2,
    "functions": 3,
    "num_terms": 100,
}


def grid(points_per_dim: int, dim: int) -> Array:
    """Return evenly spaced points of [0, 1]^d, ends included, `(points_per_dim^d, d)`."""
    axes = np.meshgrid(*[np.linspace(0.0, 1.0, points_per_dim)] * dim, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1)


class SyntheticTask(Task):
    """Functions f = sum of `num_terms` alpha_i k(., x_i), alpha_i uniform in [-1, 1], x_i on D.

    Args:
        path: "jumps": one function until each change point, then the next ("abrupt");
            "straight_lines": from f_4 to f_5 at T/2 to f_6 at T ("slow"); "constant".
        kernel: "se", "matern", "linear" or "modified-matern" (a product over the axes).
        lengthscale: The kernel's length l, in [1e-9, 1e9].
        nu: The smoothness of "matern" and "modified-matern": 0.5, 1.5 or 2.5.
        dim: The dimension d of the decision set; of a box at most 6.
        points_per_dim: The points of D along each dimension, at least 2; at most 100,000 in all.
        horizon: The number of steps T.
        change_points: Only with "jumps": the steps, counted from 1, that are the first to meet
            a new function. Default 0.2 T and 0.4 T: [100, 200] for T = 500.
        num_terms: The terms of each function.
        noise_std: The standard deviation of the Gaussian noise, in [0, 1e30], in units of the
            reward.
        norm_bound: The largest RKHS norm B to give each episode, 0 or in [1e-100, 1e30]; None:
            as drawn.
        variation_budget: The variation B_T to give each episode, likewise; None: as drawn.
        continuous: Whether any point of [0, 1]^d may be played.

    Raises:
        ValueError: If a parameter is out of its range, an episode is too large to hold, or a
            budget cannot be met.
    """

    def __init__(
        self,
        path: str,
        *,
        kernel: str = "se",
        lengthscale: float = 0.2,
        nu: float = 2.5,
        dim: int = 1,
        points_per_dim: int = 100,
        horizon: int = 500,
        change_points: list[int] | None = None,
        num_terms: int = 100,
        noise_std: float = 0.1,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
        continuous: bool = False,
    ) -> None:
        check_choice("path", path, OWNER, PATHS)
        count = number_of_points(dim, points_per_dim)
        if check_bool("continuous", continuous, OWNER):
            check_int("dim", dim, OWNER, 1, MAX_BOX_DIM)
        horizon = check_int("horizon", horizon, OWNER, 1)
        self.num_terms = check_int("num_terms", num_terms, OWNER, 1)
        check_size(OWNER, {"horizon": horizon}, USUAL)
        schedule = make_path(path, horizon, change_points)
        check_sizes(path, schedule, count, self.num_terms, continuous)
        super().__init__(
            kernel=make_kernel(kernel, lengthscale, nu),
            domain=grid(points_per_dim, dim),
            path=schedule,
            noise=make_noise("gaussian", noise_std, OWNER),
            norm_bound=norm_bound,
            variation_budget=variation_budget,
            continuous=continuous,
        )
        self._domain_kernel = DomainKernel(self.kernel, self.domain)
        box = BoxSearch(self._domain_kernel, points_per_dim) if self.continuous else None
        self._search: Search = box or search_points

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the functions of one episode."""
        functions = Functions.draw(rng, self._domain_kernel, self.path.num_knots, self.num_terms)
        functions = rescale(self.path, functions, self.norm_bound, self.variation_budget)
        return make_episode(self.path, functions, self._search, self.norm_bound)


def number_of_points(dim: int, points_per_dim: int) -> int:
    """Return how many points the grid has.

    Raises:
        ValueError: If a number is out of its range, or they are more than 100,000: the parameter
            that is further above its default is named.
    """
    sizes = {
        "points_per_dim": check_int("points_per_dim", points_per_dim, OWNER, 2),
        "dim": check_int("dim", dim, OWNER, 1),
    }
    largest = math.floor(math.log2(MAX_POINTS))  # the power itself might never end
    if sizes["dim"] > largest or sizes["points_per_dim"] ** sizes["dim"] > MAX_POINTS:
        name = max(sizes, key=lambda one: Fraction(sizes[one], USUAL[one]))
        rule = f"small enough for points_per_dim^dim to be at most {MAX_POINTS:,}"
        reject(name, OWNER, rule, sizes[name])
    return int(sizes["points_per_dim"] ** sizes["dim"])


def check_sizes(name: str, path: paths.Path, points: int, terms: int, continuous: bool) -> None:
    """Check that an episode can be held, and searched for its optimum in some seconds.

    Args:
        name: The path's name.
        path: The path.
        points: The points n of the grid.
        terms: The terms of each function.
        continuous: Whether the optimum is searched for beyond the grid.

    Raises:
        ValueError: If not.
    """
    count, positions = path.num_knots, len(path.left)
    functions = {"functions": count}
    if name == "jumps":
        functions = {"change_points": max(count - 1, 1)}
    size = {"points_per_dim^dim": points}
    check_size(OWNER, functions | {"num_terms": terms}, USUAL)
    check_size(OWNER, functions | size, USUAL)
    if name == "straight_lines":
        check_size(OWNER, {"horizon": positions} | size, USUAL)
    centres = min(points, count * terms)
    if centres * points > MAX_NUMBERS:
        check_size(OWNER, functions | {"num_terms": terms} | size, USUAL)
    if continuous and positions * centres * points > MAX_WORK:
        rule = f"False for {positions:,} functions of {centres:,} centres on {points:,} points"
        reject("continuous", OWNER, rule, True)


def make_path(name: str, horizon: int, change_points: list[int] | None) -> paths.Path:
    """Return the path that `SyntheticTask` names.

    Raises:
        ValueError: If change points are given for a path that has none, or do not fit.
    """
    if name == "jumps":
        default = [round(0.2 * horizon), round(0.4 * horizon)]
        steps = paths.change_steps(change_points, default, horizon, "SyntheticTask")
        return paths.jumps(horizon, steps)
    paths.no_change_steps(change_points, name, "SyntheticTask")
    return paths.jumps(horizon, []) if name == "constant" else paths.straight_lines(horizon)
