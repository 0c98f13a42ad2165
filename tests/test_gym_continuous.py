"""Continuous actions: f_t off the grid is the kernel expansion, and its optimum is the best."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import qmc
from sklearn.gaussian_process import kernels as sklearn_kernels

from wgp_gym.envs import BanditEnv

Make = Callable[..., BanditEnv]
Array = NDArray[np.float64]
Function = Callable[[Array], Array]

STATIONARY = "WGPBandit-Stationary-v0"
KERNELS: dict[str, tuple[dict[str, Any], Any]] = {
    "se": ({"kernel": "se"}, sklearn_kernels.RBF(0.2)),
    "se-0.05": ({"kernel": "se", "lengthscale": 0.05}, sklearn_kernels.RBF(0.05)),
    **{
        f"matern-{nu}": ({"kernel": "matern", "nu": nu}, sklearn_kernels.Matern(0.2, nu=nu))
        for nu in (0.5, 1.5, 2.5)
    },
    "linear": ({"kernel": "linear"}, sklearn_kernels.DotProduct(sigma_0=0)),
}


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def expansion(env: BanditEnv, kernel: str, knot: int = 0) -> Function:
    """Return a drawn function, from its coefficients and scikit-learn's kernel."""
    (episode,) = env.dynamics.episodes
    side = env.problem.domain.shape[1]
    centres = env.problem.domain[episode.centres]
    coefficients = episode.coefficients[knot]
    if kernel == "linear":
        coefficients = coefficients / side  # k = x^T y / d
    reference = KERNELS[kernel][1]

    def f(points: Array) -> Array:
        value: Array = reference(np.atleast_2d(points), centres) @ coefficients
        return value

    return f


@pytest.mark.parametrize("dim", [1, 2])
def test_values_off_the_grid(make_env: Make, kernel: str, dim: int) -> None:
    parameters = KERNELS[kernel][0]
    env = make_env(
        "WGPBandit-Slow-v0", continuous=True, horizon=9, dim=dim, points_per_dim=10, **parameters
    )
    env.action_space.seed(0)
    env.reset(seed=1)
    knots = [expansion(env, kernel, k) for k in range(3)]
    for t in range(1, 10):
        w = 2 * t / 9
        shares = [1 - w, w, 0.0] if w <= 1 else [0.0, 2 - w, w - 1]
        action = env.action_space.sample()
        on_grid = env.expected_rewards()
        *_, info = env.step(action)
        for found, points in [(info["expected_reward"], action), (on_grid, env.problem.domain)]:
            x = np.atleast_2d(np.asarray(points, float))
            f = sum(share * knot(x) for share, knot in zip(shares, knots, strict=True))
            np.testing.assert_allclose(found, np.squeeze(f), atol=1e-11)


def test_the_truth_on_the_grid_is_that_of_the_discrete_task(make_env: Make, kernel: str) -> None:
    box = make_env("WGPBandit-Abrupt-v0", continuous=True, **KERNELS[kernel][0])
    arms = make_env("WGPBandit-Abrupt-v0", **KERNELS[kernel][0])
    _, of_box = box.reset(seed=3)
    _, of_arms = arms.reset(seed=3)
    np.testing.assert_array_equal(box.expected_rewards(), arms.expected_rewards())
    assert box.problem.norm_bound == arms.problem.norm_bound
    assert box.problem.variation_budget == arms.problem.variation_budget
    # At a kink the best arm's place and that place in single precision pay 1e-7 apart.
    slack = 1e-6 if kernel == "matern-0.5" else 1e-12
    assert of_box["optimal_reward"] >= of_arms["optimal_reward"] - slack
    for end in (0, 99):
        *_, of_box = box.step(np.array([end / 99], np.float32))
        *_, of_arms = arms.step(end)
        assert of_box["expected_reward"] == pytest.approx(of_arms["expected_reward"], abs=1e-12)


@pytest.mark.parametrize("points_per_dim", [2, 5, 100])
def test_optimum_of_a_line(make_env: Make, kernel: str, points_per_dim: int) -> None:
    """Never below 20,001 points of [0, 1], and a value that its own point attains."""
    dense = np.linspace(0, 1, 20_001)[:, None]
    parameters = {"points_per_dim": points_per_dim, **KERNELS[kernel][0]}
    env = make_env(STATIONARY, continuous=True, **parameters)
    for seed in range(12):
        _, info = env.reset(seed=seed)
        f = expansion(env, kernel)
        best = f(dense).max()
        assert info["optimal_reward"] >= best - 1e-12
        # Between two dense points a smooth f rises by 1/8 |f''| h^2 at most, one with kinks by
        # |f'| h / 2: 1e-3 of its norm holds for all.
        assert info["optimal_reward"] <= best + 1e-3 * float(env.problem.norm_bound or 0.0)
        assert f(info["optimal_action"])[0] == pytest.approx(info["optimal_reward"], abs=1e-11)


def best_of_many_climbs(f: Function, dim: int) -> float:
    """Maximise by a dense lattice, then bounded quasi-Newton and Nelder-Mead from its best."""
    axis = np.linspace(0, 1, 121)
    lattice = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    values = f(lattice)
    best = float(values.max())
    for start in lattice[np.argsort(-values)[:24:4]]:
        for method, options in [("L-BFGS-B", {}), ("Nelder-Mead", {"xatol": 1e-9, "fatol": 1e-12})]:
            found = minimize(
                lambda x: -float(f(x)[0]),
                start,
                method=method,
                bounds=[(0, 1)] * dim,
                options=options,
            )
            best = max(best, -float(found.fun))
    return best


@pytest.mark.parametrize("points_per_dim", [4, 30])
def test_optimum_of_a_square(make_env: Make, kernel: str, points_per_dim: int) -> None:
    """Never below a search of another kind; where f has kinks, to single precision of x."""
    parameters = {"dim": 2, "points_per_dim": points_per_dim, **KERNELS[kernel][0]}
    env = make_env(STATIONARY, continuous=True, **parameters)
    slack = 1e-6 if kernel == "matern-0.5" else 1e-9
    for seed in range(3, 5):
        _, info = env.reset(seed=seed)
        best = best_of_many_climbs(expansion(env, kernel), 2)
        assert info["optimal_reward"] >= best - slack * max(1.0, abs(best))


@pytest.mark.parametrize("name", ["WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0"])
def test_sup_variation(make_env: Make, name: str) -> None:
    env = make_env(name, continuous=True, horizon=25)
    env.reset(seed=5)
    knots, dense = [expansion(env, "se", k) for k in range(3)], np.linspace(0, 1, 20_001)[:, None]
    f = np.array([knot(dense) for knot in knots])
    if name == "WGPBandit-Abrupt-v0":
        path = f[[0] * 4 + [1] * 5 + [2] * 16]
    else:
        w = 2 * np.arange(1, 26)[:, None] / 25
        path = np.where(w <= 1, (1 - w) * f[0] + w * f[1], (2 - w) * f[1] + (w - 1) * f[2])
    expected = np.cumsum(np.abs(np.diff(path, axis=0, prepend=path[:1])).max(axis=1))
    for spent in expected:
        *_, info = env.step(np.array([0.5], np.float32))
        assert info["sup_variation"] == pytest.approx(spent, rel=1e-6)


@pytest.mark.parametrize(
    "action",
    [0.5, [1.1], [-1e-6], [np.nan], [[0.5]], [0.5, 0.5], None, ["x"], [np.inf]],
    ids=str,
)
def test_a_point_outside_the_box(make_env: Make, action: Any) -> None:
    env = make_env("WGPBandit-Abrupt-v0", continuous=True)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"The action must be in Box\(0.0, 1.0, \(1,\)"):
        env.step(action)
    assert env.step([0.5])[4]["t"] == 1


def test_points_are_played_in_single_precision(make_env: Make) -> None:
    one, other = (make_env("WGPBandit-Abrupt-v0", continuous=True) for _ in range(2))
    one.reset(seed=0)
    other.reset(seed=0)
    for x in (0.0, 0.1, 1 / 3, 1.0):
        found = one.step(np.array([x]))
        np.testing.assert_equal(found, other.step(np.array([x], np.float32)))
        assert found[0][2] == np.float32(x)


def test_tables_have_no_points_between_arms(make_env: Make) -> None:
    with pytest.raises(TypeError, match="continuous"):
        make_env("WGPBandit-Stock-v0", continuous=True)


@pytest.mark.parametrize(("dim", "points_per_dim"), [(3, 8), (6, 3)])
def test_optimum_of_a_larger_box(make_env: Make, dim: int, points_per_dim: int) -> None:
    """Never below climbs from the best 30 of 16,384 Sobol points."""
    env = make_env(STATIONARY, continuous=True, horizon=5, dim=dim, points_per_dim=points_per_dim)
    _, info = env.reset(seed=1)
    f = expansion(env, "se")
    points = qmc.Sobol(dim, scramble=False).random(2**14)
    values = f(points)
    best = float(values.max())
    for start in points[np.argsort(-values)[:30]]:
        found = minimize(lambda x: -float(f(x[None])[0]), start, bounds=[(0, 1)] * dim)
        best = max(best, -float(found.fun))
    assert info["optimal_reward"] >= best - 1e-9
    assert f(info["optimal_action"])[0] == pytest.approx(info["optimal_reward"], abs=1e-9)


COARSE: dict[str, tuple[dict[str, Any], int, int]] = {
    "matern-2.5": ({"points_per_dim": 5}, 62, 0),
    "matern-1.5": ({"points_per_dim": 8}, 109, 0),
    "se": ({"points_per_dim": 5, "dim": 2}, 92, 2),
}


@pytest.mark.parametrize("name", COARSE)
def test_optimum_beside_a_point_of_a_coarse_grid_that_is_no_peak(make_env: Make, name: str) -> None:
    """Its neighbour is higher, on the slope of another maximum, 1.5 to 3.3 % of |f| lower."""
    places, seed, knot = COARSE[name]
    parameters = KERNELS[name][0] | ({"lengthscale": 0.1} if name == "matern-1.5" else {})
    env = make_env("WGPBandit-Abrupt-v0", continuous=True, horizon=10, **places, **parameters)
    env.reset(seed=seed)
    (episode,) = env.dynamics.episodes
    domain = env.problem.domain
    lines = [np.linspace(0, 1, 81)] * domain.shape[1]
    points = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, domain.shape[1])
    reference = sklearn_kernels.RBF(0.2) if name == "se" else KERNELS[name][1]
    if name == "matern-1.5":
        reference = sklearn_kernels.Matern(0.1, nu=1.5)
    values = reference(points, domain[episode.centres]) @ episode.coefficients[knot]
    assert episode.optimal_reward[knot] >= values.max()
