"""What a learner is told of changes, at three levels."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Floats32, Info, Mask
from wgp_gym.validation import check_choice, reject
from wgp_gym.wrappers.frame import Frame

__all__ = ["LEVELS", "ChangeNotification", "VectorChangeNotification"]

LEVELS = ("none", "whether", "how-much")
LARGEST = 1e12  # a change in an observation, as a reward in it


class Notice:
    """What is added to the observations of B learners: see `ChangeNotification`.

    Args:
        env: The environment.
        space: The space of one observation.
        level: One of `LEVELS`.
        owner: Whose parameters these are, for errors.

    Attributes:
        space: The space of what is shown.
        frame: Where the observation of the environment stands in it.
    """

    def __init__(self, env: Any, space: spaces.Space[Any], level: str, owner: str) -> None:
        self._count = LEVELS.index(check_choice("level", level, owner, LEVELS))
        ours = isinstance(getattr(env.unwrapped, "problem", None), BanditProblem)
        if not (ours and isinstance(space, spaces.Box) and len(space.shape) == 1):
            reject("env", owner, "an environment of wgp_gym with flat observations", env)
        more = np.array([1.0, LARGEST][: self._count])
        low, high = np.append(space.low, 0 * more), np.append(space.high, more)
        self.space = spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
        self.frame = Frame(len(low), 0, len(space.low))
        self._spent: Array = np.zeros(1)

    def add(self, observations: Floats32, info: Info) -> Floats32:
        """Return observations `(B, size)` with the notices added, as the infos say."""
        spent, changed = np.atleast_1d(info["variation"]), np.atleast_1d(info["changed"])
        # ||f_t - f_{t-1}||, from the variations spent up to both; an episode begins with neither.
        size = np.where(changed, spent - self._spent, 0.0)
        self._spent = spent.astype(float)
        notices = np.stack([changed, np.minimum(size, LARGEST)], axis=1)[:, : self._count]
        return np.concatenate([observations, notices.astype(np.float32)], axis=1)


class ChangeNotification(
    gymnasium.Wrapper[Floats32, Any, Floats32, Any], gymnasium.utils.RecordConstructorArgs
):
    """Tells a learner of changes of f_t, at the end of the observation.

    | level | what is added |
    |---|---|
    | "none" | nothing |
    | "whether" | whether the last play met another function than the one before it, 0 or 1 |
    | "how-much" | that, and the RKHS norm of the change, at most 1e12 |

    A notice comes with the reward of the first play of a new function: it is not known before that
    play, but before the next one, which may meet yet another function. After `reset` it is 0.

    Source: NS-Gym (Keplinger et al. 2025), whose `change_notification` and
    `delta_change_notification` these levels are; it tells at the same moment.

    Args:
        env: The environment, with flat observations: bare, or in a `HistoryObservation`.
        level: "none", "whether" or "how-much".

    Attributes:
        frame: Where the environment's observation stands, so that agents can read it.

    Raises:
        ValueError: If the level is none of these, or the environment is none of this package.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], level: str) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, level=level)
        gymnasium.Wrapper.__init__(self, env)
        self._notice = Notice(env, env.observation_space, level, "ChangeNotification")
        self.frame = self._notice.frame
        self.observation_space: spaces.Space[Floats32] = self._notice.space

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[Floats32, Info]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._notice.add(observation[None], info)[0], info

    def step(self, action: Any) -> tuple[Floats32, Any, bool, bool, Info]:
        """Play an action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._notice.add(observation[None], info)[0], reward, terminated, truncated, info


class VectorChangeNotification(gymnasium.vector.VectorObservationWrapper):
    """The same for a native vector environment.

    Args:
        env: The vector environment, with flat observations.
        level: "none", "whether" or "how-much".

    Attributes:
        frame: Where each environment's observation stands, so that agents can read it.

    Raises:
        ValueError: As `ChangeNotification` does.
    """

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any], level: str) -> None:
        super().__init__(env)
        owner = "VectorChangeNotification"
        self._notice = Notice(env, env.single_observation_space, level, owner)
        self.frame = self._notice.frame
        self.single_observation_space = self._notice.space
        self.observation_space = batch_space(self._notice.space, env.num_envs)

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Floats32, Info]:
        """Begin the next episodes."""
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._notice.add(observations, infos), infos

    def step(self, actions: Any) -> tuple[Floats32, Array, Mask, Mask, Info]:
        """Play the actions."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return self._notice.add(observations, infos), rewards, terminated, truncated, infos
