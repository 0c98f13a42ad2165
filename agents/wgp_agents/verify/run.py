"""All checks of the paper's statements, run side by side, and their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wgp_agents.benchmark.files import write_csv, write_manifest
from wgp_agents.benchmark.parallel import run_in_order
from wgp_agents.verify.algebra import algebra
from wgp_agents.verify.confidence import all_times, coverage, drifting
from wgp_agents.verify.deviations import constants, sums, windows
from wgp_agents.verify.gains import eigendecay, gain_remarks, gain_theorems
from wgp_agents.verify.quadrature import agreement, deviation_error, feature_error
from wgp_agents.verify.regret import growth, last_window, regret_theorem, small_budget, tight_width
from wgp_agents.verify.row import Check, Curve, Findings, Row

__all__ = ["CHECKS", "run", "summary", "table", "write_files"]

CHECKS: tuple[Check, ...] = (
    algebra,
    coverage,
    all_times,
    drifting,
    feature_error,
    deviation_error,
    agreement,
    sums,
    constants,
    last_window,
    windows,
    regret_theorem,
    small_budget,
    growth,
    gain_theorems,
    eigendecay,
    gain_remarks,
    tight_width,
)
"""In the paper's order, but for the last, which measures and claims nothing."""

COLUMNS = (
    "statement",
    "claim",
    "instance",
    "measured",
    "bound",
    "slack",
    "low",
    "high",
    "verdict",
)
CURVE_COLUMNS = ("panel", "label", "x", "y", "low", "high")
LONG = (growth, drifting, coverage, all_times, tight_width)  # begun first


def run(quick: bool, seed: int, jobs: int) -> Iterator[tuple[int, Findings]]:
    """Run all checks with a progress bar; yield each one's place in `CHECKS` and findings.

    Args:
        quick: Whether to take fewer runs and shorter horizons.
        seed: What all randomness follows from.
        jobs: Processes; 1 runs everything in this one. Any number gives the same rows.
    """
    order = sorted(CHECKS, key=lambda check: LONG.index(check) if check in LONG else len(LONG))
    one = partial(run_check, quick, seed)
    found = run_in_order(one, order, jobs, "check", "verifying")
    for check, findings in zip(order, found, strict=True):
        yield CHECKS.index(check), findings


def run_check(quick: bool, seed: int, check: Check) -> Findings:
    """Run a check."""
    return check(quick, seed)


def table(rows: list[Row]) -> str:
    """Return the rows for people, two lines each: the outcome, then the claim."""
    lines = []
    for row in rows:
        numbers = f"{row.measured:.4g}"
        if not np.isnan(row.bound):
            numbers += f" <= {row.bound:.4g}"
        if not np.isnan(row.low):
            numbers += f"  (95 %: {row.low:.4g} to {row.high:.4g})"
        if not np.isnan(row.bound):
            numbers += f"  slack {row.slack:.3g}"
        lines += [
            f"{row.statement:20}{row.verdict}: {numbers}",
            f"    {row.claim} [{row.instance}]",
        ]
    return "\n".join(lines)


def summary(rows: list[Row]) -> str:
    """Return how many rows came out how."""
    counts = Counter(row.verdict for row in rows)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def write_files(
    rows: list[Row], curves: list[Curve], manifest: dict[str, Any], folder: Path
) -> None:
    """Write statements.csv, curves.csv and manifest.json, each whole or not at all.

    Args:
        rows: The rows of all checks that are done.
        curves: Their curves.
        manifest: What to say of the run, beside the versions.
        folder: Where the files go; it must exist.
    """
    table_rows = [{column: getattr(row, column) for column in COLUMNS} for row in rows]
    write_csv(folder / "statements.csv", table_rows, COLUMNS)
    points = [
        dict(zip(CURVE_COLUMNS, (curve.panel, curve.label, *point), strict=True))
        for curve in curves
        for point in zip(*filled(curve), strict=True)
    ]
    write_csv(folder / "curves.csv", points, CURVE_COLUMNS)
    write_manifest(folder / "manifest.json", manifest)


def filled(curve: Curve) -> tuple[Any, ...]:
    """Return x, y and the interval's ends, NaN where there is none."""
    none = np.full(len(curve.x), np.nan)
    low, high = (none if end is None else end for end in (curve.low, curve.high))
    return curve.x.tolist(), np.asarray(curve.y).tolist(), low.tolist(), high.tolist()
