"""`norm_bound` and `variation_budget`: the rescaled episode against the one drawn with neither."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_gym.envs import BanditEnv
from wgp_gym.registration import ENVIRONMENTS

Make = Callable[..., BanditEnv]
Array = NDArray[np.float64]

# Kernels whose matrix can be solved with, so that values alone give norms: ||f||^2 = f^T K^-1 f.
MATERN: dict[str, Any] = {"kernel": "matern", "nu": 0.5}
TASKS = {
    "Abrupt": ("WGPBandit-Abrupt-v0", {**MATERN, "horizon": 20}),
    "Abrupt-every-step": (
        "WGPBandit-Abrupt-v0",
        {**MATERN, "horizon": 9, "change_points": [2, 3, 4, 5, 6, 7, 8, 9]},
    ),
    "Slow": ("WGPBandit-Slow-v0", {**MATERN, "horizon": 40}),
    "Slow-odd": ("WGPBandit-Slow-v0", {**MATERN, "horizon": 31}),
    "Slow-3": ("WGPBandit-Slow-v0", {**MATERN, "horizon": 3}),
    "Slow-continuous": ("WGPBandit-Slow-v0", {**MATERN, "horizon": 9, "continuous": True}),
    "Stock": ("WGPBandit-Stock-v0", {"horizon": 50}),
    "Parking": ("WGPBandit-Parking-v0", {"horizon": 50}),
}
SEED = 12
EXACT = 1e-9


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return TASKS[request.param]


def truth(env: BanditEnv) -> Array:
    """Reset, and return f_1 .. f_T on the domain, `(T, n)`."""
    env.reset(seed=SEED)
    rows = []
    for _ in range(env.problem.known_horizon("a test")):
        rows.append(env.expected_rewards())
        env.step(env.action_space.sample())
    return np.array(rows)


def gram(env: BanditEnv) -> Array:
    domain = env.problem.domain
    return env.problem.kernel(domain, domain)


def norms(f: Array, K: Array) -> Array:
    value: Array = np.sqrt(np.sum(f * np.linalg.solve(K, f.T).T, axis=1))
    return value


def variation(f: Array, K: Array) -> float:
    return float(norms(np.diff(f, axis=0), K).sum())


def close(found: Any, expected: Any) -> None:
    scale = np.abs(np.asarray(expected)).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT * max(scale, 1e-30))


@pytest.mark.parametrize("budget", [0.0, 0.3, 7.0, 1000.0])
def test_budget_alone(make_env: Make, task: tuple[str, dict[str, Any]], budget: float) -> None:
    name, parameters = task
    plain = truth(make_env(name, **parameters))
    env = make_env(name, variation_budget=budget, **parameters)
    f, K = truth(env), gram(env)
    close(f[0], plain[0])
    close(f, plain[0] + budget / variation(plain, K) * (plain - plain[0]))
    assert variation(f, K) == pytest.approx(budget, rel=EXACT, abs=1e-10)  # rounding of f itself
    assert env.problem.variation_budget == pytest.approx(budget, rel=EXACT, abs=1e-12)
    assert env.problem.norm_bound == pytest.approx(norms(f, K).max(), rel=EXACT)


@pytest.mark.parametrize("bound", [0.0, 0.5, 1.0, 40.0])
def test_bound_alone(make_env: Make, task: tuple[str, dict[str, Any]], bound: float) -> None:
    name, parameters = task
    plain = truth(make_env(name, **parameters))
    env = make_env(name, norm_bound=bound, **parameters)
    f, K = truth(env), gram(env)
    close(f, bound / norms(plain, K).max() * plain)
    assert norms(f, K).max() == pytest.approx(bound, rel=EXACT)
    assert env.problem.norm_bound == bound
    assert env.problem.variation_budget == pytest.approx(variation(f, K), rel=EXACT)


@pytest.mark.parametrize(("bound", "budget"), [(1.0, 0.4), (3.0, 1.5), (2.0, 0.0), (50.0, 60.0)])
def test_both(
    make_env: Make, task: tuple[str, dict[str, Any]], bound: float, budget: float
) -> None:
    name, parameters = task
    plain = truth(make_env(name, **parameters))
    env = make_env(name, norm_bound=bound, variation_budget=budget, **parameters)
    f, K = truth(env), gram(env)
    assert env.problem.norm_bound == bound
    assert env.problem.variation_budget == pytest.approx(budget, rel=EXACT, abs=1e-12)
    first, moves = plain[0], budget / variation(plain, K) * (plain - plain[0])
    s = float(f[0] @ first / (first @ first))
    assert s >= 0
    close(f, s * first + moves)
    assert norms(f, K).max() == pytest.approx(bound, rel=EXACT)  # within the bound, and at it
    for larger in np.array([1e-6, 1e-3, 0.1, 1.0, 10.0]) + s:
        assert norms(larger * first + moves, K).max() > bound * (1 + 1e-9)


def test_the_smooth_kernel_too(make_env: Make) -> None:
    """The paper's kernel matrix is singular, so these norms come from the coefficients."""
    env = make_env("WGPBandit-Abrupt-v0", norm_bound=3.0, variation_budget=4.0)
    env.reset(seed=SEED)
    (episode,) = env.dynamics.episodes
    x = np.linspace(0, 1, 100)[episode.centres]
    K = np.exp(-((x[:, None] - x) ** 2) / 0.08)
    c = episode.coefficients
    found = np.sqrt(np.einsum("ki,ij,kj->k", c, K, c))
    moves = np.diff(c, axis=0)
    assert found.max() == pytest.approx(3.0, rel=EXACT)
    assert np.sqrt(np.einsum("ki,ij,kj->k", moves, K, moves)).sum() == pytest.approx(4, rel=EXACT)


@pytest.mark.parametrize("budget", [1e-3, 1e-6])
def test_small_budgets(make_env: Make, budget: float) -> None:
    """Next to f_1 the changes of a small budget are close to rounding."""
    env = make_env("WGPBandit-Abrupt-v0", variation_budget=budget)
    env.reset(seed=SEED)
    assert env.problem.variation_budget == pytest.approx(budget, rel=EXACT, abs=0)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("WGPBandit-Stationary-v0", {}),
        ("WGPBandit-Abrupt-v0", {"change_points": []}),
        ("WGPBandit-Slow-v0", {"horizon": 1}),
        ("WGPBandit-Stock-v0", {"horizon": 1}),
    ],
    ids=str,
)
def test_a_task_that_never_changes_has_no_budget(
    make_env: Make, name: str, parameters: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"'variation_budget' .* never changes. Got 1.0 instead"):
        make_env(name, variation_budget=1.0, **parameters)
    env = make_env(name, variation_budget=0, **parameters)
    env.reset(seed=0)
    assert env.problem.variation_budget == 0.0


def test_a_change_to_an_equal_function_has_no_budget(make_env: Make) -> None:
    same = {"means": [[0.2, 0.5], [0.2, 0.5]], "change_points": [9]}
    env = make_env("WGPBandit-ArmsAbrupt-v0", variation_budget=1.0, **same)
    with pytest.raises(ValueError, match=r"a task that never changes must be None or 0\. Got 1.0"):
        env.reset(seed=0)


@pytest.mark.parametrize("name", ["norm_bound", "variation_budget"])
def test_bad_numbers(make_env: Make, name: str) -> None:
    match = rf"The '{name}' parameter of .* must be a float in \[0,"
    for value in (-1, -1e-9, float("nan"), float("inf"), "1", True, [1.0]):
        with pytest.raises(ValueError, match=match):
            make_env("WGPBandit-Abrupt-v0", **{name: value})
    for entry in ENVIRONMENTS:
        with pytest.raises(ValueError, match=match):
            make_env(entry.id, **{name: -1})


@pytest.mark.parametrize("pair", [(0.1, 100.0), (0.0, 1.0)], ids=str)
def test_a_pair_that_cannot_be(
    make_env: Make, task: tuple[str, dict[str, Any]], pair: tuple[float, float]
) -> None:
    name, parameters = task
    bound, budget = pair
    with pytest.raises(ValueError, match=r"'variation_budget' .* within norm_bound = 0"):
        make_env(name, norm_bound=bound, variation_budget=budget, **parameters).reset(seed=SEED)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("budget", [0.5, 1.5, 2.5])
def test_multiples_of_one_function(make_env: Make, seed: int, budget: float) -> None:
    """On a line with the linear kernel f_1 = a x and f_2 = (a + move) x: B = 1 worked by hand."""
    parameters: dict[str, Any] = {"kernel": "linear", "horizon": 4, "change_points": [3]}
    env = make_env("WGPBandit-Abrupt-v0", norm_bound=1.0, variation_budget=budget, **parameters)
    plain = make_env("WGPBandit-Abrupt-v0", **parameters)
    plain.reset(seed=seed)
    start = plain.expected_rewards()[-1]
    plain.step(0)
    plain.step(0)
    outwards = (plain.expected_rewards()[-1] - start) * start > 0
    # Outwards |a| + budget <= 1; inwards |a| <= 1 and budget - |a| <= 1.
    largest = 1 - budget if outwards else 1.0
    if largest < 0 or (not outwards and budget > 2):
        with pytest.raises(ValueError, match="within norm_bound = 1"):
            env.reset(seed=seed)
        return
    env.reset(seed=seed)
    first = env.expected_rewards()[-1]
    env.step(0)
    env.step(0)
    second = env.expected_rewards()[-1]
    sign = np.sign(start)
    assert first * sign == pytest.approx(largest)
    assert second * sign == pytest.approx(1.0 if outwards else 1.0 - budget)


@pytest.mark.parametrize("seed", range(8))
def test_a_function_that_is_zero_cannot_be_rescaled(make_env: Make, seed: int) -> None:
    """With one linear term a drawn function is often exactly 0: k(., 0) = 0."""
    parameters = {"kernel": "linear", "num_terms": 1, "points_per_dim": 2}
    plain = make_env("WGPBandit-Stationary-v0", **parameters)
    plain.reset(seed=seed)
    env = make_env("WGPBandit-Stationary-v0", norm_bound=1.0, **parameters)
    if plain.expected_rewards().any():
        env.reset(seed=seed)
        assert env.problem.norm_bound == 1.0
        assert np.abs(env.expected_rewards()).max() == pytest.approx(1.0)
    else:
        with pytest.raises(ValueError, match="norm_bound"):
            env.reset(seed=seed)
