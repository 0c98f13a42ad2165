"""The learner that was trained to learn: its memory by hand, its network against torch."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

import wgp_agents
from wgp_agents import InContext
from wgp_agents.algorithms.learned.in_context.memory import Shape, SmoothedPlays, surprises
from wgp_agents.algorithms.learned.in_context.model import Model, read_model, write_model
from wgp_agents.algorithms.learned.in_context.network import InContextNetwork, weight_shapes
from wgp_agents.benchmark.rollout import make_vector
from wgp_gym.kernels import Empirical, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Floats32

SMALL = Shape(rates=(0.5, 1.0), powers=(1.0, 4.0, 9.0))
PLACES = np.linspace(0, 1, 6)[:, None]


def problem(places: Array = PLACES, batch: int | None = None) -> BanditProblem:
    return BanditProblem(SquaredExponential(0.3), places, 50, 0.1, episodes=batch)


def some_weights(shape: Shape, seed: int = 0) -> dict[str, Floats32]:
    rng = np.random.default_rng(seed)
    shapes = weight_shapes(shape, context=5, hidden=7)
    return {name: rng.normal(0, 0.4, size).astype(np.float32) for name, size in shapes.items()}


def some_model(shape: Shape = SMALL, seed: int = 0) -> Model:
    return Model(InContextNetwork(some_weights(shape, seed)), shape, 1.0, {})


def test_features_are_nadaraya_watson_estimates() -> None:
    memory = SmoothedPlays(problem(), SMALL)
    arms, rewards = [3, 0, 5, 3], [2.0, -1.0, 0.5, 4.0]
    for arm, reward in zip(arms, rewards, strict=True):
        memory.add(np.array([arm]), np.array([reward]), np.ones(1, bool))
    spread = [np.std(rewards[:k]) for k in range(1, 5)]
    unit, centre = max(spread), np.mean(rewards)
    assert memory.scale[0] == pytest.approx(unit)
    assert memory.zero[0] == pytest.approx(centre)
    found = memory.look()[0].reshape(6, 2, 2, 3)
    for r, rate in enumerate(SMALL.rates):
        weights = rate ** np.arange(3, -1, -1.0)
        for h, power in enumerate(SMALL.powers):
            kernel = np.exp(-power * (PLACES - PLACES[arms, 0]) ** 2 / (2 * 0.3**2))
            count = (kernel * weights).sum(axis=1)
            total = (kernel * weights * (np.array(rewards) - centre)).sum(axis=1)
            np.testing.assert_allclose(found[:, 0, r, h], total / (count + 0.1) / unit, atol=2e-5)
            np.testing.assert_allclose(found[:, 1, r, h], np.log(count + 0.02) / 4, atol=1e-5)
    np.testing.assert_array_equal(memory.look_at(np.array([5]))[0], memory.look()[0, 5])


def test_a_surprise_is_counted_from_what_was_foretold() -> None:
    memory = SmoothedPlays(problem(), SMALL)
    for arm, reward in ((0, 1.0), (5, 3.0)):
        memory.add(np.array([arm]), np.array([reward]), np.ones(1, bool))
    features = memory.look_at(np.array([5]))
    told = surprises(memory, features, np.array([4.0]), np.array([0.5]), np.array([-1.0]), 50)[0]
    y = (4.0 - 2.0) / 1.0  # zero 2, unit 1
    z = (y - 0.5) / np.hypot(np.exp(-1.0), 0.02)
    own = features.reshape(2, 2, 3)[:, :, 1]
    expected = [np.tanh(z / 3), np.tanh(z / 3), -1 / 3, y, 0.5, 0.0, np.log(3) / 6]
    np.testing.assert_allclose(told, [*expected, *np.tanh(2 * (y - own[0])), *own[1]], rtol=1e-5)


def test_the_network_is_torchs() -> None:
    from wgp_agents.training.in_context import Played, Trainee

    torch.manual_seed(3)
    trainee = Trainee(SMALL, context=5, hidden=7)
    network = InContextNetwork(trainee.weights())
    rng = np.random.default_rng(1)
    told = rng.normal(size=(2, 4, SMALL.of_play)).astype(np.float32)
    features = rng.normal(size=(2, 3, 6, SMALL.of_arm)).astype(np.float32)
    moments = [0, 2, 4]
    context = rng.normal(size=(2, 5)).astype(np.float32)
    shown = torch.as_tensor(context), torch.as_tensor(told), torch.as_tensor(features)
    played = Played(*shown, torch.zeros(2, 3, 6), torch.tensor(moments), np.zeros(2))
    with torch.no_grad():
        expected = trainee(played, torch.arange(2))
    for t in range(5):
        if t in moments:
            k = moments.index(t)
            for got, wanted in zip(network.beliefs(features[:, k], context), expected, strict=True):
                np.testing.assert_allclose(got, wanted[:, k].numpy(), atol=1e-5)
        if t < 4:
            context = network.advance(context, told[:, t])


def played_arms(agent: InContext, rewards: Array) -> list[int]:
    """Play; a reward `(25, n)` follows from step and arm."""
    agent.reset(5)
    arms = []
    for paid in rewards:
        arms.append(agent.act())
        agent.observe(arms[-1], paid[arms[-1]])
    return arms


def test_the_order_of_arms_does_not_matter() -> None:
    order = np.random.default_rng(2).permutation(6)
    rewards = np.sin(5 * PLACES[:, 0])
    straight = InContext(problem(), model=some_model())
    mixed = InContext(problem(PLACES[order]), model=some_model())
    straight.reset(1)
    mixed.reset(1)
    for arm in (2, 4, 0, 2, 5):
        straight.observe(arm, rewards[arm])
        mixed.observe(int(np.flatnonzero(order == arm)[0]), rewards[arm])
    np.testing.assert_allclose(
        mixed.posterior().mean, straight.posterior().mean[order], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        mixed.posterior().std, straight.posterior().std[order], rtol=1e-4, atol=1e-5
    )


def test_neither_unit_nor_zero_of_rewards_matters() -> None:
    rewards = np.cos(4 * PLACES[:, 0] + np.arange(25)[:, None])
    plain, scaled = (InContext(problem(), model=some_model()) for _ in range(2))
    assert played_arms(plain, rewards) == played_arms(scaled, 1024.0 * rewards + 4096.0)
    np.testing.assert_allclose(
        scaled.posterior().mean, 1024.0 * plain.posterior().mean + 4096.0, rtol=1e-5
    )
    tiny, huge = (InContext(problem(), model=some_model()) for _ in range(2))
    assert played_arms(tiny, 2.0**-200 * rewards) == played_arms(huge, 2.0**300 * rewards)


def test_an_arm_sees_its_own_plays_whatever_its_variance() -> None:
    kernel = SquaredExponential(0.3)
    small = BanditProblem(Empirical(0.1 * kernel(PLACES, PLACES)), PLACES, 50, 0.1)
    ours, usual = SmoothedPlays(small, SMALL), SmoothedPlays(problem(), SMALL)
    for memory in (ours, usual):
        memory.add(np.array([2]), np.array([1.0]), np.ones(1, bool))
    np.testing.assert_allclose(ours.look(), usual.look(), rtol=1e-5)


def test_beliefs_that_are_no_numbers_are_no_play() -> None:
    weights = some_weights(SMALL)
    weights["last"] = weights["last"] * np.float32(1e38)
    weights["second"] = weights["second"] * np.float32(1e38)
    broken = Model(InContextNetwork(weights), SMALL, 1.0, {})
    for play in ("ucb", "best"):
        agent = wgp_agents.make("in-context", problem(), model=broken, play=play)
        agent.reset(0)
        with np.errstate(all="ignore"):
            agent.observe(1, 1.0)
            with pytest.raises(ValueError, match="not finite"):
                agent.act()


@pytest.mark.parametrize("batch", [2, 3, 40])
def test_a_learner_does_not_depend_on_the_others(batch: int) -> None:
    env = make_vector("WGPBandit-Abrupt-v0", batch)
    single = gymnasium.make("WGPBandit-Abrupt-v0")
    many = InContext(env, model=some_model(), play="best")
    one = InContext(single, model=some_model(), play="best")
    env.reset(seed=7)
    single.reset(seed=8)
    many.reset(7)
    one.reset(8)
    for _ in range(40):
        actions, action = many.act(), one.act()
        assert actions[1] == action
        paid, own = env.step(actions)[1], single.step(action)[1]
        many.observe(actions, paid)
        one.observe(action, own)
    np.testing.assert_array_equal(many.posterior().mean[1], one.posterior().mean)


def test_probabilities_of_the_best_arm_are_drawn() -> None:
    agent = InContext(problem(batch=4_000), model=some_model(), play="best")
    agent.reset(0)
    agent.observe(np.full(4_000, 2), np.full(4_000, 1.0))
    logits = agent.beliefs().logits[0].astype(float)
    chance = np.exp(logits) / np.exp(logits).sum()
    drawn = np.bincount(agent.act(), minlength=6) / 4_000
    np.testing.assert_allclose(drawn, chance, atol=4 * np.sqrt(0.25 / 4_000))
    mask = np.array([True, False, True, False, False, True])
    assert set(agent.act(allowed=np.tile(mask, (4_000, 1)))) <= {0, 2, 5}


def test_a_model_goes_to_a_file_and_back(tmp_path: Path) -> None:
    path, weights = tmp_path / "m.npz", some_weights(SMALL)
    write_model(path, weights, SMALL, {"width": 1.25, "seed": 3})
    model = read_model(str(path), "InContext")
    assert (model.shape, model.width, model.notes["seed"]) == (SMALL, 1.25, 3)
    for name, array in weights.items():
        np.testing.assert_array_equal(model.network.weights[name], array)
    agent = wgp_agents.make("in-context", problem(), model=str(path))
    assert isinstance(agent, InContext)
    assert agent.confidence_width[0] == 1.25


def test_bad_models_are_refused(tmp_path: Path) -> None:
    path, weights = tmp_path / "m.npz", some_weights(SMALL)
    faults = (
        weights | {"last": np.full((7, 3), np.nan, np.float32)},
        weights | {"last": np.zeros((7, 4), np.float32)},
        weights | {"last": weights["last"].astype(float)},
        {name: array for name, array in weights.items() if name != "arm"},
    )
    for fault in faults:
        write_model(path, fault, SMALL, {"width": 1.0})
        with pytest.raises(ValueError, match="model"):
            InContext(problem(), model=str(path))
    for notes in ({"width": -1.0}, {}, {"width": "wide"}):
        write_model(path, weights, SMALL, notes)
        with pytest.raises(ValueError, match="model"):
            InContext(problem(), model=str(path))
    path.write_bytes(b"PK no archive")
    with pytest.raises(ValueError, match="model"):
        InContext(problem(), model=str(path))
    with pytest.raises(ValueError, match="model"):
        InContext(problem(), model="nobody")


def test_an_episode_of_another_kernel_is_refused() -> None:
    env = gymnasium.make("WGPBandit-Abrupt-v0")
    env.reset(seed=0)
    agent = InContext(env, model=some_model())
    agent.reset(0)
    env.reset(seed=0, options={"lengthscale": 0.5})
    with pytest.raises(ValueError, match="kernel"):
        agent.reset(0)
