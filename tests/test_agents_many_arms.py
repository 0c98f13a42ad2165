"""Many arms: variances evaluated lazily, and posteriors computed anew part by part."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_agents.core.checkpoint import Checkpoint
from wgp_agents.gp.acquisition import Acquisition, ThompsonSampling, UpperBound
from wgp_agents.gp.action_sets import FixedArms, Points
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates.ageing import AgeingSurrogate
from wgp_agents.gp.surrogates.base import Prediction
from wgp_agents.gp.surrogates.lazy import settle
from wgp_agents.gp.surrogates.weighted import (
    DiscountSurrogate,
    RestartSurrogate,
    WindowSurrogate,
)
from wgp_agents.gp.tuning import Forgetting
from wgp_agents.kernels import rank_one_blas
from wgp_agents.kernels.basis import make_basis
from wgp_agents.kernels.rank_one import RankOneArrays
from wgp_agents.kernels.rank_one_blas import EVERY, PARTS, refresh_parts
from wgp_agents.kernels.stale import bound_conditions, grow_bounds
from wgp_gym.features import exact_features
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

Floats = NDArray[np.float64]

KERNEL = SquaredExponential(0.3)
SIDE = 20
AXIS = np.linspace(0.0, 1.0, SIDE)
GRID: Floats = np.stack(np.meshgrid(AXIS, AXIS), -1).reshape(-1, 2)
ARMS, BETA, NOISE = len(GRID), 2.0, 0.1
DISCOUNTS = np.array([0.9, 0.97, 0.99])


class WholeUpperBound(Acquisition):
    """The same rule as a user's own, which is asked of every arm's variance."""

    def score(self, points: Points, prediction: Prediction, width: Array, draw: Array) -> Array:
        """Return mean + beta std, `(k, q)`."""
        scores: Array = prediction.mean + width[:, None] * np.sqrt(prediction.bound_variance)
        return scores


def problem(batch: int | None = None, domain: Floats = GRID) -> BanditProblem:
    return BanditProblem(KERNEL, domain, 500, NOISE, 1.0, 2.0, episodes=batch)


def made(
    batch: int | None,
    *,
    own: bool = False,
    surrogate: Any = DiscountSurrogate,
    discount: Any = DISCOUNTS,
    domain: Floats = GRID,
    acquisition: Acquisition | None = None,
) -> GPAgent:
    agent = GPAgent(
        problem(batch, domain),
        surrogate=surrogate,
        forgetting=None if discount is None else Forgetting("discount", discount),
        acquisition=acquisition or (WholeUpperBound() if own else UpperBound()),
        confidence_width=BETA,
    )
    agent.reset(5)
    return agent


def drifting(t: int, places: Floats) -> Floats:
    """Return the rewards at places `(B, 2)`, one bump a learner, which turns."""
    turns = 0.05 * t + np.arange(len(places))
    centres = 0.5 + 0.3 * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    noise = NOISE * np.random.default_rng(t).normal(size=len(places))
    found: Floats = np.exp(-8 * np.sum((places - centres) ** 2, axis=1)) + noise
    return found


def dense(history: list[tuple[int, float, float]], eta: float) -> tuple[Floats, Floats]:
    """Return means and variances from a history of (arm, reward, time), by t x t matrices."""
    arms = np.array([arm for arm, _, _ in history])
    y, times = (np.array([row[k] for row in history]) for k in (1, 2))
    root = eta ** ((times[-1] - times) / 2)  # eta^{(t - s) / 2}
    K, k = KERNEL(GRID[arms], GRID[arms]), KERNEL(GRID[arms], GRID)
    M = np.linalg.inv(root[:, None] * K * root + NOISE**2 * np.eye(len(y)))
    weighted = root[:, None] * k
    return weighted.T @ M @ (root * y), 1.0 - np.sum(weighted * (M @ weighted), axis=0)


def test_plays_and_posterior_are_those_of_dense_algebra() -> None:
    """With masks, learners that rest and uneven steps, early and late."""
    agent, rng = made(3), np.random.default_rng(2)
    histories: list[list[tuple[int, float, float]]] = [[], [], []]
    clock, evaluated = np.zeros(3), []
    assert 64 < agent.action_set.basis.phi.shape[0] < ARMS / 2
    for t in range(70):
        allowed = rng.random((3, ARMS)) < 0.5
        arms = np.asarray(agent.act(allowed=allowed))
        for i, history in enumerate(histories):
            if not history:
                continue
            mean, variance = dense(history, DISCOUNTS[i])
            upper = np.where(allowed[i], mean + BETA * np.sqrt(variance), -np.inf)
            assert upper[arms[i]] > upper.max() - 2e-9
            if t in (3, 69):
                found = agent.posterior()
                np.testing.assert_allclose(found.mean[i], mean, atol=1e-7)
                np.testing.assert_allclose(found.std[i] ** 2, variance, atol=1e-7)
                bounds = agent.surrogate.predict(agent.action_set.candidates).bound_variance[i]
                np.testing.assert_allclose(bounds, variance, atol=1e-7)
            stale = agent.surrogate.variance[i]  # type: ignore[attr-defined]
            assert (stale > variance - 1e-8).all()
            evaluated.append(float((stale < variance + 1e-8).mean()))
        rewards, active = drifting(t, GRID[arms]), rng.random(3) < 0.8
        elapsed = rng.choice([0.0, 1.0, 2.5], 3)
        agent.observe(arms, rewards, active=active, elapsed=elapsed)
        clock += np.where(active, elapsed, 0.0)
        for i in np.flatnonzero(active).tolist():
            histories[i].append((int(arms[i]), float(rewards[i]), float(clock[i])))
    assert np.mean(evaluated[60:]) < 0.7  # else nothing was saved


@pytest.mark.parametrize(
    ("surrogate", "discount"),
    [
        (DiscountSurrogate, DISCOUNTS),
        (partial(DiscountSurrogate, tight=True), DISCOUNTS),
        (partial(DiscountSurrogate, ratios=np.array([1.0, 0.8, 1.3, 0.95])), None),
        (partial(DiscountSurrogate, ratios=np.array([1.0, 0.8, 1.3, 0.95]), tight=True), None),
        (partial(AgeingSurrogate, injection=np.array([0.0, 0.002, 0.05]), horizon=10**9), None),
    ],
    ids=["discount", "tight", "weights", "tight weights", "ageing"],
)
def test_plays_are_those_of_a_rule_that_asks_for_every_variance(
    surrogate: Any, discount: Any
) -> None:
    ours = made(3, surrogate=surrogate, discount=discount)
    whole = made(3, own=True, surrogate=surrogate, discount=discount)
    rng = np.random.default_rng(3)
    for t in range(40):
        allowed = rng.random((3, ARMS)) < 0.7 if t % 3 else None
        arms = np.asarray(ours.act(allowed=allowed))
        np.testing.assert_array_equal(arms, whole.act(allowed=allowed))
        active, rewards = rng.random(3) < 0.9, drifting(t, GRID[arms])
        for agent in (ours, whole):
            if t == 20:
                agent.reset(learners=[False, True, False])
            if t % 5 == 4:
                agent.hallucinate(arms, active=active)
                if agent.takes_elapsed:
                    agent.elapse(1.5, active=active)
            else:
                agent.observe(arms, rewards, active=active)
    for mine, other in zip(ours.posterior(), whole.posterior(), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-12)


def played(agent: GPAgent, steps: range) -> list[int]:
    """Play one learner; return its arms."""
    found = []
    for t in steps:
        arm = int(agent.act())
        agent.observe(arm, float(drifting(t, GRID[[arm]])[0]))
        found.append(arm)
    return found


def test_asking_saving_and_going_back_change_no_play() -> None:
    agent, other = made(None, discount=0.95), made(None, discount=0.95)
    assert played(agent, range(20)) == played(other, range(20))
    other.posterior()
    kept, state = Checkpoint(other), other.state_dict()
    there = played(agent, range(20, 40))
    assert played(other, range(20, 40)) == there
    kept.restore()
    assert played(other, range(20, 40)) == there
    other.load_state_dict(state)
    assert played(other, range(20, 40)) == there


def test_learner_i_is_alone() -> None:
    batch, alone = made(3), made(None, discount=DISCOUNTS[1])
    alone.reset(6)
    for t in range(12):
        arms = np.asarray(batch.act())
        assert int(alone.act()) == arms[1]
        rewards = drifting(t, GRID[arms])
        batch.observe(arms, rewards)
        alone.observe(int(arms[1]), float(rewards[1]))
    np.testing.assert_array_equal(batch.posterior().mean[1], alone.posterior().mean)
    np.testing.assert_array_equal(batch.posterior().std[1], alone.posterior().std)


def test_ties_are_uniform() -> None:
    """Every arm stands there twice: either of two is played, each by about half of 60 learners."""
    twice = np.concatenate([GRID, GRID])
    agent = made(60, discount=0.95, domain=twice)
    for arm in (15, 210, 333):
        agent.observe(np.full(60, arm), np.full(60, 0.3))
    arms = np.asarray(agent.act())
    assert len(set(arms % ARMS)) == 1
    assert 15 <= int((arms < ARMS).sum()) <= 45  # outside with a chance of 5e-5


@pytest.mark.parametrize("eta", [0.0, 0.3, 0.9, 0.999, 1.0])
def test_bounds_of_stale_variances_hold(eta: float) -> None:
    """Both inequalities, against an inverse, and as tight as the smaller of the two."""
    rng, lam = np.random.default_rng(1), 0.05
    basis = make_basis(exact_features(KERNEL, GRID), np.array([lam]), np.array([1e-10]))
    phi, m = basis.phi, len(basis.phi)
    for plays in (1, 5, 60):
        old = phi[:, rng.integers(ARMS, size=plays)]
        A, new = old @ old.T, phi[:, rng.integers(ARMS)]
        before, after = (
            lam * np.sum(phi * np.linalg.solve(gram + lam * np.eye(m), phi), axis=0)
            + basis.residual[0]
            for gram in (A, eta * A + np.outer(new, new))
        )
        bounds = before[None].copy()
        active, condition = np.array([True]), np.empty(1)
        bound_conditions(A[None], active, basis, condition)
        assert condition[0] >= np.linalg.cond(A + lam * np.eye(m)) * (1 - 1e-9)
        grow_bounds(np.array([eta]), active, condition, basis, bounds)
        assert (bounds >= after - 1e-13).all()
        mixed = eta * before + (1 - eta) * basis.prior
        smaller = np.minimum(before / eta, mixed) if eta else mixed
        np.testing.assert_allclose(bounds[0], smaller, rtol=1e-9)


FINE = np.linspace(0.0, 1.0, 38)
SQUARE: Floats = np.stack(np.meshgrid(FINE, FINE), -1).reshape(-1, 2)


@pytest.mark.slow
def test_with_hardly_any_noise_few_arms_leave_no_errors() -> None:
    """Then the errors of an inverse grow fast: it is never mended part by part."""
    lam, on, rng = 1e-6, np.ones(1, bool), np.random.default_rng(0)
    arms = FixedArms(SquaredExponential(0.15), SQUARE, np.array([lam]))
    surrogate = RestartSurrogate(arms)
    surrogate.restart(on, np.array([np.inf]))
    phi = arms.basis.phi
    assert phi.size > 2**17
    played, y = rng.integers(5, size=700), rng.normal(size=700)
    for t in range(700):
        surrogate.update(arms.embed(played[t : t + 1]), y[t : t + 1], on)
    # By the sums of each arm, as V itself has a condition number of 1e9.
    counts, k = np.bincount(played), SquaredExponential(0.15)(SQUARE, SQUARE[:5])
    mean = np.bincount(played, y) / counts
    noisy = k[:5] + np.diag(lam / counts)
    np.testing.assert_allclose(surrogate.mean[0], k @ np.linalg.solve(noisy, mean), atol=2e-4)
    variance = 1.0 - np.sum(k * np.linalg.solve(noisy, k.T).T, axis=1)
    np.testing.assert_allclose(surrogate.variance[0], variance, atol=1e-6)


class Peculiar:
    """Another's score."""

    def score(self, points: Points, prediction: Prediction, width: Array, draw: Array) -> Array:
        """Return what falls where variances rise, `(k, q)`."""
        return prediction.mean - prediction.variance


def test_a_score_from_elsewhere_is_not_said_to_rise() -> None:
    class Mixed(Peculiar, UpperBound):
        pass

    class Same(UpperBound):
        pass

    assert (UpperBound.rises, Same.rises, Mixed.rises) == (True, True, False)
    needs = [kind.needs_variances for kind in (ThompsonSampling, Whole, Mixed, Same)]
    assert needs == [False, True, True, True]


class Whole(ThompsonSampling):
    """The same rule as a user's own, which is asked of every arm's variance."""

    def score(self, points: Points, prediction: Prediction, width: Array, draw: Array) -> Array:
        """Return the values of the sampled functions, `(k, q)`."""
        return super().score(points, prediction, width, draw)


def test_samples_need_no_variances() -> None:
    ours, whole = made(3, acquisition=ThompsonSampling()), made(3, acquisition=Whole())
    for t in range(15):
        arms = np.asarray(ours.act())
        np.testing.assert_array_equal(arms, whole.act())
        rewards = drifting(t, GRID[arms])
        for agent in (ours, whole):
            agent.observe(arms, rewards)
    stale = ours.surrogate.variance.copy()  # type: ignore[attr-defined]
    ours.act()
    np.testing.assert_array_equal(ours.surrogate.variance, stale)  # type: ignore[attr-defined]
    for mine, other in zip(ours.posterior(), whole.posterior(), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-12)


@pytest.mark.parametrize("window", [None, 40])
def test_what_is_computed_anew_part_by_part_is_right(window: int | None) -> None:
    """Over a whole round of parts, and after rewards so large that a removal loses digits."""
    kind = RestartSurrogate if window is None else WindowSurrogate
    forgetting = None if window is None else Forgetting("window", window)
    agent = GPAgent(problem(None, SQUARE), surrogate=kind, forgetting=forgetting)
    agent.reset(1)
    assert agent.action_set.basis.phi.size > 2**17
    rng, arms, y = np.random.default_rng(8), [], []
    for t in range(620):
        arm, reward = int(rng.integers(len(SQUARE))), float(rng.normal())
        reward *= 1e8 if t in (100, 300) and window else 1.0
        agent.observe(arm, reward)
        arms.append(arm)
        y.append(reward)
        if t in (20, 150, 619):
            held = slice(-window if window else None, None)
            rows, target = SQUARE[arms[held]], np.array(y[held])
            V = KERNEL(rows, rows) + NOISE**2 * np.eye(len(rows))
            k = KERNEL(rows, SQUARE)
            found = agent.posterior()
            np.testing.assert_allclose(found.mean, k.T @ np.linalg.solve(V, target), atol=2e-7)
            variance = 1.0 - np.sum(k * np.linalg.solve(V, k), axis=0)
            np.testing.assert_allclose(found.std**2, variance, atol=1e-9)
            gain = np.linalg.slogdet(V / NOISE**2)[1] / 2
            assert agent.information_gain() == pytest.approx(gain, rel=1e-8)


@pytest.mark.parametrize("small", [1e-8, 1.0])
def test_two_rounds_of_parts_take_errors_out(small: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """P off by 1e-6, and any means and variances, become those of dense algebra.

    At once, where that is more than a part may mend.
    """
    monkeypatch.setattr(rank_one_blas, "WRONG", small)
    rng, lam = np.random.default_rng(3), 0.05
    features = exact_features(KERNEL, GRID)
    basis = make_basis(features, np.array([lam]), np.array([1e-10]))
    phi, m = basis.phi, len(basis.phi)
    counts = rng.integers(3, size=(1, ARMS)) * (rng.random((1, ARMS)) < 0.1)
    sums, wrong = counts * rng.normal(size=(1, ARMS)), 1e-6 * rng.normal(size=(m, m))
    inverse = np.linalg.inv(phi * counts @ phi.T + lam * np.eye(m))
    means, variances = rng.random((2, 1, ARMS))
    state = RankOneArrays(
        *(inverse[None] + wrong + wrong.T, means, variances, np.zeros(1)),
        *(counts, sums, np.zeros((1, ARMS)), np.zeros(1, np.int64)),
    )
    for _ in range(2 * PARTS if small == 1.0 else 3):  # the first part has no columns
        state.age[:] += EVERY
        refresh_parts(np.array([True]), lambda arms: features.table[arms], basis, state)
    np.testing.assert_allclose(state.inverse[0], inverse, atol=1e-10)
    mean, variance = phi.T @ inverse @ phi @ sums[0], lam * np.sum(phi * (inverse @ phi), axis=0)
    np.testing.assert_allclose(state.mean[0], mean, atol=1e-9)
    np.testing.assert_allclose(state.variance[0], variance + basis.residual[0], atol=1e-11)


def test_a_table_that_is_stored_once_plays_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    there = played(made(None, discount=0.95), range(15))
    monkeypatch.setattr("wgp_gym.features.MOST_TURNED", 0)
    agent = made(None, discount=0.95)
    assert played(agent, range(15)) == there
    np.testing.assert_array_equal(
        agent.action_set.embed(np.array([7])).features[0], agent.action_set.basis.phi[:, 7]
    )


@pytest.mark.parametrize("masked", [False, True])
def test_lazy_scores_tie_as_exact_ones_do(masked: bool) -> None:
    """Against all scores: many near a tie, upper bounds of any quality, others not asked for."""
    rng = np.random.default_rng(4)
    near = np.where(rng.random(300) < 0.5, 9e-10, 5e-9)  # half of them below a tie
    exact = np.concatenate([1.0 - near * rng.uniform(0.5, 1.0, 300), rng.random(2_000) - 0.01])
    exact[7] = 1.0
    allowed = rng.random(len(exact)) < 0.6 if masked else np.ones(len(exact), bool)
    scores = exact + np.maximum(2e-9, 0.4 * rng.random(len(exact)) - 0.2)
    scores[:300] = np.minimum(scores[:300], np.where(exact[:300] < 1.0, 1.0 - 1e-10, 1.1))
    asked: list[int] = []

    def evaluate(arms: NDArray[np.int64]) -> Floats:
        asked.extend(arms.tolist())
        found: Floats = exact[arms]
        return found

    count = settle(scores, allowed if masked else None, evaluate)
    assert len(set(asked)) == len(asked) == count < allowed.sum()
    assert allowed[asked].all()
    best = exact[allowed].max()
    tied = allowed & (exact >= best - 1e-9)
    np.testing.assert_array_equal(tied, allowed & (scores >= best - 1e-9))
    np.testing.assert_array_equal(scores[tied], exact[tied])
