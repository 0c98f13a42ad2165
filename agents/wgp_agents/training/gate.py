"""Training of the gate of `learned-wgp-ucb`: on the truth, over its own plays ([Ross11], DAgger).

The agent plays worlds drawn at random with the gate as it then is. At some moments what the gate is
shown is recorded, with what the models on the shortlists say of some arms and the truth f_t there.
The loss is -log of the normal density of the truth under the mixture's mean and variance.

[Ross11] Ross, Gordon, Bagnell. A reduction of imitation learning and structured prediction to
no-regret online learning. AISTATS 2011.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from wgp_agents.algorithms.learned.gate import Gate, write_gate
from wgp_agents.algorithms.learned.learned_wgp_ucb import LearnedWGPUCB
from wgp_agents.gp.surrogates.gated_bank import GatedBank
from wgp_agents.kernels.gate import CORRECTION, INPUTS, STRETCH, GateWeights
from wgp_agents.training.trainer import Trainer, Validation
from wgp_agents.training.worlds import World
from wgp_gym.types import Array, Floats32, Indices

__all__ = ["GateSettings", "GateTrainer"]

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


class GateTrainer(Trainer):
    """A gate in training.

    Args:
        worlds: The laws of its episodes.
        settings: How it is trained.
        seed: What all randomness follows from.
        first_seed: The first of the episodes' seeds.
    """

    net: Trainee
    average: Trainee
    validation = Validation(4, 24, 40, 2.0, (1.0, 1.5, 2.0, 2.5))
    shortest = 2  # plays, before which there is no unit

    def __init__(
        self, worlds: list[World], settings: GateSettings, seed: int, first_seed: int
    ) -> None:
        torch.manual_seed(seed)
        self.settings = settings
        self._kept: deque[Samples] = deque(maxlen=settings.kept)
        super().__init__(
            worlds,
            Trainee(settings.hidden),
            Trainee(settings.hidden),
            batch=settings.batch,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            settled=AVERAGE,
            seed=seed,
            first_seed=first_seed,
        )

    def gate(self, width: float, notes: Mapping[str, object] | None = None) -> Gate:
        """Return the gate that the averaged weights make."""
        return Gate(self.average.weights(), width, notes or {})

    def agent(self, env: Any, width: float) -> LearnedWGPUCB:
        """Return who plays an environment with the averaged weights."""
        return LearnedWGPUCB(env, gate=self.gate(width))

    def write(self, path: Path, width: float, notes: Mapping[str, object]) -> None:
        """Write the averaged weights as the gate's file."""
        write_gate(path, self.gate(width, notes))

    def state(self) -> dict[str, Any]:
        """Return where the training stands, with what it still learns from."""
        return super().state() | {"kept": [list(samples) for samples in self._kept]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from where `state` was taken."""
        super().restore(state)
        self._kept.clear()
        self._kept.extend(Samples(*parts) for parts in state["kept"])

    def round(self, done: float) -> tuple[float, float]:
        """Play a batch of episodes and learn; return losses before, untrained and trained."""
        played = self._play()
        with torch.no_grad():
            untrained = mixture_loss(Trainee(self.settings.hidden), played)
            trained = mixture_loss(self.average, played)
        self._kept.append(played)
        held = Samples(*(torch.cat(parts) for parts in zip(*self._kept, strict=True)))
        for _ in range(self.settings.updates):
            rows = self.rng.integers(len(held.score), size=self.settings.minibatch)
            samples = Samples(*(part[torch.from_numpy(rows)] for part in held))
            self._update(mixture_loss(self.net, samples), done)
        return float(untrained), float(trained)

    def _play(self) -> Samples:
        """Play an episode of each of a batch in a world drawn by its share; return samples."""
        settings, (env, seeds) = self.settings, self._world()
        observation, _ = env.reset(seed=seeds)
        agent = self.agent(env, float(self.rng.uniform(*WIDTHS)))
        agent.reset(seeds)
        found, steps = [], min(agent.problem.known_horizon("train"), settings.longest)
        moments = self.rng.random(steps) < settings.moments
        moments[-1] = True  # of a short episode there may be no other
        for moment in moments:
            if moment:
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
