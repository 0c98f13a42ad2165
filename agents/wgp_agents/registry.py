"""The one table of agents."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from wgp_agents.base import Agent
from wgp_gym.validation import check_choice

__all__ = ["AGENTS", "AgentEntry", "agent_class", "make", "names"]


@dataclass(frozen=True)
class AgentEntry:
    """One agent.

    Attributes:
        name: The name that `make` takes.
        entry_point: Its class, as "module:Class".
        title: How it is written in figures and tables.
        summary: One line that says what it is.
        preset: Parameters that it takes unless others are given.
        extra: The extra of the package that it needs, or "".
        reference: Whether it reads the truth: a reference line, no competitor.
    """

    name: str
    entry_point: str
    title: str
    summary: str
    preset: tuple[tuple[str, Any], ...] = ()
    extra: str = ""
    reference: bool = False


_TABLE: tuple[tuple[Any, ...], ...] = (
    ("wgp-ucb", "wgp_agents.wgp_ucb:WGPUCB", "WGP-UCB", "weights that favour recent data"),
    (
        "qff-wgp-ucb",
        "wgp_agents.wgp_ucb:WGPUCB",
        "QFF-WGP-UCB",
        "WGP-UCB on quadrature Fourier features",
        (("features", "quadrature"),),
    ),
    ("igp-ucb", "wgp_agents.igp_ucb:IGPUCB", "IGP-UCB", "all data alike: the stationary learner"),
    ("r-gp-ucb", "wgp_agents.r_gp_ucb:RGPUCB", "R-GP-UCB", "forgets everything every H steps"),
    ("sw-gp-ucb", "wgp_agents.sw_gp_ucb:SWGPUCB", "SW-GP-UCB", "looks at the last W steps"),
    *(
        (name, "wgp_agents.sb3:SB3Agent", title, "a trained policy", (("algo", name),), "rl")
        for name, title in (
            ("ppo", "PPO"),
            ("a2c", "A2C"),
            ("dqn", "DQN"),
            ("recurrent-ppo", "RecurrentPPO"),
        )
    ),
    (
        "neural-greedy",
        "wgp_agents.neural_greedy:NeuralGreedy",
        "neural greedy",
        "a network that starts untrained and learns within the episode",
    ),
    ("random", "wgp_agents.baselines:Random", "random", "plays uniformly at random"),
    (
        "oracle",
        "wgp_agents.baselines:Oracle",
        "oracle",
        "plays the true optimum: a reference",
        (),
        "",
        True,
    ),
)
AGENTS: dict[str, AgentEntry] = {row[0]: AgentEntry(*row) for row in _TABLE}


def names() -> list[str]:
    """Return the names of all agents that need no extra and no training."""
    return [name for name, entry in AGENTS.items() if not entry.extra]


def agent_class(name: str) -> type[Agent]:
    """Return an agent's class; its module is imported only now.

    Raises:
        ValueError: If there is no such agent.
        ModuleNotFoundError: If the extra that it needs is not installed.
    """
    entry = AGENTS[check_choice("name", name, "wgp_agents.make", AGENTS)]
    module, _, attribute = entry.entry_point.partition(":")
    try:
        found: type[Agent] = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if not entry.extra:
            raise
        message = f"The agent {name!r} needs the extra {entry.extra!r}: {error}."
        raise ModuleNotFoundError(f"{message} Install wgp-gym[{entry.extra}].") from error
    return found


def make(name: str, env: Any, **parameters: Any) -> Agent:
    """Make an agent for an environment.

    Args:
        name: One of `names()`, or of the trained ones: "ppo", "a2c", "dqn", "recurrent-ppo".
        env: The environment to play, single or vector, or a `BanditProblem`.
        **parameters: The agent's own parameters; see its class.

    Raises:
        ValueError: If there is no such agent, or a parameter is out of its range.
        ModuleNotFoundError: If the extra that it needs is not installed.
    """
    made = agent_class(name)
    return made(env, **{**dict(AGENTS[name].preset), **parameters})
