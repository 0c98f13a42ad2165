"""Measure what the benchmark harness costs beside the runs themselves.

Usage: python scripts/bench_harness.py [--seeds N] [--many N] [--json FILE]

1. Overhead: Figure 1 with N seeds in one process; the time of the whole over that of making
   environments and agents and rolling them out, measured in the same run.
2. Workers: four agents on the abrupt task with N seeds, on one process and on two, in turn.
3. Surrogate: the same with MANY seeds on two processes, and its report.
4. Report: 50 agents x 10 tasks x 100 runs, T = 500, of made-up numbers: the time to build the page.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wgp_agents.benchmark import play as playing
from wgp_agents.benchmark.declaration import declare, read_declaration
from wgp_agents.benchmark.experiment import Experiment, Unit
from wgp_agents.benchmark.folder import ResultsFolder
from wgp_agents.benchmark.layout import Arrays, seeds_of
from wgp_agents.benchmark.parallel import Workers
from wgp_agents.benchmark.report.page import write_page
from wgp_agents.benchmark.report.summarise import summarise, timings
from wgp_agents.benchmark.report.tables import write_tables
from wgp_agents.benchmark.results import load_results
from wgp_agents.benchmark.run import run

AGENTS = ("igp-ucb", "r-gp-ucb", "sw-gp-ucb", "wgp-ucb")
Rows = list[tuple[str, float, str]]


def four_agents(seeds: int) -> Experiment:
    """Return the four agents of the paper on its abrupt task."""
    return declare(
        {
            "seeds": seeds,
            "environment": [{"id": "WGPBandit-Abrupt-v0"}],
            "agent": [{"name": name} for name in AGENTS],
        }
    )


def overhead(seeds: int, folder: Path) -> Rows:
    """Return the time of a run over that of its rollouts."""
    spent = [0.0]

    def _timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def _call(*arguments: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                spent[0] += time.perf_counter() - started

        return _call

    experiment = declare(read_declaration("figure1") | {"seeds": 2})
    run(experiment, folder / "warm", Workers(1))  # compiled code is read, caches are filled
    experiment = declare(read_declaration("figure1") | {"seeds": seeds})
    for name in ("prepare", "rollout"):
        setattr(playing, name, _timed(getattr(playing, name)))
    started = time.perf_counter()
    run(experiment, folder / "figure1", Workers(1))
    whole = time.perf_counter() - started
    reported = time_of_report(folder / "figure1")
    return [
        ("Figure 1, bare rollouts", spent[0], "s"),
        ("... what the harness adds to them", 100 * (whole / spent[0] - 1), "%"),
        ("... its tables and page, beside that", reported, "s"),
    ]


def workers(seeds: int, folder: Path) -> Rows:
    """Return the time of four agents on one process and on two, the best of two each."""
    best = {1: np.inf, 2: np.inf}
    for turn in range(2):
        for jobs in best:
            started = time.perf_counter()
            run(four_agents(seeds), folder / f"workers-{jobs}-{turn}", Workers(jobs))
            best[jobs] = min(best[jobs], time.perf_counter() - started)
    return [
        (f"four agents x {seeds} seeds x 500 steps, one process", best[1], "s"),
        ("... two processes", best[2], "s"),
        ("... how many times as fast", best[1] / best[2], "times"),
    ]


def memory(seeds: int, folder: Path) -> Rows:
    """Return the memory of a long run and of its report."""
    run(four_agents(seeds), folder / "many", Workers(2))
    parent = own_peak()
    largest: dict[str, float] = {}
    for row in timings(load_results(folder / "many")):
        largest[row["worker"]] = max(float(row["peak_memory_mib"]), largest.get(row["worker"], 0))
    time_of_report(folder / "many")
    return [
        (
            f"four agents x {seeds} seeds: peak memory of all processes",
            parent + sum(largest.values()),
            "MiB",
        ),
        ("... peak memory with its report", own_peak(), "MiB"),
    ]


def time_of_report(folder: Path) -> float:
    """Write the tables and the page of a folder; return the seconds that it took."""
    started = time.perf_counter()
    summary = summarise(load_results(folder))
    write_tables(summary, folder)
    write_page(summary, folder / "report.html")
    return time.perf_counter() - started


def own_peak() -> float:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(folder: Path) -> Rows:
    """Return the time to build a large report of made-up numbers."""
    experiment = declare(
        {
            "seeds": 100,
            "environment": [
                {"id": "WGPBandit-Abrupt-v0", "name": f"task {i}", "kwargs": {"noise_std": 0.1 + i}}
                for i in range(10)
            ],
            "agent": [
                {"name": "wgp-ucb", "label": f"agent {i}", "parameters": {"delta": 0.01 + i / 100}}
                for i in range(49)
            ]
            + [{"name": "random"}],
        }
    )
    with ResultsFolder.open_to_write(folder / "large", experiment) as held:
        for unit in experiment.units():
            held.write(unit, made_up(unit))
    seconds = time_of_report(folder / "large")
    size = (folder / "large" / "report.html").stat().st_size / 2**20
    return [
        ("report over 50 agents x 10 tasks x 100 runs", seconds, "s"),
        ("... its page", size, "MiB"),
    ]


def made_up(unit: Unit) -> Arrays:
    """Return arrays of a unit's shape."""
    rng = np.random.default_rng(abs(hash((unit.task.name, unit.agent.label))))
    k, horizon = len(unit.runs), 500
    regret = rng.gamma(2.0, rng.uniform(0.2, 2.0), (k, horizon)).astype(np.float32)
    changed = np.zeros((k, horizon), bool)
    changed[:, [99, 199]] = True
    arms = rng.integers(0, 100, (2, k, horizon)).astype(np.uint8)
    seeds = (np.array(each, np.int64) for each in seeds_of(unit))
    arrays: Arrays = dict(zip(("env_seed", "agent_seed"), seeds, strict=True))
    arrays |= {name: np.ones(k) for name in ("norm_bound", "variation_budget")}
    arrays |= {"final_regret": regret.sum(axis=1, dtype=float), "regret": regret}
    return arrays | {"action": arms[0], "optimal_action": arms[1], "changed": changed}


def main() -> int:
    """Print everything, and write it as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--many", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: Rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measures: list[Callable[[], Rows]] = [
            partial(report, folder),
            partial(workers, options.seeds, folder),
            partial(memory, options.many, folder),
            partial(overhead, options.seeds, folder),
        ]
        for measure in measures:
            for row in measure():
                print(f"{row[0]:64}{row[1]:12.2f} {row[2]}", flush=True)
                rows.append(row)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
