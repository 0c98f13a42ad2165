"""The charts of a report, as data: what is drawn where is the page's business."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.figures.canvas import Z
from wgp_agents.benchmark.figures.spread import profile_shares
from wgp_agents.benchmark.play import Arrays
from wgp_agents.benchmark.report.summary import (
    WINDOW,
    Summary,
    competitors,
    relative_regrets,
    scored,
)
from wgp_agents.benchmark.report.sweeps import growth_charts, sensitivity_charts
from wgp_agents.benchmark.results import Results
from wgp_agents.benchmark.statistics import estimate, improvement, smoothed
from wgp_gym.kernels import Array

__all__ = ["charts"]

SHOWN = ("regret", "action", "optimal_action", "final_regret")
POINTS = 200  # of a curve
DOTS = 100  # runs shown one by one
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
MOST_COMPARED = 20  # agents in the map of all pairs

Chart = dict[str, Any]


def charts(results: Results, summary: Summary) -> list[Chart]:
    """Return all charts, those of each task first."""
    found = []
    for i, task in enumerate(results.tasks):
        found += task_charts(results, i, task)
    if scored(results):
        found.append(profile(results))
    if 2 < len(competitors(results)) <= MOST_COMPARED:
        found.append(improvement_map(results))
    return found + sensitivity_charts(results, summary) + growth_charts(results, summary)


def task_charts(results: Results, i: int, task: str) -> list[Chart]:
    """Return the charts of a task; what is stored of each agent is read once."""
    changes = results.changes(task)
    shown = thinned(results.horizon(task))
    first = int(results.runs(task)[0])
    cumulative: list[Chart] = []
    per_step: list[Chart] = []
    boxes: list[Chart] = []
    plays: list[Chart] = []
    for j, label in enumerate(results.agents):
        stored = results.read(task, label, SHOWN)
        regret = stored["regret"].astype(float)
        cumulative.append({"agent": j} | band(np.cumsum(regret, axis=1), shown))
        per_step.append({"agent": j} | band(smoothed(regret, WINDOW), shown))
        boxes.append(box(j, stored["final_regret"]))
        plays += places(stored, j, shown)
    some = "" if len(shown) == shown[-1] + 1 else f"; {len(shown)} of {shown[-1] + 1} steps shown"
    common = {"task": i, "x_label": "step t", "marks": changes, "mark_label": "change"}
    steps = (shown + 1).tolist()
    curves = {"kind": "lines", "x": steps}
    unit = "units of reward"
    found: list[Chart] = [
        {"id": f"regret-curves-{i}", "section": "Regret", "title": "Cumulative regret"}
        | {"y_label": f"cumulative regret ({unit})", "series": cumulative}
        | {"caption": f"mean over the runs; bands: 1.96 standard errors on either side{some}"},
        {"id": f"per-step-{i}", "section": "Regret", "title": "Regret per step"}
        | {"y_label": f"regret per step ({unit})", "series": per_step}
        | {"caption": f"mean over the runs and the last {WINDOW} steps{some}"},
    ]
    if plays:
        found.append(
            {"id": f"plays-{i}", "section": "Plays", "title": "What was played"}
            | {"y_label": "arm, or place in [0, 1]", "series": plays}
            | {"caption": f"in run {first}, against the true optimum{some}"}
        )
    found = [curves | common | chart for chart in found]
    spread = {"id": f"final-{i}", "section": "Regret", "kind": "boxes", "task": i, "boxes": boxes}
    spread |= {"title": "Final regret of every run", "x_label": f"final regret ({unit})"}
    spread |= {"caption": "boxes: quartiles; whiskers: 5 and 95 %; points: runs; diamond: mean"}
    return [found[0], found[1], spread, *found[2:]]


def thinned(horizon: int) -> NDArray[np.int64]:
    """Return the columns of a curve that are shown, the first and the last among them."""
    return np.unique(np.linspace(0, horizon - 1, min(horizon, POINTS)).round().astype(np.int64))


def rounded(values: Array) -> list[float]:
    """Return numbers with five digits."""
    return [float(f"{value:.5g}") for value in values.tolist()]


def band(runs: Array, shown: NDArray[np.int64]) -> Chart:
    """Return a mean curve with its band, from `(runs, T)`."""
    mean, error = estimate(runs[:, shown])
    if len(runs) < 2:
        return {"y": rounded(mean)}
    low, high = mean - Z * error, mean + Z * error
    return {"y": rounded(mean), "low": rounded(low), "high": rounded(high)}


def box(agent: int, finals: Array) -> Chart:
    """Return the distribution of an agent's final regrets."""
    quantiles, points = rounded(np.quantile(finals, QUANTILES)), rounded(finals[:DOTS])
    mean = float(finals.mean())
    return {"agent": agent, "quantiles": quantiles, "mean": mean, "points": points}


def places(stored: Arrays, agent: int, shown: NDArray[np.int64]) -> list[Chart]:
    """Return what an agent played in its first run; before the first agent's also the optimum.

    None on a box of more than one dimension.
    """
    played, best = stored["action"][0], stored["optimal_action"][0]
    if played.ndim > 1:
        if played.shape[1] > 1:
            return []
        played, best = played[:, 0], best[:, 0]
    found: list[Chart] = []
    if agent == 0:
        found.append({"agent": None, "label": "true optimum", "y": rounded(best[shown])})
    dots = {"y": rounded(played[shown]), "markers": True, "line": False}
    return [*found, {"agent": agent} | dots]


def profile(results: Results) -> Chart:
    """Return the performance profiles: the share of runs whose regret is at most tau of chance."""
    shares = relative_regrets(results)
    largest = max(np.quantile(share, 0.99) for found in shares.values() for share in found)
    tau = np.linspace(0.0, min(float(largest), 2.0), POINTS)
    series = []
    for j, label in enumerate(results.agents):
        series.append({"agent": j, "y": rounded(profile_shares(shares[label], tau)[0])})
    of = "random play's mean" if results.random() else "the competitors' mean"
    return {
        "id": "profiles",
        "section": "Across tasks",
        "task": None,
        "kind": "lines",
        "title": "Performance profiles",
        "caption": f"share of the runs with at most so much regret; 1 is {of}; higher is better",
        "x_label": f"final regret, as a share of {of}",
        "y_label": "share of the runs",
        "marks": [],
        "x": rounded(tau),
        "series": series,
    }


def improvement_map(results: Results) -> Chart:
    """Return the map of how likely a run of one agent is better than one of another."""
    labels = competitors(results)
    finals = {
        label: [results.final_regret(task, label) for task in results.tasks] for label in labels
    }
    values: list[list[float | None]] = [[None] * len(labels) for _ in labels]
    for (i, first), (j, second) in itertools.combinations(enumerate(labels), 2):
        better = improvement(finals[first], finals[second])
        values[i][j], values[j][i] = round(better, 2), round(1 - better, 2)
    return {
        "id": "improvement",
        "section": "Across tasks",
        "task": None,
        "kind": "heatmap",
        "title": "Probability of improvement",
        "caption": "that a run of the row's agent has a lower regret than one of the column's, "
        "in the same task; the mean over tasks",
        "x_label": "than the agent of this number",
        "y_label": "better",
        "x": [str(place) for place in range(1, len(labels) + 1)],
        "y": [f"{place}  {label}" for place, label in enumerate(labels, start=1)],
        "values": values,
        "low_is_best": None,
        "digits": 2,
        "unit": "probability",
        "agent": None,
    }
