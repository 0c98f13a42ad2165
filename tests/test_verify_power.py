"""What `wgp-gym verify` says of code that is wrong: a mutation must turn a row to FAIL."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from wgp_agents.gp.confidence import ConfidenceWidth
from wgp_agents.gp.gain import GainBound, gain_bound, information_gain
from wgp_agents.gp.spectrum import Spectrum
from wgp_agents.gp.tuning import Forgetting
from wgp_agents.gp.width import WidthForm, deng_width
from wgp_agents.theory.regret import deviation_error_bound, deviation_sum_bound
from wgp_agents.theory.verify import deviations, gains, quadrature, regret
from wgp_agents.theory.verify.confidence import INSTANCES, tight_row
from wgp_agents.theory.verify.growth import PATHS, path_rows
from wgp_agents.theory.verify.play import Moment, play_functions
from wgp_agents.theory.verify.row import Curve, Row
from wgp_gym.fourier import error_bound
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Indices

SEED = 2022


def outcomes(found: Iterable[Row | Curve], statement: str) -> list[str]:
    """Return the verdicts of a statement's rows."""
    rows = [row for row in found if isinstance(row, Row) and row.statement == statement]
    return [row.verdict for row in rows]


def play_with(monkeypatch: pytest.MonkeyPatch, form: WidthForm) -> None:
    """Let every agent compute beta by another formula."""
    original = ConfidenceWidth.__call__

    def _width(
        self: ConfidenceWidth, steps: Indices, gain: Callable[[], Array] | None = None
    ) -> Array:
        self.form = form
        return original(self, steps, gain)

    monkeypatch.setattr(ConfidenceWidth, "__call__", _width)


def widths(statement: str) -> list[str]:
    """Return the verdicts of the instances on which parts of beta are needed."""
    rows = [tight_row(statement, instance, "eta = 0.99", 300, SEED) for instance in INSTANCES]
    return [row.verdict for row in rows]


@pytest.mark.parametrize("statement", ["Theorem 2, fixed t", "Theorem 3"])
@pytest.mark.parametrize(
    ("change", "failing"),
    [
        (lambda B, R, lam, delta, gain: deng_width(B, R, lam, delta, gain), set()),
        (lambda B, R, lam, delta, gain: 0.3 * deng_width(B, R, lam, delta, gain), {0, 1, 2, 3}),
        (lambda B, R, lam, delta, gain: 0.5 * deng_width(B, R, lam, delta, gain), {0, 3}),
        (lambda B, R, lam, delta, gain: deng_width(B, R, lam, delta, 0 * gain), {2}),
        (lambda B, R, lam, delta, gain: deng_width(0 * B, R, lam, delta, gain), {3}),
        (lambda B, R, lam, delta, gain: deng_width(B, R, lam, delta**0, gain), {1}),
    ],
    ids=["as it is", "0.3 beta", "half of beta", "no gain", "no B", "no delta"],
)
def test_a_narrower_width_is_noticed(
    change: WidthForm, failing: set[int], statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_with(monkeypatch, change)
    found = widths(statement)
    if not failing:
        assert set(found) == {"pass"}
    assert failing <= {i for i, verdict in enumerate(found) if verdict == "FAIL"}


def exponents() -> list[str]:
    return outcomes(path_rows(PATHS[0], (250, 1_000, 4_000), 20, SEED), "Corollary 5")


def test_the_exponents_pass() -> None:
    assert exponents() == ["pass", "pass"]


def test_a_learner_that_never_forgets_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Forgetting, "__call__", lambda self, problem, batch: np.ones(batch))
    assert exponents() == ["FAIL", "FAIL"]


def test_a_learner_that_only_exploits_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play_with(monkeypatch, lambda B, R, lam, delta, gain: 0 * B)
    assert exponents() == ["FAIL", "FAIL"]


def test_the_worst_play_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def _worst(
        problem: BanditProblem, truth: Array, runs: int, seed: int, **parameters: object
    ) -> Moment:
        end = play_functions(problem, truth, runs, seed, **parameters)  # type: ignore[arg-type]
        least = truth[:-1].min(axis=1)[:, None]
        return end._replace(expected=np.broadcast_to(least, end.expected.shape))

    monkeypatch.setattr(regret, "play_functions", _worst)
    assert outcomes(regret.two_opposite_arms(2, SEED), "Theorem 4") == ["FAIL", "FAIL"]


def test_the_largest_gain_is_that_of_all_plays() -> None:
    table, weights = np.random.default_rng(0).standard_normal((3, 2)), np.array([0.3, 0.7, 1.0])
    gains_of_all = [
        information_gain(table[list(plays)] @ table[list(plays)].T, weights, 0.5)
        for plays in itertools.product(range(3), repeat=3)
    ]
    assert gains.largest_gain(table, weights, 0.5) == pytest.approx(max(gains_of_all))


def half_the_weight(spectrum: Spectrum, total: Array, lam: float) -> GainBound:
    return gain_bound(spectrum, np.asarray(total) / 2, lam)


@pytest.mark.parametrize("statement", ["Theorem 6", "Theorem 7"])
def test_half_the_total_weight_is_noticed(statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(outcomes(gains.gain_theorems(True, SEED), statement)) == {"pass"}
    monkeypatch.setattr(gains, "gain_bound", half_the_weight)
    assert "FAIL" in outcomes(gains.gain_theorems(True, SEED), statement)


def test_an_error_bound_of_more_nodes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        quadrature, "error_bound", lambda degree, scale, dim: error_bound(degree + 1, scale, dim)
    )
    assert "FAIL" in outcomes(quadrature.feature_error(True, SEED), "Lemma 14")


@pytest.mark.parametrize("statement", ["Lemma 16", "Lemma 17", "Lemma 18", "Lemma 19"])
def test_half_a_bound_on_a_sum_is_noticed(statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def _half(*given: float, **others: object) -> float:
        return deviation_sum_bound(*given, **others) / 2  # type: ignore[arg-type]

    monkeypatch.setattr(deviations, "deviation_sum_bound", _half)
    assert "FAIL" in outcomes(deviations.sums(True, SEED), statement)


def test_a_wrong_rate_in_the_features_error_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        quadrature,
        "deviation_error_bound",
        lambda error, eta, lam, constants: deviation_error_bound(
            error**2, eta, lam, constants=constants
        ),
    )
    assert "FAIL" in outcomes(quadrature.unseen_point(), "Lemma 15")
