"""Independent arms: means that jump or go in waves, against the numbers worked by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_gym.envs import ArmsTask, BanditEnv

Make = Callable[..., BanditEnv]
Array = NDArray[np.float64]

ABRUPT, DRIFT = "WGPBandit-ArmsAbrupt-v0", "WGPBandit-ArmsDrift-v0"
# Garivier and Moulines (2011), at a tenth of its length.
SWITCHING: dict[str, Any] = {
    "means": [[0.5, 0.3, 0.4], [0.5, 0.3, 0.9], [0.5, 0.3, 0.4]],
    "change_points": [300, 500],
    "horizon": 1000,
}

MANY: dict[str, Any] = {
    "num_arms": 100,
    "horizon": 10**6,
    "change_points": list(range(2, 500_004)),
}


def means_of(env: BanditEnv, seed: int) -> tuple[Array, list[dict[str, Any]]]:
    """Return the means that every step meets, `(T, K)`, and the infos."""
    env.reset(seed=seed)
    means, infos = [], []
    for _ in range(env.problem.known_horizon("a test")):
        means.append(env.expected_rewards())
        infos.append(env.step(0)[4])
    return np.array(means), infos


def check_books(env: BanditEnv, means: Array, infos: list[dict[str, Any]]) -> None:
    """Compare the infos and the problem with what the means alone say."""
    moved = np.diff(means, axis=0, prepend=means[:1])
    spent = np.cumsum(np.sqrt((moved**2).sum(axis=1)))
    np.testing.assert_allclose([info["variation"] for info in infos], spent, rtol=1e-9)
    highest = np.cumsum(np.abs(moved).max(axis=1))
    np.testing.assert_allclose([info["sup_variation"] for info in infos], highest, rtol=1e-9)
    assert [info["changed"] for info in infos] == moved.any(axis=1).tolist()
    assert [info["optimal_reward"] for info in infos] == means.max(axis=1).tolist()
    assert env.problem.norm_bound == pytest.approx(np.linalg.norm(means, axis=1).max())
    assert env.problem.variation_budget == pytest.approx(spent[-1])


def test_the_problem(make_env: Make) -> None:
    problem = make_env(ABRUPT).problem
    assert (problem.horizon, len(problem.domain)) == (5000, 10)
    np.testing.assert_allclose(problem.domain[:, 0], np.arange(10) / 9, atol=1e-15)
    np.testing.assert_array_equal(problem.kernel(problem.domain, problem.domain), np.eye(10))
    assert make_env(ABRUPT).task.schedule.index[[999, 1000, 1999, 2000, 4000]].tolist() == [
        0,
        1,
        1,
        2,
        4,
    ]


def test_given_means(make_env: Make) -> None:
    env = make_env(ABRUPT, **SWITCHING)
    means, infos = means_of(env, 0)
    expected = np.repeat(SWITCHING["means"], [299, 200, 501], axis=0)
    np.testing.assert_array_equal(means, expected)
    check_books(env, means, infos)
    assert infos[-1]["variation"] == pytest.approx(1.0)
    assert [t + 1 for t in range(1000) if infos[t]["changed"]] == [300, 500]


def test_drawn_means(make_env: Make) -> None:
    env = make_env(ABRUPT, horizon=10, num_arms=200)
    means, infos = means_of(env, 1)
    check_books(env, means, infos)
    segments = means[::2]
    np.testing.assert_array_equal(means, np.repeat(segments, 2, axis=0))
    assert len(np.unique(segments)) == 1000  # all of them anew
    # 1,000 uniform numbers: the largest gap to their distribution is below 0.06 (p = 0.001).
    gap = np.abs(np.sort(segments.ravel()) - (np.arange(1000) + 0.5) / 1000).max()
    assert gap < 0.06


def test_few_arms_change(make_env: Make) -> None:
    env = make_env(ABRUPT, horizon=5, num_arms=12, changing_arms=3)
    counts = np.zeros(12)
    for seed in range(100):
        means, _ = means_of(env, seed)
        moved = np.diff(means, axis=0) != 0
        assert (moved.sum(axis=1) == 3).all()
        counts += moved.sum(axis=0)
    # 400 changes, a quarter of them to each arm: four standard deviations of the binomial.
    assert np.abs(counts - 100).max() < 4 * np.sqrt(400 * 0.25 * 0.75)


def test_waves_by_hand(make_env: Make) -> None:
    phases = [0.0, np.pi]
    env = make_env(DRIFT, phases=phases, cycles=1.5, horizon=30, amplitude=0.4)
    means, infos = means_of(env, 0)
    t = np.arange(1, 31)
    wave = 0.4 * np.sin(3 * np.pi * t / 30)
    np.testing.assert_allclose(means, np.stack([0.5 + wave, 0.5 - wave], axis=1), atol=1e-14)
    check_books(env, means, infos)


def test_usual_waves(make_env: Make) -> None:
    """One period and a half, as high as means can go."""
    means, _ = means_of(make_env(DRIFT, phases=[0.0, 1.0], horizon=30), 0)
    wave = 0.5 * np.sin(3 * np.pi * np.arange(1, 31) / 30)
    np.testing.assert_allclose(means[:, 0], 0.5 + wave, atol=1e-14)


def test_drawn_phases(make_env: Make) -> None:
    env = make_env(DRIFT, horizon=40, num_arms=500, cycles=2)
    means, infos = means_of(env, 3)
    check_books(env, means, infos)
    # After a quarter of a period the sine is a cosine: both show the phase.
    phases = np.arctan2(2 * means[19] - 1, 2 * means[4] - 1) % (2 * np.pi)
    np.testing.assert_allclose((2 * means[19] - 1) ** 2 + (2 * means[4] - 1) ** 2, 1.0)
    gap = np.abs(np.sort(phases) / (2 * np.pi) - (np.arange(500) + 0.5) / 500).max()
    assert gap < 0.087  # 500 uniform numbers: p = 0.001


@pytest.mark.parametrize("name", [ABRUPT, DRIFT])
def test_bounds_are_met(make_env: Make, name: str) -> None:
    env = make_env(name, horizon=20, norm_bound=0.7)
    check_books(env, *means_of(env, 0))
    assert env.problem.norm_bound == 0.7
    env = make_env(name, horizon=20, variation_budget=0.1)
    means, infos = means_of(env, 0)
    check_books(env, means, infos)
    assert env.problem.variation_budget == pytest.approx(0.1)


@pytest.mark.parametrize("reward", ["bernoulli", "gaussian"])
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"norm_bound": 9.0}, "norm_bound"),
        ({"variation_budget": 99.0}, "variation_budget"),
        ({"variation_budget": 20.0, "norm_bound": 20.0}, "variation_budget"),
        ({"variation_budget": 0.01, "norm_bound": 9.0}, "norm_bound"),
    ],
    ids=str,
)
def test_a_mean_carried_outside(
    make_env: Make, given: dict[str, float], named: str, reward: str
) -> None:
    env = make_env(ABRUPT, reward=reward, **given)
    with pytest.raises(ValueError, match=f"'{named}' parameter of ArmsTask must be such that ev"):
        env.reset(seed=0)


def test_a_mean_may_reach_0_and_go_no_further(make_env: Make) -> None:
    given: dict[str, Any] = {"means": [[0.7, 0.5], [0.4, 0.5]], "change_points": [6], "horizon": 9}
    means, _ = means_of(make_env(ABRUPT, **given, variation_budget=0.7), 0)
    assert means.min() == pytest.approx(0.0, abs=1e-15)  # -1e-16
    with pytest.raises(ValueError, match="'variation_budget' parameter of ArmsTask must be such"):
        make_env(ABRUPT, **given, variation_budget=0.701).reset(seed=0)


@pytest.mark.parametrize(
    ("schedule", "given", "match"),
    [
        (
            "walks",
            {},
            "'schedule' parameter of ArmsTask must be one of 'abrupt', 'sinusoidal'",
        ),
        ("abrupt", {"num_arms": 1}, r"'num_arms' .* an int in \[2, 1000\]"),
        ("abrupt", {"num_arms": 1001}, r"'num_arms' .* an int in \[2, 1000\]"),
        (
            "abrupt",
            {"means": [[0.5, 1.1]], "change_points": []},
            r"'means' .* in \[0, 1\]",
        ),
        ("abrupt", {"means": [0.5, 0.1]}, "'means' .* lists of numbers"),
        ("abrupt", {"means": [[0.5, 0.1], [0.5]]}, "'means' .* lists of numbers"),
        ("abrupt", {"means": [[float("nan"), 0.1]]}, "'means' .* lists of numbers"),
        ("abrupt", {"means": [[0.5, 0.1]]}, "'means' .* each of the 5 segments"),
        ("abrupt", {"means": [[0.5, 0.1]] * 6}, "'means' .* each of the 5 segments"),
        (
            "abrupt",
            {"means": [[0.5]], "change_points": []},
            r"'means' .* 2 to 1000 in each\. Got",
        ),
        (
            "abrupt",
            {"means": [[0.5] * 1001], "change_points": []},
            "'means' .* 2 to 1000 in each",
        ),
        (
            "sinusoidal",
            {"phases": [0]},
            r"'phases' .* numbers in .*, 2 to 1000 of them\. Got \[0\]",
        ),
        ("sinusoidal", {"phases": [0.0] * 1001}, "'phases' .* 2 to 1000 of them"),
        (
            "abrupt",
            {"cycles": 1.5},
            "'cycles' .* None for the schedule 'abrupt'",
        ),
        (
            "abrupt",
            {"amplitude": 0.5},
            "'amplitude' .* None for the schedule 'abrupt'",
        ),
        ("abrupt", {"noise_std": 0.1}, "'noise_std' .* None where rewards are 0 or 1"),
        ("sinusoidal", {"noise_std": 0.1}, "'noise_std' .* None where rewards are 0 or 1"),
        (
            "sinusoidal",
            {"horizon": 10**12},
            "'horizon' .* num_arms x horizon is at most 50,000,000",
        ),
        (
            "sinusoidal",
            {"num_arms": 1000, "horizon": 50_001},
            "'num_arms' .* num_arms x horizon is at",
        ),
        (
            "abrupt",
            {"horizon": 10**12},
            "'horizon' .* such that horizon is at most 50,000,000",
        ),
        (
            "abrupt",
            MANY,
            "'change_points' .* num_arms x change_points is at most 50,000,000. Got 5",
        ),
        (
            "abrupt",
            SWITCHING | {"num_arms": 4},
            "'num_arms' .* 3, as many as means has",
        ),
        (
            "abrupt",
            SWITCHING | {"changing_arms": 2},
            "'changing_arms' .* None where means are",
        ),
        ("abrupt", {"changing_arms": 11}, r"'changing_arms' .* an int in \[1, 10\]"),
        (
            "abrupt",
            {"phases": [0.0, 1.0]},
            "'phases' .* None for the schedule 'abrupt'",
        ),
        ("abrupt", {"change_points": 7}, "'change_points' .* a list of steps"),
        ("abrupt", {"change_points": [9, 3]}, "'change_points' .* strictly increasing"),
        (
            "sinusoidal",
            {"change_points": [9]},
            "'change_points' .* None for the schedule 'sinusoidal'",
        ),
        ("sinusoidal", {"means": [[0.5, 0.1]]}, "'means' .* None for the schedule 'sinusoidal'"),
        (
            "sinusoidal",
            {"changing_arms": 2},
            "'changing_arms' .* None for the schedule 'sinusoidal'",
        ),
        ("sinusoidal", {"phases": [[0.0, 1.0]]}, "'phases' .* a list of finite numbers"),
        ("sinusoidal", {"phases": [0.0, float("inf")]}, "'phases' .* a list of finite numbers"),
        ("sinusoidal", {"phases": [0.0, 1.0], "num_arms": 3}, "'num_arms' .* 2, as many as phases"),
        ("sinusoidal", {"cycles": 0}, r"'cycles' .* a float in \[1e-06"),
        ("sinusoidal", {"amplitude": 0.6}, r"'amplitude' .* a float in \[0, 0.5\]"),
        ("sinusoidal", {"horizon": 0}, "'horizon' .* an int of at least 1"),
        ("sinusoidal", {"reward": "beta"}, "'reward' .* one of 'gaussian', 'bernoulli'"),
    ],
    ids=lambda one: str(one)[:60],
)
def test_refused(schedule: Any, given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ArmsTask(schedule, **given)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        (ABRUPT, {"means": [[0.5, 0.5 + 1e-6]], "change_points": []}),
        (ABRUPT, {"means": [[0.1, 0.9], [0.5, 0.6]], "change_points": [3], "norm_bound": 1e-43}),
        (DRIFT, {"amplitude": 1e-5}),
    ],
)
def test_means_that_rounding_would_make_alike(
    make_env: Make, name: str, given: dict[str, Any]
) -> None:
    """Where rewards are 0 or 1 there is nothing to round."""
    make_env(name, **given).reset(seed=0)
    env = make_env(name, **given, reward="gaussian")
    with pytest.raises(
        ValueError, match=r"ArmsTask must differ .* single .* Set the means further"
    ):
        env.reset(seed=0)


def test_means_that_rounding_leaves(make_env: Make) -> None:
    for means in ([[0.5, 0.5001]], [[0.5, 0.5]], [[0.0, 0.0]]):
        env = make_env(ABRUPT, means=means, change_points=[], reward="gaussian", noise_std=0.0)
        for arm in range(2):
            env.reset(seed=0)
            assert abs(env.step(arm)[1] - means[0][arm]) <= 1e-7
