"""Thompson samples and randomised widths: their laws, and the plays that follow from them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest
from told import tell

import wgp_agents
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import normal_variates
from wgp_agents.gp.action_sets import FixedArms
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates import posteriors
from wgp_agents.gp.surrogates.base import Surrogate
from wgp_agents.gp.surrogates.weighted import (
    DiscountSurrogate,
    RestartSurrogate,
    WindowSurrogate,
)
from wgp_agents.kernels import sampling
from wgp_agents.kernels.scores import sampled_scores
from wgp_gym.kernels import Kernel, Matern, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

SMOOTH, ROUGH = SquaredExponential(0.2), Matern(0.2, 0.5)  # of some 19 and of 100 features
DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]
RIDGES = np.array([1e-4, 0.01, 1.0])  # the first asks for more features than the others
DISCOUNTS = np.array([0.8, 0.95, 1.0])
STEPS, SEED, WINDOW = 30, 5, 12


def problem(
    kernel: Kernel, *, continuous: bool = False, domain: Floats = DOMAIN, batch: int | None = 3
) -> BanditProblem:
    each = 1.0 if batch is None else np.ones(batch)
    return BanditProblem(kernel, domain, 500, 0.1, each, each, continuous=continuous)


def make(name: str, source: BanditProblem, seed: int = SEED, **parameters: Any) -> GPAgent:
    agent = wgp_agents.make(name, source, **parameters)
    assert isinstance(agent, GPAgent)
    agent.reset(seed)
    return agent


def covariances(
    kernel: Kernel, plays: Floats, w: Floats, ridge: float
) -> tuple[Floats, Floats, Floats]:
    """Return C, lambda V^{-1} and lambda V^{-1} V~ V^{-1} as kernels on the domain, t x t only.

    The mean is C y, C = k_t(x)^T (K + lambda W^{-1})^{-1}. Weighted least squares leave an error
    f - C f, of covariance k - C k - k C^T + C k C^T, and make C noise of the noise: the sum of
    both is the second one.
    """
    K, k, prior = kernel(plays, plays), kernel(DOMAIN, plays), kernel(DOMAIN, DOMAIN)
    C = np.asarray(np.linalg.solve(K + ridge * np.diag(1 / w), k.T).T, float)
    left = prior - C @ k.T
    return C, left, left - k @ C.T + C @ K @ C.T + ridge * C @ C.T


def jacobians(surrogate: Surrogate, batch: int, m: int) -> Floats:
    """Return J of every learner, samples = J normals, by unit vectors, `(B, m, m)`."""
    rows = [surrogate.sample(np.tile(unit, (batch, 1))) for unit in np.eye(m)]
    return np.stack(rows, axis=2)


SURROGATES: dict[str, Any] = {
    "restart": (RestartSurrogate, np.full(3, math.inf)),
    "window": (WindowSurrogate, np.full(3, float(WINDOW))),
    "discount": (DiscountSurrogate, DISCOUNTS),
    "tight": (partial(DiscountSurrogate, tight=True), DISCOUNTS),
}


def weights_of(name: str, i: int) -> Floats:
    if name == "window":
        return np.ones(WINDOW)
    discount = 1.0 if name == "restart" else DISCOUNTS[i]
    return np.asarray(discount ** np.arange(STEPS - 1, -1, -1.0))


@pytest.mark.parametrize(
    ("kernel", "many"),  # above `many` features it is BLAS: for none, the first learner, all, none
    [(SMOOTH, 64), (SMOOTH, 18), (ROUGH, 64), (ROUGH, 200)],
    ids=["few", "few-mixed", "many", "many-compiled"],
)
@pytest.mark.parametrize("name", SURROGATES)
def test_samples_have_the_covariance(
    name: str, kernel: Kernel, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posteriors, "MANY_FEATURES", many)
    rng, (form, forgetting) = np.random.default_rng(1), SURROGATES[name]
    action_set = FixedArms(kernel, DOMAIN, RIDGES)
    surrogate, basis = form(action_set), action_set.basis
    surrogate.restart(np.ones(3, bool), forgetting)
    plays = rng.integers(100, size=(STEPS, 3))
    for arms in plays:
        tell(surrogate, arms, rng.standard_normal(3))
    J = jacobians(surrogate, 3, len(basis.phi))
    for i, ridge in enumerate(RIDGES.tolist()):
        w, m = weights_of(name, i), int(basis.rank[i])
        _, standard, tight = covariances(kernel, DOMAIN[plays[-len(w) :, i]], w, ridge)
        found = basis.phi.T @ J[i]
        wanted = standard if name in ("restart", "window") else tight
        np.testing.assert_allclose(found @ found.T, wanted, rtol=0, atol=2e-8)
        assert not J[i, m:].any()  # no feature that the learner does not use
        assert np.abs(tight - standard).max() > 1e-4 or w.min() == 1
    assert basis.rank[0] > 18 >= basis.rank[2] or kernel is ROUGH


@pytest.mark.parametrize(("dim", "many"), [(1, 18), (1, 64), (2, 64)])
@pytest.mark.parametrize("name", SURROGATES)
def test_samples_do_not_depend_on_the_others(
    name: str, dim: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posteriors, "MANY_FEATURES", many)
    side = np.linspace(0.0, 1.0, [100, 12][dim - 1])
    points = np.stack(np.meshgrid(*[side] * dim), axis=-1).reshape(-1, dim)
    plays = np.random.default_rng(1).integers(len(points), size=STEPS)
    normals = np.random.default_rng(2).standard_normal(len(points))

    def _drawn(learners: list[int]) -> Floats:
        form, forgetting = SURROGATES[name]
        action_set, everyone = (
            FixedArms(SMOOTH, points, RIDGES[learners]),
            np.ones(len(learners), bool),
        )
        surrogate = form(action_set)
        surrogate.restart(everyone, forgetting[learners])
        for t, arm in enumerate(plays):
            tell(surrogate, np.full(len(learners), arm), np.full(len(learners), t / 9))
        m = len(action_set.basis.phi)
        return np.asarray(surrogate.sample(np.tile(normals[:m], (len(learners), 1))))

    together = _drawn([0, 1, 2])
    for i in range(3):
        alone = _drawn([i])[0]
        np.testing.assert_array_equal(together[i, : len(alone)], alone)


@pytest.mark.parametrize("name", ["gp-ts", "wgp-ts"])
def test_plays_do_not_depend_on_the_others(name: str) -> None:
    together = make(name, problem(SMOOTH), regularization=RIDGES)
    alone = [
        make(name, problem(SMOOTH, batch=None), SEED + i, regularization=ridge)
        for i, ridge in enumerate(RIDGES.tolist())
    ]
    for t in range(STEPS):
        played = together.act()
        assert played.tolist() == [agent.act() for agent in alone], t
        rewards = np.sin(5 * DOMAIN[played, 0])
        together.observe(played, rewards)
        for agent, arm, reward in zip(alone, played.tolist(), rewards.tolist(), strict=True):
            agent.observe(arm, reward)


@pytest.mark.parametrize("name", SURROGATES)
def test_before_any_play_the_prior_is_drawn(name: str) -> None:
    form, forgetting = SURROGATES[name]
    action_set = FixedArms(SMOOTH, DOMAIN, RIDGES)
    surrogate = form(action_set)
    surrogate.restart(np.ones(3, bool), forgetting)
    for J in jacobians(surrogate, 3, len(action_set.basis.phi)):
        found = action_set.basis.phi.T @ J
        np.testing.assert_allclose(found @ found.T, SMOOTH(DOMAIN, DOMAIN), rtol=0, atol=1e-9)


def test_normals_are_standard_normal() -> None:
    drawn = normal_variates(UniformStreams(range(50)), 2_000)
    assert kstest(drawn.ravel(), "norm").pvalue > 0.01
    # Each stream by itself: the p-values are uniform (those of 600 seeds are, by the same test).
    assert kstest([kstest(stream, "norm").pvalue for stream in drawn], "uniform").pvalue > 0.01
    # Correlations of streams, and of neighbours in one: 4.5 / sqrt(2000), 1,275 of them in all.
    between = np.corrcoef(drawn) - np.eye(50)
    within = [np.corrcoef(stream[1:], stream[:-1])[0, 1] for stream in drawn]
    assert max(np.abs(between).max(), np.abs(within).max()) < 4.5 / math.sqrt(2_000)


def test_normals_do_not_depend_on_the_batch() -> None:
    together, alone = UniformStreams([3, 4, 5]), UniformStreams([4])
    for count in (1, 7, 300, 2):
        drawn = normal_variates(together, count)
        assert drawn.shape == (3, count)
        np.testing.assert_array_equal(drawn[1], normal_variates(alone, count)[0])
        np.testing.assert_array_equal(together.draw()[1], alone.draw()[0])


def test_the_least_and_largest_states_give_numbers_between_0_and_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for bits in (0, 2**64 - 1):
        monkeypatch.setattr(sampling, "mixed", lambda state, bits=bits: np.uint64(bits))
        assert 0 < sampling.fraction.py_func(np.uint64(1)) < 1  # type: ignore[attr-defined]


def test_the_sequence_is_that_of_splitmix64() -> None:
    # The first numbers of the authors' generator for the seed 1234567.
    states = 1234567 + np.arange(1, 4, dtype=np.uint64) * sampling.STEP  # modulo 2^64
    found = [int(sampling.mixed(state)) for state in states]
    assert found == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_the_first_normals_do_not_depend_on_how_many_there_are() -> None:
    few, many = (normal_variates(UniformStreams([3, 4]), count) for count in (5, 300))
    np.testing.assert_array_equal(few, many[:, :5])


def test_sampled_scores_are_mean_plus_width_times_the_drawn_function() -> None:
    rng = np.random.default_rng(0)
    mean, phi, w, width = (rng.standard_normal(s) for s in ((3, 50), (7, 50), (3, 7), 3))
    scores = np.full((3, 50), np.nan)
    sampled_scores(mean, phi, w, width, scores)
    np.testing.assert_allclose(scores, mean + width[:, None] * (w @ phi), rtol=0, atol=1e-12)


def drawn_weights(name: str, phi: Floats, w: Floats, ridge: float, z: Floats) -> Floats:
    """Return sqrt(lambda) V^{-1} V~^{1/2} z, or sqrt(lambda) V^{-1/2} z; columns phi `(m, t)`."""
    identity = ridge * np.eye(len(phi))
    V = (phi * w) @ phi.T + identity
    if name == "gp-ts":
        return np.asarray(math.sqrt(ridge) * np.linalg.cholesky(np.linalg.inv(V)) @ z)
    half = np.linalg.cholesky((phi * w**2) @ phi.T + identity)
    return np.asarray(math.sqrt(ridge) * np.linalg.solve(V, half @ z))


PLAYERS: dict[str, dict[str, Any]] = {
    "gp-ts": {},
    "wgp-ts": {"discount": DISCOUNTS},
    "rand-wgp-ucb": {"discount": DISCOUNTS, "scale": [0.4, 1.0, 3.0]},
}


@pytest.mark.parametrize("ridge", [0.01, 1.5, None])
@pytest.mark.parametrize("name", PLAYERS)
def test_plays_are_those_of_dense_posteriors_and_the_same_draws(
    name: str, ridge: float | None
) -> None:
    kernel, rng = SMOOTH, np.random.default_rng(2)
    agent = make(name, problem(kernel), regularization=ridge, **PLAYERS[name])
    lam = ridge or (1 + 2 / 500 if name == "gp-ts" else 0.01)
    streams, phi = UniformStreams([SEED, SEED + 1, SEED + 2]), agent.action_set.basis.phi
    arms, y, differs = np.zeros((0, 3), int), np.zeros((0, 3)), 0
    for t in range(STEPS):
        played = agent.act()
        normals = normal_variates(streams, 1 if name == "rand-wgp-ucb" else len(phi))
        streams.draw()  # ties
        for i in range(3):
            w = (1.0 if name == "gp-ts" else DISCOUNTS[i]) ** np.arange(t - 1, -1, -1.0)
            C, _, tight = covariances(kernel, DOMAIN[arms[:, i]], w, lam)
            K = w[:, None] * kernel(DOMAIN[arms[:, i]], DOMAIN[arms[:, i]]) * w
            gain = np.linalg.slogdet(np.eye(t) + K / lam)[1] / 2
            beta = 1 + 0.1 * math.sqrt(2 * (math.log(10) + gain) / lam)  # [Deng22] Algorithm 1
            if name == "gp-ts":  # [CG17] Algorithm 2: v_t
                beta = 1 + 0.1 * math.sqrt(2 * (gain + 1 + math.log(2 / 0.1)))
            np.testing.assert_allclose(agent.beta()[i], beta, rtol=0, atol=1e-7)
            mean, std = C @ y[:, i], np.sqrt(np.maximum(np.diag(tight), 0.0))
            if name == "rand-wgp-ucb":
                score = mean + PLAYERS[name]["scale"][i] * abs(normals[i, 0]) * beta * std
            else:
                drawn = drawn_weights(name, phi[:, arms[:, i]], w, lam, normals[i])
                score = mean + beta * phi.T @ drawn
            assert score[played[i]] >= score.max() - 1e-6
            bound = mean + beta * std
            differs += bound[played[i]] < bound.max() - 1e-6
        rewards = np.sin(5 * DOMAIN[played, 0]) + 0.1 * rng.standard_normal(3)
        agent.observe(played, rewards)
        arms, y = np.vstack([arms, played]), np.vstack([y, rewards])
    assert differs > STEPS / 3  # the upper confidence bound would have played otherwise


@pytest.mark.parametrize("name", ["gp-ts", "wgp-ts"])
@pytest.mark.parametrize("dim", [1, 2])
def test_on_a_box_the_drawn_function_is_maximised(name: str, dim: int) -> None:
    side, rng = np.linspace(0.0, 1.0, [1_001, 71][dim - 1]), np.random.default_rng(3)
    grid = np.stack(np.meshgrid(*[side] * dim), axis=-1).reshape(-1, dim)
    kernel = SquaredExponential([0.15, 0.4][dim - 1])
    agent = make(name, problem(kernel, continuous=True, domain=grid, batch=None))
    action_set, streams = agent.action_set, UniformStreams([SEED])
    tables = action_set.domain_features(np.arange(len(grid)))
    for _ in range(8):
        point, normals = agent.act(), normal_variates(streams, len(action_set.basis.phi))
        streams.draw()
        w, beta = agent.surrogate.sample(normals)[0], agent.beta()
        values = agent.posterior().mean + beta * tables @ w
        played = action_set.embed(point[None].astype(float))
        value = (agent.surrogate.predict_plays(played)[0] + beta * played.features @ w)[0]
        assert value >= values.max() - 1e-4 * beta
        agent.observe(point, float(np.cos(3 * point.sum()) + 0.1 * rng.standard_normal()))


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, [1.0, 2.0], "large"])
def test_bad_scales(scale: Any) -> None:
    rule = r"'scale' parameter of RandWGPUCB must be a (float in \[1e-30, |scalar or of shape)"
    with pytest.raises(ValueError, match=rule):
        make("rand-wgp-ucb", problem(SMOOTH), scale=scale)


@pytest.mark.parametrize("name", ["gp-ts", "wgp-ts"])
def test_bad_parameters(name: str) -> None:
    with pytest.raises(ValueError, match=r"'regularization' parameter of W?GPTS must be a float"):
        make(name, problem(SMOOTH), regularization=0.0)
