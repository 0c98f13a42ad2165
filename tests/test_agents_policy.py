"""Anybody's policy as an agent: what it is shown, what it plays, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import stable_baselines3
from benchmark_small import SIX_RUNS, play
from numpy.typing import NDArray
from test_agents_rl import Recorder

import wgp_agents
from wgp_agents import PolicyAgent
from wgp_agents.benchmark.experiment import AgentSpec
from wgp_agents.benchmark.inputs import names_of
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.testing import check_agent
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.wrappers import HistoryObservation, VectorHistoryObservation

TASK = "WGPBandit-Abrupt-v0"
PROBLEM = BanditProblem(SquaredExponential(0.2), np.linspace(0, 1, 5)[:, None], 100, 0.1, 2.0)


def nearby(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Play the arm next to the last one, in the direction of the last reward's sign."""
    arms = np.rint(rows[:, 2] * 99).astype(np.int64)
    moved: NDArray[np.int64] = (arms + np.where(rows[:, 3] > 0, 1, 7)) % 100
    return moved


class Watched:
    """Writes down what it is shown."""

    def __init__(self) -> None:
        self.seen: list[NDArray[Any]] = []

    def __call__(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        self.seen.append(rows.copy())
        return nearby(rows)


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("history", [0, 4])
def test_a_function_is_shown_what_the_environment_or_the_wrapper_shows(
    history: int, batch: int | None
) -> None:
    def env() -> Any:
        return make_vector(TASK, 3, horizon=9) if batch else gymnasium.make(TASK, horizon=9)

    source, shown, function = env(), env(), Watched()
    if history:
        wrap: Any = VectorHistoryObservation if batch else HistoryObservation
        shown = wrap(shown, history, 4.0)
    scale = 4.0 if history else 1.0
    agent = PolicyAgent(source, policy=function, history=history, reward_scale=scale)
    for _ in range(2):
        rows, _ = shown.reset(seed=2)
        source.reset(seed=2)
        agent.reset(0)
        for _ in range(9):
            actions = agent.act()
            np.testing.assert_allclose(function.seen[-1], np.atleast_2d(rows), rtol=1e-6)
            np.testing.assert_array_equal(
                actions, nearby(np.atleast_2d(rows)).reshape(np.shape(actions))
            )
            agent.observe(actions, source.step(actions)[1])
            rows = shown.step(actions)[0]


def test_a_model_of_stable_baselines3_plays_as_in_its_own_loop() -> None:
    env = HistoryObservation(gymnasium.make(TASK, horizon=25), 3)
    model = stable_baselines3.A2C("MlpPolicy", env, seed=1)
    observation, _ = env.reset(seed=5)
    expected = []
    for _ in range(25):
        action, _ = model.predict(observation, deterministic=True)
        expected.append(int(action))
        observation, *_ = env.step(action)
    plain = gymnasium.make(TASK, horizon=25)
    agent = wgp_agents.make("policy", plain, policy=model, history=3)
    np.testing.assert_array_equal(rollout(agent, plain, seed=5)["action"][0], expected)
    assert len(set(expected)) > 1


def test_a_recurrent_model_keeps_a_state_for_each_learner() -> None:
    env = make_vector(TASK, 2, horizon=9)
    model: Any = Recorder(4, 100)
    agent = PolicyAgent(env, policy=model, history=0)
    env.reset(seed=0)
    agent.reset(0)
    agent.observe(agent.act(), [1.0, 2.0])
    agent.observe(agent.act(), [1.0, 2.0], active=[True, False])
    agent.act()
    (_, _, last) = model.states
    np.testing.assert_array_equal(last[0][0, :, 0], [5, 4])  # the second has not moved on
    np.testing.assert_array_equal(model.starts[1], [False, False])


@pytest.mark.slow
def test_it_keeps_the_contract() -> None:
    check_agent("policy", parameters={"policy": nearby, "history": 2})


def centre(rows: NDArray[Any]) -> NDArray[Any]:
    """Play a point of a box in two dimensions that the last reward moves."""
    points: NDArray[Any] = np.full((len(rows), 2), 0.5) + 0.1 * np.tanh(rows[:, 4:5])
    return points


@pytest.mark.slow
def test_also_on_a_box() -> None:
    kwargs = {"horizon": 48, "continuous": True, "dim": 2}
    check_agent("policy", kwargs=kwargs, parameters={"policy": centre, "history": 0})


def test_where_it_stands_will_do() -> None:
    agent = wgp_agents.make("policy", PROBLEM, policy=f"{__name__}:nearby", history=0)
    agent.reset(0)
    with pytest.raises(ValueError, match=r"one whose actions lie in \[0, 4\]. Got 7.0"):
        agent.act()


def test_an_experiment_plays_it_and_is_bound_to_its_module(tmp_path: Path) -> None:
    entry = {"name": "policy", "parameters": {"policy": f"{__name__}:nearby", "history": 0}}
    task = {"id": TASK, "kwargs": {"horizon": 10}}
    assert play(SIX_RUNS | {"agent": [entry], "environment": [task]}, tmp_path / "out") == []
    assert names_of(AgentSpec("own", "policy", entry["parameters"])) == [__name__]  # type: ignore[arg-type]


@pytest.mark.slow
def test_no_torch_is_needed() -> None:
    code = (
        "import sys, numpy as np, gymnasium, wgp_gym, wgp_agents\n"
        "env = gymnasium.make('WGPBandit-Abrupt-v0')\n"
        "wgp_agents.make('policy', env, policy=lambda rows: np.zeros(len(rows), int))\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"policy": 5}, "'policy' parameter of PolicyAgent must be a function of observations"),
        ({"policy": Watched}, "'policy' parameter of PolicyAgent must be a function of observat"),
        ({"policy": "nearby"}, "'policy' parameter of PolicyAgent must be a function of observ"),
        ({"policy": "no_such_module:f"}, "in a module that can be imported .*no_such_module"),
        ({"policy": f"{__name__}:none"}, "in a module that can be imported .*'none'"),
        ({"policy": Recorder(7, 5)}, r"made for observations of 61 numbers. Got \(7,\)"),
        ({"policy": Recorder(61, 9)}, "made for the 5 arms of the problem"),
        ({"policy": nearby, "history": -1}, "'history' parameter of PolicyAgent must be an int"),
        ({"policy": nearby, "deterministic": 1}, "'deterministic' parameter of PolicyAgent"),
        ({"policy": nearby, "reward_scale": 0.0}, "'reward_scale' parameter of History"),
    ],
)
def test_refused(given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        wgp_agents.make("policy", PROBLEM, **given)


def test_tasks_that_are_refused() -> None:
    contextual = gymnasium.make("WGPBandit-LinearContextual-v0")
    for env, match in (
        (contextual, "'env' parameter of PolicyAgent must be a task whose arms stay"),
        (replace(PROBLEM, horizon=None), "PolicyAgent"),
    ):
        with pytest.raises(ValueError, match=match):
            wgp_agents.make("policy", env, policy=nearby)


@pytest.mark.parametrize(
    ("actions", "match"),
    [
        ([[1], [2]], r"one whose actions are an array \(1,\)"),
        (["a"], "one whose actions are an array"),
        ([True], "one whose actions are an array"),
        ([1.5], "one whose actions are whole numbers, of arms. Got 1.5"),
        ([np.nan], r"one whose actions lie in \[0, 4\]. Got nan"),
        ([-1], r"one whose actions lie in \[0, 4\]. Got -1.0"),
    ],
)
def test_bad_actions_are_refused(actions: Any, match: str) -> None:
    agent = PolicyAgent(PROBLEM, policy=lambda rows: actions)
    agent.reset(0)
    with pytest.raises(ValueError, match=match):
        agent.act()


def test_a_policy_cannot_change_what_it_is_shown() -> None:
    def _spoil(rows: NDArray[Any]) -> NDArray[np.int64]:
        rows[:] = 9.0
        return np.zeros(len(rows), np.int64)

    agent = PolicyAgent(PROBLEM, policy=_spoil, history=2)
    agent.reset(0)
    agent.act()
    assert not agent.rows.any()
