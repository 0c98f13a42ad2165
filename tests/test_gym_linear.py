"""Linear bandits: theta recovered from the expected rewards, and what it says of all the rest."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_gym.envs import BanditEnv, LinearTask
from wgp_gym.kernels import CentredLinear

Make = Callable[..., BanditEnv]
Array = NDArray[np.float64]

ABRUPT, SLOW, CONTEXTUAL = (
    f"WGPBandit-Linear{name}-v0" for name in ("Abrupt", "Slow", "Contextual")
)
PAPER = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
STEPS = list(range(2, 500_004))
MANY: dict[str, Any] = {"horizon": 10**6, "change_points": list(range(2, 10**6))}
KINDS: list[dict[str, Any]] = [
    {"contextual": contextual, "link": link, "dim": dim, "num_arms": 2 * dim}
    for contextual in (False, True)
    for link in ("identity", "logistic")
    for dim in (2, 3)
]


def arms_of(env: BanditEnv, observation: NDArray[np.float32]) -> Array:
    """Return the arms x on the sphere that the next action chooses from, `(n, d)`."""
    n, d = env.problem.domain.shape
    shown = observation[3 + d :].reshape(n, d) if env.problem.contextual else env.problem.domain
    return 2 * shown.astype(float) - 1


def play(env: BanditEnv, seed: int = 7) -> tuple[Array, list[dict[str, Any]], list[Array]]:
    """Play an episode; return theta of every step by least squares, the infos and the arms."""
    observation, _ = env.reset(seed=seed)
    rng = np.random.default_rng(0)
    infos, seen, table = [], [], []
    for _ in range(env.problem.known_horizon("a test")):
        arms, expected = arms_of(env, observation), env.expected_rewards()
        action = int(rng.integers(len(arms)))
        observation, _, _, _, info = env.step(action)
        assert info["expected_reward"] == expected[action]
        assert info["optimal_reward"] == expected.max()
        assert info["optimal_action"] == expected.argmax()
        infos.append(info)
        seen.append(arms)
        table.append(expected)
    values = np.array(table)
    if env.problem.link == "logistic":
        values = np.log(values / (1 - values))
    same = not env.problem.contextual
    inverse = np.linalg.pinv(seen[0] if same else np.array(seen))
    theta = (inverse @ values[:, :, None])[:, :, 0]
    np.testing.assert_allclose((np.array(seen) @ theta[:, :, None])[:, :, 0], values, atol=1e-12)
    return theta, infos, seen


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", [ABRUPT, SLOW])
@pytest.mark.parametrize("more", [{}, {"norm_bound": 2.0}, {"variation_budget": 0.4}], ids=str)
def test_books(make_env: Make, name: str, kind: dict[str, Any], more: dict[str, float]) -> None:
    env = make_env(name, horizon=24, **kind, **more)
    theta, infos, arms = play(env)
    moved = np.diff(theta, axis=0, prepend=theta[:1])
    steps = np.sqrt((moved**2).sum(axis=1))
    assert [info["changed"] for info in infos] == (steps > 1e-9).tolist()
    np.testing.assert_allclose([info["variation"] for info in infos], np.cumsum(steps), atol=1e-9)
    if kind["contextual"]:
        highest = steps * (1.0 if kind["link"] == "identity" else 0.25)
    else:
        table = theta @ arms[0].T
        if kind["link"] == "logistic":
            table = 1 / (1 + np.exp(-table))
        highest = np.abs(np.diff(table, axis=0, prepend=table[:1])).max(axis=1)
    spent = [info["sup_variation"] for info in infos]
    np.testing.assert_allclose(spent, np.cumsum(highest), atol=1e-9)
    norms = np.linalg.norm(theta, axis=1)
    assert env.problem.norm_bound == pytest.approx(more.get("norm_bound", norms.max()))
    assert norms.max() == pytest.approx(env.problem.norm_bound)
    assert env.problem.variation_budget == pytest.approx(steps.sum())
    assert steps.sum() == pytest.approx(more.get("variation_budget", steps.sum()))
    if not more:
        np.testing.assert_allclose(norms, 1.0, atol=1e-9)


def test_both_bounds(make_env: Make) -> None:
    env = make_env(ABRUPT, horizon=24, norm_bound=0.8, variation_budget=0.3)
    theta, infos, _ = play(env)
    assert np.linalg.norm(theta, axis=1).max() == pytest.approx(0.8)
    assert infos[-1]["variation"] == pytest.approx(0.3)
    with pytest.raises(ValueError, match=r"'variation_budget' .* within norm_bound = 0\.1"):
        make_env(ABRUPT, norm_bound=0.1, variation_budget=9.0).reset(seed=0)


@pytest.mark.slow
def test_the_abrupt_task_of_the_paper(make_env: Make) -> None:
    """Russac, Vernade, Cappe: new vectors at 1001, 2001 and 3001, a variation of 4 + sqrt 2."""
    env = make_env(ABRUPT, theta=PAPER)
    assert (env.problem.horizon, env.problem.noise_scale) == (6000, 1.0)
    theta, infos, _ = play(env)
    np.testing.assert_allclose(theta, np.repeat(PAPER, [1000, 1000, 1000, 3000], 0), atol=1e-9)
    assert [info["t"] for info in infos if info["changed"]] == [1001, 2001, 3001]
    assert env.problem.variation_budget == pytest.approx(4 + np.sqrt(2))


def test_the_slow_task_of_the_paper(make_env: Make) -> None:
    """A right angle in the first half, counter-clockwise from (1, 0); at a tenth of its length."""
    env = make_env(SLOW, theta=[[1.0, 0.0]], horizon=600)
    theta, infos, _ = play(env)
    angle = np.minimum(np.arange(600) / 300, 1) * np.pi / 2
    expected = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    np.testing.assert_allclose(theta, expected, atol=1e-9)
    assert [info["t"] for info in infos if info["changed"]] == list(range(2, 302))
    chord = 2 * np.sin(np.pi / 1200)
    assert env.problem.variation_budget == pytest.approx(300 * chord)


@pytest.mark.parametrize("dim", [2, 4])
@pytest.mark.parametrize("angle", [0.3, 2.0])
def test_a_drawn_rotation(make_env: Make, dim: int, angle: float) -> None:
    env = make_env(SLOW, dim=dim, angle=angle, horizon=21)
    turns = []
    for seed in range(12):
        theta, _, _ = play(env, seed)
        cosines = np.clip(theta @ theta[0], -1, 1)
        expected = np.minimum(np.arange(21) / 10, 1) * angle
        np.testing.assert_allclose(np.arccos(cosines), expected, atol=1e-6)
        assert np.linalg.matrix_rank(theta, tol=1e-9) == 2  # a plane
        turns.append(theta[0, 0] * theta[-1, 1] - theta[0, 1] * theta[-1, 0] > 0)
    assert 0 < sum(turns) < 12  # either way: all one way in 2 of 4096 draws of the plane


def test_the_usual_angle(make_env: Make) -> None:
    theta, _, _ = play(make_env(SLOW, horizon=8))
    np.testing.assert_allclose(theta[0] @ theta[-1], 0.0, atol=1e-9)
    np.testing.assert_array_equal(theta, play(make_env(SLOW, horizon=8, angle=np.pi / 2))[0])


@pytest.mark.parametrize("bound", [{"norm_bound": 3.0}, {"variation_budget": 9.0}], ids=str)
def test_bounds_may_carry_theta_out_of_the_ball(make_env: Make, bound: dict[str, float]) -> None:
    theta, _, _ = play(make_env(ABRUPT, horizon=12, theta=PAPER, **bound))
    assert np.linalg.norm(theta, axis=1).max() > 1.1


def test_a_rotation_towards_a_vector(make_env: Make) -> None:
    env = make_env(SLOW, dim=3, theta=[[0.5, 0, 0], [0.1, 0, 0.3]], horizon=9)
    theta, _, _ = play(env)
    np.testing.assert_allclose(theta[0], [0.5, 0, 0], atol=1e-12)
    np.testing.assert_allclose(theta[4:], [[0, 0, 0.5]] * 5, atol=1e-12)


@pytest.mark.parametrize(("horizon", "moves"), [(1, 0), (2, 1), (3, 1), (4, 2), (7, 3)])
def test_short_rotations(make_env: Make, horizon: int, moves: int) -> None:
    _, infos, _ = play(make_env(SLOW, horizon=horizon))
    assert [info["changed"] for info in infos] == [1 <= t <= moves for t in range(horizon)]


@pytest.mark.parametrize(("horizon", "steps"), [(1, []), (2, [2]), (3, [2, 3])])
def test_short_jumps(make_env: Make, horizon: int, steps: list[int]) -> None:
    """Of the usual change points, those within 2 .. T, each once."""
    _, infos, _ = play(make_env(ABRUPT, horizon=horizon))
    assert [info["t"] for info in infos if info["changed"]] == steps


@pytest.mark.slow
def test_uniform_on_the_circle(make_env: Make) -> None:
    """Angles of drawn vectors and arms: a resultant of 600 uniform ones is below 64 (p = 0.001)."""
    env = make_env(CONTEXTUAL, horizon=6, num_arms=100)
    thetas, _, arms = play(env)
    drawn = np.concatenate([play(env, seed)[0][[0, 1, 2, 5]] for seed in range(150)])
    for points in (np.concatenate(arms), drawn):
        assert len(points) == 600
        np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0, atol=3e-7)
        assert np.linalg.norm(points.sum(axis=0)) < 64
        doubled = 2 * np.arctan2(points[:, 1], points[:, 0])
        assert np.hypot(np.cos(doubled).sum(), np.sin(doubled).sum()) < 64
    assert len(thetas) == 6


def test_fixed_arms_are_the_tasks(make_env: Make) -> None:
    one, same = make_env(ABRUPT), make_env(SLOW)
    np.testing.assert_array_equal(one.problem.domain, same.problem.domain)
    other = make_env(ABRUPT, arms_seed=1)
    assert (one.problem.domain != other.problem.domain).all()
    np.testing.assert_allclose(np.linalg.norm(2 * one.problem.domain - 1, axis=1), 1.0)
    assert one.problem.kernel == CentredLinear()
    assert one.problem.domain.shape == (50, 2)


def test_contextual_arms_have_a_stream_of_their_own(make_env: Make) -> None:
    """Theta and noise of an episode are the same with arms that stay."""
    drawn, fixed = make_env(CONTEXTUAL, horizon=12), make_env(ABRUPT, horizon=12)
    theta, _, arms = play(drawn)
    np.testing.assert_allclose(theta, play(fixed)[0], atol=1e-6)
    drawn.reset(seed=3)
    fixed.reset(seed=3)
    for _ in range(12):
        (_, y, _, _, a), (_, z, _, _, b) = drawn.step(0), fixed.step(1)
        assert y - a["expected_reward"] == pytest.approx(z - b["expected_reward"], abs=1e-6)
    assert len(np.unique(np.concatenate(arms), axis=0)) == 12 * 50


def test_vectors_of_norm_1_may_be_rounded(make_env: Make) -> None:
    theta = [[0.7071067812, 0.7071067812]]  # of norm 1 + 2e-11
    np.testing.assert_allclose(play(make_env(SLOW, horizon=4, theta=theta))[0][0], theta[0])


def test_rewards_of_the_logistic_link(make_env: Make) -> None:
    env = make_env(CONTEXTUAL, link="logistic", norm_bound=3.0, horizon=4000, num_arms=2)
    assert (env.problem.noise_scale, env.problem.reward_range) == (0.5, (0.0, 1.0))
    assert (env.problem.link, env.problem.contextual) == ("logistic", True)
    env.reset(seed=1)
    score = []
    for _ in range(4000):
        _, reward, _, _, info = env.step(0)
        assert reward in (0.0, 1.0)
        p = info["expected_reward"]
        score.append((reward - p) / np.sqrt(p * (1 - p)))
    assert abs(np.mean(score)) < 4 / np.sqrt(4000)
    assert abs(np.mean(np.square(score)) - 1) < 0.15


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "given", "match"),
    [
        (
            "walk",
            {},
            "'schedule' parameter of LinearTask must be one of 'abrupt', 'rotation'",
        ),
        ("abrupt", {"link": "probit"}, "'link' .* one of 'identity', 'logistic'"),
        ("abrupt", {"dim": 1}, r"'dim' .* an int in \[2, 1000\]"),
        ("abrupt", {"num_arms": 1}, "'num_arms' .* an int of at least 2"),
        (
            "abrupt",
            {"num_arms": 10**9},
            "'num_arms' .* num_arms x dim is at most 50,000,000. Got 1",
        ),
        (
            "abrupt",
            {"dim": 1000, "num_arms": 50_001},
            "'num_arms' .* num_arms x dim is at most",
        ),
        (
            "abrupt",
            {"contextual": True, "num_arms": 10**4},
            "'num_arms' .* num_arms x dim x horizon is at most",
        ),
        (
            "abrupt",
            {"contextual": True, "horizon": 10**12},
            "'horizon' .* x horizon is at most",
        ),
        ("abrupt", {"horizon": 10**12}, "'horizon' .* such that horizon is at most"),
        (
            "abrupt",
            MANY | {"num_arms": 60},
            "'change_points' .* num_arms x change_points is at most 50,000,000. Got 9",
        ),
        ("rotation", {"num_arms": 10**5}, "'num_arms' .* num_arms x horizon is at most"),
        ("rotation", {"horizon": 10**12}, "'horizon' .* num_arms x horizon is at most"),
        ("abrupt", {"contextual": 1}, "'contextual' .* True or False"),
        ("abrupt", {"horizon": 0}, "'horizon' .* an int of at least 1"),
        ("abrupt", {"arms_seed": -1}, "'arms_seed' .* an int of at least 0"),
        ("abrupt", {"noise_std": -1}, r"'noise_std' .* a float in \[0"),
        ("abrupt", {"theta": [[1.0, 0.0]]}, "'theta' .* each of the 4 segments"),
        (
            "abrupt",
            {"theta": [[1.0, 0.0, 0.0]] * 4},
            "'theta' .* vectors of dim = 2 numbers",
        ),
        ("abrupt", {"theta": [[1.0, 0.1]] * 4}, "'theta' .* norm at most 1"),
        ("abrupt", {"theta": [[float("nan"), 0.1]] * 4}, "'theta' .* norm at most 1"),
        ("abrupt", {"theta": "x"}, "'theta' .* a list of vectors"),
        ("abrupt", {"change_points": [0]}, "'change_points' .* an int of at least 2"),
        ("abrupt", {"change_points": [3, 3]}, "'change_points' .* strictly increasing"),
        ("rotation", {"change_points": [3]}, "'change_points' .* None for the schedule 'rot"),
        ("rotation", {"theta": [[0.0, 0.0]]}, "'theta' .* linearly independent"),
        ("rotation", {"dim": 3, "theta": [[0.5, 0, 0], [-0.2, 0, 0]]}, "'theta' .* independent"),
        ("rotation", {"theta": PAPER[:2]}, "'theta' .* a start"),
        ("rotation", {"angle": 7.0}, r"'angle' .* a float in \[0, 6.28319\]"),
        (
            "abrupt",
            {"angle": np.pi / 2},
            "'angle' .* None for the schedule 'abrupt'",
        ),
        (
            "abrupt",
            {"link": "logistic", "noise_std": 1.0},
            "'noise_std' .* None where rewards are",
        ),
    ],
    ids=lambda one: str(one)[:60],
)
def test_refused(schedule: Any, given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        LinearTask(schedule, **given)
