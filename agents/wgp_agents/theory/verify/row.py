"""What a check finds: one row for each statement, and curves for the page of plots."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from scipy.stats import binomtest

from wgp_gym.types import Array

__all__ = ["FORMS", "MEASURED", "Check", "Curve", "Findings", "Row", "share_row"]

PASS, FAIL, MEASURED = "pass", "FAIL", "measured"
DOCUMENTED = "the paper's statement fails, as documented"
UNDOCUMENTED = "FAIL: documented as false, but it holds here"
FORMS = {"paper": "as printed", "mended": "mended"}
"""How the two sets of constants of `wgp_agents.theory.regret` are called in a claim."""

ROUNDING = 1e-9  # relative: an equality may come out this much too large


class Row(NamedTuple):
    """One statement on one instance: measured <= bound."""

    statement: str  # where it stands in the paper
    claim: str  # what it says of the measured value
    instance: str  # what it was measured on
    measured: float
    bound: float = math.nan  # the value that it must not exceed; NaN where nothing is claimed
    # The lower end of a 95 % interval of the measured value; NaN where it is exact.
    low: float = math.nan
    high: float = math.nan  # the upper end
    documented: bool = False  # whether docs/fidelity.md says that the statement is false here

    @property
    def holds(self) -> bool:
        """Whether the statement holds; a random one, unless its interval lies above the bound."""
        value = self.measured if math.isnan(self.low) else self.low
        return value <= self.bound + ROUNDING * abs(self.bound)

    @property
    def slack(self) -> float:
        """How much room is left: bound - measured."""
        return self.bound - self.measured

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if math.isnan(self.bound):
            return MEASURED
        if self.documented:
            return UNDOCUMENTED if self.holds else DOCUMENTED
        return PASS if self.holds else FAIL

    @property
    def expected(self) -> bool:
        """Whether it came out as the documentation says."""
        return self.verdict in (PASS, DOCUMENTED, MEASURED)


class Curve(NamedTuple):
    """One line of a panel on the page of plots."""

    panel: str
    label: str  # what the line shows
    x: Array  # where, `(k,)`
    y: Array  # what, `(k,)`
    low: Array | None = None  # the lower ends of 95 % intervals, `(k,)`, or None
    high: Array | None = None  # the upper ends


class Findings(NamedTuple):
    """What checks found."""

    rows: list[Row]  # one for each statement
    curves: list[Curve]  # for the plots

    @classmethod
    def of(cls, found: Iterable[Row | Curve]) -> Findings:
        """Return rows and curves apart, each in their order."""
        everything = list(found)
        rows = [one for one in everything if isinstance(one, Row)]
        return cls(rows, [one for one in everything if isinstance(one, Curve)])


Check = Callable[[bool, int], Iterable[Row | Curve]]
"""A check takes whether to be quick, and a seed."""


def share_row(
    statement: str,
    claim: str,
    instance: str,
    failures: int,
    runs: int,
    bound: float,
    *,
    documented: bool = False,
) -> Row:
    """Return the row of a share of runs, with its exact (Clopper-Pearson) 95 % interval."""
    interval = binomtest(failures, runs).proportion_ci(0.95, method="exact")
    ends = float(interval.low), float(interval.high)
    return Row(statement, claim, instance, failures / runs, bound, *ends, documented)
