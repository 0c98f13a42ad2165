"""A reference: WGP-UCB with the best fixed discount in hindsight."""

from __future__ import annotations

from typing import Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.kernelized.wgp_ucb import WGPUCB
from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike, truth_reader
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import Seeds, seeds_of
from wgp_agents.gp.agent import GPParameters
from wgp_agents.parameters import SMALLEST, checked_grid
from wgp_gym.arrays import frozen, kept
from wgp_gym.envs.dynamics import Dynamics
from wgp_gym.types import Actions, Array, Mask

__all__ = ["OracleDiscount"]

DISCOUNTS = tuple(
    1 - rate for rate in (0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
)


class OracleDiscount(Agent):
    """WGP-UCB with the best discount for this very episode: a reference, no competitor.

    Before its first play it runs WGP-UCB with every discount of the grid through a copy of the rest
    of the episode, functions and noise included, and then plays the actions of the run of the
    smallest regret. It learns nothing.

    Args:
        env: The environment to play; it reads the truth there.
        discounts: The grid, numbers in [1e-30, 1].
        **common: See `GPAgent`, for the runs.

    Attributes:
        best: The discount of each learner's run, `(B,)`; NaN before the first play.
        plan: The actions of that run at each step of the episode, `(T, B)` or `(T, B, d)`.

    Raises:
        TypeError: If given only a `BanditProblem`.
        ValueError: If a parameter is out of its range.
    """

    takes_units = False  # it learns nothing, and its runs are in copies without a wrapper

    def __init__(
        self, env: EnvLike, *, discounts: ArrayLike = DISCOUNTS, **common: Unpack[GPParameters]
    ) -> None:
        super().__init__(env)
        self._bind_truth(env)
        self.discounts = frozen(
            checked_grid("discounts", discounts, "OracleDiscount", SMALLEST, 1.0)
        )
        self._common = cast(GPParameters, {name: kept(value) for name, value in common.items()})
        horizon = self.problem.known_horizon("OracleDiscount")
        if common.get("noise_scale") is None:
            self.problem.known_noise("OracleDiscount", "noise_scale")
        WGPUCB(self.problem, discount=1.0, **common)  # bad parameters are refused here
        self.best = np.full(self.num_learners, np.nan)
        point = (self.problem.domain.shape[1],) if self.problem.continuous else ()
        dtype = np.float32 if self.problem.continuous else np.int64
        self.plan = np.zeros((horizon, self.num_learners, *point), dtype)
        self._rows = np.arange(self.num_learners)

    def _bind_truth(self, env: EnvLike) -> None:
        self._read_episodes = truth_reader(env, "fork")

    def _restart(self, mask: Mask) -> None:
        self.best[mask] = np.nan

    def _choose(self, uniform: UniformStreams) -> Actions:
        seeds = seeds_of(uniform)  # drawn always: streams move together
        found = self._read_episodes()
        episodes = list(found) if isinstance(found, list | tuple) else [found]
        missing = np.isnan(self.best)
        if missing.any():
            self._look_ahead(episodes, missing, seeds)
        t = np.repeat([one.t for one in episodes], [one.batch for one in episodes])
        actions: Actions = self.plan[np.minimum(t, len(self.plan) - 1), self._rows]
        return actions

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        pass

    def _look_ahead(self, episodes: list[Dynamics], missing: Mask, seeds: Seeds) -> None:
        """Run the episodes of the learners in `missing` `(B,)`, and keep the best actions."""
        start = 0
        for dynamics in episodes:
            learners = slice(start, start + dynamics.batch)
            start += dynamics.batch
            wanted = missing[learners]
            if dynamics.over or not wanted.any():
                continue
            common = of_learners(self._common, learners)
            least = np.full(dynamics.batch, np.inf)
            for discount in self.discounts:
                regret, plays = self._run(
                    dynamics, float(discount), seeds[learners].tolist(), common
                )
                better = wanted & (regret < least)
                least[better] = regret[better]
                self.best[learners][better] = discount
                self.plan[dynamics.t :, learners][:, better] = plays[:, better]

    def _run(
        self, dynamics: Dynamics, discount: float, seeds: list[int], common: GPParameters
    ) -> tuple[Array, Actions]:
        """Return cumulative regrets `(b,)` and actions, step first, of one run of b episodes."""
        dynamics = dynamics.fork()
        agent = WGPUCB(dynamics.problem, discount=discount, **common)
        agent.reset(seeds)
        plays = []
        while not dynamics.over:
            there = dynamics.available() if dynamics.task.masked else None
            plays.append(agent.act(dynamics.observation(), allowed=there))
            dynamics.step(plays[-1])
            agent.observe(plays[-1], dynamics.reward)
        regret: Array = dynamics.info()["cumulative_regret"]
        return regret, np.stack(plays)


def of_learners(parameters: GPParameters, learners: slice) -> GPParameters:
    """Return the parameters of some learners."""

    def _part(value: object) -> object:
        listed = isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1
        return np.asarray(value)[learners] if listed else value

    return cast(GPParameters, {name: _part(value) for name, value in parameters.items()})
