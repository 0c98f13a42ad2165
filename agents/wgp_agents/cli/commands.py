"""The commands that list, verify, train and compare."""

from __future__ import annotations

import argparse
import time
from typing import Any

from wgp_agents.cli.arguments import UNEXPECTED
from wgp_agents.cli.terminal import drawn, refused, say

__all__ = ["compare", "list_names", "train", "verify"]


def list_names(options: argparse.Namespace) -> int:
    """Print every environment id and agent name with one line each, the agents by family."""
    from wgp_agents.registry import AGENTS, FAMILIES
    from wgp_gym.registration import ENVIRONMENTS

    del options
    width = 2 + max(len(name) for name in [*AGENTS, *(entry.id for entry in ENVIRONMENTS)])
    say("Environments (gymnasium.make):")
    for environment in ENVIRONMENTS:
        say(f"  {environment.id:{width}}{environment.summary}")
    say("\nAgents (wgp_agents.make); * marks a reference, which reads the truth:")
    for family in FAMILIES:
        say(f"\n{family}:")
        for agent in AGENTS.values():
            if agent.family == family:
                say(f"{'*' if agent.reference else '':2}{agent.name:{width}}{agent.summary}")
    return 0


def verify(options: argparse.Namespace) -> int:
    """Check the paper's statements, print them, and write their files; return the exit code."""
    from wgp_agents.verify import plots
    from wgp_agents.verify import run as checks

    started = time.perf_counter()
    manifest: dict[str, Any] = {"command": "verify", "quick": options.quick, "seed": options.seed}
    page, done = options.out / "verify.png", {}
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        page.unlink(missing_ok=True)  # or an interrupt would leave an older one beside new rows
        for place, findings in checks.run(options.quick, options.seed, options.jobs):
            done[place] = findings
            rows = [row for i in sorted(done) for row in done[i].rows]
            curves = [curve for i in sorted(done) for curve in done[i].curves]
            manifest["checks"] = f"{len(done)} of {len(checks.CHECKS)}"
            manifest["seconds"] = round(time.perf_counter() - started, 2)
            checks.write_files(rows, curves, manifest, options.out)
    except OSError as error:
        return refused("verify", error)
    say(checks.table(rows))
    say(f"\n{len(rows)} rows: {checks.summary(rows)}.")
    say(f"Written to {options.out}: statements.csv, curves.csv, manifest.json")
    read_back = options.out / "curves.csv"
    code = drawn("verify", lambda: plots.draw_page(plots.load_curves(read_back), page), page)
    return code if all(row.expected for row in rows) else UNEXPECTED


def train(options: argparse.Namespace) -> int:
    """Train a policy, print how it did, and write its files; return the exit code."""
    from gymnasium.error import Error as UnknownEnvironment

    try:
        from wgp_agents.sb3 import training
        from wgp_agents.sb3.model import model_file

        path = options.out / model_file(options.algo, options.env, options.seed)
        options.out.mkdir(parents=True, exist_ok=True)
        work = options.algo, options.env, options.steps, options.seed, path, options.env_kwargs
        last = training.train(*work)[-1]
    except (ValueError, TypeError, OSError, ImportError, UnknownEnvironment) as error:
        return refused("train", error)
    say(
        f"Mean regret on 100 held-out episodes after {last['steps']:,} steps: "
        f"{last['regret']:.0f}, {last['share_of_random']:.0%} of random play's."
    )
    say(f"Written to {options.out}: {path.name}, its notes (.json) and learning curve (.csv)")
    return 0


def compare(options: argparse.Namespace) -> int:
    """Play trained policies beside WGP-UCB, and write tables and picture; return the exit code."""
    from wgp_agents.benchmark.figures import compare as plots

    started = time.perf_counter()
    try:
        from wgp_agents.sb3 import comparison

        options.out.mkdir(parents=True, exist_ok=True)
        work = options.models, options.episodes, options.root_seed, options.jobs
        regrets = comparison.play(*work)
        rows = comparison.rows(regrets)
        manifest: dict[str, Any] = {
            "command": "compare",
            "episodes": options.episodes,
            "root_seed": options.root_seed,
            "seconds": round(time.perf_counter() - started, 2),
        }
        comparison.write_files(regrets, rows, options.models, manifest, options.out)
    except (ValueError, OSError, ImportError) as error:
        return refused("compare", error)
    say(comparison.table(rows))
    files = "summary.csv, runs.csv, learning.csv, curves.npz, manifest.json"
    say(f"\nWritten to {options.out}: {files}")
    page = options.out / "compare.png"
    return drawn("compare", lambda: plots.comparison(*comparison.load(options.out), page), page)
