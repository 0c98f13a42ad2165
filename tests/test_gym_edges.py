"""Numbers at the edge and sizes beyond it: named ranges, right at both ends; errors before work."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from wgp_gym.envs import BanditEnv, BanditVectorEnv
from wgp_gym.envs.table import TableTask
from wgp_gym.fourier import FourierFeatures, quadrature_features, random_features
from wgp_gym.kernels import Empirical, Linear, Matern, ModifiedMatern, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.registration import LINEAR, SYNTHETIC
from wgp_gym.schedules import knot_per_step, piecewise_constant, piecewise_linear
from wgp_gym.validation import shown
from wgp_gym.wrappers import History, HistoryObservation

Make = Callable[..., BanditEnv]

ABRUPT, SLOW = "WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0"
TURN, JUMP = "WGPBandit-LinearSlow-v0", "WGPBandit-LinearAbrupt-v0"
ARMS, WAVES = "WGPBandit-ArmsAbrupt-v0", "WGPBandit-ArmsDrift-v0"
HUGE = [10**9, 2**63, 10**400, 10**5000]
LONG_SEARCH = {
    "dim": 2,
    "points_per_dim": 80,
    "horizon": 2000,
    "num_terms": 10**4,
    "continuous": True,
}

TOO_LARGE: list[tuple[str, str, dict[str, Any]]] = [
    *(
        (name, "horizon", {"horizon": huge})
        for name in (ABRUPT, SLOW, TURN, JUMP, ARMS, WAVES, "WGPBandit-Parking-v0")
        for huge in HUGE
    ),
    *((ABRUPT, name, {name: huge}) for name in ("dim", "points_per_dim") for huge in HUGE),
    *((SLOW, "num_terms", {"num_terms": huge}) for huge in HUGE),
    *((JUMP, name, {name: huge}) for name in ("dim", "num_arms") for huge in HUGE),
    *((ARMS, "num_arms", {"num_arms": huge}) for huge in HUGE),
    ("WGPBandit-Stock-v0", "kernel_days", {"kernel_days": 10**400}),
    (ABRUPT, "change_points", {"change_points": list(range(2, 600))}),
    (ABRUPT, "change_points", {"change_points": [10**400]}),
    (ABRUPT, "dim", {"dim": 7, "points_per_dim": 2, "continuous": True}),
    (SLOW, "horizon", {"horizon": 500_001}),
    (ABRUPT, "num_terms", {"dim": 2, "points_per_dim": 300, "num_terms": 10**5}),
    (SLOW, "continuous", LONG_SEARCH),
]


@pytest.mark.parametrize(("name", "blamed", "given"), TOO_LARGE, ids=shown)
def test_what_is_too_large_is_refused_at_once(
    make_env: Make, name: str, blamed: str, given: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=rf"^The '{blamed}.*' parameter of .* must be") as caught:
        make_env(name, **given)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("huge", HUGE, ids=shown)
def test_sizes_elsewhere(huge: int) -> None:
    kernel, domain = Linear(), np.zeros((1, 1))
    for make in (
        lambda: BanditVectorEnv(huge, task=SYNTHETIC, schedule="abrupt"),
        lambda: BanditProblem(kernel, domain, huge if huge > 2**53 else 2**53 + 1, 0.1),
        lambda: piecewise_constant(huge, []),
        lambda: piecewise_linear(huge),
        lambda: knot_per_step(huge),
        lambda: random_features(SquaredExponential(), 1, huge, 0),
        lambda: quadrature_features(SquaredExponential(), huge, 1),
        lambda: HistoryObservation(BanditEnv(SYNTHETIC, schedule="abrupt"), huge),
        lambda: History(3, 1, huge),
    ):
        with pytest.raises(ValueError, match=r"parameter of .* must be"):
            make()


def test_a_batch_of_episodes_is_held_or_refused() -> None:
    BanditVectorEnv(100, task=LINEAR, schedule="abrupt", contextual=True)
    with pytest.raises(ValueError, match=r"'num_envs' .* at most 7\d\d for episodes of this size"):
        BanditVectorEnv(1000, task=LINEAR, schedule="abrupt", contextual=True)


@pytest.mark.parametrize("length", [1e-9, 1e9])
@pytest.mark.parametrize("kind", [SquaredExponential, Matern, ModifiedMatern])
def test_the_ends_of_the_lengthscale(kind: Any, length: float) -> None:
    X = np.linspace(0, 1, 7)[:, None]
    K = kind(length)(X, X)
    np.testing.assert_allclose(K, np.eye(7) if length < 1 else np.ones((7, 7)), atol=1e-8)
    assert (K.diagonal() == 1).all()
    for beyond in (length * (1 - 1e-9) if length < 1 else length * (1 + 1e-9), 1e-163, 1e160):
        with pytest.raises(ValueError, match=r"'lengthscale' .* in \[1e-09, 1e\+09\]"):
            kind(beyond)


def test_a_kernel_keeps_floats() -> None:
    short: Any = np.float16(0.001)  # in half precision its square is zero
    smoothness: Any = np.float32(1.5)
    kernel = Matern(short, smoothness)
    assert (type(kernel.lengthscale), type(kernel.nu)) == (float, float)
    assert np.isfinite(SquaredExponential(short)(np.eye(2), np.eye(2))).all()


@pytest.mark.parametrize("name", ["se", "linear"])
def test_parameters_that_do_nothing_are_checked_too(make_env: Make, name: str) -> None:
    with pytest.raises(ValueError, match="'nu' parameter"):
        make_env(ABRUPT, kernel=name, nu=-1)
    with pytest.raises(ValueError, match="'lengthscale' parameter"):
        make_env(ABRUPT, kernel=name, lengthscale=float("nan"))


def asked(env: BanditEnv) -> tuple[float, float]:
    """Play an episode; return the largest norm and the variation that it had."""
    env.reset(seed=0)
    for _ in range(env.problem.known_horizon("a test")):
        info = env.step(1)[4]
        assert np.isfinite(list(info.values())).all()
        assert info["regret"] >= 0
    bound = env.problem.norm_bound
    assert isinstance(bound, float)
    return bound, info["variation"]


@pytest.mark.parametrize("name", [ABRUPT, SLOW, TURN, JUMP])
@pytest.mark.parametrize("size", [1e-99, 1e-30, 1.0, 1e30])
def test_the_ends_of_norms_and_variation(make_env: Make, name: str, size: float) -> None:
    rest: dict[str, Any] = {"horizon": 12, "noise_std": 0.0}
    assert asked(make_env(name, norm_bound=size, **rest))[0] == pytest.approx(size, rel=1e-6)
    both = make_env(name, norm_bound=size, variation_budget=0.1 * size, **rest)
    assert asked(both)[1] == pytest.approx(0.1 * size, rel=1e-6)
    if size < 1e-50:
        assert asked(make_env(name, norm_bound=1e-100, **rest))[0] == 1e-100
    if size >= 1e-6:  # beside a first function that stays
        alone = make_env(name, variation_budget=size, **rest)
        assert asked(alone)[1] == pytest.approx(size, rel=1e-6)


LOST = "'variation_budget' parameter of this episode must be large enough not to be lost in round"


@pytest.mark.parametrize("name", [ABRUPT, SLOW, TURN])
def test_a_variation_that_rounding_swallows(make_env: Make, name: str) -> None:
    for given in ({"norm_bound": 1e30, "variation_budget": 0.1}, {"variation_budget": 1e-30}):
        env = make_env(name, horizon=9, **given)
        with pytest.raises(ValueError, match=LOST):
            env.reset(seed=0)


def test_a_table_whose_variation_rounding_swallows(make_env: Make) -> None:
    with pytest.raises(ValueError, match=LOST):
        make_env("WGPBandit-Parking-v0", norm_bound=1e30, variation_budget=0.1)


OUT_OF_RANGE: list[tuple[str, str, dict[str, Any]]] = [
    *((ABRUPT, name, {name: 5e-324}) for name in ("norm_bound", "variation_budget")),
    *((ABRUPT, name, {name: 9.9e-101}) for name in ("norm_bound", "variation_budget")),
    (TURN, "theta", {"theta": [[1e-300, 0]]}),
    (TURN, "theta", {"theta": [[1.0, 0, 0], [1.0, 1e-9, 0]], "dim": 3}),
    (JUMP, "theta", {"theta": [[1.0, 0], [1e300, 0]], "change_points": [3]}),
    (JUMP, "theta", {"theta": [[1.0, 0], [1e-101, 0]], "change_points": [3]}),
    (TURN, "angle", {"angle": 1e-7}),
    (ARMS, "means", {"means": [[0.5, 1e-300]], "change_points": []}),
    (WAVES, "amplitude", {"amplitude": 1e-7}),
    (WAVES, "cycles", {"cycles": 1e-7}),
    (WAVES, "cycles", {"cycles": 1.1e6}),
    (WAVES, "phases", {"phases": [1.1e6, 0.0]}),
    ("WGPBandit-Parking-v0", "nugget", {"nugget": 1.1e6}),
    ("WGPBandit-Table-v0", "nugget", {"kernel": "se", "lengthscale": 9.0, "nugget": 5e-324}),
]


@pytest.mark.parametrize(("name", "blamed", "given"), OUT_OF_RANGE, ids=str)
def test_out_of_range(make_env: Make, name: str, blamed: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"The '{blamed}' parameter of \w+ must be"):
        make_env(name, **{"horizon": 9} | given)


IN_RANGE: list[tuple[str, dict[str, Any], float]] = [
    (TURN, {"theta": [[1e-100, 0]]}, 1e-100 * np.pi / 2),
    (TURN, {"theta": [[1, 0, 0], [1e-100, 0, 1e-100]], "dim": 3}, np.pi / 2),
    (TURN, {"theta": [[1.0, 0]], "angle": 1e-6}, 1e-6),
    (JUMP, {"theta": [[1e-100, 0], [-1e-100, 0]], "change_points": [3]}, 2e-100),
    (ARMS, {"means": [[1e-100, 0], [0, 0]], "change_points": [3]}, 1e-100),
    (WAVES, {"phases": [1e6, 1e6 - np.pi], "cycles": 1.0, "amplitude": 1e-6}, 5.5e-6),
    (WAVES, {"phases": [0.0, np.pi], "cycles": 1e-6}, 0.5 * 2**0.5 * 2e-6 * np.pi * 0.99),
    ("WGPBandit-Parking-v0", {"nugget": 1e6}, np.nan),
]


@pytest.mark.parametrize(("name", "given", "variation"), IN_RANGE, ids=str)
def test_the_ends_of_other_ranges(
    make_env: Make, name: str, given: dict[str, Any], variation: float
) -> None:
    found = asked(make_env(name, **{"horizon": 100} | given))[1]
    assert found > 0
    if np.isfinite(variation):  # of a curve, in steps
        assert found == pytest.approx(variation, rel=0.05)


def test_an_arm_stands_somewhere() -> None:
    kernel = Empirical(np.eye(3))
    assert kernel.diagonal(np.array([[np.float32(0.5)], [1.0]])).tolist() == [1.0, 1.0]
    for place in (0.3, -0.5, 1.5, np.nan):
        with pytest.raises(ValueError, match=r"'X' .* places i / \(n - 1\) of its arms"):
            kernel.diagonal(np.array([[place]]))


@pytest.mark.parametrize("value", [1.1e30, np.inf, np.nan])
def test_fourier_features_are_finite(value: float) -> None:
    with pytest.raises(ValueError, match=r"'frequencies' .* finite"):
        FourierFeatures(np.array([[value]]), np.ones(1))
    with pytest.raises(ValueError, match=r"'weights' .* 1 numbers of at least 0"):
        FourierFeatures(np.ones((1, 1)), np.array([value]))
    waves = FourierFeatures(np.array([[1e30]]), np.array([1e30]))
    assert np.sum(waves(np.array([[1.0]])) ** 2) == pytest.approx(1e30)


@pytest.mark.parametrize("value", [1.1e30, np.inf, np.nan, 1e-101])
def test_tables_within_what_can_be_shown(value: float) -> None:
    with pytest.raises(ValueError, match="'rewards' parameter of TableTask"):
        TableTask(np.array([[value, 0.0]]), np.eye(2))


def test_a_problem_in_range() -> None:
    for name, top in (("noise_scale", 1e30), ("norm_bound", 1e60), ("variation_budget", 1e60)):
        good: dict[str, Any] = {"noise_scale": 0.1} | {name: top}
        BanditProblem(Linear(), np.zeros((1, 1)), 2**53, **good)
        with pytest.raises(ValueError, match=rf"'{name}' .* in \[0, 1e\+[36]0\]"):
            BanditProblem(Linear(), np.zeros((1, 1)), 9, **good | {name: 1.1 * top})


def test_rewards_over_a_scale_stay_in_single_precision() -> None:
    for scale in (1e-20, 1e30):
        shown = History(2, 1, 1, scale).push(np.array([[0.5, 1, 0.5, 1e12]], np.float32))
        assert np.isfinite(shown).all()
        with pytest.raises(ValueError, match="'reward_scale' parameter of History"):
            History(2, 1, 1, scale * (0.9 if scale < 1 else 1.1))


def test_the_specification_can_be_written(make_env: Make) -> None:
    given: dict[str, Any] = {
        "horizon": np.int64(9),
        "change_points": np.array([3, 5]),
        "noise_std": np.float32(0.5),
    }
    for env in (
        gymnasium.make(ABRUPT, **given),
        gymnasium.make_vec(
            ABRUPT, 2, autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED, **given
        ),
    ):
        assert env.spec is not None
        again = gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json())
        assert again.kwargs["change_points"] == [3, 5]
        assert again.kwargs["horizon"] == 9


BAD_ACTIONS: list[Any] = [
    [[0.5], [0.5, 0.5]],
    np.ma.masked,
    np.ma.masked_equal([0.5, -1.0], -1.0)[1:],
    [np.ma.masked],
    [True],
    np.True_,
    b"1",
    bytearray(b"\x01"),
    1j,
    10**400,
    [10**5000],
    "x" * 10**6,
    np.zeros(10**6),
]


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("action", BAD_ACTIONS, ids=shown)
def test_actions_that_are_none(make_env: Make, action: Any, continuous: bool) -> None:
    single, vector = (
        make_env(ABRUPT, continuous=continuous),
        BanditVectorEnv(1, task=SYNTHETIC, schedule="abrupt"),
    )
    for env in (single, vector):
        env.reset(seed=0)
        with pytest.raises(ValueError, match="The action must be in") as caught:
            env.step(action)
        assert len(str(caught.value)) < 250


NO_SEEDS = [True, np.True_, [True], 1.0, "x" * 10**6, -(10**5000), np.ma.masked]


@pytest.mark.parametrize("seed", NO_SEEDS, ids=shown)
def test_seeds_that_are_none(make_env: Make, seed: Any) -> None:
    with pytest.raises(ValueError, match=r"A seed must be|must be 1 seeds") as caught:
        make_env(ABRUPT).reset(seed=seed)
    assert len(str(caught.value)) < 250


def test_a_batch_with_a_masked_arm() -> None:
    vector = BanditVectorEnv(2, task=SYNTHETIC, schedule="abrupt")
    vector.reset(seed=0)
    masked = np.ma.masked_equal([1, 2], 2)
    for action in (masked, [1, True], [np.array(1), np.array(True)]):
        with pytest.raises(ValueError, match="The action must be in MultiDiscrete"):
            vector.step(action)
    assert vector.step(np.ma.array([1, 2]))[4]["t"].tolist() == [1, 1]
