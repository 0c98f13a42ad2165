"""Agents for bandits in a drifting world, behind one `act` / `observe` contract.

The classes are imported when first asked for: `from wgp_agents import WGPUCB`. What an editor sees
of this module stands in `__init__.pyi`, written by `scripts/write_stub.py`.
"""

from wgp_agents.evaluation import evaluate
from wgp_agents.registry import AGENTS, HOME, agent_class, make, names, register_agent
from wgp_gym import __version__
from wgp_gym.threads import get_threads, set_threads

__all__ = [
    "AGENTS",
    "__version__",
    "evaluate",
    "get_threads",
    "make",
    "names",
    "register_agent",
    "set_threads",
]


def __getattr__(name: str) -> type:
    """Import an agent's class by its name."""
    for entry in AGENTS.values():
        if entry.entry_point.startswith(HOME) and entry.entry_point.endswith(f":{name}"):
            return agent_class(entry.name)
    if name == "Agent":
        from wgp_agents.base import Agent

        return Agent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
