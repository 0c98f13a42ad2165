"""The network of an in-context learner, as it plays: plain numpy, learner by learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from wgp_agents.algorithms.learned.in_context.memory import Shape
from wgp_gym.types import Floats32

__all__ = ["Beliefs", "InContextNetwork", "weight_shapes"]

LOWEST, HIGHEST = -6.0, 3.0  # of a log standard deviation
START = -0.5  # of it, where the last layer says 0
SHARP = 3.0  # of the optimal-arm head


class Beliefs(NamedTuple):
    """What a network says of each arm, in the unit of the memory, `(B, n)` each.

    Attributes:
        mean: Of f_t.
        log_std: The logarithm of its standard deviation.
        logits: Of the arm's being the best one.
    """

    mean: Floats32
    log_std: Floats32
    logits: Floats32


def weight_shapes(shape: Shape, context: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array of weights, by name."""
    return {
        "gru.input": (shape.of_play, 3 * context),
        "gru.hidden": (context, 3 * context),
        "gru.input_offset": (3 * context,),
        "gru.hidden_offset": (3 * context,),
        "arm": (shape.of_arm, hidden),
        "context": (context, hidden),
        "first_offset": (hidden,),
        "second": (hidden, hidden),
        "second_offset": (hidden,),
        "last": (hidden, 3),
        "last_offset": (3,),
    }


class InContextNetwork:
    """A recurrent context of the whole history, and a head that all arms share.

    The context h_t of a learner is a gated recurrent unit [Cho14] over its plays. The head, a
    perceptron with two hidden layers, takes the features of one arm and the context, and returns a
    mean and a log standard deviation of f_t there, and a logit of its being the best. Products are
    taken learner by learner (stacked matrix products), so that the numbers of one do not depend
    on B.

    Args:
        weights: Arrays in single precision, of `weight_shapes`.

    Source: [Cho14] Cho and others. Learning phrase representations using RNN encoder-decoder for
    statistical machine translation. EMNLP 2014, Section 2.3; offsets as in torch's `GRU`.
    """

    _constant = True  # no part of a state

    def __init__(self, weights: Mapping[str, Floats32]) -> None:
        self.weights = dict(weights)
        self.context_size = len(self.weights["context"])

    def advance(self, context: Floats32, told: Floats32) -> Floats32:
        """Return contexts `(B, c)` after one more play, of which `(B, p)` is told."""
        w, c = self.weights, self.context_size
        new = (told[:, None] @ w["gru.input"])[:, 0] + w["gru.input_offset"]
        old = (context[:, None] @ w["gru.hidden"])[:, 0] + w["gru.hidden_offset"]
        reset, update = np.split(sigmoid(new[:, : 2 * c] + old[:, : 2 * c]), 2, axis=1)
        candidate = np.tanh(new[:, 2 * c :] + reset * old[:, 2 * c :])
        after: Floats32 = candidate + update * (context - candidate)
        return after

    def beliefs(self, features: Floats32, context: Floats32) -> Beliefs:
        """Return what is believed of arms with features `(B, n, q)`, in contexts `(B, c)`."""
        w = self.weights
        common = (context[:, None] @ w["context"]) + w["first_offset"]
        first = np.maximum(features @ w["arm"] + common, 0)
        second = np.maximum(first @ w["second"] + w["second_offset"], 0)
        mean, log_std, logit = np.moveaxis(second @ w["last"] + w["last_offset"], -1, 0)
        bounded = np.clip(log_std + np.float32(START), LOWEST, HIGHEST)
        return Beliefs(mean, bounded, np.float32(SHARP) * logit)


def sigmoid(x: Floats32) -> Floats32:
    """Return 1 / (1 + e^{-x}), without overflow."""
    half = np.float32(0.5)
    value: Floats32 = half * (np.tanh(half * x) + 1)
    return value
