"""The linear agents against their papers' formulas, computed anew from the whole history."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

import wgp_agents
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import normal_variates
from wgp_agents.gp.agent import GPAgent
from wgp_gym.kernels import CentredLinear, Linear, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

S, NOISE, DELTA, STEPS, ARMS, SEED = 1.5, 0.3, 0.05, 200, 12, 9
UNWEIGHTED = ("lin-ucb", "sw-lin-ucb", "restart-lin-ucb")
DISCOUNTED = ("d-lin-ucb", "d-rand-lin-ucb", "d-lin-ts")
NAMES = UNWEIGHTED + DISCOUNTED


def sphere(rng: np.random.Generator, *shape: int) -> Floats:
    x = rng.standard_normal(shape)
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def problem(d: int = 2, batch: int | None = 3, budget: float = 4.0, **given: Any) -> BanditProblem:
    """Return a task whose arms are unit vectors x, shown as (x + 1) / 2."""
    shape = () if batch is None else (batch,)
    stated: dict[str, Any] = {
        "kernel": CentredLinear(),
        "domain": (sphere(np.random.default_rng(d), ARMS, d) + 1) / 2,
        "horizon": 300,
        "noise_scale": NOISE,
        "norm_bound": np.full(shape, S)[()],
        "variation_budget": np.full(shape, budget)[()],
    }
    return BanditProblem(**{**stated, **given})


def make(name: str, source: BanditProblem, **parameters: Any) -> GPAgent:
    agent = wgp_agents.make(name, source, **parameters)
    assert isinstance(agent, GPAgent)
    agent.reset(SEED)
    return agent


@dataclass(frozen=True)
class Naive:
    """A learner as in its paper: theta, beta and the norm's matrix from all plays so far."""

    name: str
    lam: float
    memory: float  # gamma, w or H

    def kept(self, t: int) -> tuple[int, int, float]:
        """Return the first and number of plays that count after t, and gamma."""
        first = 0
        if self.name == "sw-lin-ucb":
            first = int(max(t - self.memory, 0))
        elif self.name == "restart-lin-ucb":
            first = int(t - math.fmod(t, self.memory))
        return first, t - first, self.memory if self.name in DISCOUNTED else 1.0

    def __call__(self, X: Floats, y: Floats) -> tuple[Floats, float, Floats, Floats]:
        """Return theta, beta, V and V~ from all plays' features `(t, d)` and rewards `(t,)`."""
        (first, t, gamma), d, lam = self.kept(len(X)), X.shape[1], self.lam
        X, y, w = X[first:], y[first:], gamma ** np.arange(t - 1.0, -1.0, -1.0)
        V = (X.T * w) @ X + lam * np.eye(d)  # the sums of w x x^T, w^2 x x^T and w y x
        V2, b = (X.T * w**2) @ X + lam * np.eye(d), X.T @ (w * y)
        weight = t if gamma == 1 else (1 - gamma ** (2 * t)) / (1 - gamma**2)
        radicand = 2 * math.log(1 / DELTA) + d * math.log(1 + weight / (lam * d))
        if self.name == "lin-ucb":
            radicand = 2 * math.log(np.linalg.det(V) ** 0.5 / (DELTA * lam ** (d / 2)))
        elif self.name == "sw-lin-ucb":
            radicand = d * math.log((1 + t / (lam * d)) / DELTA)
            assert radicand <= d * math.log((1 + t / lam) / DELTA)  # the paper's
        beta = NOISE * math.sqrt(radicand) + math.sqrt(lam) * S
        return np.asarray(np.linalg.solve(V, b), float), beta, V, V2


MEMORIES: dict[str, Any] = {
    "lin-ucb": (None, [math.inf] * 3),
    "sw-lin-ucb": ("window", [7, 40, math.inf]),
    "restart-lin-ucb": ("restart_period", [6, 45, math.inf]),
}


@pytest.mark.parametrize("contextual", [False, True], ids=["fixed", "contextual"])
@pytest.mark.parametrize(("d", "lam"), [(2, 1.0), (5, 0.1)])
@pytest.mark.parametrize("name", NAMES)
def test_plays_are_those_of_the_papers_formulas(
    name: str, d: int, contextual: bool, lam: float
) -> None:
    word, memories = MEMORIES.get(name, ("discount", [0.8, 0.99, 1.0]))
    scale = {"scale": [0.4, 1.0, 2.0]} if name == "d-rand-lin-ucb" else {}
    given = {} if word is None else {word: memories}
    task = problem(d, contextual=contextual)
    agent = make(name, task, regularization=lam, delta=DELTA, **given, **scale)
    naive = [Naive(name, lam, memory) for memory in memories]
    rng, streams = np.random.default_rng(1), UniformStreams([SEED, SEED + 1, SEED + 2])
    basis = agent.action_set.basis.phi.T if name == "d-lin-ts" and not contextual else None
    places = np.broadcast_to(task.domain, (3, ARMS, d))
    X, y, differs = np.zeros((0, 3, d)), np.zeros((0, 3)), 0
    shown = np.zeros((3, 3 + d + ARMS * d))
    for t in range(STEPS):
        if contextual:
            places = (sphere(rng, 3, ARMS, d) + 1) / 2
            shown[:, 3 + d :] = places.reshape(3, -1)
        played = agent.act(shown)
        z = np.zeros((3, 0))
        if name in ("d-rand-lin-ucb", "d-lin-ts"):
            z = normal_variates(streams, 1 if name == "d-rand-lin-ucb" else d)
        streams.draw()  # ties
        features = 2 * places - 1 if basis is None else np.broadcast_to(basis, (3, ARMS, d))
        bounds, scores, widths = np.empty((3, ARMS)), np.empty((3, ARMS)), np.empty(3)
        for i, x in enumerate(features):
            theta, widths[i], V, V2 = naive[i](X[:, i], y[:, i])
            matrix = np.linalg.inv(V)
            if name in DISCOUNTED and name != "d-lin-ts":  # its interval is that of V^{-1}
                matrix = matrix @ V2 @ matrix
            half = widths[i] * np.sqrt(np.sum(x @ matrix * x, axis=1))
            bounds[i] = scores[i] = x @ theta + half
            if name == "d-rand-lin-ucb":
                scores[i] = x @ theta + scale["scale"][i] * abs(z[i, 0]) * half
            elif name == "d-lin-ts":
                drawn = np.linalg.solve(V, np.linalg.cholesky(V2) @ z[i])
                scores[i] = x @ (theta + widths[i] * drawn)
        np.testing.assert_allclose(agent.confidence_interval().upper, bounds, rtol=0, atol=1e-8)
        np.testing.assert_allclose(agent.beta() * math.sqrt(lam), widths, rtol=0, atol=1e-8)
        learners = np.arange(3)
        assert (scores[learners, played] >= scores.max(axis=1) - 1e-8).all()
        differs += int((bounds[learners, played] < bounds.max(axis=1) - 1e-8).sum())
        chosen = features[learners, played]
        reward = chosen @ np.cos(np.arange(d) + t / 50) + NOISE * rng.standard_normal(3)
        agent.observe(played, reward)
        X, y = np.concatenate([X, chosen[None]]), np.vstack([y, reward])
    assert (differs > STEPS / 4) == (name in ("d-rand-lin-ucb", "d-lin-ts"))


def memory_of(agent: GPAgent) -> Floats:
    assert agent.forgetting is not None
    return agent.forgetting(agent.problem, agent.num_learners)


@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize(("budget", "stated"), [("known", 5.0), ("unknown", 1.0), (0.3, 0.3)])
@pytest.mark.parametrize("tuning", ["original", "corrected"])
def test_memories_by_name(tuning: str, budget: Any, stated: float, d: int) -> None:
    task = problem(d, batch=None, budget=5.0, horizon=6_000)

    def _length(b: float) -> float:
        if tuning == "original":
            return float(np.cbrt((d * 6_000 / b) ** 2))
        return float(d**0.25 * math.sqrt(6_000 / b))

    for name in NAMES[1:]:
        agent = make(name, task, tuning=tuning, variation_budget=budget)
        if name in DISCOUNTED:
            expected = 1 - 1 / _length(stated)
        else:
            expected = math.ceil(_length(stated + (name == "restart-lin-ucb")))
        if expected >= 6_000:
            expected = math.inf
        np.testing.assert_allclose(memory_of(agent), [expected], rtol=1e-12)


def test_memories_that_were_worked_out_by_hand() -> None:
    """d = 2, T = 6000, B_T = 4: (12000 / 4)^{2/3} = 208.01, 2^{1/4} sqrt(1500) = 46.06."""
    task = problem(2, batch=None, budget=4.0, horizon=6_000)
    for tuning, window, restart, discount in (
        ("original", 209, 180, 0.995193),
        ("corrected", 47, 42, 0.978288),
    ):
        words: dict[str, Any] = {"tuning": tuning, "variation_budget": "known"}
        assert memory_of(make("sw-lin-ucb", task, **words))[0] == window
        assert memory_of(make("restart-lin-ucb", task, **words))[0] == restart
        assert memory_of(make("d-lin-ucb", task, **words))[0] == pytest.approx(discount, abs=1e-6)


@pytest.mark.parametrize("tuning", ["original", "corrected"])
def test_no_variation_and_a_great_one(tuning: str) -> None:
    words: dict[str, Any] = {"tuning": tuning, "variation_budget": [0.0, 1e9]}
    task = problem(2, batch=2, horizon=6_000)
    np.testing.assert_array_equal(memory_of(make("d-lin-ucb", task, **words)), [1.0, 0.5])
    np.testing.assert_array_equal(memory_of(make("sw-lin-ucb", task, **words)), [math.inf, 2])
    periods = memory_of(make("restart-lin-ucb", task, **words))  # 1 + B_T
    exact = (2 * 6_000) ** (2 / 3) if tuning == "original" else 2**0.25 * math.sqrt(6_000)
    np.testing.assert_array_equal(periods, [math.ceil(exact), 2])


@pytest.mark.parametrize("contextual", [False, True], ids=["fixed", "contextual"])
@pytest.mark.parametrize("confidence_width", ["theory", 0.7])
def test_d_lin_ucb_is_wgp_ucb_with_a_linear_kernel(confidence_width: Any, contextual: bool) -> None:
    task, rng, d = problem(3, contextual=contextual), np.random.default_rng(2), 3
    same: dict[str, Any] = {"discount": [0.7, 0.95, 1.0], "confidence_width": confidence_width}
    linear = make("d-lin-ucb", task, **same)
    tight: dict[str, Any] = {"width": "tight", "regularization": 1, "gain": "determinant"}
    kernel = make("wgp-ucb", task, **tight, **same)
    standard = make("wgp-ucb", task, **{**tight, "width": "standard"}, **same)
    differs = 0
    for _ in range(STEPS):
        shown = np.concatenate([np.zeros((3, 3 + d)), rng.random((3, ARMS * d))], axis=1)
        played, other = linear.act(shown), standard.act(shown)
        np.testing.assert_array_equal(played, kernel.act(shown))
        np.testing.assert_array_equal(linear.beta(), kernel.beta())
        differs += int((played != other).sum())
        reward = rng.standard_normal(3)
        for agent in (linear, kernel, standard):
            agent.observe(played, reward)
    assert differs > 20


def test_the_determinant_gain_bounds_the_realised_one() -> None:
    agent, rng = make("d-lin-ucb", problem(5), discount=[0.7, 0.95, 1.0]), np.random.default_rng(3)
    for _ in range(100):
        planned = (agent.width_gain(), agent.information_gain())
        assert (planned[0] >= planned[1] - 1e-12).all()
        agent.observe(agent.act(), rng.standard_normal(3))
    assert (agent.width_gain() > 1.001 * agent.information_gain()).all()


@pytest.mark.parametrize("name", ["restart-lin-ucb", "d-lin-ucb", "sw-lin-ucb"])
def test_the_determinant_gain_is_reached_by_even_plays_of_axes(name: str) -> None:
    """k plays of each of d axes: det(V) = (lambda + k)^d, d / 2 log(1 + k / lambda)."""
    word = MEMORIES.get(name, ("discount", 0))[0]
    source = replace(problem(3, batch=None), domain=(np.eye(3) + 1) / 2)
    whole = {word: 1.0 if word == "discount" else math.inf}
    agent = make(name, source, regularization=0.3, **whole)
    for t in range(12):
        agent.observe(t % 3, 0.0)
    exact = 1.5 * math.log(1 + 4 / 0.3)
    assert agent.width_gain()[0] == pytest.approx(exact, rel=1e-12)
    assert agent.information_gain() == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_the_mean_is_ridge_regression(lam: float) -> None:
    task, rng = problem(4, batch=None), np.random.default_rng(4)
    agent, arms = make("lin-ucb", task, regularization=lam), rng.integers(ARMS, size=50)
    y, x = rng.standard_normal(50), 2 * task.domain - 1
    for arm, reward in zip(arms.tolist(), y.tolist(), strict=True):
        agent.observe(arm, reward)
    ridge = Ridge(alpha=lam, fit_intercept=False).fit(x[arms], y)
    np.testing.assert_allclose(agent.posterior().mean, ridge.predict(x), rtol=0, atol=1e-10)


def test_where_the_kernel_is_not_linear_features_are_x_over_root_d() -> None:
    task = problem(2, batch=None, kernel=SquaredExponential(0.2))
    same = problem(2, batch=None, kernel=Linear())
    agents = [make("d-lin-ucb", source, discount=0.9) for source in (task, same)]
    for reward in np.random.default_rng(5).standard_normal(20).tolist():
        arm = agents[0].act()
        assert agents[1].act() == arm
        for agent in agents:
            agent.observe(arm, reward)
    x = task.domain / math.sqrt(2)
    np.testing.assert_allclose(agents[0].action_set.basis.prior, np.sum(x**2, axis=1), rtol=1e-12)


@pytest.mark.parametrize("name", NAMES[1:])
def test_no_other_tuning(name: str) -> None:
    rule = r"'tuning' parameter of \w*Lin\w+ must be .*did you mean 'original'"
    with pytest.raises(ValueError, match=rule):
        make(name, problem(), tuning="orignal")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("lin-ucb", {"regularization": 0.0}),
        ("d-lin-ucb", {"discount": 1.5}),
        ("d-lin-ts", {"discount": 0.0}),
        ("sw-lin-ucb", {"window": 2.5}),
        ("restart-lin-ucb", {"restart_period": 0}),
        ("d-rand-lin-ucb", {"scale": 0.0}),
        ("d-rand-lin-ucb", {"scale": -0.4}),
        ("sw-lin-ucb", {"variation_budget": "guess"}),
    ],
)
def test_bad_parameters(name: str, wrong: dict[str, Any]) -> None:
    (word,) = wrong
    with pytest.raises(ValueError, match=rf"'{word}' parameter of \w*Lin\w+ must be "):
        make(name, problem(), **wrong)


def test_linear_agents_have_their_own_features() -> None:
    for name in NAMES:
        with pytest.raises(ValueError, match=f"The agent '{name}' has no parameter 'features'"):
            make(name, problem(), features="exact")
    with pytest.raises(ValueError, match="LinUCB has no parameter 'features'"):
        wgp_agents.LinUCB(problem(), features="exact")  # type: ignore[call-arg]


@pytest.mark.parametrize("name", NAMES)
def test_none_stands_for_the_default(name: str) -> None:
    agent = make(name, problem(), regularization=None, delta=None)
    np.testing.assert_array_equal(agent.regularization, 1.0)
    np.testing.assert_array_equal(agent.width.delta, 0.1)


def test_the_determinant_takes_the_largest_norm() -> None:
    long = BanditProblem(
        CentredLinear(), np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), 60, 0.1, 1.0
    )
    agent = make("lin-ucb", long, gain="determinant")
    agent.reset(0)
    for t in range(60):  # features of norm 2^{1/2}
        agent.observe(t % 3, 0.0)
        assert agent.width_gain()[0] >= agent.information_gain() - 1e-12
