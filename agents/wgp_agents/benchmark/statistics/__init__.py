"""Statistics over paired runs: estimates with intervals, comparisons, what holds across tasks.

All bootstraps are seeded. Lower regret is better.
"""

from wgp_agents.benchmark.statistics.adaptation import adaptation_times, smoothed
from wgp_agents.benchmark.statistics.aggregate import (
    improvement,
    interquartile_mean,
    probability_of_improvement,
    profile_shares,
)
from wgp_agents.benchmark.statistics.bootstrap import Interval
from wgp_agents.benchmark.statistics.comparisons import Difference, paired_comparisons
from wgp_agents.benchmark.statistics.estimates import (
    Estimate,
    estimate,
    loglog_slope,
    mean_interval,
    median_interval,
    paired_difference,
    share_of,
)

__all__ = [
    "Difference",
    "Estimate",
    "Interval",
    "adaptation_times",
    "estimate",
    "improvement",
    "interquartile_mean",
    "loglog_slope",
    "mean_interval",
    "median_interval",
    "paired_comparisons",
    "paired_difference",
    "probability_of_improvement",
    "profile_shares",
    "share_of",
    "smoothed",
]
