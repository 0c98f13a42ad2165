"""How delta is spent over time, and which information gain the width takes."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from conftest import GAUSSIAN_PROCESSES, forced, gp_specimen, takers
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.gp.acquisition import UpperBound
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.width import Confidence, deng_width, step_delta
from wgp_gym.kernels import Empirical, Kernel, Matern, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

T, LAMBDA = 45, 0.1**2
DOMAIN = np.linspace(0.0, 1.0, 30)[:, None]
KERNEL = SquaredExponential(0.2)


def uneven(kernel: Kernel) -> Kernel:
    """Return a kernel under which no two arms are alike: a greedy search meets no tie."""
    scale = np.random.default_rng(5).uniform(0.6, 1.0, 30)
    return Empirical(scale[:, None] * kernel(DOMAIN, DOMAIN) * scale)


UNEVEN = {"se": uneven(KERNEL), "matern": uneven(Matern(0.3, 1.5))}
DENG = [  # those of Algorithm 1's width
    name
    for name in takers("confidence", "gain", among=GAUSSIAN_PROCESSES)
    if gp_specimen(name).width.form is deng_width and not forced(name)
]

every_deng = pytest.mark.parametrize("name", DENG)


def problem(kernel: Kernel = KERNEL, batch: int | None = None) -> BanditProblem:
    each = 1.0 if batch is None else np.ones(batch)
    return BanditProblem(kernel, DOMAIN, T, 0.1, each, each)


UNEVEN_PROBLEM = problem(UNEVEN["se"])


def make(name: str, source: BanditProblem | None = None, **parameters: Any) -> GPAgent:
    agent = wgp_agents.make(name, source or problem(), **parameters)
    assert isinstance(agent, GPAgent)
    agent.reset(0)
    return agent


def beta(gain: float, delta: float = 0.1, ridge: float = LAMBDA) -> float:
    """Return Algorithm 1's width with B = 1 and R = 0.1."""
    return 1 + 0.1 / math.sqrt(ridge) * math.sqrt(2 * math.log(1 / delta) + 2 * gain)


def shares(confidence: Confidence, delta: float, steps: list[int], horizon: int) -> list[float]:
    batch = np.full(len(steps), delta)
    return list(map(float, step_delta(confidence, batch, np.array(steps), horizon)))


def test_shares_by_hand() -> None:
    assert shares("paper", 0.1, [0, 1, 7, 500], 500) == [0.1] * 4
    assert shares("union", 0.1, [0, 1, 7, 500], 500) == pytest.approx([0.0002] * 4, rel=1e-14)
    # t = 1: 0.1 / 2; t = 2: 0.1 / (4 * 1.6931471805599454^2); t = 7: 1 + log 7 = 2.945910149055313
    got = shares("anytime", 0.1, [0, 1, 2, 7], 3)
    expected = [0.05, 0.05, 0.1 / (4 * 2.866747375031), 0.1 / (14 * 8.678386606304)]
    assert got == pytest.approx(expected, rel=1e-10)
    assert shares("anytime", 0.1, [9], 3) == shares("anytime", 0.1, [9], 10_000)


def test_shares_add_up_to_no_more_than_delta() -> None:
    # The sum to N, and the integral from N of 1 / (2 t (1 + log t)^2), 1 / (2 (1 + log N)).
    N = 1_000_000
    t = np.arange(1, N + 1)
    head = float(step_delta("anytime", np.full(N, 0.2), t, 1).sum())
    tail = 0.2 / (2 * (1 + math.log(N)))
    assert head + tail <= 0.2
    assert head + tail > 0.15  # and not much is given away
    assert step_delta("union", np.full(77, 0.2), np.arange(1, 78), 77).sum() == pytest.approx(0.2)


def test_no_other_confidence() -> None:
    with pytest.raises(ValueError, match="'confidence' parameter of step_delta must be one of"):
        step_delta("always", np.ones(1), np.ones(1, np.int64), 5)  # type: ignore[arg-type]
    match = r"'confidence' parameter of WGPUCB must be .*did you mean 'anytime'\?"
    with pytest.raises(ValueError, match=match):
        make("wgp-ucb", confidence="any-time")
    with pytest.raises(ValueError, match=r"'gain' parameter of WGPUCB must be .*'greedy'"):
        make("wgp-ucb", gain="gredy")
    with pytest.raises(ValueError, match=r"'gain' parameter of IGPUCB must be one of 'realised', "):
        make("igp-ucb", gain="maximum")
    match = r"'information_gain' parameter of WGPUCB must be 'order', 'computed' or a number"
    with pytest.raises(ValueError, match=match):
        make("wgp-ucb", information_gain="greedy")


@pytest.mark.parametrize("confidence", ["paper", "union", "anytime"])
@every_deng
def test_the_width_follows(name: str, confidence: str) -> None:
    agent = make(name, confidence=confidence, gain="realised")
    ridge = float(agent.regularization[0])
    rng = np.random.default_rng(0)
    for t in range(25):
        share = {
            "paper": 0.1,
            "union": 0.1 / T,
            "anytime": 0.1 / (2 * max(t, 1) * (1 + math.log(max(t, 1))) ** 2),
        }[confidence]
        width = beta(float(agent.information_gain()), share, ridge)
        centre = agent.posterior().mean
        bound = agent.confidence_interval().upper
        arm = agent.act()
        if type(agent.acquisition) is UpperBound:
            assert bound[arm] >= bound.max() - 1.1e-9
        bound_variance = (bound - centre) / agent.beta()
        np.testing.assert_allclose(centre + width * bound_variance, bound, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(agent.beta(), [width], rtol=1e-12)
        agent.observe(arm, float(rng.standard_normal()))


def test_a_learner_that_restarts_counts_its_steps_anew() -> None:
    agent = make("wgp-ucb", problem(batch=2), confidence="anytime", discount=0.9)
    shown = np.array([[0.1, 1.0, 0.0, 1.0], [0.1, 1.0, 1.0, -1.0]])
    for t in range(9):
        agent.predict(shown, episode_start=[False, t == 4])
    gains = np.asarray(agent.information_gain())
    expected = [
        beta(gain, 0.1 / (2 * t * (1 + math.log(t)) ** 2))
        for gain, t in zip(gains, (9, 4), strict=True)
    ]
    np.testing.assert_allclose(agent.beta(), expected, rtol=1e-12)


@functools.cache
def naive_greedy(kernel: Kernel, discount: float, ridge: float, steps: int) -> tuple[float, ...]:
    """Return the double-weighted gain of 0 ... steps plays, each the best next, newest first.

    A play's weight is eta^(2 age); the last play of t is the one that the search chose first.
    Every candidate's determinant is computed in full.
    """
    chosen: list[int] = []
    gains = [0.0]
    for t in range(1, steps + 1):
        w = discount ** np.arange(t)
        values = []
        for arm in range(len(DOMAIN)):
            X = DOMAIN[[*chosen, arm]]
            K = w[:, None] * kernel(X, X) * w / ridge
            values.append(float(np.linalg.slogdet(np.eye(t) + K)[1]) / 2)
        gains.append(max(values))
        chosen.append(int(np.argmax(values)))
    return tuple(gains)


def widths(agent: GPAgent, steps: int, seed: int = 3) -> list[float]:
    """Return beta after 0 ... steps plays."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(steps + 1):
        found.append(agent.beta())
        agent.observe(int(rng.integers(30)), float(rng.standard_normal()))
    return found


@pytest.mark.parametrize("kernel", UNEVEN)
@pytest.mark.parametrize("discount", [0.7, 0.95])
def test_greedy_gain_of_a_discount(discount: float, kernel: str) -> None:
    agent = make("wgp-ucb", problem(UNEVEN[kernel]), discount=discount, gain="greedy")
    gains = naive_greedy(UNEVEN[kernel], discount, LAMBDA, 20)
    expected = [beta(gain) for gain in gains]
    np.testing.assert_allclose(widths(agent, 20), expected, rtol=0, atol=1e-6)


def test_greedy_gain_without_forgetting() -> None:
    expected = [beta(gain) for gain in naive_greedy(UNEVEN["se"], 1.0, LAMBDA, 20)]
    for name, parameters in (("igp-ucb", {}), ("wgp-ucb", {"discount": 1.0})):
        agent = make(name, UNEVEN_PROBLEM, gain="greedy", **parameters)
        np.testing.assert_allclose(widths(agent, 20), expected, rtol=0, atol=1e-6)


def test_greedy_gain_of_a_restart_falls_back() -> None:
    agent = make("r-gp-ucb", UNEVEN_PROBLEM, restart_period=7, gain="greedy")
    gains = naive_greedy(UNEVEN["se"], 1.0, LAMBDA, 20)
    expected = [beta(gains[t % 7]) for t in range(21)]
    np.testing.assert_allclose(widths(agent, 20), expected, rtol=0, atol=1e-6)


def test_greedy_gain_of_a_window_stays_where_it_is_full() -> None:
    agent = make("sw-gp-ucb", UNEVEN_PROBLEM, window=6, gain="greedy")
    gains = naive_greedy(UNEVEN["se"], 1.0, LAMBDA, 20)
    expected = [beta(gains[min(t, 6)]) for t in range(21)]
    np.testing.assert_allclose(widths(agent, 20), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["greedy", "bound"])
@every_deng
def test_a_planned_gain_counts_the_plays_that_are_held(name: str, kind: str) -> None:
    memories = {"window": 6, "restart_period": 7, "discount": 0.8}
    memory: dict[str, Any] = {key: value for key, value in memories.items() if name in takers(key)}
    agent = make(name, gain=kind, **memory)
    found = np.array(widths(agent, T + 4))
    nothing = beta(0.0, ridge=float(agent.regularization[0]))
    assert found[0] == pytest.approx(nothing, rel=1e-12)  # nothing known, nothing gained
    if "window" in memory:
        assert np.ptp(found[6:]) == 0
        assert (np.diff(found[:7]) > 0).all()
    elif "restart_period" in memory:
        np.testing.assert_array_equal(found[7:], found[:-7])
        assert (np.diff(found[:7]) > 0).all()
    else:
        assert (np.diff(found[: T + 1]) > -1e-12).all()
        assert np.ptp(found[T:]) == 0  # beyond the horizon nothing is planned


def theorem_7(kernel: Kernel, total: float) -> float:
    """Return min over N of N/2 log(1 + k_dot S / (lambda N)) + S delta_N / (2 lambda)."""
    values, vectors = np.linalg.eigh(kernel(DOMAIN, DOMAIN) / 30)
    psi = math.sqrt(30) * np.abs(vectors[:, values > 1e-14 * values[-1]]).max()
    k_dot, found = kernel.diagonal(DOMAIN).max(), []
    for N in range(1, 31):
        tail = psi**2 * np.maximum(values, 0.0)[: 30 - N].sum()
        head = N / 2 * math.log1p(k_dot * total / (LAMBDA * N))
        found.append(head + total * tail / (2 * LAMBDA))
    return float(min(found))


@pytest.mark.parametrize("discount", [0.7, 0.95, 1.0])
def test_no_plays_gain_more_than_the_bound(discount: float) -> None:
    agent = make("wgp-ucb", UNEVEN_PROBLEM, discount=discount, gain="bound")
    rng = np.random.default_rng(4)
    greedy = naive_greedy(UNEVEN["se"], discount, LAMBDA, 20)
    for t in range(21):
        gain = ((agent.beta() - 1) ** 2 - 2 * math.log(10)) / 2
        assert gain >= max(float(agent.information_gain()), greedy[t]) - 1e-9
        if t:
            total = float(np.sum(discount ** (2.0 * np.arange(t))))
            assert gain == pytest.approx(theorem_7(UNEVEN["se"], total), rel=1e-6)
        agent.observe(int(rng.integers(30)), 0.0)


@pytest.mark.parametrize("kind", ["greedy", "bound"])
def test_planned_gains_of_a_batch_are_each_learners_own(kind: str) -> None:
    ridges, discounts = [0.01, 0.5], [0.7, 0.95]
    both = make("wgp-ucb", problem(batch=2), gain=kind, discount=discounts, regularization=ridges)
    for t in range(8):
        both.observe([t, 29 - t], [1.0, 0.0])
    for i in range(2):
        alone = make("wgp-ucb", gain=kind, discount=discounts[i], regularization=ridges[i])
        for t in range(8):
            alone.observe(t, 1.0)
        assert both.beta()[i] == alone.beta()


def test_realised_gain_is_the_default() -> None:
    agent, given = make("wgp-ucb", discount=0.9), make("wgp-ucb", discount=0.9, gain="realised")
    assert widths(agent, 10) == widths(given, 10)
    assert agent.beta() == pytest.approx(beta(float(agent.information_gain())), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("wgp-ucb", "discount"), ("sw-gp-ucb", "window"), ("r-gp-ucb", "restart_period")],
)
def test_computed_information_gain(name: str, parameter: str) -> None:
    # gamma_T of T plays of weight one; rate gamma^{-1/4} (B_T / T)^{1/2}, with B_T = 1 unknown.
    gain = naive_greedy(UNEVEN["se"], 1.0, LAMBDA, T)[-1]
    rate = gain**-0.25 * T**-0.5
    assert 0.02 < rate < 0.5
    agent = make(name, UNEVEN_PROBLEM, information_gain="computed")
    assert agent.forgetting is not None
    found = np.asarray(agent.forgetting.information_gain, float)
    np.testing.assert_allclose(found, [gain], rtol=1e-8)
    value = 1 - rate if parameter == "discount" else math.ceil(1 / rate)
    given: dict[str, Any] = {parameter: value}
    np.testing.assert_allclose(agent.forgetting(problem(), 1), [value], rtol=1e-9)
    expected = make(name, UNEVEN_PROBLEM, **given)
    for t in range(30):
        for one in (agent, expected):
            one.observe(t, math.sin(t))
    np.testing.assert_allclose(agent.posterior(), expected.posterior(), rtol=0, atol=1e-7)


def test_computed_information_gain_is_each_learners_own() -> None:
    ridges = [0.01, 1.0]
    agent = make(
        "wgp-ucb", problem(UNEVEN["se"], 2), information_gain="computed", regularization=ridges
    )
    assert agent.forgetting is not None
    expected = [naive_greedy(UNEVEN["se"], 1.0, ridge, T)[-1] for ridge in ridges]
    found = np.asarray(agent.forgetting.information_gain, float)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("continuous", [False, True], ids=["arms", "box"])
def test_planned_gains_do_not_look_at_the_other_learners(continuous: bool) -> None:
    # Each learner has as many features as its own lambda asks for.
    ridges, each = [1e-6, 0.01, 1.0], np.ones(3)
    domain = np.linspace(0, 1, 60)[:, None]

    def problem(share: Any) -> BanditProblem:
        kernel = SquaredExponential(0.2)
        return BanditProblem(kernel, domain, 200, 0.1, share, share, continuous=continuous)

    for parameters in (
        {"gain": "greedy", "discount": 0.9},
        {"gain": "bound", "discount": 0.9},
        {"information_gain": "computed", "gain": "greedy"},
    ):
        together: Any = wgp_agents.make(
            "wgp-ucb", problem(each), regularization=ridges, **parameters
        )
        together.reset(0)
        for i, ridge in enumerate(ridges):
            alone: Any = wgp_agents.make(
                "wgp-ucb", problem(1.0), regularization=ridge, **parameters
            )
            alone.reset(i)
            np.testing.assert_array_equal(together.surrogate.ratios[i], alone.surrogate.ratios[0])
            np.testing.assert_array_equal(together.gain_bounds.gains[i], alone.gain_bounds.gains[0])
