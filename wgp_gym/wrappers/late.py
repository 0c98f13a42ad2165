"""Rewards that come late, or never."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Floats32, Indices, Info, Mask
from wgp_gym.validation import check_float, check_int, reject, seed_list

__all__ = ["NEVER", "DelayedRewards", "VectorDelayedRewards"]

NEVER = 0  # the step at which a reward arrives that nobody sees
LONGEST = 10**6  # steps of a delay
STREAM = 3  # of a seed, apart from those of the environment's own
LAW = f'an int in [0, {LONGEST:,}], or ["geometric", mean] with a mean in (0, {LONGEST:,}]'
DelayLaw = int | Sequence[str | float]


class Arrivals:
    """When the rewards of B episodes arrive, and which have by now: see `DelayedRewards`.

    Args:
        env: The environment, single or vector.
        space: The space of one observation.
        batch: B.
        delay: The steps that every reward is late, or their law.
        missing: The probability that a reward never comes.
        owner: Whose parameters these are, for errors.

    Raises:
        ValueError: If a parameter is out of its range, or the environment is none of this package.
    """

    def __init__(
        self,
        env: Any,
        space: spaces.Space[Any],
        batch: int,
        delay: DelayLaw,
        missing: float,
        owner: str,
    ) -> None:
        problem = getattr(env.unwrapped, "problem", None)
        if not isinstance(problem, BanditProblem):
            reject("env", owner, "an environment of wgp_gym", env)
        n, self._dim = problem.domain.shape
        size = 3 + self._dim + (n * self._dim if problem.contextual else 0)
        if not isinstance(space, spaces.Box) or space.shape != (size,):
            reject("env", owner, "a bare environment, which shows its last play", space)
        self._horizon = problem.known_horizon(owner)
        self._missing = check_float("missing", missing, owner, 0, 1)
        self._delay, self._mean = checked_delay(delay, owner)
        if problem.contextual and (self._delay or self._mean):
            reject("delay", owner, "0 where arms are drawn anew at each step", delay)
        self._rows = np.arange(batch)
        self._rewards: Array = np.zeros((batch, self._horizon))
        # Places and rewards as observations show them; a wrapper may have changed what is paid.
        self._shown: Floats32 = np.zeros((batch, self._horizon, self._dim + 1), np.float32)
        self._steps: Indices = np.full((batch, self._horizon), NEVER)
        self._plays: Indices = np.zeros(batch * self._horizon, np.int64)  # in the order of arrival
        self._first: Indices = np.zeros(self._horizon + 2, np.int64)  # among them, at each step

    def begin(self, generators: Sequence[np.random.Generator]) -> None:
        """Draw when the rewards of the next episodes arrive, each from its own generator."""
        played = np.arange(1, self._horizon + 1)
        for own, rng in zip(self._steps, generators, strict=True):
            lost, waits = rng.random((2, self._horizon))
            late = np.full(self._horizon, self._delay)
            if self._mean:  # P(D >= j) = q^j with q = mean / (1 + mean)
                late = np.floor(np.log1p(-waits) / -math.log1p(1 / self._mean)).astype(np.int64)
            arrives = played + late
            own[:] = np.where((lost < self._missing) | (arrives > self._horizon), NEVER, arrives)
        steps = self._steps.ravel()
        self._plays = np.argsort(steps, kind="stable")
        self._first = np.searchsorted(steps[self._plays], np.arange(self._horizon + 2))

    def before(self) -> Info:
        """Return what the info tells where nothing was played, `(B,)` each."""
        return {"reward": np.zeros(len(self._rows)), "arrives": np.full(len(self._rows), NEVER)}

    def after(self, t: int, observations: Floats32, rewards: Array) -> tuple[Floats32, Array, Info]:
        """Take in the plays of step t; return what is shown, what is paid, and the info.

        Args:
            t: The step, counted from 1.
            observations: As the environment shows them, `(B, size)`.
            rewards: Of these plays, `(B,)`.
        """
        play = slice(2, 3 + self._dim)
        self._rewards[:, t - 1], self._shown[:, t - 1] = rewards, observations[:, play]
        arriving = self._plays[self._first[t] : self._first[t + 1]]
        learners, plays = np.divmod(arriving, self._horizon)
        paid, newest = np.zeros(len(rewards)), np.full(len(rewards), -1)
        np.add.at(paid, learners, self._rewards[learners, plays])
        np.maximum.at(newest, learners, plays)
        known = newest >= 0
        shown = observations.copy()
        shown[:, 1] = known
        shown[:, play] = np.where(known[:, None], self._shown[self._rows, newest], 0.0)
        return shown, paid, {"reward": rewards, "arrives": self._steps[:, t - 1].copy()}


class DelayedRewards(
    gymnasium.Wrapper[Floats32, Any, Floats32, Any], gymnasium.utils.RecordConstructorArgs
):
    """Pays rewards late, and some never.

    The reward of step t is known at the end of step t + D, D the delay, drawn for each play; with
    the probability `missing` it never is, and neither is one that would come after step T. All is
    drawn at reset, from the seed and the number of the episode alone, from a stream of its own:
    functions and noise stay those of the bare environment. A wrapper serves every task alike.

    - `reward` is the sum of the rewards that arrive now, 0.0 where there are none, so that a return
      is the sum of what was seen.
    - The observation shows, in the place of the last play, the play whose reward has arrived now,
      and its reward, the task's own, whatever a wrapper inside pays for it; of several the newest
      play. Where nothing has arrived, it shows no last play.
      So `predict` and `HistoryObservation` (around this wrapper) learn of no reward too early.
    - `info["reward"]` is the reward of the play itself, and `info["arrives"]` the step, counted
      from 1, at the end of which it is known; 0: never. Both are for the harness, as all of `info`:
      `wgp_agents.late_rewards.LateRewards` tells an agent of each reward when it arrives, and
      `rollout` and `evaluate` play so.

    Args:
        env: The environment, bare: other wrappers that show plays go around this one.
        delay: The steps that every reward is late, at least 0; or ["geometric", mean]: D = j with
            the probability (1 - q) q^j, q = mean / (1 + mean). 0 where arms are drawn anew.
        missing: The probability that the reward of a play is never seen, in [0, 1].

    Raises:
        ValueError: If a parameter is out of its range, or the environment is none of this package.

    Source: Joulani, Gyorgy, Szepesvari. Online learning under delayed feedback. ICML 2013, for
    independent delays of each play whose plays are told with their rewards.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], *, delay: DelayLaw = 0, missing: float = 0.0
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, delay=delay, missing=missing)
        gymnasium.Wrapper.__init__(self, env)
        space = env.observation_space
        self._arrivals = Arrivals(env, space, 1, delay, missing, "DelayedRewards")
        self._generator = np.random.default_rng()
        self._beside: np.random.Generator | None = None  # the environment's own

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[Floats32, Info]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        if self.np_random is not self._beside:  # begun anew, by whoever named a seed
            self._beside, named = self.np_random, self.unwrapped.np_random_seed
            if named >= 0:  # else Gymnasium was given a generator, of no seed
                self._generator = own_generator(named)
        self._arrivals.begin([self._generator])
        return observation, info | single(self._arrivals.before())

    def step(self, action: Any) -> tuple[Floats32, float, bool, bool, Info]:
        """Play an action."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        shown, paid, told = self._arrivals.after(
            info["t"], np.asarray(observation)[None], np.array([float(reward)])
        )
        return shown[0], float(paid[0]), terminated, truncated, info | single(told)


class VectorDelayedRewards(gymnasium.vector.VectorWrapper[Any, Any, Any, Any, Any]):
    """The same for a native vector environment: sub-environment i is the single one, as there.

    Args:
        env: The vector environment, of the autoreset mode "NextStep" or "Disabled".
        delay: As of `DelayedRewards`, the same law in all.
        missing: Likewise.

    Raises:
        ValueError: As `DelayedRewards` does, or of the mode "SameStep".
    """

    def __init__(
        self,
        env: gymnasium.vector.VectorEnv[Any, Any, Any],
        *,
        delay: DelayLaw = 0,
        missing: float = 0.0,
    ) -> None:
        super().__init__(env)
        owner, space = "VectorDelayedRewards", env.single_observation_space
        if env.metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP:
            reject("env", owner, 'of another autoreset_mode than "SameStep"', env)
        self._arrivals = Arrivals(env, space, env.num_envs, delay, missing, owner)
        self._generators = [np.random.default_rng() for _ in range(env.num_envs)]

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Floats32, Info]:
        """Begin the next episodes."""
        observations, infos = self.env.reset(seed=seed, options=options)
        for i, one in enumerate(seed_list(seed, self.num_envs, gaps=True)):
            if one is not None:
                self._generators[i] = own_generator(one)
        return observations, infos | self._begun()

    def step(self, actions: Any) -> tuple[Floats32, Array, Mask, Mask, Info]:
        """Play the actions."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        t = int(infos["t"][0])
        if t == 0:  # this call began the next episodes, and played nothing
            return observations, rewards, terminated, truncated, infos | self._begun()
        shown, paid, told = self._arrivals.after(t, observations, rewards)
        return shown, paid, terminated, truncated, infos | masked(told)

    def _begun(self) -> Info:
        """Draw what is late in the next episodes; return what their first infos tell."""
        self._arrivals.begin(self._generators)
        return masked(self._arrivals.before())


def own_generator(seed: int) -> np.random.Generator:
    """Return the generator of what is late in the episodes of a seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM,)))


def single(told: Info) -> Info:
    """Return the info of the one environment of a batch."""
    return {name: values[0].item() for name, values in told.items()}


def masked(told: Info) -> Info:
    """Return infos `(B,)` with Gymnasium's masks: key `_x` says who has an `x`; all have."""
    masks = {f"_{name}": np.ones(len(values), bool) for name, values in told.items()}
    return told | masks


def checked_delay(delay: object, owner: str) -> tuple[int, float]:
    """Return the delay and 0, or of a geometric law 0 and its mean; else raise ValueError."""
    if isinstance(delay, (list, tuple)):
        if len(delay) != 2 or delay[0] != "geometric":
            reject("delay", owner, LAW, delay)
        return 0, check_float("delay", delay[1], owner, 0, LONGEST, closed="right")
    return check_int("delay", delay, owner, 0, LONGEST), 0.0
