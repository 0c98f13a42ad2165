"""Training of in-context learners: on the truth, over their own plays ([Ross11], DAgger)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from wgp_agents.algorithms.learned.in_context.agent import InContext
from wgp_agents.algorithms.learned.in_context.memory import Shape
from wgp_agents.algorithms.learned.in_context.model import Model, write_model
from wgp_agents.algorithms.learned.in_context.network import (
    HIGHEST,
    LOWEST,
    SHARP,
    START,
    InContextNetwork,
)
from wgp_agents.training.trainer import Trainer, Validation
from wgp_agents.training.worlds import World
from wgp_gym.types import Array, Floats32

__all__ = ["InContextTrainer", "Settings"]

LOSS_CLIP = 50.0  # nats, of one arm
FIRST_SCORED = 2  # plays, before which there is no unit
AVERAGE = 0.998  # of the running mean of the weights, once it has settled


@dataclass(frozen=True)
class Settings:
    """How a network is trained.

    Attributes:
        batch: Episodes at once.
        segments: Pieces of equal length that an episode is cut into: gradients go back to the
            beginning of a piece, and no further.
        minibatch: Pieces of one update.
        epochs: How often each piece is learned from.
        moments: Steps of a piece, drawn at random, on which the loss is taken.
        arms: Arms on which it is taken then: the best one, and others drawn at random.
        learning_rate: Of AdamW at its largest; it falls as half a cosine.
        weight_decay: Of AdamW.
        optimal_arm: The weight of the optimal-arm head's loss beside the predictive one.
        widths: Between which the bound's width is drawn for each episode of training.
        context: Units of the recurrent network.
        hidden: Units of the head's layers.
        shape: What the network is shown.
    """

    batch: int = 64
    segments: int = 4
    minibatch: int = 64
    epochs: int = 6
    moments: int = 15
    arms: int = 24
    learning_rate: float = 3e-3
    weight_decay: float = 1e-4
    optimal_arm: float = 0.3
    widths: tuple[float, float] = (0.5, 2.5)
    context: int = 64
    hidden: int = 48
    shape: Shape = field(default_factory=Shape)


class Played(NamedTuple):
    """Pieces of episodes that were played, as a network learns from them: P pieces of L steps.

    Attributes:
        start: The contexts in which they begin, `(P, c)`.
        told: What the network was told of each play, `(P, L, p)`.
        features: What it saw at some moments of some arms, the best one first, `(P, k, a, q)`.
        truth: f_t there, in the memory's unit, `(P, k, a)`.
        moments: The moments: plays of the piece before each, `(k,)`.
        regret: The final regrets of the episodes, `(B,)`.
    """

    start: Tensor
    told: Tensor
    features: Tensor
    truth: Tensor
    moments: Tensor
    regret: Array


class Trainee(nn.Module):
    """`InContextNetwork` in torch, over whole pieces at once."""

    def __init__(self, shape: Shape, context: int, hidden: int) -> None:
        super().__init__()
        self.gru = nn.GRU(shape.of_play, context, batch_first=True)
        self.arm = nn.Linear(shape.of_arm, hidden)
        self.context = nn.Linear(context, hidden, bias=False)
        self.second = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 3)

    def forward(self, played: Played, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean, log std and logit at the moments of some pieces, `(b, k, a)` each."""
        start = played.start[rows]
        after, _ = self.gru(played.told[rows], start[None])
        before = torch.cat([start[:, None], after], dim=1)[:, played.moments]
        first = torch.relu(self.arm(played.features[rows]) + self.context(before)[:, :, None])
        mean, log_std, logit = self.last(torch.relu(self.second(first))).unbind(dim=-1)
        return mean, (log_std + START).clamp(LOWEST, HIGHEST), SHARP * logit

    def weights(self) -> dict[str, Floats32]:
        """Return the weights as `InContextNetwork` takes them."""
        gru: Any = self.gru
        found = {
            "gru.input": gru.weight_ih_l0.T,
            "gru.hidden": gru.weight_hh_l0.T,
            "gru.input_offset": gru.bias_ih_l0,
            "gru.hidden_offset": gru.bias_hh_l0,
            "arm": self.arm.weight.T,
            "context": self.context.weight.T,
            "first_offset": self.arm.bias,
            "second": self.second.weight.T,
            "second_offset": self.second.bias,
            "last": self.last.weight.T,
            "last_offset": self.last.bias,
        }
        return {name: part.detach().numpy().copy(order="C") for name, part in found.items()}


def loss_of(found: tuple[Tensor, Tensor, Tensor], truth: Tensor, optimal_arm: float) -> Tensor:
    """Return the loss: -log N(f_t(x); mean, std^2) of the arms, and cross-entropy of the best."""
    mean, log_std, logits = found
    apart = (truth - mean) / log_std.exp()
    predictive = (0.5 * apart**2 + log_std).clamp(max=LOSS_CLIP).mean()
    best = torch.zeros(logits[..., 0].numel(), dtype=torch.long)  # it stands first
    return predictive + optimal_arm * nn.functional.cross_entropy(logits.flatten(0, 1), best)


class InContextTrainer(Trainer):
    """A network of an in-context learner in training.

    Args:
        worlds: The laws of its episodes.
        settings: How it is trained.
        seed: What all randomness follows from.
        first_seed: The first of the episodes' seeds.
    """

    net: Trainee
    average: Trainee
    validation = Validation(12, 100, 200, 1.5, (0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5))

    def __init__(self, worlds: list[World], settings: Settings, seed: int, first_seed: int) -> None:
        torch.manual_seed(seed)
        made = settings.shape, settings.context, settings.hidden
        self.settings = settings
        self.shortest = settings.segments * (FIRST_SCORED + 1)
        super().__init__(
            worlds,
            Trainee(*made),
            Trainee(*made),
            batch=settings.batch,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            settled=AVERAGE,
            seed=seed,
            first_seed=first_seed,
        )

    def model(self, width: float) -> Model:
        """Return the model that the averaged weights make."""
        return Model(InContextNetwork(self.average.weights()), self.settings.shape, width, {})

    def agent(self, env: Any, width: float) -> InContext:
        """Return who plays an environment with the averaged weights."""
        return InContext(env, model=self.model(width))

    def write(self, path: Path, width: float, notes: Mapping[str, object]) -> None:
        """Write the averaged weights as the model's file."""
        said = {**notes, "width": width}
        write_model(path, self.average.weights(), self.settings.shape, said)

    def round(self, done: float) -> float:
        """Play a batch of episodes and learn from them; return the mean final regret."""
        played = self._play()
        for rows in self._minibatches():
            found = self.net(played, rows)
            loss = loss_of(found, played.truth[rows], self.settings.optimal_arm)
            self._update(loss, done)
        return float(played.regret.mean())

    def _minibatches(self) -> Iterator[Tensor]:
        for _ in range(self.settings.epochs):
            pieces = self.settings.batch * self.settings.segments
            yield from torch.split(
                torch.from_numpy(self.rng.permutation(pieces)), self.settings.minibatch
            )

    def _play(self) -> Played:
        """Play an episode of each of a batch, in a world drawn by its share."""
        settings, (env, seeds) = self.settings, self._world()
        network = InContextNetwork(self.net.weights())
        widths = self.rng.uniform(*settings.widths, settings.batch)
        observation, _ = env.reset(seed=seeds)
        agent = InContext(
            env, model=Model(network, settings.shape, 1.0, {}), confidence_width=widths
        )
        agent.reset(seeds)
        return self._record(agent, env, observation)

    def _record(self, agent: InContext, env: Any, observation: Floats32) -> Played:
        settings, horizon = self.settings, agent.problem.known_horizon("train")
        length = horizon // settings.segments
        count = min(settings.moments, length - FIRST_SCORED)
        moments = FIRST_SCORED + self.rng.choice(length - FIRST_SCORED, count, replace=False)
        moments.sort()
        start, told, features, truth = [], [], [], []
        for t in range(horizon):
            if t % length == 0:
                start.append(agent.context.copy())
            if t % length in moments:
                seen, expected = self._some_arms(agent, env.unwrapped.expected_rewards())
                features.append(seen)
                truth.append(expected)
            action = agent.act(observation)
            observation, reward, _, _, info = env.step(action)
            agent.observe(action, reward)
            told.append(agent.told.copy())
        self.steps += horizon * settings.batch
        pieces = settings.segments
        return Played(
            start=cut(start, pieces, 1)[:, 0],
            told=cut(told, pieces, length),
            features=cut(features, pieces, count),
            truth=cut(truth, pieces, count),
            moments=torch.from_numpy(moments),
            regret=info["cumulative_regret"].copy(),
        )

    def _some_arms(self, agent: InContext, expected: Array) -> tuple[Floats32, Floats32]:
        """Return features and truth of the best arm and of others, `(B, a, q)` and `(B, a)`."""
        batch, n = expected.shape
        count = min(self.settings.arms, n)
        others = self.rng.random((batch, n - 1)).argsort(axis=1)[:, : count - 1]
        best = expected.argmax(axis=1)[:, None]
        arms = np.concatenate([best, (best + 1 + others) % n], axis=1)
        truth = np.take_along_axis(expected, arms, axis=1) - agent.plays.zero[:, None]
        features = np.take_along_axis(agent.plays.look(), arms[:, :, None], axis=1)
        return features, (truth / agent.plays.scale[:, None]).astype(np.float32)


def cut(rows: list[Floats32], segments: int, each: int) -> Tensor:
    """Return rows of a batch, one `(B, ...)` after the other, as pieces `(P, each, ...)`.

    What is left over at the end is dropped.
    """
    whole = np.stack(rows[: segments * each], axis=1)
    return torch.from_numpy(whole.reshape(-1, each, *whole.shape[2:]))
