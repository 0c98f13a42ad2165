"""The synthetic tasks of [Deng22] Section 7: random functions that jump, walk or rest."""

from __future__ import annotations

import numpy as np

from wgp_gym import paths
from wgp_gym.envs.episode import Episode, make_episode, rescale
from wgp_gym.envs.noise import make_noise
from wgp_gym.envs.optimum import BoxSearch, Search, search_points
from wgp_gym.envs.task import Task
from wgp_gym.kernels import Array, make_kernel
from wgp_gym.rkhs import DomainKernel, Functions
from wgp_gym.validation import check_choice, check_int, reject

__all__ = ["SyntheticTask", "grid"]

MAX_POINTS = 100_000  # the path of a slow task over them all takes 400 MB at T = 500
PATHS = ("jumps", "straight_lines", "constant")


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
        lengthscale: The kernel's length l > 0.
        nu: The smoothness of "matern" and "modified-matern": 0.5, 1.5 or 2.5.
        dim: The dimension d of the decision set.
        points_per_dim: The points of D along each dimension, at least 2.
        horizon: The number of steps T.
        change_points: Only with "jumps": the steps, counted from 1, that are the first to meet
            a new function. Default 0.2 T and 0.4 T: [100, 200] for T = 500.
        num_terms: The terms of each function.
        noise_std: The standard deviation of the Gaussian noise, >= 0, in units of the reward.
        norm_bound: The largest RKHS norm B >= 0 to give each episode; None: as drawn.
        variation_budget: The variation B_T >= 0 to give each episode; None: as drawn.
        continuous: Whether any point of [0, 1]^d may be played.

    Raises:
        ValueError: If a parameter is out of its range, or a budget cannot be met.
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
        check_choice("path", path, "SyntheticTask", PATHS)
        dim = check_int("dim", dim, "SyntheticTask", 1)
        points_per_dim = check_int("points_per_dim", points_per_dim, "SyntheticTask", 2)
        if points_per_dim**dim > MAX_POINTS:
            rule = f"small enough for {MAX_POINTS:,} points in {dim} dimensions"
            reject("points_per_dim", "SyntheticTask", rule, points_per_dim)
        horizon = check_int("horizon", horizon, "SyntheticTask", 1)
        self.num_terms = check_int("num_terms", num_terms, "SyntheticTask", 1)
        super().__init__(
            kernel=make_kernel(kernel, lengthscale, nu),
            domain=grid(points_per_dim, dim),
            path=make_path(path, horizon, change_points),
            noise=make_noise("gaussian", noise_std, "SyntheticTask"),
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
