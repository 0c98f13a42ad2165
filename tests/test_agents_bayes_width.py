"""The widths that know no norm bound, against numbers worked out by hand and by simulation."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

from wgp_agents.gp.bayes_width import (
    BoxWidth,
    DriftingBoxWidth,
    FiniteWidth,
    HeuristicWidth,
    bayes_width,
)
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]
KERNEL = SquaredExponential(0.2)
COUNTS = np.array([0, 1, 9, 499])
STEPS = [1, 2, 10, 500]


def test_on_arms() -> None:
    # 2 log(100 pi^2 / 0.6) = 2 log(1644.934) = 14.8109; 4 log t = 0, 2.7726, 9.2103, 24.8584
    found = FiniteWidth(0.1, 100)(COUNTS) ** 2
    assert found == pytest.approx([14.8109, 17.5835, 24.0213, 39.6693], abs=1e-4)
    own = FiniteWidth(np.array([0.1, 0.01, 0.1, 0.5]), 100)(COUNTS) ** 2
    assert own - found == pytest.approx([0, 2 * math.log(10), 0, -2 * math.log(5)])


def test_the_bound_on_arms_fails_as_rarely_as_it_says() -> None:
    # The union bound spends delta / (n pi^2 t^2 / 6) on each arm and step, and one normal
    # variable exceeds c with probability at most exp(-c^2 / 2), on either side together.
    spent = sum(100 * math.exp(-(w**2) / 2) for w in FiniteWidth(0.1, 100)(np.arange(100_000)))
    assert spent == pytest.approx(0.1, rel=1e-4)


def test_on_a_box() -> None:
    # From the proof: t^2 d b sqrt(log(4 d a / delta)) points to a side, and a quarter of delta
    # for them, delta / (4 pi_t) a step with pi_t = pi^2 t^2 / 6.
    for a, b in ((1.0, 1.0), (2.0, 30.0)):
        found = BoxWidth(0.1, 3, a, b)(COUNTS) ** 2
        for t, beta in zip(STEPS, found.tolist(), strict=True):
            side = t * t * 3 * b * math.sqrt(math.log(4 * 3 * a / 0.1))
            by_hand = 2 * math.log(4 * (math.pi**2 * t * t / 6) / 0.1) + 2 * math.log(side**3)
            assert beta == pytest.approx(by_hand)


def test_on_a_box_with_drift() -> None:
    # The slope of every f_t takes delta / (3 pi_t): L_t = b sqrt(log(3 pi_t d a / delta)).
    for a, b in ((1.0, 1.0), (2.0, 30.0)):
        found = DriftingBoxWidth(0.1, 2, a, b)(COUNTS) ** 2
        for t, beta in zip(STEPS, found.tolist(), strict=True):
            pi_t = math.pi**2 * t * t / 6
            side = 2 * t * t * b * math.sqrt(math.log(3 * pi_t * 2 * a / 0.1))
            assert beta == pytest.approx(2 * math.log(3 * pi_t / 0.1) + 2 * math.log(side**2))


@pytest.mark.parametrize("width", [BoxWidth, DriftingBoxWidth])
def test_a_grid_has_a_point(width: type[BoxWidth] | type[DriftingBoxWidth]) -> None:
    # Where the function is all but flat, one point stands for the box: as on one arm, with the
    # share of delta that the box leaves it.
    flat = width(0.1, 2, 1e-300, 1e-9)(np.array([0]))[0] ** 2
    parts = 4 if width is BoxWidth else 3
    assert flat == pytest.approx(2 * math.log(parts * math.pi**2 / 0.6))


def test_the_heuristic() -> None:
    assert HeuristicWidth()(COUNTS) ** 2 == pytest.approx(
        [0.8 * math.log(4 * t) for t in STEPS], rel=1e-12
    )
    assert HeuristicWidth(1.0, 0.1)(COUNTS).tolist()[:3] == [0, 0, 0]  # log(0.1 t) <= 0


@pytest.mark.parametrize(
    "width", [FiniteWidth(0.1, 7), BoxWidth(0.2, 2), DriftingBoxWidth(0.3, 2), HeuristicWidth()]
)
def test_a_width_is_pickled(width: Any) -> None:
    assert np.array_equal(pickle.loads(pickle.dumps(width))(COUNTS), width(COUNTS))


def test_the_names_of_widths() -> None:
    arms = BanditProblem(KERNEL, DOMAIN, 50, 0.1)
    box = BanditProblem(KERNEL, DOMAIN, 50, 0.1, continuous=True)

    def _found(given: Any, problem: BanditProblem = arms) -> Any:
        return bayes_width("X", problem, given, 0.1, DriftingBoxWidth)

    assert np.array_equal(_found("theory")(COUNTS), FiniteWidth(0.1, 100)(COUNTS))
    assert np.array_equal(_found("theory", box)(COUNTS), DriftingBoxWidth(0.1, 1)(COUNTS))
    assert np.array_equal(_found("heuristic")(COUNTS), HeuristicWidth()(COUNTS))
    assert (_found(2.0), _found(len)) == (2.0, len)


MAKES: list[tuple[Any, str]] = [
    (lambda: FiniteWidth(0.0, 3), "'delta' parameter of FiniteWidth must be a float in .0, 1"),
    (lambda: FiniteWidth([0.1, 1.0], 3), "'delta' parameter of FiniteWidth"),
    (lambda: FiniteWidth("x", 3), "'delta' parameter of FiniteWidth"),
    (lambda: FiniteWidth([[0.1]], 3), "'delta' parameter of FiniteWidth"),
    (lambda: FiniteWidth(0.1, 0), "'arms' parameter of FiniteWidth must be an int of at least 1"),
    (lambda: BoxWidth(1.5, 1), "'delta' parameter of BoxWidth"),
    (lambda: BoxWidth(0.1, 0), "'dim' parameter of BoxWidth"),
    (lambda: BoxWidth(0.1, 1, 0.0), "'a' parameter of BoxWidth"),
    (lambda: DriftingBoxWidth(0.1, 1, 1.0, 0.0), "'b' parameter of DriftingBoxWidth"),
    (lambda: HeuristicWidth(-1.0), "'scale' parameter of HeuristicWidth"),
    (lambda: HeuristicWidth(1.0, 0.0), "'rate' parameter of HeuristicWidth"),
]


@pytest.mark.parametrize(("make", "message"), MAKES)
def test_bad_parameters_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
