"""Batches of unlike learners: learner i is the single learner with its parameters, bit for bit."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from conftest import GAUSSIAN_PROCESSES, LEARNERS
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.registry import AGENTS, ARMS, LINEAR, agent_parameters
from wgp_gym.kernels import CentredLinear, Empirical, SquaredExponential
from wgp_gym.problem import BanditProblem

STEPS, T = 45, 60
NOISE, NORM, BUDGET = [0.1, 0.7, 0.3], [0.8, 2.0, 5.0], [0.5, 4.0, 0.1]

# What each of three learners is given.
VALUES: dict[str, list[Any]] = {
    "alarm_delta": [0.1, 0.9, 0.5],
    "alpha": [0.1, 0.02, 0.6],
    "batch_size": [3, 7, 11],
    "c": [3.0, 0.0, 1.0],
    "confidence_width": [0.5, 2.0, 4.0],
    "delta": [0.01, 0.1, 0.6],
    "detection": [0.5, 0.05, 2.0],
    "discount": [0.8, 1.0, 0.95],
    "eps": [0.02, 0.2, 0.001],
    "epsilon": [0.02, 0.2, 0.5],
    "eviction": [2.0, 0.05, 8.0],
    "exploration": [1.0, 0.3, 3.0],
    "gap_divisor": [1.0, 16.0, 0.2],
    "gamma": [0.2, 0.5, 0.9],
    "information_gain": [1.0, 5.0, 30.0],
    "injection": [0.01, 0.3, 0.05],
    "learning_rate": [0.001, 0.1, 0.01],
    "noise_scale": [0.2, 0.5, 1.5],
    "norm_bound": [1.0, 3.0, 9.0],
    "num_changes": [1, 9, 3],
    "num_samples": [2, 5, 3],
    "regularization": [0.02, 1.5, 0.3],
    "restart_period": [7, 12, 20],
    "scale": [0.2, 0.6, 1.5],
    "sigma": [0.3, 0.9, 0.1],
    "signal_variance": [0.5, 1.0, 3.0],
    "smallest_change": [0.3, 1.0, 0.6],
    "threshold": [0.4, 3.0, 1.0],
    "time_lengthscale": [4.0, 9.0, 30.0],
    "variation_budget": [0.2, 3.0, 20.0],
    "window": [4, 12, 8],
    "xi": [0.2, 0.5, 1.0],
}
OWN: dict[tuple[str, str], list[Any]] = {("master", "scale"): [0.0, 1e-4, 3e-4]}
# Parameters of these names that are words, or the same for all learners.
SHARED = {
    ("adaptive-wgp-ucb", "exploration"),
    ("dal-gp-ucb", "threshold"),
    ("glr-ucb", "exploration"),
    ("glr-ucb", "threshold"),
}
# test_agents_batch.py gives each of these to every Gaussian-process agent on its own.
COVERED = {"delta", "norm_bound", "confidence_width", "noise_scale", "regularization"}
# What else makes a parameter matter within a run.
RATHER: dict[tuple[str, str], dict[str, Any]] = {
    ("adswitch", "detection"): {"eviction": 0.05},
    ("adswitch", "gap_divisor"): {"eviction": 0.05},
    ("bob-lin-ucb", "gamma"): {
        "block_length": 1,
        "windows": (2, 4, 8),
        "reward_range": (-1.5, 1.5),
        "noise_scale": 0.01,
    },
    ("bob-wgp-ucb", "gamma"): {
        "block_length": 1,
        "discounts": (0.3, 0.6, 0.8, 1.0),
        "reward_range": (-1.5, 1.5),
        "noise_scale": 0.01,
    },
    ("cusum-ucb", "epsilon"): {"num_samples": 3, "threshold": 0.3, "alpha": 0.4},
    ("cusum-ucb", "num_samples"): {"threshold": 0.3, "alpha": 0.4},
    ("cusum-ucb", "threshold"): {"num_samples": 3, "alpha": 0.4},
    ("et-gp-ucb", "alarm_delta"): {"noise_scale": 0.05},
    ("m-ucb", "num_changes"): {"threshold": 0.5},
    ("m-ucb", "threshold"): {"window": 4, "gamma": 0.9},
    ("m-ucb", "window"): {"threshold": 0.5, "gamma": 0.9},
    ("pht-ucb", "epsilon"): {"threshold": 0.3, "alpha": 0.4},
    ("pe-gp-ucb", "delta"): {"confidence_width": "theory"},
    **{("master", key): {"scale": 1e-4} for key in ("information_gain", "delta", "noise_scale")},
    **{("master", key): {"scale": 1e-4} for key in ("norm_bound", "regularization")},
}
# These hardly ever matter within 30 steps.
SELDOM = {
    ("dal-gp-ucb", "alarm_delta"),
    ("m-ucb", "smallest_change"),
    ("opkb", "delta"),
    ("r-perp", "delta"),
}


def unlike(name: str) -> dict[str, list[Any]]:
    """Return the parameters that an agent takes for each learner, with their values."""
    return {
        key: OWN.get((name, key), VALUES[key])
        for key in agent_parameters(name)
        if key in VALUES and (name, key) not in SHARED
    }


PER_LEARNER = [name for name in LEARNERS if unlike(name)]


@functools.cache
def problem(name: str, learner: int | None) -> BanditProblem:
    """Return the problem of one learner, or of all three, that an agent's family is made for."""
    family = AGENTS[name].family
    kernel: Any = SquaredExponential(0.2)
    domain, given = np.linspace(0, 1, 15)[:, None], dict[str, Any]()
    if family == LINEAR:
        kernel, domain = CentredLinear(), np.random.default_rng(0).random((8, 2))
    if family == ARMS:
        kernel, domain = Empirical(np.eye(4)), np.linspace(0, 1, 4)[:, None]
        given = {"reward_range": (-1.0, 1.0)}
    facts = ("noise_scale", NOISE), ("norm_bound", NORM), ("variation_budget", BUDGET)
    for word, values in facts:
        given[word] = np.array(values) if learner is None else values[learner]
    return BanditProblem(kernel, domain, T, **given)


def paid(t: int, i: int, action: Any) -> float:
    """Return the reward of learner i at step t: a function of the action that moves."""
    place = float(np.ravel(action)[0])
    return float(np.cos(0.9 * place + t / 11 + i) + 0.3 * np.sin(7.3 * t + 2 * place + i))


def play(name: str, learner: int | None, steps: int, **parameters: Any) -> Any:
    """Return the actions of a run and, if it has them, the last posterior, width and gain."""
    agent: Any = wgp_agents.make(name, problem(name, learner), **parameters)
    learners = [0, 1, 2] if learner is None else [learner]
    agent.reset(30 + learners[0])
    actions: list[NDArray[Any]] = []
    for t in range(steps):
        action = agent.act()
        rows = action if learner is None else [action]
        rewards = [paid(t, i, row) for i, row in zip(learners, rows, strict=True)]
        agent.observe(action, np.array(rewards) if learner is None else rewards[0])
        actions.append(np.array(rows))
    found = [np.stack(actions, axis=1)]
    if name.startswith("bob-"):
        found.append(agent.restart_rule.weights.probabilities())
    for what in ("posterior", "beta", "information_gain"):
        if callable(getattr(agent, what, None)):
            seen = getattr(agent, what)()
            parts = seen if what == "posterior" else [seen]
            found += [np.asarray(part)[None] if learner is not None else part for part in parts]
    return found


def same(together: Any, alone: Any, i: int) -> bool:
    return all(np.array_equal(a[i], b[0]) for a, b in zip(together, alone, strict=True))


@pytest.mark.parametrize("name", LEARNERS)
def test_no_other_parameter_is_each_learners_own(name: str) -> None:
    for key in {*agent_parameters(name)} - {*unlike(name)}:
        with pytest.raises((TypeError, ValueError)) as refused:
            wgp_agents.make(name, problem(name, None), **{key: -1e300})
        assert "one for each learner" not in str(refused.value), key


@pytest.mark.parametrize("name", PER_LEARNER)
def test_learner_i_is_the_single_one_with_its_parameters(name: str) -> None:
    parameters = unlike(name)
    together = play(name, None, STEPS, **parameters)
    for i in range(3):
        own = {key: values[i] for key, values in parameters.items()}
        assert same(together, play(name, i, STEPS, **own), i)


@pytest.mark.parametrize("name", PER_LEARNER)
def test_each_parameter_is_each_learners_own(name: str) -> None:
    for key, values in unlike(name).items():
        if key in COVERED and name in GAUSSIAN_PROCESSES:
            continue
        rest = RATHER.get((name, key), {})
        together = play(name, None, 30, **{key: values}, **rest)
        for i in range(3):
            assert same(together, play(name, i, 30, **{key: values[i]}, **rest), i), key
        others = [play(name, i, 30, **{key: values[0]}, **rest) for i in (1, 2)]
        unseen = all(same(together, one, i) for i, one in zip((1, 2), others, strict=True))
        assert not unseen or (name, key) in SELDOM, key
