"""What the trainings of networks on the truth share: their worlds, their updates, their state."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from wgp_agents.base import Agent
from wgp_agents.benchmark.rollout import make_vector
from wgp_agents.training.worlds import World

__all__ = ["Trainer", "Validation"]

WARM = 50  # updates over which the learning rate rises
GENTLE = 1.0  # the largest norm of a gradient


class Validation(NamedTuple):
    """How a training is measured.

    Attributes:
        checkpoints: How often.
        episodes: Episodes of each world at a checkpoint.
        chosen_on: Other episodes of each, on which the width of the bound is chosen in the end.
        width: The width at checkpoints.
        widths: Those from which one is chosen.
    """

    checkpoints: int
    episodes: int
    chosen_on: int
    width: float
    widths: tuple[float, ...]


class Trainer(ABC):
    """A network in training: it plays, and learns from its plays, round by round.

    Args:
        worlds: The laws of its episodes.
        net: The network.
        average: The same, for the running mean of the weights.
        batch: Episodes at once.
        learning_rate: Of AdamW at its largest; it rises at first, and falls as half a cosine.
        weight_decay: Of AdamW.
        settled: What the running mean keeps of itself in an update, once it has settled.
        seed: What all randomness but that of the networks' first weights follows from.
        first_seed: The first of the episodes' seeds.

    Attributes:
        validation: How it is measured.
        shortest: Steps of the shortest episode that it learns from.
        steps: Steps played so far, over all episodes.
        net, average: The network, and that of the running mean.
    """

    validation: Validation
    shortest: int
    net: nn.Module
    average: nn.Module

    def __init__(
        self,
        worlds: list[World],
        net: nn.Module,
        average: nn.Module,
        *,
        batch: int,
        learning_rate: float,
        weight_decay: float,
        settled: float,
        seed: int,
        first_seed: int,
    ) -> None:
        self.worlds, self._batch = worlds, batch
        self.net, self.average = net, average
        average.load_state_dict(net.state_dict())
        self._rate, self._settled = learning_rate, settled
        self._optimizer = torch.optim.AdamW(
            net.parameters(), lr=learning_rate, weight_decay=weight_decay
        )
        self.rng = np.random.default_rng([seed, 1])
        self._next_seed, self._updates, self.steps = first_seed, 0, 0
        self._envs: dict[int, Any] = {}

    @abstractmethod
    def round(self, done: float) -> object:
        """Play a batch of episodes and learn from them; return how it went.

        Args:
            done: The share of the training that is behind, in [0, 1].
        """

    @abstractmethod
    def agent(self, env: Any, width: float) -> Agent:
        """Return who plays an environment with the averaged weights."""

    @abstractmethod
    def write(self, path: Path, width: float, notes: Mapping[str, object]) -> None:
        """Write the averaged weights as the model's file."""

    def state(self) -> dict[str, Any]:
        """Return where the training stands, as tensors, numbers and texts."""
        return {
            "net": self.net.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "generators": json.dumps(self.rng.bit_generator.state),
            "counters": [self._next_seed, self._updates, self.steps],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from where `state` was taken."""
        self.net.load_state_dict(state["net"])
        self.average.load_state_dict(state["average"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.rng.bit_generator.state = json.loads(state["generators"])
        self._next_seed, self._updates, self.steps = state["counters"]

    def best_so_far(self) -> dict[str, Tensor]:
        """Return a copy of the averaged weights."""
        return {name: part.clone() for name, part in self.average.state_dict().items()}

    def go_back(self, weights: dict[str, Tensor]) -> None:
        """Take averaged weights from before for the present ones."""
        self.average.load_state_dict(weights)

    def _world(self) -> tuple[Any, list[int]]:
        """Return the environment of a round, of a world drawn by its share, and its seeds."""
        shares = np.array([world.share for world in self.worlds])
        which = int(self.rng.choice(len(shares), p=shares / shares.sum()))
        first, self._next_seed = self._next_seed, self._next_seed + self._batch
        return self._env(which), list(range(first, self._next_seed))

    def _env(self, which: int) -> Any:
        world = self.worlds[which]
        if world.each_round:
            return make_vector(world.environment, self._batch, **world.drawn(self.rng))
        if which not in self._envs:
            self._envs[which] = make_vector(world.environment, self._batch, **world.kwargs)
        return self._envs[which]

    def _update(self, loss: Tensor, done: float) -> None:
        """Take a step down a loss, and let the running mean follow."""
        rate = self._rate * (0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * done)))
        for group in self._optimizer.param_groups:
            group["lr"] = rate * min(1.0, (self._updates + 1) / WARM)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.net.parameters(), GENTLE)
        self._optimizer.step()
        self._updates += 1
        kept = min(self._settled, 1.0 - 1.0 / (1.0 + self._updates / 5.0))
        pairs = zip(self.average.parameters(), self.net.parameters(), strict=True)
        with torch.no_grad():
            for mean, now in pairs:
                mean.lerp_(now, 1.0 - kept)
