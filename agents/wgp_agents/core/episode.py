"""Which episode an agent plays: what it was told of it, and whether that is still so."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from wgp_agents.core.access import EnvLike, Reader, problem_reader
from wgp_agents.core.made_for import MadeFor
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.state import Entry
from wgp_agents.core.stateful import Stateful, locked
from wgp_agents.core.wrapped import Wrapped, read_wrappers
from wgp_gym.problem import QUANTITIES, SHARED, BanditProblem
from wgp_gym.types import Mask
from wgp_gym.validation import reject, shown

__all__ = ["Episodic", "NotDrawn"]

# What a task is built of: an agent is of this, whatever its model.
STRUCTURE = ("batch_size", *(name for name in SHARED if name != "kernel"), "domain", "spread")


class NotDrawn(RuntimeError):
    """An episode's bounds are to be read, and no episode was drawn yet."""


class Episodic(Stateful):
    """What reads an episode's bounds off an environment, by the methods of `Agent`.

    They are read at `reset`, and once more at the first play after it, in case the environment was
    reset in between.

    Attributes:
        problem: See `Agent`.
    """

    _constants: ClassVar[tuple[str, ...]] = ("_waiting", "_undrawn")
    problem: BanditProblem
    _read_problem: Reader[BanditProblem]
    _wrapped: Wrapped
    _made_for: MadeFor | None
    # No attributes of an agent before its first reset, so that older states can be read.
    _waiting: Mask | None = None
    """Who was reset, and has not played since, `(B,)`; None: nobody."""
    _undrawn: bool = False
    """Whether these could not begin, since no episode was drawn yet."""

    @abstractmethod
    def _begin(self, mask: Mask) -> None:
        """Restart the learners in `mask` `(B,)` on the episode that is on now."""

    def _await(self, mask: Mask) -> None:
        """Begin with the learners in `mask` `(B,)`, as far as an episode was drawn.

        Raises:
            NotDrawn: If none was, and there is no environment that could draw one.
        """
        undrawn = self._undrawn
        try:
            self._begin(mask)
        except NotDrawn:
            if not self._read_problem.follows:
                raise
            undrawn = True
        if self._read_problem.follows:
            self._waiting = mask if self._waiting is None else mask | self._waiting
            self._undrawn = undrawn

    def _require_reset(self) -> UniformStreams:
        uniform = super()._require_reset()
        if self._waiting is not None:
            with self._lock:
                self._meet(self._waiting)
        return uniform

    def _meet(self, waiting: Mask | None) -> None:
        """Begin again with those in `waiting` `(B,)` whose episode is another one by now."""
        if waiting is None:  # another thread was faster
            return
        late = waiting
        if not self._undrawn:
            late = waiting & other_episodes(self._read_problem(), self.problem, self.num_learners)
        if late.any():
            self._begin(late)
        self._undrawn = False

    def _beginning(self, fresh: Mask) -> Mask:
        """Return who begins, where an observation says for whom an episode does, `fresh` `(B,)`.

        Those beside it who were reset are on the episode that they have read, if one was drawn.
        """
        if self._undrawn and self._waiting is not None:
            fresh = fresh | self._waiting
        self._waiting, self._undrawn = None, False
        return fresh

    @locked
    def load_state_dict(self, state: Mapping[str, Entry]) -> None:
        """Go on from the state of an agent: see `Stateful.load_state_dict`."""
        super().load_state_dict(state)
        self._waiting, self._undrawn = None, False

    @locked
    def bind(self, env: EnvLike) -> None:
        """Play another environment of the same task.

        Who was reset, and has not played since, begins on its episode; the others do at their next
        `reset`.

        An agent reads B and B_T off the environment that it was made from, whatever it is shown
        later: observations do not tell it which one they are of.

        Args:
            env: The environment, in other wrappers or of another id if need be.

        Raises:
            ValueError: If its task is another one than that which the agent was made for: in the
                domain, T or the number of episodes at once, or in the kernel or R that its model
                has; or as the agent's construction does. The agent is then as it was.
        """
        owner, reader = type(self).__name__, problem_reader(env)
        now = reader()
        check_task(owner, now, self.problem)
        if self._made_for is not None:
            self._made_for.check(now)
        wrapped = read_wrappers(env, owner)
        self._bind_truth(env)
        self._read_problem, self._wrapped = reader, wrapped

    def _bind_truth(self, env: EnvLike) -> None:
        """Read the truth off `env` from now on; for agents that do, here nothing."""


def other_episodes(now: BanditProblem, before: BanditProblem, learners: int) -> Mask:
    """Return whose episodes are told in other numbers now than before, `(B,)`."""
    if now.kernel != before.kernel:
        return np.ones(learners, bool)
    differs = np.zeros(learners, bool)
    for name in QUANTITIES:
        one, other = getattr(now, name), getattr(before, name)
        if one is None or other is None:
            differs |= one is not other
        else:
            differs |= np.asarray(one) != np.asarray(other)
    return differs


def check_task(owner: str, now: BanditProblem, before: BanditProblem) -> None:
    """Check that a task is built as the one that an agent was made by.

    Kernel and noise are `MadeFor`'s matter; B and B_T belong to an episode, and may differ.

    Raises:
        ValueError: If it is not.
    """
    for name in STRUCTURE:
        one, other = getattr(now, name), getattr(before, name)
        if not np.array_equal(one, other):
            rule = f"one of the same task as that which {owner} was made for, with {name!r}"
            reject("env", f"{owner}.bind", f"{rule} {shown(other)}", one)
