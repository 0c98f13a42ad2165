"""The learner that starts untrained: its network against torch, and what it does with plays."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import wgp_agents
from wgp_agents import NeuralGreedy
from wgp_agents.algorithms.learned.network import Network
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_gym.kernels import Empirical, SquaredExponential
from wgp_gym.problem import BanditProblem

TASK = "WGPBandit-Abrupt-v0"
FIVE = BanditProblem(SquaredExponential(0.2), np.linspace(0, 1, 5)[:, None], 100, 0.1, 2.0)


def twin(network: Network, learner: int, inputs: int, hidden: int) -> torch.nn.Sequential:
    """Return a torch network with the weights of a learner's."""
    layers: list[Any] = [torch.nn.Linear(inputs, hidden), torch.nn.ReLU()]
    layers += [torch.nn.Linear(hidden, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 1)]
    made = torch.nn.Sequential(*layers)
    parts = [torch.as_tensor(part[learner].copy()) for part in network.split(network.weights)]
    with torch.no_grad():
        dense: list[Any] = [made[0], made[2], made[4]]
        for place, layer in enumerate(dense):
            layer.weight.copy_(parts[2 * place].T)
            layer.bias.copy_(parts[2 * place + 1][0])
    return made


def test_training_is_torchs() -> None:
    rng = np.random.default_rng(0)
    rates = np.array([0.01, 0.02, 0.03])
    network = Network(3, inputs=4, hidden=6, learning_rate=rates)
    network.draw(np.ones(3, bool), rng.random(3))
    rivals = [twin(network, i, 4, 6) for i in range(3)]
    moves = [
        torch.optim.Adam(rival.parameters(), lr=rate)
        for rival, rate in zip(rivals, rates, strict=True)
    ]
    everything = rng.normal(size=(7, 4)).astype(np.float32)
    for learners in ([0, 1, 2], [0, 2], [1], [0, 1, 2]):  # some learn more often than others
        batch = len(learners)
        inputs = rng.normal(size=(batch, 5, 4)).astype(np.float32)
        targets = rng.normal(size=(batch, 5)).astype(np.float32)
        weights = rng.random((batch, 5)).astype(np.float32)
        network.fit(np.array(learners), inputs, targets, weights, steps=3)
        for row, i in enumerate(learners):
            for _ in range(3):
                moves[i].zero_grad()
                given, wanted, weight = map(
                    torch.as_tensor, (inputs[row], targets[row], weights[row])
                )
                (weight * (rivals[i](given)[:, 0] - wanted) ** 2).sum().backward()
                moves[i].step()
        with torch.no_grad():
            expected = [rival(torch.as_tensor(everything))[:, 0].numpy() for rival in rivals]
        np.testing.assert_allclose(network.values(everything), np.array(expected), atol=2e-5)


def test_weights_start_as_he_and_colleagues_have_them() -> None:
    network = Network(2, inputs=8, hidden=200, learning_rate=np.ones(2))
    network.draw(np.array([True, False]), np.array([0.3, 0.3]))
    first, offset, second, *_ = network.split(network.weights)
    assert first[0].std() == pytest.approx(np.sqrt(2 / 8), rel=0.1)
    assert second[0].std() == pytest.approx(np.sqrt(2 / 200), rel=0.03)
    assert not offset.any()
    assert not first[1].any()
    network.draw(np.array([False, True]), np.array([0.4, 0.3]))
    first = next(network.split(network.weights))
    np.testing.assert_array_equal(first[0], first[1])  # the same number, the same weights


def shown(agent: NeuralGreedy, plays: list[tuple[int, float]]) -> NDArray[Any]:
    """Return the network's values of all arms after plays."""
    agent.reset(3)
    agent.act()  # from here on it learns play by play
    for arm, reward in plays:
        agent.observe(arm, reward)
    values: NDArray[Any] = agent.network.values(agent.inputs)[0]
    return values


def test_the_unit_of_the_reward_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    plays = [(int(rng.integers(5)), float(rng.normal())) for _ in range(30)]
    values = shown(NeuralGreedy(FIVE), plays)
    moved = shown(NeuralGreedy(FIVE), [(arm, 1000 * reward + 7e4) for arm, reward in plays])
    np.testing.assert_allclose(moved, values, atol=1e-6)
    assert np.ptp(values) > 0.1
    assert np.isfinite(shown(NeuralGreedy(FIVE), [(2, 5.0)] * 3)).all()  # no bound_variance at all
    huge = shown(NeuralGreedy(FIVE), [(arm, 1e300 * (arm == 3)) for arm in range(5)] * 10)
    assert huge.argmax() == 3


def test_many_arms_are_valued_in_blocks() -> None:
    network = Network(2, inputs=3, hidden=4, learning_rate=np.ones(2))
    network.draw(np.ones(2, bool), np.array([0.2, 0.8]))
    inputs = np.random.default_rng(0).normal(size=(2500, 3)).astype(np.float32)
    single = np.concatenate([network.values(row[None]) for row in inputs], axis=1)
    np.testing.assert_allclose(network.values(inputs), single, rtol=1e-5, atol=1e-6)


def test_it_fits_what_is_in_the_memory_and_no_more() -> None:
    agent = NeuralGreedy(FIVE, memory=10)
    old, new = (
        [(arm, 5.0 * (arm == 1)) for arm in range(5)],
        [(arm, 5.0 * (arm == 3)) for arm in range(5)],
    )
    assert shown(agent, old * 20).argmax() == 1
    assert shown(agent, old * 20 + new * 20).argmax() == 3
    agent.reset(0)
    for arm, reward in old * 20 + new * 2:
        agent.observe(arm, reward)
    places = FIVE.domain[[arm for arm, _ in new * 2], 0]
    expected = [[*np.cos(np.pi * np.arange(1, 5) * x), 5.0 * (x == 0.75)] for x in places]
    np.testing.assert_allclose(np.column_stack([agent.seen[0], agent.rewards[0]]), expected)


def test_all_plays_in_the_memory_weigh_the_same() -> None:
    agent = NeuralGreedy(FIVE, memory=10)
    agent.reset(0)
    for t, kept in ((4, 4), (16, 10)):  # 4 plays, then 20
        for play in range(t):
            agent.observe(play % 5, float(play))
        weights = agent.targets(np.array([0]))[1][0]
        np.testing.assert_allclose(np.sort(weights), [0.0] * (10 - kept) + [1 / kept] * kept)


def test_a_learner_that_is_shown_a_play_first_has_weights_of_its_own() -> None:
    env = make_vector(TASK, 2)
    agent = NeuralGreedy(env)
    env.reset(seed=0)
    agent.reset(0)
    begun = np.array([False, True])
    agent.predict(np.array([[0.1, 1, 49 / 99, 7], [0, 0, 0, 0]], np.float32), episode_start=begun)
    assert np.abs(agent.network.weights).sum(axis=1).min() > 0


@pytest.mark.parametrize("told", [1, 70])
def test_what_a_learner_is_told_first_moves_no_other(told: int) -> None:
    env, alone = make_vector(TASK, 2), [make_vector(TASK, 1) for _ in range(2)]
    env.reset(seed=0)
    many, ones = NeuralGreedy(env), [NeuralGreedy(one) for one in alone]
    many.reset(0)
    for i, one in enumerate(ones):
        alone[i].reset(seed=i)
        one.reset(i)
    for t in range(told):  # before the first act, and the first learner alone
        many.observe([t, 0], [0.1 * t, 0.0], active=[True, False])
        ones[0].observe([t], [0.1 * t])
    for _ in range(8):
        played = many.act()
        for i, one in enumerate(ones):
            assert one.act() == played[i]
            one.observe(played[i : i + 1], [1.0])
        many.observe(played, [1.0, 1.0])


@pytest.mark.slow
def test_it_explores_as_often_as_it_is_told() -> None:
    def actions(**parameters: Any) -> NDArray[Any]:
        env = make_vector(TASK, 100, horizon=60)
        agent = NeuralGreedy(env, updates=1, **parameters)
        played = []
        observation, _ = env.reset(seed=4)
        agent.reset(4)
        for _ in range(60):
            best = agent.network.values(agent.inputs).argmax(axis=1)
            played.append((agent.act(observation), best))
            _, rewards, *_ = env.step(played[-1][0])
            agent.observe(played[-1][0], rewards)
        chosen, best = np.array(played).swapaxes(0, 1)
        shares: NDArray[Any] = (chosen == best).mean(axis=1)
        return shares

    greedy = actions(epsilon=0.0, warmup=0)
    np.testing.assert_array_equal(greedy[1:], 1.0)
    # One arm of a hundred is the best by chance. 5,900 plays: four standard errors are 0.024.
    assert actions(epsilon=0.3, warmup=0)[1:].mean() == pytest.approx(0.7 + 0.3 / 100, abs=0.024)
    # With a warmup of two steps the second action explores half the time.
    assert actions(epsilon=0.0, warmup=2)[1] == pytest.approx(0.5, abs=0.2)
    falling = actions(epsilon=0.1, warmup=20)
    assert falling[1:6].mean() < 0.3
    assert falling[21:].mean() == pytest.approx(0.9, abs=0.03)


def test_arms_without_coordinates_have_an_input_each() -> None:
    kernel = Empirical(np.eye(4) * 0.5 + 0.5)
    problem = BanditProblem(kernel, np.linspace(0, 1, 4)[:, None], 10, 0.1, 1.0)
    np.testing.assert_array_equal(NeuralGreedy(problem).inputs, np.eye(4))


def test_within_500_plays_it_learns_and_follows_the_changes() -> None:
    env = make_vector(TASK, 20)
    learnt = rollout(NeuralGreedy(env), env, seed=0)["regret"]
    chance = rollout(wgp_agents.make("random", env), env, seed=0)["regret"]
    # The functions change at 100 and 200. Of random play's, over seeds 0, 100, ..., 900: at most
    # 0.10, 0.34 and 0.19.
    for first, last, limit in ((50, 100, 0.2), (150, 200, 0.45), (250, 500, 0.3)):
        share = learnt[:, first:last].mean() / chance[:, first:last].mean()
        assert share < limit


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"epsilon": 1.5}, r"'epsilon' parameter of NeuralGreedy must be a float in \[0, 1\]"),
        ({"warmup": -1}, "'warmup' parameter of NeuralGreedy"),
        ({"memory": 0}, "'memory' parameter of NeuralGreedy"),
        ({"updates": 0}, "'updates' parameter of NeuralGreedy"),
        ({"hidden": 0}, "'hidden' parameter of NeuralGreedy"),
        (
            {"learning_rate": 0.0},
            r"'learning_rate' parameter of NeuralGreedy must be a float in \[1e-30, 1\]",
        ),
    ],
)
def test_refused(given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        NeuralGreedy(FIVE, **given)


def test_on_a_box_it_learns_from_points_off_the_grid() -> None:
    env = gymnasium.make(TASK, continuous=True)
    env.reset(seed=0)
    agent = NeuralGreedy(env, epsilon=0.0, warmup=0)
    agent.reset(0)
    for x in np.linspace(0.003, 0.997, 60):
        agent.observe(np.array([x]), -((x - 0.42) ** 2))
    assert agent.act()[0] == pytest.approx(0.42, abs=0.06)
    assert agent.act() in env.unwrapped.problem.domain.astype(np.float32)  # type: ignore[attr-defined]
