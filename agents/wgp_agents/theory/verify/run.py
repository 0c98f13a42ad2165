"""All checks of the paper's statements, run side by side, and their files."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from wgp_agents.benchmark.files import Damaged, write_csv
from wgp_agents.benchmark.parallel import Workers, run_as_done
from wgp_agents.theory.verify.algebra import algebra
from wgp_agents.theory.verify.confidence import all_times, coverage, drifting, tight_instances
from wgp_agents.theory.verify.decay import eigendecay
from wgp_agents.theory.verify.deviations import constants, sums, windows
from wgp_agents.theory.verify.gains import gain_remarks, gain_theorems
from wgp_agents.theory.verify.growth import growth, growth_of_arms, tight_width
from wgp_agents.theory.verify.quadrature import agreement, deviation_error, feature_error
from wgp_agents.theory.verify.regret import last_window, regret_theorem, small_budget
from wgp_agents.theory.verify.row import Check, Curve, Findings, Row, outcomes
from wgp_agents.theory.verify.stored import ChecksFolder, Settings

__all__ = ["CHECKS", "rows_as_text", "run", "summary"]

CHECKS: tuple[Check, ...] = (
    *(algebra, tight_instances, coverage, all_times, drifting),  # Sections 3 and 4
    *(feature_error, deviation_error, agreement),  # Section 5: quadrature features
    *(sums, constants, last_window, windows, regret_theorem, small_budget),  # regret
    *(growth, growth_of_arms),
    *(gain_theorems, eigendecay, gain_remarks),  # Section 6
    tight_width,
)
"""In the paper's order, but for the last, which measures and claims nothing."""

COLUMNS = (*Row._fields, "slack", "verdict")
CURVE_COLUMNS = ("panel", "label", "x", "y", "low", "high")
LONG = (
    growth,
    growth_of_arms,
    tight_instances,
    tight_width,
    drifting,
    coverage,
    regret_theorem,
)  # begun first


def run(folder: ChecksFolder, jobs: int) -> Iterator[Findings]:
    """Do the checks that a folder lacks, with a progress bar, and write the tables as they grow.

    Any number of processes gives the same rows.

    Yields:
        All findings so far, in the order of `CHECKS`: what was there before, then after each check.
    """
    done = stored(folder)
    yield written(folder, done)
    order = sorted(CHECKS, key=lambda check: LONG.index(check) if check in LONG else len(LONG))
    work = [check for check in order if check.__name__ not in done]
    one = partial(run_check, folder.settings)
    with (
        tqdm(total=len(CHECKS), initial=len(done), unit="check", desc="verifying") as bar,
        closing(run_as_done(one, work, Workers(jobs))) as outcomes,
    ):
        for name, found in outcomes:
            folder.write(name, found)
            done[name] = folder.read(name)
            yield written(folder, done)
            bar.update()


def stored(folder: ChecksFolder) -> dict[str, Findings]:
    """Return the findings that are there, by the check's name."""
    done = {}
    for check in CHECKS:
        with suppress(FileNotFoundError):
            try:
                done[check.__name__] = folder.read(check.__name__)
            except Damaged as error:
                tqdm.write(f"{error} It is checked again.", file=sys.stderr)
    return done


def run_check(settings: Settings, check: Check) -> tuple[str, Findings]:
    """Do a check; return its name and its findings."""
    # On more threads the last digits depend on their number.
    with threadpool_limits(limits=1, user_api="blas"):
        return check.__name__, Findings.of(check(*settings))


def written(folder: ChecksFolder, done: dict[str, Findings]) -> Findings:
    """Write the tables of all checks that are done; return what is in them."""
    names = [check.__name__ for check in CHECKS if check.__name__ in done]
    found = Findings.of(one for name in names for part in done[name] for one in part)
    write_tables(*found, folder.path)
    return found


def rows_as_text(rows: list[Row]) -> str:
    """Return the rows for people, up to three lines each: the outcome, the claim, the control."""
    lines = []
    for row in rows:
        lines.append(
            f"{row.statement:20}{row.verdict}: {row.measured:.4g}"
            + ("" if row.bound is None else f" <= {row.bound:.4g}")
            + interval_as_text(row.low, row.high)
            + ("" if row.slack is None else f"  slack {row.slack:.3g}")
        )
        lines.append(f"    {row.claim} [{row.instance}]")
        if row.control:
            found = f"{row.control_measured:.4g} <= {row.control_bound:.4g}"
            ends = interval_as_text(row.control_low, row.control_high)
            lines.append(f"    control, which must fail: {row.control}: {found}{ends}")
    return "\n".join(lines)


def interval_as_text(low: float, high: float) -> str:
    """Return a 95 % interval in brackets, or nothing where there is none."""
    return "" if np.isnan(low) else f"  (95 %: {low:.4g} to {high:.4g})"


def summary(rows: list[Row]) -> str:
    """Return how many rows came out how, and which statements hold, are false or undecided."""
    counts = Counter(row.verdict for row in rows)
    found = outcomes(rows)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    holding, false, left = (len(found[key]) for key in ("hold", "false", "undecided"))
    lines = [
        f"{len(rows)} rows: {told}.",
        f"Of {holding + false + left} statements {holding} hold on every instance that decides, "
        f"{false} are false on one at least, {left} are undecided.",
    ]
    for title, names in (("False", found["false"]), ("Undecided", found["undecided"])):
        lines += [f"{title}: {'; '.join(names)}."] if names else []
    return "\n".join(lines)


def write_tables(rows: list[Row], curves: list[Curve], folder: Path) -> None:
    """Write statements.csv and curves.csv to a folder, each whole or not at all."""
    table_rows = [{column: getattr(row, column) for column in COLUMNS} for row in rows]
    write_csv(folder / "statements.csv", table_rows, COLUMNS)
    points = [
        dict(zip(CURVE_COLUMNS, (curve.panel, curve.label, *point), strict=True))
        for curve in curves
        for point in zip(*filled(curve), strict=True)
    ]
    write_csv(folder / "curves.csv", points, CURVE_COLUMNS)


def filled(curve: Curve) -> list[list[float]]:
    """Return x, y and the interval's ends, NaN where there is none."""
    none = np.full(len(curve.x), np.nan)
    ends = (none if end is None else end for end in (curve.low, curve.high))
    return [column.tolist() for column in (curve.x, curve.y, *ends)]
