"""BOB: learns the window of SW-LinUCB from the rewards of blocks, by a bandit over the bandit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.adaptive.bandit_over_bandit import bandit_over
from wgp_agents.algorithms.linear.defaults import LinearParameters, linear_dim, linear_parameters
from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates.weighted import WindowSurrogate
from wgp_agents.gp.width import cheung_width
from wgp_agents.parameters import checked_grid
from wgp_gym.types import Array
from wgp_gym.validation import check_int, reject

__all__ = ["BOBLinUCB", "default_block", "default_windows"]


class BOBLinUCB(GPAgent):
    """Bandit over bandit ([CSZ19]): SW-LinUCB, restarted every L steps, its window drawn by Exp3.

    It needs no variation budget: the reward of Exp3 is the sum of a block's rewards, scaled to
    [0, 1]. See `SWLinUCB` and `BanditOverBandit`.

    Deviation: the scaled sum is clipped to [0, 1], its range with high probability only. Plays
    that are observed before a block's window is drawn are forgotten, and do not count for it. The
    clock of `confidence` goes on over the blocks.

    Source: [CSZ19] Cheung, Simchi-Levi, Zhu. Learning to Optimize under Non-Stationarity. AISTATS
    2019, algorithm BOB. Its text could not be read: Exp3's rate and the scaling of its rewards are
    those of public code, the block and the candidates rest on memory.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        block_length: L in [1, T], in steps. Default: floor(d T^{1/2}), at most T.
        windows: The candidates of Exp3, whole numbers >= 1, in steps, or infinity. Default: the
            floor of L^{j / D}, j = 0 ... D, D = ceil(ln L); those that are equal count once.
        gamma: Exp3's share of uniform exploration, in (0, 1], scalar or `(B,)`. Default:
            min(1, (K ln K / ((e - 1) ceil(T / L)))^{1/2}) of K windows.
        reward_range: The two numbers that expected rewards lie between. Default: the problem's;
            where it has none, -B and B; where no B is known either, -1 and 1.
        **common: See `LinearParameters`.

    Attributes:
        windows: The candidates, `(K,)`.
        candidate: The index of each learner's window, `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    takes_elapsed = False
    learns_by_acting = True

    def __init__(
        self,
        env: EnvLike,
        *,
        block_length: int | None = None,
        windows: ArrayLike | None = None,
        gamma: ArrayLike | None = None,
        reward_range: Sequence[float] | None = None,
        **common: Unpack[LinearParameters],
    ) -> None:
        owner, problem = "BOBLinUCB", problem_reader(env)()
        horizon, dim = problem.known_horizon(owner), linear_dim(problem)
        if block_length is None:
            block_length = default_block(horizon, dim)
        self.block_length = check_int("block_length", block_length, owner, 1, horizon)
        if windows is None:
            windows = default_windows(self.block_length)
        self.windows = checked_grid("windows", windows, owner, 1, math.inf)
        if (self.windows != np.floor(self.windows)).any():
            reject("windows", owner, "whole numbers", windows)
        over = bandit_over(owner, problem, self.block_length, self.windows, gamma, reward_range)
        self.candidate = over.candidate
        form = cheung_width(dim)
        parameters = linear_parameters(owner, common)
        super().__init__(
            env, surrogate=WindowSurrogate, width_form=form, restart_rule=over, **parameters
        )


def default_block(horizon: int, dim: int) -> int:
    """Return L = floor(d T^{1/2}), at most T: [CSZ19]."""
    return min(math.floor(dim * math.sqrt(horizon)), horizon)


def default_windows(block_length: int) -> Array:
    """Return the whole parts of L^{j / D}, j = 0 ... D, D = ceil(ln L), each once: [CSZ19]."""
    steps = max(math.ceil(math.log(block_length)), 1)
    found = float(block_length) ** (np.arange(steps + 1) / steps)
    return np.unique(np.floor(found + 1e-9))  # L itself may come out a little below
