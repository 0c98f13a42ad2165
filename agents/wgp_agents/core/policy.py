"""An agent as a policy: it chooses from observations alone, as stable-baselines3 asks."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.core.episode import Episodic
from wgp_agents.core.feedback import checked_starts, clipped
from wgp_agents.core.observation import checked_rows, rows_of, shown_arms
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.stateful import locked
from wgp_agents.core.units import Units
from wgp_agents.core.wrapped import Wrapped
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array, Indices, Mask, Observation
from wgp_gym.validation import reject, shown

if TYPE_CHECKING:
    from scipy.spatial import KDTree

__all__ = ["Policy"]

SAME_PLACE = 1e-6  # an observation shows points in single precision


class Policy(Episodic):
    """What learns from an observation and chooses, by the methods of `wgp_agents.base.Agent`.

    Attributes:
        problem, arms, allowed: See `Agent`.
    """

    _constants: ClassVar[tuple[str, ...]] = ("_tree",)
    problem: BanditProblem
    arms: Array | None
    allowed: Mask | None
    takes_elapsed: bool
    _unanswered: Indices
    _tree: KDTree | None
    _wrapped: Wrapped
    _units: Units

    @abstractmethod
    def _choose(self, uniform: UniformStreams) -> Actions:
        """Return the actions of all learners: arms `(B,)` or points `(B, d)`."""

    @abstractmethod
    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        """Learn from one play of every learner in `active` `(B,)`.

        Where arms are drawn anew at each step, `actions` are the points played, `(B, d)`.
        """

    @abstractmethod
    def _elapse(self, steps: Array, active: Mask) -> None:
        """Let `steps` `(B,)` go by for the learners in `active` `(B,)`; if `takes_elapsed`."""

    @locked
    def predict(
        self,
        observation: Observation,
        state: object = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool = True,
    ) -> tuple[Actions, None]:
        """Choose actions from observations alone, as stable-baselines3 asks a policy.

        An observation shows the last action and its reward, so the agent learns from it before
        it acts. A learner restarts where its episode does.

        Args:
            observation: `(3 + d,)`, or `(B, 3 + d)` from a vector environment; with the arms of
                the step behind, where these are drawn anew. Of histories and stacks of frames
                (`wgp_agents.core.frames`) the last one is read.
            state: Not used: an agent holds its own.
            episode_start: Whether each episode has just begun, `(B,)`. Without it, the
                observation of t = 0, which shows no last action, begins one. One of a later step
                that shows none tells of no reward: see `wgp_gym.wrappers.DelayedRewards`.
            deterministic: Not used: an agent's draws are part of it.

        Returns:
            The actions (an array, as stable-baselines3 returns), and None.

        Raises:
            ValueError: If there is not one observation of the environment for each learner, a
                number in them is none that the task shows, a wrapper changes them, or there is not
                one `episode_start` for each learner. The agent is then as it was.
        """
        observation = self._wrapped.bare(observation, self.problem.domain, "predict")
        rows = checked_rows(rows_of(observation, self.problem, self.num_learners), self.problem)
        fresh = (rows[:, 1] == 0) & (rows[:, 0] == 0)
        if episode_start is not None:
            fresh = fresh | checked_starts(episode_start, self.num_learners)
        streams = self._streams
        if streams is None:
            streams, fresh = UniformStreams([None] * self.num_learners), np.ones_like(fresh)
        dim = self.problem.domain.shape[1]
        told = ~fresh & (rows[:, 1] == 1)
        rewards = np.where(told, rows[:, 2 + dim], 0.0)
        if not np.isfinite(rewards).all():
            reject("observation", "predict", "of a finite last reward", rewards)
        shown = shown_arms(rows, self.problem) if self.problem.contextual else None
        actions = self._decode(np.where(told[:, None], rows[:, 2 : 2 + dim], 0.0), told)
        self._units.watch(rewards, told, stacklevel=6)  # the lock is a frame
        begins = self._beginning(fresh)
        if begins.any():
            self._begin(begins)
        self._streams = streams
        if told.any():
            self._learn(actions, clipped(rewards), told)
        silent = ~(fresh | told)
        if silent.any() and self.takes_elapsed:
            self._elapse(np.ones(len(silent)), silent)
        self.arms, self.allowed = shown, None
        self._unanswered[:] = 1
        chosen = self._chosen(streams)
        return (chosen if np.ndim(observation) == 2 else chosen[0]), None

    def _chosen(self, uniform: UniformStreams) -> Actions:
        """Return the actions that all learners choose, as the environment takes them.

        Raises:
            TypeError: If `_choose` returns something else: 0.7 is no arm, nor is it arm 0.
        """
        actions, batch = self._choose(uniform), len(self._unanswered)
        box = self.problem.continuous
        shape = (batch, self.problem.domain.shape[1]) if box else (batch,)
        kinds = "fiu" if box else "iu"
        right = isinstance(actions, np.ndarray) and actions.shape == shape
        if not right or actions.dtype.kind not in kinds:
            rule = (
                f"{'points of the box' if box else 'the indices of arms, ints'}, an array {shape}"
            )
            owner = type(self).__name__
            raise TypeError(f"{owner}._choose must return {rule}. Got {shown(actions)}.")
        return self._wrapped.outwards(actions)

    def _decode(self, places: Array, active: Mask) -> Actions:
        """Return the actions at `places` `(B, d)`, as an observation shows them."""
        if self.problem.continuous or self.problem.contextual:
            return places
        if self._tree is None:
            from scipy.spatial import KDTree  # as slow to import as all the rest

            self._tree = KDTree(self.problem.domain)
        distance, arms = self._tree.query(places)
        if active.any() and not distance[active].max() <= SAME_PLACE:
            reject("observation", "predict", "of a last action at the place of an arm", places)
        return np.asarray(arms, np.int64)
