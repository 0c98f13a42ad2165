"""Who stands where on a board: regrets over the best in hindsight, with intervals, and ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from wgp_agents.benchmark.statistics.bootstrap import (
    Interval,
    bootstrap_generator,
    percentile_interval,
    resample_counts,
)
from wgp_gym.types import Array

__all__ = ["Standing", "standings"]

LEVEL, RESAMPLES, SEED = 0.95, 2000, 0
LEAST = 1e-3  # of random play's regret, that counts as no regret


class Standing(NamedTuple):
    """One agent on one board.

    Attributes:
        agent: Its label.
        ratio: The geometric mean over tasks of its mean regret over that of the best fixed
            parameters in hindsight, with its 95 % bootstrap interval over runs.
        rank: Its place by that, from 1, the same for equals, with the interval of the resamples.
        worst: The largest regret of a single run over the same.
        ratios: Of each task, by its name.
    """

    agent: str
    ratio: Interval
    rank: Interval
    worst: float
    ratios: dict[str, float]


def standings(
    regrets: Mapping[str, Mapping[str, Array]], best: Mapping[str, Array], chance: str
) -> list[Standing]:
    """Return who stands where, the first one first.

    Of each task runs are drawn anew, the same for all agents, since run i is the same episode for
    everybody. Who has the least regret in hindsight is chosen once, on all runs.

    Args:
        regrets: By task and agent, the regret of each run, `(runs,)`; the same agents everywhere.
        best: Of each task the regrets of the best fixed parameters in hindsight, `(runs,)`.
        chance: The agent that plays at random: a thousandth of its mean regret counts as none, so
            that a ratio is finite.
    """
    rng = bootstrap_generator("standings", LEVEL, RESAMPLES, SEED)
    agents = list(next(iter(regrets.values())))
    logs, drawn, worst = [], [], []
    for task, of_agents in regrets.items():
        values = np.stack([of_agents[agent] for agent in agents])
        least = LEAST * float(of_agents[chance].mean())
        unit = max(float(best[task].mean()), least)
        logs.append(np.log(np.maximum(values.mean(axis=1), least) / unit))
        counts = resample_counts(rng, values.shape[1], RESAMPLES) / values.shape[1]
        means, units = counts @ values.T, counts @ best[task]
        shares = np.maximum(means, least) / np.maximum(units, least)[:, None]
        drawn.append(np.log(shares))
        worst.append(values.max(axis=1) / unit)
    means, resampled = np.mean(logs, axis=0), np.mean(drawn, axis=0)
    places = 1 + (resampled[:, None] < resampled[:, :, None]).sum(axis=2)
    order = np.argsort(means, kind="stable")
    ranks = 1 + (means[None] < means[:, None]).sum(axis=1)
    runs = min(len(one) for one in best.values())
    return [
        Standing(
            agents[i],
            percentile_interval(np.exp(means[i]), np.exp(resampled[:, i]), LEVEL, runs),
            percentile_interval(ranks[i], places[:, i].astype(float), LEVEL, runs),
            float(np.max(worst, axis=0)[i]),
            {task: float(np.exp(log[i])) for task, log in zip(regrets, logs, strict=True)},
        )
        for i in order
    ]
