"""A user's own environment in one file: on fixed arms, on a box and with arms that change."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import wgp_agents
import wgp_gym
from wgp_gym.envs import BanditEnv, BanditVectorEnv, Task
from wgp_gym.envs.episode import Episode, linear_episode
from wgp_gym.envs.linear import LinearTask
from wgp_gym.envs.noise import GaussianNoise
from wgp_gym.envs.optimum import grid
from wgp_gym.envs.synthetic import SyntheticTask
from wgp_gym.kernels import Linear, Matern, SquaredExponential
from wgp_gym.rkhs import expansions, linear_functions
from wgp_gym.schedules import knot_per_step


class Tide(Task):
    """Two bumps that rise and fall in turn: all that a user writes."""

    def __init__(
        self,
        *,
        horizon: int = 40,
        period: float = 20.0,
        noise_std: float = 0.1,
        norm_bound: float | None = None,
        continuous: bool = False,
        contextual: bool = False,
    ) -> None:
        super().__init__(
            kernel=Linear() if contextual else SquaredExponential(0.2),
            domain=grid(4, 2) if contextual else grid(30, 1),
            schedule=knot_per_step(horizon),
            noise=GaussianNoise(noise_std),
            norm_bound=norm_bound,
            continuous=continuous,
            contextual=contextual,
        )
        self.period = period

    def draw(self, rng: np.random.Generator) -> Episode:
        angle = 2 * np.pi * np.arange(self.horizon) / self.period + rng.uniform(0, 2 * np.pi)
        heights = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        if self.contextual:
            arms = rng.random((self.horizon, *self.domain.shape), np.float32)
            return self.episode(linear_functions(heights), arms)
        return self.episode(expansions(self.kernel, self.domain, [7, 22], heights))


def calm() -> Tide:
    """Make a task by a plain function."""
    return Tide(horizon=7, noise_std=0.0)


def nothing() -> str:
    """Make something else."""
    return "a task"


TIDE, HERE = f"{__name__}:Tide", "OwnBandit-v0"
SETTINGS: dict[str, dict[str, Any]] = {
    "arms": {},
    "box": {"continuous": True},
    "changing arms": {"contextual": True},
}
every_setting = pytest.mark.parametrize("setting", SETTINGS)


@pytest.fixture(autouse=True)
def registered() -> Any:
    wgp_gym.register_task(HERE, TIDE, horizon=30)
    yield
    del gymnasium.registry[HERE]


@every_setting
def test_it_is_an_environment(setting: str) -> None:
    env = gymnasium.make(HERE, **SETTINGS[setting])
    check_env(env.unwrapped, skip_render_check=True)
    assert isinstance(env.unwrapped, BanditEnv)
    assert env.unwrapped.problem.horizon == 30
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))  # type: ignore[union-attr]
    np.testing.assert_array_equal(env.reset(seed=3)[0], again.reset(seed=3)[0])


@every_setting
def test_batches_are_single_environments(setting: str) -> None:
    make = {"vectorization_mode": "vector_entry_point"} | SETTINGS[setting]
    vector = gymnasium.make_vec(HERE, num_envs=3, **make)
    singles = [gymnasium.make(HERE, **SETTINGS[setting]) for _ in range(3)]
    vector.reset(seed=5)
    for i, env in enumerate(singles):
        env.reset(seed=5 + i)
    vector.action_space.seed(0)
    for _ in range(30):
        actions = vector.action_space.sample()
        seen, paid, _, over, info = vector.step(actions)
        for i, env in enumerate(singles):
            observation, reward, _, truncated, one = env.step(actions[i])
            np.testing.assert_array_equal(seen[i], observation)
            assert (paid[i], over[i]) == (reward, truncated)
            assert info["regret"][i] == one["regret"]
    assert over.all()


@every_setting
def test_norms_and_regret(setting: str) -> None:
    env = BanditEnv(TIDE, horizon=30, **SETTINGS[setting])
    env.reset(seed=1)
    overlap = (
        0.0
        if setting == "changing arms"
        else SquaredExponential(0.2)(env.task.domain[[7]], env.task.domain[[22]]).item()
    )
    heights = env.dynamics.episodes[0].coefficients
    squares = 1 + 2 * overlap * heights[:, 0] * heights[:, 1]  # cos^2 + sin^2 + the cross term
    assert env.problem.norm_bound == pytest.approx(np.sqrt(squares).max())
    for _ in range(30):
        rewards, best = env.expected_rewards(), env.optimal_action()
        *_, info = env.step(env.action_space.sample())
        assert info["optimal_reward"] >= rewards.max() - 1e-12
        assert info["regret"] >= 0
        if setting != "box":
            assert best == int(rewards.argmax())
            assert info["optimal_reward"] == rewards.max()
    bounded = BanditEnv(TIDE, norm_bound=3.0, **SETTINGS[setting])
    bounded.reset(seed=1)
    assert bounded.problem.norm_bound == pytest.approx(3.0)


@every_setting
def test_agents_play_it(setting: str) -> None:
    env = gymnasium.make(HERE, horizon=120, period=500.0, **SETTINGS[setting])
    totals = {}
    for name in ("wgp-ucb", "random", "oracle"):
        agent = wgp_agents.make(name, env)
        observation, _ = env.reset(seed=2)
        agent.reset(0)
        info: dict[str, Any] = {}
        for _ in range(120):
            action = agent.act(observation)
            observation, reward, _, _, info = env.step(action)
            agent.observe(action, reward)
        totals[name] = info["cumulative_regret"]
    assert totals["oracle"] < 1e-4
    assert totals["wgp-ucb"] < 0.8 * totals["random"]


def test_a_function_makes_a_task() -> None:
    env = BanditVectorEnv(2, task=f"{__name__}:calm")
    assert env.problem.horizon == 7


@pytest.mark.parametrize(
    "name", ["Tide", "no_such_module:Tide", f"{__name__}:Ebb", f"{__name__}:TIDE", ":", 3]
)
def test_names_of_nothing(name: Any) -> None:
    with pytest.raises(ValueError, match=r"'task' .* a Task, or the \"module:name\" of a class"):
        BanditEnv(name)
    with pytest.raises(ValueError, match=r"'task' .* what makes a Task"):
        BanditEnv(f"{__name__}:nothing")


def test_what_no_task_may_have() -> None:
    domain = np.array([[0.0], [0.4], [1.0]])
    given: dict[str, Any] = {"schedule": knot_per_step(5), "domain": domain}

    class Bare(Task):
        """A task that draws nothing."""

        def draw(self, rng: np.random.Generator) -> Episode:
            raise NotImplementedError

    with pytest.raises(ValueError, match=r"'domain' parameter of a box .* evenly spaced"):
        Bare(kernel=Matern(), continuous=True, **given)
    with pytest.raises(ValueError, match=r"'contextual' parameter of Bare .* False for the kernel"):
        Bare(kernel=Matern(), contextual=True, **given)


class Peak(SyntheticTask):
    """One bump at a place that is drawn, in the place of random functions."""

    def draw(self, rng: np.random.Generator) -> Episode:
        centre = rng.integers(len(self.domain), size=1)
        return self.episode(expansions(self.kernel, self.domain, centre, np.ones((1, 1))))


class Double(LinearTask):
    """What a parent draws, once more with twice the norm."""

    def draw(self, rng: np.random.Generator) -> Episode:
        theta = super().draw(rng).coefficients
        phi = self.kernel.feature_map()
        assert phi is not None
        return linear_episode(self.schedule, linear_functions(2 * theta), phi(self.domain))


@pytest.mark.parametrize("batch", [1, 3, 20])
def test_a_subclass_of_a_task_plays_its_own_draw(batch: int) -> None:
    env = BanditVectorEnv(batch, task=Peak("constant"))
    env.reset(seed=0)
    best = env.optimal_action()
    distance = env.problem.domain[:, 0] - env.problem.domain[best]
    np.testing.assert_allclose(env.expected_rewards(), np.exp(-(distance**2) / 2 / 0.2**2))
    assert batch == 1 or len(set(best.tolist())) > 1
    double, single = (BanditVectorEnv(batch, task=made("abrupt")) for made in (Double, LinearTask))
    double.reset(seed=0)
    single.reset(seed=0)
    np.testing.assert_array_equal(double.expected_rewards(), 2 * single.expected_rewards())


class Bumps(Task):
    """A few bumps: how many is drawn, from none on."""

    def __init__(self, *, continuous: bool = False) -> None:
        super().__init__(
            kernel=SquaredExponential(0.2),
            domain=grid(30, 1),
            schedule=knot_per_step(3),
            continuous=continuous,
        )

    def draw(self, rng: np.random.Generator) -> Episode:
        count = int(rng.integers(21))
        centres, heights = rng.integers(-1, 30, count), rng.standard_normal((3, count))
        return self.episode(expansions(self.kernel, self.domain, centres, heights))


@pytest.mark.parametrize("continuous", [False, True])
def test_episodes_may_have_different_numbers_of_centres(continuous: bool) -> None:
    task, batch = Bumps(continuous=continuous), 40
    vector = BanditVectorEnv(batch, task=task)
    vector.reset(seed=5)
    singles = [BanditEnv(task) for _ in range(batch)]
    counts = set()
    for i, env in enumerate(singles):
        env.reset(seed=5 + i)
        one, same = env.dynamics.episodes[0], vector.dynamics.episodes[i]
        counts.add(len(one.centres))
        np.testing.assert_array_equal(same.centres, one.centres)
        np.testing.assert_array_equal(same.coefficients, one.coefficients)
    assert len(counts) > 10
    vector.action_space.seed(0)
    for _ in range(3):
        actions = vector.action_space.sample()
        *_, info = vector.step(actions)
        for i, env in enumerate(singles):
            *_, one_info = env.step(actions[i])
            for name in ("expected_reward", "regret", "variation"):
                assert info[name][i] == one_info[name]


class Broken(Bumps):
    """A task that divides by zero in one of ten episodes or so."""

    worst = np.nan

    def draw(self, rng: np.random.Generator) -> Episode:
        heights = np.ones((3, 1))
        if rng.random() < 0.1:
            heights[1] = self.worst
        return self.episode(expansions(self.kernel, self.domain, [3], heights))


@pytest.mark.parametrize("worst", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("continuous", [False, True])
def test_functions_that_are_not_finite_are_refused(worst: float, continuous: bool) -> None:
    task = Broken(continuous=continuous)
    task.worst = worst
    with pytest.raises(ValueError, match=rf"'functions' .* Broken\.episode .* Got {worst} instead"):
        BanditVectorEnv(60, task=task).reset(seed=0)
    task.worst = 0.0
    BanditVectorEnv(60, task=task).reset(seed=0)


@pytest.mark.parametrize("count", [2, 4])
def test_there_is_one_function_for_each_knot(count: int) -> None:
    class Counted(Bumps):
        def draw(self, rng: np.random.Generator) -> Episode:
            return self.episode(expansions(self.kernel, self.domain, [3], np.ones((count, 1))))

    with pytest.raises(ValueError, match=r"'functions' .*Counted\.episode .* each of the 3 knots"):
        BanditEnv(Counted()).reset(seed=0)
