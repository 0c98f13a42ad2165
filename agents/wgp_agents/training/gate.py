"""Training of the gate of `learned-wgp-ucb`: on the truth, over its own plays ([Ross11], DAgger).

The agent plays worlds drawn at random with the gate as it then is. At some moments what the gate is
shown is recorded, with what the models on the shortlists say of some arms and the truth f_t there.
The loss is -log of the normal density of the truth under the mixture's mean and variance.

[Ross11] Ross, Gordon, Bagnell. A reduction of imitation learning and structured prediction to
no-regret online learning. AISTATS 2011.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from wgp_agents.algorithms.learned.gate import Gate
from wgp_agents.algorithms.learned.learned_wgp_ucb import LearnedWGPUCB
from wgp_agents.benchmark.files import JSON
from wgp_agents.benchmark.rollout import make_vector
from wgp_agents.gp.surrogates.gated_bank import GatedBank
from wgp_agents.kernels.gate import CORRECTION, INPUTS, STRETCH, GateWeights
from wgp_agents.training.averaged import update
from wgp_gym.types import Array, Floats32, Indices

__all__ = ["GateSettings", "GateTrainer", "Trainee", "drawn_world"]

FLOOR = 1e-8  # of a variance, in the unit of rewards: the truth is known no better
STEEP = 10.0  # nats of one arm, beyond which a loss grows as its logarithm
LEADING = 7  # arms of the largest bounds at which the loss is taken, beside the best one
WIDTHS = 0.7, 2.5  # between which the bound's width is drawn for each batch
AVERAGE = 0.995  # of the running mean of the weights, once it has settled


@dataclass(frozen=True)
class GateSettings:
    """How a gate is trained.

    Attributes:
        batch: Episodes at once, all of one law.
        longest: Steps of an episode that are played at most.
        moments: The share of steps at which samples are taken.
        arms: Arms of a sample.
        hidden: Units of the network's layers.
        kept: Batches of episodes that are learned from, the last ones.
        updates: Steps of Adam after each.
        minibatch: Samples of such a step.
        learning_rate: Of Adam at its largest; it falls as half a cosine.
        weight_decay: Of AdamW.
    """

    batch: int = 16
    longest: int = 600
    moments: float = 0.12
    arms: int = 24
    hidden: int = 32
    kept: int = 60
    updates: int = 30
    minibatch: int = 256
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4


def drawn_world(rng: np.random.Generator) -> tuple[str, dict[str, JSON]]:
    """Return an environment's id and keywords, drawn at random.

    In 60 % functions jump, from never to twelve times, in 25 % they move along lines, in 15 % they
    walk. Noise, lengthscale and the pace of lines and walks are log-uniform.
    """
    kind, horizon = rng.random(), int(rng.integers(400, 701))
    noise = log_uniform(rng, 0.03, 2.0)
    found: dict[str, JSON] = {"lengthscale": log_uniform(rng, 0.08, 0.5)}
    if rng.random() < 0.15:  # rough functions have many features, and take long
        found = {"lengthscale": log_uniform(rng, 0.15, 0.5), "kernel": "matern"}
    if kind < 0.6:
        count = 0 if rng.random() < 0.2 else min(int(rng.geometric(0.3)), 12)
        if count == 0:
            return "WGPBandit-Stationary-v0", found | {"horizon": horizon, "noise_std": noise}
        cuts = np.sort(rng.choice(np.arange(2, horizon), count, replace=False)).tolist()
        found |= {"horizon": horizon, "noise_std": noise, "change_points": cuts}
        return "WGPBandit-Abrupt-v0", found
    if kind < 0.85:
        pace = round(log_uniform(rng, 250, 2500))
        return "WGPBandit-Slow-v0", found | {"horizon": pace, "noise_std": noise}
    eps = log_uniform(rng, 3e-4, 0.03)
    # its functions' variance is 1, not some 10
    found |= {"horizon": horizon, "noise_std": noise / 3.0, "eps": eps}
    return "WGPBandit-Markov-v0", found


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a draw whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


class Samples(NamedTuple):
    """What is learned from: s samples, K models each, a arms each.

    Attributes:
        score: What the untrained gate goes by, `(s, K)`.
        deviation: What it adds to a log deviation, `(s, K)`.
        inputs: What the network is shown, `(s, K, INPUTS)`.
        mean: mu less the truth, in the chosen model's unit, `(s, K, a)`.
        variance: s^2 v in that unit, `(s, K, a)`.
        floor: The least variance of a mixture in it, `(s,)`.
    """

    score: Tensor
    deviation: Tensor
    inputs: Tensor
    mean: Tensor
    variance: Tensor
    floor: Tensor


class Trainee(nn.Module):
    """The network of `wgp_agents.kernels.gate` in torch, its last layer 0 at first."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(INPUTS, hidden)
        self.second = nn.Linear(3 * hidden, hidden)
        self.last = nn.Linear(hidden, 2)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the corrections of score and log deviation, `(s, K)` each."""
        own = torch.relu(self.first(inputs))
        pooled = torch.cat([own.mean(dim=1), own.amax(dim=1)], dim=1)
        both = torch.cat([own, pooled[:, None].expand(-1, own.shape[1], -1)], dim=2)
        correction, stretch = self.last(torch.relu(self.second(both))).unbind(dim=2)
        bounded = CORRECTION * torch.tanh(correction / CORRECTION)
        return bounded, STRETCH * torch.tanh(stretch / STRETCH)

    def weights(self) -> GateWeights:
        """Return the weights as compiled loops take them."""
        layers: tuple[Any, ...] = (self.first, self.second, self.last)
        found = [part for layer in layers for part in (layer.weight.T, layer.bias)]
        return GateWeights(*(a.detach().numpy().astype(float, order="C") for a in found))


def mixture_loss(net: Trainee, samples: Samples) -> Tensor:
    """Return -log N(f_t(x); mean, variance) of the mixtures, without a constant, averaged."""
    correction, stretch = net(samples.inputs)
    pi = torch.softmax(samples.score + correction, dim=1)[:, :, None]
    wide = torch.exp(2.0 * (samples.deviation + stretch))[:, :, None]
    mean = (pi * samples.mean).sum(dim=1)  # less the truth
    apart = samples.mean - mean[:, None]
    variance = (pi * (wide * samples.variance + apart**2)).sum(dim=1) + samples.floor[:, None]
    losses = 0.5 * (mean**2 / variance + torch.log(variance / samples.floor[:, None] * FLOOR))
    # Who is locked on a wrong arm is many deviations off, and this must still be learned from.
    flat = STEEP * (1.0 + torch.log(losses.clamp(min=STEEP) / STEEP))
    return torch.where(losses > STEEP, flat, losses).mean()


class GateTrainer:
    """A gate in training: it plays, and learns from its plays, round by round.

    Args:
        settings: How it is trained.
        seed: What all randomness follows from.
        first_seed: The first of the episodes' seeds.
        world: The law of its worlds.
    """

    def __init__(
        self,
        settings: GateSettings,
        seed: int,
        first_seed: int,
        world: Callable[[np.random.Generator], tuple[str, dict[str, JSON]]] = drawn_world,
    ) -> None:
        torch.manual_seed(seed)
        self.settings, self._world = settings, world
        self.net, self.average = Trainee(settings.hidden), Trainee(settings.hidden)
        self.average.load_state_dict(self.net.state_dict())
        self.optimizer = torch.optim.AdamW(
            self.net.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.rng = np.random.default_rng([seed, 1])
        self.next_seed, self.updates, self.steps = first_seed, 0, 0
        self._kept: deque[Samples] = deque(maxlen=settings.kept)

    def gate(self, width: float, notes: Mapping[str, object] | None = None) -> Gate:
        """Return the gate that the averaged weights make."""
        return Gate(self.average.weights(), width, notes or {})

    def round(self, done: float) -> tuple[float, float]:
        """Play a batch of episodes and learn; return losses on it, before, untrained and trained.

        Args:
            done: The share of the training that is behind, in [0, 1].
        """
        played = self._play()
        with torch.no_grad():
            untrained = mixture_loss(Trainee(self.settings.hidden), played)
            trained = mixture_loss(self.average, played)
        self._kept.append(played)
        held = Samples(*(torch.cat(parts) for parts in zip(*self._kept, strict=True)))
        for _ in range(self.settings.updates):
            rows = self.rng.integers(len(held.score), size=self.settings.minibatch)
            self._update(Samples(*(part[torch.from_numpy(rows)] for part in held)), done)
        return float(untrained), float(trained)

    def _update(self, samples: Samples, done: float) -> None:
        loss = mixture_loss(self.net, samples)
        learns = self.net, self.average, self.optimizer
        update(*learns, loss, self.settings.learning_rate, done, self.updates, AVERAGE)
        self.updates += 1

    def _play(self) -> Samples:
        """Play an episode of each of a batch in a world drawn at random, and return samples."""
        settings, (environment, kwargs) = self.settings, self._world(self.rng)
        seeds = [self.next_seed + i for i in range(settings.batch)]
        self.next_seed += settings.batch
        with closing(make_vector(environment, settings.batch, **kwargs)) as env:
            observation, _ = env.reset(seed=seeds)
            width = float(self.rng.uniform(*WIDTHS))
            agent = LearnedWGPUCB(env, gate=self.gate(width))
            agent.reset(seeds)
            found = []
            for _ in range(min(agent.problem.known_horizon("train"), settings.longest)):
                if self.rng.random() < settings.moments:
                    found.append(self._samples(agent, env.unwrapped.expected_rewards()))
                action = agent.act(observation)
                observation, reward, *_ = env.step(action)
                agent.observe(action, reward)
                self.steps += settings.batch
        return Samples(*(torch.from_numpy(np.concatenate(p)) for p in zip(*found, strict=True)))

    def _samples(self, agent: LearnedWGPUCB, expected: Array) -> tuple[Floats32, ...]:
        """Return what `Samples` holds, of those learners who know a unit."""
        bank, points = agent.bank, agent.action_set.candidates
        assert isinstance(bank, GatedBank)
        rows = np.flatnonzero(bank.scale > 0.0)
        shown = bank.look(rows)
        found = bank.moments(points, rows, shown.models, np.ones(shown.score.shape))
        arms = self._arms(expected[rows], agent.bounds()[rows])
        truth = (expected - bank.zero[:, None])[rows] / bank.scale[rows, None]
        own = np.take_along_axis(truth, arms, axis=1)[:, None]
        means, variances = (np.take_along_axis(a, arms[:, None], axis=2) for a in found)
        unit = expected.std(axis=1)[rows] / bank.scale[rows]
        columns = shown.score, shown.deviation, shown.inputs, means - own, variances
        limits = np.clip(FLOOR * unit**2, 1e-30, 1e30)
        return *(np.clip(a, -1e12, 1e12).astype(np.float32) for a in columns), limits.astype(
            np.float32
        )

    def _arms(self, expected: Array, bounds: Array) -> Indices:
        """Return the best arm, those of the largest bounds, and others drawn at random."""
        rows, n = expected.shape
        arms = self.rng.integers(n, size=(rows, min(self.settings.arms, n)))
        leading = min(LEADING, arms.shape[1] - 1)
        arms[:, 0] = expected.argmax(axis=1)
        arms[:, 1 : 1 + leading] = np.argsort(-bounds, axis=1)[:, :leading]
        found: Indices = arms
        return found
