"""What a report says in sentences: findings, what is left out, and how to read it."""

from __future__ import annotations

from wgp_agents.benchmark.report.numbers import with_interval
from wgp_agents.benchmark.report.summary import Summary
from wgp_agents.benchmark.statistics import Difference

__all__ = ["NOTES", "findings", "left_out"]

MOST_NAMED = 4  # rivals that one sentence names

NOTES = (
    "Regret is the sum over the steps of the best expected reward less that of the action that "
    "was played: lower is better. Every agent plays the same episodes, run by run.",
    "Means and medians: 95 % bootstrap intervals over the runs. Bands of curves: the mean with "
    "1.96 standard errors on either side.",
    "Differences: of the same runs, with intervals that hold for all pairs of a task together "
    "with 95 %. One agent beats another where the interval excludes zero.",
    "Adaptation: steps after a change until the regret per step, averaged over ten steps, is at "
    "most a tenth of random play's; the median over runs and changes, a dash where half of them or "
    "more do not get there before the next change.",
    "Across tasks, a regret is divided by the mean of random play's in the same task (or, where "
    "nobody played at random, of all competitors'): 0 is the oracle, 1 is chance. That mean is "
    "taken as known. The interquartile mean leaves out the lowest and the highest quarter of the "
    "runs. Tasks that share their draws are resampled together; one without regret is left out.",
)


def left_out(summary: Summary) -> list[str]:
    """Return a sentence that says that results are partial, if they are."""
    missing = summary.missing
    if not missing.units:
        return []
    gone = [f"the agent {label}" for label in missing.agents]
    gone += [f"the task {name}" for name in missing.tasks]
    shown = gone[:MOST_NAMED] + ["more"] * (len(gone) > MOST_NAMED)
    what = ", ".join(shown) or "runs that an agent lacks"
    return [f"Units are missing, {len(missing.units)} of them. Left out: {what}."]


def findings(summary: Summary) -> list[str]:
    """Return a sentence or two on each task."""
    if len(summary.competitors) < 2:
        return []
    return [finding(summary, task.name) for task in summary.tasks]


def finding(summary: Summary, task: str) -> str:
    """Return who is best in a task, and whom it beats."""
    best = summary.best(task)
    assert best is not None
    pairs = [pair for pair in summary.differences[task] if best in (pair.first, pair.second)]
    beaten = [pair for pair in pairs if pair.better == best]
    unclear = [other(pair, best) for pair in pairs if pair.better is None]
    mean = with_interval(summary.rows[task, best].mean)
    text = f"{task}: {best} has the lowest mean regret, {mean}."
    if beaten:
        text += f" It beats {len(beaten)} of {len(pairs)} other agents clearly."
    if 0 < len(unclear) <= MOST_NAMED:
        text += f" Not clearly above: {', '.join(unclear)}."
    elif unclear:
        text += f" {len(unclear)} are not clearly above it."
    return text


def other(pair: Difference, label: str) -> str:
    """Return the other agent of a pair."""
    return pair.second if pair.first == label else pair.first
