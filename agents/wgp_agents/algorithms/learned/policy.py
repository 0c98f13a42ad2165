"""A policy of anybody's behind the contract of every agent: it is shown what it was made for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from typing import NoReturn, Protocol, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.action_sets import check_arms_stay
from wgp_agents.registry import ENTRY_POINT
from wgp_gym.envs.dynamics import REWARD_LIMIT
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Action, Actions, Array, Floats32, Mask
from wgp_gym.validation import check_bool, check_int, reject
from wgp_gym.wrappers import History

__all__ = ["Model", "PolicyAgent", "PolicyPlayer", "State", "actions_of", "plays"]

State = tuple[Floats32, ...]
"""What a recurrent policy holds of B learners: arrays `(layers, B, size)`."""
RULE = (
    "a function of observations (B, size) that returns actions, an object with the predict of "
    "stable-baselines3's models, or where one stands, as 'module:name'"
)


class Model(Protocol):
    """What predicts as the models of stable-baselines3 do."""

    def predict(
        self,
        observation: Floats32,
        state: State | None = None,
        episode_start: Mask | None = None,
        deterministic: bool = False,
    ) -> tuple[Actions, State | None]:
        """Return the actions of B learners, and the next state; None without recurrence."""


class PolicyPlayer(Agent, ABC):
    """Plays what a model predicts, and learns nothing new.

    It shows the model observations put together from its own plays, the last k of them
    (`wgp_gym.wrappers.History`). A recurrent model's state is kept for each learner.

    Args:
        env: The environment to play, or the `BanditProblem` alone.

    Attributes:
        rows: What it is shown now, `(B, size)`.
        state: A recurrent model's state before that; None of others, and at the start.
    """

    _constants = ("_model",)
    _parameter = "model"  # its name, for errors

    def __init__(self, env: EnvLike) -> None:
        super().__init__(env)
        owner = type(self).__name__
        check_arms_stay(owner, self.problem)
        self.problem.known_horizon(owner)  # observations show t / T

    def _show(
        self, model: Model, history: int, reward_scale: float, deterministic: bool = True
    ) -> None:
        """Take a model, and get ready to show it the last k plays.

        Args:
            model: What predicts.
            history: k >= 1.
            reward_scale: What the rewards in its observations are divided by.
            deterministic: What the model is asked to be.
        """
        batch, dim = self.num_learners, self.problem.domain.shape[1]
        self._model = model
        self._deterministic = check_bool("deterministic", deterministic, type(self).__name__)
        self._history = History(history, dim, batch, reward_scale)
        self.rows = np.zeros((batch, self._history.size), np.float32)
        self.state: State | None = None
        self._after: State | None = None  # a recurrent model's state after what is shown now
        self._known = np.zeros(batch, bool)  # whose `_after` is of what is shown now
        self._fresh = np.ones(batch, bool)
        self._seen = np.zeros(batch, np.int64)

    def _check_plays(self, space: spaces.Space[Action] | None) -> None:
        """Refuse a model whose observations are of the size of a history, and something else.

        One-hot rows and stacks of frames may be. A history's plays all have the same bounds.
        """
        if not isinstance(space, spaces.Box):
            return
        plays = (end[1:].reshape(self._history.length, -1) for end in (space.low, space.high))
        if not all((rows == rows[0]).all() for rows in plays):
            rule = (
                f"trained on what HistoryObservation shows, {self._history.length} plays with the "
                "same bounds; play others by `evaluate`, in the wrappers of their training"
            )
            self._refuse(rule, space)

    def _refuse(self, rule: str, got: object) -> NoReturn:
        reject(self._parameter, type(self).__name__, rule, got)

    @abstractmethod
    def _predict(self, uniform: UniformStreams) -> tuple[Actions, State | None]:
        """Return the actions on `self.rows` as the model gives them, and its next state."""

    def _restart(self, mask: Mask) -> None:
        self._known[mask] = False
        self._history.plays[mask] = self.rows[mask] = 0.0
        self._seen[mask], self._fresh[mask] = 0, True

    def _choose(self, uniform: UniformStreams) -> Actions:
        found, self._after = self._predict(uniform)
        self._known[:] = True
        actions = np.asarray(found)
        domain = self.problem.domain
        continuous = self.problem.continuous
        shape = (self.num_learners, *(domain.shape[1:] if continuous else ()))
        if actions.shape != shape or actions.dtype.kind not in "iuf":
            self._refuse(f"one whose actions are an array {shape}", found)
        top = 1 if continuous else len(domain) - 1
        inside = (actions >= 0) & (actions <= top)
        if not inside.all():
            self._refuse(f"one whose actions lie in [0, {top}]", float(actions[~inside][0]))
        chosen: Actions = actions.astype(np.float32 if continuous else np.int64)
        if not continuous and (chosen != actions).any():
            rule = "one whose actions are whole numbers, of arms"
            self._refuse(rule, float(actions[chosen != actions][0]))
        return chosen

    def _remember(self, active: Mask) -> None:
        """Move a recurrent model's state on past what it is shown now."""
        if not self._known[active].all():  # they have not acted on it; the state needs no draw
            shown = self.rows, self.state, self._fresh
            self._after = self._model.predict(*shown, deterministic=True)[1]
            self._known[:] = True
        after = self._after
        if after is not None and self.state is not None:
            kept = active[:, None]
            pairs = zip(after, self.state, strict=True)
            after = tuple(np.where(kept, new, old) for new, old in pairs)
        self.state = after
        self._known &= ~active

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        self._remember(active)
        self._fresh = self._fresh & ~active
        self._seen += active
        places = actions if self.problem.continuous else self.problem.domain[actions]
        paid = np.clip(rewards, -REWARD_LIMIT, REWARD_LIMIT)  # as the environment shows them
        times = self._seen / self.problem.known_horizon(type(self).__name__)
        shown = np.column_stack([times, np.ones(len(rewards)), places, paid])
        self.rows[active] = self._history.push(shown[active].astype(np.float32), active)


class PolicyAgent(PolicyPlayer):
    """Plays any policy: a function of observations, or a model of stable-baselines3's kind.

    Observations are those of the environment (`history=0`), or those of
    `wgp_gym.wrappers.HistoryObservation`, put together from the agent's own plays. A model may be
    recurrent, as RecurrentPPO is; a function that keeps something in mind is not told when an
    episode begins, but sees that nothing was played.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        policy: A function that is given observations `(B, size)` and returns arms `(B,)` or points
            `(B, d)`; or an object with `predict(observation, state, episode_start, deterministic)`,
            as stable-baselines3's models have it. In an experiment's file and in flags it is where
            one stands, as "module:name", whose module is looked for where Python looks; to import
            it runs what is in it.
        history: k, the plays that it is shown, at least 0; 0: the environment's observation, which
            shows the last play. The size of an observation is 1 + max(k, 1) (2 + d).
        reward_scale: What the rewards in the observations are divided by, in [1e-20, 1e30].
        deterministic: What `predict` is asked to be. Where it draws, it does so from a generator
            of its own, which no seed of the agent reaches; to have a model's actions drawn by the
            agent's streams make the agent of its algorithm, as "ppo", with `model=`.

    That one learner's numbers do not depend on the others is up to the policy.

    Raises:
        ValueError: If there is no such policy, it says that it was made for other observations or
            actions, a parameter is out of its range, T is not known, or arms are drawn anew at
            each step.
    """

    _parameter = "policy"

    def __init__(
        self,
        env: EnvLike,
        *,
        policy: Model | Callable[[Floats32], ArrayLike] | str,
        history: int = 20,
        reward_scale: float = 1.0,
        deterministic: bool = True,
    ) -> None:
        super().__init__(env)
        length = max(check_int("history", history, type(self).__name__, 0), 1)
        self._show(self._resolve(policy), length, reward_scale, deterministic)
        self._check_spaces()

    def _resolve(self, policy: object) -> Model:
        """Return what predicts; a text is where it stands."""
        found: object = policy
        if isinstance(policy, str):
            if not ENTRY_POINT.fullmatch(policy):
                self._refuse(RULE, policy)
            module, _, name = policy.partition(":")
            try:
                found = getattr(import_module(module), name)
            except Exception as error:  # the module may raise anything
                self._refuse(f"in a module that can be imported ({error!r})", policy)
        if not isinstance(found, type):
            if hasattr(found, "predict"):
                return cast(Model, found)
            if callable(found):
                return Called(found)
        self._refuse(RULE, policy)

    def _check_spaces(self) -> None:
        """Refuse a model that says it was made for other observations or actions."""
        shown = getattr(self._model, "observation_space", None)
        shape = (self._history.size,)
        if shown is not None and shown.shape != shape:
            self._refuse(f"made for observations of {shape[0]} numbers", shown.shape)
        self._check_plays(shown)
        space = getattr(self._model, "action_space", None)
        if space is not None and not plays(space, self.problem):
            self._refuse(f"made for the {actions_of(self.problem)} of the problem", space)

    def _predict(self, uniform: UniformStreams) -> tuple[Actions, State | None]:
        shown = self.rows.copy(), self.state, self._fresh.copy()
        return self._model.predict(*shown, deterministic=self._deterministic)


class Called:
    """A function of observations as a model."""

    def __init__(self, function: Callable[[Floats32], ArrayLike]) -> None:
        self.function = function

    def predict(
        self,
        observation: Floats32,
        state: State | None = None,
        episode_start: Mask | None = None,
        deterministic: bool = False,
    ) -> tuple[Actions, None]:
        """Return the function's actions, and no state."""
        return np.asarray(self.function(observation)), None


def actions_of(problem: BanditProblem) -> str:
    """Return what can be played, in words."""
    return "points of the box" if problem.continuous else f"{len(problem.domain)} arms"


def plays(space: spaces.Space[Action] | None, problem: BanditProblem) -> bool:
    """Tell whether actions of a space are those of a problem."""
    if isinstance(space, spaces.Discrete):
        return bool(not problem.continuous and space.n == len(problem.domain) and space.start == 0)
    if not problem.continuous or not isinstance(space, spaces.Box):
        return False
    unit = space.shape == problem.domain.shape[1:] and (space.low == 0) & (space.high == 1)
    return bool(np.all(unit))
