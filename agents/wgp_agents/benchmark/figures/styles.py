"""How agents look, the same in every picture: colour, marker and line.

Colours are Okabe and Ito's, with greys and a wine red; agents without a row of their own take
theirs from Paul Tol's muted set. Colour-blind readers tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from wgp_agents.benchmark.experiment import AgentSpec
from wgp_agents.registry import AGENTS, FAMILIES, agent_entry

__all__ = ["DASHES", "STYLES", "Style", "base_style", "styles"]

DASHES = {"-": "", "--": "6 3", "-.": "7 3 1.5 3", ":": "1.5 2.5"}
"""Matplotlib's lines, and the `stroke-dasharray` that draws each in SVG."""


class Style(NamedTuple):
    """How one agent looks."""

    colour: str  # as "#RRGGBB"
    marker: str  # Matplotlib's marker, "" for none
    line: str  # Matplotlib's line, one of `DASHES`
    dash: str  # the same line as a `stroke-dasharray` of SVG, "" where it is solid


def style(colour: str, marker: str, line: str) -> Style:
    """Return a style, with the line also as SVG has it."""
    return Style(colour, marker, line, DASHES[line])


STYLES = {
    "igp-ucb": style("#777777", "s", "-"),
    "r-gp-ucb": style("#E69F00", "^", "-."),
    "sw-gp-ucb": style("#009E73", "D", "--"),
    "wgp-ucb": style("#0072B2", "o", "-"),
    "wgp-ucb/unknown B_T": style("#0072B2", "d", "--"),
    "adaptive-wgp-ucb": style("#D55E00", "*", "-"),
    "qff-wgp-ucb": style("#3B4CA8", "p", "-."),
    "random": style("#BBBBBB", "x", ":"),
    "dqn": style("#CC79A7", "X", "-."),
    "a2c": style("#56B4E9", "P", "--"),
    "recurrent-ppo": style("#882255", "<", "-."),
    "ppo": style("#A65628", "s", "-"),
    "neural-greedy": style("#000000", "v", "-"),
    "learned-wgp-ucb": style("#009E73", "*", "-"),
    "in-context/general": style("#117733", "h", "-"),
    "in-context/specialist": style("#117733", "H", "--"),
    "oracle": style("#000000", "", ":"),
    "oracle-restart": style("#000000", "", "--"),
    "oracle-discount": style("#000000", "", "-."),
}
"""The look of an agent, everywhere; of "agent/note" where that has its own."""

CYCLE = ("#CC6677", "#332288", "#999933", "#117733", "#88CCEE", "#AA4499", "#44AA99", "#DDCC77")
LINES = tuple(DASHES)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "d", "<", ">", "*", "h", "p")
SHADES = (0.0, 0.35, 0.55, 0.7)  # how far towards white, or black, every four variants
PERIOD = math.lcm(len(LINES) * len(SHADES), len(MARKERS))  # variants, until looks repeat


def base_style(name: str) -> Style:
    """Return the look of an agent by its name in the registry.

    One without a row in `STYLES` is known by its place among such agents of its family, so that
    it does not depend on what else is in a picture. Agents of a family differ in colour as far as
    colours go, those of two families at the same place in their markers.
    """
    if name in STYLES:
        return STYLES[name]
    family = agent_entry(name).family
    kin = [one.name for one in AGENTS.values() if one.family == family and one.name not in STYLES]
    kin += [] if name in kin else [name]  # of somebody's own class
    row, column = divmod(kin.index(name), len(CYCLE))
    marker = MARKERS[(kin.index(name) + 4 * FAMILIES.index(family)) % len(MARKERS)]
    return style(CYCLE[column], marker, LINES[row % len(LINES)])


def styles(agents: Sequence[AgentSpec]) -> dict[str, Style]:
    """Return the look of each agent of an experiment, by label.

    The first variant of an agent has its own look, the others its colour with other lines and
    markers, and from the fifth on also lighter or darker. No two look the same, but that an
    agent's looks are used up and repeat after some 200 variants.
    """
    taken: dict[str, Style] = {}
    variants: dict[str, int] = {}
    # First variants come first, so that no other agent's variant takes their look.
    first = {agent.name: agent.label for agent in reversed(agents)}
    used: set[Style] = set()
    for agent in sorted(agents, key=lambda one: first[one.name] != one.label):
        base, start = base_style(agent.name), variants.get(agent.name, 0)
        k = free(base, start, used)
        taken[agent.label] = variant(base, k % PERIOD)
        used.add(taken[agent.label])
        variants[agent.name] = k + 1
    return {agent.label: taken[agent.label] for agent in agents}


def free(base: Style, start: int, used: Collection[Style]) -> int:
    """Return the first variant from `start` on whose look is unused; `start` where none is."""
    left = range(start, PERIOD)
    return next((k for k in left if variant(base, k) not in used), start)


def variant(base: Style, k: int) -> Style:
    """Return the look of an agent's k-th variant; 0 is its own."""
    if k == 0:
        return base
    line = LINES[(LINES.index(base.line) + k) % len(LINES)]
    start = MARKERS.index(base.marker) if base.marker in MARKERS else -1
    marker = MARKERS[(start + k) % len(MARKERS)]
    return style(shaded(base.colour, SHADES[k // len(LINES) % len(SHADES)]), marker, line)


def shaded(colour: str, share: float) -> str:
    """Return a colour moved by a share towards white if it is dark, else towards black."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    goal = 255 if sum(parts) < 1.5 * 255 else 0
    return "#" + "".join(f"{round(part + share * (goal - part)):02X}" for part in parts)
