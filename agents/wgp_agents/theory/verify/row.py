"""What a check finds: one row for each statement, and curves for the page of plots.

A row that cannot fail says nothing. So each has a control: the same measurement of something that
must fail, as half the width, or a learner that never forgets. Where the control passes too, or
the bound is no smaller than what holds anyway, the row is vacuous. A row that is documented to fail
needs none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

from scipy.stats import binomtest

from wgp_gym.types import Array

__all__ = [
    "FALSE",
    "FORMS",
    "MEASURED",
    "SAYS_NOTHING",
    "Check",
    "Curve",
    "Findings",
    "Row",
    "halved",
    "outcomes",
    "printed_and_mended",
    "share_row",
]

PASS, FAIL, UNDECIDED = "pass", "FAIL", "undecided"
VACUOUS, MEASURED = "vacuous", "measured"
DOCUMENTED = "fails as documented"
UNDOCUMENTED = "FAIL: documented as false, but it holds here"
FALSE, SAYS_NOTHING = "false", "says nothing"
"""What docs/fidelity.md may say of a statement on an instance."""
FORMS = {"paper": "as printed", "mended": "mended"}
"""How the two sets of constants of `wgp_agents.theory.regret` are called in a claim."""

ROUNDING = 1e-9  # relative: an equality may come out this much too large


class Row(NamedTuple):
    """One statement on one instance, measured <= bound, and its control, which must not be."""

    statement: str  # where it stands in the paper
    claim: str  # what it says of the measured value
    instance: str  # what it was measured on
    measured: float
    bound: float | None = None  # the value that it must not exceed; None: nothing is claimed
    # The ends of a 95 % interval of the measured value; NaN where it is exact.
    low: float = math.nan
    high: float = math.nan
    documented: str = ""  # FALSE or SAYS_NOTHING, as docs/fidelity.md has it; else ""
    trivial: float | None = None  # what it cannot exceed in any case; None: no such value
    control: str = ""  # what the control changes, so that it must fail
    control_measured: float = math.nan
    control_bound: float = math.nan
    control_low: float = math.nan
    control_high: float = math.nan

    def controlled(
        self,
        change: str,
        *,
        measured: float | None = None,
        bound: float | None = None,
        interval: tuple[float, float] = (math.nan, math.nan),
    ) -> Self:
        """Return the row with its control: what it changes, and what is not as in the row."""
        if measured is None:
            measured, interval = self.measured, (self.low, self.high)
        if bound is None:
            bound = self.limit
        return self._replace(
            control=change,
            control_measured=measured,
            control_bound=bound,
            control_low=interval[0],
            control_high=interval[1],
        )

    @property
    def limit(self) -> float:
        """The bound of a row that has one."""
        assert self.bound is not None, self.claim
        return self.bound

    @property
    def slack(self) -> float | None:
        """How much room is left: bound - measured; None without a bound."""
        return None if self.bound is None else self.bound - self.measured

    @property
    def finite(self) -> bool:
        """Whether all its values are numbers; no verdict could rest on others."""
        control = (self.control_measured, self.control_bound) if self.control else ()
        values = self.measured, self.bound, self.trivial, *control
        return all(value is None or math.isfinite(value) for value in values)

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if not self.finite:
            return FAIL
        if self.bound is None:
            return MEASURED
        fails = exceeds(self.measured, self.low, self.high, self.bound)
        if self.documented == FALSE:
            return {True: DOCUMENTED, False: UNDOCUMENTED, None: UNDECIDED}[fails]
        if fails:
            return FAIL
        control = (self.control_measured, self.control_low, self.control_high)
        power = exceeds(*control, self.control_bound) if self.control else False
        if power is False or (self.trivial is not None and self.bound >= self.trivial):
            return VACUOUS
        return UNDECIDED if fails is None or power is None else PASS

    @property
    def expected(self) -> bool:
        """Whether it came out as the documentation says, or may have: undecided is by chance."""
        if self.verdict == VACUOUS:
            return self.documented == SAYS_NOTHING
        return self.verdict in (PASS, DOCUMENTED, MEASURED, UNDECIDED)


def exceeds(measured: float, low: float, high: float, bound: float) -> bool | None:
    """Return whether a value exceeds a bound; None where its interval, if any, straddles it."""
    least, most = (measured if math.isnan(end) else end for end in (low, high))
    limit = bound + ROUNDING * abs(bound)
    if least > limit:
        return True
    return False if most <= limit else None


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
    documented: str = "",
    control: tuple[str, int] | None = None,
) -> Row:
    """Return the row of a share of runs, with its exact (Clopper-Pearson) 95 % interval.

    `control` is what the control changes, and how often it fails in the same runs.
    """
    row = Row(statement, claim, instance, failures / runs, bound, *ends(failures, runs), documented)
    if control is None:
        return row
    change, failed = control
    return row.controlled(change, measured=failed / runs, interval=ends(failed, runs))


def ends(failures: int, runs: int) -> tuple[float, float]:
    """Return the ends of the exact 95 % interval of a share."""
    interval = binomtest(failures, runs).proportion_ci(0.95, method="exact")
    return float(interval.low), float(interval.high)


def halved(row: Row) -> Row:
    """Return a row whose control is half the bound."""
    return row.controlled("half the bound", bound=row.limit / 2)


def outcomes(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Return which statements hold, are false somewhere, and are undecided.

    One that holds passes on some instance and fails on none; mended forms are rows of their own,
    so that a statement with a mend may be false and have passing rows.
    """
    verdicts: dict[str, set[str]] = {}
    for row in rows:
        if row.bound is not None:
            verdicts.setdefault(row.statement, set()).add(row.verdict)
    found: dict[str, list[str]] = {"hold": [], "false": [], "undecided": []}
    for statement, its in verdicts.items():
        passed = "hold" if PASS in its else "undecided"
        found["false" if its & {DOCUMENTED, FAIL} else passed].append(statement)
    return found


def printed_and_mended(
    statement: str,
    claims: tuple[str, str],
    instance: str,
    measured: float,
    printed: float,
    right: float,
) -> tuple[Row, Row]:
    """Return the row of a bound that is false as printed, and of its mend, with that as control."""
    false = Row(statement, claims[0], instance, measured, printed, documented=FALSE)
    row = Row(statement, claims[1], instance, measured, right)
    return false, row.controlled("as printed", bound=printed)
