"""From results to files: tables, curves and a manifest."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.experiment import (
    COMPETITORS,
    PANELS,
    SETTINGS,
    Panel,
    Setting,
    UnitResult,
)
from wgp_agents.benchmark.files import write_arrays, write_csv, write_manifest
from wgp_agents.benchmark.statistics import estimate, paired_difference
from wgp_agents.registry import AGENTS
from wgp_gym.kernels import Array

__all__ = [
    "Collected",
    "collect",
    "load_curves",
    "summary_rows",
    "table",
    "write_files",
]

REFERENCE = "wgp-ucb"

Key = tuple[Panel, Setting, str]
Collected = dict[Key, UnitResult]


def collect(results: Iterable[UnitResult]) -> Collected:
    """Join the batches of each panel, setting and agent, in order of the runs."""
    parts: dict[Key, list[UnitResult]] = {}
    for result in results:
        unit = result.unit
        parts.setdefault((unit.panel, unit.setting, unit.agent), []).append(result)
    return {key: join(batches) for key, batches in parts.items()}


def join(batches: list[UnitResult]) -> UnitResult:
    """Join batches of one kind into one result."""

    def _join_field(name: str) -> Array:
        return np.concatenate([getattr(batch, name) for batch in batches])

    return UnitResult(
        batches[0].unit,
        _join_field("seeds"),
        _join_field("norm_bounds"),
        _join_field("variation_budgets"),
        _join_field("cumulative_regret"),
    )


def summary_rows(collected: Collected) -> list[dict[str, Any]]:
    """Return one row for each panel, setting and agent, with its final regret.

    The difference from the reference is taken run by run, on the same episodes.
    """
    finals = {key: result.cumulative_regret[:, -1] for key, result in collected.items()}
    rows = []
    for (panel, setting, agent), regrets in finals.items():
        final = estimate(regrets)
        difference = paired_difference(regrets, finals[panel, setting, REFERENCE])
        rivals = [finals[panel, setting, rival].mean() for rival in COMPETITORS]
        rows.append(
            {
                "panel": panel.name,
                "in_figure": setting == panel.setting,
                "variation_budget": setting.variation_budget,
                "regularization": setting.regularization_name,
                "agent": agent,
                "runs": len(regrets),
                "mean_final_regret": float(final.mean),
                "standard_error": float(final.standard_error),
                "median_final_regret": float(np.median(regrets)),
                f"minus_{REFERENCE}": float(difference.mean),
                "difference_standard_error": float(difference.standard_error),
                "lowest_mean": bool(regrets.mean() == min(rivals)),
            }
        )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return a table of final regrets for people: mean ± standard error, the lowest marked."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        label = f"{row['panel']:8}{row['variation_budget']:9}{row['regularization']!s:8}"
        mark = "*" if row["lowest_mean"] else " "
        error = "" if math.isnan(row["standard_error"]) else f" ± {row['standard_error']:.1f}"
        cell = f"{row['mean_final_regret']:.0f}{error}{mark}"
        lines.setdefault(label, []).append(f"{cell:>14}")
    head = f"{'panel':8}{'B_T':9}{'lambda':8}"
    head += "".join(f"{AGENTS[agent].title + ' ':>14}" for agent in COMPETITORS)
    return "\n".join([head, *(label + "".join(cells) for label, cells in lines.items())])


def write_files(
    collected: Collected, rows: list[dict[str, Any]], manifest: dict[str, Any], folder: Path
) -> None:
    """Write summary.csv, runs.csv, curves.npz and manifest.json.

    Args:
        collected: The results.
        rows: Their summary.
        manifest: What to say of the run, beside the versions.
        folder: Where the files go; it must exist.
    """
    write_csv(folder / "summary.csv", rows)
    write_csv(folder / "runs.csv", run_rows(collected))
    write_arrays(folder / "curves.npz", curve_arrays(collected))
    content = {"panels": [asdict(panel) for panel in PANELS], "agents": COMPETITORS}
    content["settings"] = [asdict(setting) for setting in SETTINGS]
    write_manifest(folder / "manifest.json", manifest | content)


def run_rows(collected: Collected) -> list[dict[str, Any]]:
    """Return one row for each single run."""
    return [
        {
            "panel": panel.name,
            "variation_budget": setting.variation_budget,
            "regularization": setting.regularization_name,
            "agent": agent,
            "run": run,
            "env_seed": int(result.seeds[run, 0]),
            "agent_seed": int(result.seeds[run, 1]),
            "B": float(result.norm_bounds[run]),
            "B_T": float(result.variation_budgets[run]),
            "final_regret": float(result.cumulative_regret[run, -1]),
        }
        for (panel, setting, agent), result in collected.items()
        for run in range(len(result.seeds))
    ]


def curve_name(panel: Panel, setting: Setting, agent: str) -> str:
    """Return where an agent's curves stand in curves.npz: "panel/B_T/lambda/agent"."""
    return f"{panel.name}/{setting.variation_budget}/{setting.regularization_name}/{agent}"


def curve_arrays(collected: Collected) -> dict[str, Array]:
    """Return all cumulative regrets `(runs, T)` by name; step t stands in column t - 1."""
    return {curve_name(*key): result.cumulative_regret for key, result in collected.items()}


def load_curves(folder: Path, panel: Panel) -> dict[str, NDArray[np.float32]]:
    """Return the cumulative regrets `(runs, T)` of a panel of the figure, by agent."""
    with np.load(folder / "curves.npz") as curves:
        return {agent: curves[curve_name(panel, panel.setting, agent)] for agent in COMPETITORS}
