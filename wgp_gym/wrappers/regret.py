"""Minus the regret as the reward, so that returns can rank policies."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from wgp_gym.types import Array, Info, Mask
from wgp_gym.validation import reject

__all__ = ["RegretReward", "VectorRegretReward"]

RULE = "an environment of wgp_gym, whose info tells the regret"


class RegretReward(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Hands on minus the regret of a step, f_t(x_t) - max f_t, in the place of its reward.

    A return is then minus the episode's regret: neither the noise nor how large an episode's
    functions are stands in it, which differ from episode to episode by far more than policies
    do. The observation shows the task's own reward still, so a policy is told no more than
    before, but what it is trained on is the truth: on a live system there is no such reward.

    Args:
        env: The environment.

    Raises:
        ValueError: At a step, if the environment tells no regret.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Play an action; return all as the environment does, but minus the regret as reward."""
        observation, _, terminated, truncated, info = self.env.step(action)
        if "regret" not in info:
            reject("env", "RegretReward", RULE, self.env)
        return observation, 0.0 - float(info["regret"]), terminated, truncated, info


class VectorRegretReward(gymnasium.vector.VectorWrapper[Any, Any, Any, Any, Any]):
    """The same for a vector environment: rewards `(B,)`.

    Where a call of `step` starts the next episodes and plays nothing, the rewards are 0.

    Args:
        env: The vector environment, native or not.

    Raises:
        ValueError: At a step, if the environment tells no regret.
    """

    def step(self, actions: Any) -> tuple[Any, Array, Mask, Mask, Info]:
        """Play the actions; return all as the environment does, but minus the regrets."""
        observations, _, terminated, truncated, infos = self.env.step(actions)
        if "regret" not in infos:
            reject("env", "VectorRegretReward", RULE, self.env)
        regrets = np.asarray(infos["regret"], float)
        if "final_info" in infos:  # of episodes that have ended in this step, and begun anew
            final = infos["final_info"]
            regrets = np.where(final["_regret"], final["regret"], regrets)
        return observations, 0.0 - regrets, terminated, truncated, infos
