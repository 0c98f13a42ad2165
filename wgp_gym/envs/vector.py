"""The native vector environment: B episodes in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from wgp_gym.envs.dynamics import Dynamics
from wgp_gym.envs.interface import (
    TaskPlayer,
    action_space,
    check_options,
    checked_actions,
    observation_space,
    with_horizon,
)
from wgp_gym.envs.rendering import RENDER_MODES, checked_mode, render, view
from wgp_gym.envs.task import Task
from wgp_gym.problem import BanditProblem
from wgp_gym.streams import seeded_generators
from wgp_gym.types import Action, Actions, Array, Floats32, Info, Json, Mask
from wgp_gym.validation import check_int, reject, seed_list

__all__ = ["BanditVectorEnv"]

OWNER = "BanditVectorEnv"
MAX_ENVS = 100_000
Batch = tuple[Floats32, Info]


class BanditVectorEnv(TaskPlayer, gymnasium.vector.VectorEnv[Floats32, Action, Actions]):
    """B environments `BanditEnv` in lockstep: spaces, rewards and infos are described there.

    Sub-environment i, reset with seed s, is the single environment reset with seed s + i,
    number for number. What comes after step T is Gymnasium's rule of that name, the same as of its
    `SyncVectorEnv`: by default the next call of `step` starts the next episodes and ignores its
    actions. All episodes are in lockstep: they end together, and are reset together.

    Args:
        num_envs: The number B of sub-environments, at most 100,000.
        task: A `Task`, or the "module:name" of its class or of a function that returns it.
        render_mode: None, "rgb_array" or "ansi".
        autoreset_mode: A `gymnasium.vector.AutoresetMode` or its value. "NextStep"; "SameStep":
            step T returns the first observations of the next episodes, and the last ones stand
            in `info` as "final_obs" and "final_info"; "Disabled": `reset` must be called.
        **parameters: The arguments of what is named; `max_episode_steps` stands for `horizon`.

    Raises:
        ValueError: If a parameter is out of its range, B episodes are too large to hold, or they
            are to be told kernels of their own (`told="drawn"`): the learners of one agent share
            a kernel.
    """

    metadata = {  # noqa: RUF012
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        *,
        task: str | Task,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        **parameters: Json,
    ) -> None:
        self.num_envs = num_envs = check_int("num_envs", num_envs, OWNER, 1, MAX_ENVS)
        self._autoreset = checked_autoreset(autoreset_mode)
        self.metadata = self.metadata | {"autoreset_mode": self._autoreset}
        self.render_mode = checked_mode(render_mode, OWNER)
        self._begin(task, with_horizon(task, parameters, OWNER), num_envs, render_mode)
        self.single_observation_space = observation_space(self.task)
        self.single_action_space = action_space(self.task)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators: list[np.random.Generator] = []

    @property
    def problem(self) -> BanditProblem:
        """What a learner may know of these episodes, with arrays `(B,)`."""
        return self.dynamics.problem

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Info | None = None,
    ) -> Batch:
        """Draw the next B episodes.

        Args:
            seed: s starts sub-environment i anew with s + i; a sequence gives each its own;
                None, there or here, goes on with the generator.
            options: Parameters for these episodes, as of `BanditEnv.reset`, the same for all.
                "reset_mask", if given, must name all: the episodes are in lockstep.

        Returns:
            The first observations, `(B, 3 + d)` or `(B, 3 + d + n d)`, and the infos.

        Raises:
            ValueError: If there is not one seed, an int of at least 0, for each, a mask leaves
                one out, a parameter is out of its range, or there is another option.
        """
        known = ("reset_mask", *self._settable)
        given = dict(check_options(options, f"{OWNER}.reset", known))
        if "reset_mask" in given:
            check_mask(given.pop("reset_mask"), self.num_envs)
        taken = self._taken(given)
        self._seed(seed)
        return self._drawn(taken)

    def _seed(self, seed: int | Sequence[int | None] | None) -> None:
        seeds = seed_list(seed, self.num_envs, gaps=True)
        if not self._generators:
            self._generators = seeded_generators(seeds)
            return
        new = [i for i, one in enumerate(seeds) if one is not None]
        for i, made in zip(new, seeded_generators([seeds[i] for i in new]), strict=True):
            self._generators[i] = made

    def _reset(self) -> Batch:
        return self._drawn(self._taken({}))

    def _drawn(self, taken: Dynamics) -> Batch:
        taken.reset(self._generators)
        self.dynamics = taken  # last: what is refused leaves the episodes as they were
        return self.dynamics.observation(), self._info()

    def step(self, actions: Action) -> tuple[Floats32, Array, Mask, Mask, Info]:
        """Play one action in every sub-environment.

        Args:
            actions: Arms `(B,)`, or points of the box `(B, d)`.

        Returns:
            The observations, as `reset` returns them, the rewards, all False, whether this was
            step T (`(B,)` each), and the infos.

        Raises:
            ValueError: If an action is not in the action space.
            ResetNeeded: If there was no reset yet, or the episodes are over and autoreset is
                disabled.
        """
        dynamics, flags = self.dynamics, np.zeros(self.num_envs, bool)
        if self._generators and dynamics.over and self._autoreset == AutoresetMode.NEXT_STEP:
            observation, info = self._reset()
            return observation, np.zeros(self.num_envs), flags, flags.copy(), info
        dynamics.step(checked_actions(self.action_space, actions))
        observation, reward, info = dynamics.observation(), dynamics.reward.copy(), self._info()
        over = np.full(self.num_envs, dynamics.over)
        if dynamics.over and self._autoreset == AutoresetMode.SAME_STEP:
            final = self._final(observation, info)
            observation, info = self._reset()
            info |= final
        return observation, reward, flags, over, info

    def _final(self, observations: Floats32, info: Info) -> Info:
        """Return the last observations and infos of episodes as Gymnasium's wrappers expect."""
        rows = np.full(self.num_envs, None, dtype=object)
        for i, row in enumerate(observations):
            rows[i] = row
        everyone = np.ones(self.num_envs, bool)
        return {
            "final_obs": rows,
            "_final_obs": everyone,
            "final_info": info,
            "_final_info": everyone.copy(),
        }

    def _info(self) -> Info:
        """Return the infos with Gymnasium's masks: key `_x` says who has an `x`; all have."""
        info = self.dynamics.info()
        masks = np.ones((len(info), self.num_envs), bool)
        for key, mask in zip(tuple(info), masks, strict=True):
            info[key] = np.full(self.num_envs, info[key]) if key == "t" else info[key].copy()
            info["_" + key] = mask
        return info

    def expected_rewards(self) -> Array:
        """Return, on the domain, the functions that the next actions meet, `(B, n)`."""
        return self.dynamics.expected_rewards()

    def optimal_action(self) -> Actions:
        """Return where these functions are largest: arms `(B,)`, or points `(B, d)`."""
        return self.dynamics.optimal_actions()

    def available(self) -> Mask:
        """Return which arms the next actions may choose, `(B, n)`: all, where none come and go."""
        return self.dynamics.available()

    action_masks = available  # sb3-contrib's name for it

    def function_changes(self) -> Mask:
        """Return whether the next actions meet other functions than those before them, `(B,)`."""
        return self.dynamics.function_changes()

    def render(self) -> tuple[Any, ...] | None:
        """Return one picture or text for each sub-environment."""
        if self.render_mode is None:
            return None
        views = (view(self.dynamics, i) for i in range(self.num_envs))
        return tuple(render(view, self.render_mode) for view in views)


def checked_autoreset(given: object) -> AutoresetMode:
    """Return the rule of what comes after step T; raise ValueError if there is none."""
    try:
        return AutoresetMode(given)
    except (TypeError, ValueError):
        rule = "one of " + ", ".join(repr(mode.value) for mode in AutoresetMode)
        reject("autoreset_mode", OWNER, rule, given)


def check_mask(mask: object, count: int) -> None:
    """Raise ValueError unless a mask is an array `(B,)` of bools and resets all episodes."""
    array = np.asarray(mask) if isinstance(mask, (list, tuple, np.ndarray)) else np.array(None)
    rule = "True for all sub-environments, whose episodes are in lockstep and end together"
    if array.dtype != bool or array.shape != (count,) or not array.all():
        reject("reset_mask", f"{OWNER}.reset", rule, mask)
