"""One update of a network that is trained on the truth, and of the running mean of its weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

__all__ = ["update"]

WARM = 50  # updates over which the learning rate rises


def update(
    net: nn.Module,
    average: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Tensor,
    learning_rate: float,
    done: float,
    updates: int,
    settled: float,
) -> None:
    """Take a step down a loss.

    Args:
        net: The network.
        average: The same network with the mean of its weights.
        optimizer: Of `net`.
        loss: The loss.
        learning_rate: At its largest; it rises at first, and falls as half a cosine.
        done: The share of the training that is behind, in [0, 1].
        updates: How many steps were taken before.
        settled: What the running mean keeps of itself in a step, once it has settled.
    """
    rate = learning_rate * (0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * done)))
    for group in optimizer.param_groups:
        group["lr"] = rate * min(1.0, (updates + 1) / WARM)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    kept = min(settled, 1.0 - 1.0 / (1.0 + (updates + 1) / 5.0))
    with torch.no_grad():
        for mean, now in zip(average.parameters(), net.parameters(), strict=True):
            mean.lerp_(now, 1.0 - kept)
