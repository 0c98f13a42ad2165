"""Every compiled kernel, and its BLAS twin, against plain numpy."""

from __future__ import annotations

import copy
import functools
import math
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_agents.kernels import blas, rank_one
from wgp_agents.kernels import gram as compiled
from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.gram_arrays import DiscountArrays
from wgp_agents.kernels.handle import Handle
from wgp_agents.kernels.rank_one import RankOneArrays

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SIZES = pytest.mark.parametrize(
    ("m", "n"),
    [(1, 1), (3, 7), (19, 100), (24, 300)],  # 128 arms are a block: one, a part, more than two
    ids=["tiny", "small", "paper", "blocks"],
)


@functools.cache
def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that Python can call and that calls a subroutine."""
    made: Callable[..., Any] = numba.njit(lambda *args: function(*args))
    return made


def features(m: int, n: int, seed: int = 0) -> Floats:
    """Return features of n arms, `(m, n)`, of norm at most 1."""
    phi = np.random.default_rng(seed).standard_normal((m, n))
    scaled: Floats = phi / np.maximum(np.linalg.norm(phi, axis=0), 1.0)
    return scaled


def gram(phi: Floats, arms: Ints, weights: Floats) -> Floats:
    """Return sum of w phi phi^T over the plays, `(m, m)`."""
    total: Floats = (phi[:, arms] * weights) @ phi[:, arms].T
    return total


def posterior(A: Floats, b: Floats, phi: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Return means and variances of all arms with V = A + ridge I inverted outright."""
    P = np.linalg.inv(A + ridge * np.eye(len(A)))
    return phi.T @ P @ b, ridge * np.einsum("ia,ij,ja->a", phi, P, phi)


def upper(V: Floats) -> Floats:
    """Return R with V = R^T R."""
    return np.asarray(np.linalg.cholesky(V).T, float, order="C")


def basis_of(phi: Floats, ridge: Floats, rank: list[int] | None = None) -> Basis:
    """Return features of which each learner uses all, or its first `rank`, and a residual."""
    m, n = phi.shape
    residual = 1e-10 * np.random.default_rng(9).random((len(ridge), n))
    ranks = np.array(rank or [m] * len(ridge))
    return Basis(phi, ridge, ranks, residual, np.sum(phi**2, axis=0))


def log_det(A: Floats, ridge: float) -> float:
    """Return log det(I + A / ridge)."""
    return float(np.linalg.slogdet(np.eye(len(A)) + A / ridge)[1])


def random_plays(n: int, steps: int, seed: int = 1) -> tuple[Ints, Floats]:
    rng = np.random.default_rng(seed)
    return rng.integers(n, size=steps), rng.standard_normal(steps)


@SIZES
def test_information_gain(m: int, n: int) -> None:
    A = gram(features(m, n), random_plays(n, 40)[0], np.ones(40))
    got = called(compiled.information_gain)(upper(A + 0.3 * np.eye(m)), m, 0.3)
    assert got == pytest.approx(log_det(A, 0.3) / 2, abs=1e-11)


@pytest.mark.slow
@SIZES
def test_posterior(m: int, n: int) -> None:
    phi = features(m, n)
    arms, rewards = random_plays(n, 50)
    A, b = gram(phi, arms, np.ones(50)), phi[:, arms] @ rewards
    R = upper(A + 0.1 * np.eye(m))
    mean, variance = np.full((2, n), math.nan)
    z, residual = np.asarray(np.linalg.solve(R.T, b), float), np.arange(n, dtype=float)
    called(compiled.posterior)(R, None, z, phi, 0.1, residual, mean, variance, None)
    expected = posterior(A, b, phi, 0.1)
    np.testing.assert_allclose([mean, variance - residual], expected, atol=1e-12)


@SIZES
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["add", "remove"])
def test_rank_one(m: int, n: int, sign: float) -> None:
    phi = features(m, n)
    arms, rewards = random_plays(n, 30)
    less, more = slice(0, 29), slice(0, 30)  # the last play is the one added or removed
    before, after = (less, more) if sign > 0 else (more, less)

    def state(part: slice) -> tuple[Floats, Floats]:
        return gram(phi, arms[part], np.ones(len(arms[part]))), phi[:, arms[part]] @ rewards[part]

    A, b = state(before)
    mean, variance = posterior(A, b, phi, 0.5)
    P = np.asarray(np.linalg.inv(A + 0.5 * np.eye(m)), float)
    play = int(arms[29]), float(rewards[29])
    room = np.empty(m), np.empty(m), np.empty(n)
    change = called(rank_one.rank_one)(sign, *play, m, phi, 0.5, P, mean, variance, *room)
    A2, b2 = state(after)
    np.testing.assert_allclose([mean, variance], posterior(A2, b2, phi, 0.5), atol=1e-12)
    np.testing.assert_allclose(P, np.linalg.inv(A2 + 0.5 * np.eye(m)), atol=1e-12)
    assert change == pytest.approx((log_det(A2, 0.5) - log_det(A, 0.5)) / 2, abs=1e-12)


def test_rank_one_refuses_a_removal_that_would_lose_the_digits() -> None:
    phi = np.ones((1, 1))
    P, mean, variance = np.full((1, 1), 1 / (1 + 1e-6)), np.ones(1), np.full(1, 1e-6)
    before = P.copy(), mean.copy(), variance.copy()
    room = np.empty(1), np.empty(1), np.empty(phi.shape[1])
    play = -1.0, 0, 1.0, 1, phi, 1e-6, P, mean, variance
    assert math.isnan(called(rank_one.rank_one)(*play, *room))
    for old, new in zip(before, (P, mean, variance), strict=True):
        np.testing.assert_array_equal(old, new)


def discount_arrays(batch: int, m: int, n: int, seed: int) -> DiscountArrays:
    """Return arrays with something in each: V is not zero at the start of a step."""
    rng = np.random.default_rng(seed)
    return DiscountArrays(
        gram=rng.standard_normal((batch, m, m)),
        target=rng.standard_normal((batch, m)),
        lost=np.zeros((batch, m)),
        double_gram=rng.standard_normal((batch, m, m)),
        mean=rng.standard_normal((batch, n)),
        variance=rng.standard_normal((batch, n)),
        gain=rng.standard_normal(batch),
        tight=rng.standard_normal((batch, n)),
    )


def test_discount_update_fades_and_adds_for_those_who_learn() -> None:
    phi, steps, discount = features(5, 12), 25, np.array([0.5, 0.9, 1.0, 0.7])
    active = np.array([True, True, True, False])
    state, start = discount_arrays(4, 5, 12, seed=3), discount_arrays(4, 5, 12, seed=3)
    basis = basis_of(phi, np.ones(4))
    rng = np.random.default_rng(4)
    arms, rewards = rng.integers(12, size=(steps, 4)), rng.standard_normal((steps, 4))
    for t in range(steps):
        x = phi.T[arms[t]]
        compiled.discount_update(1.0, x, rewards[t], active, discount, basis, state)
    for i in range(3):
        w, x = discount[i] ** np.arange(steps - 1, -1, -1.0), phi[:, arms[:, i]]
        fade = discount[i] ** steps
        A = fade * start.gram[i] + gram(phi, arms[:, i], w)
        A2 = fade**2 * start.double_gram[i] + gram(phi, arms[:, i], w**2)
        b = fade * start.target[i] + x @ (w * rewards[:, i])
        np.testing.assert_allclose(state.gram[i], A, atol=1e-12)
        np.testing.assert_allclose(state.double_gram[i], A2, atol=1e-12)
        np.testing.assert_allclose(state.target[i], b, atol=1e-12)
    for array, same in zip(state, start, strict=True):
        np.testing.assert_array_equal(array[3], same[3])


@pytest.mark.parametrize("implementation", [compiled, blas], ids=["compiled", "blas"])
@pytest.mark.parametrize(("m", "n"), [(4, 9), (70, 1_100)], ids=["small", "blocks"])
def test_posteriors(implementation: ModuleType, m: int, n: int) -> None:
    phi, ridge = features(m, n), np.array([1e-3, 1.0, 100.0])
    state, start = discount_arrays(3, m, n, seed=5), discount_arrays(3, m, n, seed=5)
    for i, w in enumerate(np.power.outer([0.8, 0.95, 1.0], np.arange(89, -1, -1.0))):
        arms, _ = random_plays(n, 90, seed=i)
        state.gram[i], state.double_gram[i] = gram(phi, arms, w), gram(phi, arms, w**2)
    basis = basis_of(phi, ridge, rank=[m, m, m - 2])
    implementation.posteriors(np.array([True, False, True]), basis, state)
    for i in (0, 2):
        used = slice(0, int(basis.rank[i]))
        A, A2 = state.gram[i, used, used], state.double_gram[i, used, used]
        mean, variance = posterior(A, state.target[i, used], phi[used], ridge[i])
        np.testing.assert_allclose(state.mean[i], mean, rtol=1e-11, atol=1e-9)
        np.testing.assert_allclose(state.variance[i], variance + basis.residual[i], atol=1e-11)
        x = np.linalg.solve(A + ridge[i] * np.eye(len(A)), phi[used])  # V^{-1} phi
        middle = A2 + ridge[i] * np.eye(len(A))
        tight = ridge[i] * np.einsum("ia,ij,ja->a", x, middle, x)
        np.testing.assert_allclose(state.tight[i], tight + basis.residual[i], atol=1e-11)
        assert state.gain[i] == pytest.approx(log_det(A2, ridge[i]) / 2, abs=1e-9)
    for array, same in zip(state[4:], start[4:], strict=True):
        np.testing.assert_array_equal(array[1], same[1])


def rank_one_arrays(batch: int, m: int, n: int, ridge: float) -> RankOneArrays:
    """Return arrays that know nothing yet."""
    return RankOneArrays(
        inverse=np.tile(np.eye(m) / ridge, (batch, 1, 1)),
        mean=np.zeros((batch, n)),
        variance=np.zeros((batch, n)),
        gain=np.zeros(batch),
        counts=np.zeros((batch, n), np.int64),
        sums=np.zeros((batch, n)),
        lost=np.zeros((batch, n)),
        age=np.zeros(batch, np.int64),
    )


@pytest.mark.parametrize("ridge", [1e-6, 0.1, 10.0])
def test_rank_one_update_adds_and_removes_for_those_who_learn(ridge: float) -> None:
    phi, batch, steps = features(6, 20), 3, 200
    state = rank_one_arrays(batch, 6, 20, ridge)
    state.variance[:] = np.sum(phi**2, axis=0)
    rng = np.random.default_rng(6)
    arms, rewards = rng.integers(20, size=(steps, batch)), rng.standard_normal((steps, batch))
    active = np.array([True, False, True])
    basis = basis_of(phi, np.full(batch, ridge))._replace(residual=np.zeros((batch, 20)))
    handle = Handle()
    for t in range(steps):
        rank_one.rank_one_update(active, 1.0, arms[t], rewards[t], basis, state, handle)
        if t >= 15:
            old = arms[t - 15], rewards[t - 15]
            rank_one.rank_one_update(active, -1.0, *old, basis, state, handle)
    for i in (0, 2):
        x, y = arms[-15:, i], rewards[-15:, i]
        A = gram(phi, x, np.ones(15))
        mean, variance = posterior(A, phi[:, x] @ y, phi, ridge)
        np.testing.assert_allclose(state.mean[i], mean, atol=1e-8)
        np.testing.assert_allclose(state.variance[i], variance, atol=1e-9)
        assert state.gain[i] == pytest.approx(log_det(A, ridge) / 2, abs=1e-8)
        np.testing.assert_array_equal(state.counts[i], np.bincount(x, minlength=20))
        np.testing.assert_allclose(state.sums[i], np.bincount(x, y, minlength=20), atol=1e-12)
    untouched = rank_one_arrays(1, 6, 20, ridge)._replace(variance=np.sum(phi**2, axis=0)[None])
    for array, same in zip(state, untouched, strict=True):
        np.testing.assert_array_equal(array[1], same[0])


def test_a_handle_follows_arrays_that_are_replaced_and_no_copy_writes_to_the_first() -> None:
    def learn(handle: Handle, basis: Basis, state: RankOneArrays) -> None:
        given = np.zeros(1, np.int64), np.ones(1)
        rank_one.rank_one_update(np.ones(1, bool), 1.0, *given, basis, state, handle)

    basis = basis_of(features(6, 20), np.ones(1))._replace(residual=np.zeros((1, 20)))
    first, handle = rank_one_arrays(1, 6, 20, 1.0), Handle()
    learn(handle, basis, first)
    for one in (handle, copy.deepcopy(handle), pickle.loads(pickle.dumps(handle))):
        second = rank_one_arrays(1, 6, 20, 1.0)
        learn(one, basis, second)
        for ours, theirs in zip(second, first, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert first.counts.sum() == 1
