"""A learner that was trained on a simulator to learn."""

from __future__ import annotations

from os import PathLike
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.learned.in_context.memory import SmoothedPlays, surprises
from wgp_agents.algorithms.learned.in_context.model import LARGEST_WIDTH, Model, load_model
from wgp_agents.algorithms.learned.in_context.network import Beliefs
from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike
from wgp_agents.core.argmax import argmax, not_finite
from wgp_agents.core.made_for import MadeFor
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.stateful import locked
from wgp_agents.gp.action_sets import check_arms_stay
from wgp_agents.gp.model import Posterior, posterior_of
from wgp_agents.parameters import per_learner
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array, Mask
from wgp_gym.validation import check_choice

__all__ = ["InContext"]


class InContext(Agent):
    """A network that was trained on many drifting worlds to foretell f_t from the plays so far.

    While it plays its weights stay: it learns by what it is shown, its own plays and rewards. It
    was trained on the truth, which a simulator gives for nothing, over its own plays, to give a
    mean and a standard deviation of f_t at each arm, and the probability that the arm is the best.
    So it knows the law of the worlds of its training, and is as good as that law fits. Rewards
    are standardised: neither their unit nor their zero matters. It knows no time but its rewards,
    and a specialist's clock counts them. Arms are known by their kernel values alone: it plays any
    finite domain, whatever d, n and the order of its arms are; on a box the grid of the problem's
    domain.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        model: "general", trained on random worlds; "abrupt" or "slow", trained on the package's
            tasks of these names alone; or the file that `wgp-gym train --algo in-context` wrote,
            or what `read_model` made of one.
        play: "ucb" plays the largest mean + beta std; "best" draws an arm from the probabilities
            of its being the best.
        confidence_width: beta, in [0, 100]; None: the model's own, chosen on validation episodes.

    Raises:
        ValueError: If a parameter is out of its range, the model's file is damaged, or arms are
            drawn anew at each step.

    Source: [Lee23] Lee and others. Supervised Pretraining Can Learn In-Context Reinforcement
    Learning. NeurIPS 2023 (the optimal-arm head, trained on the truth). [Mueller22] Mueller and
    others. Transformers Can Do Bayesian Inference. ICLR 2022 (the predictive head). [Ross11] Ross,
    Gordon, Bagnell. A Reduction of Imitation Learning and Structured Prediction to No-Regret Online
    Learning. AISTATS 2011 (training on its own plays).
    Deviation: in the place of a transformer, kernel-smoothed memories at several rates and a
    recurrent context: a step costs the same at any t.
    """

    takes_units = False
    takes_allowed = True
    learns_by_acting = False
    _constants = ("_model", "_digest")

    def __init__(
        self,
        env: EnvLike,
        *,
        model: str | PathLike[str] | Model = "general",
        play: Literal["ucb", "best"] = "ucb",
        confidence_width: ArrayLike | None = None,
    ) -> None:
        super().__init__(env)
        owner, batch = type(self).__name__, self.num_learners
        check_arms_stay(owner, self.problem)
        self._made_for = MadeFor(owner, self.problem, with_noise=False)
        self._model = model if isinstance(model, Model) else load_model(model, owner)
        # A state of another model is told by its weights.
        weights = self._model.network.weights.values()
        self._digest = np.array([float(np.abs(part, dtype=float).sum()) for part in weights])
        self.play = check_choice("play", play, owner, ("ucb", "best"))
        given = self._model.width if confidence_width is None else confidence_width
        self.confidence_width = per_learner(
            owner, "confidence_width", given, batch, 0, LARGEST_WIDTH
        )
        if self._model.shape.clock:
            self.problem.known_horizon(owner)
        self.plays = SmoothedPlays(self.problem, self._model.shape)
        self.context = np.zeros((batch, self._model.network.context_size), np.float32)
        self.told = np.zeros((batch, self._model.shape.of_play), np.float32)  # of the last play

    def _restart(self, mask: Mask) -> None:
        self.plays.restart(mask)
        self.context[mask] = self.told[mask] = 0.0

    @locked
    def beliefs(self) -> Beliefs:
        """Return what the network believes of each arm now, `(B, n)` each, in the memory's unit.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        return self._model.network.beliefs(self.plays.look(), self.context)

    def _choose(self, uniform: UniformStreams) -> Actions:
        found = self._model.network.beliefs(self.plays.look(), self.context)
        if not (np.isfinite(found.mean).all() and np.isfinite(found.logits).all()):
            not_finite()
        score = self._scores(found) if self.play == "ucb" else self._draws(found, uniform)
        best: Actions = argmax(score, uniform.draw(), self.allowed)
        return self.problem.domain[best].astype(np.float32) if self.problem.continuous else best

    def _scores(self, found: Beliefs) -> Array:
        """Return the upper bounds, `(B, n)`; before the first play all arms are alike."""
        bound = found.mean + self.confidence_width[:, None] * np.exp(found.log_std.astype(float))
        return np.where(self.plays.kept.seen[:, None] > 0, bound, 0.0)

    def _draws(self, found: Beliefs, uniform: UniformStreams) -> Array:
        """Return 1 for the arm that is drawn, else 0: by its probability of being the best."""
        logits = found.logits.astype(float)
        if self.allowed is not None:
            logits = np.where(self.allowed, logits, -np.inf)
        chance = np.exp(logits - logits.max(axis=1, keepdims=True)).cumsum(axis=1)
        drawn = (chance < uniform.draw()[:, None] * chance[:, -1:]).sum(axis=1)
        score: Array = np.eye(chance.shape[1])[drawn]
        return score

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        arms = nearest(self.problem, actions) if self.problem.continuous else actions
        features = self.plays.look_at(arms)
        found = self._model.network.beliefs(features[:, None], self.context)
        foretold = found.mean[:, 0].astype(float), found.log_std[:, 0].astype(float)
        told = surprises(self.plays, features, rewards, *foretold, self.problem.horizon)
        self.told[active] = told[active]
        after = self._model.network.advance(self.context, told)
        self.context[active] = after[active]
        self.plays.add(arms, rewards, active)

    @locked
    def posterior(self) -> Posterior:
        """Return what it believes of f_t on the domain, `(n,)` each, or `(B, n)`.

        Before two rewards there is no unit, and the numbers are of rewards of unit scale.

        Raises:
            RuntimeError: If `reset` was not called before.
            ValueError: If a number is not finite.
        """
        self._require_reset()
        found, unit = self.beliefs(), self.plays.scale[:, None]
        mean = self.plays.zero[:, None] + unit * found.mean
        return posterior_of(mean, unit * np.exp(found.log_std.astype(float)), self.batched)


def nearest(problem: BanditProblem, points: Actions) -> Actions:
    """Return the domain's points that are nearest to points of the box, `(B,)`."""
    apart = ((problem.domain - points[:, None].astype(float)) ** 2).sum(axis=-1)
    arms: Actions = apart.argmin(axis=1)
    return arms
