"""The contract of every agent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from wgp_agents.access import problem_reader
from wgp_agents.observation import rows_of, shown_arms
from wgp_agents.randomness import UniformStreams
from wgp_gym.kernels import Array
from wgp_gym.problem import BanditProblem
from wgp_gym.seeding import seed_list

__all__ = ["TIE", "Agent"]

TIE = 1e-9  # values this close to the best count as equal to it
LARGEST = 1e140  # rewards beyond it count as it: squares over a small lambda must be numbers

Mask = NDArray[np.bool_]


class Agent(ABC):
    """One learner, or a batch of B independent learners in one.

    The loop is `reset(seed)`, then `action = act(observation)`, `observe(action, reward)`. Made
    from a single environment or problem, an agent takes and gives an int (or a point `(d,)`) and
    a float; made from a vector environment, arrays `(B,)` (or `(B, d)`). Learner i of
    `reset(s)` is the single learner of `reset(s + i)`, number for number, whatever B is.

    The bounds B and B_T differ from episode to episode: they are read from the environment anew
    whenever a learner restarts.

    Args:
        env: The environment to play, or the `BanditProblem` alone.

    Attributes:
        problem: What it knows of the task.
        arms: Where arms are drawn anew at each step, those that it was last shown, `(B, n, d)`.
    """

    def __init__(self, env: Any) -> None:
        self._read_problem = problem_reader(env)
        self.problem: BanditProblem = self._read_problem()
        self.batched = self.problem.batch_size is not None
        self.num_learners = self.problem.batch_size or 1
        self.arms: Array | None = None
        self._streams: UniformStreams | None = None
        self._tree: KDTree | None = None

    @abstractmethod
    def _restart(self, mask: Mask) -> None:
        """Make the learners in `mask` `(B,)` start anew on `self.problem`."""

    @abstractmethod
    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        """Return the actions of all learners: arms `(B,)` or points `(B, d)`."""

    @abstractmethod
    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        """Take in one play of every learner in `active` `(B,)`.

        Where arms are drawn anew at each step, `actions` are the places of those played, `(B, d)`.
        """

    def reset(self, seed: int | Sequence[int] | None = None) -> None:
        """Start all learners anew, on the episode that the environment is in now.

        Args:
            seed: s gives learner i the seed s + i; a sequence gives each its own. None goes on
                with the streams at hand, or takes fresh entropy.

        Raises:
            ValueError: If there is not one seed, an int of at least 0, for each learner.
        """
        streams = self._streams
        if seed is not None or streams is None:
            streams = UniformStreams(seed_list(seed, self.num_learners))
        self._begin(np.ones(self.num_learners, bool))
        self._streams = streams

    def _begin(self, mask: Mask) -> None:
        self.problem = self._read_problem()
        if mask.all():
            self.arms = None
        self._restart(mask)

    def act(self, observation: Any = None) -> Any:
        """Choose an action.

        Args:
            observation: The environment's last observation. Bandit learners learn from
                `observe` alone, and look at it only where it shows the arms of this step.

        Returns:
            An arm's index or a point `(d,)`; with a vector environment, `(B,)` or `(B, d)`.

        Raises:
            RuntimeError: If `reset` was not called before.
            ValueError: If the observation does not show the arms where it should.
        """
        uniform = self._require_reset()
        if self.problem.contextual:
            self.arms = shown_arms(
                rows_of(observation, self.problem, self.num_learners), self.problem
            )
        actions = self._choose(uniform)
        if self.batched:
            return actions
        return actions[0] if self.problem.continuous else int(actions[0])

    def observe(self, action: Any, reward: Any) -> None:
        """Learn from a play, its own or another's.

        Args:
            action: What was played, in the form that `act` returns.
            reward: What was paid for it, a float, or `(B,)`. Beyond 1e140 it counts as that.

        Raises:
            RuntimeError: If `reset` was not called before, or the arms were not shown to `act`.
            ValueError: If the action does not fit the problem, or a reward is not finite. The
                agent is then as it was.
        """
        self._require_reset()
        actions, rewards = self._checked_actions(action), self._checked_rewards(reward)
        if self.problem.contextual:
            if self.arms is None:
                raise RuntimeError("Arms are drawn anew at each step: show them to act() first.")
            actions = self.arms[np.arange(self.num_learners), actions]
        self._learn(actions, rewards, np.ones(self.num_learners, bool))

    def _require_reset(self) -> UniformStreams:
        if self._streams is None:
            raise RuntimeError(f"Call {type(self).__name__}.reset() before it plays.")
        return self._streams

    def _checked_rewards(self, reward: Any) -> Array:
        try:
            rewards = np.array(reward, float)
        except (TypeError, ValueError):
            raise ValueError(f"A reward must be a number. Got {reward!r} instead.") from None
        if rewards.shape != ((self.num_learners,) if self.batched else ()):
            raise ValueError(f"There must be one reward for each learner. Got {reward!r} instead.")
        return usable(rewards).reshape(self.num_learners)

    def _checked_actions(self, action: Any) -> NDArray[Any]:
        problem = self.problem
        point = (problem.domain.shape[1],) if problem.continuous else ()
        shape = ((self.num_learners,) if self.batched else ()) + point
        actions = np.asarray(action)
        kinds = "iuf" if problem.continuous else "iu"
        top = 1.0 if problem.continuous else len(problem.domain) - 1
        fits = actions.shape == shape and actions.dtype.kind in kinds
        if not fits or not (actions.min() >= 0 and actions.max() <= top):
            rule = "in [0, 1]" if problem.continuous else f"an int in [0, {top}]"
            form = f", in an array {shape}" if shape else ""
            raise ValueError(f"Each action must be {rule}{form}. Got {action!r} instead.")
        dtype = np.float64 if problem.continuous else np.int64
        return actions.astype(dtype).reshape(self.num_learners, *point)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, None]:
        """Choose actions from observations alone, as stable-baselines3 asks a policy.

        An observation shows the last action and its reward, so the agent learns from it before
        it acts. A learner restarts where its episode does.

        Args:
            observation: `(3 + d,)`, or `(B, 3 + d)` from a vector environment; with the arms of
                the step behind, where these are drawn anew.
            state: Not used: an agent holds its own.
            episode_start: Whether each episode has just begun, `(B,)`. Without it, an
                observation that shows no last action begins one.
            deterministic: Not used: an agent's draws are part of it.

        Returns:
            The actions (an array, as stable-baselines3 returns), and None.

        Raises:
            ValueError: If there is not one observation of the bare environment for each learner,
                or a reward in them is not finite. The agent is then as it was.
        """
        del state, deterministic
        rows = rows_of(observation, self.problem, self.num_learners)
        fresh = rows[:, 1] == 0
        if episode_start is not None:
            fresh = fresh | np.asarray(episode_start, bool).reshape(-1)
        streams = self._streams
        if streams is None:
            streams, fresh = UniformStreams([None] * self.num_learners), np.ones_like(fresh)
        dim = self.problem.domain.shape[1]
        rewards = usable(np.where(fresh, 0.0, rows[:, 2 + dim]))
        shown = shown_arms(rows, self.problem) if self.problem.contextual else None
        if fresh.any():
            self._begin(fresh)
        self._streams = streams
        if not fresh.all():
            self._learn(self._decode(rows[:, 2 : 2 + dim]), rewards, ~fresh)
        self.arms = shown
        chosen = self._choose(streams)
        return (chosen if np.ndim(observation) == 2 else chosen[0]), None

    def _decode(self, places: Array) -> NDArray[Any]:
        """Return the actions that stand at `places` `(B, d)`, as an observation shows them."""
        if self.problem.continuous or self.problem.contextual:
            return places
        if self._tree is None:
            self._tree = KDTree(self.problem.domain)
        return np.asarray(self._tree.query(places)[1], np.int64)


def usable(rewards: Array) -> Array:
    """Return the rewards, none beyond `LARGEST`.

    Raises:
        ValueError: If one is not finite.
    """
    if not np.isfinite(rewards).all():
        raise ValueError(f"A reward must be finite. Got {rewards!r} instead.")
    return np.clip(rewards, -LARGEST, LARGEST)
