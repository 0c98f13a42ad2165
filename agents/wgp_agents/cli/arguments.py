"""What the commands share: their flags' types, and their exit codes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import NoReturn

from wgp_agents.benchmark.files import JSON
from wgp_gym.validation import cut

UNEXPECTED = 1
WRONG_REQUEST = 2
MOST_JOBS = 1_024  # processes: more would bring the machine down
ALL = "all"
MOST_DIGITS = 50  # of a number in a flag
INTERRUPTED = 130  # what a shell expects of a command that was interrupted


class Parser(argparse.ArgumentParser):
    """The standard parser, whose messages quote no more of a long flag than is of use."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and exit."""
        super().error(cut(message))


def whole_number(low: int, high: int, text: str) -> int:
    """Return a whole number from `low` to `high`."""
    number = int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else -1
    if not low <= number <= high:
        rule = f"must be a whole number of at least {low} and at most {high}"
        raise argparse.ArgumentTypeError(f"{rule}, not {cut(text)!r}")
    return number


def folder(text: str) -> Path:
    """Return a path that the system can take."""
    if "\0" in text:
        raise argparse.ArgumentTypeError(f"must be a path, not {cut(text)!r}")
    return Path(text)


def json_object(text: str) -> dict[str, JSON]:
    """Return what a JSON object holds."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"must be a JSON object, not {cut(text)!r}")
    return found


def processes(text: str) -> int:
    """Return a number of processes; of "all", that of the processors that this one may use."""
    if text != ALL:
        return whole_number(1, MOST_JOBS, text)
    from joblib import cpu_count  # slow to import: not where nothing is played

    return int(cpu_count())
