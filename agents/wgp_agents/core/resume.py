"""The state of an agent, with what it is the state of; and whether an agent is one of that kind."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

import numpy as np

from wgp_agents.core.origin import Origin, differences
from wgp_agents.core.restoration import Restoration
from wgp_agents.core.state import ROOT, Entry, State, Writer, refuse
from wgp_gym.validation import reject, shown

__all__ = ["FORMAT", "restoration", "state_of"]

FORMAT = 3
ENTRIES = (np.ndarray, bool, int, float, str, type(None))


def state_of(agent: object, origin: Origin) -> State:
    """Return the state of an agent that was made as `origin`."""
    rows = [row[:3] for row in origin.values()]
    state: State = {"format": FORMAT, "class": kind_of(agent)}
    state |= {"version": package_version(), "origin": np.array(rows)}
    Writer(state).write(agent, ROOT)
    return state


def restoration(agent: object, state: Mapping[str, Entry], origin: Origin) -> Restoration:
    """Return the changes that bring an agent, made as `origin`, to a state.

    Raises:
        ValueError: If it is the state of another agent or format, or none.
    """
    owner = type(agent).__qualname__
    if not isinstance(state, Mapping):
        reject("state", f"{owner}.load_state_dict", "what state_dict returned", state)
    left = dict(state)
    head = {name: left.pop(name, None) for name in ("format", "class", "version", "origin")}
    made_by = f"one that version {shown(head['version'])} wrote"
    if type(head["format"]) is not int or head["format"] != FORMAT:
        refuse(f"of format {FORMAT}", f"format {shown(head['format'])}, {made_by},")
    kind, found = kind_of(agent), head["class"]
    if found != kind:
        alike = isinstance(found, str) and found.partition(",")[0] == owner
        other = f", another version of this agent: {made_by}," if alike else ""
        refuse(f"that of a {kind}", f"that of a {shown(found)}{other}")
    known = head["origin"]
    if not isinstance(known, np.ndarray) or known.dtype != np.float64:
        refuse("complete", f"{made_by}, without its origin,")
    path = differences(origin, known)
    if path is not None:
        rule = "that of an agent with the same parameters, on the same problem"
        refuse(rule, f"one made otherwise, as to {path},")
    for name, entry in left.items():
        if not isinstance(name, str) or type(entry) not in ENTRIES:
            refuse(
                "a table of arrays, numbers and texts by name", f"{shown(entry)} for {shown(name)}"
            )
    try:
        return Restoration(agent, left)
    except ValueError as error:
        if head["version"] == package_version():
            raise
        raise ValueError(f"{error} It is {made_by}, and this is {package_version()}.") from None


def kind_of(agent: object) -> str:
    """Return the class of an agent, and the form of its state where it has had others."""
    form = getattr(agent, "_form", 1)
    name = type(agent).__qualname__
    return name if form == 1 else f"{name}, form {form}"


@cache
def package_version() -> str:
    """Return the version of this package."""
    return version("wgp-gym")
