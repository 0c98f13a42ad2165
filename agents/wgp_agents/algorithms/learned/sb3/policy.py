"""Actions of a trained model, drawn from numbers of the caller's."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wgp_agents.algorithms.learned.policy import State
from wgp_gym.types import Array

__all__ = ["draw_actions"]


def draw_actions(
    model: Any, rows: NDArray[np.float32], state: State | None, starts: NDArray[np.bool_], u: Array
) -> tuple[NDArray[Any], State | None]:
    """Draw actions from a policy's distribution by the inverse of its distribution function.

    stable-baselines3 would draw them from torch's global generator.

    Args:
        model: A model of an actor-critic algorithm, recurrent or not.
        rows: Observations, `(B, size)`.
        state: A recurrent policy's state; None at the start.
        starts: Whether each episode has just begun, `(B,)`.
        u: Uniform numbers from [0, 1), `(B, 1)` for arms, `(B, d)` for points.

    Returns:
        Arms `(B,)` or points `(B, d)` in the box, and the next state (None without recurrence).
    """
    policy = model.policy
    policy.set_training_mode(False)
    shown, uniform, after = torch.as_tensor(rows), torch.as_tensor(u, dtype=torch.float64), None
    with torch.no_grad():
        if hasattr(policy, "lstm_hidden_state_shape"):
            layers, _, size = policy.lstm_hidden_state_shape
            before = np.zeros((2, layers, len(rows), size), np.float32) if state is None else state
            begun = torch.as_tensor(starts, dtype=torch.float32)
            held = torch.as_tensor(before[0]), torch.as_tensor(before[1])
            made, moved = policy.get_distribution(shown, held, begun)
            after = moved[0].numpy(), moved[1].numpy()
        else:
            made = policy.get_distribution(shown)
        drawn = inverse(made.distribution, uniform)
    return drawn.numpy(), after


def inverse(distribution: Any, uniform: torch.Tensor) -> torch.Tensor:
    """Return the quantiles at `uniform` of a distribution over arms, or of Gaussian ones."""
    if isinstance(distribution, torch.distributions.Categorical):
        below = distribution.probs.double().cumsum(1)
        return torch.searchsorted(below, uniform * below[:, -1:], right=True)[:, 0]
    point: torch.Tensor = distribution.loc + distribution.scale * torch.special.ndtri(uniform)
    return point.clamp(0.0, 1.0)
