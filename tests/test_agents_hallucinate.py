"""Plays whose rewards are still to come: they count in the variances, not in the means."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import GAUSSIAN_PROCESSES, field
from numpy.typing import NDArray
from test_agents_parts import BayesianRegression

import wgp_agents
from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_agents.base import Agent
from wgp_agents.gp.agent import GPAgent
from wgp_agents.registry import agent_class, agent_parameters
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

Array = NDArray[np.float64]
ARMS = np.linspace(0.0, 1.0, 12)[:, None]
LAMBDA = 0.04
K = np.exp(-((ARMS - ARMS.T) ** 2) / (2 * 0.3**2))
TRAINED = [name for name in wgp_agents.names() if "model" in agent_parameters(name)]
RANDOMISED = ["gp-ts", "wgp-ts", "rand-wgp-ucb", "d-rand-lin-ucb", "d-lin-ts", "thompson", "d-ts"]
RANDOMISED += ["exp3", "exp3-s", "rexp3", "random", "oracle", "opkb", "r-perp", "neural-greedy"]
RANDOMISED += ["neural-ts"]
COUNTING = ["ucb1", "d-ucb", "sw-ucb", "cusum-ucb", "pht-ucb", "m-ucb", "glr-ucb"]
COUNTING += ["d-glm-ucb", "sw-glm-ucb"]


def known(agent: Agent) -> dict[str, Any]:
    """Return the state of an agent but for the streams."""
    state = agent.state_dict()
    return {key: np.asarray(value) for key, value in state.items() if "_streams" not in key}


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    assert before.keys() == after.keys()
    return {key for key in before if before[key].tobytes() != after[key].tobytes()}


def made(name: str, steps: int = 20, batch: int | None = None, **kwargs: Any) -> tuple[Agent, Any]:
    """Return an agent that has played, and the last observation."""
    if batch is None:
        env: Any = gymnasium.make(field(name), horizon=60)
    else:
        mode = "vector_entry_point"
        env = gymnasium.make_vec(field(name), num_envs=batch, vectorization_mode=mode, horizon=60)
    observation, _ = env.reset(seed=1)
    options = {"window": 16, "restart_period": 30, "hidden": 8} | kwargs
    agent = wgp_agents.make(
        name, env, **{k: v for k, v in options.items() if k in agent_parameters(name)}
    )
    agent.reset(1)
    for _ in range(steps):
        action = agent.act(observation)
        observation, reward, *_ = env.step(action)
        agent.observe(action, reward)
    return agent, observation


def dense(agent: GPAgent, arms: list[int], weights: Array, awaited: list[int]) -> Array:
    """Return the std of plays with weights, and of awaited ones with the weight 1."""
    every, noise = [*arms, *awaited], LAMBDA / np.append(weights, np.ones(len(awaited)))
    cross = K[:, every]
    solved = np.linalg.solve(K[np.ix_(every, every)] + np.diag(noise), cross.T)
    return np.asarray(np.sqrt(K.diagonal() - np.einsum("ij,ji->i", cross, solved)))


@pytest.mark.parametrize("name", ["wgp-ucb", "igp-ucb", "sw-gp-ucb"])
def test_variances_shrink_as_with_the_play_and_means_stay(name: str) -> None:
    draw = np.random.default_rng(0)
    problem = BanditProblem(SquaredExponential(0.3), ARMS, 200, 0.2, 2.0, 3.0)
    own: dict[str, Any] = {"wgp-ucb": {"discount": 0.9}, "sw-gp-ucb": {"window": 10}}
    agent = wgp_agents.make(name, problem, regularization=LAMBDA, **own.get(name, {}))
    agent.reset(0)
    assert isinstance(agent, GPAgent)
    arms = draw.integers(len(ARMS), size=20).tolist()
    for arm in arms:
        agent.observe(arm, float(draw.normal()))
    age = np.arange(20)[::-1]
    weights = {"wgp-ucb": 0.9**age, "sw-gp-ucb": np.where(age < 10, 1.0, 1e-14)}
    mean, awaited = agent.posterior().mean, [3, 3, 7, 0]
    for arm in awaited:
        agent.hallucinate(arm)
    found = agent.posterior()
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-10)
    expected = dense(agent, arms, weights.get(name, np.ones(20)), awaited)
    np.testing.assert_allclose(found.std, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("env_id", ["Slow", "LinearContextual"])
@pytest.mark.parametrize("name", ["wgp-ucb", "d-lin-ucb", "tv-gp-ucb", "adaptive-wgp-ucb"])
def test_it_is_the_play_with_its_mean_in_every_setting(name: str, env_id: str) -> None:
    """On a box, and with arms that change: as the play with any reward, as to the variances."""
    if (name, env_id) == ("d-lin-ucb", "Slow"):
        pytest.skip("it is linear")
    env = gymnasium.make(
        f"WGPBandit-{env_id}-v0", horizon=40, **({"continuous": True} if env_id == "Slow" else {})
    )
    options: dict[str, Any] = {"adaptive-wgp-ucb": {"drifts": [0.0], "noise_ratios": [0.1]}}
    twins = []
    for _ in range(2):
        observation, _ = env.reset(seed=1)
        agent = wgp_agents.make(name, env, **options.get(name, {}))
        agent.reset(1)
        for _ in range(12):
            action = agent.act(observation)
            observation, reward, *_ = env.step(action)
            agent.observe(action, float(reward))
        twins.append(agent)
    action = twins[0].act(observation)
    assert np.array_equal(twins[1].act(observation), action)
    before: Any = twins[0].posterior()  # type: ignore[attr-defined]
    twins[0].hallucinate(action)
    twins[1].observe(action, 0.3, elapsed=0)
    after, played = (twin.posterior() for twin in twins)  # type: ignore[attr-defined]
    np.testing.assert_allclose(after.mean, before.mean, rtol=0, atol=1e-10)
    scale = 1.0
    if isinstance(twins[0], AdaptiveWGPUCB) and isinstance(twins[1], AdaptiveWGPUCB):
        scale = float(twins[0].bank.scale[0] / twins[1].bank.scale[0])  # learned from the reward
    np.testing.assert_allclose(after.std, scale * played.std, rtol=1e-9, atol=1e-12)
    assert (after.std < before.std).any()


def test_the_choice_moves_on() -> None:
    for name in ("wgp-ucb", "r-gp-ucb", "sw-gp-ucb", "adaptive-wgp-ucb", "master"):
        agent, observation = made(name, steps=5)
        chosen = []
        for _ in range(8):
            chosen.append(agent.act(observation))
            agent.hallucinate(chosen[-1])
        assert len(set(chosen)) > 1, name


def test_a_bank_learns_nothing_else() -> None:
    agent, observation = made("adaptive-wgp-ucb", steps=25, batch=3)
    assert isinstance(agent, AdaptiveWGPUCB)
    before, mean, bank = known(agent), agent.posterior().mean.copy(), agent.bank
    for _ in range(4):
        agent.hallucinate(agent.act(observation), active=[True, False, True])
    assert changed(before, known(agent)) == {"agent.bank.kept.covariance"}
    np.testing.assert_array_equal(agent.posterior().mean, mean)
    covariance, old = bank.kept.covariance, before["agent.bank.kept.covariance"]
    assert np.array_equal(covariance[1], old[1])
    # Only the model by which the next choice is made: one of each of its block's K numbers.
    starts, count = bank.models.covariance_start, len(bank.models.drift)
    g, k = divmod(int(bank.chosen[0]), count)
    moved = np.flatnonzero(covariance[0] != old[0])
    assert (starts[g] <= moved).all()
    assert (moved < starts[g + 1]).all()
    assert set((moved - starts[g]) % count) == {k}
    rows = np.arange(1, bank.models.rank[g] + 1)
    diagonal = starts[g] + (rows * (rows + 1) // 2 - 1) * count + k
    assert covariance[0][diagonal].sum() < old[0][diagonal].sum()


def test_a_fitted_drift_learns_nothing_else() -> None:
    agent, observation = made("tv-gp-ucb", steps=25, eps="fit")
    before = known(agent)
    agent.hallucinate(agent.act(observation))
    moved = {key.rsplit(".", 1)[1] for key in changed(before, known(agent))}
    assert moved == {"covariance", "gains", "gain", "variance", "age", "held"}


def test_w_dbo_keeps_its_budget_and_has_room_for_any_number() -> None:
    agent, observation = made("w-dbo", steps=25, max_observations=12)
    assert isinstance(agent, GPAgent)
    before, mean = known(agent), agent.posterior().mean.copy()
    agent.hallucinate(agent.act(observation))
    np.testing.assert_allclose(agent.posterior().mean, mean, rtol=0, atol=1e-10)
    for _ in range(40):
        agent.hallucinate(agent.act(observation))
    moved = {key.rsplit(".", 1)[1] for key in changed(before, known(agent))}
    assert not moved & {"budget", "lengthscale", "clock", "seen", "since", "_seen"}
    assert agent.surrogate.held[0] <= 12


@pytest.mark.parametrize("name", COUNTING)
def test_an_index_shrinks_and_no_mean_or_detector_moves(name: str) -> None:
    agent, observation = made(name, steps=40, batch=2)
    assert hasattr(agent, "statistics")
    agent.act(observation)
    rows, plays = np.arange(2), agent.statistics
    arms = plays.counts.argmax(axis=1)
    before, mean, counts = known(agent), plays.mean(), plays.counts.copy()

    def _index() -> Array:
        agent.reseed(5)
        return np.array(agent.index(agent._streams))  # type: ignore[attr-defined]

    first = _index()
    agent.hallucinate(arms)
    second = _index()
    played = np.zeros_like(counts)
    played[rows, arms] = 1.0
    np.testing.assert_allclose(plays.counts, counts + played, rtol=0, atol=1e-12)
    if "glm" not in name:  # theirs is the mean of the model
        np.testing.assert_allclose(plays.mean(), mean, rtol=0, atol=1e-10)
    free = np.isfinite(first[rows, arms]) & (first[rows, arms] != 0)
    assert (second[rows, arms] < first[rows, arms])[free].all()
    moved = changed(before, known(agent))
    assert not {key for key in moved if "detector" in key or "alarm" in key or "steps" in key}
    assert not {key for key in moved if "estimate" in key}


def test_of_an_arm_without_plays_the_mean_of_all_is_taken() -> None:
    agent = wgp_agents.make(
        "ucb1", BanditProblem(SquaredExponential(0.2), ARMS, 90, 0.1, reward_range=(0.0, 10.0))
    )
    agent.reset(0)
    first = agent.act()
    agent.hallucinate(first)
    assert agent.statistics.mean()[0, first] == 0.5
    agent.reset(0)
    agent.observe(2, 8.0)
    agent.observe(3, 4.0)
    agent.hallucinate(5)
    assert agent.statistics.mean()[0, 5] == pytest.approx(0.6)
    # All arms have their turn before one has a second.
    agent.reset(0)
    asked = []
    for _ in ARMS:
        asked.append(agent.act())
        agent.hallucinate(asked[-1])
    assert sorted(asked) == list(range(len(ARMS)))


def test_an_awaited_play_leaves_a_window_as_others_do() -> None:
    agent, _ = made("sw-ucb", steps=0, window=5)
    agent.observe(2, 1.0)
    agent.hallucinate(3)
    agent.elapse(4.5)
    counts = agent.statistics.counts[0]  # type: ignore[attr-defined]
    assert counts[[2, 3]].tolist() == [1.0, 1.0]
    agent.elapse(0.5)
    assert counts[[2, 3]].tolist() == [0.0, 0.0]


def test_adswitch_gives_others_their_turn() -> None:
    agent, observation = made("adswitch", steps=30)
    asked = set()
    for _ in range(3):
        asked.add(arm := int(agent.act(observation)))
        agent.hallucinate(arm)
    assert len(asked) == 3


@pytest.mark.parametrize("name", RANDOMISED)
def test_to_who_draws_at_random_it_makes_no_difference(name: str) -> None:
    agent, observation = made(name)
    action = agent.act(observation)
    before = known(agent)
    agent.hallucinate(action)
    assert not changed(before, known(agent))


def test_every_gaussian_process_agent_says_what_it_does() -> None:
    for name in GAUSSIAN_PROCESSES:
        agent, observation = made(name)
        action = agent.act(observation)
        before = agent.posterior().std.copy()  # type: ignore[attr-defined]
        agent.hallucinate(action)
        less = (agent.posterior().std < before).any()  # type: ignore[attr-defined]
        assert less == (name not in RANDOMISED), name


class Timeless(BayesianRegression):
    """A surrogate of one's own, written before there was any time."""

    def update(self, plays: Any, rewards: Any, active: Any) -> None:  # type: ignore[override]
        super().update(plays, rewards, active)


def test_a_surrogate_that_knows_no_time_awaits_rewards_too() -> None:
    problem = BanditProblem(SquaredExponential(0.3), ARMS, 200, 0.2, 2.0, 3.0)
    agent = GPAgent(problem, surrogate=Timeless, regularization=LAMBDA, confidence_width=2.0)
    assert not agent.takes_elapsed
    agent.reset(0)
    for arm in (1, 5, 9):
        agent.observe(arm, 1.0, elapsed=1)
    mean = agent.posterior().mean
    agent.hallucinate(4)
    np.testing.assert_allclose(agent.posterior().mean, mean, rtol=0, atol=1e-10)
    expected = dense(agent, [1, 5, 9], np.ones(3), [4])
    np.testing.assert_allclose(agent.posterior().std, expected, rtol=0, atol=1e-7)
    with pytest.raises(ValueError, match="knows no time"):
        agent.observe(1, 1.0, elapsed=2)


@pytest.mark.parametrize("name", [name for name in wgp_agents.names() if name not in TRAINED])
def test_bad_plays_are_refused(name: str) -> None:
    agent, _ = made(name, steps=3)
    before = known(agent)
    with pytest.raises(ValueError, match="'action' parameter"):
        agent.hallucinate(10**6)
    with pytest.raises(ValueError, match="'active' parameter of hallucinate"):
        agent.hallucinate(0, active=[1.0, 3.0])
    assert not changed(before, known(agent))
    assert agent_class(name).hallucinate is Agent.hallucinate
