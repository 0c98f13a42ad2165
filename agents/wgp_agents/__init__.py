"""Agents for bandits in a drifting world, behind one `act` / `observe` contract.

The classes are imported when first asked for: `from wgp_agents import WGPUCB`.
"""

from typing import Any

from wgp_agents.registry import AGENTS, agent_class, make, names

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
