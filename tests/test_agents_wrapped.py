"""Agents read the wrappers around their task: what can be undone is, the rest is said by name."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import vector as vector_wrappers
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
)

import wgp_agents
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.core.units import RewardUnits
from wgp_gym.wrappers import (
    ChangeNotification,
    HistoryObservation,
    OneHotHistory,
    RegretReward,
    VectorChangeNotification,
    VectorHistoryObservation,
    VectorOneHotHistory,
    VectorRegretReward,
)

TASK, HORIZON = "WGPBandit-Abrupt-v0", 30
Make = Callable[[], Any]


def task(**parameters: Any) -> Any:
    # Another process has imported nothing: "wgp_gym:" says where the id is registered.
    return gymnasium.make(f"wgp_gym:{TASK}", **({"horizon": HORIZON} | parameters))


def native(**parameters: Any) -> Any:
    return make_vector(TASK, 2, **({"horizon": HORIZON} | parameters))


def box() -> Any:
    return task(continuous=True)


def rescaled(low: float = -1.0, high: float = 1.0) -> Any:
    return wrappers.RescaleAction(box(), np.float32(low), np.float32(high))


class Doubled(gymnasium.RewardWrapper[Any, Any]):
    def reward(self, reward: Any) -> Any:
        return 2 * reward


class Mirrored(gymnasium.ActionWrapper[Any, Any, Any]):
    def action(self, action: Any) -> Any:
        return 99 - action


class Shown(gymnasium.ObservationWrapper[Any, Any, Any]):
    def observation(self, observation: Any) -> Any:
        return observation / 2


class OwnHistory(HistoryObservation):
    """What it makes of the observation nobody can know."""

    def observation(self, observation: Any) -> Any:
        return super().observation(observation) / 2


class Renamed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Of no kind that Gymnasium has, but its space tells."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.action_space = gymnasium.spaces.Discrete(100, start=1)

    def step(self, action: Any) -> Any:
        return self.env.step(action - 1)


HARMLESS: dict[str, Callable[[Any], Any]] = {
    "Monitor": Monitor,
    "TimeLimit": lambda env: wrappers.TimeLimit(env, 20),
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
    "Autoreset": wrappers.Autoreset,
    "FlattenObservation": wrappers.FlattenObservation,
    "DtypeObservation": lambda env: wrappers.DtypeObservation(env, np.float64),
}
OBSERVATIONS: dict[str, Callable[[Any], Any]] = {
    "NormalizeObservation": wrappers.NormalizeObservation,
    "RescaleObservation": lambda env: wrappers.RescaleObservation(
        env, np.float32(0.0), np.float32(1.0)
    ),
    "DelayObservation": lambda env: wrappers.DelayObservation(env, 1),
    "ReshapeObservation": lambda env: wrappers.ReshapeObservation(env, (2, 2)),
    "DtypeObservation": lambda env: wrappers.DtypeObservation(env, np.int64),
    "Shown": Shown,
    "OwnHistory": lambda env: OwnHistory(env, 1),
}
FRAMES: dict[str, Callable[[Any], Any]] = {
    "FrameStackObservation": lambda env: wrappers.FrameStackObservation(env, 3),
    "of zeros": lambda env: wrappers.FrameStackObservation(env, 3, padding_type="zero"),
    "flat": lambda env: wrappers.FlattenObservation(wrappers.FrameStackObservation(env, 3)),
    "twice": lambda env: wrappers.FrameStackObservation(
        Monitor(wrappers.FrameStackObservation(env, 2)), 3
    ),
    "HistoryObservation": lambda env: HistoryObservation(env, 3, reward_scale=4.0),
    "OneHotHistory": lambda env: OneHotHistory(env, 2, reward_scale=2.0),
    "ChangeNotification": lambda env: ChangeNotification(env, "how-much"),
    "none told": lambda env: ChangeNotification(env, "none"),
    "told history": lambda env: ChangeNotification(HistoryObservation(env, 3), "whether"),
    "stacked history": lambda env: wrappers.FrameStackObservation(HistoryObservation(env, 3), 2),
}
ACTIONS: dict[str, Callable[[Any], Any]] = {
    "StickyAction": lambda env: wrappers.StickyAction(env, 0.5),
    "MaxAndSkipObservation": lambda env: wrappers.MaxAndSkipObservation(env, 2),
    "TransformAction": lambda env: wrappers.TransformAction(env, lambda a: a, env.action_space),
    "Mirrored": Mirrored,
    "Renamed": Renamed,
}
REWARDS: dict[str, Callable[[Any], Any]] = {
    "TransformReward": lambda env: wrappers.TransformReward(env, lambda paid: float(paid) + 50.0),
    "ClipReward": lambda env: wrappers.ClipReward(env, -0.1, 0.1),
    "NormalizeReward": wrappers.NormalizeReward,
    "Doubled": Doubled,
    "RegretReward": RegretReward,
}


def of(kinds: dict[str, Callable[[Any], Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", [*kinds])


def told(agent: Any, env: Any) -> list[Any]:
    """Return the warnings of three plays of which the agent is told."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        observation = env.reset(seed=1)[0]
        agent.reset(1)
        for _ in range(3):
            action = agent.act(observation)
            observation, reward, *_ = env.step(action)
            agent.observe(action, reward)
    return [one for one in caught if one.category is RewardUnits]


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")  # Gymnasium's
@of(HARMLESS)
def test_harmless(kind: str) -> None:
    env = HARMLESS[kind](task())
    agent = wgp_agents.make("wgp-ucb", env)
    assert told(agent, env) == []
    observation, _ = env.reset(seed=1)
    plays: list[list[int]] = []
    for one, path in ((env, "predict"), (task(), "act")):
        agent = wgp_agents.make("wgp-ucb", one)
        observation, _ = one.reset(seed=1)
        agent.reset(1)
        plays.append([])
        for _ in range(10):
            action = agent.predict(observation)[0] if path == "predict" else agent.act(observation)
            observation, reward, *_ = one.step(action)
            if path == "act":
                agent.observe(action, np.float32(reward))
            plays[-1].append(int(action))
    assert plays[0] == plays[1]


@of(ACTIONS)
def test_other_actions_are_refused_by_name(kind: str) -> None:
    for name in ("wgp-ucb", "random", "oracle"):
        with pytest.raises(ValueError, match=f"'env' parameter of .* take this .*'{kind}'"):
            wgp_agents.make(name, ACTIONS[kind](task()))
    mixed = DummyVecEnv([task, lambda: ACTIONS[kind](task())])
    with pytest.raises(ValueError, match=kind):
        wgp_agents.make("wgp-ucb", mixed)


@of(OBSERVATIONS)
def test_predict_refuses_observations_that_a_wrapper_changes(kind: str) -> None:
    env = OBSERVATIONS[kind](task())
    observation, _ = env.reset(seed=1)
    agent = wgp_agents.make("wgp-ucb", env)
    agent.reset(1)
    with pytest.raises(ValueError, match=f"predict reads .*, and {kind} changes them. Take"):
        agent.predict(observation)
    assert told(agent, env) == []  # but it can be told


@of(REWARDS)
def test_changed_rewards_earn_one_warning(kind: str) -> None:
    env = REWARDS[kind](task())
    (warning,) = told(wgp_agents.make("wgp-ucb", env), env)
    for part in (kind, "noise_scale (R)", "norm_bound (B)", "variation_budget (B_T)", "adaptive-"):
        assert part in str(warning.message)
    assert warning.filename == __file__
    if kind == "RegretReward":
        return  # of the truth everybody is warned
    for name in ("adaptive-wgp-ucb", "neural-greedy", "random", "oracle"):
        assert told(wgp_agents.make(name, env), env) == []
    own = wgp_agents.make("wgp-ucb", env, norm_bound=60.0, noise_scale=0.1)
    assert told(own, env) == []
    arms = REWARDS[kind](gymnasium.make("WGPBandit-ArmsAbrupt-v0", horizon=HORIZON))
    assert ", reward_range no" in str(told(wgp_agents.make("ucb1", arms), arms)[0].message)
    assert told(wgp_agents.make("ucb1", arms, reward_range=(-1.0, 60.0)), arms) == []


def test_predict_reads_the_rewards_of_the_task() -> None:
    env = REWARDS["TransformReward"](task())
    agent = wgp_agents.make("wgp-ucb", env)
    observation, _ = env.reset(seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            observation, *_ = env.step(int(agent.predict(observation)[0]))


def stacks() -> dict[str, Make]:
    shift: Callable[[Any], Any] = lambda paid: paid + 50.0  # noqa: E731
    return {
        "NormalizeObservation": lambda: vector_wrappers.NormalizeObservation(native()),
        "TransformReward": lambda: vector_wrappers.TransformReward(native(), shift),
        "NormalizeReward": lambda: vector_wrappers.NormalizeReward(native()),
        "VecNormalize": lambda: VecNormalize(VecMonitor(DummyVecEnv([task] * 2))),
        "VectorRegretReward": lambda: VectorRegretReward(native()),
        "Shown": lambda: DummyVecEnv([task, lambda: Monitor(Shown(task()))]),
    }


@pytest.mark.parametrize("kind", [kind for kind in stacks() if "Reward" not in kind])
def test_predict_refuses_in_vector_environments(kind: str) -> None:
    env = stacks()[kind]()
    observation = env.reset()
    agent = wgp_agents.make("wgp-ucb", env)
    with pytest.raises(ValueError, match=f"and {kind} changes them"):
        agent.predict(observation if isinstance(observation, np.ndarray) else observation[0])


def test_evaluate_policy_under_vec_normalize() -> None:
    env = VecNormalize(DummyVecEnv([lambda: Monitor(task())]))
    env.reset()
    policy: Any = wgp_agents.make("wgp-ucb", env)
    with pytest.raises(ValueError, match="VecNormalize"):
        evaluate_policy(policy, env, 1)
    env = VecNormalize(DummyVecEnv([lambda: Monitor(task())]), norm_obs=False)
    env.reset()
    policy = wgp_agents.make("wgp-ucb", env)
    evaluate_policy(policy, env, 1)  # the reward is that in the observation


@pytest.mark.parametrize("kind", ["TransformReward", "NormalizeReward", "VectorRegretReward"])
def test_changed_rewards_in_vector_environments(kind: str) -> None:
    env = stacks()[kind]()
    (warning,) = told(wgp_agents.make("wgp-ucb", env), env)
    assert str(warning.message).startswith(kind)


def predicted(env: Any, steps: int, name: str = "wgp-ucb") -> list[Any]:
    """Return what an agent plays that is shown observations alone."""
    agent = wgp_agents.make(name, env)
    shown = env.reset(seed=1)[0]
    agent.reset(1)
    plays = []
    for _ in range(steps):
        plays.append(agent.predict(shown)[0])
        shown = env.step(plays[-1])[0]
    return plays


@of(FRAMES)
def test_predict_reads_the_last_frame(kind: str) -> None:
    plays = predicted(FRAMES[kind](task()), 12)
    assert np.shape(plays[0]) == ()
    assert plays == predicted(task(), 12)
    assert len(set(map(int, plays))) > 3
    env = FRAMES[kind](task())
    agent = wgp_agents.make("wgp-ucb", env)
    size = env.observation_space.shape
    for wrong in (np.zeros(5), np.zeros((2, *size)), np.zeros((1, 1, *size))):
        with pytest.raises(ValueError, match=r"An observation has the shape|There must be 1 obs"):
            agent.predict(wrong)


def test_predict_reads_the_last_frame_of_a_box_and_of_other_units() -> None:
    plays = predicted(HistoryObservation(task(continuous=True, dim=2), 3, 8.0), 6)
    np.testing.assert_array_equal(plays, predicted(task(continuous=True, dim=2), 6))
    agents: list[Any] = []
    for env in (task(), HistoryObservation(task(), 2, reward_scale=3.0)):  # no power of 2
        agents.append(wgp_agents.make("wgp-ucb", env))
        shown = env.reset(seed=1)[0]
        for arm in (4, 70, 71):
            agents[-1].predict(shown, episode_start=None if arm != 4 else [True])
            shown = env.step(arm)[0]
    np.testing.assert_allclose(
        agents[0].posterior().mean, agents[1].posterior().mean, rtol=1e-6, atol=1e-6
    )


def test_arms_of_this_step_stand_in_the_last_frame() -> None:
    found: list[Any] = []
    for frames in (1, 3):
        env: Any = gymnasium.make("WGPBandit-LinearContextual-v0", horizon=HORIZON)
        env = env if frames == 1 else wrappers.FrameStackObservation(env, frames)
        found.append(rollout(wgp_agents.make("lin-ucb", env), env, seed=1)["action"])
        found.append([predicted(env, HORIZON, "lin-ucb")])
    for plays in found:
        np.testing.assert_array_equal(plays, found[0])


@pytest.mark.parametrize("wrong", [[0.5, 1, 1, 1], [0.5, 1, 0, 0], [0.5, 0, 0, 1]])
def test_rows_that_are_not_one_hot_are_refused(wrong: list[float]) -> None:
    env = OneHotHistory(task(points_per_dim=2), 1)
    agent = wgp_agents.make("random", env)
    with pytest.raises(ValueError, match="one-hot row"):
        agent.predict([*wrong, 0.0])


def shared_stacks() -> dict[str, Make]:
    """Vector environments whose last frames are those of two bare ones."""

    def _history() -> Any:
        return HistoryObservation(task(), 3)

    return {
        "VectorHistoryObservation": lambda: VectorHistoryObservation(native(), 3),
        "VectorOneHotHistory": lambda: VectorOneHotHistory(native(), 3),
        "VectorChangeNotification": lambda: VectorChangeNotification(
            VectorHistoryObservation(native(), 3), "whether"
        ),
        "SyncVectorEnv": lambda: SyncVectorEnv([_history] * 2),
        "DummyVecEnv": lambda: DummyVecEnv([_history] * 2),
        "VecFrameStack": lambda: VecFrameStack(VecMonitor(DummyVecEnv([task] * 2)), 3),
        "VecFrameStack of histories": lambda: VecFrameStack(DummyVecEnv([_history] * 2), 2),
        "first": lambda: VecFrameStack(DummyVecEnv([task] * 2), 2, channels_order="first"),
    }


@pytest.mark.parametrize("kind", [*shared_stacks()])
def test_predict_reads_the_last_frame_in_vector_environments(kind: str) -> None:
    def _played(env: Any) -> list[Any]:
        if hasattr(env, "env_method"):
            env.seed(5)
            shown = env.reset()
        else:
            shown = env.reset(seed=5)[0]
        agent = wgp_agents.make("wgp-ucb", env)
        agent.reset(3)
        plays = []
        for _ in range(10):
            plays.append(agent.predict(shown)[0])
            shown = env.step(plays[-1])[0]
        return plays

    np.testing.assert_array_equal(_played(shared_stacks()[kind]()), _played(native()))


def test_evaluate_policy_on_a_stack() -> None:
    """A policy of stable-baselines3 and an agent share one environment."""
    returns = []
    for stacked in (False, True):
        env: Any = DummyVecEnv([lambda: Monitor(task())] * 2)
        env = VecFrameStack(env, 4) if stacked else env
        env.seed(5)
        env.reset()
        policy: Any = wgp_agents.make("wgp-ucb", env)
        policy.reset(1)
        returns.append(evaluate_policy(policy, env, 4, return_episode_rewards=True))
    assert returns[0] == returns[1]


def test_histories_that_differ_are_refused() -> None:
    scales = 1.0, 2.0
    env = DummyVecEnv([functools.partial(HistoryObservation, task(), 2, s) for s in scales])
    agent = wgp_agents.make("random", env)
    with pytest.raises(ValueError, match="and HistoryObservation changes them"):
        agent.predict(env.reset())


def test_what_was_learned_under_a_history_is_known_without() -> None:
    env: Any = HistoryObservation(task(), 2)
    env.reset(seed=1)
    agents = [wgp_agents.make("wgp-ucb", one) for one in (env, env.unwrapped)]
    agents[0].reset(1)
    agents[0].observe(agents[0].act(), 1.0)
    agents[1].load_state_dict(agents[0].state_dict())
    assert agents[1].act() == agents[0].act()


def sticky() -> Any:
    return wrappers.StickyAction(task(), 0.5)


def halved() -> Any:
    return Shown(task())


def mirrored() -> Any:
    return Mirrored(task())


FORMS: dict[str, Callable[[Make], Any]] = {
    "async": lambda make: AsyncVectorEnv([make, make], context="fork"),
    "subproc": lambda make: SubprocVecEnv([make, make], start_method="fork"),
}


def use(form: str, make: Make, task_of: Callable[[Any], None]) -> None:
    """Do something with an agent whose environments are in other processes."""
    env = FORMS[form](make)
    try:
        env.reset()
        task_of(wgp_agents.make("random", env))
    finally:
        env.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize("form", [*FORMS])
def test_wrappers_in_other_processes(form: str) -> None:
    def _shows(agent: Any) -> None:
        agent.predict(np.zeros((2, 4)))

    def _acts(agent: Any) -> None:
        agent.reset(0)
        assert min(agent.act().min() for _ in range(20)) < 0

    for make in (sticky, mirrored):
        with pytest.raises(ValueError, match="take this wrapper off"):
            use(form, make, _shows)
    with pytest.raises(ValueError, match="predict reads"):
        use(form, halved, _shows)
    use(form, task, _shows)
    use(form, rescaled, _acts)


def test_contextual_arms_are_read_off_the_observation() -> None:
    env = wrappers.NormalizeObservation(
        gymnasium.make("WGPBandit-LinearContextual-v0", horizon=HORIZON)
    )
    observation, _ = env.reset(seed=1)
    agent = wgp_agents.make("lin-ucb", env)
    agent.reset(1)
    with pytest.raises(ValueError, match=r"act reads .* NormalizeObservation changes them"):
        agent.act(observation)


RANGES = [(-1.0, 1.0), (-3.0, 7.1), (0.1, 0.7), (100.0, 101.0), (-5e4, 3.0), (1e-3, 2e-3)]


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_rescaled_actions_are_undone(low: float, high: float) -> None:
    for seed in range(3):
        env = rescaled(low, high)
        played = rollout(wgp_agents.make("oracle", env), env, seed=seed)
        assert played["cumulative_regret"][0, -1] < 1e-5
        assert low <= played["action"].min() <= played["action"].max() <= high
    bare, env = box(), wrappers.ClipAction(rescaled(low, high))
    found, expected = (
        rollout(wgp_agents.make("random", one), one, seed=1)["expected_reward"]
        for one in (env, bare)
    )
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*precision lowered by casting:UserWarning")
def test_rounding_does_not_take_an_action_out_of_the_box() -> None:
    for low, high in [(7.1, 7.9), (7.3, 18.2), (-0.4, 4.3)]:
        env = wrappers.RescaleAction(box(), np.float64(low), np.float64(high))
        for seed in range(8):  # in some of these episodes the optimum is at the upper end
            played = rollout(wgp_agents.make("oracle", env), env, seed=seed)
            assert played["cumulative_regret"][0, -1] < 1e-2


def test_rescaled_twice() -> None:
    env = wrappers.RescaleAction(rescaled(), np.float32(3.0), np.float32(5.0))
    assert rollout(wgp_agents.make("oracle", env), env, seed=1)["regret"].max() < 1e-6


def test_what_is_learned_under_rescaled_actions_is_the_place_played() -> None:
    agents: list[Any] = []
    for env in (box(), rescaled()):
        env.reset(seed=1)
        agents.append(wgp_agents.make("wgp-ucb", env))
        agents[-1].reset(1)
    agents[0].observe(np.array([0.25]), 1.0)
    agents[1].observe(np.array([-0.5], np.float32), 1.0)
    np.testing.assert_allclose(agents[0].posterior().mean, agents[1].posterior().mean, atol=1e-12)
    for action in ([1.01], [np.nan], 0.5, "up"):
        with pytest.raises(ValueError, match="must be in"):
            agents[1].observe(action, 1.0)


@pytest.mark.parametrize("form", ["native", "sync", "dummy"])
def test_rescaled_actions_in_vector_environments(form: str) -> None:
    low, high = np.array([[-1.0], [1.0]], np.float32)
    env: Any
    if form == "native":
        env = vector_wrappers.RescaleAction(native(continuous=True), low, high)
    else:
        env = (SyncVectorEnv if form == "sync" else DummyVecEnv)([rescaled, rescaled])
    env.reset()
    agent = wgp_agents.make("oracle", env)
    agent.reset(1)
    for _ in range(5):
        step = env.step(agent.act())
        infos = step[-1]
        regrets = infos["regret"] if form != "dummy" else [info["regret"] for info in infos]
        assert max(regrets) < 1e-9


def test_actions_that_are_rescaled_differently_are_refused() -> None:
    env = DummyVecEnv([rescaled, box])
    with pytest.raises(ValueError, match="all rescaled alike"):
        wgp_agents.make("random", env)


@pytest.mark.parametrize(
    ("row", "match"),
    [
        ([1.5, 1.0, 0.0, 0.0], r"Number 0 .* t / T, must be in \[0, 1\]. Got 1.5"),
        ([np.nan, 1.0, 0.0, 0.0], "Number 0 .* Got nan"),
        ([0.5, 0.7, 0.0, 0.0], "Number 1 .* has_last, must be 0 or 1. Got 0.7"),
        ([0.5, 1.0, -0.1, 0.0], r"Number 2 .* place .* Got -0.1"),
        ([0.5, 1.0, 1e300, 0.0], r"Number 2 .* Got 1e\+300"),
    ],
)
@pytest.mark.parametrize("continuous", [False, True])
def test_predict_refuses_numbers_that_no_task_shows(
    row: list[float], match: str, continuous: bool
) -> None:
    env = task(continuous=continuous)
    env.reset(seed=1)
    agent: Any = wgp_agents.make("wgp-ucb", env)
    agent.reset(1)
    agent.predict([0.1, 1.0, 0.0, 1.0], episode_start=[False])
    before = agent.posterior().mean.copy()
    with pytest.raises(ValueError, match=match):
        agent.predict(row, episode_start=[False])
    np.testing.assert_array_equal(agent.posterior().mean, before)


@pytest.mark.parametrize("name", ["adaptive-wgp-ucb", "random"])
def test_regrets_as_rewards_are_warned_of_whoever_learns(name: str) -> None:
    env = RegretReward(gymnasium.make("WGPBandit-Abrupt-v0"))
    env.reset(seed=0)
    agent = wgp_agents.make(name, env)
    agent.reset(0)
    with pytest.warns(RewardUnits, match="the truth without noise"):
        agent.observe(agent.act(), -1.0)
