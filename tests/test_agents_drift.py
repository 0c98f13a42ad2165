"""The surrogate of a drifting function, against t x t matrices in another precision."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal
from told import feed, tell

from wgp_agents.gp.action_sets import FixedArms
from wgp_agents.gp.box import Box
from wgp_agents.gp.surrogates.drift import EPS_GRID, DriftSurrogate
from wgp_agents.kernels.drift import best_filter
from wgp_gym.kernels import Kernel, Linear, Matern, SquaredExponential

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DOMAIN = np.linspace(0.0, 1.0, 60)[:, None]
KERNEL = SquaredExponential(0.2)
FIT = np.nan


def make(eps: Any, ridge: Any, kernel: Kernel = KERNEL, batch: int = 1) -> DriftSurrogate:
    surrogate = DriftSurrogate(
        FixedArms(kernel, DOMAIN, np.broadcast_to(ridge, batch).astype(float))
    )
    surrogate.restart(np.ones(batch, bool), np.broadcast_to(eps, batch).astype(float))
    return surrogate


def plays(steps: int, seed: int = 0) -> tuple[Ints, Floats]:
    rng = np.random.default_rng(seed)
    return rng.integers(len(DOMAIN), size=steps), rng.standard_normal(steps)


def triangle(A: Any) -> Any:
    """Return the lower Cholesky factor, in the precision of A."""
    L = np.zeros_like(A)
    for j in range(len(A)):
        L[j:, j] = (A[j:, j] - L[j:, :j] @ L[j, :j]) / np.sqrt(A[j, j] - L[j, :j] @ L[j, :j])
    return L


def forward(L: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    for i in range(len(L)):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def dense(
    arms: Ints, rewards: Floats, eps: float, ridge: float, kernel: Kernel = KERNEL
) -> tuple[Floats, Floats, float]:
    """Return mean, variance and gain at t + 1 from the covariance of all plays, 80-bit."""
    t, keep = np.arange(len(arms)), np.longdouble(1) - np.longdouble(eps)
    gram = kernel(DOMAIN, DOMAIN).astype(np.longdouble)
    K = gram[np.ix_(arms, arms)] * keep ** (np.abs(t[:, None] - t) / np.longdouble(2))
    L = triangle(K + ridge * np.eye(len(t), dtype=np.longdouble))
    ahead = gram[arms] * keep ** ((len(t) - t[:, None]) / np.longdouble(2))
    Y, z = forward(L, ahead), forward(L, rewards.astype(np.longdouble))
    gain = np.log(L.diagonal()).sum() - len(t) / 2 * np.log(np.longdouble(ridge))
    variance = gram.diagonal() - (Y**2).sum(axis=0)
    return (z @ Y).astype(float), variance.astype(float), float(gain)


@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("eps", [0.0, 0.001, 0.01, 0.1, 0.5, 1.0])
def test_the_posterior_is_that_of_the_covariance_in_space_time(eps: float, ridge: float) -> None:
    surrogate = make(eps, ridge)
    arms, rewards = plays(150)
    for start in range(0, 150, 50):
        feed(surrogate, arms[start : start + 50], rewards[start : start + 50])
        seen = slice(0, start + 50)
        mean, variance, gain = dense(arms[seen], rewards[seen], eps, ridge)
        assert surrogate.mean[0] == pytest.approx(mean, abs=1e-8)
        assert surrogate.variance[0] == pytest.approx(variance, abs=1e-8)
        assert surrogate.gain[0] == pytest.approx(gain, rel=1e-8, abs=1e-8)
    assert (surrogate.bound_variance is surrogate.variance, surrogate.held[0]) == (True, 150)


@pytest.mark.parametrize("kernel", [Matern(0.3, 0.5), Matern(0.3, 2.5), Linear()])
def test_any_kernel_and_any_number_of_features(kernel: Kernel) -> None:
    surrogate = make(0.02, 0.1, kernel)
    arms, rewards = plays(90)
    feed(surrogate, arms, rewards)
    mean, variance, gain = dense(arms, rewards, 0.02, 0.1, kernel)
    assert surrogate.mean[0] == pytest.approx(mean, abs=1e-8)
    assert surrogate.variance[0] == pytest.approx(variance, abs=1e-8)
    assert surrogate.gain[0] == pytest.approx(gain, abs=1e-8)


@pytest.mark.parametrize("eps", [0.0, 1e-4, 0.05, FIT])
def test_errors_do_not_build_up(eps: float) -> None:
    surrogate = make(eps, 1e-6)
    rng = np.random.default_rng(1)
    arms = rng.choice([3, 4, 40], size=5_000)
    feed(surrogate, arms, np.sin(arms) + 1e-3 * rng.standard_normal(5_000))
    phi, rank = surrogate.basis.phi, surrogate.basis.rank[0]
    P = surrogate.kept.covariance[0, surrogate.kept.chosen[0], :rank, :rank]
    assert np.array_equal(P, P.T)
    assert np.linalg.eigvalsh(P).min() > 0
    mean, variance, same = surrogate.predictor(0)(phi[:rank])
    assert surrogate.mean[0] == pytest.approx(mean, abs=1e-11)
    assert surrogate.variance[0] == pytest.approx(variance + surrogate.basis.residual[0], abs=1e-12)
    assert np.array_equal(variance, same)


def test_with_many_arms_a_few_are_computed_anew_at_each_step() -> None:
    """Whatever stood in their table, after 256 steps it is right, and after fewer is not."""
    side, on, rng = np.linspace(0.0, 1.0, 38), np.ones(1, bool), np.random.default_rng(2)
    square = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    arms = FixedArms(SquaredExponential(0.3), square, np.array([0.01]))
    surrogate, phi = DriftSurrogate(arms), arms.basis.phi
    surrogate.restart(on, np.array([0.01]))
    assert phi.size > 2**17
    surrogate.mean[:], surrogate.variance[:] = rng.random((2, 1, len(square)))
    for t in range(1, 257):
        surrogate.update(arms.embed(rng.integers(len(square), size=1)), rng.normal(size=1), on)
        if t in (1, 128, 256):
            mean, variance, _ = surrogate.predictor(0)(phi)
            variance = variance + arms.basis.residual[0]
            right = abs(surrogate.mean[0] - mean) < 1e-12
            right &= abs(surrogate.variance[0] - variance) < 1e-12
            assert np.mean(right) == pytest.approx(t / 256, abs=1 / 256)


def test_a_variance_that_rounding_made_negative_does_not_grow() -> None:
    surrogate = make(0.0, 1e-6)
    surrogate.kept.covariance[:] *= -9e-7
    before = surrogate.kept.covariance.copy()
    feed(surrogate, *plays(5))
    assert np.array_equal(surrogate.kept.covariance, before)
    assert surrogate.variance.min() >= 0


def test_what_a_box_leaves_out_is_noise() -> None:
    rng = np.random.default_rng(0)
    ridge, eps, points = 0.01, 0.1, rng.random((20, 3))
    box = Box(Matern(0.2, 0.5), points, np.array([ridge]))
    surrogate = DriftSurrogate(box)
    surrogate.restart(np.ones(1, bool), np.array([eps]))
    rewards = rng.standard_normal(20)
    for point, reward in zip(points, rewards, strict=True):
        surrogate.update(box.embed(point[None]), np.array([reward]), np.ones(1, bool))
    phi = np.concatenate([box.embed(point[None]).features for point in points])
    left = 1 - np.sum(phi**2, axis=1)
    assert left.max() > 0.1
    age = np.arange(20)
    M = phi @ phi.T * (1 - eps) ** (np.abs(age[:, None] - age) / 2) + np.diag(ridge + left)
    k = phi @ box.basis.phi * (1 - eps) ** ((20 - age[:, None]) / 2)
    variance = box.basis.prior - np.sum(k * np.linalg.solve(M, k), axis=0)
    assert surrogate.mean[0] == pytest.approx(k.T @ np.linalg.solve(M, rewards), abs=1e-9)
    assert surrogate.variance[0] == pytest.approx(variance, abs=1e-9)
    found = surrogate.predictor(0)(box.basis.phi)
    assert found[0] == pytest.approx(surrogate.mean[0], abs=1e-12)
    assert found[1] == pytest.approx(variance - box.basis.residual[0], abs=1e-9)


def test_the_likeliest_drift_speaks() -> None:
    surrogate, arms = make(FIT, 0.01), plays(70)[0]
    rewards = np.sin(3 * DOMAIN[arms, 0] + np.arange(70) / 20)
    single = {eps: make(eps, 0.01) for eps in EPS_GRID}
    gram = KERNEL(DOMAIN, DOMAIN)
    for t in range(70):
        for one in (surrogate, *single.values()):
            feed(one, arms[t : t + 1], rewards[t : t + 1])
        seen, age = arms[: t + 1], np.arange(t + 1)
        K, apart = gram[np.ix_(seen, seen)], np.abs(age[:, None] - age)
        scores = [
            multivariate_normal(cov=K * (1 - eps) ** (apart / 2) + 0.01 * np.eye(t + 1)).logpdf(
                rewards[: t + 1]
            )
            for eps in EPS_GRID
        ]
        eps = float(surrogate.eps[0])
        if t > 0:
            assert scores[EPS_GRID.index(eps)] >= max(scores) - 1e-9
        assert surrogate.mean == pytest.approx(single[eps].mean, abs=1e-11)
        assert surrogate.variance == pytest.approx(single[eps].variance, abs=1e-11)
        assert surrogate.gain[0] == single[eps].gain[0]


def test_before_two_drifts_differ_a_middle_one_speaks() -> None:
    surrogate = make(FIT, 0.01)
    assert surrogate.eps[0] == pytest.approx(0.01)
    feed(surrogate, *plays(1))  # all of them foretold this reward alike
    assert surrogate.eps[0] == pytest.approx(0.01)
    assert surrogate.mean[0] == pytest.approx(dense(*plays(1), 0.01, 0.01)[0], abs=1e-12)


def test_of_equals_the_smallest_drift_speaks() -> None:
    call = numba.njit(lambda *args: best_filter(*args))
    assert call(np.array([1.0, 3.0, 3.0, 2.0]), 4, 3) == 1
    assert call(np.array([1.0, 1.0, 1.0, 9.0]), 3, 2) == 2  # all alike: the middle one


def fitted(eps: float, steps: int, seed: int, batch: int = 40) -> Floats:
    """Return the drifts that learners fit to functions of the model."""
    surrogate, rng = make(FIT, 0.01, batch=batch), np.random.default_rng(seed)
    phi = surrogate.basis.phi
    W = rng.standard_normal((batch, len(phi)))
    for _ in range(steps):
        arms = rng.integers(phi.shape[1], size=batch)
        rewards = np.einsum("bm,mb->b", W, phi[:, arms]) + 0.1 * rng.standard_normal(batch)
        tell(surrogate, arms, rewards)
        W = np.sqrt(1 - eps) * W + np.sqrt(eps) * rng.standard_normal(W.shape)
    return surrogate.eps


def test_the_fit_finds_the_drift() -> None:
    # Over seeds 0 ... 19, 800 learners: all fit 0.0316 to eps = 0.03.
    assert fitted(0.03, 200, 0) == pytest.approx(10**-1.5)


def test_the_fit_finds_that_nothing_drifts() -> None:
    # Over seeds 0 ... 19, 800 learners: 797 fit 0, the others 1e-4.
    found = fitted(0.0, 300, 0)
    assert np.mean(found == 0.0) > 0.9
    assert found.max() <= 1e-4


@pytest.mark.parametrize("batch", [2, 3, 100])
def test_learner_i_is_the_single_learner(batch: int) -> None:
    eps = np.resize([FIT, 0.02, 0.0], batch)
    ridges = np.resize([0.01, 1e-6, 1.0, 0.3], batch)
    together, rng = make(eps, ridges, batch=batch), np.random.default_rng(0)
    arms, rewards = rng.integers(60, size=(90, batch)), rng.standard_normal((90, batch))
    active = rng.random((90, batch)) < 0.8
    for t in range(90):
        tell(together, arms[t], rewards[t], active[t])
    for i in range(0, batch, 7):
        alone = make(eps[i], ridges[i])
        for t in np.flatnonzero(active[:, i]).tolist():
            tell(alone, arms[t, i : i + 1], rewards[t, i : i + 1])
        for name in ("mean", "variance", "gain", "eps", "held"):
            assert np.array_equal(getattr(together, name)[i], getattr(alone, name)[0]), name


def test_who_restarts_forgets_and_nobody_else() -> None:
    surrogate = make([0.2, 0.1, FIT], 0.1, batch=3)
    feed(surrogate, *plays(20))
    before = {name: getattr(surrogate, name).copy() for name in ("mean", "variance", "gain", "eps")}
    surrogate.restart(np.array([True, False, True]), np.array([0.3, 0.4, FIT]))
    assert surrogate.held.tolist() == [0, 20, 0]
    for name, old in before.items():
        assert np.array_equal(getattr(surrogate, name)[1], old[1])
    assert surrogate.eps == pytest.approx([0.3, 0.1, 0.01])
    feed(surrogate, *plays(1, seed=1))
    assert surrogate.eps[2] == pytest.approx(0.01)  # no score is left of the first life
    feed(surrogate, *plays(60, seed=2))
    fresh = make([0.3, FIT], 0.1, batch=2)
    feed(fresh, *plays(1, seed=1))
    feed(fresh, *plays(60, seed=2))
    for name in before:
        assert np.array_equal(getattr(surrogate, name)[[0, 2]], getattr(fresh, name)), name


def test_huge_rewards_fade() -> None:
    surrogate = make([0.5, FIT, 0.0], 0.01, batch=3)
    feed(surrogate, np.array([7]), np.array([1e30]))
    feed(surrogate, *plays(400, seed=2))
    other = make(0.5, 0.01)
    feed(other, *plays(400, seed=2))
    assert surrogate.mean[0] == pytest.approx(other.mean[0], abs=1e-8)
    assert np.isfinite(surrogate.mean).all()


@pytest.mark.parametrize("eps", [0.0, 0.1, FIT])
def test_samples_have_the_posteriors_covariance(eps: float) -> None:
    size = make(eps, 1e-3).basis.phi.shape[0]
    surrogate = make(eps, 1e-3, batch=size)  # one learner for each column of the factor
    feed(surrogate, *plays(40))
    drawn = surrogate.sample(np.eye(size))
    P = surrogate.kept.covariance[0, surrogate.kept.chosen[0]]
    assert drawn.T @ drawn == pytest.approx(P, abs=1e-10)
