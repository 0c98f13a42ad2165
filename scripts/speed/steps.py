"""One decision of one learner: act and observe, beside what one would use instead."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO

import gymnasium
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import wgp_agents
from scripts.speed.rows import Row, times
from wgp_agents.base import Agent
from wgp_gym.types import Array

GP = ("wgp-ucb", "igp-ucb", "sw-gp-ucb", "r-gp-ucb", "w-dbo", "adaptive-wgp-ucb")
ARMED = ("d-lin-ucb", "d-ts", "ucb1")
TASKS = {"d-lin-ucb": "WGPBandit-LinearAbrupt-v0"} | dict.fromkeys(
    ("d-ts", "ucb1"), "WGPBandit-ArmsAbrupt-v0"
)
PLACES = np.linspace(0.0, 1.0, 100)


def agent_of(name: str) -> Agent:
    """Return an agent on its family's task, ready to play."""
    env = gymnasium.make(TASKS.get(name, "WGPBandit-Abrupt-v0"))
    env.reset(seed=0)
    agent = wgp_agents.make(name, env)
    agent.reset(0)
    return agent


def our_steps(name: str, count: int) -> Array:
    """Return the microseconds of each decision of an agent; the first 100 are left out."""
    agent = agent_of(name)
    paid = iter(np.random.default_rng(0).random(count + 100).tolist())
    spent = times(lambda: agent.observe(agent.act(), next(paid)), count + 100)
    return 1e6 * spent[100:]


# What one would use instead: each yields a function that takes a step.


def sklearn_step(t: int) -> Callable[[], object]:
    """Return a step of WGP-UCB by scikit-learn with t data: a fit, and the bounds of 100 arms."""
    rng = np.random.default_rng(0)
    x, y = PLACES[rng.integers(100, size=t), None], rng.normal(size=t)
    model = GaussianProcessRegressor(RBF(0.2, "fixed"), alpha=0.01 / 0.97 ** np.arange(t)[::-1])

    def _step() -> int:
        mean, std = model.set_params(optimizer=None).fit(x, y).predict(PLACES[:, None], True)
        return int((mean + 2.0 * std).argmax())

    return _step


def numpy_ucb1() -> Callable[[], object]:
    """Return a step of UCB1 on ten arms, written by hand."""
    counts, sums, rng = np.ones(10), np.zeros(10), np.random.default_rng(0)

    def _step() -> None:
        arm = int((sums / counts + np.sqrt(2.0 * np.log(counts.sum()) / counts)).argmax())
        counts[arm] += 1.0
        sums[arm] += rng.random()

    return _step


def river_ucb1() -> Callable[[], object]:
    """Return a step of river's UCB on ten arms."""
    policy = importlib.import_module("river.bandit").UCB(1.0, seed=0)
    arms, rng = list(range(10)), np.random.default_rng(0)

    def _step() -> None:
        policy.update(policy.pull(arms), rng.random())

    return _step


def mabwiser_ucb1() -> Callable[[], object]:
    """Return a step of MABWiser's UCB1 on ten arms."""
    package = importlib.import_module("mabwiser.mab")
    mab = package.MAB(list(range(10)), package.LearningPolicy.UCB1(1.0), seed=0)
    mab.fit(list(range(10)), [0.5] * 10)
    rng = np.random.default_rng(0)

    def _step() -> None:
        mab.partial_fit([mab.predict()], [rng.random()])

    return _step


def bayes_opt_step(t: int) -> Callable[[], object]:
    """Return a step of bayesian-optimization with t data on a line."""
    package = importlib.import_module("bayes_opt")
    bound = package.acquisition.UpperConfidenceBound(kappa=2.0, random_state=0)
    optimizer = package.BayesianOptimization(
        None, {"x": (0.0, 1.0)}, bound, random_state=0, verbose=0, allow_duplicate_points=True
    )
    optimizer.set_gp_params(alpha=0.1)
    rng = np.random.default_rng(0)
    for _ in range(t):
        optimizer.register({"x": rng.random()}, rng.normal())

    def _step() -> None:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            optimizer.register(optimizer.suggest(), rng.normal())

    return _step


def botorch_step(t: int) -> Callable[[], object]:
    """Return a step of BoTorch with t data: a fitted Gaussian process, and its upper bound."""
    torch = importlib.import_module("torch")
    models = importlib.import_module("botorch.models")
    fit = importlib.import_module("botorch.fit").fit_gpytorch_mll
    loss = importlib.import_module("gpytorch.mlls").ExactMarginalLogLikelihood
    rng = np.random.default_rng(0)
    x, y = torch.tensor(rng.random((t, 1))), torch.tensor(rng.normal(size=(t, 1)))
    arms = torch.tensor(PLACES[:, None])

    def _step() -> int:
        model = models.SingleTaskGP(x, y)
        fit(loss(model.likelihood, model))
        with torch.no_grad():
            found = model.posterior(arms)
        return int((found.mean + 2.0 * found.variance.sqrt()).argmax())

    return _step


def peers(quick: bool) -> Iterator[tuple[str, str, Callable[[], object], int]]:
    """Yield whose step it stands beside, its name, the step, and how often it is taken."""
    for t in (500,) if quick else (500, 2_000):
        yield "wgp-ucb", f"scikit-learn's process, {t:,} rewards", sklearn_step(t), 5
    yield "ucb1", "UCB1 by hand, in numpy", numpy_ucb1(), 3_000
    for name, package, build, count in (
        ("river's UCB", "river", river_ucb1, 2_000),
        ("MABWiser's UCB1", "mabwiser", mabwiser_ucb1, 500),
    ):
        if importlib.util.find_spec(package):
            yield "ucb1", name, build(), count
    if importlib.util.find_spec("bayes_opt"):
        t = 100 if quick else 500
        yield "adaptive-wgp-ucb", f"bayesian-optimization, {t} rewards", bayes_opt_step(t), 3
    if importlib.util.find_spec("botorch"):
        yield "adaptive-wgp-ucb", "BoTorch, 500 rewards", botorch_step(500), 3


def measure(quick: bool) -> list[Row]:
    """Measure medians; of W-DBO the 99th percentile, too."""
    ours = {name: our_steps(name, 500 if quick else 3_000) for name in (*GP, *ARMED)}
    told = {name: f"`{name}`, one learner, act and observe" for name in ours}
    rows = [Row(told[name], float(np.median(spent)), "µs") for name, spent in ours.items()]
    slow = float(np.quantile(ours["w-dbo"], 0.99))
    rows.append(Row("... of `w-dbo`, the 99th percentile", slow, "µs"))
    for name, peer, step, count in peers(quick):
        theirs = 1e6 * float(np.median(times(step, count)))
        rows.append(Row(told[name], float(np.median(ours[name])), "µs", peer, theirs))
    return rows
