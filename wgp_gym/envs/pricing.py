"""Which price to ask, of a market that drifts.

References:
    [BZ15] Besbes, Zeevi. On the (Surprising) Sufficiency of Linear Models for Dynamic Pricing
        with Demand Learning. Management Science 2015.
    [dB15] den Boer. Dynamic Pricing and Learning: Historical Origins, Current Research, and New
        Directions. Surveys in Operations Research and Management Science 2015.
    [KZ17] Keskin, Zeevi. Chasing Demand: Learning and Earning in a Changing Environment.
        Mathematics of Operations Research 2017.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal, Unpack

import numpy as np

from wgp_gym.envs.episode import Episode
from wgp_gym.envs.laws import Drawable
from wgp_gym.envs.noise import Noise, NoiseParameters, make_noise
from wgp_gym.envs.orders import LognormalOrders, PoissonOrders
from wgp_gym.envs.table import with_nugget
from wgp_gym.envs.task import Task
from wgp_gym.kernels import Empirical, SquaredExponential
from wgp_gym.rkhs import interpolants
from wgp_gym.schedules import knot_per_step
from wgp_gym.types import Array, Mask
from wgp_gym.validation import (
    check_choice,
    check_float,
    check_int,
    check_size,
    check_unused,
    reject,
)

__all__ = ["PricingTask", "demand_at"]

OWNER = "PricingTask"
DEMANDS = ("linear", "logit", "exponential")
ORDERS = ("gaussian", "poisson", "lognormal")
USUAL = {"num_prices": 50, "horizon": 500}
MAX_PRICES = 2_000  # whose kernel matrix is factorised, as of tables
USUAL_NOISE, USUAL_SPREAD = 20.0, 0.5
MAX_PRICE, NARROWEST = 1e6, 1.01  # the highest price, and the least of high / low
MAX_MARKET, MAX_ORDERS = 1e6, 1e6
ATTRACTION = 2.0  # of the logit demand: half of the market then buys at the best price
ROUNDING = 1e-9  # of the largest revenue, by which one may be below 0


class PricingTask(Task):
    """f_t(p) = p d_t(p): the revenue that a price is expected to bring at step t.

    The demand d_t is of one of the families of [dB15] and [BZ15], with a market size m_t and a
    price w_t, the one that is best of all positive prices:

    - "linear": max(a - b p, 0), a = m_t, b = m_t / (2 w_t), as in [KZ17];
    - "logit": m_t / (1 + exp(b p - a)), a = 2, b = 2 / w_t;
    - "exponential": a exp(-b p), a = m_t, b = 1 / w_t.

    An episode draws m_1 and w_1, and how both move. The logarithm of either is that of its start
    plus a season, amplitude (sin(2 pi t / period + phase) - sin(phase)), a straight trend, and the
    last shock. [KZ17] has demands that change smoothly or in bursts within a budget; that these
    are seasons, trends and shocks, and all ranges of what is drawn, are ours.

    The kernel is SE on the prices, scaled to [0, 1], with a nugget as `TableTask` has it: f_t is
    the function of least norm through the revenues, and norms and B_T are exact for it.

    Args:
        demand: "linear", "logit" or "exponential".
        num_prices: The number of prices n in [2, 2000], evenly spaced.
        low: The lowest price, in [0, 1e6], in a unit of money.
        high: The highest, in (0, 1e6], at least 1.01 times the lowest.
        market_size: m_1 is drawn uniformly between half of it and 1.5 times it, in [1e-6, 1e6].
            w_1 is drawn uniformly from the middle half of the prices.
        period: The length of a season in steps, in [2, 1e6].
        amplitude: Of the season, in [0, 1]; m and w have phases of their own, uniform.
        trend: The most by which a logarithm goes up or down along its trend until T, in [0, 1];
            drawn uniformly for m and for w.
        shock_rate: The probability of a shock at each step from the second on, in [0, 1].
        shock_size: The standard deviation of a shock in the logarithms of m and w, in [0, 1]. It
            takes the place of the last one.
        horizon: The number of steps T.
        orders: "gaussian": the revenue has Gaussian noise; "poisson": a Poisson number of units is
            sold, with the demand as its mean, and each brings the price; "lognormal": the
            demand is multiplied by a lognormal factor of mean 1. Of the last two there is no
            sub-Gaussian scale: the problem has no R.
        noise_std: Only with "gaussian": the standard deviation, in [0, 1e30], in money. Default:
            20.
        spread: Only with "lognormal": the standard deviation of the factor's logarithm, in
            [0, 2]. Default: 0.5.
        lengthscale: The kernel's length on the scaled prices, in [1e-9, 1e9].
        nugget: nu in [0, 1e6]. Default: as `TableTask` has it.
        norm_bound: The largest RKHS norm B to give each episode, 0 or in [1e-100, 1e30]; None:
            as drawn.
        variation_budget: The variation B_T to give each episode, likewise; None: as drawn.
        **noise: Only with "gaussian": `noise`, another law, and its parameters: see `make_noise`.

    In an environment's arguments `noise_std` may be a law, drawn anew for each episode: see
    `RandomTask`.

    Raises:
        ValueError: If a parameter is out of its range, an episode is too large to hold, or a
            budget cannot be met; when an episode is drawn, if a budget carries a revenue below 0,
            or more than 1e6 Poisson orders are expected.
    """

    drawable: ClassVar[Mapping[str, Drawable]] = {"noise_std": "range"}

    def __init__(
        self,
        *,
        demand: Literal["linear", "logit", "exponential"] = "linear",
        num_prices: int = 50,
        low: float = 1.0,
        high: float = 10.0,
        market_size: float = 100.0,
        period: float = 100.0,
        amplitude: float = 0.2,
        trend: float = 0.3,
        shock_rate: float = 0.01,
        shock_size: float = 0.3,
        horizon: int = 500,
        orders: Literal["gaussian", "poisson", "lognormal"] = "gaussian",
        noise_std: float | None = None,
        spread: float | None = None,
        lengthscale: float = 0.2,
        nugget: float | None = None,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
        **noise: Unpack[NoiseParameters],
    ) -> None:
        self.demand = check_choice("demand", demand, OWNER, DEMANDS)
        count = check_int("num_prices", num_prices, OWNER, 2, MAX_PRICES)
        horizon = check_int("horizon", horizon, OWNER, 1)
        check_size(OWNER, {"num_prices": count, "horizon": horizon}, USUAL)
        self.prices = price_list(low, high, count)
        self._market_size = check_float("market_size", market_size, OWNER, 1e-6, MAX_MARKET)
        self._period = check_float("period", period, OWNER, 2, 1e6)
        self._amplitude = check_float("amplitude", amplitude, OWNER, 0, 1)
        self._trend = check_float("trend", trend, OWNER, 0, 1)
        self._shock_rate = check_float("shock_rate", shock_rate, OWNER, 0, 1)
        self._shock_size = check_float("shock_size", shock_size, OWNER, 0, 1)
        self._orders = check_choice("orders", orders, OWNER, ORDERS)
        domain = np.linspace(0.0, 1.0, count)[:, None]
        matrix = SquaredExponential(lengthscale)(domain, domain)
        kernel = Empirical(with_nugget(matrix, nugget, OWNER))
        self._matrix = kernel.matrix
        super().__init__(
            kernel=kernel,
            domain=domain,
            schedule=knot_per_step(horizon),
            noise=make_orders(orders, noise_std, spread, self.prices, noise),
            norm_bound=norm_bound,
            variation_budget=variation_budget,
        )

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the market of one episode.

        Raises:
            ValueError: If a budget cannot be met, or carries a revenue below 0; or more Poisson
                orders are expected than can be drawn.
        """
        size, best = self._market(rng)
        demand = demand_at(self.demand, self.prices, size[:, None], best[:, None])
        drawn = self.episode(interpolants(self.prices * demand, self._matrix))
        self._check(drawn.values)
        return drawn

    def _market(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return m_t and w_t of every step, `(T,)` each.

        All that a market may have is drawn, whether it has it or not, so that no parameter moves
        what the others give.
        """
        low, high = self.prices[0], self.prices[-1]
        start = rng.random(2)
        phase, slope = 2 * math.pi * rng.random((1, 2)), 2 * rng.random(2) - 1
        shocked = rng.random(self.horizon) < self._shock_rate
        sizes = self._shock_size * rng.standard_normal((self.horizon, 2))
        t = np.arange(self.horizon)[:, None]
        moved = self._amplitude * (np.sin(2 * math.pi * t / self._period + phase) - np.sin(phase))
        moved += self._trend * slope * t / max(self.horizon - 1, 1)
        moved += last_shocks(shocked, sizes)
        size = self._market_size * (0.5 + start[0])
        best = low + (high - low) * (0.25 + 0.5 * start[1])
        factor = np.exp(moved)
        return size * factor[:, 0], best * factor[:, 1]

    def _check(self, revenues: Array) -> None:
        """Check that these are revenues, of no more orders than can be drawn."""
        if revenues.min() < -ROUNDING * revenues.max():
            bound, budget = self.norm_bound, self.variation_budget
            name, value = ("norm_bound", bound) if budget is None else ("variation_budget", budget)
            reject(name, OWNER, "such that no revenue is below 0", value)
        if self._orders != "poisson":
            return
        positive = self.prices > 0
        most = float((revenues[:, positive] / self.prices[positive]).max())
        if most > MAX_ORDERS:
            rule = f"'gaussian' or 'lognormal' where up to {most:.3g} orders are expected"
            reject("orders", OWNER, rule, self._orders)


def price_list(low: object, high: object, count: int) -> Array:
    """Return evenly spaced prices, `(n,)`; else raise ValueError."""
    lowest = check_float("low", low, OWNER, 0, MAX_PRICE / NARROWEST)
    least = max(NARROWEST * lowest, 1e-6)
    return np.linspace(lowest, check_float("high", high, OWNER, least, MAX_PRICE), count)


def make_orders(
    orders: str,
    noise_std: float | None,
    spread: float | None,
    prices: Array,
    law: NoiseParameters,
) -> Noise:
    """Return what makes a revenue of its expectation; else raise ValueError."""
    if orders != "lognormal":
        check_unused(OWNER, f"for {orders!r} orders", {"spread": spread})
    if orders == "gaussian":
        return make_noise("gaussian", noise_std, OWNER, USUAL_NOISE, **law)
    check_unused(OWNER, f"for {orders!r} orders", {"noise_std": noise_std, **law})
    if orders == "poisson":
        return PoissonOrders(float(prices[0]), float(prices[-1]))
    given = USUAL_SPREAD if spread is None else spread
    return LognormalOrders(check_float("spread", given, OWNER, 0, 2))


def demand_at(demand: str, prices: Array, size: Array, best: Array) -> Array:
    """Return the demand at prices, of any shapes that broadcast. See `PricingTask`.

    Args:
        demand: "linear", "logit" or "exponential".
        prices: p >= 0.
        size: The market's size m > 0.
        best: The best price w > 0.
    """
    share = prices / best
    if demand == "linear":
        return np.asarray(size * np.maximum(1 - share / 2, 0.0))
    if demand == "logit":
        return np.asarray(size / (1 + np.exp(np.minimum(ATTRACTION * share - ATTRACTION, 700.0))))
    return np.asarray(size * np.exp(-share))


def last_shocks(shocked: Mask, sizes: Array) -> Array:
    """Return the last shock up to each step, `(T, 2)`; zeros before the first.

    Args:
        shocked: Whether there is one at each step, `(T,)`; at the first there is none.
        sizes: How large it would be, `(T, 2)`.
    """
    steps = np.arange(len(sizes))
    last = np.maximum.accumulate(np.where(shocked, steps, 0))
    return np.where(last[:, None] > 0, sizes[last], 0.0)
