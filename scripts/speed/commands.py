"""Commands: what a whole one takes, on one process and on two."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from scripts.speed.rows import Row, best


def command(*words: str) -> None:
    """Run `wgp-gym`, writing to a folder that goes away."""
    program = str(Path(sys.executable).with_name("wgp-gym"))
    with tempfile.TemporaryDirectory() as folder:
        out = ["--out", folder] if "--dry-run" not in words else []
        subprocess.run([program, *words, *out], check=True, capture_output=True)


def measure(quick: bool) -> list[Row]:
    """Measure an announcement, and a short run on one process and on two."""
    dry = best(lambda: command("run", "scaling", "--dry-run"), 2)
    rows = [Row("`wgp-gym run scaling --dry-run`", dry, "s")]
    seeds = "20" if quick else "100"
    one, two = (best(partial(command, "reproduce", "--seeds", seeds, "--jobs", n), 1) for n in "12")
    told = f"`wgp-gym reproduce --seeds {seeds}`, two processes"
    return [*rows, Row(told, two, "s", "one process", one)]
