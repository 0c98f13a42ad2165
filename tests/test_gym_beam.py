"""Beams: patterns by their steering vectors, and channels read off what beams receive."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from wgp_gym.beam_kernel import BeamKernel
from wgp_gym.envs import BanditEnv

Make = Callable[..., BanditEnv]
Array = NDArray[np.float64]

BEAM = "WGPBandit-Beam-v0"
ALONE: dict[str, Any] = {"num_paths": 1, "block_rate": 0.0, "antennas": 5, "num_beams": 20}
P_VALUE = 1e-3  # of each test of a distribution below; the seeds are fixed


def pattern(antennas: int, u: Array, v: Array) -> Array:
    """Return |a(u)^H a(v)|^2 of all pairs, by the vectors themselves."""
    n = np.arange(antennas)
    a, b = (np.exp(1j * np.pi * n * one[:, None]) / math.sqrt(antennas) for one in (u, v))
    found: Array = np.abs(a.conj() @ b.T) ** 2
    return found


def directions(x: Any, beams: int) -> Array:
    """Return the directions that places in [0, 1] stand for."""
    return -1 + 2 * (beams - 1) / beams * np.atleast_1d(np.asarray(x, float))


@pytest.mark.parametrize("antennas", [1, 2, 5, 32])
@pytest.mark.parametrize("span", [0.3, 1.9, 2.0])
def test_the_kernel(antennas: int, span: float) -> None:
    x = np.concatenate([np.random.default_rng(0).random(20), [0.0, 1.0, 0.5, 0.5 + 1e-9]])[:, None]
    kernel = BeamKernel(antennas, span)
    expected = pattern(antennas, span * x[:, 0], span * x[:, 0])
    np.testing.assert_allclose(kernel(x, x), expected, atol=1e-12)
    phi = kernel.features(x)
    assert phi.shape == (24, 2 * antennas - 1)
    np.testing.assert_allclose(phi @ phi.T, expected, atol=1e-12)
    np.testing.assert_array_equal(kernel.diagonal(x), 1.0)
    np.testing.assert_allclose(kernel(x, x).diagonal(), 1.0, rtol=1e-15)


def test_the_kernel_by_hand() -> None:
    """Two antennas: |1 + exp(i pi d)|^2 / 4 = cos^2(pi d / 2); beams 2 / N apart are orthogonal."""
    x = np.linspace(0, 1, 9)[:, None]
    half = BeamKernel(2)(x, np.zeros((1, 1)))[:, 0]
    np.testing.assert_allclose(half, np.cos(np.pi * x[:, 0]) ** 2, atol=1e-15)
    dft = np.arange(8)[:, None] / 8
    np.testing.assert_allclose(BeamKernel(8)(dft, dft), np.eye(8), atol=1e-15)


def played(env: BanditEnv, seed: int, steps: int | None = None) -> tuple[Array, Array]:
    """Return where every f_t is largest, in u, and how large, `(T,)` each."""
    env.reset(seed=seed)
    best, top = [], []
    for _ in range(steps or env.problem.known_horizon("a test")):
        info = env.step(env.action_space.sample())[4]
        best.append(info["optimal_action"])
        top.append(info["optimal_reward"])
    beams = len(env.problem.domain)
    at = np.reshape(best, (len(best), -1))[:, 0]
    x = at if env.problem.continuous else at / (beams - 1)
    return directions(x, beams), np.array(top)


def test_one_path_is_one_pattern(make_env: Make) -> None:
    """Norm and variation by hand: f = N g k(., u) has the norm N g."""
    env = make_env(BEAM, continuous=True, horizon=60, speed=1.0, **ALONE)
    u, top = played(env, 3)
    assert env.problem.norm_bound == pytest.approx(top.max(), rel=1e-9)
    cross = pattern(5, u, u).diagonal(1)
    moved = top[1:] ** 2 + top[:-1] ** 2 - 2 * top[1:] * top[:-1] * cross
    assert env.problem.variation_budget == pytest.approx(np.sqrt(moved).sum(), rel=1e-4)
    env.reset(seed=3)
    for t in range(60):
        x = env.action_space.sample()
        info = env.step(x)[4]
        towards = pattern(5, directions(x, 20), u[t : t + 1]).item()
        assert info["expected_reward"] == pytest.approx(top[t] * towards, abs=1e-6)


@pytest.mark.parametrize("beams", [9, 10, 40])
def test_exact_between_the_beams(make_env: Make, beams: int) -> None:
    """By the 2 N - 1 features, from the values at the beams: another algebra than expansions."""
    kwargs: dict[str, Any] = {"antennas": 5, "num_beams": beams, "horizon": 30, "block_rate": 0.2}
    env = make_env(BEAM, continuous=True, **kwargs)
    finite = make_env(BEAM, **kwargs)
    env.reset(seed=7)
    finite.reset(seed=7)
    u = directions(env.problem.domain[:, 0], beams)
    assert np.ptp(np.diff(u)) < 1e-12
    assert u[1] - u[0] == pytest.approx(2 / beams)  # the beams of a DFT codebook
    basis = BeamKernel(5).features((u[:, None] + 1) / 2)
    thetas = []
    for _ in range(30):
        np.testing.assert_array_equal(env.expected_rewards(), finite.expected_rewards())
        thetas.append(np.linalg.lstsq(basis, env.expected_rewards(), rcond=None)[0])
        x = env.action_space.sample()
        place = (directions(x, beams)[:, None] + 1) / 2
        info = env.step(x)[4]
        finite.step(0)
        value = (BeamKernel(5).features(place) @ thetas[-1]).item()
        assert info["expected_reward"] == pytest.approx(value, abs=1e-9)
    norms = np.linalg.norm(thetas, axis=1)
    spent = np.linalg.norm(np.diff(thetas, axis=0), axis=1).sum()
    for one in (env, finite):
        assert one.problem.norm_bound == pytest.approx(norms.max(), rel=1e-9)
        assert one.problem.variation_budget == pytest.approx(spent, rel=1e-9)


def positions(u: Array, top: Array, antennas: int = 5, near: float = 20.0) -> Array:
    """Return where the user is, `(T, 2)`: g = (near / distance)^2."""
    distance = near / np.sqrt(top / antennas)
    return np.stack([distance * np.sqrt(1 - u**2), distance * u], axis=1)


def test_the_walk(make_env: Make) -> None:
    env = make_env(BEAM, continuous=True, horizon=400, speed=2.0, **ALONE)
    walk = positions(*played(env, 5))
    assert walk[:, 0].min() > 20 - 1e-4
    assert walk[:, 0].max() < 100 + 1e-4
    assert np.abs(walk[:, 1]).max() < 40 + 1e-4
    steps = np.diff(walk, axis=0)
    lengths = np.hypot(*steps.T)
    assert lengths.max() < 2 + 1e-3
    straight = lengths > 2 - 1e-3
    assert 0.8 < straight.mean() < 1  # a step around a corner is shorter
    turned = np.abs(np.diff(np.unwrap(np.arctan2(steps[:, 1], steps[:, 0])))) > 0.01
    assert 2 <= turned.sum() <= 2 * (~straight).sum()


@pytest.mark.slow
def test_starts_are_uniform(make_env: Make) -> None:
    env = make_env(BEAM, continuous=True, horizon=1, near=10.0, far=30.0, width=12.0, **ALONE)
    starts = np.concatenate([positions(*played(env, seed), near=10.0) for seed in range(300)])
    for axis, law in zip(starts.T, (stats.uniform(10, 20), stats.uniform(-6, 12)), strict=True):
        assert stats.kstest(axis, law.cdf).pvalue > P_VALUE


@pytest.mark.slow
def test_blockages(make_env: Make) -> None:
    block, clear, horizon = 0.05, 0.2, 500
    parameters = ALONE | {"block_rate": block, "clear_rate": clear, "speed": 0.0}
    env = make_env(BEAM, horizon=horizon, blockage_db=13.0, **parameters)
    chains = []
    for seed in range(30):
        top = played(env, seed)[1]
        chains.append(top < top.max() / 2)
        np.testing.assert_allclose(top[chains[-1]], top.max() / 10**1.3)
    hidden = np.array(chains)
    before, after = hidden[:, :-1], hidden[:, 1:]
    into, out = after[~before], ~after[before]
    assert stats.binomtest(int(into.sum()), into.size, block).pvalue > P_VALUE
    assert stats.binomtest(int(out.sum()), out.size, clear).pvalue > P_VALUE
    short = make_env(BEAM, horizon=1, blockage_db=100.0, path_loss=0.0, **parameters)
    first = [played(short, seed)[1].item() < 1e-3 for seed in range(300)]
    assert stats.binomtest(sum(first), 300, block / (block + clear)).pvalue > P_VALUE


@pytest.mark.slow
def test_reflections(make_env: Make) -> None:
    """Of a user who is always hidden a reflection alone is left: its direction stays."""
    hidden = {"block_rate": 1.0, "clear_rate": 0.0, "blockage_db": 100.0, "num_paths": 2}
    parameters = ALONE | hidden | {"continuous": True, "speed": 5.0}
    u, top = played(make_env(BEAM, horizon=100, reflection_db=6.0, **parameters), 4)
    assert np.ptp(u) < 1e-4
    assert np.ptp(top) > 0.01 * top.max()
    flat = make_env(BEAM, horizon=1, path_loss=0.0, reflection_db=6.0, **parameters)
    losses = [-10 * math.log10(played(flat, seed)[1].item() / 5) for seed in range(200)]
    assert stats.kstest(losses, stats.uniform(3, 6).cdf).pvalue > P_VALUE


def test_parts_of_a_channel_have_streams_of_their_own(make_env: Make) -> None:
    one = make_env(BEAM, horizon=30, **ALONE)
    more = make_env(BEAM, horizon=30, **(ALONE | {"num_paths": 3, "reflection_db": 100.0}))
    np.testing.assert_allclose(played(one, 2)[1], played(more, 2)[1], rtol=1e-3)
    long = make_env(BEAM, horizon=60, **ALONE)
    np.testing.assert_array_equal(played(one, 2)[1], played(long, 2, 30)[1])


def test_budgets(make_env: Make) -> None:
    env = make_env(BEAM, horizon=40, norm_bound=3.0, variation_budget=1.5)
    env.reset(seed=1)
    assert env.problem.norm_bound == pytest.approx(3)
    assert env.problem.variation_budget == pytest.approx(1.5)
    still = make_env(BEAM, horizon=40, speed=0.0, block_rate=0.0)
    still.reset(seed=1)
    assert still.problem.variation_budget == 0


REFUSED: list[tuple[str, Any, str]] = [
    ("antennas", 1, r"an int in \[2, 1000\]"),
    ("num_beams", 30, r"an int in \[31, 4000\]"),
    ("num_paths", 0, r"an int in \[1, 100\]"),
    ("near", 0.0, r"a float in \[1, "),
    ("far", 20.0, r"a float in \[20.2, 1e\+06\]"),
    ("width", 0.0, r"a float in \[0.01, 1e\+06\]"),
    ("speed", 81.0, r"a float in \[0, 80\]"),
    ("path_loss", 7.0, r"a float in \[0, 6\]"),
    ("block_rate", 1.1, r"a float in \[0, 1\]"),
    ("clear_rate", -0.1, r"a float in \[0, 1\]"),
    ("blockage_db", 101.0, r"a float in \[0, 100\]"),
    ("reflection_db", float("nan"), r"a float in \[0, 100\]"),
    ("horizon", 10**8, "at most 50,000,000"),
]


@pytest.mark.parametrize(("name", "value", "rule"), REFUSED, ids=lambda one: str(one)[:12])
def test_refused(make_env: Make, name: str, value: Any, rule: str) -> None:
    with pytest.raises(ValueError, match=rf"'{name}' parameter of BeamTask must be .*{rule}"):
        make_env(BEAM, **{name: value})


def test_a_box_that_takes_too_long_is_refused(make_env: Make) -> None:
    with pytest.raises(ValueError, match=r"'continuous' .* False where antennas x num_beams"):
        make_env(BEAM, continuous=True, antennas=100, num_beams=400)
    faulty: Any
    for faulty in ({"antennas": 0}, {"antennas": 3, "span": 0.0}, {"antennas": 3, "span": 2.1}):
        with pytest.raises(ValueError, match="parameter of BeamKernel must be"):
            BeamKernel(**faulty)
