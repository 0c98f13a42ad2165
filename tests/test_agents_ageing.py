"""Surrogates whose uncertainty grows with age, against t x t matrices and direct sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from told import feed, tell

from wgp_agents.gp.action_sets import ActionSet, FixedArms
from wgp_agents.gp.box import Box
from wgp_agents.gp.surrogates.ageing import AgeingSurrogate, ageing_sum, gauss_rule
from wgp_agents.gp.surrogates.base import FeatureSurrogate
from wgp_agents.gp.surrogates.drift import WalkSurrogate
from wgp_gym.kernels import Kernel, Matern, SquaredExponential

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HORIZON = 400
DOMAIN = np.linspace(0.0, 1.0, 60)[:, None]
SQUARE = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 12)] * 2), axis=-1).reshape(-1, 2)
KERNEL = SquaredExponential(0.2)
every_model = pytest.mark.parametrize("model", ["noise", "walk"])


@pytest.mark.parametrize(("horizon", "terms"), [(1, 9), (20, 16), (500, 23), (10_000, 29)])
def test_a_sum_of_exponentials_is_the_hyperbola(horizon: int, terms: int) -> None:
    # At 1,000,000 steps: 39 terms, and 9.03e-9 at worst over these 61 ratios.
    k = np.arange(1, horizon + 1)
    for ratio in np.geomspace(1e-12, 1e12, 61):
        a, z = ageing_sum(ratio, horizon)
        error = (1 + k * ratio) * (z[:, None] ** (k - 1) * a[:, None]).sum(axis=0) - 1
        assert np.abs(error).max() <= 1e-8
        assert len(a) <= terms
        assert ((a >= 0) & (z >= 0) & (z <= 1)).all()


def test_what_does_not_age_keeps_its_weight() -> None:
    a, z = ageing_sum(0.0, 100)
    assert (a.tolist(), z.tolist()) == ([1.0], [1.0])


def test_beyond_the_horizon_weights_go_on_to_fall() -> None:
    a, z = ageing_sum(0.5, 50)
    k = np.arange(50, 5_000)
    weights = (z[:, None] ** (k - 1) * a[:, None]).sum(axis=0)
    assert (np.diff(weights) < 0).all()
    assert (weights <= (1 + 1e-8) / (1 + 0.5 * k)).all()


def test_the_gauss_rule_of_many_points_is_that_of_legendre() -> None:
    x, w = leggauss(40)  # exact to degree 79, as the integral is
    found, weights = gauss_rule(1 + x, w, 6)
    node, weight = leggauss(6)
    assert found == pytest.approx(1 + node, abs=1e-13)
    assert weights == pytest.approx(weight, abs=1e-13)


def make(model: str, action_set: ActionSet, injection: Any) -> FeatureSurrogate:
    batch = len(action_set.basis.regularization)
    added = np.broadcast_to(injection, batch).astype(float)
    surrogate: FeatureSurrogate = WalkSurrogate(action_set, injection=added)
    if model == "noise":
        surrogate = AgeingSurrogate(action_set, injection=added, horizon=HORIZON)
    surrogate.restart(np.ones(batch, bool), np.zeros(batch))
    return surrogate


def arms_of(kernel: Kernel, domain: Floats, ridge: Any, batch: int = 1) -> FixedArms:
    return FixedArms(kernel, domain, np.broadcast_to(ridge, batch).astype(float))


def dense(
    model: str, gram: Floats, plays: Ints, rewards: Floats, injection: float, noise: Floats
) -> tuple[Floats, Floats, float]:
    """Return mean, variance and gain after all plays from the covariance of the plays.

    Args:
        model: "noise" or "walk".
        gram: k of all arms, `(n, n)`.
        plays: `(t,)`.
        rewards: `(t,)`.
        injection: sigma_w^2.
        noise: The noise variance of each play when it was fresh, `(t,)`.
    """
    t = np.arange(len(plays))
    K, ahead, now = gram[np.ix_(plays, plays)], gram[plays], 1.0
    if model == "walk":
        K = K * (1 + injection * np.minimum(t[:, None], t))
        ahead, now = ahead * (1 + injection * t[:, None]), 1 + injection * len(t)
    else:  # the last play is a step old when the next choice is made
        noise = noise + injection * (len(t) - t)
    M = K + np.diag(noise)
    variance = now * gram.diagonal() - np.sum(ahead * np.linalg.solve(M, ahead), axis=0)
    root = np.sqrt(noise)
    gain = 0.5 * np.linalg.slogdet(np.eye(len(t)) + K / np.outer(root, root))[1]
    return ahead.T @ np.linalg.solve(M, rewards), variance, float(gain)


def some(n: int, steps: int, seed: int = 0) -> tuple[Ints, Floats]:
    rng = np.random.default_rng(seed)
    return rng.integers(n, size=steps), rng.standard_normal(steps)


@every_model
@pytest.mark.parametrize("ridge", [1e-3, 0.1, 2.0])
@pytest.mark.parametrize("injection", [0.0, 1e-4, 0.03, 1.0, 50.0])
def test_the_posterior_is_that_of_t_by_t_matrices(
    model: str, ridge: float, injection: float
) -> None:
    surrogate, gram = make(model, arms_of(KERNEL, DOMAIN, ridge), injection), KERNEL(DOMAIN, DOMAIN)
    plays, rewards = some(len(DOMAIN), 150)
    for start in range(0, 150, 50):
        feed(surrogate, plays[start : start + 50], rewards[start : start + 50])
        seen = slice(0, start + 50)
        noise = np.full(start + 50, ridge)
        mean, variance, gain = dense(model, gram, plays[seen], rewards[seen], injection, noise)
        size = 1 + injection * (start + 50)
        assert surrogate.mean[0] == pytest.approx(mean, abs=3e-7)
        assert surrogate.variance[0] == pytest.approx(variance, abs=1e-8 * size)
        assert surrogate.gain[0] == pytest.approx(gain, rel=1e-7)
    assert (surrogate.bound_variance is surrogate.variance, surrogate.held[0]) == (True, 150)


@every_model
def test_many_features_and_two_dimensions(model: str) -> None:
    kernel = Matern(0.3, 2.5)
    action_set = arms_of(kernel, SQUARE, 0.1)
    assert action_set.basis.rank[0] > 64
    surrogate = make(model, action_set, 0.03)
    plays, rewards = some(len(SQUARE), 80)
    feed(surrogate, plays, rewards)
    gram = kernel(SQUARE, SQUARE)
    mean, variance, gain = dense(model, gram, plays, rewards, 0.03, np.full(80, 0.1))
    assert surrogate.mean[0] == pytest.approx(mean, abs=1e-7)
    assert surrogate.variance[0] == pytest.approx(variance, abs=1e-8)
    assert surrogate.gain[0] == pytest.approx(gain, rel=1e-8)


@every_model
def test_what_a_box_leaves_out_is_noise(model: str) -> None:
    rng = np.random.default_rng(0)
    ridge, injection, points = 0.01, 0.02, rng.random((20, 3))
    box = Box(Matern(0.2, 0.5), points, np.array([ridge]))
    surrogate, rewards = make(model, box, injection), rng.standard_normal(20)
    for point, reward in zip(points, rewards, strict=True):
        surrogate.update(box.embed(point[None]), np.array([reward]), np.ones(1, bool))
    phi = np.concatenate([box.embed(point[None]).features for point in points])
    left = 1 - np.sum(phi**2, axis=1)
    assert left.max() > 0.1
    table, t = np.concatenate([phi, box.basis.phi.T]), np.arange(20)
    added, noise = injection, ridge + left
    if model == "walk":
        noise = ridge + left * (1 + injection * t)
    else:  # a step adds the same share of each play's own noise
        noise, added = noise * (1 + injection * (20 - t) / ridge), 0.0
    gram = table @ table.T
    mean, variance, _ = dense(model, gram, t, rewards, added, noise)
    predicted = surrogate.predictor(0)(box.basis.phi)
    assert surrogate.mean[0] == pytest.approx(mean[20:], abs=1e-7)
    assert predicted[0] == pytest.approx(mean[20:], abs=1e-7)
    for found in predicted[1:]:
        assert found == pytest.approx(variance[20:], abs=1e-8)
    size = 1 + 20 * injection if model == "walk" else 1.0
    assert surrogate.variance[0] == pytest.approx(
        variance[20:] + size * box.basis.residual[0], abs=1e-8
    )


@every_model
@pytest.mark.parametrize("domain", [DOMAIN, SQUARE])
def test_samples_have_the_covariance_of_the_posterior(model: str, domain: Floats) -> None:
    kernel = KERNEL if domain is DOMAIN else Matern(0.3, 2.5)
    surrogate = make(model, arms_of(kernel, domain, 0.1), 0.03)
    feed(surrogate, *some(len(domain), 30))
    phi = arms_of(kernel, domain, 0.1).basis.phi
    drawn = np.concatenate([surrogate.sample(unit[None]) for unit in np.eye(len(phi))]) @ phi
    assert np.sum(drawn**2, axis=0) == pytest.approx(surrogate.variance[0], abs=1e-8)
    mean, normals = surrogate.mean.copy(), np.zeros((1, len(phi)))
    assert not surrogate.sample(normals).any()
    assert np.array_equal(surrogate.mean, mean)


@every_model
@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_a_learner_does_not_depend_on_the_others(model: str, batch: int) -> None:
    rng = np.random.default_rng(3)
    ridge, added = rng.uniform(0.01, 1.0, batch), rng.choice([0.0, 1e-3, 0.03, 2.0], batch)
    surrogate = make(model, FixedArms(KERNEL, DOMAIN, ridge), added)
    alone = {
        i: make(model, FixedArms(KERNEL, DOMAIN, ridge[[i]]), added[[i]])
        for i in range(0, batch, 33)
    }
    for step in range(25):
        plays, rewards = rng.integers(60, size=batch), rng.standard_normal(batch)
        active, again = rng.random(batch) < 0.7, np.full(batch, step == 9) & (ridge > 0.3)
        surrogate.restart(again, added)
        tell(surrogate, plays, rewards, active)
        for i, one in alone.items():
            one.restart(again[[i]], added[[i]])
            tell(one, plays[[i]], rewards[[i]], active[[i]])
    normals = rng.standard_normal((batch, len(surrogate.basis.phi)))
    drawn = surrogate.sample(normals)
    for i, one in alone.items():
        for name in ("mean", "variance", "gain", "held"):
            assert np.array_equal(getattr(surrogate, name)[i], getattr(one, name)[0])
        m = one.basis.rank[0]
        assert np.array_equal(drawn[i, :m], one.sample(normals[[i]])[0, :m])


@every_model
def test_a_restart_leaves_the_prior(model: str) -> None:
    surrogate = make(model, arms_of(KERNEL, DOMAIN, 0.1, 2), 0.03)
    feed(surrogate, *some(60, 20))
    surrogate.restart(np.array([True, False]), np.zeros(2))
    assert not surrogate.mean[0].any()
    assert surrogate.mean[1].any()
    assert surrogate.variance[0] == pytest.approx(1.0, abs=1e-12)
    assert (surrogate.held.tolist(), surrogate.gain[0]) == ([0, 20], 0.0)
    fresh = make(model, arms_of(KERNEL, DOMAIN, 0.1, 2), 0.03)
    for one in (surrogate, fresh):
        feed(one, *some(60, 10, seed=4))
    assert np.array_equal(surrogate.mean[0], fresh.mean[0])
    assert np.array_equal(surrogate.variance[0], fresh.variance[0])


@every_model
def test_errors_do_not_build_up(model: str) -> None:
    surrogate = make(model, arms_of(KERNEL, DOMAIN, 1e-3), 1e-3)
    arms = np.random.default_rng(1).choice([3, 4, 40], size=3_000)
    feed(surrogate, arms, np.sin(arms.astype(float)))
    action_set, size = arms_of(KERNEL, DOMAIN, 1e-3), 4.0 if model == "walk" else 1.0
    rank = action_set.basis.rank[0]
    mean, variance, _ = surrogate.predictor(0)(action_set.basis.phi[:rank])
    assert surrogate.mean[0] == pytest.approx(mean, abs=1e-10)
    left = size * action_set.basis.residual[0]
    assert surrogate.variance[0] == pytest.approx(variance + left, abs=1e-11)
    assert surrogate.variance[0, 40] > 0
