"""What a check finds: one row for each statement, and curves for the page of plots."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from scipy.stats import binomtest

from wgp_gym.types import Array

__all__ = ["FORMS", "MEASURED", "Check", "Curve", "Findings", "Row", "failure_share"]

PASS, FAIL, MEASURED = "pass", "FAIL", "measured"
DOCUMENTED = "the paper's statement fails, as documented"
UNDOCUMENTED = "FAIL: documented as false, but it holds here"
FORMS = {"paper": "as printed", "mended": "mended"}
"""How the two sets of constants of `wgp_agents.theory.regret` are called in a claim."""

ROUNDING = 1e-9  # relative: an equality may come out this much too large


@dataclass(frozen=True)
class Row:
    """One statement on one instance: measured <= bound.

    Attributes:
        statement: Where it stands in the paper.
        claim: What it says of the measured value.
        instance: What it was measured on.
        measured: The measured value.
        bound: The value that it must not exceed; NaN where nothing is claimed.
        low: The lower end of a 95 % interval of the measured value; NaN where it is exact.
        high: The upper end.
        documented: Whether docs/fidelity.md says that the statement is false here.
    """

    statement: str
    claim: str
    instance: str
    measured: float
    bound: float = math.nan
    low: float = math.nan
    high: float = math.nan
    documented: bool = False

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
    """One line of a panel on the page of plots.

    Attributes:
        panel: The panel's name.
        label: What the line shows.
        x: Where, `(k,)`.
        y: What, `(k,)`.
        low: The lower ends of 95 % intervals, `(k,)`, or None.
        high: The upper ends.
    """

    panel: str
    label: str
    x: Array
    y: Array
    low: Array | None = None
    high: Array | None = None


@dataclass
class Findings:
    """What a check found.

    Attributes:
        rows: One for each statement.
        curves: For the plots.
    """

    rows: list[Row] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)


Check = Callable[[bool, int], Findings]
"""A check takes whether to be quick, and a seed."""


def failure_share(failures: int, runs: int) -> tuple[float, float, float]:
    """Return the share of failures with its exact (Clopper-Pearson) 95 % interval."""
    interval = binomtest(failures, runs).proportion_ci(0.95, method="exact")
    return failures / runs, float(interval.low), float(interval.high)
