"""A native vector environment in the shape of stable-baselines3's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

__all__ = ["NativeVecEnv"]


class NativeVecEnv(VecEnv):
    """B bandits in lockstep, for training: their own step, with no Python loop over them.

    The next episodes begin in the step that ends the last ones, as stable-baselines3 expects.
    The infos hold what it reads, and at an episode's end the regret.

    Args:
        env: A native vector environment of `wgp_gym`, wrapped or not.
        reward_scale: What rewards are divided by, so that a network sees numbers of order one.
    """

    def __init__(self, env: Any, reward_scale: float = 1.0) -> None:
        self._env = env  # before the base class, which asks for the render mode
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self._scale = reward_scale
        self._actions: NDArray[Any] = np.zeros(0)
        self._returns = np.zeros(env.num_envs)
        self._seed: int | None = None

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Start all sub-environments anew at the next reset, from s, s + 1, ..."""
        self._seed = seed
        return [None if seed is None else seed + i for i in range(self.num_envs)]

    def reset(self) -> NDArray[np.float32]:
        """Begin the next episodes."""
        self._returns[:] = 0.0
        observation: NDArray[np.float32] = self._env.reset(seed=self._seed)[0]
        self._seed = None
        return observation

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """Play the actions."""
        observation, rewards, _, over, info = self._env.step(self._actions)
        self._returns += rewards
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if over.any():
            for i, (one, last) in enumerate(zip(infos, observation, strict=True)):
                one["terminal_observation"], one["TimeLimit.truncated"] = last, True
                one["regret"] = float(info["cumulative_regret"][i])
                one["episode"] = {"r": float(self._returns[i]), "l": int(info["t"][i]), "t": 0.0}
            observation = self.reset()
        return observation, (rewards / self._scale).astype(np.float32), over, infos

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return the render mode, None, once for each index.

        Raises:
            NotImplementedError: If another attribute is asked for.
        """
        if attr_name != "render_mode":
            raise NotImplementedError("The sub-environments of a NativeVecEnv are one object.")
        return [None for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: the sub-environments are one object.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("The sub-environments of a NativeVecEnv are one object.")

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """Refuse, as `set_attr`.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("The sub-environments of a NativeVecEnv are one object.")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return False for each: a Monitor's work is done here."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Return no picture."""
        return [None] * self.num_envs
