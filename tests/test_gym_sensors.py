"""Sensors: drawn readings as distributions, and tables of one's own worked by hand."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from wgp_gym.datasets.places import read_places
from wgp_gym.envs import BanditEnv
from wgp_gym.envs.sensor_field import SensorField
from wgp_gym.kernels import Empirical, Matern

Make = Callable[..., BanditEnv]
Array = NDArray[np.float64]

SENSORS = "WGPBandit-Sensors-v0"
BARE: dict[str, Any] = {"amplitude": 0.0, "offset_std": 0.0}  # the drifting field alone
P_VALUE = 1e-3  # of each test of a distribution below; the seeds are fixed


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_field_in_space() -> None:
    """Rows that are nearly independent: their correlations are the kernel's."""
    places, steps = rng(1).random((6, 2)), 6000
    field = SensorField(places, field_lengthscale=0.4, correlation_time=0.1, **BARE)
    drawn = field.readings(rng(2), steps)
    squares = ((places[:, None] - places) ** 2).sum(axis=2)
    found = drawn.T @ drawn / steps
    np.testing.assert_allclose(
        found, np.exp(-squares / (2 * 0.4**2)), atol=4.5 * math.sqrt(2 / steps)
    )
    for column in drawn.T:
        assert stats.kstest(column, stats.norm.cdf).pvalue > P_VALUE


@pytest.mark.slow
def test_the_field_in_time() -> None:
    time, steps = 12.0, 40_000
    drawn = SensorField(num_sensors=2, correlation_time=time, **BARE).readings(rng(3), steps)
    for lag in (1, 6, 24):
        found = np.mean(drawn[lag:] * drawn[:-lag])
        # About steps / (2 time) of the products are independent.
        assert found == pytest.approx(math.exp(-lag / time), abs=4 * math.sqrt(2 * time / steps))
    starts = [SensorField(**BARE).readings(rng(seed), 1)[0, 0] for seed in range(300)]
    assert stats.kstest(starts, stats.norm.cdf).pvalue > P_VALUE


def test_cycles() -> None:
    """What an amplitude adds to the same draws: one wave, as large as each sensor's exposure."""
    kwargs: dict[str, Any] = {"num_sensors": 40, "period": 24.0}
    whole, flat = (SensorField(amplitude=a, **kwargs).readings(rng(4), 72) for a in (2.0, 0.0))
    cycle = whole - flat
    np.testing.assert_allclose(cycle[24:], cycle[:48], atol=1e-12)
    u, s, vt = np.linalg.svd(cycle)
    assert s[1] < 1e-12 * s[0]
    exposure = np.abs(vt[0])
    angle = 2 * math.pi * np.arange(72) / 24
    waves = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    rest = u[:, 0] - waves @ np.linalg.lstsq(waves, u[:, 0], rcond=None)[0]
    np.testing.assert_allclose(rest, 0, atol=1e-12)
    assert (cycle * cycle[:, :1] >= -1e-12).all()  # all go up together
    even = SensorField(exposure_spread=0.0, amplitude=2.0, **kwargs).readings(rng(4), 72)
    wave = (even - flat)[:, 0]
    np.testing.assert_allclose(even - flat, np.tile(wave[:, None], 40), atol=1e-12)
    np.testing.assert_allclose(np.hypot(*np.linalg.lstsq(waves, wave, rcond=None)[0]), 2.0)
    assert np.std(np.log(exposure)) > 0.2


def exposures(seed: int) -> Array:
    one, none = (
        SensorField(num_sensors=2, amplitude=a, sensors_seed=seed).readings(rng(5), 9)[4]
        for a in (1.0, 0.0)
    )
    wave = SensorField(num_sensors=2, exposure_spread=0.0, sensors_seed=seed).readings(rng(5), 9)[4]
    found: Array = (one - none) / (wave - none)
    return found


def test_exposures_and_offsets() -> None:
    logs = np.log([exposures(seed)[0] for seed in range(300)]) / 0.5
    assert stats.kstest(logs, stats.norm.cdf).pvalue > P_VALUE
    offsets = [
        SensorField(num_sensors=500, offset_std=std).readings(rng(6), 4) for std in (3.0, 0.0)
    ]
    added = offsets[0] - offsets[1]
    np.testing.assert_allclose(added, np.tile(added[0], (4, 1)), atol=1e-12)
    assert stats.kstest(added[0], stats.norm(scale=3).cdf).pvalue > P_VALUE
    places = SensorField(num_sensors=500).places
    for axis in places.T:
        assert stats.kstest(axis, stats.uniform.cdf).pvalue > P_VALUE


def truth(env: BanditEnv, seed: int) -> Array:
    """Reset, and return f_1 .. f_T, `(T, n)`."""
    env.reset(seed=seed)
    rows = []
    for _ in range(env.problem.known_horizon("a test")):
        rows.append(env.expected_rewards())
        env.step(0)
    return np.array(rows)


def test_drawn_episodes_are_of_the_same_sensors(make_env: Make) -> None:
    env = make_env(SENSORS, horizon=1, offset_std=1.0, num_sensors=10)
    means = np.mean([truth(env, seed)[0] for seed in range(400)], axis=0)
    field, bare = (SensorField(num_sensors=10, offset_std=std) for std in (1.0, 0.0))
    offsets = field.readings(rng(0), 1)[0] - bare.readings(rng(0), 1)[0]
    again = SensorField(num_sensors=10, offset_std=1.0)
    sample = again.readings(again.rng, 720)
    unit = sample.std(axis=0).max()
    np.testing.assert_allclose(means, (offsets - sample.mean()) / unit, atol=0.3)
    covariance = np.cov(sample.T, bias=True) / unit**2
    kernel = env.problem.kernel
    assert isinstance(kernel, Empirical)
    nu = 0.01 if np.linalg.eigvalsh(covariance)[0] < 1e-6 else 0.0
    np.testing.assert_allclose(kernel.matrix, (covariance + nu * np.eye(10)) / (1 + nu), atol=1e-12)


NAMES = ["door", "window", "stove"]
DOOR, WINDOW = [20, 21, 20, 22, 21, 20, 23], [15, 14, 16, 15, 19, 18, 22]
READINGS = np.array([DOOR, WINDOW, [30, 33, 36, 32, 31, 35, 30]]).T


def written(folder: Path, name: str, lines: list[str]) -> str:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def table(tmp_path: Path) -> str:
    rows = [",".join(map(str, [t, *row])) for t, row in enumerate(READINGS.tolist())]
    return written(tmp_path, "t.csv", ["time," + ",".join(NAMES), *rows])


@pytest.fixture
def places(tmp_path: Path) -> str:
    rows = ["name,x,y", "stove,6,9", "door,2,1", "cellar,0,0", "window,4,5"]
    return written(tmp_path, "p.csv", rows)


def test_a_table_by_hand(make_env: Make, table: str) -> None:
    env = make_env(SENSORS, table=table, training_steps=4, noise_std=0.0)
    assert (env.problem.horizon, env.task.arm_names) == (3, NAMES)
    sample = READINGS[:4].astype(float)
    unit = sample.std(axis=0).max()
    expected = (READINGS[4:] - sample.mean()) / unit
    found = truth(env, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(truth(env, 1), found)
    K = np.cov(sample.T, bias=True) / unit**2
    K = K if np.linalg.eigvalsh(K)[0] > 1e-6 else (K + 0.01 * np.eye(3)) / 1.01
    norms = np.sqrt(np.sum(expected * np.linalg.solve(K, expected.T).T, axis=1))
    assert env.problem.norm_bound == pytest.approx(norms.max())
    assert make_env(SENSORS, table=table).problem.horizon == 4  # after half of seven rows
    assert make_env(SENSORS, table=table, horizon=2).problem.horizon == 2


def test_places_of_a_table(make_env: Make, table: str, places: str) -> None:
    """Of the cellar there are no readings; the longer side of the others, 8, is 1."""
    env = make_env(SENSORS, table=table, places=places, kernel="se", lengthscale=0.5, nugget=0.2)
    expected = np.array([[0, 0], [2, 4], [4, 8]]) / 8
    np.testing.assert_allclose(env.problem.domain, expected)
    squares = ((expected[:, None] - expected) ** 2).sum(axis=2)
    K = (np.exp(-squares / (2 * 0.5**2)) + 0.2 * np.eye(3)) / 1.2
    found = env.problem.kernel(env.problem.domain, env.problem.domain)
    np.testing.assert_allclose(found, K, rtol=1e-12)
    f = truth(env, 0)
    value, vector = np.linalg.eigh(K)
    norms = np.sqrt(np.sum((f @ vector) ** 2 / value, axis=1))
    moves = np.sqrt(np.sum((np.diff(f, axis=0) @ vector) ** 2 / value, axis=1))
    assert env.problem.norm_bound == pytest.approx(norms.max())
    assert env.problem.variation_budget == pytest.approx(moves.sum())


def test_places_without_a_table(make_env: Make, places: str) -> None:
    env = make_env(SENSORS, places=places, kernel="matern", nu=0.5, horizon=3)
    assert isinstance(env.problem.kernel, Matern)  # no nugget
    np.testing.assert_allclose(env.problem.domain * 9, [[6, 9], [2, 1], [0, 0], [4, 5]])
    env.reset(seed=0)
    observation = env.step(1)[0]
    np.testing.assert_allclose(observation[2:4] * 9, [2, 1], rtol=1e-6)
    with pytest.raises(ValueError, match=r"'num_sensors' .* None or 4, the number of places"):
        make_env(SENSORS, places=places, num_sensors=5)


FAULTY: list[tuple[list[str], str]] = [
    (["a,1,2", "b,1"], r"row 2 must be a name and two numbers of at most 1e\+09"),
    (["a,1,2", "b,1,x"], "row 2 must be a name and two numbers"),
    (["a,1,2", "b,1,1e10"], "row 2 must be a name and two numbers"),
    (["a,1,2", "b,nan,1"], "row 2 must be a name and two numbers"),
    (["a,1,2", "a,3,4"], "row 2 names 'a' once more"),
    (["a,1,2", "b,1,2"], "must have sensors at different places"),
    (["a,1,2"], "must have 2 to 2,000 rows. Got 1"),
    (["name,x,y"], "must have 2 to 2,000 rows. Got 0"),
    ([f"s{i},{i},0" for i in range(2001)], "must have 2 to 2,000 rows. Got 2001"),
]


@pytest.mark.parametrize(("lines", "message"), FAULTY, ids=lambda one: str(one)[:20])
def test_faulty_places(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_places(written(tmp_path, "p.csv", lines))


def test_places_that_are_missing(tmp_path: Path, table: str) -> None:
    path = written(tmp_path, "p.csv", ["door;1;2", "window;3;4", "", "stove;0;5"])
    names, points = read_places(path)
    assert names == ["door", "window", "stove"]
    np.testing.assert_allclose(points, np.array([[1, 0], [3, 2], [0, 3]]) / 3)
    with pytest.raises(ValueError, match="must have a row for the sensor 'oven'"):
        read_places(path, ["door", "oven"])
    with pytest.raises(FileNotFoundError, match="no file 'nowhere'"):
        read_places("nowhere")


def test_refused(make_env: Make, table: str) -> None:
    bad: list[tuple[str, dict[str, Any]]] = [
        (r"'kernel' .* one of 'empirical', 'se', 'matern'", {"kernel": "linear"}),
        (r"'places' .* a CSV file of name, x and y", {"table": table, "kernel": "se"}),
        (r"'period' .* None with a table", {"table": table, "period": 24.0}),
        (r"'training_steps' .* an int in \[3, 6\]|an int of at least 3", {"training_steps": 2}),
        (r"'horizon' .* an int in \[1, 4\]", {"table": table, "horizon": 5}),
        (r"'num_sensors' .* an int in \[2, 2000\]", {"num_sensors": 1}),
        (r"'field_lengthscale' .* a float in \[0.01, 1000\]", {"field_lengthscale": 0.0}),
        (r"'correlation_time' .* a float in \[0.1, 1e\+09\]", {"correlation_time": 0.0}),
        (r"'period' .* a float in \[2, 1e\+09\]", {"period": 1.0}),
        (r"'amplitude' .* a float in \[0, 1000\]", {"amplitude": -1.0}),
        (r"'exposure_spread' .* a float in \[0, 3\]", {"exposure_spread": 4.0}),
        (r"'offset_std' .* a float in \[0, 1000\]", {"offset_std": float("inf")}),
        (r"'sensors_seed' .* an int of at least 0", {"sensors_seed": -1}),
        (r"'nugget' .* above 0 for a singular", {"nugget": 0.0, "training_steps": 10}),
        (r"'horizon' .* at most 50,000,000", {"horizon": 10**8}),
    ]
    for message, parameters in bad:
        with pytest.raises(ValueError, match=message):
            make_env(SENSORS, **parameters)
    make_env(SENSORS, table=table, num_sensors=None)  # its default
