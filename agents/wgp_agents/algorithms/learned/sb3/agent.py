"""A trained policy behind the contract of every agent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.algorithms.learned.policy import PolicyPlayer, State
from wgp_agents.algorithms.learned.sb3.model import resolve_model
from wgp_agents.algorithms.learned.sb3.policy import draw_actions
from wgp_agents.core.access import EnvLike, environment_id
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.validation import reject

__all__ = ["SB3Agent"]


class SB3Agent(PolicyPlayer):
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

    _constants = ("_weights",)

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
        found, notes = resolve_model(algo, model, self.problem, environment_id(env), trust)
        # A state of another model is told by its weights; somebody's own model may have none.
        policy = getattr(found, "policy", None)
        parts = () if policy is None else policy.parameters()
        self._weights = np.array([float(part.detach().double().abs().sum()) for part in parts])
        dim = self.problem.domain.shape[1]
        shape: tuple[int, ...] = found.observation_space.shape or ()
        size = shape[0] if len(shape) == 1 else 0
        scale = notes.get("reward_scale", 1.0) if reward_scale is None else reward_scale
        if deterministic is None:
            deterministic = notes.get("deterministic", True)
        self._show(found, max((size - 1) // (2 + dim), 1), scale, deterministic)
        if algo == "dqn" and not self._deterministic:
            reject("deterministic", "SB3Agent", "True for 'dqn'", deterministic)
        if self._history.size != size:
            rule = f"trained on observations of {self._history.size} numbers (d = {dim})"
            reject("model", "SB3Agent", rule, shape)
        self._check_plays(found.observation_space)

    def _predict(self, uniform: UniformStreams) -> tuple[NDArray[Any], State | None]:
        shown = self.rows, self.state, self._fresh
        if self._deterministic:
            return self._model.predict(*shown, deterministic=True)
        draws = self.problem.domain.shape[1] if self.problem.continuous else 1
        u = np.stack([uniform.draw() for _ in range(draws)], axis=1)
        return draw_actions(self._model, *shown, u)
