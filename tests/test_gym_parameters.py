"""Parameters: what is refused at construction, in one message shape, and what odd ones do."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from wgp_gym import register
from wgp_gym.envs import BanditEnv, BanditVectorEnv, SyntheticTask
from wgp_gym.kernels import Empirical, Linear, Matern, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.registration import ENVIRONMENTS, SYNTHETIC
from wgp_gym.schedules import piecewise_constant

Make = Callable[..., BanditEnv]

ABRUPT, SLOW = "WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0"
LENGTH = r"must be a float in \[1e-09, 1e\+09\]\. Got"
NOT_NEGATIVE = r"must be a float in \[0, 1e\+30\]\. Got"


def at_least(low: int) -> str:
    return rf"must be an int of at least {low}\. Got"


REFUSED: list[tuple[str, str, list[Any]]] = [
    ("noise_std", NOT_NEGATIVE, [-1.0, -1e-9, float("nan"), float("inf"), "0.1", True, None, []]),
    ("lengthscale", LENGTH, [0, -0.2, float("nan"), float("inf"), "0.2", None]),
    ("dim", at_least(1), [0, -1, 1.0, True, "1", None]),
    ("points_per_dim", at_least(2), [1, 0, -1, 100.0, True, "9", None]),
    ("horizon", at_least(1), [0, -1, 500.0, True, "9", None]),
    ("num_terms", at_least(1), [0, -1, 100.0, True, None]),
    ("kernel", "must be one of 'se', 'matern', 'linear'", ["rbf", None, 1, ["se"]]),
    (
        "change_points",
        "must be",
        [[1], [0], [-3], [5.0], [True], ["5"], "57", [501], [9, 5], [5, 5]],
    ),
    ("change_points", "must be", [100, 2.5, [None]]),
]


@pytest.mark.parametrize(
    ("name", "rule", "value"),
    [(name, rule, value) for name, rule, values in REFUSED for value in values],
    ids=lambda value: str(value)[:20],
)
def test_refused(make_env: Make, name: str, rule: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"The '{name}' parameter of .* {rule}"):
        make_env(ABRUPT, **{name: value})


@pytest.mark.parametrize("nu", [2.0, 1, 0, "2.5", None, float("nan")])
def test_refused_smoothness(make_env: Make, nu: Any) -> None:
    with pytest.raises(ValueError, match=r"The 'nu' parameter of Matern must be 0.5, 1.5 or 2.5"):
        make_env(ABRUPT, kernel="matern", nu=nu)


@pytest.mark.parametrize("value", ["no", "False", 2, None])
def test_refused_flag(make_env: Make, value: Any) -> None:
    with pytest.raises(ValueError, match=r"The 'continuous' parameter of .* must be"):
        make_env(ABRUPT, continuous=value)


@pytest.mark.parametrize("name", [SLOW, "WGPBandit-Stationary-v0"])
def test_change_points_of_a_task_without_jumps(make_env: Make, name: str) -> None:
    with pytest.raises(ValueError, match=r"'change_points' .* None for the schedule .* \[5\]"):
        make_env(name, change_points=[5])


def test_names_come_with_a_hint() -> None:
    meant = r"'schedule' parameter of SyntheticTask .* 'abrupt', .* \(did you mean 'abrupt'\?\)"
    with pytest.raises(ValueError, match=meant):
        BanditEnv(SYNTHETIC, schedule="abrubt")
    with pytest.raises(ValueError, match=meant):
        BanditVectorEnv(2, task=SYNTHETIC, schedule="abrubt")


@pytest.mark.parametrize("mode", ["human", "rgb", ""])
def test_render_modes(mode: str) -> None:
    with pytest.raises(ValueError, match=r"'render_mode' .* of BanditEnv .* 'rgb_array', 'ansi'"):
        BanditEnv(SYNTHETIC, schedule="constant", render_mode=mode)
    with pytest.raises(ValueError, match="'render_mode' parameter of BanditVectorEnv"):
        BanditVectorEnv(2, task=SYNTHETIC, schedule="constant", render_mode=mode)


def test_unknown_parameter(environment_id: str) -> None:
    with pytest.raises(TypeError, match="lenghtscale"):
        gymnasium.make(environment_id, lenghtscale=0.2)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones(3), "symmetric square"),
        (np.ones((2, 3)), "symmetric square"),
        (np.array([[1.0, 0.5], [0.4, 1.0]]), "symmetric square"),
        (np.array([[1.0, 0.0], [0.0, 1.1]]), "diagonal at most 1"),
        (np.zeros((2, 2)), "diagonal at most 1"),
        (np.array([[1.0, 0.9], [0.9, 0.5]]), "positive semi-definite"),
        (np.array([[np.nan, 0.0], [0.0, 1.0]]), "'matrix' parameter of Empirical"),
    ],
    ids=str,
)
def test_empirical_kernel(matrix: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Empirical(matrix)


def test_kernels_on_their_own() -> None:
    with pytest.raises(ValueError, match=rf"'lengthscale' parameter of Squ.* {LENGTH} -1"):
        SquaredExponential(-1)
    with pytest.raises(ValueError, match=rf"'lengthscale' parameter of Matern {LENGTH} 0"):
        Matern(0)


def test_paths_on_their_own() -> None:
    for steps in ([1], [3, 2], [11]):
        with pytest.raises(ValueError, match=r"strictly increasing steps from 2 to 10\. Got"):
            piecewise_constant(10, steps)


def test_stacked_problems() -> None:
    places = np.linspace(0, 1, 4)[:, None]
    one = BanditProblem(Linear(), places, 9, 0.1, 2.0, 3.0)
    other = BanditProblem(Linear(), places, 9, 0.2, 4.0, 5.0)
    both = BanditProblem.stack([one, other])
    assert (one.batch_size, both.batch_size) == (None, 2)
    np.testing.assert_array_equal(both.noise_scale, [0.1, 0.2])
    np.testing.assert_array_equal(
        np.array([both.norm_bound, both.variation_budget]), [[2, 4], [3, 5]]
    )
    for stranger in (
        BanditProblem(Linear(), places, 10, 0.1),
        BanditProblem(Linear(), places[:3], 9, 0.1),
    ):
        with pytest.raises(ValueError, match="must share domain, kernel, horizon, continuous"):
            BanditProblem.stack([one, stranger])


@pytest.mark.parametrize("integer", [np.int64, np.uint8])
def test_numpy_integers_are_integers(make_env: Make, integer: Callable[[int], Any]) -> None:
    env = make_env(
        ABRUPT,
        horizon=integer(9),
        change_points=np.array([3, 5]),
        dim=integer(1),
        points_per_dim=integer(7),
        noise_std=np.float32(0.5),
    )
    env.reset(seed=0)
    changes = [t for t in range(1, 10) if env.step(integer(6))[4]["changed"]]
    assert changes == [3, 5]
    assert type(env.problem.horizon) is int
    assert type(env.problem.noise_scale) is float


@pytest.mark.parametrize("lengthscale", [1e-9, 1e-3, 1e3, 1e9])
@pytest.mark.parametrize("kernel", ["se", "matern"])
def test_extreme_lengthscales(make_env: Make, kernel: str, lengthscale: float) -> None:
    """Far below the spacing f is one spike a centre; far above the box it is flat."""
    env = make_env(SLOW, kernel=kernel, lengthscale=lengthscale, horizon=5)
    env.reset(seed=0)
    for _ in range(5):
        f = env.expected_rewards()
        assert np.isfinite(f).all()
        assert (np.ptp(f) < 0.1) == (lengthscale > 1)
        assert env.step(50)[4]["regret"] >= 0


@pytest.mark.parametrize("bound", [1e-30, 1e30])
def test_extreme_norms(make_env: Make, bound: float) -> None:
    env = make_env(ABRUPT, norm_bound=bound, noise_std=0.0)
    one = make_env(ABRUPT, norm_bound=1.0, noise_std=0.0)
    env.reset(seed=0)
    one.reset(seed=0)
    np.testing.assert_allclose(env.expected_rewards(), bound * one.expected_rewards(), rtol=1e-9)
    assert env.step(3)[1] == pytest.approx(bound * one.step(3)[1], rel=1e-6, abs=0)


def test_registering_again_changes_nothing() -> None:
    before = {entry.id: gymnasium.spec(entry.id) for entry in ENVIRONMENTS}
    register()
    assert {entry.id: gymnasium.spec(entry.id) for entry in ENVIRONMENTS} == before
    assert len(before) == len(ENVIRONMENTS) >= 6
    assert all(entry.summary for entry in ENVIRONMENTS)


def test_a_made_task_takes_no_parameters() -> None:
    with pytest.raises(ValueError, match="takes no parameters"):
        BanditEnv(SyntheticTask("constant"), horizon=7)


PROBLEM_FAULTS: list[tuple[str, Any, str]] = [
    ("kernel", "se", "a Kernel"),
    ("domain", np.linspace(0, 1, 5), r"points of \[0, 1\]\^d, in an array \(n, d\)"),
    ("domain", np.array([[0.5], [np.nan]]), "points of"),
    ("domain", np.array([[0.0], [9.0]]), "points of"),
    ("domain", np.zeros((0, 1)), "points of"),
    ("domain", [[0.5], [0.5, 0.5]], "points of"),
    ("domain", [["a"]], "points of"),
    ("noise_scale", "a", "a number"),
    ("horizon", 0, r"an int in \[1, 9007199254740992\]"),
    ("noise_scale", -1.0, r"in \[0, 1e\+30\]"),
    ("norm_bound", float("nan"), r"in \[0, 1e\+60\]"),
    ("variation_budget", np.array([1.0, -1.0]), r"in \[0, 1e\+60\]"),
]


@pytest.mark.parametrize(("name", "value", "rule"), PROBLEM_FAULTS, ids=lambda one: str(one)[:9])
def test_a_problem_that_cannot_be(name: str, value: Any, rule: str) -> None:
    good: dict[str, Any] = {
        "kernel": SquaredExponential(),
        "domain": np.linspace(0, 1, 5)[:, None],
        "horizon": 10,
        "noise_scale": 0.1,
    }
    BanditProblem(**good)
    with pytest.raises(ValueError, match=f"The '{name}' parameter of BanditProblem must be {rule}"):
        BanditProblem(**(good | {name: value}))


def test_what_a_learner_is_handed_cannot_be_changed(make_env: Make) -> None:
    problem = make_env("WGPBandit-Stock-v0").problem
    kernel = problem.kernel
    assert isinstance(kernel, Empirical)
    for array in (problem.domain, kernel.matrix):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.5


def test_a_domain_too_large_to_hold_is_refused(make_env: Make) -> None:
    with pytest.raises(ValueError, match=r"'dim' .* small enough .* at most 100,000\. Got 3"):
        make_env(ABRUPT, dim=3)
    with pytest.raises(ValueError, match=r"'points_per_dim' .* at most 100,000\. Got 1000"):
        make_env(ABRUPT, dim=2, points_per_dim=1000)


def test_problems_of_one_batch_share_their_kernel() -> None:
    domain = np.linspace(0, 1, 5)[:, None]
    pair = [BanditProblem(SquaredExponential(length), domain, 9, 0.1) for length in (0.1, 0.5)]
    with pytest.raises(ValueError, match="must share domain, kernel, horizon, continuous"):
        BanditProblem.stack(pair)


def test_a_problem_has_the_arms_of_its_kernel() -> None:
    with pytest.raises(ValueError, match=r"'domain' parameter .* must be the 3 arms of its kernel"):
        BanditProblem(Empirical(np.eye(3)), np.linspace(0, 1, 5)[:, None], 9, 0.1)


def test_equal_kernels_are_one_in_a_set() -> None:
    pair = [Empirical(np.array([[1.0, zero], [zero, 1.0]])) for zero in (0.0, -0.0)]
    assert pair[0] == pair[1]
    assert len(set(pair)) == 1


@pytest.mark.parametrize("seed", [1.7, "3", -1])
def test_what_is_no_seed(make_env: Make, seed: Any) -> None:
    vector = BanditVectorEnv(2, task=SYNTHETIC, schedule="constant")
    for env in (make_env(ABRUPT), vector):
        with pytest.raises(ValueError, match="A seed must be"):
            env.reset(seed=seed)


@pytest.mark.parametrize("seed", [-1, [0, -1]])
def test_seeds_below_0(seed: Any) -> None:
    with pytest.raises(ValueError, match=r"A seed must be at least 0\. Got "):
        BanditVectorEnv(2, task=SYNTHETIC, schedule="constant").reset(seed=seed)


def test_numpy_integers_are_seeds(make_env: Make) -> None:
    one, other = make_env(ABRUPT), make_env(ABRUPT)
    one.reset(seed=3)
    other.reset(seed=np.int64(3))  # type: ignore[arg-type]
    np.testing.assert_array_equal(one.expected_rewards(), other.expected_rewards())


def test_max_episode_steps_is_the_horizon() -> None:
    many: Any = gymnasium.make_vec("WGPBandit-Abrupt-v0", 2, max_episode_steps=30)
    assert many.unwrapped.problem.horizon == many.spec.max_episode_steps == 30
    many.reset(seed=1)
    over = [many.step(np.zeros(2, int))[3].all() for _ in range(30)]
    assert over == [False] * 29 + [True]
    again: Any = gymnasium.make_vec(many.spec)
    assert (again.num_envs, again.unwrapped.problem.horizon) == (2, 30)
    assert BanditEnv(SYNTHETIC, schedule="abrupt", max_episode_steps=7).problem.horizon == 7
    with pytest.raises(ValueError, match="'max_episode_steps' parameter of BanditVectorEnv must"):
        gymnasium.make_vec("WGPBandit-Abrupt-v0", 2, max_episode_steps=30, horizon=20)


def test_the_specification_tells_the_horizon() -> None:
    for entry in ENVIRONMENTS:
        env: Any = gymnasium.make(entry.id)
        assert env.spec.max_episode_steps == env.unwrapped.problem.horizon
        again: Any = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
        assert again.spec.max_episode_steps == again.unwrapped.problem.horizon
    env = gymnasium.make("WGPBandit-Abrupt-v0", horizon=30)
    assert env.spec.max_episode_steps == 30


def test_what_gymnasium_does_with_max_episode_steps() -> None:
    """`gymnasium.make` keeps the word for itself: the episode is cut short, T and f_t stay."""
    env: Any = gymnasium.make("WGPBandit-Abrupt-v0", max_episode_steps=30)
    bare: Any = gymnasium.make("WGPBandit-Abrupt-v0")
    assert env.unwrapped.problem.horizon == 500
    assert env.spec.max_episode_steps == 30
    env.reset(seed=1)
    bare.reset(seed=1)
    for step in range(30):
        found, expected = env.step(5), bare.step(5)
        np.testing.assert_array_equal(found[0], expected[0])
        assert (found[2], found[3]) == (False, step == 29)
