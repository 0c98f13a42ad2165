"""What `wgp-gym verify` makes of a measured value, and the surrogate m_t that it looks at."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgp_agents.theory.surrogate import surrogate
from wgp_agents.theory.verify.row import FALSE, SAYS_NOTHING, Findings, Row, share_row
from wgp_agents.theory.verify.run import rows_as_text, summary
from wgp_agents.theory.verify.stored import ChecksFolder, Settings
from wgp_gym.envs.optimum import grid
from wgp_gym.features import exact_features
from wgp_gym.kernels import SquaredExponential


def row(measured: float, bound: float | None, **others: Any) -> Row:
    return Row("Theorem 0", "a claim", "an instance", measured, bound, **others)


def powerful(measured: float, bound: float, **others: Any) -> Row:
    """A row whose control fails."""
    return row(measured, bound, **others).controlled("ten more", measured=bound + 10)


def vague(measured: float, bound: float, control: tuple[float, float, float]) -> Row:
    value, *interval = control
    found = row(measured, bound, low=measured - 0.01, high=measured + 0.01)
    return found.controlled("more", measured=value, interval=(interval[0], interval[1]))


FALSE_AS_SAID = "fails as documented"


@pytest.mark.parametrize(
    ("found", "verdict", "expected"),
    [
        (powerful(1.0, 2.0), "pass", True),
        (powerful(2.0, 2.0), "pass", True),
        (powerful(2.1, 2.0), "FAIL", False),
        (powerful(2.0 + 1e-10, 2.0), "pass", True),  # rounding
        (powerful(1e-12, 0.0), "FAIL", False),  # there is none about zero
        (powerful(-1.0 - 1e-6, -1.0), "pass", True),
        (powerful(-1.0, -1.1), "FAIL", False),
        (row(3.0, None), "measured", True),
        (row(2.1, 2.0), "FAIL", False),
        (row(2.1, 2.0, documented=FALSE), FALSE_AS_SAID, True),
        (row(1.0, 2.0, documented=FALSE), "FAIL: documented as false, but it holds here", False),
        # Without a control that fails, a row says nothing.
        (row(1.0, 2.0), "vacuous", False),
        (row(1.0, 2.0, documented=SAYS_NOTHING), "vacuous", True),
        (row(2.1, 2.0, documented=SAYS_NOTHING), "FAIL", False),
        (powerful(1.0, 2.0, documented=SAYS_NOTHING), "pass", True),
        (row(1.0, 2.0).controlled("as good", measured=2.0), "vacuous", False),
        (row(1.0, 2.0).controlled("half the bound", bound=1.0), "vacuous", False),
        (row(1.1, 2.0).controlled("half the bound", bound=1.0), "pass", True),
        # What is no number decides nothing, wherever it stands.
        (powerful(math.nan, 1.0), "FAIL", False),
        (powerful(math.nan, 1.0, low=0.1, high=0.2), "FAIL", False),
        (powerful(math.inf, math.inf), "FAIL", False),
        (row(math.nan, 1.0, documented=FALSE), "FAIL", False),
        (row(math.nan, 1.0, documented=SAYS_NOTHING), "FAIL", False),
        (row(math.nan, None), "FAIL", False),
        (row(3.0, math.nan), "FAIL", False),
        (row(3.0, math.nan).controlled("more", measured=5.0), "FAIL", False),
        (row(-math.inf, 1.0).controlled("more", measured=5.0), "FAIL", False),
        (powerful(1.0, 2.0, trivial=math.nan), "FAIL", False),
        (row(1.0, 2.0).controlled("a lost number", measured=math.nan), "FAIL", False),
        (row(1.0, 2.0).controlled("all the rest", measured=math.inf), "FAIL", False),
        (row(1.0, 2.0).controlled("a lost bound", bound=math.nan), "FAIL", False),
        # Nor does a bound that no value can exceed decide anything.
        (powerful(1.0, 2.0, trivial=2.0), "vacuous", False),
        (powerful(1.0, 2.0, trivial=2.1), "pass", True),
        # An interval that straddles the bound decides nothing, be it the row's or the control's.
        (powerful(0.08, 0.1, low=0.06, high=0.099), "pass", True),
        (powerful(0.08, 0.1, low=0.06, high=0.12), "undecided", True),
        (powerful(0.12, 0.1, low=0.09, high=0.15), "undecided", True),
        (powerful(0.12, 0.1, low=0.11, high=0.13), "FAIL", False),
        (row(0.12, 0.1, low=0.09, high=0.15, documented=FALSE), "undecided", True),
        (row(0.12, 0.1, low=0.11, high=0.13, documented=FALSE), FALSE_AS_SAID, True),
        (vague(0.05, 0.1, (0.2, 0.11, 0.3)), "pass", True),
        (vague(0.05, 0.1, (0.2, 0.09, 0.3)), "undecided", True),
        (vague(0.05, 0.1, (0.08, 0.05, 0.1)), "vacuous", False),
        (vague(0.12, 0.1, (0.08, 0.05, 0.1)), "FAIL", False),
    ],
)
def test_verdict(found: Row, verdict: str, expected: bool) -> None:
    assert (found.verdict, found.expected) == (verdict, expected)


def test_the_summary_says_which_statements_hold() -> None:
    one, other = powerful(1.0, 2.0), row(1.0, 2.0)._replace(statement="Theorem 1")
    told = summary([one, one, other, row(3.0, None)._replace(statement="Theorem 2")])
    assert told == (
        "4 rows: 2 pass, 1 vacuous, 1 measured.\n"
        "Of 2 statements 1 hold on every instance that decides, 0 are false on one at least, "
        "1 are undecided.\n"
        "Undecided: Theorem 1."
    )
    false = row(2.1, 2.0, documented=FALSE)
    assert summary([one, false]).endswith(
        "1 are false on one at least, 0 are undecided.\nFalse: Theorem 0."
    )
    # What was said to be false and is not holds no more than before.
    assert summary([row(1.0, 2.0, documented=FALSE)]).endswith("Undecided: Theorem 0.")


def test_the_control_stands_beside_the_row() -> None:
    found = share_row("Theorem 0", "a", "b", 2, 400, 0.1, control=("half the width", 80))
    text = rows_as_text([found]).splitlines()[-1]
    assert (
        text == "    control, which must fail: half the width: 0.2 <= 0.1  (95 %: 0.1619 to 0.2426)"
    )


def test_a_row_that_is_to_fail_shows_no_control() -> None:
    found = share_row("Theorem 0", "a", "b", 80, 400, 0.1, documented=FALSE)
    assert "control" not in rows_as_text([found])


def test_a_lost_bound_is_not_read_back_as_no_claim(tmp_path: Path) -> None:
    rows = [row(1.0, None), row(1.0, math.nan), row(math.nan, None)]
    rows += [powerful(1.0, 2.0), powerful(1.0, 2.0, trivial=np.float64(math.nan))]
    with ChecksFolder.open_to_write(tmp_path, Settings(True, 0)) as folder:
        folder.write("some", Findings(rows, []))
        found = folder.read("some").rows
    expected = ["measured", "FAIL", "FAIL", "pass", "FAIL"]
    assert [one.verdict for one in found] == [one.verdict for one in rows] == expected


def test_slack_is_what_is_left() -> None:
    assert row(0.5, 2.0).slack == 1.5
    assert row(0.5, None).slack is None


def share(failures: int, runs: int) -> tuple[float, float, float]:
    found = share_row("Theorem 0", "a claim", "an instance", failures, runs, 0.1)
    return found.measured, found.low, found.high


def test_a_share_has_the_interval_of_clopper_and_pearson() -> None:
    # No failure in n runs: the upper end solves (1 - p)^n = 0.025.
    assert share(0, 400) == pytest.approx((0.0, 0.0, 1 - 0.025 ** (1 / 400)))
    # Published: 4.90 % to 17.62 %.
    assert share(10, 100) == pytest.approx((0.1, 0.0490, 0.1762), abs=5e-5)


def test_surrogate_is_its_definition_in_feature_space() -> None:
    rng, domain, eta, ridge = np.random.default_rng(0), grid(40, 1), 0.9, 0.05
    kernel = SquaredExponential(0.2)
    phi = exact_features(kernel, domain, 1e-14).table
    theta = rng.standard_normal((26, phi.shape[1]))  # theta_1 ... theta_26: t = 26
    plays = rng.integers(40, size=25)
    weights = eta ** -np.arange(1.0, 26.0)
    x = phi[plays]
    V = x.T @ (weights[:, None] * x) + ridge * weights[-1] * np.eye(phi.shape[1])
    then = np.sum(x * theta[:-1], axis=1)
    known = x.T @ (weights * then) + ridge * weights[-1] * theta[-1]
    expected = phi @ np.linalg.solve(V, known)
    truth = phi @ theta[-1]
    found = surrogate(kernel, ridge, domain[plays], weights, then, truth[plays], domain, truth)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
