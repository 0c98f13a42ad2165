"""Native vector environments in the shape of stable-baselines3's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from wgp_gym.problem import BanditProblem
from wgp_gym.validation import check_float, reject

__all__ = ["NativeVecEnv"]

OWNER = "NativeVecEnv"
ONE_OBJECT = "The sub-environments of a NativeVecEnv are one object."


class NativeVecEnv(VecEnv):
    """Bandits for training, in groups of their own step, with no Python loop over bandits.

    Within a group all are at the same t. With G groups, group g is g T / G steps ahead after a
    reset, which it has played at random: what a policy is trained on then comes from all parts of
    the episode at once, not from one after the other.

    The next episodes begin in the step that ends the last ones, as stable-baselines3 expects.

    Args:
        envs: Native vector environments of `wgp_gym`, wrapped or not, one for each group, of the
            same spaces, and of the autoreset mode "NextStep" or "Disabled".
        reward_scale: What rewards are divided by, so that a network sees numbers of order one,
            above 0.

    Attributes:
        problem: What is known of the episodes.

    Raises:
        ValueError: If the environments are no such ones, or the scale is out of its range.
    """

    def __init__(self, envs: Sequence[Any], reward_scale: float = 1.0) -> None:
        check_groups(envs)
        self._envs = list(envs)  # before the base class, which asks for the render mode
        ends = np.cumsum([env.num_envs for env in envs]).tolist()
        self._parts = [slice(end - env.num_envs, end) for env, end in zip(envs, ends, strict=True)]
        one = envs[0]
        super().__init__(ends[-1], one.single_observation_space, one.single_action_space)
        self.problem: BanditProblem = one.unwrapped.problem
        self._scale = check_float("reward_scale", reward_scale, OWNER, 0, closed="right")
        self._actions: NDArray[Any] = np.zeros(0)
        self._seed: int | None = None
        self._first_seed: int | None = None  # that the episodes so far follow from
        self._begun = [0 for _ in envs]  # episodes of each group
        self._played: list[list[NDArray[Any]]] = [[] for _ in envs]  # in the present ones

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Start all sub-environments anew at the next reset, from s, s + 1, ..."""
        self._seed = seed
        return [None if seed is None else seed + i for i in range(self.num_envs)]

    def reset(self) -> NDArray[np.float32]:
        """Begin the next episodes."""
        if self._seed is not None:
            self._first_seed, self._begun = self._seed, [0 for _ in self._envs]
        rows = [self._begin(group) for group in range(len(self._envs))]
        self._seed = None
        return np.concatenate(rows)

    def _begin(self, group: int) -> NDArray[np.float32]:
        """Begin the next episodes of a group, and play on to where it is to stand."""
        env, part = self._envs[group], self._parts[group]
        seed = None if self._seed is None else self._seed + part.start
        observation = self._next(group, seed)
        if seed is not None:
            env.action_space.seed(seed)
        for _ in range(group * self.problem.known_horizon("train") // len(self._envs)):
            observation = self._play(group, env.action_space.sample())[0]
        return observation

    def _next(self, group: int, seed: int | None = None) -> NDArray[np.float32]:
        """Begin the next episodes of a group."""
        self._begun[group] += 1
        self._played[group] = []
        observation: NDArray[np.float32] = self._envs[group].reset(seed=seed)[0]
        return observation

    def _play(self, group: int, actions: NDArray[Any]) -> Any:
        """Play the actions of a group."""
        self._played[group].append(np.array(actions))
        return self._envs[group].step(actions)

    def position(self) -> dict[str, Any]:
        """Return where the episodes stand: they follow from it, for `return_to`.

        Returns:
            "seed", the first episodes' seed; for each group "begun", the number of its episodes,
            and "played", the actions in its present ones, `(t, n)` or `(t, n, d)`.
        """
        played = [torch.from_numpy(np.array(actions)) for actions in self._played]
        return {"seed": self._first_seed, "begun": list(self._begun), "played": played}

    def return_to(self, position: dict[str, Any]) -> NDArray[np.float32]:
        """Play on to where another such environment stands; return what it observes there."""
        self._first_seed, self._begun = position["seed"], [0 for _ in self._envs]
        rows = []
        for group, (begun, played) in enumerate(
            zip(position["begun"], position["played"], strict=True)
        ):
            observation = self._next(group, position["seed"] + self._parts[group].start)
            for _ in range(begun - 1):
                observation = self._next(group)
            for actions in played.numpy():
                observation = self._play(group, actions)[0]
            rows.append(observation)
        return np.concatenate(rows)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """Play the actions."""
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        steps = [self._step(group, infos[part]) for group, part in enumerate(self._parts)]
        observation, rewards, over = (np.concatenate(column) for column in zip(*steps, strict=True))
        return observation, (rewards / self._scale).astype(np.float32), over, infos

    def _step(self, group: int, infos: list[dict[str, Any]]) -> tuple[Any, Any, Any]:
        """Play a group's actions; at the end of its episodes, begin the next ones."""
        actions = self._actions[self._parts[group]]
        observation, rewards, _, over, _ = self._play(group, actions)
        if over.any():
            for one, last in zip(infos, observation, strict=True):
                one["terminal_observation"], one["TimeLimit.truncated"] = last, True
            observation = self._next(group)
        return observation, rewards, over

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return the render mode, None, once for each index; there is no other attribute."""
        if attr_name != "render_mode":
            raise NotImplementedError(ONE_OBJECT)
        return [None for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: the sub-environments are one object."""
        raise NotImplementedError(ONE_OBJECT)

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """Refuse, as `set_attr`."""
        raise NotImplementedError(ONE_OBJECT)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return False for each: a Monitor's work is done here."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Return no picture."""
        return [None] * self.num_envs


def check_groups(envs: Sequence[Any]) -> None:
    """Raise ValueError unless all are native, of the same spaces, and begin no episode unasked."""
    if not isinstance(envs, (list, tuple)) or not envs:
        reject("envs", OWNER, "a list of native vector environments", envs)
    first = envs[0]
    for env in envs:
        native = isinstance(env, VectorEnv) and hasattr(env.unwrapped, "problem")
        if not native:
            reject("envs", OWNER, "native vector environments, as make_vec makes them", env)
        if env.metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP:
            # The last observations would be the next episodes' first, which were then left out.
            reject("envs", OWNER, 'of another autoreset_mode than "SameStep"', env)
        for name in ("single_observation_space", "single_action_space"):
            if getattr(env, name) != getattr(first, name):
                rule = f"of the same {name}, {getattr(first, name)}"
                reject("envs", OWNER, rule, getattr(env, name))
