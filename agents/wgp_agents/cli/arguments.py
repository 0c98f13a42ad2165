"""What the commands share: the types of their flags, and how they end."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

__all__ = [
    "INTERRUPTED",
    "UNEXPECTED",
    "WRONG_REQUEST",
    "default_jobs",
    "json_object",
    "refused",
    "whole_number",
]

UNEXPECTED = 1
WRONG_REQUEST = 2
EXTRAS = {
    "distributed": "dask",
    "ray": "ray",
    "pandas": "tables",
    "pyarrow": "tables",
    "torch": "rl",
    "stable_baselines3": "rl",
    "sb3_contrib": "rl",
}
INTERRUPTED = 130  # what a shell expects of a command that was interrupted


def whole_number(low: int, text: str) -> int:
    """Return a whole number of at least `low`.

    Raises:
        argparse.ArgumentTypeError: If the text is none.
    """
    if not text.isdecimal() or int(text) < low:
        rule = f"must be a whole number of at least {low}"
        raise argparse.ArgumentTypeError(f"{rule}, not {text!r}")
    return int(text)


def json_object(text: str) -> dict[str, Any]:
    """Return what a JSON object holds.

    Raises:
        argparse.ArgumentTypeError: If the text is none.
    """
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"must be a JSON object, not {text!r}")
    return found


def default_jobs() -> int:
    """Return the number of processors that this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


def refused(command: str, error: Exception) -> int:
    """Say why a request cannot be met; return the exit code."""
    remedy = ""
    package = (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
    if package in EXTRAS:
        remedy = f" Install wgp-gym[{EXTRAS[package]}]."
    print(f"wgp-gym {command}: error: {error}{remedy}", file=sys.stderr)
    return WRONG_REQUEST
