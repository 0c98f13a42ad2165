"""The Gaussian-process agent: features x memory x width x choice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from wgp_agents.base import Agent, Mask
from wgp_agents.gp.basis import Basis, make_basis
from wgp_agents.gp.choice import upper_confidence_bound
from wgp_agents.gp.memory import Memory
from wgp_agents.gp.tuning import Forgetting
from wgp_agents.gp.width import WidthForm, deng_width
from wgp_agents.parameters import per_learner
from wgp_agents.randomness import UniformStreams
from wgp_gym.kernels import Array
from wgp_gym.validation import reject

__all__ = ["GPAgent", "GPParameters", "Posterior"]

SMALLEST_REGULARIZATION = 1e-6  # the default where there is no noise


class Posterior(NamedTuple):
    """A posterior on the domain: `(n,)`, or `(B, n)` for a batch.

    Attributes:
        mean: [Deng22] Eq. (3).
        std: The square root of [Deng22] Eq. (4).
    """

    mean: Array
    std: Array


class GPParameters(TypedDict, total=False):
    """The parameters that all Gaussian-process agents share. See `GPAgent`."""

    regularization: Any
    delta: Any
    norm_bound: Any
    noise_scale: Any
    confidence_width: Any


class GPAgent(Agent):
    """Plays argmax of mean + beta * std of a posterior with a memory of choice.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        memory: The memory's class.
        forgetting: The memory's parameter; None forgets nothing.
        width_form: The formula of beta where `confidence_width` is "theory".
        regularization: lambda > 0, the model's noise variance. Default max(R^2, 1e-6).
        delta: The probability in (0, 1) with which the confidence bound may fail.
        norm_bound: B >= 0. Default: the problem's, read at each restart.
        noise_scale: R >= 0. Default: the problem's.
        confidence_width: "theory"; a number beta >= 0; or a function of the number of
            observations so far, `(B,)`, that returns beta, a number or `(B,)`.

    Numbers may be scalars or `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range, or the problem has no finite domain.
    """

    def __init__(
        self,
        env: Any,
        *,
        memory: Callable[[Basis], Memory],
        forgetting: Forgetting | None = None,
        width_form: WidthForm = deng_width,
        regularization: Any = None,
        delta: Any = 0.1,
        norm_bound: Any = None,
        noise_scale: Any = None,
        confidence_width: Any = "theory",
    ) -> None:
        super().__init__(env)
        if self.problem.continuous:
            reject("continuous", "the environment of a GP agent", "False: it plays a grid", True)
        batch, owner = self.num_learners, type(self).__name__
        self.width_form = width_form
        if norm_bound is not None:
            norm_bound = per_learner(owner, "norm_bound", norm_bound, batch, 0.0, math.inf, "left")
        self._given_norm_bound = norm_bound
        if noise_scale is None:
            noise_scale = self.problem.noise_scale
        self.noise_scale = per_learner(
            owner, "noise_scale", noise_scale, batch, 0.0, math.inf, "left"
        )
        if regularization is None:
            regularization = np.maximum(self.noise_scale**2, SMALLEST_REGULARIZATION)
        self.regularization = per_learner(
            owner, "regularization", regularization, batch, 0.0, math.inf, "neither"
        )
        self.delta = per_learner(owner, "delta", delta, batch, 0.0, 1.0, "neither")
        self.confidence_width: Any = checked_width(owner, confidence_width, batch)
        self.norm_bound = np.zeros(batch)
        self._steps = np.zeros(batch, np.int64)
        self.forgetting = forgetting
        if forgetting is not None:
            forgetting.check(owner, batch)
        kernel, domain = self.problem.kernel, self.problem.domain
        self._memory = memory(make_basis(kernel, domain, self.regularization))

    def _restart(self, mask: Mask) -> None:
        given = self._given_norm_bound
        bound = self.problem.norm_bound if given is None else given
        if bound is None and isinstance(self.confidence_width, str):
            raise RuntimeError(
                "The norm bound is drawn with the episode: reset the environment before the "
                "agent, or give the agent a 'norm_bound'."
            )
        forgetting = np.full(self.num_learners, self._memory.nothing_forgotten)
        if self.forgetting is not None:
            forgetting = self.forgetting(self.problem, self.num_learners)
        if bound is not None:
            self.norm_bound[mask] = np.broadcast_to(bound, self.num_learners)[mask]
        self._memory.restart(mask, forgetting)
        self._steps[mask] = 0

    def _widths(self) -> Array:
        """Return beta of every learner, `(B,)`."""
        if isinstance(self.confidence_width, str):
            return self.width_form(
                self.norm_bound,
                self.noise_scale,
                self.regularization,
                self.delta,
                self._memory.gain,
            )
        if callable(self.confidence_width):
            owner, given = type(self).__name__, self.confidence_width(self._steps.copy())
            return per_learner(
                owner, "confidence_width", given, self.num_learners, 0.0, math.inf, "left"
            )
        widths: Array = self.confidence_width
        return widths

    def _choose(self, uniform: UniformStreams) -> NDArray[np.int64]:
        """Maximise the upper confidence bound, [Deng22] Algorithm 1 line 3."""
        chosen = np.empty(self.num_learners, np.int64)
        mean, variance = self._memory.mean, self._memory.variance
        upper_confidence_bound(mean, variance, self._widths(), uniform.draw(), chosen)
        return chosen

    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        self._memory.update(actions, rewards, active)
        self._steps += active

    def posterior(self) -> Posterior:
        """Return the posterior on the domain, `(n,)` each, or `(B, n)`.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        mean, std = self._memory.mean.copy(), np.sqrt(self._memory.variance)
        return Posterior(mean, std) if self.batched else Posterior(mean[0], std[0])

    def information_gain(self) -> Any:
        """Return the realised (double-weighted) information gain, a float or `(B,)`.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        return self._memory.gain.copy() if self.batched else float(self._memory.gain[0])


def checked_width(owner: str, value: Any, batch: int) -> Any:
    """Return `confidence_width` as "theory", a function, or an array `(B,)`.

    Raises:
        ValueError: If it is none of these.
    """
    if callable(value) or (isinstance(value, str) and value == "theory"):
        return value
    if isinstance(value, str):
        reject("confidence_width", owner, "'theory', a number or a function", value)
    return per_learner(owner, "confidence_width", value, batch, 0.0, math.inf, "left")
