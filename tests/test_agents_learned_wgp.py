"""The gate over a bank's models: its network, its mixture, its files, its training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import wgp_agents
from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_agents.algorithms.learned.gate import Gate, load_gate, untrained, write_gate
from wgp_agents.algorithms.learned.learned_wgp_ucb import LearnedWGPUCB
from wgp_agents.benchmark.rollout import make_vector
from wgp_agents.gp.surrogates.gated_bank import SHORTLIST, GatedBank
from wgp_agents.kernels.gate import CORRECTION, INPUTS, STRETCH, GateWeights
from wgp_gym.types import Array, Indices

ABRUPT = "WGPBandit-Abrupt-v0"
CHOSEN = 7  # the input that says whether a model is the chosen one


def random_weights(seed: int, hidden: int = 6) -> GateWeights:
    """Return weights that are large enough to matter."""
    rng = np.random.default_rng(seed)
    shapes = ((INPUTS, hidden), (hidden,), (3 * hidden, hidden), (hidden,), (hidden, 2), (2,))
    return GateWeights(*(rng.normal(scale=1.5, size=shape) for shape in shapes))


def played(gate: Gate | str, steps: int, batch: int = 3, **options: Any) -> LearnedWGPUCB:
    """Return an agent after some plays of its own, the abrupt task's change among them."""
    env = make_vector(ABRUPT, batch, horizon=150, points_per_dim=30, **options)
    observation, _ = env.reset(seed=5)
    agent = LearnedWGPUCB(env, gate=gate)
    agent.reset(7)
    for _ in range(steps):
        action = agent.act(observation)
        observation, reward, *_ = env.step(action)
        agent.observe(action, reward)
    return agent


def bank_of(agent: LearnedWGPUCB) -> GatedBank:
    """Return an agent's bank."""
    assert isinstance(agent.bank, GatedBank)
    return agent.bank


def of_model(agent: LearnedWGPUCB, i: int, q: int) -> tuple[Array, Array, float]:
    """Return mean, bound's std and n of learner i's model q as the bank has them, `(n,)` each."""
    plain = AdaptiveWGPUCB(agent.problem)
    for mine, theirs in zip(plain.bank.kept, bank_of(agent).kept, strict=True):
        mine[:] = theirs
    plain.bank.kept.chosen[:] = q
    mean, _, variance = plain.bank.predict(plain.action_set.candidates)
    return mean[i], np.sqrt(variance[i]), float(plain.bank.informed[i])


def scores(agent: LearnedWGPUCB, i: int) -> Array:
    """Return F + b L + prior of learner i's models, `(Q,)`."""
    kept, models = bank_of(agent).kept, bank_of(agent).models
    found: Array = kept.recent[i] + 0.1 * kept.lasting[i] + models.prior
    return found


def mixed(agent: LearnedWGPUCB, i: int, logits: Array, models: Indices, stretch: Array) -> Any:
    """Return mean and std of learner i's mixture, computed in the plainest way."""
    pi = np.exp(logits - logits.max())
    pi /= pi.sum()
    means, squares = [], []
    for q, d in zip(models.tolist(), stretch.tolist(), strict=True):
        mean, std, n = of_model(agent, i, q)
        means.append(mean)
        squares.append(np.exp(2 * d) * (1 + 1 / max(n, 0.05)) * std**2 + mean**2)
    mean = pi @ np.array(means)
    return mean, np.sqrt(pi @ np.array(squares) - mean**2)


def test_the_untrained_gate_is_the_softmax_of_the_banks_own_scores() -> None:
    for steps in (12, 70):
        agent = played("untrained", steps)
        found = agent.posterior()
        for i in range(3):
            score = scores(agent, i)
            models = np.argsort(-score, kind="stable")[:SHORTLIST]
            mean, std = mixed(agent, i, score[models], models, np.zeros(SHORTLIST))
            assert found.mean[i] == pytest.approx(mean, abs=1e-4)  # small weights are left out
            assert found.std[i] == pytest.approx(std, rel=1e-3, abs=1e-4)


def reference(x: Array, net: GateWeights) -> tuple[Array, Array]:
    """Return the corrections of scores and log deviations, of inputs `(K, INPUTS)`."""
    h = np.maximum(x @ net.first + net.first_offset, 0)
    both = np.column_stack([h, *(np.tile(pool, (len(h), 1)) for pool in (h.mean(0), h.max(0)))])
    out = np.maximum(both @ net.second + net.second_offset, 0) @ net.last + net.last_offset
    return CORRECTION * np.tanh(out[:, 0] / CORRECTION), STRETCH * np.tanh(out[:, 1] / STRETCH)


def test_the_network_corrects_weights_and_deviations_as_in_numpy() -> None:
    net = random_weights(2)
    agent = played(Gate(net, 1.5, {}), 70)
    found, shown = agent.posterior(), bank_of(agent).look(np.arange(3))
    bounds = agent.bounds()
    for i in range(3):
        correction, stretch = reference(shown.inputs[i], net)
        assert np.abs(correction).max() > 0.3
        assert np.abs(stretch).max() > 0.3
        logits = scores(agent, i)[shown.models[i]] + correction
        mean, std = mixed(agent, i, logits, shown.models[i], stretch)
        assert found.mean[i] == pytest.approx(mean, abs=1e-4)
        assert found.std[i] == pytest.approx(std, rel=1e-3, abs=1e-4)
        assert bounds[i] == pytest.approx(mean + 1.5 * std, rel=1e-3, abs=1e-3)


def test_a_gate_with_all_weight_on_one_model_gives_that_models_posterior() -> None:
    net = GateWeights(*(np.zeros(a.shape) for a in random_weights(0, hidden=1)))
    net.first[CHOSEN, 0] = net.second[0, 0] = 1.0
    net.last[0, 0] = 1e3  # the chosen model is 20 nats ahead
    agent = played(Gate(net, 1.5, {}), 40)
    bank, found = bank_of(agent), agent.posterior()
    for i in range(3):
        q = int(bank.kept.chosen[i])
        assert q in bank.look(np.arange(3)).models[i]
        mean, std, n = of_model(agent, i, q)
        assert found.mean[i] == pytest.approx(mean, rel=1e-12, abs=1e-12)
        assert found.std[i] == pytest.approx(np.sqrt(1 + 1 / n) * std, rel=1e-9)


def test_the_last_surprise_is_the_standardised_innovation() -> None:
    agent = played("untrained", 30, noise_std=1.0)
    bank, arms, paid = bank_of(agent), np.array([3, 8, 20]), np.array([0.7, -2.0, 4.0])
    kept = bank.kept
    whole = kept.square / kept.shape[:, None]  # s^2 of all innovations
    expected = []
    for q in (5, 60):
        g = q // len(bank.models.drift)
        for i in range(3):
            mean, std, _ = of_model(agent, i, q)
            told = kept.signal[i, q] / kept.informed[i, q]
            v = std[arms[i]] ** 2 / told + bank.models.noise[g]
            expected.append((paid[i] - mean[arms[i]]) ** 2 / (whole[i, q] * v))
    agent.observe(arms, paid)
    # what features leave out counts as noise, at most 3 % of it
    assert bank.last[:, [5, 60]].T.ravel() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("factor", [1e-6, 1e9])
def test_unit_and_zero_of_rewards_do_not_matter(factor: float) -> None:
    env: Any = gym.make(ABRUPT, horizon=120, points_per_dim=30)
    one, other = (LearnedWGPUCB(env, gate=Gate(random_weights(3), 1.5, {})) for _ in range(2))
    observation, _ = env.reset(seed=3)
    one.reset(4)
    other.reset(4)
    for _ in range(100):
        action = one.act(observation)
        assert other.act(observation) == action
        observation, reward, *_ = env.step(action)
        one.observe(action, reward)
        other.observe(action, factor * (reward + 4.0))
    assert other.posterior().std / factor == pytest.approx(one.posterior().std, rel=1e-5)


def test_a_play_whose_reward_is_to_come_lowers_its_bound() -> None:
    agent = played("untrained", 20)
    arms, before = agent.bounds().argmax(axis=1), agent.bounds()
    agent.hallucinate(arms)
    lower = np.take_along_axis(before - agent.bounds(), arms[:, None], axis=1)
    assert (lower > 0.0).all()
    assert (agent.bounds() <= before + 1e-9).all()


def test_a_file_holds_a_gate_in_single_precision(tmp_path: Path) -> None:
    path, gate = tmp_path / "gate.npz", Gate(random_weights(1), 1.25, {"seed": 3})
    write_gate(path, gate)
    found = load_gate(path, "test")
    assert (found.width, found.notes["seed"]) == (1.25, 3)
    for ours, theirs in zip(gate.weights, found.weights, strict=True):
        assert np.array_equal(ours.astype(np.float32), theirs)
    with np.load(path, allow_pickle=False) as arrays:
        assert {*GateWeights._fields} < {*arrays.files}


def damaged(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield files that are no gates, and a word of what is said of each."""
    weights = random_weights(1)
    for name, gate, fault in (
        ("nan", Gate(weights._replace(last=weights.last * np.nan), 1.0, {}), "finite"),
        ("shape", Gate(weights._replace(last=weights.last[1:]), 1.0, {}), "not those"),
        ("width", Gate(weights, 1e3, {}), "width"),
    ):
        write_gate(path / name, gate)
        yield path / name, fault
    (path / "text").write_text("no archive")
    yield path / "text", "BadZipFile"
    yield path / "nowhere", "FileNotFoundError"


def test_a_file_that_is_no_gate_is_refused(tmp_path: Path) -> None:
    env = gym.make(ABRUPT)
    for path, fault in damaged(tmp_path):
        with pytest.raises(ValueError, match=f"'gate' parameter of LearnedWGPUCB.*{fault}"):
            wgp_agents.make("learned-wgp-ucb", env, gate=path)
    wrong: Any = 3
    with pytest.raises(ValueError, match="'gate' parameter of LearnedWGPUCB must be"):
        LearnedWGPUCB(env, gate=wrong)


def test_the_gate_that_comes_with_the_package_is_small_and_trained() -> None:
    gate = load_gate("general", "test")
    assert gate.weights.last.any()
    assert not untrained().weights.last.any()
    assert sum(a.size for a in gate.weights) < 10_000


@pytest.mark.slow
def test_the_trained_gate_beats_the_untrained_one_on_the_same_episodes() -> None:
    # 100 episodes, none of training: 16 for 20, the paired difference 5 standard errors
    found = []
    for gate in ("untrained", "general"):
        env = make_vector("WGPBandit-Stationary-v0", 100)
        observation, info = env.reset(seed=10**15)
        agent = wgp_agents.make("learned-wgp-ucb", env, gate=gate)
        agent.reset(10**15)
        for _ in range(500):
            action = agent.act(observation)
            observation, reward, _, _, info = env.step(action)
            agent.observe(action, reward)
        found.append(info["cumulative_regret"].copy())
    saved = found[0] - found[1]
    assert saved.mean() > 3.0 * saved.std() / 10.0


def test_training_lowers_the_loss_and_learns_the_network_that_is_played() -> None:
    torch = pytest.importorskip("torch")
    from wgp_agents.training.gate import GateSettings, GateTrainer
    from wgp_agents.training.worlds import World

    settings = GateSettings(batch=4, longest=60, moments=0.3, updates=40, hidden=8, kept=2)
    kwargs: dict[str, Any] = {"horizon": 120, "points_per_dim": 30}
    trainer = GateTrainer([World(ABRUPT, kwargs)], settings, 0, 10**9)
    first, *_, last = (trainer.round(done) for done in (0.0, 0.25, 0.5, 0.75))
    assert first[0] == pytest.approx(first[1])  # nothing is learned yet
    assert last[1] < last[0]
    net = trainer.gate(1.0).weights
    x = np.random.default_rng(0).normal(size=(2, SHORTLIST, INPUTS))
    with torch.no_grad():
        found = trainer.average(torch.from_numpy(x).float())
    for i in range(2):
        for one, expected in zip(found, reference(x[i], net), strict=True):
            assert one[i].numpy() == pytest.approx(expected, abs=1e-5)
