"""How large an experiment may be: what is beyond is refused before it takes time or memory."""

from __future__ import annotations

__all__ = [
    "DEEPEST",
    "LARGEST_FILE",
    "LARGEST_NUMBER",
    "LONGEST_KEY",
    "LONGEST_LABEL",
    "LONGEST_TEXT",
    "MOST_RUNS",
    "MOST_UNITS",
    "MOST_VARIANTS",
]

LARGEST_FILE = 2**20  # bytes of an experiment's file
DEEPEST = 20  # tables and lists inside each other
LARGEST_NUMBER = 2**128 - 1  # of whole numbers, on either side of 0: the seeds that numpy draws fit
LONGEST_KEY = 100  # characters of a parameter's name
LONGEST_TEXT = 10_000  # characters of a value, of the description too
LONGEST_LABEL = 200  # characters of a title, a label or a name
MOST_VARIANTS = 10_000  # environments, and likewise agents, with grids laid out
MOST_UNITS = 100_000  # units of work
MOST_RUNS = 1_000_000  # of each agent in each environment
