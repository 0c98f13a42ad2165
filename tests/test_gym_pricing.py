"""Pricing: demands whose best price is known, markets as they were drawn, and orders by chance."""

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

import wgp_agents
from wgp_gym.envs import BanditEnv, BanditVectorEnv
from wgp_gym.envs.orders import LognormalOrders, PoissonOrders, poisson_quantile
from wgp_gym.envs.pricing import PricingTask, demand_at

Make = Callable[..., BanditEnv]
Array = NDArray[np.float64]

PRICING = "WGPBandit-Pricing-v0"
DEMANDS = ["linear", "logit", "exponential"]
STILL: dict[str, Any] = {"amplitude": 0.0, "trend": 0.0, "shock_rate": 0.0}
P_VALUE = 1e-3  # of each test of a distribution below; the seeds are fixed


def truth(env: BanditEnv, seed: int) -> Array:
    """Reset, and return f_1 .. f_T, `(T, n)`."""
    env.reset(seed=seed)
    rows = []
    for _ in range(env.problem.known_horizon("a test")):
        rows.append(env.expected_rewards())
        env.step(0)
    return np.array(rows)


def prices_of(env: BanditEnv) -> Array:
    assert isinstance(env.task, PricingTask)
    return env.task.prices


def test_demands_by_hand() -> None:
    at: Any = np.array([0.0, 2.0, 4.0, 6.0])
    found = [demand_at(name, at, np.array(60.0), np.array(2.0)) for name in DEMANDS]
    linear = [60.0, 60 - 15 * 2, 0, 0]  # a = 60, b = 60 / 4
    logit = [60 / (1 + math.exp(b - 2)) for b in (0, 2, 4, 6)]  # a = 2, b = 1
    exponential = [60 * math.exp(-p / 2) for p in (0, 2, 4, 6)]
    expected = np.array([linear, logit, exponential])
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-12)
    assert demand_at("logit", np.array(1e6), np.array(1.0), np.array(1e-9)) == pytest.approx(0)


@pytest.mark.parametrize("demand", DEMANDS)
@pytest.mark.parametrize(("size", "best"), [(3.0, 0.4), (1000.0, 7.5)])
def test_the_best_price_is_best(demand: str, size: float, best: float) -> None:
    def loss(price: float) -> float:
        one = [np.array(value) for value in (price, size, best)]
        return -price * float(demand_at(demand, *one))

    edge = 2 * best  # where a linear demand ends
    found = optimize.minimize_scalar(loss, bounds=(0, edge), method="bounded")
    assert found.x == pytest.approx(best, rel=1e-5)
    assert min(map(loss, np.linspace(0, 20 * best, 2001))) >= loss(best) * (1 + 1e-12)


def fitted(demand: str, prices: Array, revenues: Array) -> tuple[float, float]:
    """Return m and w, read off two prices of a revenue curve, in each family's own algebra."""
    (p, q), (d, e) = prices[:2].tolist(), (revenues[:2] / prices[:2]).tolist()
    if demand == "linear":
        slope = (d - e) / (q - p)
        intercept = d + slope * p
        return intercept, intercept / (2 * slope)
    if demand == "exponential":
        rate = math.log(d / e) / (q - p)
        return d * math.exp(rate * p), 1 / rate
    curve: Any = optimize.fsolve(
        lambda x: [x[0] / (1 + math.exp(2 * at / x[1] - 2)) - y for at, y in ((p, d), (q, e))],
        [d, prices.mean()],
    )
    return float(curve[0]), float(curve[1])


@pytest.mark.parametrize("demand", DEMANDS)
def test_revenues_are_of_one_market(make_env: Make, demand: str) -> None:
    env = make_env(PRICING, demand=demand, horizon=40, shock_rate=0.1)
    prices = prices_of(env)
    np.testing.assert_allclose(prices, 1 + 9 * env.problem.domain[:, 0])
    for revenues in truth(env, 3)[::7]:
        size, best = fitted(demand, prices, revenues)
        again = prices * demand_at(demand, prices, np.array(size), np.array(best))
        np.testing.assert_allclose(revenues, again, rtol=1e-6, atol=1e-9)


def markets(env: BanditEnv, seed: int) -> Array:
    """Return m_t and w_t of an episode with exponential demand, `(T, 2)`, from its revenues."""
    prices = prices_of(env)
    return np.array([fitted("exponential", prices, row) for row in truth(env, seed)])


def test_starts(make_env: Make) -> None:
    env = make_env(PRICING, demand="exponential", horizon=1, market_size=10.0, low=2.0, high=6.0)
    drawn = np.array([markets(env, seed)[0] for seed in range(300)])
    assert stats.kstest(drawn[:, 0], stats.uniform(5, 10).cdf).pvalue > P_VALUE
    assert stats.kstest(drawn[:, 1], stats.uniform(3, 2).cdf).pvalue > P_VALUE
    assert abs(stats.spearmanr(drawn)[0]) < 0.2  # 3.4 standard errors


def test_seasons(make_env: Make) -> None:
    season = STILL | {"amplitude": 0.3, "period": 20.0}
    path = np.log(markets(make_env(PRICING, demand="exponential", horizon=60, **season), 4))
    np.testing.assert_allclose(path[20:], path[:40], atol=1e-9)
    angle = 2 * math.pi * np.arange(60) / 20
    waves = np.stack([np.ones(60), np.sin(angle), np.cos(angle)], axis=1)
    weights, rest, *_ = np.linalg.lstsq(waves, path, rcond=None)
    np.testing.assert_allclose(rest, 0, atol=1e-15)
    np.testing.assert_allclose(np.hypot(*weights[1:]), 0.3)
    assert abs(weights[1, 0] - weights[1, 1]) > 0.01  # with phases of their own


def test_trends(make_env: Make) -> None:
    env = make_env(PRICING, demand="exponential", horizon=11, **(STILL | {"trend": 0.5}))
    paths = np.log([markets(env, seed) for seed in range(200)])
    np.testing.assert_allclose(np.diff(paths, n=2, axis=1), 0, atol=1e-9)
    ends = (paths[:, -1] - paths[:, 0]).ravel()
    assert stats.kstest(ends, stats.uniform(-0.5, 1).cdf).pvalue > P_VALUE


def test_shocks(make_env: Make) -> None:
    rate, size, horizon = 0.1, 0.4, 300
    shocks = STILL | {"shock_rate": rate, "shock_size": size}
    env = make_env(PRICING, demand="exponential", horizon=horizon, **shocks)
    paths = np.log([markets(env, seed) for seed in range(20)])
    paths -= paths[:, :1]
    jumps = np.abs(np.diff(paths, axis=1)).max(axis=2) > 1e-9
    count = jumps.sum()
    assert stats.binomtest(int(count), jumps.size, rate).pvalue > P_VALUE
    levels = paths[:, 1:][jumps] / size  # each takes the place of the last
    assert stats.kstest(levels.ravel(), stats.norm.cdf).pvalue > P_VALUE
    assert abs(stats.spearmanr(levels)[0]) < 3.3 / math.sqrt(count)


def test_no_parameter_moves_what_others_give(make_env: Make) -> None:
    kwargs = {"demand": "exponential", "horizon": 30}
    whole, still = (np.log(markets(make_env(PRICING, **one, **kwargs), 5)) for one in ({}, STILL))
    parts = [
        np.log(markets(make_env(PRICING, **(STILL | {name: value}), **kwargs), 5)) - still
        for name, value in (("amplitude", 0.2), ("trend", 0.3), ("shock_rate", 0.01))
    ]
    np.testing.assert_allclose(whole - still, sum(parts), atol=1e-9)
    np.testing.assert_array_equal(still[1:], still[:-1])


def test_norms_and_variation(make_env: Make) -> None:
    """In another algebra: by the eigenvectors of (K + nu I) / (1 + nu)."""
    env = make_env(PRICING, num_prices=20, horizon=30, lengthscale=0.3, nugget=0.05)
    f, x = truth(env, 2), np.linspace(0, 1, 20)
    K = np.exp(-((x[:, None] - x) ** 2) / (2 * 0.3**2))
    value, vector = np.linalg.eigh((K + 0.05 * np.eye(20)) / 1.05)

    def norms(rows: Array) -> Array:
        found: Array = np.sqrt(np.sum((rows @ vector) ** 2 / value, axis=1))
        return found

    assert env.problem.norm_bound == pytest.approx(norms(f).max(), rel=1e-9)
    assert env.problem.variation_budget == pytest.approx(norms(np.diff(f, axis=0)).sum(), rel=1e-9)


def test_poisson_quantiles() -> None:
    """Against the sum of e^{-m} m^k / k!."""
    u = np.random.default_rng(0).random(200)
    for mean in (1e-9, 0.2, 3.0, 40.0):
        total, term, k = 0.0, math.exp(-mean), 0
        expected = np.full(200, -1.0)
        while total < 1 - 1e-12:
            total += term
            expected[(expected < 0) & (u <= total)] = k
            k += 1
            term *= mean / k
        np.testing.assert_array_equal(poisson_quantile(u, np.full(200, mean)), expected)
    edge = poisson_quantile(np.array([0.0, 0.0, 1 - 2**-53]), np.array([0.0, 7.0, 0.0]))
    np.testing.assert_array_equal(edge, 0)


@pytest.mark.parametrize("mean", [0.5, 8.0, 1e4, 1e6])
def test_poisson_orders(mean: float) -> None:
    noise, price, count = PoissonOrders(2.0, 4.0), 3.5, 4000
    uniform = noise.draw(np.random.default_rng(1), count)
    drawn = noise.at_places(uniform, np.full((count, 1), 0.75))
    orders = noise.rewards(np.full(count, price * mean), drawn) / price
    np.testing.assert_allclose(orders, np.rint(orders), atol=1e-6)
    error = math.sqrt(mean / count)
    assert abs(orders.mean() - mean) < 4 * error
    assert orders.var() == pytest.approx(mean, rel=0.15)
    more = noise.rewards(np.full(count, 1.3 * price * mean), drawn) / price
    assert (np.rint(more) >= np.rint(orders)).all()


def test_lognormal_orders() -> None:
    spread, count = 0.8, 20_000
    noise = LognormalOrders(spread)
    paid = noise.rewards(np.full(count, 5.0), noise.draw(np.random.default_rng(2), count))
    logs = np.log(paid / 5)
    assert stats.kstest(logs, stats.norm(-(spread**2) / 2, spread).cdf).pvalue > P_VALUE
    assert abs(paid.mean() - 5) < 4 * 5 * math.sqrt(math.expm1(spread**2) / count)


@pytest.mark.parametrize("orders", ["poisson", "lognormal"])
def test_orders_of_an_environment(make_env: Make, orders: str) -> None:
    env = make_env(PRICING, orders=orders, horizon=400, **STILL)
    assert env.problem.noise_scale is None
    table = []
    for arm in (10, 25, 40):
        env.reset(seed=6)
        mean = env.expected_rewards()[arm]
        table.append(np.array([env.step(arm)[1] for _ in range(400)]) / mean)
        assert env.problem.noise_scale is None
        assert abs(table[-1].mean() - 1) < 0.1
        units = table[-1] * mean / prices_of(env)[arm]
        whole = np.abs(units - np.rint(units)).max() < 1e-4
        assert whole == (orders == "poisson")
    if orders == "lognormal":  # one factor for whichever price is asked
        np.testing.assert_allclose(table[0], table[1], rtol=1e-6)
    else:
        assert min(np.corrcoef(table)[0, 1:]) > 0.8


@pytest.mark.parametrize("orders", ["poisson", "lognormal"])
def test_batches_are_single_environments(orders: str) -> None:
    kwargs: dict[str, Any] = {"orders": orders, "horizon": 20, "demand": "logit"}
    vector = gymnasium.make_vec(
        PRICING, 3, vectorization_mode="vector_entry_point", **kwargs
    ).unwrapped
    assert isinstance(vector, BanditVectorEnv)
    singles = [gymnasium.make(PRICING, **kwargs) for _ in range(3)]
    vector.reset(seed=5)
    for i, env in enumerate(singles):
        env.reset(seed=5 + i)
    assert vector.problem.noise_scale is None
    assert vector.problem.batch_size == 3
    vector.action_space.seed(0)
    for _ in range(20):
        actions = vector.action_space.sample()
        _, paid, *_, info = vector.step(actions)
        for i, env in enumerate(singles):
            _, reward, *_, one = env.step(actions[i])
            assert (paid[i], info["regret"][i]) == (reward, one["regret"])


def test_who_needs_a_scale_says_so(make_env: Make) -> None:
    env = make_env(PRICING, orders="poisson")
    with pytest.raises(ValueError, match=r"the scale R of the noise, which .* does not learn"):
        wgp_agents.make("wgp-ucb", env)
    wgp_agents.make("wgp-ucb", env, noise_scale=30.0)
    wgp_agents.make("adaptive-wgp-ucb", env)


def test_budgets(make_env: Make) -> None:
    env = make_env(PRICING, orders="poisson", norm_bound=100.0, variation_budget=50.0, horizon=50)
    assert truth(env, 1).min() >= -1e-6
    assert env.problem.norm_bound == pytest.approx(100)
    assert env.problem.variation_budget == pytest.approx(50)
    wild = make_env(PRICING, variation_budget=1e5, horizon=50)
    with pytest.raises(ValueError, match=r"'variation_budget' .* PricingTask .* revenue is below"):
        wild.reset(seed=1)
    crowd = make_env(PRICING, orders="poisson", norm_bound=1e9, horizon=50)
    with pytest.raises(ValueError, match=r"'orders' parameter of PricingTask must be 'gaussian'"):
        crowd.reset(seed=1)
    free = make_env(PRICING, orders="poisson", low=0.0, horizon=5)
    free.reset(seed=0)
    assert free.step(0)[1] == 0.0  # at no price


REFUSED: list[tuple[str, Any, str]] = [
    ("demand", "lineal", "'linear', 'logit', 'exponential' .did you mean 'linear'"),
    ("orders", "poison", "did you mean 'poisson'"),
    ("num_prices", 1, r"an int in \[2, 2000\]"),
    ("low", -1.0, r"a float in \[0, "),
    ("high", 1.0, r"a float in \[1.01, 1e\+06\]"),
    ("market_size", 0.0, r"a float in \[1e-06, 1e\+06\]"),
    ("period", 1.0, r"a float in \[2, 1e\+06\]"),
    ("amplitude", 1.5, r"a float in \[0, 1\]"),
    ("trend", -0.1, r"a float in \[0, 1\]"),
    ("shock_rate", 1.1, r"a float in \[0, 1\]"),
    ("shock_size", float("nan"), r"a float in \[0, 1\]"),
    ("spread", 0.5, "None for 'gaussian' orders"),
    ("nugget", 0.0, "above 0 for a singular kernel matrix"),
    ("horizon", 10**8, "at most 50,000,000"),
]


@pytest.mark.parametrize(("name", "value", "rule"), REFUSED, ids=lambda one: str(one)[:12])
def test_refused(make_env: Make, name: str, value: Any, rule: str) -> None:
    with pytest.raises(ValueError, match=rf"'{name}' parameter of PricingTask must be .*{rule}"):
        make_env(PRICING, **{name: value})


def test_numbers_without_effect_are_refused(make_env: Make) -> None:
    for orders in ("poisson", "lognormal"):
        with pytest.raises(ValueError, match=f"'noise_std' .* None for '{orders}' orders"):
            make_env(PRICING, orders=orders, noise_std=1.0)
    with pytest.raises(ValueError, match=r"'spread' .* a float in \[0, 2\]"):
        make_env(PRICING, orders="lognormal", spread=3.0)
