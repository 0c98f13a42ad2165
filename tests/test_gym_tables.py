"""Tasks on tables: rewards, kernels and norms against numpy on the raw numbers."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_gym.datasets import read_table
from wgp_gym.envs import BanditEnv

Make = Callable[..., BanditEnv]
Array = NDArray[np.float64]

STOCK, TABLE, PARKING = (f"WGPBandit-{name}-v0" for name in ("Stock", "Table", "Parking"))
PAPER_PRICES = os.environ.get("WGP_GYM_PAPER_PRICES")


def truth(env: BanditEnv) -> Array:
    """Return f_1 .. f_T, `(T, n)`."""
    env.reset(seed=0)
    rows = []
    for _ in range(env.problem.known_horizon("a test")):
        rows.append(env.expected_rewards())
        env.step(0)
    return np.array(rows)


def gram(env: BanditEnv) -> Array:
    return env.problem.kernel(env.problem.domain, env.problem.domain)


def random_walks(days: int, stocks: int, seed: int = 0) -> Array:
    steps = np.random.default_rng(seed).normal(0, 0.02, size=(days, stocks))
    return 50 * np.exp(np.cumsum(steps, axis=0))


def write(path: Path, values: Array) -> str:
    header = ",".join(["step", *(f"S{i}" for i in range(values.shape[1]))])
    rows = [",".join([str(t), *map(repr, row)]) for t, row in enumerate(values.tolist())]
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


def check_norms(env: BanditEnv, f: Array) -> None:
    """Compare with sqrt(f^T K^-1 f), by an eigendecomposition."""
    eigenvalues, vectors = np.linalg.eigh(gram(env))
    assert eigenvalues[0] > 1e-9
    whiten = vectors / np.sqrt(eigenvalues)
    env.reset(seed=1)
    spent = np.cumsum(np.linalg.norm(np.diff(f, axis=0, prepend=f[:1]) @ whiten, axis=1))
    sup = np.cumsum(np.abs(np.diff(f, axis=0, prepend=f[:1])).max(axis=1))
    norm = np.linalg.norm(f @ whiten, axis=1).max()
    assert env.problem.norm_bound == pytest.approx(norm, rel=1e-6)
    assert env.problem.variation_budget == pytest.approx(spent[-1], rel=1e-6)
    for t in range(len(f)):
        *_, info = env.step(0)
        assert info["variation"] == pytest.approx(spent[t], rel=1e-6)
        assert info["sup_variation"] == pytest.approx(sup[t], rel=1e-9)
        assert (info["optimal_reward"], info["optimal_action"]) == (f[t].max(), f[t].argmax())


def test_an_embedded_table_is_nobodys_to_change() -> None:
    first = read_table("dow29")
    names, values = [*first.names], first.values.copy()
    first.names.clear()
    first.values[:] = 0.0
    again = read_table("dow29")
    assert again.names == names
    assert np.array_equal(again.values, values)


def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for cell in (5.0, 6.0):
        path.write_text(f"t,a,b\n1,1,2\n2,3,{cell}\n")
        assert read_table(path).values[1, 1] == cell


def test_stock_is_standardised_prices(make_env: Make) -> None:
    env, prices = make_env(STOCK), read_table("dow29").values
    f = truth(env)
    assert f.shape == (823, 29)
    np.testing.assert_allclose(f.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(f.std(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(f, (prices - prices.mean(0)) / prices.std(0), atol=1e-11)
    np.testing.assert_allclose(gram(env), np.corrcoef(prices.T), atol=1e-12)
    assert env.task.arm_names == read_table("dow29").names
    assert env.problem.noise_scale == 0.1
    check_norms(env, f)


def test_stock_prices_and_returns(make_env: Make) -> None:
    prices = read_table("dow29").values
    for reward, rows in [("price", prices), ("return", prices[1:] / prices[:-1] - 1)]:
        env = make_env(STOCK, reward=reward)
        covariance = np.cov(rows.T, bias=True)
        largest = np.diagonal(covariance).max()
        f = truth(env)
        np.testing.assert_allclose(f, rows / np.sqrt(largest), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(gram(env), covariance / largest, atol=1e-12)
        assert np.diagonal(gram(env)).max() == pytest.approx(1, rel=1e-12)
        check_norms(env, f)


def test_a_day_trade_is_a_table_of_its_gains(tmp_path: Path, make_env: Make) -> None:
    """Where a day opens at the last day's close, it is what the stock task's returns are."""
    close = random_walks(60, 5)
    gains = (close[1:] - close[:-1]) / close[:-1]
    table = write(tmp_path / "gains.csv", gains / gains.std(axis=0).max())
    trade = make_env(TABLE, table=table)
    stock = make_env(STOCK, prices=write(tmp_path / "close.csv", close), reward="return")
    np.testing.assert_allclose(truth(trade), truth(stock), rtol=1e-10)
    np.testing.assert_allclose(gram(trade), gram(stock), atol=1e-12)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_the_unit_of_prices_does_not_matter(tmp_path: Path, make_env: Make, unit: float) -> None:
    prices = random_walks(60, 5)
    for reward in ("standardised_price", "price", "return"):
        paths = [write(tmp_path / f"{k}.csv", k * prices) for k in (1.0, unit)]
        one, other = (make_env(STOCK, prices=path, reward=reward) for path in paths)
        np.testing.assert_allclose(truth(one), truth(other), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(gram(one), gram(other), atol=1e-10)
        assert one.problem.norm_bound == pytest.approx(other.problem.norm_bound, rel=1e-6)


@pytest.mark.parametrize("reward", ["standardised_price", "price", "return"])
def test_kernel_days_do_not_look_ahead(tmp_path: Path, make_env: Make, reward: str) -> None:
    past, future = random_walks(40, 4), 9 * random_walks(30, 4, seed=1)
    whole, early = np.concatenate([past, future]), np.concatenate([past, past[::-1]])
    for days in (3, 40):
        one, other = (
            make_env(STOCK, prices=write(tmp_path / f"{i}.csv", v), reward=reward, kernel_days=days)
            for i, v in enumerate((whole, early))
        )
        np.testing.assert_array_equal(gram(one), gram(other))
        f, g = truth(one), truth(other)
        assert (len(f), len(g)) == (70 - days, 80 - days)
        common = 40 - days
        np.testing.assert_array_equal(f[:common], g[:common])
        assert (f[common] != g[common]).all()


def test_kernel_days_by_hand(tmp_path: Path, make_env: Make) -> None:
    prices = random_walks(40, 3)
    env = make_env(STOCK, prices=write(tmp_path / "p.csv", prices), kernel_days=30, horizon=8)
    known = prices[:30]
    expected = (prices[30:38] - known.mean(0)) / known.std(0)
    np.testing.assert_allclose(truth(env), expected, rtol=1e-9)
    np.testing.assert_allclose(gram(env), np.corrcoef(known.T), atol=1e-12)
    returns = prices[1:] / prices[:-1] - 1
    env = make_env(STOCK, prices=write(tmp_path / "p.csv", prices), kernel_days=30, reward="return")
    covariance = np.cov(returns[:29].T, bias=True)  # the returns of days 2 to 30
    largest = np.diagonal(covariance).max()
    np.testing.assert_allclose(truth(env), returns[29:] / np.sqrt(largest), rtol=1e-9)
    np.testing.assert_allclose(gram(env), covariance / largest, atol=1e-12)


def test_parking_pays_the_free_share(make_env: Make) -> None:
    occupied = read_table("parking").values
    table, parking = make_env(TABLE), make_env(PARKING)
    np.testing.assert_allclose(truth(table), occupied, rtol=0, atol=1e-15)
    np.testing.assert_allclose(truth(parking), 1 - occupied, rtol=0, atol=1e-15)
    covariance = np.cov(occupied.T, bias=True)
    for env in (table, parking):
        np.testing.assert_allclose(
            gram(env), covariance / np.diagonal(covariance).max(), atol=1e-12
        )
        check_norms(env, truth(env))


@pytest.mark.parametrize("name", [STOCK, TABLE, PARKING])
def test_horizon(make_env: Make, name: str) -> None:
    whole = truth(make_env(name))
    np.testing.assert_array_equal(truth(make_env(name, horizon=9)), whole[:9])
    too_long = len(whole) + 1
    for horizon in (0, -1, 2.5, too_long):
        with pytest.raises(ValueError, match=rf"'horizon' .* int in \[1, {len(whole)}\]. Got"):
            make_env(name, horizon=horizon)


@pytest.mark.parametrize("kernel", ["se", "matern", "linear"])
def test_table_with_a_kernel_on_places(tmp_path: Path, make_env: Make, kernel: str) -> None:
    values, x = random_walks(20, 6), np.linspace(0, 1, 6)[:, None]
    distance = np.abs(x - x.T) / 0.3
    expected = {
        "se": np.exp(-(distance**2) / 2),
        "matern": (1 + np.sqrt(3) * distance) * np.exp(-np.sqrt(3) * distance),
        "linear": (x * x.T + 0.01 * np.eye(6)) / 1.01,  # of rank 1: the default nugget
    }[kernel]
    path = write(tmp_path / "t.csv", values)
    env = make_env(TABLE, table=path, kernel=kernel, lengthscale=0.3, nu=1.5)
    np.testing.assert_allclose(gram(env), expected, atol=1e-12)
    np.testing.assert_allclose(truth(env), values, rtol=1e-15)
    check_norms(env, values)


def test_nugget(tmp_path: Path, make_env: Make) -> None:
    dependent = random_walks(30, 3)
    dependent = np.column_stack([dependent, dependent.mean(axis=1)])  # a column too many
    covariance = np.cov(dependent.T, bias=True)
    K, path = covariance / np.diagonal(covariance).max(), write(tmp_path / "t.csv", dependent)
    for asked, nugget in [(None, 0.01), (0.5, 0.5), (1e-5, 1e-5)]:
        env = make_env(TABLE, table=path, nugget=asked)
        np.testing.assert_allclose(gram(env), (K + nugget * np.eye(4)) / (1 + nugget), atol=1e-12)
    with pytest.raises(ValueError, match=r"'nugget' .* above 0 for a singular kernel matrix"):
        make_env(TABLE, table=path, nugget=0)
    independent = random_walks(30, 4)
    K = np.cov(independent.T, bias=True)
    K /= np.diagonal(K).max()
    assert np.linalg.eigvalsh(K)[0] > 1e-6
    path = write(tmp_path / "t.csv", independent)
    for asked, nugget in [(None, 0.0), (0, 0.0), (0.2, 0.2)]:
        env = make_env(TABLE, table=path, nugget=asked)
        np.testing.assert_allclose(gram(env), (K + nugget * np.eye(4)) / (1 + nugget), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        (STOCK, {"reward": "value"}, "'reward' .* one of 'standardised_price', 'price', 'return'"),
        (STOCK, {"reward": "returns"}, "did you mean 'return'"),
        (TABLE, {"reward": "price"}, "'reward' .* one of 'value', 'complement'"),
        (TABLE, {"kernel": "rbf"}, "'kernel' .* one of 'empirical', 'se', 'matern', 'linear'"),
        (TABLE, {"kernel": "se", "lengthscale": 0}, r"'lengthscale' .* float in \[1e-09, 1e\+09\]"),
        (TABLE, {"kernel": "matern", "nu": 2}, "'nu' .* 0.5, 1.5 or 2.5. Got 2 instead"),
        (TABLE, {"nugget": -0.1}, r"'nugget' .* float in \[0, 1e\+06\]. Got -0.1 instead"),
        (STOCK, {"noise_std": -1}, r"'noise_std' .* of TableTask must be a float in \[0, 1e\+30\]"),
        (STOCK, {"kernel_days": 2}, r"'kernel_days' .* int in \[3, 823\]. Got 2"),
        (STOCK, {"kernel_days": 824}, r"'kernel_days' .* int in \[3, 823\]. Got 824"),
        (STOCK, {"kernel_days": 823}, "'kernel_days' .* below 823, so that days are left to play"),
        (STOCK, {"kernel_days": 800, "horizon": 24}, r"'horizon' .* int in \[1, 23\]. Got 24"),
    ],
    ids=str,
)
def test_errors(make_env: Make, name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_env(name, **parameters)


def test_constant_over_the_kernel_days(tmp_path: Path, make_env: Make) -> None:
    prices = random_walks(20, 3)
    prices[:10, 1] = 7.0
    path = write(tmp_path / "p.csv", prices)
    for reward in ("standardised_price", "price", "return"):
        with pytest.raises(ValueError, match="Column 'S1' is constant over the days"):
            make_env(STOCK, prices=path, kernel_days=10, reward=reward)
        make_env(STOCK, prices=path, kernel_days=12, reward=reward)


@pytest.mark.skipif(PAPER_PRICES is None, reason="WGP_GYM_PAPER_PRICES is not set")
def test_the_papers_own_prices(make_env: Make) -> None:
    prices = read_table(str(PAPER_PRICES), positive=True).values
    assert prices.shape == (823, 29)
    env = make_env(STOCK, prices=PAPER_PRICES)
    f = truth(env)
    assert (f.shape, env.action_space) == ((823, 29), make_env(STOCK).action_space)
    np.testing.assert_allclose(f, (prices - prices.mean(0)) / prices.std(0), atol=1e-11)
    np.testing.assert_allclose(gram(env), np.corrcoef(prices.T), atol=1e-12)
    check_norms(env, f)


def far_off(offset: float, step: float) -> Array:
    """Return a table of 6 x 3 whose values are large beside what they differ by."""
    return offset + step * np.array(
        [[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0], [2, 0, 1]]
    )


@pytest.mark.parametrize(
    ("offset", "step"), [(1.5e9, 1.0), (-1.5e9, 3e4), (1e3, 0.01), (1.0, 1e-9)]
)
def test_rounding_takes_too_much(
    tmp_path: Path, make_env: Make, offset: float, step: float
) -> None:
    """Rewards are rounded: three cells near 1.5e9 would all pay 1500000000.0."""
    path = write(tmp_path / "t.csv", far_off(offset, step))
    low = re.escape(repr(offset))
    with pytest.raises(ValueError, match=f"TableTask .* row 1, from {low} .*Subtract a constant"):
        make_env(TABLE, table=path, noise_std=0.0)
    near = write(tmp_path / "near.csv", far_off(0, step))
    np.testing.assert_allclose(truth(make_env(TABLE, table=near)), far_off(0, step))


@pytest.mark.parametrize(("offset", "step"), [(1.5e9, 4e4), (1e3, 0.1), (0.0, 1e-29), (1.0, 1e-4)])
def test_rounding_takes_at_most_a_thousandth(
    tmp_path: Path, make_env: Make, offset: float, step: float
) -> None:
    path, f = write(tmp_path / "t.csv", far_off(offset, step)), far_off(offset, step)
    env = make_env(TABLE, table=path, noise_std=0.0)
    for arm in range(3):
        env.reset(seed=0)
        for row in f:
            assert abs(env.step(arm)[1] - row[arm]) <= 1e-3 * 2 * step


def test_rounding_of_one_row(tmp_path: Path, make_env: Make) -> None:
    """Rows of equal arms lose nothing, and those that nearly meet nothing of weight."""
    for row, fine in [
        ([1.5e9] * 3, True),
        ([7.0] * 3, True),
        ([0.5, 0.50001, 0.5], True),
        ([1.5e9, 1.5e9 + 1, 1.5e9 + 2], False),
    ]:
        values = far_off(0, 1.0)
        values[3] = row
        path = write(tmp_path / "t.csv", values)
        if fine:
            make_env(TABLE, table=path)
            continue
        with pytest.raises(ValueError, match=r"row 4, from .* rounded by up to 64"):
            make_env(TABLE, table=path)
        make_env(TABLE, table=path, horizon=3)  # the row is not played


def test_rounding_of_arms_that_a_distant_one_hides(tmp_path: Path, make_env: Make) -> None:
    rows = [f"{i},{1.5e9 + i},{1.5e9 - i},0.{i}1" for i in range(20)]
    path = tmp_path / "distant.csv"
    path.write_text("\n".join(["t,a,b,c", *rows]))
    match = r"vary by more than rounding .* arm 1, from 1500000000\.0 to 1500000019\.0, .* up to 64"
    with pytest.raises(ValueError, match=match):
        make_env("WGPBandit-Table-v0", table=str(path))


def test_rounding_of_what_is_rescaled(make_env: Make) -> None:
    """All stocks begin at 100; a tiny budget leaves them there but for rounding."""
    make_env(TABLE, table="dow29", variation_budget=0)
    with pytest.raises(ValueError, match=r"row 2, .* ask for a larger variation_budget"):
        make_env(TABLE, table="dow29", variation_budget=1e-6)


def test_a_complement_that_rounding_takes(tmp_path: Path, make_env: Make) -> None:
    path = write(tmp_path / "t.csv", far_off(0, 1e-20))
    make_env(TABLE, table=path)
    with pytest.raises(ValueError, match="Column 'S0' is constant over all rows, but for rounding"):
        make_env(TABLE, table=path, reward="complement")
