"""Agents on a problem of unknown T or unknown noise: each plays, or says what it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import LEARNERS, field

import wgp_agents
from wgp_agents import WGPUCB, AdaptiveWGPUCB, DLinUCB
from wgp_agents.base import Agent
from wgp_agents.core.units import RewardUnits
from wgp_agents.registry import agent_class
from wgp_gym.kernels import Linear, SquaredExponential
from wgp_gym.problem import BanditProblem

DOMAIN = np.linspace(0.0, 1.0, 12)[:, None]
PROBLEM = BanditProblem(SquaredExponential(0.2), DOMAIN, 500, 0.1, 1.0, 1.0)
UNKNOWN: dict[str, Any] = {"horizon": None, "noise_scale": None}


class Blurred(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that does not say T, or the scale of its noise."""

    def __init__(self, env: gymnasium.Env[Any, Any], unknown: dict[str, Any]) -> None:
        super().__init__(env)
        self.unknown = unknown

    @property
    def problem(self) -> BanditProblem:
        """What is left for a learner to know."""
        problem: BanditProblem = self.get_wrapper_attr("unwrapped").problem
        return replace(problem, **self.unknown)


def played(agent: Agent, steps: int = 30) -> list[Any]:
    """Return what an agent plays that is paid noise."""
    rng, actions = np.random.default_rng(0), []
    agent.reset(0)
    for _ in range(steps):
        actions.append(agent.act())
        agent.observe(actions[-1], rng.normal(0.0, 0.3))
    return actions


def needs(name: str, unknown: dict[str, Any]) -> set[str]:
    """Return what an agent asks for, of what is not known; it must play where that is nothing."""
    env: Any = replace(PROBLEM, **unknown)
    if name not in LEARNERS:
        made = gymnasium.make(field(name), points_per_dim=12, horizon=40)
        made.reset(seed=0)
        env = Blurred(made, unknown)
    try:
        agent = wgp_agents.make(name, env)
    except ValueError as error:
        text, owner = str(error), agent_class(name).__name__
        assert owner in text, text
        asked = {word for word in unknown if repr(word) in text.split(", or give it")[0]}
        assert asked, text
        return asked
    played(agent)
    return set()


FREE_OF_T = {
    *("adaptive-wgp-ucb", "et-gp-ucb", "gp-ucb", "igp-ucb", "lin-ucb", "neural-greedy", "oracle"),
    *("oracle-restart", "pe-gp-ucb", "random", "thompson", "tv-gp-ucb", "tv-r-gp-ucb", "ucb1"),
    *("ui-gp-ucb", "w-dbo", "neural-ucb", "neural-ts", "in-context", "learned-wgp-ucb"),
}
FREE_OF_NOISE = {
    *("adaptive-wgp-ucb", "d-glm-ucb", "d-ts", "exp3", "exp3-s", "neural-greedy", "opkb", "oracle"),
    *("random", "rexp3", "sw-glm-ucb", "thompson", "neural-ucb", "neural-ts", "in-context"),
    "learned-wgp-ucb",
}


@pytest.mark.parametrize("name", wgp_agents.names())
def test_every_agent_plays_or_names_what_it_needs(name: str) -> None:
    horizon, noise = needs(name, {"horizon": None}), needs(name, {"noise_scale": None})
    assert horizon == (set() if name in FREE_OF_T else {"horizon"})
    assert noise == (set() if name in FREE_OF_NOISE else {"noise_scale"})
    both = needs(name, UNKNOWN)
    assert both <= horizon | noise
    assert bool(both) == bool(horizon | noise)


def test_the_parameter_that_it_would_tune_does_for_t() -> None:
    unknown = replace(PROBLEM, **UNKNOWN)
    with pytest.raises(ValueError, match=r"WGPUCB tunes itself, or give it 'discount'\. Got None"):
        WGPUCB(unknown, noise_scale=0.1)
    with pytest.raises(ValueError, match=r"WGPUCB does not learn, or give it 'noise_scale'\. Got"):
        WGPUCB(unknown, discount=0.9)
    assert len(played(WGPUCB(unknown, discount=0.97, noise_scale=0.1))) == 30
    with pytest.raises(ValueError, match="or give it 'confidence'"):
        WGPUCB(unknown, discount=0.97, noise_scale=0.1, confidence="union")
    given: dict[str, dict[str, Any]] = {
        "d-ucb": {"discount": 0.9},
        "sw-ucb": {"window": 20},
        "exp3": {"gamma": 0.1},
        "exp3-s": {"gamma": 0.1, "alpha": 0.01},
        "rexp3": {"gamma": 0.1, "batch_size": 10},
        "cusum-ucb": {"threshold": 5.0, "alpha": 0.1, "num_samples": 5},
        "m-ucb": {"window": 10, "threshold": 5.0, "gamma": 0.1},
        "glr-ucb": {"alpha": 0.1, "delta": 0.01},
        "sw-gp-ucb": {"window": 20},
        "gp-ts": {"regularization": 1.0},
        "d-glm-ucb": {"discount": 0.9},
    }
    problem = replace(PROBLEM, horizon=None)
    for name, parameters in given.items():
        assert len(played(wgp_agents.make(name, problem, **parameters))) == 30


@pytest.mark.parametrize("gain", ["determinant", "bound", "greedy"])
def test_gains_known_before_any_play_grow_with_an_unknown_t(gain: Any) -> None:
    kernel = Linear() if gain == "determinant" else SquaredExponential(0.5)
    long = replace(PROBLEM, kernel=kernel, horizon=5_000)
    made: list[Agent] = []
    for problem in (long, replace(long, horizon=None)):
        if gain == "determinant":
            made.append(DLinUCB(problem, discount=1.0))
        else:
            made.append(WGPUCB(problem, discount=1.0, gain=gain))
    known, unknown = (played(agent, 1_100) for agent in made)
    assert known == unknown
    widths = [agent.beta() for agent in made if isinstance(agent, DLinUCB | WGPUCB)]
    assert widths[0] == widths[1]


def test_adaptive_takes_the_drifts_of_ten_thousand_steps() -> None:
    usual = AdaptiveWGPUCB(replace(PROBLEM, horizon=10_000))
    unknown = AdaptiveWGPUCB(replace(PROBLEM, **UNKNOWN))
    assert played(usual, 60) == played(unknown, 60)
    assert usual.belief() == unknown.belief()


def test_rewards_of_another_unit_are_told_where_t_is_unknown() -> None:
    agent = wgp_agents.make("gp-ucb", replace(PROBLEM, horizon=None))
    agent.reset(0)
    agent.observe(0, 1.0 + 9.1 * 0.1)
    with pytest.warns(RewardUnits, match="GPUCB met a reward of 3"):
        agent.observe(0, 3.0)


def test_a_batch_of_which_nothing_is_known() -> None:
    single = BanditProblem(SquaredExponential(0.2), DOMAIN)
    batch = BanditProblem.stack([single, single, single])
    assert (single.batch_size, batch.batch_size) == (None, 3)
    agent = AdaptiveWGPUCB(batch)
    agent.reset(4)
    assert np.shape(agent.act()) == (3,)
    with pytest.raises(ValueError, match="'episodes' parameter of BanditProblem"):
        replace(single, episodes=0)
    with pytest.raises(ValueError, match="'noise_scale' parameter of BanditProblem"):
        replace(batch, noise_scale=np.array([0.1, 0.2]))
