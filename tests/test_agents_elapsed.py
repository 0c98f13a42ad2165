"""Time that goes by otherwise than by one step a play, against dense algebra at real times."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import field
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_agents.arms.statistics import AllPlays, DiscountedPlays, WindowPlays
from wgp_agents.base import Agent
from wgp_agents.gp.agent import GPAgent
from wgp_agents.registry import agent_class, agent_parameters
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

Array = NDArray[np.float64]
ARMS = np.linspace(0.0, 1.0, 12)[:, None]
LAMBDA = 0.04
K = np.exp(-((ARMS - ARMS.T) ** 2) / (2 * 0.3**2))
TRAINED = [name for name in wgp_agents.names() if "model" in agent_parameters(name)]
TIMED = [name for name in wgp_agents.names() if agent_class(name).takes_elapsed]
TIMELESS = [name for name in wgp_agents.names() if name not in (*TIMED, *TRAINED)]


def problem(batch: int | None = None, **kwargs: Any) -> BanditProblem:
    noise = 0.2 if batch is None else np.full(batch, 0.2)
    return BanditProblem(
        SquaredExponential(0.3), ARMS, 200, noise, 2.0, 3.0, reward_range=(-2, 2), **kwargs
    )


class History:
    """Plays at random with random times between them, and when each was."""

    def __init__(self, agent: Agent, before: bool, count: int = 30, seed: int = 0) -> None:
        """Play; `before` tells whether the time of a play goes by before it counts."""
        draw = np.random.default_rng(seed)
        self.now, times, arms, rewards = 0.0, [], [], []
        for _ in range(count):
            arm, reward = int(draw.integers(len(ARMS))), float(draw.normal())
            elapsed = float(draw.choice([0.0, 0.3, 1.0, 1.0, 2.7]))
            self.now += elapsed if before else 0.0
            times.append(self.now)
            arms.append(arm)
            rewards.append(reward)
            agent.observe(arm, reward, elapsed=elapsed)
            self.now += 0.0 if before else elapsed
            if draw.random() < 0.3:
                steps = float(draw.choice([0.0, 0.5, 1.0, 4.0]))
                agent.elapse(steps)
                self.now += steps
        self.arms, self.rewards, self.times = np.array(arms), np.array(rewards), np.array(times)
        self.age = self.now - self.times


def dense(
    past: History, noise: Array, over: Callable[[Array, Array], Array], now: float = 1.0
) -> tuple[Array, Array]:
    """Return mean and std of the process k(x, x') over(t, t') at the present, by its t x t form.

    `now` is over(t, t) of the present.
    """
    t = past.times
    covariance = K[np.ix_(past.arms, past.arms)] * over(t[:, None], t) + np.diag(noise)
    cross = K[:, past.arms] * over(np.array(past.now), t)
    solved = np.linalg.solve(covariance, cross.T)
    variance = now * K.diagonal() - np.einsum("ij,ji->i", cross, solved)
    return past.rewards @ solved, np.sqrt(variance)


def still(t: Array, s: Array) -> Array:
    return np.ones(np.broadcast_shapes(t.shape, s.shape))


def agent_of(name: str, **kwargs: Any) -> GPAgent:
    agent = wgp_agents.make(name, problem(), regularization=LAMBDA, **kwargs)
    agent.reset(0)
    assert isinstance(agent, GPAgent)
    return agent


def is_dense(agent: GPAgent, found: tuple[Array, Array], tolerance: float = 1e-7) -> None:
    mean, std = agent.posterior()
    np.testing.assert_allclose(mean, found[0], rtol=0, atol=tolerance)
    np.testing.assert_allclose(std, found[1], rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ["wgp-ucb", "wgp-ts", "rand-wgp-ucb"])
def test_weights_fade_by_the_time_that_goes_by(name: str) -> None:
    agent, eta = agent_of(name, discount=0.9), 0.9
    past = History(agent, before=True)
    weights = eta**past.age
    is_dense(agent, dense(past, LAMBDA / weights, still))
    # gamma-bar = 1/2 log det(I + D K D / lambda)
    scaled = weights[:, None] * K[np.ix_(past.arms, past.arms)] * weights
    gain = 0.5 * np.linalg.slogdet(np.eye(len(weights)) + scaled / LAMBDA)[1]
    assert agent.information_gain() == pytest.approx(gain, abs=1e-6)


def test_a_gain_known_before_any_play_gives_way_to_that_of_the_plays() -> None:
    agent = agent_of("wgp-ucb", discount=0.9, gain="bound", norm_bound=1.0)
    by_plays = agent_of("wgp-ucb", discount=0.9, norm_bound=1.0)
    for one in (agent, by_plays):
        for arm in range(5):
            one.observe(arm, 1.0)
    assert agent.beta() > by_plays.beta()
    for one in (agent, by_plays):
        one.observe(3, 1.0, elapsed=0.2)
    assert agent.beta() == by_plays.beta()
    # What does not fade holds all its plays, whatever the time.
    agent = agent_of("igp-ucb", gain="bound")
    before = History(agent, before=True)
    other = agent_of("igp-ucb", gain="bound")
    for arm in before.arms.tolist():
        other.observe(arm, 1.0)
    assert agent.beta() == other.beta()


@pytest.mark.parametrize("eps", [0.0, 0.02, 1.0])
def test_a_drift_grows_with_the_time_that_goes_by(eps: float) -> None:
    agent = agent_of("tv-gp-ucb", eps=eps)
    past = History(agent, before=False)

    def _over(t: Array, s: Array) -> Array:
        return np.asarray((1 - eps) ** (np.abs(t - s) / 2))

    if eps == 1.0:  # plays at one time only go together
        agent.elapse(1.0)
        past.now += 1.0
    is_dense(agent, dense(past, np.full(len(past.arms), LAMBDA), _over))


def test_a_walk_goes_on_with_the_time_that_goes_by() -> None:
    agent, step = agent_of("ui-gp-ucb", injection=0.03), 0.03
    past = History(agent, before=False)
    noise = np.full(len(past.arms), LAMBDA)
    found = dense(past, noise, lambda t, s: 1 + step * np.minimum(t, s), now=1 + step * past.now)
    is_dense(agent, found)


def test_observations_age_with_the_time_that_goes_by() -> None:
    unknown = replace(problem(), horizon=None)  # with a known T weights are exact up to that age
    agent = wgp_agents.make(
        "ui-gp-ucb", unknown, regularization=LAMBDA, injection=0.03, model="noise"
    )
    agent.reset(0)
    assert isinstance(agent, GPAgent)
    step = 0.03
    past = History(agent, before=True)
    is_dense(agent, dense(past, LAMBDA + step * (1 + past.age), still))


def test_a_window_is_one_in_time() -> None:
    agent = agent_of("sw-gp-ucb", window=9)
    past = History(agent, before=True, count=60)
    kept = past.age < 9
    assert 3 < kept.sum() < 20
    past.arms, past.rewards, past.times = past.arms[kept], past.rewards[kept], past.times[kept]
    is_dense(agent, dense(past, np.full(len(past.arms), LAMBDA), still))
    agent.elapse(9)
    is_dense(agent, (np.zeros(len(ARMS)), np.ones(len(ARMS))))


def test_a_window_holds_more_plays_than_it_has_steps() -> None:
    agent = agent_of("sw-gp-ucb", window=2)
    draw, arms, rewards = np.random.default_rng(0), [], []
    for k in range(130):
        arms.append(int(draw.integers(len(ARMS))))
        rewards.append(float(draw.normal()))
        agent.observe(arms[-1], rewards[-1], elapsed=0.03125 if k else 0.0)
    past = History(agent, before=True, count=0)
    past.arms, past.rewards = np.array(arms[-64:]), np.array(rewards[-64:])
    past.times = np.zeros(64)
    is_dense(agent, dense(past, np.full(64, LAMBDA), still))


def test_a_period_goes_on_with_the_time_that_goes_by() -> None:
    agent = agent_of("r-gp-ucb", restart_period=5)
    prior = np.zeros(len(ARMS)), np.ones(len(ARMS))
    agent.elapse(100)  # nothing has begun
    agent.observe(3, 1.0, elapsed=2.5)
    agent.observe(3, 1.0, elapsed=0)
    agent.elapse(2.25)
    assert agent.posterior().mean[3] > 0.5
    agent.elapse(0.25)
    is_dense(agent, prior)
    agent.observe(3, 1.0, elapsed=4)
    assert agent.posterior().mean[3] > 0.5
    agent.observe(3, 1.0)
    is_dense(agent, prior)


def test_time_of_w_dbo_is_real() -> None:
    agent = agent_of("w-dbo", time_lengthscale=7.0, alpha=0.0, initial_plays=0)
    past = History(agent, before=False)

    def _matern(t: Array, s: Array) -> Array:
        gap = math.sqrt(3) * np.abs(t - s) / 7.0
        return np.asarray((1 + gap) * np.exp(-gap))

    signal = float(agent.surrogate._rules.signal[0])  # type: ignore[attr-defined]
    assert signal == 1.0
    is_dense(agent, dense(past, np.full(len(past.arms), LAMBDA), _matern))


def test_the_budget_of_w_dbo_grows_with_time() -> None:
    budgets = []
    for steps in (1.0, 3.0):
        agent = agent_of("w-dbo", time_lengthscale=7.0, alpha=0.01, initial_plays=0)
        for arm in (0, 11):
            agent.observe(arm, 1.0, elapsed=steps)
        agent.elapse(0.5)
        agent.observe(5, 1.0, elapsed=steps)
        agent.observe(2, 1.0)
        budgets.append(float(agent.surrogate.budget[0]))  # type: ignore[attr-defined]
    # From three observations on a budget stays; none is as stale as that yet.
    assert budgets == pytest.approx([1.01 ** (2.5 / 7), 1.01 ** (6.5 / 7)], rel=1e-12)


def adaptive(**kwargs: Any) -> AdaptiveWGPUCB:
    agent = AdaptiveWGPUCB(problem(), **kwargs)
    agent.reset(0)
    return agent


def gram(agent: AdaptiveWGPUCB) -> tuple[Array, Array]:
    """Return the covariance of the only model, between arms, and what its features leave out."""
    table, rank = agent.bank.features.features[0], agent.bank.models.rank[0]  # type: ignore[attr-defined]
    return table[:rank].T @ table[:rank], np.sum(table[rank:] ** 2, axis=0)


def test_a_bank_drifts_by_the_time_that_goes_by() -> None:
    agent = adaptive(drifts=[0.03], noise_ratios=[0.1], lengthscales=[1.0])
    past = History(agent, before=False, count=25)
    (G, out), t = gram(agent), past.times
    zero = past.rewards[0]
    covariance = G[np.ix_(past.arms, past.arms)] * 0.97 ** (np.abs(t[:, None] - t) / 2)
    cross = G[:, past.arms] * 0.97 ** (past.age / 2)
    solved = np.linalg.solve(covariance + np.diag(0.1 + out[past.arms]), cross.T)
    mean, variance, _ = agent.bank.standardised(agent.action_set.candidates)
    np.testing.assert_allclose(mean[0], (past.rewards - zero) @ solved, rtol=0, atol=1e-5)
    left = G.diagonal() + out - np.einsum("ij,ji->i", cross, solved)
    np.testing.assert_allclose(variance[0], left, rtol=0, atol=1e-5)


def test_a_bank_that_looks_back_knows_the_times_of_its_first_rewards() -> None:
    """An outlier among the first ten rewards has all of them learned again."""
    agent, now, times = adaptive(drifts=[0.03], noise_ratios=[0.1], lengthscales=[1.0]), 0.0, []
    rewards = [0.1, 0.3, 1e6, 0.2, -0.2, 0.0, 0.1, 0.25, 0.15, -0.1]
    for k, reward in enumerate(rewards):
        times.append(now)
        agent.observe(k, reward, elapsed=0.5 * k)
        agent.elapse(0.25 * k)
        now += 0.75 * k
    assert np.abs(agent.posterior().mean).max() < 10.0  # the outlier was moved
    (G, out), t = gram(agent), np.array(times)
    covariance = G[:10, :10] * 0.97 ** (np.abs(t[:, None] - t) / 2) + np.diag(0.1 + out[:10])
    cross = G[:, :10] * 0.97 ** ((now - t) / 2)
    solved = np.linalg.solve(covariance, cross.T)
    left = G.diagonal() + out - np.einsum("ij,ji->i", cross, solved)
    variance = agent.bank.standardised(agent.action_set.candidates)[1][0]
    np.testing.assert_allclose(variance, left, rtol=0, atol=1e-5)


def test_a_learner_that_looks_back_may_be_beside_one_for_whom_more_time_goes_by() -> None:
    pair, alone = AdaptiveWGPUCB(problem(2)), adaptive()
    pair.reset(0)
    for k in range(15):
        pair.observe(np.array([k % 12, k % 12]), np.array([0.1 * k, math.sin(k)]))
    pair.reset(learners=[True, False])
    for k, reward in enumerate((0.1, 0.3, 1e6, 0.2, -0.2, 0.0, 0.1, 0.25, 0.15, -0.1, 0.3)):
        pair.observe(np.array([k, k]), np.array([reward, 0.5]), elapsed=[0.5, 2.0])
        alone.observe(k, reward, elapsed=0.5)
    assert np.array_equal(pair.posterior().mean[0], alone.posterior().mean)
    assert np.abs(alone.posterior().mean).max() < 10.0  # the outlier was moved


@pytest.mark.parametrize("steps", [1.0, 60.0])
def test_sixty_days_widen_the_band(steps: float) -> None:
    agent = agent_of("tv-gp-ucb", eps=0.01)
    bank = adaptive(drifts=[0.01], noise_ratios=[0.1])
    for one in (agent, bank):
        for k in range(30):
            one.observe(k % 5, math.sin(k))
    left = 0.99**steps
    before, known = agent.posterior(), bank.posterior()
    zero, scale = bank.bank.zero[0], bank.bank.scale[0]
    for one in (agent, bank):
        one.elapse(steps)
    after, later = agent.posterior(), bank.posterior()
    band = np.sqrt(left * before.std**2 + (1 - left))
    np.testing.assert_allclose(after.std, band, rtol=1e-9)
    np.testing.assert_allclose(after.mean, math.sqrt(left) * before.mean, rtol=0, atol=1e-12)
    model = int(bank.bank.models.table[bank.bank.block[0]])
    table = bank.bank.features.features[model]  # type: ignore[attr-defined]
    prior = scale**2 * (table**2).sum(axis=0)
    band = np.sqrt(left * known.std**2 + (1 - left) * prior)
    np.testing.assert_allclose(later.std, band, rtol=1e-6)
    np.testing.assert_allclose(
        later.mean - zero, math.sqrt(left) * (known.mean - zero), rtol=0, atol=1e-9
    )


def test_arms_forget_by_the_time_that_goes_by() -> None:
    draw, batch, window, gamma = np.random.default_rng(0), 2, 7.0, 0.8
    kept = {
        "all": AllPlays(batch, 3),
        "fading": DiscountedPlays(batch, 3, np.array([gamma, 0.5])),
        "window": WindowPlays(batch, 3, np.array([window, np.inf])),
    }
    log: list[list[tuple[float, int, float]]] = [[], []]
    now = np.zeros(batch)
    for _ in range(120):
        arms, rewards = draw.integers(3, size=batch), draw.normal(size=batch)
        elapsed, active = draw.choice([0.0, 0.25, 1.0, 3.0], size=batch), draw.random(batch) < 0.8
        now += np.where(active, elapsed, 0.0)
        for i in np.flatnonzero(active).tolist():
            log[i].append((now[i], int(arms[i]), float(rewards[i])))
        for one in kept.values():
            one.add(arms, rewards, active, elapsed)
        if draw.random() < 0.3:
            steps, active = draw.choice([0.0, 0.5, 2.0], size=batch), draw.random(batch) < 0.5
            now += np.where(active, steps, 0.0)
            for one in kept.values():
                one.elapse(steps, active)
    weight: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
        "all": (lambda age: 1.0, lambda age: 1.0),
        "fading": (lambda age: gamma**age, lambda age: 0.5**age),
        "window": (lambda age: float(age < window), lambda age: 1.0),
    }
    for name, one in kept.items():
        for i in range(batch):
            counts, sums = np.zeros((2, 3))
            for time, arm, reward in log[i]:
                counts[arm] += weight[name][i](now[i] - time)
                sums[arm] += weight[name][i](now[i] - time) * reward
            np.testing.assert_allclose(one.counts[i], counts, rtol=0, atol=1e-12)
            np.testing.assert_allclose(one.sums[i], sums, rtol=0, atol=1e-12)
        assert one.steps.tolist() == [len(plays) for plays in log]


def made(name: str, batch: int | None = None, i: int = 0) -> tuple[Agent, Any, Any]:
    """Return an agent in its field, as the i-th of a batch, and the first observation."""
    if batch is None:
        env: Any = gymnasium.make(field(name), horizon=60)
    else:
        mode = "vector_entry_point"
        env = gymnasium.make_vec(field(name), num_envs=batch, vectorization_mode=mode, horizon=60)
    observation, _ = env.reset(seed=1 + i)
    options = {"window": 6, "restart_period": 7, "hidden": 8}
    agent = wgp_agents.make(
        name, env, **{k: v for k, v in options.items() if k in agent_parameters(name)}
    )
    agent.reset(1 + i)
    return agent, env, observation


def known(agent: Agent) -> dict[str, Any]:
    """Return the state of an agent but for the streams."""
    state = agent.state_dict()
    return {key: np.asarray(value) for key, value in state.items() if "_streams" not in key}


@pytest.mark.parametrize("name", TIMED)
def test_who_takes_time_takes_it_for_each_learner(name: str) -> None:
    """Ones are no time told, and learner i is the single one, bit for bit."""
    (batch, _, observation), (ones, *_) = made(name, 3), made(name, 3)
    draw, log = np.random.default_rng(0), []
    arms = batch.problem.domain.shape[0]
    for _ in range(15):
        action, reward = draw.integers(arms, size=3), draw.normal(size=3)
        if batch.problem.continuous:
            action = draw.random((3, batch.problem.domain.shape[1])).astype(np.float32)
        elapsed = draw.choice([0.0, 0.5, 1.0, 3.0], size=3)
        log.append((action, reward, elapsed))
        for agent, time in ((batch, elapsed), (ones, np.ones(3))):
            agent.act(observation)
            agent.observe(action, reward, elapsed=time)
        batch.elapse(elapsed, active=[True, True, False])
    plain, *_ = made(name, 3)
    singles = [made(name, None, i)[0] for i in range(3)]
    for action, reward, elapsed in log:
        plain.act(observation)
        plain.observe(action, reward)
        for i, single in enumerate(singles):
            single.act(observation[i] if single.problem.contextual else None)
            single.observe(
                action[i] if single.problem.continuous else int(action[i]),
                float(reward[i]),
                elapsed=float(elapsed[i]),
            )
            if i < 2:
                single.elapse(float(elapsed[i]))
    one, other = known(ones), known(plain)
    assert all(one[key].tobytes() == other[key].tobytes() for key in one)
    whole = known(batch)
    for i, single in enumerate(singles):
        for key, value in known(single).items():
            ring = key.endswith(("._actions", "._arms", "._rewards", "._times"))
            if value.dtype.kind == "f" and value.ndim and value.shape[0] == 1 and not ring:
                part = whole[key][i]
                size = tuple(slice(n) for n in value.shape[1:])
                assert part[size].tobytes() == value[0].tobytes(), key


@pytest.mark.parametrize("name", TIMED)
def test_time_adds_up(name: str) -> None:
    agents = [made(name)[0] for _ in range(4)]
    draw, observation = np.random.default_rng(0), made(name)[2]
    for _ in range(12):
        arm, reward = int(draw.integers(agents[0].problem.domain.shape[0])), float(draw.normal())
        for agent in agents:
            agent.act(observation)
        agents[0].observe(arm, reward, elapsed=1)
        agents[1].elapse(0.75)
        agents[1].elapse(0.25)
        agents[1].observe(arm, reward, elapsed=0)
        agents[2].observe(arm, reward, elapsed=0)
        agents[2].elapse(0.5)
        agents[2].elapse(0.5)
    told = [known(agent) for agent in agents[:3]]
    alike = [alike_in(told[0], other) for other in told[1:]]
    # Weights and windows take time before a play, drifts and periods after it.
    assert any(alike), name
    first = dict.fromkeys(("tv-gp-ucb", "ui-gp-ucb", "adaptive-wgp-ucb", "w-dbo"), 1)
    first["learned-wgp-ucb"] = 1
    assert alike[first.get(name, 0)] or name in ("r-gp-ucb", "tv-r-gp-ucb", "restart-lin-ucb")


def alike_in(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two states are the same in their numbers, but for rounding."""
    skipped = ("age", "eps", "lost", "since", "score", "_early_steps", "clock", "times")
    return all(
        value.dtype.kind != "f"
        or key.endswith(skipped)
        or (
            value.shape == other[key].shape
            and np.allclose(value, other[key], rtol=1e-8, atol=1e-9, equal_nan=True)
        )
        for key, value in one.items()
    )


@pytest.mark.parametrize("name", TIMELESS)
def test_who_knows_no_time_says_so(name: str) -> None:
    agent, _, observation = made(name)
    action = agent.act(observation)
    before = known(agent)
    with pytest.raises(ValueError, match="knows no time but its plays"):
        agent.observe(action, 1.0, elapsed=0.5)
    with pytest.raises(ValueError, match="knows no time but its plays"):
        agent.elapse(1.0)
    after = known(agent)
    assert all(before[key].tobytes() == after[key].tobytes() for key in before)
    agent.observe(action, 1.0, elapsed=1)


def test_weights_of_plays_know_no_time() -> None:
    agent = wgp_agents.make("wgp-ucb", problem(), weights=np.arange(1.0, 201.0))
    assert not agent.takes_elapsed
    agent.reset(0)
    with pytest.raises(ValueError, match="WGPUCB knows no time but its plays"):
        agent.observe(0, 1.0, elapsed=2.0)


@pytest.mark.parametrize(
    "bad", [-0.1, math.nan, math.inf, 1e16, "long", None, [1.0, 1.0], [[1.0] * 3]]
)
def test_bad_times_are_refused(bad: Any) -> None:
    agent = wgp_agents.make("wgp-ucb", problem(3))
    agent.reset(0)
    agent.observe(np.arange(3), np.ones(3))
    before = known(agent)
    with pytest.raises(ValueError, match="'elapsed' parameter of observe"):
        agent.observe(np.arange(3), np.ones(3), elapsed=bad)
    with pytest.raises(ValueError, match="'steps' parameter of elapse"):
        agent.elapse(bad)
    after = known(agent)
    assert all(before[key].tobytes() == after[key].tobytes() for key in before)


def test_the_times_of_the_inactive_are_not_read() -> None:
    agents = [wgp_agents.make("wgp-ucb", problem(3), discount=0.9) for _ in range(2)]
    active = [True, False, True]
    told: Any = [2.0, None, 0.5], [2.0, 1.0, 0.5]
    for agent, elapsed in zip(agents, told, strict=True):
        agent.reset(0)
        agent.observe(np.arange(3), np.ones(3))
        agent.observe(np.arange(3), np.ones(3), active=active, elapsed=elapsed)
        agent.elapse(elapsed, active=active)
        agent.elapse(3.0, active=[False] * 3)
    one, other = (known(agent) for agent in agents)
    assert all(one[key].tobytes() == other[key].tobytes() for key in one)
