"""What `wgp-gym verify` says of code that is wrong: a mutation must turn a row to FAIL.

And of code that is right, with other seeds than the default: each row as it is documented.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from wgp_agents.gp.confidence import ConfidenceWidth
from wgp_agents.gp.gain import GainBound, Greedy, gain_bound, greedy_gains, information_gain
from wgp_agents.gp.spectrum import Spectrum
from wgp_agents.gp.tuning import Forgetting
from wgp_agents.gp.width import WidthForm, WidthTerms, deng_width
from wgp_agents.theory.decay import Decay
from wgp_agents.theory.regret import deviation_error_bound, deviation_sum_bound
from wgp_agents.theory.verify import decay, deviations, gains, quadrature, regret
from wgp_agents.theory.verify.algebra import algebra
from wgp_agents.theory.verify.confidence import INSTANCES, tight_row
from wgp_agents.theory.verify.growth import PATHS, path_rows
from wgp_agents.theory.verify.play import Moment, play_functions
from wgp_agents.theory.verify.row import Curve, Row
from wgp_gym.fourier import error_bound
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Indices

pytestmark = pytest.mark.slow

SEED = 2022


def outcomes(found: Iterable[Row | Curve], statement: str) -> list[str]:
    """Return the verdicts of a statement's rows."""
    rows = [row for row in found if isinstance(row, Row) and row.statement == statement]
    return [row.verdict for row in rows]


def play_with(monkeypatch: pytest.MonkeyPatch, form: WidthForm) -> None:
    """Let every agent compute beta by another formula."""
    original = ConfidenceWidth.terms

    def _terms(
        self: ConfidenceWidth,
        steps: Callable[[], Indices],
        gain: Callable[[], Array] | None = None,
    ) -> WidthTerms:
        self.form = form
        return original(self, steps, gain)

    monkeypatch.setattr(ConfidenceWidth, "terms", _terms)


def widths(statement: str) -> list[str]:
    """Return the verdicts of the instances on which parts of beta are needed."""
    rows = [tight_row(statement, instance, "eta = 0.99", 300, SEED) for instance in INSTANCES]
    return [row.verdict for row in rows]


@pytest.mark.parametrize("statement", ["Theorem 2, fixed t", "Theorem 3"])
@pytest.mark.parametrize(
    ("change", "failing"),
    [
        (lambda B, R, lam, delta, gain: deng_width(B, R, lam, delta, gain), set()),
        (lambda B, R, lam, delta, gain: 0.3 * deng_width(B, R, lam, delta, gain), {0, 1, 2, 3, 4}),
        (lambda B, R, lam, delta, gain: 0.5 * deng_width(B, R, lam, delta, gain), {0, 3, 4}),
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


Played = Callable[..., Moment]


def play_theorem_4_by(monkeypatch: pytest.MonkeyPatch, player: Played) -> list[str]:
    """Return its verdicts where both learners are another one, which plays once."""
    played: list[Moment] = []

    def _play(*given: Any, **others: Any) -> Moment:
        others.pop("discount", None)
        played[:] = played or [player(*given[:4], "igp-ucb", **others)]
        return played[0]

    monkeypatch.setattr(regret, "play_functions", _play)
    return outcomes(regret.two_opposite_arms(1, SEED), "Theorem 4")


def test_a_learner_that_never_forgets_breaks_theorem_4(monkeypatch: pytest.MonkeyPatch) -> None:
    assert play_theorem_4_by(monkeypatch, play_functions) == ["FAIL", "FAIL"]


def test_the_worst_play_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def _worst(problem: BanditProblem, truth: Array, *given: Any, **others: Any) -> Moment:
        end = play_functions(problem, truth[:500], *given, **others)  # beta grows no more
        return end._replace(expected=truth[:-1].min(axis=1)[:, None])

    assert play_theorem_4_by(monkeypatch, _worst) == ["FAIL", "FAIL"]


def test_the_largest_gain_is_that_of_all_plays() -> None:
    table, weights = np.random.default_rng(0).standard_normal((3, 2)), np.array([0.3, 0.7, 1.0])
    gains_of_all = [
        information_gain(table[list(plays)] @ table[list(plays)].T, weights, 0.5)
        for plays in itertools.product(range(3), repeat=3)
    ]
    assert gains.largest_gain(table, weights, 0.5) == pytest.approx(max(gains_of_all))


def half_the_weight(spectrum: Spectrum, total: Array, lam: float) -> GainBound:
    return gain_bound(spectrum, np.asarray(total) / 2, lam)


def a_quarter_of_the_tail(spectrum: Spectrum, total: Array, lam: float) -> GainBound:
    return gain_bound(dataclasses.replace(spectrum, tails=spectrum.tails / 4), total, lam)


@pytest.mark.parametrize("wrong", [half_the_weight, a_quarter_of_the_tail])
def test_a_smaller_bound_on_the_gain_is_noticed(
    wrong: Callable[[Spectrum, Array, float], GainBound], monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = "Theorem 6", "Theorem 7", "Section 6, end"
    found = list(gains.gain_theorems(True, SEED))
    assert [set(outcomes(found, name)) for name in statements] == [
        {"pass", "vacuous"},
        {"pass", "vacuous"},
        {"pass"},
    ]
    monkeypatch.setattr(gains, "gain_bound", wrong)
    found = list(gains.gain_theorems(True, SEED))
    assert all("FAIL" in outcomes(found, name) for name in statements)


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


# Cheap checks that a seed changes.
CHEAP = algebra, quadrature.deviation_error, deviations.sums, deviations.windows


@pytest.mark.parametrize("seed", range(10))
def test_no_row_hangs_on_a_lucky_seed(seed: int) -> None:
    found: list[Row | Curve] = []
    for check in CHEAP:
        found += check(True, seed)
    assert [row for row in found if isinstance(row, Row) and not row.expected] == []


def test_no_play_exceeds_what_holds_for_every_kernel() -> None:
    rng, weights = np.random.default_rng(0), np.array([0.2, 0.9, 0.5, 1.0, 0.7])
    most = gains.trivial_gain(weights, 0.3, 4.0, 2)
    for _ in range(200):
        table = rng.standard_normal((2, 2))
        table *= 2 / np.linalg.norm(table, axis=1)[:, None]  # k(x, x) = 4
        assert gains.largest_gain(table, weights, 0.3) <= most
    # Two orthogonal arms that share the weight alike attain it; so does one arm for each play.
    even, each = np.ones(4), np.ones(3)
    assert gains.largest_gain(2 * np.eye(2), even, 0.3) == pytest.approx(
        gains.trivial_gain(even, 0.3, 4.0, 2)
    )
    assert gains.largest_gain(2 * np.eye(3), each, 0.3) == pytest.approx(
        gains.trivial_gain(each, 0.3, 4.0, 5)
    )


def test_a_decay_counted_as_four_times_as_fast_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = decay.corollary

    def _fast(its: Decay, spectrum: Spectrum, lam: float, eta: float, printed: bool) -> float:
        return right(*decay.faster(its, spectrum, 4), lam, eta, printed)

    monkeypatch.setattr(decay, "corollary", _fast)
    found = [row for row in decay.eigendecay(True, SEED) if row.claim.endswith("mended")]
    assert set(outcomes(found[:6], "Corollary 8")) == {"FAIL"}


def test_changes_beyond_the_budget_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = regret.watch

    def _restless(*given: Any, **others: Any) -> regret.Watched:
        watched = right(*given, **others)
        return watched._replace(steps=2 * watched.steps)

    assert outcomes(regret.last_window(True, SEED), "Lemma 20, proof")[1:] == ["pass", "pass"]
    monkeypatch.setattr(regret, "watch", _restless)
    assert outcomes(regret.last_window(True, SEED), "Lemma 20, proof")[1:] == ["FAIL", "FAIL"]


def test_a_window_that_counts_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = deviations.window_matrix
    monkeypatch.setattr(deviations, "window_matrix", lambda *given: 2 * right(*given))
    assert outcomes(deviations.windows(True, SEED), "Lemma 21") == ["FAIL"]
    # Then lambda_max is above 1, and what the paper says of it is true.
    assert outcomes(deviations.windows(True, SEED), "Lemma 21, remark")[0].startswith("FAIL")


def test_a_gain_of_another_growth_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def _squared(table: Array, weights: Array, lam: float) -> Greedy:
        found = greedy_gains(table, weights, lam)
        return found._replace(gains=found.gains**2)

    monkeypatch.setattr(gains, "greedy_gains", _squared)
    assert gains.dimensions(SEED).verdict == "FAIL"
    found = list(gains.logarithms(True))
    assert [row.verdict for row in found if row.claim.startswith("gamma_T")] == ["FAIL", "FAIL"]


def test_a_kernel_of_slower_decay_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rough = gains.KERNELS["Matern nu = 0.5, l = 0.2"]
    monkeypatch.setitem(gains.KERNELS, "SE l = 0.2", rough)
    assert {row.verdict for row in gains.logarithms(True)} == {"FAIL"}
