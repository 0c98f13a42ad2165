"""The contract of every agent: `reset`, `act`, `observe` and `predict`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.core.feedback import (
    checked_actions,
    checked_allowed,
    checked_arms,
    checked_elapsed,
    checked_learners,
    checked_rewards,
    of_active,
)
from wgp_agents.core.made_for import MadeFor
from wgp_agents.core.observation import rows_of, shown_arms
from wgp_agents.core.policy import Policy
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.stateful import locked
from wgp_agents.core.units import RewardBounds, Units
from wgp_agents.core.wrapped import read_wrappers
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Action, Actions, Array, Mask, Observation, Reward
from wgp_gym.validation import reject, seed_list

__all__ = ["Agent", "locked"]

TIMELESS = "knows no time but its plays"
UNTIMED = "{} says takes_elapsed = True, so it must have the method {}, which says what time does."
TRUE_REGRET = "RegretReward", "VectorRegretReward"  # wrappers whose rewards are the truth


class Agent(Policy, ABC):
    """One learner, or a batch of B independent learners in one.

    The loop is `reset(seed)`, then `action = act(observation)`, `observe(action, reward)`. Made
    from a single environment or problem, an agent takes and gives an int (or a point `(d,)`) and
    a float; made from a vector environment, arrays `(B,)` (or `(B, d)`). Learner i of
    `reset(s)` is the single learner of `reset(s + i)`, number for number, whatever B is.

    The bounds B and B_T differ from episode to episode: they are read from the environment anew
    whenever a learner restarts, and once more at its first play, so that `reset` may be called
    before or after the environment's.

    Several threads may use one agent: each call is whole. `save` and `load` keep what it has
    learned from one run of a program to the next; pickle does so within one version only.

    Args:
        env: The environment to play, or the `BanditProblem` alone.

    Attributes:
        problem: What it knows of the task.
        arms: Where arms are drawn anew at each step, those that it was last shown, `(B, n, d)`.
        allowed: Which arms may be played at this step, `(B, n)`; None: all.
        takes_units: Whether it takes the unit of the rewards from the problem's numbers: then a
            wrapper that changes rewards is warned of.

    Raises:
        ValueError: If a wrapper plays other actions than those it is given, and that cannot be
            undone: see `wgp_agents.core.wrapped`; or the agent needs fixed arms, and the task has
            none.
    """

    needs_fixed_arms: bool = False
    """Whether it plays fixed arms alone; it is then not made of a box, or of arms that change."""
    takes_units: bool = True
    takes_allowed: bool = False
    """Whether its choice keeps to `allowed`; where not, `act` refuses to be given any."""
    takes_elapsed: bool = False
    """Whether time may go by otherwise than by one step a play: see `observe` and `elapse`."""
    learns_by_acting: bool = True
    """Whether `act` may change more of the state than random streams, `arms` and `allowed`."""
    _constants: ClassVar[tuple[str, ...]] = ("problem", "_rows", "_shape", "_made_for")

    def __init__(self, env: EnvLike) -> None:
        super().__init__()
        self._read_problem = problem_reader(env)
        self.problem: BanditProblem = self._read_problem()
        if self.needs_fixed_arms and (self.problem.continuous or self.problem.contextual):
            kind = "a box" if self.problem.continuous else "arms that are drawn anew at each step"
            raise ValueError(
                f"{type(self).__name__} plays a fixed number of arms. The task has {kind}."
            )
        self.batched = self.problem.batch_size is not None
        self.num_learners = self.problem.batch_size or 1
        self._shape = (self.num_learners,) if self.batched else ()  # of rewards
        self.arms: Array | None = None
        self.allowed: Mask | None = None
        self._everyone = np.ones(self.num_learners, bool)
        # How often each learner was shown new arms since feedback about the last ones.
        self._unanswered = np.zeros(self.num_learners, np.int64)
        self._tree = None
        owner = type(self).__name__
        self._made_for: MadeFor | None = None  # where a model was
        self._wrapped = read_wrappers(env, owner)
        self._units = Units(owner, self.num_learners)

    @abstractmethod
    def _restart(self, mask: Mask) -> None:
        """Restart the learners in `mask` `(B,)` on `self.problem`."""

    def _learn_elapsed(
        self, actions: Actions, rewards: Array, active: Mask, elapsed: Array
    ) -> None:
        """Learn as `_learn` does, with `elapsed` `(B,)` steps going by; if `takes_elapsed`."""
        raise NotImplementedError(UNTIMED.format(type(self).__name__, "_learn_elapsed"))

    def _elapse(self, steps: Array, active: Mask) -> None:
        """Let `steps` `(B,)` go by for the learners in `active` `(B,)`; if `takes_elapsed`."""
        raise NotImplementedError(UNTIMED.format(type(self).__name__, "_elapse"))

    def _hallucinate(self, actions: Actions, active: Mask) -> None:
        """Count plays whose rewards are still to come, as `_learn` gets them; here nothing."""

    def bounds(self) -> Array | None:
        """Return what the next choice is made by: an upper bound of each arm, `(n,)` or `(B, n)`.

        In the unit of the rewards; None of an agent that chooses in another way.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        return None

    def propensities(self) -> Array | None:
        """Return the probabilities with which the last `act` chose, `(n,)` or `(B, n)`.

        Call it right after `act`. None where they are not known.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        return None

    def _reward_bounds(self) -> RewardBounds | None:
        """Return what the learners assume of rewards; None where that is nothing."""
        return None

    @locked
    def reset(
        self, seed: int | Sequence[int] | None = None, *, learners: ArrayLike | None = None
    ) -> None:
        """Restart learners, on the episode that the environment is in at their first play.

        Args:
            seed: s gives learner i the seed s + i; a sequence gives each of all its own. None
                continues the current streams, or takes fresh entropy.
            learners: Who restarts, `(B,)`; the others go on unchanged. Default: all.

        Raises:
            ValueError: If there is not one seed, an int of at least 0, for each learner, or
                `learners` is not one truth value for each.
            RuntimeError: If only some are to restart, before the first `reset` of all.
        """
        mask = checked_learners("learners", "reset", learners, self.num_learners)
        seeds = seed_list(seed, self.num_learners)
        if self._streams is None and not mask.all():
            owner = type(self).__name__
            raise RuntimeError(f"Reset all learners first, by {owner}.reset() without 'learners'.")
        self._await(mask)
        if self._streams is None or (seed is not None and mask.all()):
            self._streams = UniformStreams(seeds)
        elif seed is not None:
            self._streams.reseed(seeds, mask)

    def _begin(self, mask: Mask) -> None:
        self._known_origin()
        problem = self._read_problem()
        if self._made_for is not None:
            self._made_for.check(problem)
        self.problem = problem
        if mask.all():
            self.arms = self.allowed = None
        self._unanswered[mask] = 0
        self._restart(mask)
        self._units.expect(self._reward_bounds(), self.problem.horizon)

    def act(self, observation: Observation = None, *, allowed: ArrayLike | None = None) -> Action:
        """Choose an action.

        Args:
            observation: The environment's last observation. It is read only where it shows the arms
                of this step; rewards come through `observe`.
            allowed: Which arms may be played, `(n,)`, or `(B, n)`. Default: all.

        Returns:
            An arm's index or a point `(d,)`; with a vector environment, `(B,)` or `(B, d)`.

        Raises:
            RuntimeError: If `reset` was not called before.
            TypeError: If `_choose` of an agent of your own returns no ints, or no points of a box.
            ValueError: If the observation does not show the arms where it should, `allowed` leaves
                a learner no arm, or the agent cannot keep to it.
        """
        with self._lock:
            uniform = self._require_reset()
            self._waiting = None
            mask = None if allowed is None else self._checked_allowed(allowed)
            before = self.arms, self.allowed, self._unanswered
            if self.problem.contextual:
                self._look(observation)
            self.allowed = mask
            try:
                actions = self._chosen(uniform)
            except Exception:  # a choice that was refused has shown nothing
                self.arms, self.allowed, self._unanswered = before
                raise
        if self.batched:
            return actions
        return actions[0] if self.problem.continuous else int(actions.item())

    def _look(self, observation: Observation) -> None:
        """Take in the arms that an observation shows."""
        bare = self._wrapped.bare(observation, self.problem.domain, "act")
        shown = shown_arms(rows_of(bare, self.problem, self.num_learners), self.problem)
        first = (self._unanswered == 0) | ~self._last_shown(shown)
        self.arms, self._unanswered = shown, self._unanswered + first

    def _checked_allowed(self, allowed: ArrayLike) -> Mask:
        """Return which arms may be played now, `(B, n)`."""
        owner = type(self).__name__
        if self.problem.continuous:
            reject("allowed", "act", "left out: a box has no arms", allowed)
        if not self.takes_allowed:
            reject("allowed", "act", f"left out: {owner} does not keep to a mask", allowed)
        return checked_allowed(allowed, (self.num_learners, len(self.problem.domain)))

    def observe(
        self,
        action: Action,
        reward: Reward,
        *,
        arms: ArrayLike | None = None,
        active: ArrayLike | None = None,
        elapsed: ArrayLike = 1.0,
    ) -> None:
        """Learn from a play, its own or another's.

        Args:
            action: What was played, in the form that `act` returns.
            reward: Its reward, a float, or `(B,)`. It is clipped to +-1e140.
            arms: Where arms are drawn anew at each step, those that the action is one of, `(n, d)`
                or `(B, n, d)`. Default: those last shown. Feedback that comes after other arms
                were shown must name its own.
            active: Who learns, `(B,)`; the actions and rewards of the others are not read. Default:
                all.
            elapsed: How many steps of the drifting world go by with the play, at least 0, a number
                or `(B,)`; 0 where `elapse` tells of time. Weights fade by them before the play is
                added, and windows move; drifts and restart periods take them after it.

        Raises:
            RuntimeError: If `reset` was not called before, the arms were not shown to `act`, or
                others were shown since and `arms` does not say which are meant.
            ValueError: If the action or the arms do not fit the problem, a reward is missing or not
                finite, or `elapsed` is not 1 and the agent knows no time but its plays
                (`takes_elapsed`). In either case the agent is then as it was.
        """
        with self._lock:
            if active is None:
                self._require_reset()
                learns = self._everyone.copy()
            else:
                learns = self._learners("observe", active)
                if not learns.any():
                    return
                action, reward = of_active(action, learns), of_active(reward, learns)
            self._waiting = None
            actions, meant = self._checked_plays(action, arms, learns, "observe")
            rewards = checked_rewards(reward, self._shape)
            steps = checked_elapsed("elapsed", "observe", elapsed, learns)
            if steps is not None and not self.takes_elapsed:
                reject("elapsed", "observe", f"1: {type(self).__name__} {TIMELESS}", elapsed)
            if self._wrapped.rewards and self.takes_units:
                self._units.changed(self._wrapped.rewards, self.problem)
            elif self._wrapped.rewards in TRUE_REGRET:
                self._units.told_truth(self._wrapped.rewards)
            if self._wrapped.late:
                self._units.late(self._wrapped.late)
            self._units.watch(rewards, learns)
            if steps is None:
                self._learn(actions, rewards, learns)
            else:
                self._learn_elapsed(actions, rewards, learns, steps)
            if meant is not None:
                self._unanswered[learns & self._last_shown(meant)] = 0

    @locked
    def elapse(self, steps: ArrayLike, *, active: ArrayLike | None = None) -> None:
        """Let time go by without a play: memories fade, drifts grow, windows and periods go on.

        Args:
            steps: How many steps of the drifting world, at least 0, a number or `(B,)`.
            active: For whom, `(B,)`; the steps of the others are not read. Default: all.

        Raises:
            RuntimeError: If `reset` was not called before.
            ValueError: If the steps are no such numbers, or the agent knows no time but its plays
                (`takes_elapsed`).
        """
        lives = self._learners("elapse", active)
        if not self.takes_elapsed:
            reject("steps", "elapse", f"left out: {type(self).__name__} {TIMELESS}", steps)
        if lives.any():
            found = checked_elapsed("steps", "elapse", steps, lives)
            self._elapse(np.ones(len(lives)) if found is None else found, lives)

    def told_on_arrival(self) -> None:
        """Take it that each reward is told with its own play, though they are paid late.

        `wgp_agents.late_rewards.LateRewards` says so; else an agent that was made from an
        environment in `wgp_gym.wrappers.DelayedRewards` warns at its first `observe`. It holds
        until the agent is bound to another one (`bind`).
        """
        self._wrapped = replace(self._wrapped, late="")

    @locked
    def hallucinate(
        self, action: Action, *, arms: ArrayLike | None = None, active: ArrayLike | None = None
    ) -> None:
        """Count a play whose reward is still to come: in variances and counts, not in means.

        So the next choice is another one where that is worth it. No time goes by, and no restart
        rule or detector sees it. To agents that draw at random it makes no difference. It stays
        until it is forgotten as plays are: take a `wgp_agents.core.checkpoint.Checkpoint` before,
        and go back to it when the reward comes.

        Args:
            action: What was played, in the form that `act` returns.
            arms: As in `observe`.
            active: Who played, `(B,)`; the actions of the others are not read. Default: all.

        Raises:
            RuntimeError: As `observe` does.
            ValueError: If the action or the arms do not fit the problem.

        Source: Desautels, Krause, Burdick. Parallelizing Exploration-Exploitation Tradeoffs in
        Gaussian Process Bandit Optimization. JMLR 15, 2014 (GP-BUCB).
        """
        played = self._learners("hallucinate", active)
        if played.any():
            actions, _ = self._checked_plays(of_active(action, played), arms, played, "hallucinate")
            self._hallucinate(actions, played)

    def _learners(self, owner: str, active: ArrayLike | None) -> Mask:
        """Return who is meant, `(B,)`."""
        self._require_reset()
        if active is None:
            return self._everyone.copy()
        return checked_learners("active", owner, active, self.num_learners)

    def _checked_plays(
        self, action: Action, arms: ArrayLike | None, learns: Mask, owner: str
    ) -> tuple[Actions, Array | None]:
        """Return actions as learners get them, and the arms meant where they change."""
        problem = self.problem
        if self._wrapped.low is not None:
            action = self._wrapped.inwards(action)
        actions = checked_actions(action, problem, owner)
        if arms is None and not problem.contextual:
            return actions, None
        meant = self._meant(arms, learns, owner)
        return meant[np.arange(self.num_learners), actions], meant

    def _last_shown(self, arms: Array) -> Mask:
        """Return for whom these are the arms last shown, `(B,)`."""
        if self.arms is None:
            return np.zeros(self.num_learners, bool)
        same: Mask = (arms == self.arms).all(axis=(1, 2))
        return same

    def _meant(self, arms: ArrayLike | None, learns: Mask, owner: str) -> Array:
        """Return the arms that feedback is about, `(B, n, d)`."""
        if arms is not None:
            return checked_arms(arms, self.problem, owner)
        if self.arms is None:
            raise RuntimeError("Arms are drawn anew at each step: show them to act() first.")
        if (self._unanswered[learns] > 1).any():
            raise RuntimeError(
                "Other arms were shown since the last feedback: say which ones this is about, as "
                "observe(action, reward, arms=...)."
            )
        return self.arms
