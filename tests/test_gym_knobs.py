"""Knobs whose best setting moves: published optima, norms, moves, and the optimum over the box."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

import wgp_agents
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_gym.envs import BanditEnv, KnobsTask
from wgp_gym.envs.episode import Episode
from wgp_gym.envs.landscapes import TEST_FUNCTIONS, branin, hartmann, highest_points
from wgp_gym.kernels import Matern

Make = Callable[..., BanditEnv]
Floats = NDArray[np.float64]

NAME = "WGPBandit-Knobs-v0"
FUNCTIONS = ["peaks", "branin", "hartmann3", "hartmann6"]


def episode(seed: int = 0, **parameters: Any) -> Episode:
    return KnobsTask(**parameters).draw(np.random.default_rng(seed))


def parts(drawn: Episode, peaks: int, dim: int) -> tuple[Floats, Floats]:
    """Return heights `(K, m)` and centres `(K, m, d)`."""
    assert drawn.parameters is not None
    return drawn.parameters[:, :peaks], drawn.parameters[:, peaks:].reshape(-1, peaks, dim)


@pytest.mark.parametrize(
    ("function", "x", "value", "digits"),
    [
        (branin, (-math.pi, 12.275), 0.397887, 6),
        (branin, (math.pi, 2.275), 0.397887, 6),
        (branin, (9.42478, 2.475), 0.397887, 6),
        (hartmann, (0.114614, 0.555649, 0.852547), -3.86278, 5),
        (hartmann, (0.11461434, 0.55564885, 0.85254695), -3.86278215, 8),
        (hartmann, (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573), -3.32237, 5),
    ],
)
def test_published_minima(function: Any, x: Any, value: float, digits: int) -> None:
    """As Surjanovic and Bingham's virtual library has them."""
    assert round(float(function(np.array(x))), digits) == value


def test_the_scale_of_branin() -> None:
    """Mean 0 and variance 1 on its box, by midpoints."""
    middles = (np.arange(1000) + 0.5) / 1000
    x = np.stack(np.meshgrid(15 * middles - 5, 15 * middles), axis=-1)
    test = TEST_FUNCTIONS["branin"]
    rewards = (test.zero - branin(x)) / test.unit
    assert rewards.mean() == pytest.approx(0, abs=1e-4)
    assert rewards.std() == pytest.approx(1, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TEST_FUNCTIONS))
def test_a_test_function_is_nowhere_higher(name: str) -> None:
    """Also beyond its box, where shifts may bring it: 50 climbs from twice its size."""
    test = TEST_FUNCTIONS[name]
    top = float(test.reward(np.zeros(test.dim)))
    assert top == pytest.approx({"branin": 1.051864}.get(name, 1.0), abs=1e-6)
    starts = np.random.default_rng(0).uniform(-1, 1, (50, test.dim))
    found = [
        -optimize.minimize(lambda u: -float(test.reward(u)), u, method="L-BFGS-B").fun
        for u in starts
    ]
    assert max(found) <= top + 1e-12
    assert max(found) == pytest.approx(top, abs=1e-8)


def test_peaks_written_out(make_env: Make) -> None:
    env = make_env(NAME, noise_std=0.0, lengthscale=0.3, horizon=60)
    env.reset(seed=4)
    (drawn,) = env.dynamics.episodes
    heights, centres = parts(drawn, 5, 3)
    env.action_space.seed(0)
    for t in range(60):
        x = env.action_space.sample()
        info = env.step(x)[4]
        square = np.sum((x.astype(float) - centres[t // 10]) ** 2, axis=1)
        expected = float(heights[t // 10] @ np.exp(-square / 0.18))
        assert info["expected_reward"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", list(TEST_FUNCTIONS))
def test_a_shifted_function_written_out(make_env: Make, name: str) -> None:
    """As published, shifted so that its minimiser stands where the optimum is told to be."""
    env = make_env(NAME, function=name, horizon=40)
    env.reset(seed=4)
    env.action_space.seed(0)
    test = TEST_FUNCTIONS[name]
    low, sides = np.array(test.low, float), np.subtract(test.high, test.low)
    for _ in range(40):
        best, x = np.array(env.optimal_action(), float), env.action_space.sample()
        info = env.step(x)[4]
        z = (np.array(test.minimiser) - low) / sides + x - best
        expected = (test.zero - float(test.function(low + sides * z))) / test.unit
        assert info["expected_reward"] == pytest.approx(expected, rel=1e-4, abs=1e-6)
        assert (best > 0.1 - 1e-7).all()
        assert (best < 0.9 + 1e-7).all()


@pytest.mark.parametrize(
    "parameters", [{}, {"dim": 2, "num_peaks": 2, "lengthscale": 0.1}], ids=str
)
def test_norms_of_peaks(parameters: dict[str, Any]) -> None:
    """Against an expansion on the centres of all times together, in one matrix."""
    drawn = episode(1, horizon=60, **parameters)
    peaks, dim = parameters.get("num_peaks", 5), parameters.get("dim", 3)
    heights, centres = parts(drawn, peaks, dim)
    flat = centres.reshape(-1, dim)
    length = parameters.get("lengthscale", 0.2)
    K = np.exp(-((flat[:, None] - flat) ** 2).sum(axis=2) / (2 * length**2))
    rows = np.zeros((6, 6, peaks))
    rows[np.arange(6), np.arange(6)] = heights
    a = rows.reshape(6, -1)
    moves = np.diff(a, axis=0)
    norms, steps = (np.sqrt(np.einsum("ki,ij,kj->k", c, K, c)) for c in (a, moves))
    assert drawn.norm_bound == pytest.approx(norms.max(), rel=1e-9)
    np.testing.assert_allclose(np.diff(drawn.variation), steps, rtol=1e-9)
    assert drawn.variation_budget == pytest.approx(steps.sum(), rel=1e-9)
    sup = np.abs(np.diff(drawn.values, axis=0)).max(axis=1)
    np.testing.assert_allclose(np.diff(drawn.sup_variation), sup, rtol=1e-9)
    assert (sup <= steps).all()  # k(x, x) = 1


def test_norms_of_a_test_function_are_those_of_interpolants() -> None:
    task = KnobsTask(function="branin", horizon=40, points_per_dim=12)
    drawn = task.draw(np.random.default_rng(0))
    K = Matern(0.2, 2.5)(task.domain, task.domain)
    moves = np.diff(drawn.values, axis=0)
    norms, steps = (
        np.sqrt(np.sum(rows * np.linalg.solve(K, rows.T).T, axis=1))
        for rows in (drawn.values, moves)
    )
    assert drawn.norm_bound == pytest.approx(norms.max(), rel=1e-8)
    np.testing.assert_allclose(np.diff(drawn.variation), steps, rtol=1e-8)


@pytest.mark.parametrize(
    "parameters",
    [
        {"dim": 1, "lengthscale": 0.05, "num_peaks": 9},
        {"dim": 2, "lengthscale": 0.1, "num_peaks": 8},
        {"dim": 2, "lengthscale": 0.4},
        {"dim": 3},
    ],
    ids=str,
)
def test_no_point_of_the_box_is_higher_than_the_optimum(parameters: dict[str, Any]) -> None:
    """Twenty episodes each, against the grid of some 1,000 points and a climb from its best."""
    task = KnobsTask(horizon=1, **parameters)
    for seed in range(20):
        drawn = task.draw(np.random.default_rng(seed))
        start = task.domain[drawn.values[0].argmax()]
        parameter = drawn.parameters
        assert parameter is not None

        def down(x: Floats, parameter: Floats = parameter) -> float:
            return -float(task.formula(parameter, x[None, None])[0, 0])

        bounds = [(0, 1)] * len(start)
        found = optimize.minimize(down, start, bounds=bounds, options={"ftol": 1e-15})
        assert drawn.optimal_reward[0] >= -found.fun - 1e-10
        (best,) = np.array(drawn.optimal_action, float)
        assert -down(best) == drawn.optimal_reward[0]
        assert ((best >= 0) & (best <= 1)).all()


def test_where_two_peaks_merge() -> None:
    """Two equal peaks 2 widths apart, where the mean shift goes slowly: their middle, by symmetry.

    Three widths apart there are two maxima, solved for by bisection of the slope.
    """
    for apart in (2.0, 3.0):
        centres = np.array([[[0.0], [apart]]])
        (found,) = highest_points(np.ones((1, 2)), centres, 1.0)

        def slope(x: float, apart: float = apart) -> float:
            return -x * math.exp(-(x**2) / 2) + (apart - x) * math.exp(-((apart - x) ** 2) / 2)

        expected = 1.0 if apart == 2.0 else optimize.brentq(slope, -0.5, 1.0)
        nearest = min(abs(found[0] - expected), abs(found[0] - (apart - expected)))
        assert nearest < (0.05 if apart == 2.0 else 1e-8)  # f is flat to the fourth order there


def test_moves_have_their_length_and_all_directions() -> None:
    """Of moves that meet no wall: uniform angles, by Kolmogorov and Smirnov."""
    drawn = episode(3, dim=2, num_peaks=100, horizon=200, severity=0.02, points_per_dim=2)
    heights, centres = parts(drawn, 100, 2)
    moves = np.diff(centres, axis=0)
    inside: NDArray[np.bool_] = np.all(np.abs(centres - 0.5) < 0.48, axis=2)
    free = moves[inside[1:] & inside[:-1]]
    np.testing.assert_allclose(np.hypot(*free.T), 0.02, rtol=1e-9)
    angles = (np.arctan2(*free.T) / (2 * np.pi)) % 1
    assert stats.kstest(angles, "uniform").pvalue > 1e-3
    assert stats.kstest(centres[0].ravel(), "uniform").pvalue > 1e-3
    assert stats.kstest(centres[-1].ravel(), "uniform").pvalue > 1e-3  # mirrors keep it uniform
    assert ((centres >= 0) & (centres <= 1)).all()
    assert ((heights >= 0.3) & (heights <= 0.7)).all()
    middle = np.asarray((heights > 0.5) & (heights < 0.51))[:-1]
    steps = np.diff(heights, axis=0)[middle]  # of which 0.4 % are mirrored
    assert steps.std() == pytest.approx(0.07, rel=0.15)


def test_the_grid_is_the_same_world() -> None:
    box, arms = episode(5), episode(5, continuous=False)
    np.testing.assert_array_equal(box.values, arms.values)
    np.testing.assert_array_equal(arms.optimal_reward, box.values.max(axis=1))
    np.testing.assert_array_equal(arms.optimal_action, box.values.argmax(axis=1))
    assert (box.optimal_reward >= arms.optimal_reward).all()
    assert box.variation_budget == arms.variation_budget
    np.testing.assert_array_equal(box.sup_variation, arms.sup_variation)


def test_changes_come_every_period(make_env: Make) -> None:
    env = make_env(NAME, period=7, horizon=30)
    env.reset(seed=0)
    changed = [env.step(np.full(3, 0.5, np.float32))[4]["changed"] for _ in range(30)]
    assert np.flatnonzero(changed).tolist() == [7, 14, 21, 28]


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_bounds_rescale_functions_as_they_are(function: str) -> None:
    same: dict[str, Any] = {"function": function, "horizon": 50}
    plain = episode(6, **same)
    for name, value in (("norm_bound", 3.0), ("variation_budget", 2.0)):
        drawn = episode(6, **same, **{name: value})
        factor = value / getattr(plain, name)
        np.testing.assert_allclose(drawn.values, factor * plain.values, rtol=1e-12)
        np.testing.assert_allclose(drawn.optimal_reward, factor * plain.optimal_reward, rtol=1e-12)
        np.testing.assert_array_equal(drawn.optimal_action, plain.optimal_action)
        assert getattr(drawn, name) == pytest.approx(value, rel=1e-9)
    with pytest.raises(ValueError, match=r"'variation_budget' .* within norm_bound = 0\.001"):
        episode(6, **same, norm_bound=1e-3, variation_budget=50.0)


@pytest.mark.parametrize("continuous", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_norm_of_zero(function: str, continuous: bool) -> None:
    drawn = episode(6, function=function, horizon=50, norm_bound=0, continuous=continuous)
    assert not drawn.values.any()
    assert not drawn.optimal_reward.any()
    assert np.isfinite(drawn.optimal_action).all()
    assert drawn.norm_bound == drawn.variation_budget == 0.0


def test_a_budget_of_zero() -> None:
    """Refused where functions change: there would be none; else the norm is as asked for."""
    with pytest.raises(ValueError, match=r"'variation_budget' .* above 0 for functions that are"):
        episode(0, variation_budget=0, horizon=30)
    still: dict[str, Any] = {"horizon": 5, "variation_budget": 0}
    plain = episode(0, horizon=5)
    np.testing.assert_array_equal(episode(0, **still).values, plain.values)
    for norm in (0.3, 3.0):
        drawn = episode(0, **still, norm_bound=norm)
        factor = norm / plain.norm_bound
        np.testing.assert_allclose(drawn.values, factor * plain.values, rtol=1e-12)
        assert (drawn.norm_bound, drawn.variation_budget) == (norm, 0.0)


def test_a_machine_that_rests(make_env: Make) -> None:
    drawn = episode(0, severity=0.0, height_severity=0.0)
    assert drawn.variation_budget == 0.0
    np.testing.assert_array_equal(drawn.values[0], drawn.values[-1])
    with pytest.raises(ValueError, match=r"'variation_budget' .* never changes"):
        make_env(NAME, period=500, variation_budget=1.0)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("function", "ackley", "one of 'peaks', 'branin', 'hartmann3', 'hartmann6'"),
        ("dim", 7, r"an int in \[1, 6\]"),
        ("num_peaks", 101, r"an int in \[1, 100\]"),
        ("severity", 1e-5, "0 or at least 0.0001"),
        ("severity", 1.5, r"a float in \[0, 1\]"),
        ("height_severity", 1e-9, "0 or at least 0.0001"),
        ("height_severity", -0.1, r"a float in \[0, 1\]"),
        ("period", 0, "an int of at least 1"),
        ("points_per_dim", 1, "an int of at least 2"),
        ("continuous", "no", "True or False"),
    ],
)
def test_refused(make_env: Make, name: str, value: Any, rule: str) -> None:
    with pytest.raises(ValueError, match=f"The '{name}' parameter of KnobsTask must be {rule}"):
        make_env(NAME, **{name: value})


@pytest.mark.parametrize("name", ["dim", "num_peaks", "height_severity"])
def test_what_is_for_peaks_alone(make_env: Make, name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' .* None for the function 'branin'"):
        make_env(NAME, function="branin", **{name: 2})
    with pytest.raises(ValueError, match=r"'lengthscale' .* singular"):
        make_env(NAME, function="branin", lengthscale=50.0)


@pytest.mark.parametrize(
    ("function", "side"), [("branin", 45), ("hartmann3", 50), ("hartmann6", 10**9)]
)
def test_grids_that_are_too_large_to_solve(make_env: Make, function: str, side: int) -> None:
    rule = rf"points_per_dim\^[236] to be at most 2,000\. Got {side} instead"
    with pytest.raises(ValueError, match=rf"'points_per_dim' parameter .* {rule}"):
        make_env(NAME, function=function, points_per_dim=side)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"horizon": 50_000, "period": 1, "points_per_dim": 2}, "'horizon / period' .* 1,000,000"),
        ({"num_peaks": 100, "horizon": 1500}, "'num_peaks' .* at most 1,000,000"),
        ({"num_peaks": 100, "points_per_dim": 46, "horizon": 250}, "'points_per.* 200,000,000"),
        ({"horizon": 20_000_000, "period": 1}, "'horizon / period' .* 50,000,000"),
    ],
    ids=str,
)
def test_episodes_that_take_long_to_draw(
    make_env: Make, parameters: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        make_env(NAME, **parameters)


def test_a_hundred_peaks_can_be_drawn() -> None:
    """Their maxima, against climbs from every centre that are written out, in one function."""
    task = KnobsTask(num_peaks=100, horizon=1)
    drawn = task.draw(np.random.default_rng(2))
    heights, centres = (row[0] for row in parts(drawn, 100, 3))
    points = centres.copy()
    for _ in range(1000):
        w = heights * np.exp(-((points[:, None] - centres) ** 2).sum(axis=2) / (2 * 0.2**2))
        points = w @ centres / w.sum(axis=1, keepdims=True)
    w = heights * np.exp(-((points[:, None] - centres) ** 2).sum(axis=2) / (2 * 0.2**2))
    assert drawn.optimal_reward[0] == pytest.approx(w.sum(axis=1).max(), rel=1e-12)


@pytest.mark.slow
def test_learners_find_it() -> None:
    """Three runs of 200 steps: random play has 120, the adaptive agent 28."""
    regret = {}
    for name in ("random", "adaptive-wgp-ucb", "oracle"):
        env = make_vector(NAME, 3, horizon=200)
        played = rollout(wgp_agents.make(name, env), env, seed=0)
        regret[name] = played["cumulative_regret"][:, -1].mean()
    assert regret["oracle"] == 0.0
    assert regret["adaptive-wgp-ucb"] < 0.4 * regret["random"]


def test_a_maximum_that_no_centre_leads_to() -> None:
    """In the middle of a regular simplex, 1.87 widths from each of its d + 1 equal peaks."""
    dim, width = 6, 0.2
    corners = np.eye(dim + 1) - 1 / (dim + 1)
    centres = corners @ np.linalg.svd(corners)[2][:dim].T
    centres *= 1.32 * math.sqrt(2) * width / np.linalg.norm(centres[0])
    (found,) = highest_points(np.ones((1, dim + 1)), centres[None], width)
    np.testing.assert_allclose(found, 0, atol=1e-9)

    def down(x: Floats) -> float:
        return -float(np.exp(-np.sum((x - centres) ** 2, axis=1) / (2 * width**2)).sum())

    for start in centres:  # what any of them leads to is lower
        assert optimize.minimize(down, start).fun > down(np.zeros(dim)) + 0.01
