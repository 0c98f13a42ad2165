"""A reference: WGP-UCB with the best fixed discount in hindsight."""

from __future__ import annotations

from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from wgp_agents.algorithms.kernelized.wgp_ucb import WGPUCB
from wgp_agents.base import Agent
from wgp_agents.core.access import truth_reader
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import Seeds, seeds_of
from wgp_agents.gp.agent import GPParameters
from wgp_agents.parameters import SMALLEST
from wgp_gym.arrays import frozen, kept
from wgp_gym.envs.dynamics import Dynamics
from wgp_gym.types import Array, Mask
from wgp_gym.validation import as_floats, reject

__all__ = ["OracleDiscount"]

DISCOUNTS = tuple(
    1 - rate for rate in (0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
)


class OracleDiscount(Agent):
    """WGP-UCB with the discount that suits this very episode best: a reference, no competitor.

    Before its first play it runs WGP-UCB with every discount of the grid through a copy of what
    is left of the episode, functions and noise included, and then plays the actions of the run of
    least regret: what any fixed eta of the grid could have done, noise and ties included. It
    learns nothing.

    Args:
        env: The environment to play; it reads the truth there.
        discounts: The grid, numbers in [1e-30, 1].
        **common: See `GPAgent`, for the runs.

    Attributes:
        best: The discount of each learner's run, `(B,)`; NaN before the first play.

    Raises:
        TypeError: If given only a `BanditProblem`.
        ValueError: If a parameter is out of its range.
    """

    takes_units = False  # it learns nothing, and its runs are in copies without a wrapper

    def __init__(
        self, env: Any, *, discounts: Any = DISCOUNTS, **common: Unpack[GPParameters]
    ) -> None:
        super().__init__(env)
        self._read_episodes = truth_reader(env, "fork")
        rule = f"numbers in [{SMALLEST:g}, 1]"
        grid = as_floats("discounts", discounts, "OracleDiscount", rule)
        if grid.ndim != 1 or not grid.size or not ((grid >= SMALLEST) & (grid <= 1)).all():
            reject("discounts", "OracleDiscount", rule, discounts)
        self.discounts = frozen(grid)
        self._common = cast(GPParameters, {name: kept(value) for name, value in common.items()})
        WGPUCB(self.problem, discount=1.0, **common)  # bad parameters are refused here
        self.best = np.full(self.num_learners, np.nan)
        self._t = np.zeros(self.num_learners, np.int64)
        point = (self.problem.domain.shape[1],) if self.problem.continuous else ()
        dtype = np.float32 if self.problem.continuous else np.int64
        self.plan = np.zeros((self.problem.horizon, self.num_learners, *point), dtype)
        self._rows = np.arange(self.num_learners)

    def _restart(self, mask: Mask) -> None:
        self.best[mask], self._t[mask] = np.nan, 0

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        seeds = seeds_of(uniform)  # drawn always: streams move together
        missing = np.isnan(self.best)
        if missing.any():
            self._look_ahead(missing, seeds)
        return self.plan[np.minimum(self._t, len(self.plan) - 1), self._rows]

    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        del actions, rewards
        self._t += active

    def _look_ahead(self, missing: Mask, seeds: Seeds) -> None:
        """Play the episodes of the learners in `missing` `(B,)`, and keep the best actions."""
        start = 0
        found = self._read_episodes()
        for dynamics in found if isinstance(found, list | tuple) else [found]:
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
                self.plan[: len(plays), learners][:, better] = plays[:, better]

    def _run(
        self, dynamics: Dynamics, discount: float, seeds: list[int], common: GPParameters
    ) -> tuple[Array, NDArray[Any]]:
        """Return cumulative regrets `(b,)` and actions, step first, of one run of b episodes."""
        dynamics = dynamics.fork()
        agent = WGPUCB(dynamics.problem, discount=discount, **common)
        agent.reset(seeds)
        plays = []
        while not dynamics.over:
            plays.append(agent.act(dynamics.observation()))
            dynamics.step(plays[-1])
            agent.observe(plays[-1], dynamics.reward)
        regret: Array = dynamics.info()["cumulative_regret"]
        return regret, np.stack(plays)


def of_learners(parameters: GPParameters, learners: slice) -> GPParameters:
    """Return the parameters of some learners: those of all, and of the others their part."""

    def _part(value: Any) -> Any:
        listed = isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1
        return np.asarray(value)[learners] if listed else value

    found: Any = {name: _part(value) for name, value in parameters.items()}
    return cast(GPParameters, found)
