"""A user's own acquisition, surrogate and restart rule: written in a few lines, played everywhere.

The three classes are those of agents/README.md.
"""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct

import wgp_agents
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.acquisition import Acquisition, ThompsonSampling, UpperBound
from wgp_agents.gp.action_sets import ActionSet, FixedArms, Plays, Points
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.restart_rule import RestartRule
from wgp_agents.gp.surrogates.base import Prediction, Surrogate, forget_all
from wgp_agents.gp.surrogates.weighted import RestartSurrogate, WindowSurrogate
from wgp_gym.fourier import random_features
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Indices, Mask


class ExpectedImprovement(Acquisition):
    """E max(f(x) - best, 0), best the largest posterior mean of the candidates."""

    def draw(self, surrogate: Surrogate, points: Points, uniform: UniformStreams) -> Array:
        """Return best of every learner, `(B, 1)`."""
        best: Array = surrogate.predict(points).mean.max(axis=1, keepdims=True)
        return best

    def score(self, points: Points, prediction: Prediction, width: Array, draw: Array) -> Array:
        """Return the expected improvements, `(k, q)`."""
        std = np.sqrt(np.maximum(prediction.variance, 1e-24))
        z = (prediction.mean - draw) / std
        improvement: Array = std * (z * norm.cdf(z) + norm.pdf(z))
        return improvement


class BayesianRegression(Surrogate):
    """Rewards phi(x)^T theta + noise of variance lambda, theta standard normal."""

    def __init__(self, action_set: ActionSet) -> None:
        super().__init__(action_set)
        batch, m = len(self.held), len(self.basis.phi)
        self.precision, self.target = np.zeros((batch, m, m)), np.zeros((batch, m))

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Go back to the prior, whose precision is I."""
        self.precision[mask] = np.eye(self.target.shape[1])
        self.target[mask], self.held[mask] = 0.0, 0

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Add phi phi^T / noise to the precision P, and phi y / noise to b."""
        phi, noise = plays.features, self.basis.regularization + plays.residual
        scaled = phi / noise[:, None]
        self.precision[active] += (scaled[:, :, None] * phi[:, None, :])[active]
        self.target[active] += (scaled * rewards[:, None])[active]
        self.held += active

    def predict(self, points: Points, learners: Indices | None = None) -> Prediction:
        """Return phi^T P^{-1} b and phi^T P^{-1} phi, `(k, q)` each."""
        who = slice(None) if learners is None else learners
        phi = self.features_of(points, learners)
        solved = np.linalg.solve(self.precision[who], phi)
        mean = np.sum(self.target[who][:, :, None] * solved, axis=1)
        variance = np.sum(phi * solved, axis=1) + points.residual
        return Prediction(mean, variance, variance)

    def sample(self, normals: Array) -> Array:
        """Return U^{-1} z, of covariance P^{-1} since P = U^T U."""
        upper = np.linalg.cholesky(self.precision, upper=True)
        return np.linalg.solve(upper, normals[:, :, None])[:, :, 0]


class RestartEvery(RestartRule):
    """Empties the surrogate before every choice that finds it holding so many observations."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def before_act(self, surrogate: Surrogate, uniform: UniformStreams) -> None:
        """Forget what is full."""
        forget_all(surrogate, surrogate.held >= self.steps)


STEPS, SEED, NOISE = 40, 3, 0.1
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "arms": ("WGPBandit-Stationary-v0", {}),
    "box": ("WGPBandit-Stationary-v0", {"continuous": True}),
    "changing": (
        "WGPBandit-LinearContextual-v0",
        {"num_arms": 12, "change_points": [], "theta": [[0.6, -0.8]], "noise_std": NOISE},
    ),
}
ACQUISITIONS: dict[str, Any] = {
    "ei": ExpectedImprovement,
    "ucb": UpperBound,
    "ts": ThompsonSampling,
}
SURROGATES: dict[str, Any] = {"own": BayesianRegression, "ours": RestartSurrogate}
every_task = pytest.mark.parametrize("task", TASKS)


def make_env(task: str, batch: int | None = None) -> Any:
    name, parameters = TASKS[task]
    if batch is None:
        return gymnasium.make(name, horizon=STEPS, **parameters)
    mode = "vector_entry_point"
    return gymnasium.make_vec(
        name, num_envs=batch, vectorization_mode=mode, horizon=STEPS, **parameters
    )


def fourier(task: str) -> Any:
    """Return 200 random Fourier features of a task's points."""
    dim, lengthscale = (2, 1.0) if task == "changing" else (1, 0.2)
    return random_features(SquaredExponential(lengthscale), dim, 100, seed=0)


def make(source: Any, task: str, surrogate: Any = BayesianRegression, **parameters: Any) -> GPAgent:
    return GPAgent(
        source, surrogate=surrogate, confidence_width=2.0, features=fourier(task), **parameters
    )


def played(agent: GPAgent, env: Any, seed: int = SEED) -> tuple[NDArray[Any], Array]:
    """Return the actions and regrets of an episode, `(T, B, ...)` and `(T, B)`."""
    observation, _ = env.reset(seed=seed)
    agent.reset(seed)
    actions, regrets = [], []
    for _ in range(STEPS):
        actions.append(agent.act(observation))
        observation, reward, _, _, info = env.step(actions[-1])
        agent.observe(actions[-1], reward)
        regrets.append(info["regret"])
    batch = agent.num_learners
    return np.array(actions).reshape(STEPS, batch, -1), np.array(regrets).reshape(STEPS, batch)


def by_chance(env: Any) -> float:
    """Return the regret of a step at random."""
    return float(played(wgp_agents.make("random", env), env)[1].mean())  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(("own", "acquisition"), [*itertools.product(SURROGATES, ACQUISITIONS)])
@every_task
def test_any_acquisition_learns_by_any_surrogate(task: str, own: str, acquisition: str) -> None:
    def _agent(env: Any) -> GPAgent:
        return make(env, task, SURROGATES[own], acquisition=ACQUISITIONS[acquisition]())

    env = make_env(task, 2)
    actions, regrets = played(_agent(env), env)
    assert regrets[-15:].mean() < 0.25 * by_chance(env)
    for i in range(2):
        alone = make_env(task)
        found = played(_agent(alone), alone, SEED + i)
        np.testing.assert_array_equal(found[0][:, 0], actions[:, i])
    one = make_env(task, 1)
    np.testing.assert_array_equal(played(_agent(one), one)[0][:, 0], actions[:, 0])


@pytest.mark.slow
@every_task
@pytest.mark.parametrize("acquisition", ["ei", "ucb"])  # ours draws functions by another factor
def test_the_own_surrogate_plays_as_ours_does(task: str, acquisition: str) -> None:
    env, runs = make_env(task, 2), []
    for surrogate in SURROGATES.values():
        agent = make(env, task, surrogate, acquisition=ACQUISITIONS[acquisition]())
        runs.append((played(agent, env)[0], agent.posterior(), agent.confidence_interval()))
    np.testing.assert_allclose(runs[0][0], runs[1][0], rtol=0, atol=1e-3)
    for mine, ours in zip(runs[0][1:], runs[1][1:], strict=True):
        np.testing.assert_allclose(mine, ours, rtol=0, atol=1e-2 if task == "box" else 1e-6)


def test_the_own_surrogate_is_scikit_learns_process_of_the_same_features() -> None:
    domain = np.linspace(0.0, 1.0, 30)[:, None]
    each, phi = np.ones(2), fourier("arms")
    problem = BanditProblem(SquaredExponential(0.2), domain, 50, NOISE, each, each)
    agent, rng = make(problem, "arms"), np.random.default_rng(0)
    agent.reset(0)
    arms, rewards = rng.integers(30, size=(25, 2)), rng.standard_normal((25, 2))
    for arm, reward in zip(arms, rewards, strict=True):
        agent.observe(arm, reward)
    for i in range(2):
        kernel = DotProduct(0.0, sigma_0_bounds="fixed")
        model = GaussianProcessRegressor(kernel, alpha=NOISE**2, optimizer=None)
        model.fit(phi(domain[arms[:, i]]), rewards[:, i])
        mean, std = model.predict(phi(domain), return_std=True)
        np.testing.assert_allclose(agent.posterior().mean[i], mean, rtol=0, atol=1e-6)
        np.testing.assert_allclose(agent.posterior().std[i], std, rtol=0, atol=1e-6)


def test_functions_drawn_have_the_posteriors_covariance() -> None:
    domain = np.linspace(0.0, 1.0, 30)[:, None]
    m = len(FixedArms(fourier("arms"), domain, np.full(1, NOISE**2)).basis.phi)
    action_set = FixedArms(fourier("arms"), domain, np.full(m, NOISE**2))  # one for each normal
    surrogate, everyone = BayesianRegression(action_set), np.ones(m, bool)
    surrogate.restart(everyone, np.zeros(m))
    arms = np.random.default_rng(1).integers(30, size=20)
    for arm in arms.tolist():
        surrogate.update(action_set.embed(np.full(m, arm)), np.full(m, 0.3), everyone)
    drawn = surrogate.sample(np.eye(m)) @ action_set.basis.phi
    gram = fourier("arms")(domain) @ fourier("arms")(domain).T
    noisy = gram[np.ix_(arms, arms)] + NOISE**2 * np.eye(20)
    expected = gram - gram[:, arms] @ np.linalg.solve(noisy, gram[arms])
    np.testing.assert_allclose(drawn.T @ drawn, expected, rtol=0, atol=1e-7)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)


def improvement(mean: Array, std: Array, best: float) -> Array:
    """Return the integrals of P(y > v) over v > best, y normal, by Gauss and Legendre."""
    start = (best - mean) / std
    low = np.clip(start, -12.0, 12.0)  # below it is 1, above it 0
    half = (12.0 - low) / 2
    inside = half * (WEIGHTS @ ndtr(-(low + half * (1 + NODES[:, None]))))
    return np.asarray(std * (inside + np.maximum(low - start, 0.0)))


def test_expected_improvement_is_the_mean_of_draws() -> None:
    mean, std = np.array([[0.0, 0.4, -1.0]]), np.array([[1.0, 0.2, 0.5]])
    prediction = Prediction(mean, std**2, std**2)
    points = Points(np.zeros((1, 3, 1)), np.zeros((1, 1, 3)), np.zeros((1, 3)))
    found = ExpectedImprovement().score(points, prediction, np.ones((1, 1)), np.array([[0.4]]))
    draws = mean + std * np.random.default_rng(0).standard_normal((1_000_000, 3))
    gains = np.maximum(draws - 0.4, 0.0)
    error = gains.std(axis=0) / 1_000
    assert (np.abs(found[0] - gains.mean(axis=0)) < 4 * error).all()
    np.testing.assert_allclose(found[0], improvement(mean[0], std[0], 0.4), rtol=0, atol=1e-9)


@every_task
def test_what_is_played_has_the_largest_expected_improvement(task: str) -> None:
    env, differs = make_env(task), 0
    agent = make(env, task, acquisition=ExpectedImprovement())
    observation, _ = env.reset(seed=SEED)
    agent.reset(SEED)
    phi, grid = fourier(task), np.linspace(0.0, 1.0, 301)[:, None]
    places, rewards = np.zeros((0, 2 if task == "changing" else 1)), np.zeros(0)
    for _ in range(STEPS):
        action = agent.act(observation)
        domain = agent.problem.domain if agent.arms is None else agent.arms[0]
        place = np.asarray(action, float) if task == "box" else domain[action]
        shown = np.vstack([place, grid if task == "box" else domain])
        features, held = phi(shown), phi(places)
        noisy = held @ held.T + NOISE**2 * np.eye(len(places))
        solved = np.linalg.solve(noisy, held @ features.T)
        mean, variance = solved.T @ rewards, np.sum(features**2, axis=1)
        std = np.sqrt(variance - np.sum(held @ features.T * solved, axis=0))
        best = mean.max()  # the candidates of a box come as near to it as the grid does
        score = improvement(mean, std, float(best))
        assert score[0] >= score.max() - (2e-3 if task == "box" else 1e-6)
        bound = mean + 2 * std
        differs += bound[0] < bound.max() - 1e-3
        observation, reward, *_ = env.step(action)
        agent.observe(action, reward)
        places, rewards = np.vstack([places, place]), np.append(rewards, reward)
    assert differs > 0  # the upper confidence bound would have played otherwise


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", [*SURROGATES.values(), WindowSurrogate])
@every_task
def test_a_rule_that_restarts_every_ten_steps(task: str, surrogate: Any) -> None:
    env = make_env(task, 2)
    ruled = make(env, task, surrogate, restart_rule=RestartEvery(10))
    twin = wgp_agents.make(
        "r-gp-ucb", env, restart_period=10, confidence_width=2.0, features=fourier(task)
    )
    assert isinstance(twin, GPAgent)
    observation, _ = env.reset(seed=SEED)
    for agent in (ruled, twin):
        agent.reset(SEED)
    for t in range(STEPS):
        action, other = ruled.act(observation), twin.act(observation)
        assert ruled.surrogate.held.tolist() == [t % 10, t % 10]
        np.testing.assert_allclose(ruled.posterior(), twin.posterior(), rtol=0, atol=1e-6)
        if surrogate is RestartSurrogate:
            np.testing.assert_array_equal(action, other)
        observation, reward, *_ = env.step(action)
        for agent in (ruled, twin):
            agent.observe(action, reward)


def test_the_rule_restarts_each_learner_on_its_own() -> None:
    env = make_env("arms", 2)
    env.reset(seed=0)
    agent = make(env, "arms", restart_rule=RestartEvery(3))
    agent.reset(0)
    for t in range(5):
        agent.observe(agent.act(), [1.0, 1.0], active=[True, t % 2 == 0])
        assert agent.surrogate.held.tolist() == [t % 3 + 1, t // 2 + 1]


def test_what_a_surrogate_without_sample_cannot_do() -> None:
    class Silent(BayesianRegression):
        sample = Surrogate.sample

    agent = make(make_env("arms"), "arms", Silent, acquisition=ThompsonSampling())
    agent.reset(0)
    with pytest.raises(NotImplementedError, match="Silent draws no functions: it has no `sample`"):
        agent.act()
