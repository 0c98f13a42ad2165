"""What an own task draws is what it says, or is refused: schedules, kernels, arms, ranges."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

from wgp_gym.envs import BanditEnv, RandomTask, Task
from wgp_gym.envs.episode import Episode, linear_episode
from wgp_gym.envs.laws import Drawable
from wgp_gym.envs.noise import BernoulliNoise
from wgp_gym.envs.optimum import grid
from wgp_gym.kernels import Empirical, Linear, Matern, SquaredExponential
from wgp_gym.rkhs import Functions, expansions, interpolants, linear_functions
from wgp_gym.schedules import (
    Schedule,
    knot_per_step,
    piecewise_constant,
    piecewise_linear,
    position_per_step,
)
from wgp_gym.types import Array, Floats32

LINE, SE = grid(20, 1), SquaredExponential(0.2)
LINEAR: dict[str, Any] = {"kernel": Linear(), "domain": grid(4, 2), "contextual": True}
Drawing = Callable[["Own", np.random.Generator], Any]


class Own(Task):
    """A task of any parts, whose episodes a function draws."""

    def __init__(self, drawing: Drawing, **given: Any) -> None:
        usual: dict[str, Any] = {"kernel": SE, "domain": LINE, "schedule": knot_per_step(5)}
        super().__init__(**(usual | given))
        self.drawing = drawing

    def draw(self, rng: np.random.Generator) -> Episode:
        drawn: Episode = self.drawing(self, rng)
        return drawn


def bumps(task: Own, rng: np.random.Generator) -> Episode:
    heights = rng.standard_normal((task.schedule.num_knots, 2))
    return task.episode(expansions(task.kernel, task.domain, [3, 9], heights))


def tilted(task: Own, rng: np.random.Generator) -> Episode:
    theta = rng.standard_normal((task.schedule.num_knots, 2))
    arms = rng.random((task.horizon, *task.domain.shape), np.float32)
    return task.episode(linear_functions(theta), arms)


def mixed(schedule: Schedule, knots: Array) -> Array:
    """Return what stands at each step, step by step."""
    rows = []
    for u in schedule.index:
        k, w = int(schedule.left[u]), float(schedule.weight[u])
        rows.append((1 - w) * knots[k] + (w * knots[k + 1] if w else 0.0))
    return np.array(rows)


BACK = Schedule(
    np.array([0, 1, 2, 1, 0, 0]), np.array([0.3, 0.0, 0.6, 0.9, 0.2, 0.7]), np.arange(6), 4
)
PATHS = {
    "there and back": Schedule(np.array([0, 1, 0]), np.zeros(3), np.array([0, 0, 1, 2]), 2),
    "between knots, there and back": BACK,
    "lines": piecewise_linear(11, 4),
}


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("contextual", [False, True])
def test_the_scorer_is_right_on_every_path(name: str, contextual: bool) -> None:
    path = PATHS[name]
    task = Own(tilted, schedule=path, **LINEAR) if contextual else Own(bumps, schedule=path)
    env = BanditEnv(task)
    observation, _ = env.reset(seed=3)
    weights = mixed(path, env.dynamics.episodes[0].coefficients)
    gram = np.eye(2) if contextual else SE(LINE[[3, 9]], LINE[[3, 9]])
    moves = np.diff(weights, axis=0)
    spent = np.append(0.0, np.cumsum(np.sqrt(np.einsum("ti,ij,tj->t", moves, gram, moves))))
    norms = np.sqrt(np.einsum("ti,ij,tj->t", weights, gram, weights))
    assert env.problem.norm_bound == pytest.approx(norms.max(), rel=1e-12)
    assert env.problem.variation_budget == pytest.approx(spent[-1], rel=1e-12)
    for t, row in enumerate(weights):
        places = observation[5:].reshape(-1, 2).astype(float) if contextual else LINE
        features = places / np.sqrt(2) if contextual else SE(places, LINE[[3, 9]])
        expected = features @ row
        observation, _, _, _, info = env.step(int(expected.argmax()))
        assert info["optimal_reward"] == pytest.approx(expected.max(), abs=1e-12)
        assert info["regret"] == 0.0
        assert info["variation"] == pytest.approx(spent[t], abs=1e-12)


def test_a_schedule_passes_every_knot_and_no_step_goes_beyond_the_next() -> None:
    two, three = np.zeros(2), np.zeros(3)
    for name, given in {
        "left": (np.array([0, 2]), two, np.arange(2), 3),
        "weight": (np.array([0, 0]), np.array([0.0, 1.5]), np.arange(2), 2),
        "weight'": (np.array([0, 1]), np.array([0.0, 0.5]), np.arange(2), 2),
        "index": (np.arange(3), three, np.array([0, 2]), 3),
        "index'": (np.array([0, 1]), two, np.array([0, 1, 0]), 2),
        "index''": (np.arange(3), three, np.array([0, 1]), 3),
    }.items():
        with pytest.raises(ValueError, match=rf"'{name.strip(chr(39))}' parameter of Schedule"):
            Schedule(*given)
    with pytest.raises(ValueError, match=r"'num_knots' .* int in \[2, 6\]"):
        piecewise_linear(5, 9)
    piecewise_linear(1, 3)


def other_kernel(task: Own, rng: np.random.Generator) -> Episode:
    heights = rng.standard_normal((5, 2))
    return task.episode(expansions(Matern(0.05, 0.5), task.domain, [3, 9], heights))


def singular(task: Own, rng: np.random.Generator) -> Episode:
    values = rng.standard_normal((5, 20))
    return task.episode(interpolants(values, task.kernel(task.domain, task.domain)))


def unlike(task: Own, rng: np.random.Generator) -> Episode:
    del rng
    return task.episode(linear_functions(np.ones((5, 20))))


@pytest.mark.parametrize("drawing", [other_kernel, singular, unlike])
def test_functions_of_another_kernel_are_noticed(drawing: Drawing) -> None:
    message = r"'functions' parameter of Own\.episode must be sums over the task's kernel"
    with pytest.raises(ValueError, match=message):
        BanditEnv(Own(drawing)).reset(seed=0)
    BanditEnv(Own(unlike, kernel=Empirical(np.eye(20)))).reset(seed=0)


def test_functions_are_given_on_the_domain() -> None:
    def elsewhere(task: Own, rng: np.random.Generator) -> Episode:
        return task.episode(linear_functions(rng.standard_normal((5, 2))))

    with pytest.raises(ValueError, match=r"'functions' .* given at the domain's 16 points"):
        BanditEnv(Own(elsewhere, kernel=Linear(), domain=grid(4, 2))).reset(seed=0)


CENTRES: Mapping[str, tuple[Any, Any]] = {
    "'centres'": ([3.7, 9.2], np.ones((5, 2))),
    "'centres' ": ([3, 20], np.ones((5, 2))),
    "'coefficients'": ([3, 9], np.ones((5, 3))),
}


@pytest.mark.parametrize("name", CENTRES)
def test_expansions_have_a_coefficient_for_each_centre(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name.strip()} parameter of expansions"):
        expansions(SE, LINE, *CENTRES[name])
    listed: Functions = expansions(SE, LINE, [3, -1], [[1, 2]])
    np.testing.assert_allclose(
        listed.values[0], SE(LINE[[3]], LINE)[0] + 2 * SE(LINE[[19]], LINE)[0]
    )


def with_arms(made: Callable[[Floats32], Any]) -> Drawing:
    def drawing(task: Own, rng: np.random.Generator) -> Episode:
        drawn = rng.random((task.horizon, *task.domain.shape), np.float32)
        return task.episode(linear_functions(np.ones((5, 2))), made(drawn))

    return drawing


@pytest.mark.parametrize(
    "made", [lambda x: 3 * x, lambda x: x[1:], lambda x: x * np.nan, lambda x: None]
)
def test_arms_that_change_are_those_of_every_step_in_the_box(
    made: Callable[[Floats32], Any],
) -> None:
    with pytest.raises(ValueError, match=r"'arms' parameter of Own\.episode .* \(5, 16, 2\)"):
        BanditEnv(Own(with_arms(made), **LINEAR)).reset(seed=0)


def test_arms_are_drawn_anew_only_where_the_task_says_so() -> None:
    def drawing(task: Own, rng: np.random.Generator) -> Episode:
        functions = expansions(task.kernel, task.domain, [3], np.ones((5, 1)))
        return task.episode(functions, rng.random((5, *task.domain.shape), np.float32))

    with pytest.raises(ValueError, match=r"'arms' .* None where all arms stay"):
        BanditEnv(Own(drawing)).reset(seed=0)
    with pytest.raises(ValueError, match=r"'functions' .* linear_functions .* 2 features"):
        BanditEnv(Own(drawing, **LINEAR)).reset(seed=0)


def test_rewards_are_in_the_range_that_learners_are_told() -> None:
    for given in ({"reward_range": (0.0, 0.1)}, {"noise": BernoulliNoise()}):
        with pytest.raises(ValueError, match=r"'functions' .* expected rewards are in \[0, "):
            BanditEnv(Own(bumps, **given)).reset(seed=0)
    BanditEnv(Own(bumps, noise=BernoulliNoise(), link="logistic")).reset(seed=0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("domain", 3 * LINE), ("domain", LINE[:, 0]), ("link", "probit"), ("arm_names", ["a"])],
)
def test_what_no_learner_can_be_told_is_refused_at_once(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"'{name}' parameter"):
        Own(bumps, **{name: value})


def test_a_draw_returns_its_episode() -> None:
    with pytest.raises(ValueError, match=r"'draw' parameter of Own .* Got None"):
        BanditEnv(Own(lambda task, rng: None)).reset(seed=0)


def test_linear_episodes_rest_at_their_knots() -> None:
    theta, phi = linear_functions(np.ones((4, 2))), np.ones((3, 2))
    stays = position_per_step(piecewise_constant(9, [4, 5, 8]))
    for schedule in (piecewise_linear(9, 4), stays):
        with pytest.raises(ValueError, match=r"'schedule' parameter of linear_episode"):
            linear_episode(schedule, theta, phi)


class Shop(Task):
    """Arms of which another one is missing after each change."""

    drawable: ClassVar[Mapping[str, Drawable]] = {"change_points": "times"}

    def __init__(self, *, horizon: int = 20, change_points: list[int] | None = None) -> None:
        super().__init__(
            kernel=Empirical(np.eye(4)),
            domain=grid(4, 1),
            schedule=piecewise_constant(horizon, change_points or []),
            masked=True,
        )

    def draw(self, rng: np.random.Generator) -> Episode:
        values = rng.uniform(0.1, 1.0, (self.schedule.num_knots, 4))
        values[np.arange(len(values)), np.arange(len(values)) % 4] = 0.0
        return self.episode(linear_functions(values), available=values[self.schedule.left] > 0)


@pytest.mark.parametrize("seed", range(3))
def test_arms_that_come_and_go_at_change_times_that_are_drawn(seed: int) -> None:
    env = BanditEnv(RandomTask(Shop, change_points="random", change_rate=0.4))
    env.reset(seed=seed)
    last, spent = env.expected_rewards(), 0.0
    for _ in range(20):
        rewards = env.expected_rewards()
        spent += float(np.linalg.norm(rewards - last))
        last = rewards
        np.testing.assert_array_equal(env.available(), rewards > 0)
        *_, info = env.step(0)
        assert info["optimal_reward"] == rewards.max()
        assert info["variation"] == pytest.approx(spent)
    assert env.problem.variation_budget == pytest.approx(spent)
