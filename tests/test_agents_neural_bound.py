"""NeuralUCB and neural Thompson sampling: their deviations and plays against dense algebra."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from test_agents_neural import FIVE, TASK, twin

import wgp_agents
from wgp_agents import NeuralTS, NeuralUCB
from wgp_agents.algorithms.learned.network import Network, Pull
from wgp_agents.algorithms.learned.neural_bound import NeuralBound
from wgp_agents.benchmark.rollout import make_vector, rollout

BOTH = ["neural-ucb", "neural-ts"]
MEMORY = 7


def gradients(agent: NeuralBound, learner: int, places: NDArray[Any]) -> NDArray[Any]:
    """Return torch's gradients of the output by all weights, `(M, P)`."""
    network = twin(agent.network, learner, places.shape[1], agent.network.hidden).double()
    rows = []
    for place in torch.as_tensor(places, dtype=torch.float64):
        network.zero_grad()
        network(place).backward()
        slopes = [one.grad for one in network.parameters() if one.grad is not None]
        rows.append(torch.cat([slope.flatten() for slope in slopes]).numpy())
    return np.array(rows)


def dense(agent: NeuralBound, learner: int, arms: list[int]) -> NDArray[Any]:
    """Return sigma at the arms after plays of `arms`, with U written out, `(P, P)`."""
    noise, width = agent.regularization[learner], agent.network.hidden
    at, played = (
        gradients(agent, learner, places) for places in (agent.inputs, agent.inputs[arms])
    )
    U = noise * np.eye(at.shape[1]) + played.T @ played / width
    found: NDArray[Any] = np.sqrt(noise * (at * np.linalg.solve(U, at.T).T).sum(axis=1) / width)
    return found


def played(name: str, arms: list[int], **parameters: Any) -> Any:
    """Return an agent of five arms that has a network and was told of plays."""
    agent = wgp_agents.make(name, FIVE, memory=MEMORY, hidden=6, **parameters)
    agent.reset(4)
    agent.act()
    for t, arm in enumerate(arms):
        agent.observe(arm, math.sin(3.0 * t))
    return agent


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("plays", [0, 3, MEMORY, 17])
def test_deviations_are_those_of_the_gradients_in_the_window(name: str, plays: int) -> None:
    arms = [(2 * t + t // 3) % 4 for t in range(plays)]  # some several times, and never the last
    agent = played(name, arms)
    found = agent.deviations()[0]
    np.testing.assert_allclose(found, dense(agent, 0, arms[-MEMORY:]), atol=1e-6)
    assert found.min() > 0


def test_each_learner_has_its_own() -> None:
    env = make_vector(TASK, 3, points_per_dim=6)
    env.reset(seed=0)
    agent = NeuralUCB(env, memory=4, hidden=5, regularization=[0.01, 0.1, 1.0])
    agent.reset(0)
    agent.act()
    told = np.array([[0, 3, 3], [1, 2, 3], [5, 0, 3]])
    for t, arms in enumerate(told):
        agent.observe(arms, [0.5, 1.0, -1.0], active=[True, t < 2, t < 1])
    found = agent.deviations()
    for i, count in enumerate((3, 2, 1)):
        np.testing.assert_allclose(found[i], dense(agent, i, told[:count, i].tolist()), atol=1e-6)


def test_many_arms_are_taken_in_blocks() -> None:
    env = gymnasium.make(TASK, dim=2, points_per_dim=36, horizon=20)
    env.reset(seed=0)
    agent = NeuralUCB(env, memory=3, hidden=3)
    agent.reset(0)
    for arm in (5, 900):
        agent.act()
        agent.observe(arm, 1.0 * arm)
    found = agent.deviations()[0]
    few = [0, 5, 900, 1023, 1024, 1295]
    agent.inputs, every = agent.inputs[few], agent.inputs
    np.testing.assert_allclose(agent.deviations()[0], found[few], rtol=1e-9)
    assert found.shape == (len(every),)


def test_ucb_plays_the_largest_bound() -> None:
    chosen = set()
    for factor in (0.0, 0.7, 30.0):
        agent = played("neural-ucb", [0, 3, 3, 1, 1, 2], exploration=factor)
        mean = agent.network.values(agent.inputs)[0]
        bound = mean + factor * dense(agent, 0, [0, 3, 3, 1, 1, 2])
        assert agent.act() == bound.argmax()
        chosen.add(int(bound.argmax()))
        mask = np.arange(5) != bound.argmax()
        assert agent.act(allowed=mask) == np.where(mask, bound, -np.inf).argmax()
    assert len(chosen) > 1  # the deviations matter


@pytest.mark.slow
def test_thompson_draws_have_the_mean_and_the_deviation() -> None:
    agent = played("neural-ts", [0, 3, 3, 1, 1, 2], exploration=3.0)
    mean, std = agent.network.values(agent.inputs)[0], 3 * dense(agent, 0, [0, 3, 3, 1, 1, 2])
    for one, other in ((0, 1), (2, 4)):
        mask = np.isin(np.arange(5), (one, other))
        won = np.mean([agent.act(allowed=mask) == one for _ in range(2500)])
        z = (mean[one] - mean[other]) / math.hypot(std[one], std[other])
        # Independent normal variates: Phi(z). Four standard errors of 2,500 draws are 0.04.
        expected = 0.5 * math.erfc(-z / math.sqrt(2))
        assert 0.1 < abs(expected - 0.5) < 0.4
        assert won == pytest.approx(expected, abs=0.04)


def test_the_pull_to_the_first_weights_is_torchs() -> None:
    rng = np.random.default_rng(0)
    network = Network(2, inputs=3, hidden=4, learning_rate=np.array([0.01, 0.02]))
    network.draw(np.ones(2, bool), rng.random(2))
    start, strength = network.weights.copy() + np.float32(0.1), np.array([0.3, 2.0], np.float32)
    inputs = rng.normal(size=(2, 5, 3)).astype(np.float32)
    targets = rng.normal(size=(2, 5)).astype(np.float32)
    weights = np.full((2, 5), 0.2, np.float32)
    rivals = [twin(network, i, 3, 4) for i in range(2)]
    network.fit(np.arange(2), inputs, targets, weights, 20, Pull(start, strength))
    for i, rival in enumerate(rivals):
        move = torch.optim.Adam(rival.parameters(), lr=[0.01, 0.02][i])
        first = [one.detach().clone() + 0.1 for one in rival.parameters()]
        for _ in range(20):
            move.zero_grad()
            error = rival(torch.as_tensor(inputs[i]))[:, 0] - torch.as_tensor(targets[i])
            pairs = zip(rival.parameters(), first, strict=True)
            away = sum(((one - begun) ** 2).sum() for one, begun in pairs)
            ((error**2).mean() + strength[i].item() * away).backward()
            move.step()
        with torch.no_grad():
            expected = rival(torch.as_tensor(inputs[i]))[:, 0].numpy()
        np.testing.assert_allclose(network.values(inputs[i])[i], expected, atol=2e-5)


def test_with_much_noise_the_network_stays_where_it_began() -> None:
    arms = [0, 1, 2, 3, 4] * 8
    tight, loose = (
        played("neural-ucb", arms, regularization=noise, learning_rate=1e-3)
        for noise in (1e3, 1e-3)
    )
    moved = [np.abs(one.network.weights - one.start).max() for one in (tight, loose)]
    assert moved[0] < 0.2 * moved[1]


@pytest.mark.parametrize("name", BOTH)
def test_a_learner_of_a_hundred_is_the_single_one(name: str) -> None:
    parameters: dict[str, Any] = {"memory": 6, "hidden": 8, "updates": 2}

    def plays(batch: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
        env = make_vector(TASK, batch, horizon=12)
        agent: Any = wgp_agents.make(name, env, **parameters)
        actions = rollout(agent, env, seed=seed)["action"]
        return actions, agent.deviations()

    many = plays(100, 0)
    for seed, batch in ((0, 1), (57, 1), (40, 3)):
        for all_of_them, own in zip(many, plays(batch, seed), strict=True):
            np.testing.assert_array_equal(all_of_them[seed : seed + batch], own)


def test_a_play_whose_reward_is_to_come_counts_in_deviations_alone() -> None:
    arms = [0, 3, 3, 1]
    agent, twin_agent = played("neural-ucb", arms), played("neural-ucb", arms)
    before = agent.network.values(agent.inputs)
    agent.hallucinate(4)
    agent.hallucinate(4)
    np.testing.assert_array_equal(agent.network.values(agent.inputs), before)
    np.testing.assert_allclose(agent.deviations()[0], dense(agent, 0, [*arms, 4, 4]), atol=1e-6)
    rows = np.array([0])
    for awaited, told in zip(agent.targets(rows), twin_agent.targets(rows), strict=True):
        np.testing.assert_allclose(awaited, told, atol=1e-7)  # neither the unit nor the weights
    agent.observe(2, 0.5)
    assert np.isfinite(agent.network.weights).all()


@pytest.mark.parametrize("name", BOTH)
def test_on_a_box_they_play_the_grid(name: str) -> None:
    env = gymnasium.make(TASK, continuous=True, horizon=20)
    env.reset(seed=0)
    agent = wgp_agents.make(name, env, hidden=8)
    agent.reset(0)
    grid = env.unwrapped.problem.domain.astype(np.float32)  # type: ignore[attr-defined]
    for x in (0.123, 0.456, 0.789):
        assert agent.act() in grid
        agent.observe(np.array([x]), x)  # also points off the grid are learned from


def test_refused() -> None:
    with pytest.raises(ValueError, match="'env' parameter of NeuralTS must be a task whose arms"):
        NeuralTS(gymnasium.make("WGPBandit-LinearContextual-v0"))
    with pytest.raises(ValueError, match=r"'memory' parameter of NeuralUCB .* in \[1, 2000\]"):
        NeuralUCB(FIVE, memory=2001)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
def test_they_learn_and_follow_a_change(name: str) -> None:
    def regret(one: str) -> NDArray[Any]:
        env = make_vector(TASK, 8, horizon=160, change_points=[80])
        return np.asarray(rollout(wgp_agents.make(one, env), env, seed=0)["regret"])

    learnt, chance = regret(name), regret("random")
    for first, last in ((40, 80), (120, 160)):
        assert learnt[:, first:last].mean() < 0.5 * chance[:, first:last].mean()
