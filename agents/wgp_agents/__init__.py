"""Agents for bandits in a drifting world, behind one `act` / `observe` contract.

The classes are imported when first asked for: `from wgp_agents import WGPUCB`.
"""

from typing import TYPE_CHECKING, Any

from wgp_agents.registry import AGENTS, agent_class, make, names

if TYPE_CHECKING:
    from wgp_agents.base import Agent as Agent
    from wgp_agents.baselines import Oracle as Oracle
    from wgp_agents.baselines import Random as Random
    from wgp_agents.igp_ucb import IGPUCB as IGPUCB
    from wgp_agents.neural_greedy import NeuralGreedy as NeuralGreedy
    from wgp_agents.r_gp_ucb import RGPUCB as RGPUCB
    from wgp_agents.sw_gp_ucb import SWGPUCB as SWGPUCB
    from wgp_agents.wgp_ucb import WGPUCB as WGPUCB

__all__ = ["AGENTS", "make", "names"]


def __getattr__(name: str) -> Any:
    """Import an agent's class by its name."""
    for entry in AGENTS.values():
        if entry.entry_point.endswith(f":{name}"):
            return agent_class(entry.name)
    if name == "Agent":
        from wgp_agents.base import Agent

        return Agent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
