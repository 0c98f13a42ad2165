"""Long runs of one learner: the same cost late as early, whatever is played."""

from __future__ import annotations

import numpy as np

from scripts.speed.rows import Row, times
from scripts.speed.steps import agent_of


def late_and_early(name: str, end: int, arm: int | None = None) -> tuple[float, float]:
    """Return the microseconds of a step among the first and the last 500 of many, medians.

    Args:
        name: The agent.
        end: The number of steps.
        arm: The arm that is played from outside; None: what the agent chooses.
    """
    agent = agent_of(name)
    rng = np.random.default_rng(0)

    def _step() -> None:
        played = agent.act() if arm is None else arm
        agent.observe(played, float(rng.normal()))

    spent = 1e6 * times(_step, end)
    return float(np.median(spent[100:600])), float(np.median(spent[-500:]))


def measure(quick: bool) -> list[Row]:
    """Measure wgp-ucb and the adaptive agent."""
    rows = []
    for name, end in (("wgp-ucb", 1_000_000), ("adaptive-wgp-ucb", 200_000)):
        end //= 100 if quick else 1
        for arm, said in ((None, ""), (3, ", one arm from outside")):
            early, late = late_and_early(name, end, arm)
            told = f"`{name}`{said}, a step after {end:,}"
            rows.append(Row(told, late, "µs", "after 100", early))
    return rows
