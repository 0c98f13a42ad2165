"""Small experiments for the tests of the pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wgp_agents.benchmark.declaration import declare
from wgp_agents.benchmark.parallel import Workers
from wgp_agents.benchmark.results import Results, load_results
from wgp_agents.benchmark.run import run

RUNS = 5
SMALL = {"points_per_dim": 15}
GRID_TASK = "abrupt horizon=40"


def played(folder: Path, environments: list[Any], agents: list[Any], runs: int = RUNS) -> Results:
    declared = declare({"seeds": runs, "environment": environments, "agent": agents})
    assert not run(declared, folder, Workers(1))
    return load_results(folder)


def played_grid(folder: Path) -> Results:
    """Play a grid over an agent's parameters, and one over the horizon."""
    parameters = {"discount": [0.7, "default", 0.99], "regularization": [0.01, 1.0]}
    words = {"variation_budget": ["known", "unknown"]}
    return played(
        folder,
        [{"id": "WGPBandit-Abrupt-v0", "kwargs": {"horizon": [20, 40, 80], **SMALL}}],
        [
            {"name": "wgp-ucb", "parameters": parameters},
            {"name": "sw-gp-ucb", "parameters": words},
            {"name": "random"},
            {"name": "oracle"},
        ],
    )
