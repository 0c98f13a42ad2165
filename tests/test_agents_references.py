"""The references that read the truth: told when f changes, or given the best discount."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

import wgp_agents
import wgp_gym  # noqa: F401  (registers the ids)
from wgp_agents.algorithms.references.oracle_discount import OracleDiscount, of_learners
from wgp_agents.algorithms.references.oracle_restart import RestartWhen
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates.weighted import RestartSurrogate
from wgp_agents.registry import AGENTS
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

SEED, AGENT_SEED, GRID = 4, 21, (1.0, 0.9, 0.7)
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "arms": ("WGPBandit-Abrupt-v0", {"horizon": 40, "points_per_dim": 20}),
    "box": ("WGPBandit-Abrupt-v0", {"horizon": 8, "continuous": True, "points_per_dim": 20}),
    "contexts": (
        "WGPBandit-LinearContextual-v0",
        {"horizon": 40, "num_arms": 6, "noise_std": 0.1, "change_points": [11, 26]},
    ),
    "pays 0 or 1": (
        "WGPBandit-LinearAbrupt-v0",
        {"horizon": 40, "num_arms": 6, "link": "logistic"},
    ),
    "drift": ("WGPBandit-Slow-v0", {"horizon": 30, "points_per_dim": 20}),
}
VECTOR = {"native": "vector_entry_point", "sync": "sync"}
every_task = pytest.mark.parametrize("task", TASKS)
both_vectors = pytest.mark.parametrize("vector", VECTOR)


def make_env(task: str, batch: int | None = None, vector: str = "native") -> Any:
    name, parameters = TASKS[task]
    if batch is None:
        return gymnasium.make(name, **parameters)
    return gymnasium.make_vec(name, batch, vectorization_mode=VECTOR[vector], **parameters)


def play(
    env: Any, agent: Any, *, agent_seed: Any = AGENT_SEED, starts: tuple[int, ...] = (), **run: Any
) -> tuple[NDArray[Any], Any]:
    """Play an episode: actions `(T, ...)` and cumulative regret; restart at some steps by hand."""
    shown, info = env.reset(seed=run.get("seed", SEED))
    agent.reset(agent_seed)
    over, played = False, list[Any]()
    while not over:
        if len(played) in starts:
            agent.reset()  # goes on with its random stream
        action = agent.predict(shown)[0] if run.get("predict") else agent.act(shown)
        shown, reward, _, truncated, info = env.step(action)
        played.append(copy.copy(action))
        over = bool(np.all(truncated))
        if not run.get("predict"):
            agent.observe(action, reward)
    return np.array(played), info["cumulative_regret"]


def replayed(task: str, actions: NDArray[Any], seed: int) -> float:
    """Return the cumulative regret of these actions on an episode of a single environment."""
    env = make_env(task)
    env.reset(seed=seed)
    return float(sum(env.step(action)[4]["regret"] for action in actions))


def change_steps(task: str) -> tuple[int, ...]:
    """Return the steps, from 0, whose function is not that of the step before."""
    if task == "contexts":
        return (10, 25)
    env, functions = make_env(task), []
    env.reset(seed=SEED)
    for _ in range(env.unwrapped.problem.horizon):
        functions.append(env.unwrapped.expected_rewards().copy())
        env.step(env.action_space.sample())
    steps = range(1, len(functions))
    return tuple(t for t in steps if (functions[t] != functions[t - 1]).any())


@every_task
@pytest.mark.parametrize("batch", [None, "native", "sync"])
def test_oracle_restart_is_igp_ucb_restarted_by_hand(task: str, batch: str | None) -> None:
    vector = () if batch is None else (3, batch)
    env, starts = make_env(task, *vector), change_steps(task)
    assert len(starts) >= 2
    told = wgp_agents.make("oracle-restart", env)
    by_hand = wgp_agents.make("igp-ucb", env)
    one, regret = play(env, by_hand, starts=starts)
    other, same = play(env, told)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(regret, same)
    assert isinstance(told, GPAgent)
    assert isinstance(by_hand, GPAgent)
    np.testing.assert_array_equal(told.posterior(), by_hand.posterior())
    untold, _ = play(env, wgp_agents.make("igp-ucb", env))
    assert (untold != one).any()
    np.testing.assert_array_equal(untold[: starts[0]], one[: starts[0]])


@pytest.mark.parametrize("task", ["arms", "contexts"])
@pytest.mark.parametrize("name", ["oracle-restart", "oracle-discount"])
def test_observations_alone_say_as_much(name: str, task: str) -> None:
    env = make_env(task)
    parameters = {"discounts": GRID} if name == "oracle-discount" else {}
    actions, regret = play(env, wgp_agents.make(name, env, **parameters))
    again, same = play(env, wgp_agents.make(name, env, **parameters), predict=True)
    np.testing.assert_array_equal(actions, again)
    assert regret == same


def tie_seed(agent_seed: int) -> int:
    """Return the seed that an oracle of this seed gives its runs: its first draw, 53 bits."""
    return int(UniformStreams([agent_seed]).draw()[0] * 2.0**53)


def inner_runs(task: str, i: int, **parameters: Any) -> list[float]:
    """Return the cumulative regrets of real WGP-UCBs on episode SEED + i, one for each eta."""
    found = []
    for discount in GRID:
        env = make_env(task)
        agent = wgp_agents.make("wgp-ucb", env, discount=discount, **parameters)
        found.append(play(env, agent, agent_seed=tie_seed(AGENT_SEED + i), seed=SEED + i)[1])
    return found


@pytest.mark.slow
@every_task
@pytest.mark.parametrize("batch", [None, "native", "sync"])
def test_oracle_discount_has_the_least_regret_of_its_runs(task: str, batch: str | None) -> None:
    vector = () if batch is None else (3, batch)
    env = make_env(task, *vector)
    agent = wgp_agents.make("oracle-discount", env, discounts=GRID)
    assert isinstance(agent, OracleDiscount)
    actions, regret = play(env, agent)
    assert not np.isnan(agent.best).any()
    for i in range(1 if batch is None else 3):
        runs = inner_runs(task, i)
        mine = actions if batch is None else actions[:, i]
        assert np.atleast_1d(regret)[i] == min(runs)
        assert replayed(task, mine, SEED + i) == pytest.approx(min(runs), rel=1e-12)
        assert agent.best[i] == GRID[int(np.argmin(runs))]
        assert len(set(runs)) > 1


@both_vectors
def test_parameters_of_each_learner_go_to_its_runs(vector: str) -> None:
    env = make_env("arms", 3, vector)
    widths, ridges = [0.3, 2.0, 6.0], np.array([0.01, 0.5, 0.01])
    words: dict[str, Any] = {"confidence_width": widths, "regularization": ridges}
    agent = wgp_agents.make("oracle-discount", env, discounts=GRID, **words)
    regret = play(env, agent)[1]
    for i in range(3):
        runs = inner_runs("arms", i, confidence_width=widths[i], regularization=float(ridges[i]))
        assert regret[i] == min(runs)


@both_vectors
@pytest.mark.parametrize("name", ["oracle-restart", "oracle-discount"])
def test_learner_i_is_the_single_learner(name: str, vector: str) -> None:
    parameters = {"discounts": GRID} if name == "oracle-discount" else {}
    single = []
    for i in range(3):
        env = make_env("arms")
        agent = wgp_agents.make(name, env, **parameters)
        single.append(play(env, agent, agent_seed=AGENT_SEED + i, seed=SEED + i))
    for batch in (1, 2, 3):
        env = make_env("arms", batch, vector)
        actions, regrets = play(env, wgp_agents.make(name, env, **parameters))
        for i in range(batch):
            np.testing.assert_array_equal(actions[:, i], single[i][0])
            assert regrets[i] == single[i][1]


def test_it_plans_once_on_the_episode_that_it_met_first() -> None:
    env = make_env("arms")
    agent = wgp_agents.make("oracle-discount", env, discounts=GRID)
    assert isinstance(agent, OracleDiscount)
    expected = play(env, agent)[0]
    env.reset(seed=SEED)
    agent.reset(AGENT_SEED)
    assert np.isnan(agent.best).all()
    agent.act()
    env.reset(seed=SEED + 1)
    for action in expected.tolist():
        assert agent.act() == agent.act() == action
        env.step(0)
        agent.observe((action + 1) % 20, 1e6)  # it learns nothing, whoever played


@pytest.mark.parametrize("before", [0, 5])
@pytest.mark.parametrize("name", ["oracle-restart", "oracle-discount"])
def test_copies_go_on_alike(name: str, before: int) -> None:
    env = make_env("arms")
    shown, _ = env.reset(seed=SEED)
    parameters = {"discounts": GRID} if name == "oracle-discount" else {}
    agent = wgp_agents.make(name, env, **parameters)
    agent.reset(AGENT_SEED)
    for _ in range(before):
        action = agent.act(shown)
        shown, reward, *_ = env.step(action)
        agent.observe(action, reward)
    pairs = [copy.deepcopy((env, agent)), pickle.loads(pickle.dumps((env, agent))), (env, agent)]
    runs = []
    for task, player in pairs:
        actions, over = [], False
        while not over:
            actions.append(player.act())
            _, reward, _, over, info = task.step(actions[-1])
            player.observe(actions[-1], reward)
        runs.append((actions, info["cumulative_regret"]))
    assert runs[0] == runs[1] == runs[2]


def test_a_learner_that_restarts_alone_plans_anew() -> None:
    env = gymnasium.vector.SyncVectorEnv(
        [lambda: make_env("arms")] * 2, autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED
    )
    agent = wgp_agents.make("oracle-discount", env, discounts=GRID)
    assert isinstance(agent, OracleDiscount)
    shown, _ = env.reset(seed=[SEED, SEED + 1])
    agent.reset(AGENT_SEED)
    first: list[Any] = []
    for t in range(40):
        if t == 15:
            options = {"reset_mask": np.array([False, True])}
            shown, _ = env.reset(seed=[None, SEED + 2], options=options)
        action, _ = agent.predict(shown, episode_start=[t == 0, t in (0, 15)])
        shown, _, _, _, info = env.step(action)
        first.append(action.copy())
    actions = np.array(first)
    alone = make_env("arms")
    expected = play(alone, wgp_agents.make("oracle-discount", alone, discounts=GRID))
    np.testing.assert_array_equal(actions[:, 0], expected[0])
    assert info["cumulative_regret"][0] == expected[1]
    plan = np.concatenate([actions[15:, 1], agent.plan[25:, 1]])
    drawn = UniformStreams([AGENT_SEED + 1])
    seed = [int(drawn.draw()[0] * 2.0**53) for _ in range(16)][-1]
    regrets = []
    for discount in GRID:
        inner = wgp_agents.make("wgp-ucb", alone, discount=discount)
        regrets.append(play(alone, inner, agent_seed=seed, seed=SEED + 2)[1])
    assert replayed("arms", plan, SEED + 2) == pytest.approx(min(regrets), rel=1e-12)


@pytest.mark.parametrize("name", ["oracle-restart", "oracle-discount"])
def test_a_bare_problem_shows_no_truth(name: str) -> None:
    problem = BanditProblem(SquaredExponential(0.2), np.eye(2), 10, 0.1, 1.0, 1.0)
    with pytest.raises(TypeError, match="An oracle needs an environment, to read the truth from"):
        wgp_agents.make(name, problem)
    env = make_env("arms")
    agent = wgp_agents.make(name, env, norm_bound=1.0)
    agent.reset(0)
    with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
        agent.act()


@pytest.mark.parametrize("discounts", [[], [0.0], [0.9, 1.5], [[0.9]], 0.9, "all", [float("nan")]])
def test_bad_grids(discounts: Any) -> None:
    rule = (
        r"parameter of OracleDiscount must be a list of at least one number in \[1e-30, 1\]. Got "
    )
    with pytest.raises(ValueError, match=rule):
        wgp_agents.make("oracle-discount", make_env("arms"), discounts=discounts)


def test_bad_parameters() -> None:
    env = make_env("arms")
    with pytest.raises(ValueError, match=r"'delta' parameter of OracleRestart must be"):
        wgp_agents.make("oracle-restart", env, delta=2.0)
    with pytest.raises(ValueError, match=r"'delta' parameter of WGPUCB must be"):
        wgp_agents.make("oracle-discount", env, delta=2.0)


def test_the_registry_calls_them_references() -> None:
    found = {name for name, entry in AGENTS.items() if entry.reference}
    assert found == {"oracle", "oracle-restart", "oracle-discount"}


def test_begun_in_mid_episode_it_plans_what_is_left() -> None:
    env: Any = gymnasium.make("WGPBandit-Abrupt-v0", horizon=40)
    left = {}
    for name in ("oracle-discount", "wgp-ucb"):
        env.reset(seed=1)
        for _ in range(20):
            env.step(0)
        start = env.step(0)[4]["cumulative_regret"]
        agent = wgp_agents.make(name, env)
        agent.reset(3)
        over = False
        while not over:
            _, reward, _, over, info = env.step(action := agent.act())
            agent.observe(action, reward)
        left[name] = info["cumulative_regret"] - start
    assert left["oracle-discount"] < left["wgp-ucb"]


def test_it_keeps_to_its_plan_whatever_it_is_told() -> None:
    for batch in (None, 2):
        env = make_env("arms", batch, "sync")
        env.reset(seed=SEED)
        agent = wgp_agents.make("oracle-discount", env, discounts=GRID)
        assert isinstance(agent, OracleDiscount)
        agent.reset(AGENT_SEED)
        played = []
        for t in range(40):
            agent.act()  # asked twice, and told two times of three
            played.append(np.atleast_1d(action := agent.act()))
            reward = env.step(action)[1]
            if t % 3:
                agent.observe(action, reward)
        np.testing.assert_array_equal(played, agent.plan)


def test_each_learner_is_told_of_its_own_changes_and_the_clock_goes_on() -> None:
    told, domain = np.zeros(3, bool), np.linspace(0.0, 1.0, 20)[:, None]
    problem = BanditProblem(SquaredExponential(0.2), domain, 40, 0.1, np.ones(3), np.ones(3))
    agent = GPAgent(
        problem,
        surrogate=RestartSurrogate,
        restart_rule=RestartWhen(lambda: told),
        confidence_width=lambda t: 1.0 + t,
    )
    agent.reset(0)
    for _ in range(4):
        agent.observe(agent.act(), np.ones(3))
    told[1] = True
    agent.act()
    least = agent.posterior().std.min(axis=1)
    np.testing.assert_array_equal(least > 0.9, told)  # 1 where nothing is known
    assert agent.beta().tolist() == [5.0, 5.0, 5.0]


def test_nothing_is_planned_where_an_episode_is_over() -> None:
    env = make_env("arms", 2, "sync")
    shown, _ = env.reset(seed=SEED)
    agent = wgp_agents.make("oracle-discount", env, discounts=GRID)
    assert isinstance(agent, OracleDiscount)
    for part, steps in zip(env.unwrapped.envs, (40, 3), strict=True):
        for _ in range(steps):
            part.step(0)
    agent.reset(AGENT_SEED)
    for _ in range(45):  # and beyond the end
        action = agent.act(shown)
        assert env.action_space.contains(action)
        agent.observe(action, np.zeros(2))
    assert np.isnan(agent.best).tolist() == [True, False]


def test_only_lists_are_parted() -> None:
    given: Any = {"delta": np.array(0.2), "norm_bound": [1.0, 2.0, 3.0], "gain": "bound"}
    found: Any = of_learners(given, slice(1, 3))
    assert found["norm_bound"].tolist() == [2.0, 3.0]
    assert (found["delta"], found["gain"]) == (0.2, "bound")


class Plain(gymnasium.Env[Any, Any]):
    """An environment of one's own that tells a problem, and no truth."""

    def __init__(self) -> None:
        domain = np.linspace(0, 1, 4)[:, None]
        self.problem = BanditProblem(SquaredExponential(0.3), domain, 9)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(4)


@pytest.mark.parametrize("batch", [None, 2])
def test_the_oracle_names_the_method_that_is_missing(batch: int | None) -> None:
    env: Any = Plain() if batch is None else gymnasium.vector.SyncVectorEnv([Plain] * 2)
    agent = wgp_agents.make("oracle", env)
    agent.reset(0)
    with pytest.raises(TypeError, match=r"tells the truth, by a method 'optimal_action'"):
        agent.act()


def test_a_vector_environment_without_a_problem_is_refused() -> None:
    env = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    with pytest.raises(TypeError, match="whose bare environment has a `problem`"):
        wgp_agents.make("random", env)
