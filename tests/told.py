"""Plays of arms that stay, told to a surrogate that a test holds without its action set."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.gp.action_sets import Plays
from wgp_agents.gp.surrogates.base import Surrogate
from wgp_gym.types import Array


def tell(surrogate: Surrogate, arms: NDArray[np.int64], rewards: Array, active: Any = None) -> None:
    """Give each learner a play of its own, `(B,)` each; None: all are active."""
    batch, basis = len(surrogate.held), surrogate.basis
    features = np.ascontiguousarray(basis.phi[:, arms].T)
    mask = np.ones(batch, bool) if active is None else active
    surrogate.update(Plays(arms, features, np.zeros(batch)), rewards, mask)


def feed(surrogate: Surrogate, arms: NDArray[np.int64], rewards: Array) -> None:
    """Give all learners the same plays, `(t,)` each."""
    batch = len(surrogate.held)
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        tell(surrogate, np.full(batch, arm), np.full(batch, reward))
