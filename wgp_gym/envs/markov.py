"""The Markov drift of TV-GP-UCB: draws of a Gaussian process that forget a little at every step.

References:
    [BSC16] Bogunovic, Scarlett, Cevher. Time-Varying Gaussian Process Bandit Optimization.
        AISTATS 2016.
    [Deng22]: see `wgp_gym.kernels`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import ClassVar, Unpack

import numpy as np
import scipy

from wgp_gym.envs.episode import Episode
from wgp_gym.envs.laws import Drawable
from wgp_gym.envs.noise import NoiseParameters, make_noise
from wgp_gym.envs.optimum import grid, number_of_points
from wgp_gym.envs.task import Task
from wgp_gym.features import exact_features
from wgp_gym.kernels import KernelName, make_kernel
from wgp_gym.rkhs import Functions, linear_functions
from wgp_gym.schedules import knot_per_step
from wgp_gym.types import Array
from wgp_gym.validation import (
    MAX_NUMBERS,
    MAX_WORK,
    check_bool,
    check_float,
    check_int,
    check_size,
    reject,
)

__all__ = ["MarkovTask"]

OWNER = "MarkovTask"
TRUNCATION = 1e-10  # of the kernel's diagonal: the variance that the features leave out
USUAL = {"points_per_dim^dim": 100, "horizon": 500, "dim": 1}


class MarkovTask(Task):
    """f_1 = g_1, f_{t+1} = (1 - eps)^{1/2} f_t + eps^{1/2} g_{t+1}, g_t draws of GP(0, k), [BSC16].

    So f_t(x) is normal with variance k(x, x) at every t, and the correlation of f_t and f_s is
    (1 - eps)^{|t - s| / 2}. A draw is g = z^T phi with z standard normal and phi the m features
    of the kernel on the domain, which leave out at most 1e-10 of a variance. Its squared norm is
    ||z||^2, m on average: draws of a Gaussian process have large norms, sqrt(17) for the
    default kernel, and B and B_T are accordingly large.

    Args:
        eps: The drift, in [0, 1]: 0 rests, 1 draws anew at every step.
        kernel: "se", "matern", "linear" or "modified-matern" (a product over the axes).
        lengthscale: The kernel's length l, in [1e-9, 1e9].
        nu: The smoothness of "matern" and "modified-matern": 0.5, 1.5 or 2.5.
        dim: The dimension d of the decision set; of a box at most 6.
        points_per_dim: The points of the domain along each dimension, at least 2; at most
            100,000 in all.
        horizon: The number of steps T.
        noise_std: The standard deviation of the noise, in [0, 1e30], in units of the reward.
        norm_bound: The largest RKHS norm B to give each episode, 0 or in [1e-100, 1e30]; None:
            as drawn.
        variation_budget: The variation B_T to give each episode, likewise; None: as drawn.
        continuous: Whether any point of [0, 1]^d may be played. Between the grid's points f_t is
            the function of least norm through its values there, and so varies a little less
            than the process where the kernel is rough. The coefficients of a smooth kernel are
            large and nearly cancel: rewards are right to about 1e-9, norms to 1e-8 of themselves.
        contextual: Whether points_per_dim^dim arms are drawn anew at each step, independent and
            uniform in [0, 1]^d, in single precision. Only with the kernel "linear".
        **noise: `noise`, another law than the Gaussian, and its parameters: see `make_noise`.

    In an environment's arguments `eps`, `noise_std`, `lengthscale` and `kernel` may be laws, drawn
    anew for each episode: see `RandomTask`.

    Raises:
        ValueError: If a parameter is out of its range, an episode is too large to hold, or a
            budget cannot be met.
    """

    drawable: ClassVar[Mapping[str, Drawable]] = {
        "noise_std": "range",
        "lengthscale": "range",
        "kernel": "choice",
        "eps": "range",
    }

    def __init__(
        self,
        *,
        eps: float = 0.01,
        kernel: KernelName = "se",
        lengthscale: float = 0.2,
        nu: float = 2.5,
        dim: int = 1,
        points_per_dim: int = 100,
        horizon: int = 500,
        noise_std: float = 0.1,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
        continuous: bool = False,
        contextual: bool = False,
        **noise: Unpack[NoiseParameters],
    ) -> None:
        self.eps = check_float("eps", eps, OWNER, 0, 1)
        made = make_kernel(kernel, lengthscale, nu)
        count = number_of_points(OWNER, dim, points_per_dim, continuous)
        horizon = check_int("horizon", horizon, OWNER, 1)
        sizes = {"points_per_dim^dim": count, "horizon": horizon}
        if check_bool("contextual", contextual, OWNER):
            if continuous:
                reject("contextual", OWNER, "False on a box", contextual)
            sizes["dim"] = dim
        check_size(OWNER, sizes, USUAL)
        super().__init__(
            kernel=made,
            domain=grid(points_per_dim, dim),
            schedule=knot_per_step(horizon),
            noise=make_noise("gaussian", noise_std, OWNER, **noise),
            norm_bound=norm_bound,
            variation_budget=variation_budget,
            continuous=continuous,
            contextual=contextual,
        )
        if contextual:
            return
        # m columns of n numbers take n m^2 products to make, and an episode T n m.
        most = min(math.isqrt(MAX_WORK // count), MAX_NUMBERS // max(count, horizon))
        most = max(min(most, MAX_WORK // (count * horizon)), 1)
        features = exact_features(made, self.domain, TRUNCATION, most)
        if features.residuals[-1] > TRUNCATION:
            rule = f"such that at most {most:,} features make the kernel of {count:,} points"
            reject("lengthscale", OWNER, rule, lengthscale)
        self._phi, self._centres = features.table, features.pivots

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the functions of one episode, and its arms where they are drawn anew."""
        if not self.contextual:
            return self.episode(self._functions(self._coefficients(rng, self._phi.shape[1])))
        arms = rng.spawn(1)[0].random((self.horizon, *self.domain.shape), np.float32)
        theta = self._coefficients(rng, self.domain.shape[1])
        return self.episode(linear_functions(theta), arms)

    def _coefficients(self, rng: np.random.Generator, count: int) -> Array:
        """Draw the coefficients of f_1 .. f_T in an orthonormal basis, `(T, count)`."""
        z: Array = rng.standard_normal((self.horizon, count))
        keep, renew = math.sqrt(1 - self.eps), math.sqrt(self.eps)
        for last, now in pairwise(z):
            now *= renew
            now += keep * last
        return z

    def _functions(self, z: Array) -> Functions:
        """Return f = z^T phi, as expansions over the points P that phi was made at.

        phi(x) = L^{-1} k(P, x) with L = phi(P), lower triangular: the coefficients are L^{-T} z.
        """
        L = self._phi[self._centres]
        coefficients = scipy.linalg.solve_triangular(L, z.T, trans="T", lower=True).T
        return Functions(self._centres, coefficients, z @ self._phi.T)
