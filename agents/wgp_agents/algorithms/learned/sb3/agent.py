"""A trained policy behind the contract of every agent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.algorithms.learned.sb3.model import resolve_model
from wgp_agents.algorithms.learned.sb3.policy import State, draw_actions
from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike, environment_id
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.envs.dynamics import REWARD_LIMIT
from wgp_gym.types import Array, Mask
from wgp_gym.validation import check_bool, reject
from wgp_gym.wrappers import History

__all__ = ["SB3Agent"]


class SB3Agent(Agent):
    """Plays what a model of stable-baselines3 or sb3-contrib predicts, and learns nothing new.

    It shows the model the observations on which it was trained, put together from its own plays:
    the last play, or the last k of them. A recurrent model's state is kept for each learner.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        algo: "ppo", "a2c", "dqn" or "recurrent-ppo".
        model: A model that stable-baselines3 has trained or loaded, or the path of one that
            `wgp-gym train` has saved; None takes the one that the package brings for the
            environment's id. It is bound to d, the arms and the observations of its training;
            the rest, as T and the noise, had better be the same.
        reward_scale: What the rewards in its observations are divided by; None reads it off the
            notes, and is 1 for a model that is no file.
        deterministic: Whether to play the model's likeliest action (or, DQN, the best-valued),
            rather than to draw one from its distribution: a policy that sees the last plays
            alone needs chance to look around. None reads it off the notes, and is True for a
            model that is no file. DQN has no distribution to draw from.
        trust: Whether a file may run code. Without it a file is played only if `wgp-gym train` has
            written it, with its notes: the network is built from these, of the file the weights
            alone are read. With it stable-baselines3 loads the file, which may do whatever its
            author likes to the machine. No experiment's file and no flag can give it.

    The network's numbers for one learner may differ in their last bits with B; so may, where two
    actions are as good as equal, what it plays.

    Raises:
        ValueError: If the model does not fit the problem, or its file is damaged.
    """

    _constants = ("_model", "_weights")

    def __init__(
        self,
        env: EnvLike,
        *,
        algo: str,
        model: Any = None,
        reward_scale: float | None = None,
        deterministic: bool | None = None,
        trust: bool = False,
    ) -> None:
        super().__init__(env)
        self.problem.known_horizon("SB3Agent")  # observations show t / T
        self._model, notes = resolve_model(algo, model, self.problem, environment_id(env), trust)
        # A state of another model is told by its weights; somebody's own model may have none.
        policy = getattr(self._model, "policy", None)
        parts = () if policy is None else policy.parameters()
        self._weights = np.array([float(part.detach().double().abs().sum()) for part in parts])
        dim = self.problem.domain.shape[1]
        shape: tuple[int, ...] = self._model.observation_space.shape or ()
        size = shape[0] if len(shape) == 1 else 0
        scale = notes.get("reward_scale", 1.0) if reward_scale is None else reward_scale
        if deterministic is None:
            deterministic = notes.get("deterministic", True)
        self._deterministic = check_bool("deterministic", deterministic, "SB3Agent")
        if algo == "dqn" and not deterministic:
            reject("deterministic", "SB3Agent", "True for 'dqn'", deterministic)
        self._history = History(max((size - 1) // (2 + dim), 1), dim, self.num_learners, scale)
        if self._history.size != size:
            rule = f"trained on observations of {self._history.size} numbers (d = {dim})"
            reject("model", "SB3Agent", rule, shape)
        self.rows = np.zeros((self.num_learners, size), np.float32)
        self.state: State | None = None
        self._after: State | None = None  # a recurrent model's state after what is shown now
        self._known = np.zeros(self.num_learners, bool)  # whose `_after` is of what is shown now
        self._fresh = np.ones(self.num_learners, bool)
        self._seen = np.zeros(self.num_learners, np.int64)

    def _restart(self, mask: Mask) -> None:
        self._known[mask] = False
        self._history.plays[mask] = self.rows[mask] = 0.0
        self._seen[mask], self._fresh[mask] = 0, True

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        shown = self.rows, self.state, self._fresh
        if self._deterministic:
            actions, self._after = self._model.predict(*shown, deterministic=True)
        else:
            draws = self.problem.domain.shape[1] if self.problem.continuous else 1
            u = np.stack([uniform.draw() for _ in range(draws)], axis=1)
            actions, self._after = draw_actions(self._model, *shown, u)
        self._known[:] = True
        top = 1 if self.problem.continuous else len(self.problem.domain) - 1
        inside = (actions >= 0) & (actions <= top)
        if not inside.all():
            rule = f"one whose actions lie in [0, {top}]"
            reject("model", "SB3Agent", rule, float(actions[~inside][0]))
        chosen: NDArray[Any] = actions.astype(np.float32 if self.problem.continuous else np.int64)
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
            after = (
                np.where(kept, after[0], self.state[0]),
                np.where(kept, after[1], self.state[1]),
            )
        self.state = after
        self._known &= ~active

    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        self._remember(active)
        self._fresh = self._fresh & ~active
        self._seen += active
        places = actions if self.problem.continuous else self.problem.domain[actions]
        paid = np.clip(rewards, -REWARD_LIMIT, REWARD_LIMIT)  # as the environment shows them
        shown = np.column_stack(
            [
                self._seen / self.problem.known_horizon("SB3Agent"),
                np.ones(len(rewards)),
                places,
                paid,
            ]
        )
        self.rows[active] = self._history.push(shown[active].astype(np.float32), active)
