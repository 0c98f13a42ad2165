"""Agents on kernels with a lengthscale for each dimension, and on kernels made of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import kinds

import wgp_agents
from wgp_agents import WGPUCB, AdaptiveWGPUCB, SWLinUCB
from wgp_agents.algorithms.linear.defaults import linear_dim
from wgp_agents.gp.spectrum import mercer_spectrum
from wgp_gym.kernels import Kernel, Linear, Matern, OnColumns, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

SE = SquaredExponential
DOMAIN = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 6)] * 2), axis=-1).reshape(-1, 2)


def problem(kernel: Kernel, **kwargs: Any) -> BanditProblem:
    return BanditProblem(kernel, DOMAIN, 200, 0.1, 1.0, 1.0, **kwargs)


def played(agent: Any, steps: int = 25) -> list[int]:
    rng, actions = np.random.default_rng(0), []
    agent.reset(0)
    for _ in range(steps):
        actions.append(agent.act())
        agent.observe(actions[-1], float(np.sin(5 * DOMAIN[actions[-1], 0])) + rng.normal(0, 0.1))
    return actions


@pytest.mark.parametrize("name", kinds())
def test_every_kind_of_agent_plays_a_product_kernel(name: str) -> None:
    kernel = OnColumns(SE(0.3), 0) * OnColumns(SE(0.5), 1)
    assert len(played(wgp_agents.make(name, problem(kernel)), 12)) == 12


def test_a_product_over_columns_is_the_kernel_of_two_lengths() -> None:
    one = WGPUCB(problem(SE((0.3, 0.6))), discount=0.9)
    two = WGPUCB(problem(OnColumns(SE(0.6), 1) * OnColumns(SE(0.3), 0)), discount=0.9)
    assert played(one) == played(two)
    for a, b in zip(one.posterior(), two.posterior(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)


@pytest.mark.parametrize("features", ["quadrature", "random"])
def test_fourier_features_of_two_lengths(features: Any) -> None:
    exact = WGPUCB(problem(SE((0.4, 0.8))), discount=0.9)
    other = WGPUCB(problem(SE((0.4, 0.8))), discount=0.9, features=features)
    most = {"quadrature": 1e-5, "random": 0.2}[features]
    assert np.max(other.feature_error()) < most
    # With the lengths of the other dimension each, the error would be of the order of 1.
    swapped = WGPUCB(problem(SE((0.8, 0.4))), discount=0.9, features=features)
    table = swapped.action_set.domain_features(np.arange(len(DOMAIN)))
    assert np.abs(table @ table.T - SE((0.4, 0.8))(DOMAIN, DOMAIN)).max() > 0.3
    played(exact)


def test_quadrature_is_as_fine_as_the_shortest_length_asks() -> None:
    with pytest.raises(ValueError, match=r"'features' parameter of WGPUCB .* nodes"):
        WGPUCB(problem(SE((0.5, 0.004))), discount=0.9, features="quadrature")


def test_adaptive_takes_factors_of_each_dimension() -> None:
    rows = [(1.0, 1.0), (0.5, 2.0)]
    agent = AdaptiveWGPUCB(problem(SE(0.4)), lengthscales=rows)
    own = AdaptiveWGPUCB(problem(SE((0.4, 0.4))), lengthscales=np.array(rows))
    assert played(agent) == played(own)
    belief = agent.belief()
    assert tuple(np.asarray(belief.lengthscale).tolist()) in rows
    alone = AdaptiveWGPUCB(problem(SE((0.2, 0.8))), lengthscales=[1.0])
    only = AdaptiveWGPUCB(problem(SE(0.4)), lengthscales=rows[1:])
    assert played(alone) == played(only)
    assert np.asarray(only.belief().lengthscale).tolist() == [0.5, 2.0]
    batch = AdaptiveWGPUCB(BanditProblem.stack([problem(SE(0.4))] * 3), lengthscales=rows)
    batch.reset(0)
    assert np.shape(batch.belief().lengthscale) == (3, 2)


def test_a_kernel_without_lengthscales_is_one_model() -> None:
    sizes = {}
    for kernel in (Linear(), OnColumns(Linear(), 0) + Linear(), SE(0.3), SE(0.3) * Linear()):
        agent = AdaptiveWGPUCB(problem(kernel), drifts=[0.0], noise_ratios=[0.1])
        sizes[str(kernel)[:10]] = len(agent.bank.models.table)
    assert list(sizes.values()) == [1, 1, 2, 2]


@pytest.mark.parametrize("bad", [[[1.0]], [[1.0, 0.0]], [[1.0, 2.0], [1.0]], [[[1.0, 2.0]]], [[]]])
def test_other_factors_are_refused(bad: Any) -> None:
    with pytest.raises(
        ValueError, match="'lengthscales' parameter of AdaptiveWGPUCB must be a list"
    ):
        AdaptiveWGPUCB(problem(SE(0.4)), lengthscales=bad)


def test_linear_agents_count_the_features_of_a_product() -> None:
    kernel = OnColumns(Linear(), 0) * OnColumns(Linear(), 1) + Linear()
    assert linear_dim(problem(kernel)) == 3
    assert linear_dim(problem(SE(0.2))) == linear_dim(problem(Linear())) == 2
    agent = SWLinUCB(problem(kernel), window=10)
    played(agent)
    assert agent.action_set.basis.rank.max() <= 3
    matern = wgp_agents.make("qff-wgp-ucb", problem(OnColumns(Matern(0.5), 0)))
    assert np.max(matern.feature_error()) < 0.01


class Periodic(SquaredExponential):
    """A subclass that computes in its own way: exp(-2 sin^2(pi (x - y)) / l^2)."""

    def __call__(self, X: Array, Y: Array) -> Array:
        apart = X[..., :, None, 0] - Y[..., None, :, 0]
        (length,) = self.lengths(1)
        return np.asarray(np.exp(-2 * np.sin(np.pi * apart) ** 2 / length**2))


class Halved(Matern):
    """A subclass with k(x, x) = 1/2."""

    def __call__(self, X: Array, Y: Array) -> Array:
        return super().__call__(X, Y) / 2

    def diagonal(self, X: Array) -> Array:
        return super().diagonal(X) / 2


class Loud(SquaredExponential):
    """k(x, x) = 4, while the inherited diagonal says 1."""

    def __call__(self, X: Array, Y: Array) -> Array:
        return 4 * super().__call__(X, Y)


class Wave(SquaredExponential):
    """cos(9 |x - y|^2): no kernel, since it is not positive semi-definite."""

    def __call__(self, X: Array, Y: Array) -> Array:
        return np.asarray(np.cos(9 * (X[..., :, None, 0] - Y[..., None, :, 0]) ** 2))


LINE = np.linspace(0, 1, 40)[:, None]


@pytest.mark.parametrize("kernel", [Periodic(0.3), Halved(0.3), Halved(0.3) * SE(0.2)])
@pytest.mark.parametrize("features", ["quadrature", "random"])
def test_a_subclass_that_computes_otherwise_has_no_parent_s_frequencies(
    kernel: Kernel, features: Any
) -> None:
    with pytest.raises(ValueError, match=r"'kernel' parameter of \w+_features must be "):
        WGPUCB(BanditProblem(kernel, LINE, 200, 0.1, 1.0, 1.0), features=features)
    exact = WGPUCB(BanditProblem(kernel, LINE, 200, 0.1, 1.0, 1.0), discount=0.9)
    table = exact.action_set.domain_features(np.arange(len(LINE)))
    np.testing.assert_allclose(table @ table.T, kernel(LINE, LINE), atol=1e-7)


@pytest.mark.parametrize(
    ("kernel", "rule"),
    [(Loud(0.2), "whose `diagonal` returns its k"), (Wave(0.2), "positive semi-definite")],
)
def test_what_is_no_kernel_is_refused(kernel: Kernel, rule: str) -> None:
    with pytest.raises(ValueError, match=rf"'kernel' parameter of exact_features must be .*{rule}"):
        WGPUCB(BanditProblem(kernel, LINE, 200, 0.1, 1.0, 1.0))
    with pytest.raises(ValueError, match=rf"'kernel' parameter of mercer_spectrum must .*{rule}"):
        mercer_spectrum(kernel, LINE)


def test_a_kernel_in_single_precision_by_another_sum_is_one() -> None:
    class Single(SquaredExponential):
        def __call__(self, X: Array, Y: Array) -> Array:
            x, y = X.astype(np.float32), Y.astype(np.float32)
            square = np.sum(x**2, axis=-1)[..., :, None] + np.sum(y**2, axis=-1)[..., None, :]
            square = square - 2 * x @ np.swapaxes(y, -1, -2)
            return np.asarray(np.exp(-square / (2 * self.lengths(1)[0] ** 2)), float)

    domain = np.random.default_rng(0).random((200, 3))
    agent = WGPUCB(BanditProblem(Single(0.2), domain, 200, 0.1, 1.0, 1.0))
    assert np.max(agent.feature_error()) < 1e-2
