"""Discounted data by the arms played: beside dense algebra, and beside features alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.gp.action_sets import FixedArms, Points
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates import kernel_form, weighted
from wgp_agents.gp.surrogates.posteriors import GramPosterior
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate
from wgp_gym.kernels import Matern
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]
N, RIDGES, ETAS = 90, np.array([0.01, 0.3, 0.01]), np.array([0.2, 0.97, 1.0])
DOMAIN, KERNEL = np.linspace(0.0, 1.0, N)[:, None], Matern(0.05)
K = KERNEL(DOMAIN, DOMAIN)
PROBLEM = BanditProblem(KERNEL, DOMAIN, 200, 0.1, 1.0, 1.0)
EVERYBODY = np.ones(3, bool)


class Dense:
    """All plays of one learner with their weights, and Eq. (3)-(4) in t x t matrices."""

    def __init__(self, ridge: float) -> None:
        self.ridge, self.arms = ridge, np.zeros(0, int)
        self.w, self.y = np.zeros(0), np.zeros(0)

    def learn(self, eta: float, arm: int, reward: float) -> None:
        self.w = np.append(eta * self.w, 1.0)
        self.arms, self.y = np.append(self.arms, arm), np.append(self.y, reward)

    def posterior(self) -> tuple[Floats, Floats, Floats, float]:
        """Return mean, variance, that of Theorem 2, and gamma-bar."""
        root, k = np.sqrt(self.w), K[self.arms]
        M = root[:, None] * K[np.ix_(self.arms, self.arms)] * root + self.ridge * np.eye(len(root))
        C = root[:, None] * np.linalg.solve(M, root[:, None] * k)  # mean = C^T y
        variance = K.diagonal() - np.sum(k * C, axis=0)
        # Theorem 2: lambda |V^{-1} phi|^2 in the norm of A2 + lambda I, V^{-1} by Woodbury
        u = k - K[np.ix_(self.arms, self.arms)] @ C  # lambda phi_s^T V^{-1} phi
        own = K.diagonal() - 2 * np.sum(k * C, axis=0) + np.sum(C * (k - u), axis=0)
        tight = own + np.sum((self.w[:, None] * u) ** 2, axis=0) / self.ridge
        double = self.w[:, None] * K[np.ix_(self.arms, self.arms)] * self.w / self.ridge
        gain = np.linalg.slogdet(np.eye(len(self.w)) + double)[1] / 2
        return C.T @ self.y, variance, tight, float(gain)


class Known(DiscountSurrogate):
    """A surrogate that says what it chooses from."""

    def __init__(self, tight: bool, ridges: Floats = RIDGES, etas: Floats = ETAS) -> None:
        self.arms = FixedArms(KERNEL, DOMAIN, ridges)
        super().__init__(self.arms, tight=tight)
        self.restart(np.ones(len(ridges), bool), etas)


def tell(surrogate: Known, arms: Any, rewards: Any, *rest: Any) -> None:
    surrogate.update(surrogate.arms.embed(np.asarray(arms)), np.asarray(rewards), *rest)


def held_by_arms(surrogate: Known) -> list[bool]:
    posterior = surrogate._weighted
    assert isinstance(posterior, kernel_form.EitherFormPosterior)
    return list(posterior.by_arms)


def check(surrogate: Known, dense: list[Dense]) -> None:
    found = surrogate.predict(surrogate.arms.candidates)
    for i, one in enumerate(dense):
        mean, variance, tight, gain = one.posterior()
        np.testing.assert_allclose(found.mean[i], mean, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.variance[i], variance, rtol=0, atol=1e-10)
        bound = tight if surrogate._weighted.tight else variance
        np.testing.assert_allclose(found.bound_variance[i], bound, rtol=0, atol=1e-10)
        assert surrogate.gain[i] == pytest.approx(gain, abs=1e-9)


def random_plays(steps: int) -> tuple[NDArray[np.int64], Floats]:
    rng = np.random.default_rng(3)
    return rng.integers(N, size=(steps, 3)), rng.standard_normal((steps, 3))


@pytest.mark.parametrize("most", [2.0, 0.4], ids=["by-arms", "over-to-features"])
@pytest.mark.parametrize("tight", [False, True])
def test_dense(tight: bool, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With learners that wait, time that passes, plays to come, and arms that weigh nothing."""
    monkeypatch.setattr(kernel_form, "HELD_PER_FEATURE", most)
    surrogate, dense = Known(tight), [Dense(ridge) for ridge in RIDGES.tolist()]
    arms, rewards = random_plays(90)
    rng = np.random.default_rng(5)
    for t in range(90):
        active, elapsed = rng.random(3) < 0.8, rng.integers(0, 4, 3).astype(float)
        tell(surrogate, arms[t], rewards[t], active, elapsed)
        for i in np.flatnonzero(active).tolist():
            dense[i].learn(ETAS[i] ** elapsed[i], int(arms[t, i]), rewards[t, i])
        if t in (3, 50):
            check(surrogate, dense)
    # The first learner's arms leave as they fade, so that it never goes over.
    assert held_by_arms(surrogate) == [True, most > 1, most > 1]
    mean = surrogate.predict(surrogate.arms.candidates).mean[np.arange(3), arms[0]]
    surrogate.hallucinate(surrogate.arms.embed(arms[0]), EVERYBODY)
    for i, one in enumerate(dense):
        one.learn(1.0, int(arms[0, i]), mean[i])
    check(surrogate, dense)
    surrogate.elapse(np.array([1.0, 5.0, 7.0]), EVERYBODY)
    surrogate.retune(EVERYBODY, np.array([0.9, 0.5, 0.8]))
    tell(surrogate, arms[1], rewards[1], EVERYBODY)
    for i, (one, left) in enumerate(zip(dense, [0.2 * 0.9, 0.97**5 * 0.5, 0.8], strict=True)):
        one.learn(left, int(arms[1, i]), rewards[1, i])
    check(surrogate, dense)
    surrogate.restart(np.array([False, True, True]), ETAS)
    assert held_by_arms(surrogate) == [True, True, True]
    tell(surrogate, arms[2], rewards[2], EVERYBODY)
    dense[0].learn(0.9, int(arms[2, 0]), rewards[2, 0])
    for i in (1, 2):
        dense[i] = Dense(RIDGES[i])
        dense[i].learn(1.0, int(arms[2, i]), rewards[2, i])
    check(surrogate, dense)


def test_rewards_that_faded_but_are_large_still_count() -> None:
    surrogate = Known(False, RIDGES[:1], np.array([0.1]))
    one = Dense(RIDGES[0])
    for arm, reward in [(10, 1e12), *[(60, 0.0)] * 20]:
        tell(surrogate, [arm], [reward], np.ones(1, bool))
        one.learn(0.1, arm, reward)
    mean = one.posterior()[0]
    assert mean[10] > 1e-7  # 1e12 of weight 1e-20, over lambda
    found = surrogate.predict(surrogate.arms.candidates).mean[0]
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-15)


def test_at_any_points_and_arms() -> None:
    """Between the arms, where the features go on; and at plays alone."""
    surrogate, (arms, rewards) = Known(True), random_plays(30)
    for t in range(30):
        tell(surrogate, arms[t], rewards[t], EVERYBODY)
    candidates = surrogate.arms.candidates
    places, features, left = (
        candidates.places[:, 5:9],
        candidates.features[..., 5:9],
        candidates.residual,
    )
    some = Points(places, features, left[:, 5:9])
    parts = surrogate.predict(some), surrogate.predict(candidates)
    for at, all_of in zip(*parts, strict=True):
        np.testing.assert_allclose(at, all_of[:, 5:9], rtol=0, atol=1e-12)
    plays = surrogate.arms.embed(arms[7])
    for at, all_of in zip(surrogate.predict_plays(plays), parts[1], strict=False):
        np.testing.assert_allclose(at, all_of[np.arange(3), arms[7]], rtol=0, atol=1e-12)


def features_alone(action_set: FixedArms, *, tight: bool = False, rises: bool = False) -> Any:
    return GramPosterior(action_set, tight=tight)


def run(agent: GPAgent, steps: int, seed: int = 0) -> tuple[list[int], Floats]:
    noise = np.random.default_rng(seed).standard_normal(steps)
    plays: list[int] = []
    agent.reset(seed)
    go_on(agent, noise, plays)
    return plays, np.concatenate(agent.posterior())


def go_on(agent: GPAgent, noise: Floats, plays: list[int]) -> None:
    for e in noise.tolist():
        plays.append(int(agent.act(None)))
        agent.observe(plays[-1], float(np.sin(7 * DOMAIN[plays[-1], 0]) + 0.1 * e))


@pytest.mark.parametrize("name", ["wgp-ucb", "rand-wgp-ucb", "wgp-ts"])
def test_plays_are_those_of_features_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make: Callable[[], Any] = partial(wgp_agents.make, name, PROBLEM, discount=0.9)
    found = run(make(), 120)
    monkeypatch.setattr(weighted, "discounted_posterior", features_alone)
    plays, posterior = run(make(), 120)
    assert found[0] == plays
    np.testing.assert_allclose(found[1], posterior, rtol=0, atol=1e-10)
    assert len(set(plays)) > 10


def test_learner_i_is_the_single_learner_and_goes_on_from_a_state() -> None:
    problem = BanditProblem(KERNEL, DOMAIN, 200, 0.1, 1.0, 1.0, episodes=3)
    batch: Any = wgp_agents.make("wgp-ucb", problem, discount=ETAS)
    alone: Any = wgp_agents.make("wgp-ucb", PROBLEM, discount=float(ETAS[1]))
    again: Any = wgp_agents.make("wgp-ucb", PROBLEM, discount=float(ETAS[1]))
    batch.reset(4), alone.reset(5), again.reset(8)
    for t in range(60):
        if t == 40:
            again.act(None)  # so that what it has at hand is of others
            again.observe(3, 1.0)
            again.load_state_dict(alone.state_dict())
        actions = batch.act(None)
        batch.observe(actions, np.cos(actions + t))
        learners = [alone, again] if t >= 40 else [alone]
        for one in learners:
            assert one.act(None) == actions[1]
            one.observe(int(actions[1]), float(np.cos(actions[1] + t)))
    for one in (alone, again):
        for theirs, its in zip(batch.posterior(), one.posterior(), strict=True):
            np.testing.assert_array_equal(theirs[1], its)


def test_a_forged_state_is_refused() -> None:
    agent: Any = wgp_agents.make("wgp-ucb", PROBLEM, discount=0.9)
    run(agent, 5)
    state = agent.state_dict()
    (place,) = (name for name in state if name.endswith("sums.place"))
    (gram,) = (name for name in state if name.endswith("arrays.gram"))
    (mean,) = (name for name in state if name.endswith("arrays.mean"))
    assert state[gram].size == 0  # of the size of the arms alone
    for name, bad in (
        (place, np.full_like(state[place], N)),
        (place, np.full_like(state[place], -2)),
        (place, np.where(state[place] == 1, 0, state[place])),  # two arms in one place
        (place, np.where(state[place] == 1, -1, state[place])),  # and one in none
        (gram, np.zeros((1, 7, state[gram].shape[2]))),
        (mean, np.zeros((1, N - 1))),
    ):
        with pytest.raises(ValueError, match="state"):
            agent.load_state_dict({**state, name: bad})
    agent.load_state_dict(state)
