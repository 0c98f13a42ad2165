"""Measure the project's speed beside what one would use instead, in one process and one thread.

Usage: python -m scripts.bench_speed [--quick] [--only GROUP ...] [--json FILE]

Prints a Markdown table, ratios first. Groups: the modules of `scripts/speed`. Needs the extra `dev`
(scikit-learn, river); of the peers MABWiser, bayesian-optimization (extra `peers`) and BoTorch,
those that are installed. docs/speed.md has the table.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from threadpoolctl import threadpool_limits

import wgp_agents
from scripts.speed import batches, commands, environments, long_runs, many_arms, panel, steps
from scripts.speed.rows import Row, printed

GROUPS = {
    "panel": panel.measure,
    "steps": steps.measure,
    "many-arms": many_arms.measure,
    "batches": batches.measure,
    "long-runs": long_runs.measure,
    "environments": environments.measure,
    "commands": commands.measure,
}


def main() -> None:
    """Measure the groups and print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter runs, for a first look")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    given = parser.parse_args()
    rows: list[Row] = []
    wgp_agents.set_threads(1)
    with threadpool_limits(1):
        for name in given.only:
            rows += GROUPS[name](given.quick)
    print(printed(rows))
    if given.json:
        given.json.write_text(json.dumps([row._asdict() for row in rows], indent=2))


if __name__ == "__main__":
    main()
