"""Write `wgp_agents/__init__.pyi`, what an editor sees of the package, from the table of agents.

    python scripts/write_stub.py

A test compares the file with `stub()`: run this after a change of the table.
"""

from pathlib import Path

from wgp_agents.registry import AGENTS, HOME, AgentEntry

STUB = Path(__file__).parents[1] / "agents" / "wgp_agents" / "__init__.pyi"

TOP = '''"""Agents for bandits in a drifting world: what an editor sees (scripts/write_stub.py)."""

from typing import Literal, overload

'''
OWN = """from wgp_agents.base import Agent as Agent
from wgp_agents.core.access import EnvLike
from wgp_agents.evaluation import evaluate as evaluate
from wgp_gym.threads import get_threads as get_threads
from wgp_gym.threads import set_threads as set_threads
from wgp_agents.registry import AGENTS as AGENTS
from wgp_agents.registry import names as names
from wgp_agents.registry import register_agent as register_agent

__version__: str
"""
OVERLOAD = """
@overload
def make(name: {kind}, env: EnvLike, **parameters: object) -> {made}: ...
"""


def stub() -> str:
    """Return the text of the stub."""
    of_class: dict[str, list[str]] = {}
    for entry in shipped():
        of_class.setdefault(entry.entry_point, []).append(entry.name)
    places = sorted(place.split(":") for place in of_class)
    lines = [f"from {module} import {made} as {made}\n" for module, made in places]
    overloads = [
        OVERLOAD.format(kind=literal(called), made=place.partition(":")[2])
        for place, called in of_class.items()
    ]
    anything = OVERLOAD.format(kind="str", made="Agent")
    return "".join([TOP, *lines, OWN, *overloads, anything])


def shipped() -> list[AgentEntry]:
    """Return the entries of the agents that the package brings."""
    return [entry for entry in AGENTS.values() if entry.entry_point.startswith(f"{HOME}.")]


def literal(called: list[str]) -> str:
    """Return the type of these names alone."""
    quoted = ", ".join(f'"{name}"' for name in called)
    return f"Literal[{quoted}]"


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
    print(f"Written: {STUB}")
