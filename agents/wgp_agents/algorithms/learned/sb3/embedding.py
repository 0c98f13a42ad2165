"""What a network sees of the plays in an observation."""

from __future__ import annotations

import math
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

__all__ = ["PlayEmbedding", "policy_kwargs"]

NETWORK = ("net_arch", "lstm_hidden_size")


class PlayEmbedding(BaseFeaturesExtractor):
    """Shows each play by cosines of its place, alone and times its reward.

    A network must tell a hundred places apart, and multiply what it knows of a place by the
    reward that was paid there: from bare numbers it learns that slowly.

    Args:
        observation_space: That of a `History` of k plays in d dimensions.
        dim: d.
        frequencies: J: the cosines are cos(pi j x_i) for j = 0, ..., J - 1 and i = 1, ..., d.
    """

    def __init__(self, observation_space: spaces.Box, dim: int, frequencies: int) -> None:
        self._length = (int(observation_space.shape[0]) - 1) // (2 + dim)
        super().__init__(observation_space, 1 + self._length * 2 * dim * frequencies)
        self._waves: torch.Tensor
        self.register_buffer("_waves", math.pi * torch.arange(frequencies), persistent=False)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Return t / T and the k embedded plays, `(B, 1 + 2 k d J)`; no play is all zeros."""
        plays = observations[:, 1:].reshape(len(observations), self._length, -1)
        there, places, rewards = plays[..., :1], plays[..., 1:-1], plays[..., -1:]
        cosines = torch.cos(places[..., None] * self._waves).flatten(2) * there
        embedded = torch.cat([cosines, cosines * rewards], dim=2)
        return torch.cat([observations[:, :1], embedded.flatten(1)], dim=1)


def policy_kwargs(dim: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what stable-baselines3 is told of a network.

    Args:
        dim: d.
        settings: Of the training, as in settings.toml.
    """
    told = {key: settings[key] for key in NETWORK if key in settings}
    shown = {"dim": dim, "frequencies": settings["frequencies"]}
    return told | {
        "features_extractor_class": PlayEmbedding,
        "features_extractor_kwargs": shown,
    }
