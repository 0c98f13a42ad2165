"""The command `wgp-gym`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

__all__ = ["main"]

UNEXPECTED = 1
WRONG_REQUEST = 2
INTERRUPTED = 130  # what a shell expects of a command that was interrupted


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The words after `wgp-gym`; None takes them from the command line.

    Returns:
        The exit code: 0; 1 if a statement came out otherwise than documented; 2 for a request
        that cannot be met; 130 after an interrupt.
    """
    options = parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except KeyboardInterrupt:
        print("\nInterrupted. Files that were written before are whole.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader, as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    positive, natural = partial(whole_number, 1), partial(whole_number, 0)
    root = argparse.ArgumentParser(prog="wgp-gym", description=__doc__)
    commands = root.add_subparsers(required=True, metavar="COMMAND")

    def _command(name: str, run: Any, text: str, out: str = "") -> argparse.ArgumentParser:
        shape = argparse.ArgumentDefaultsHelpFormatter
        made: argparse.ArgumentParser = commands.add_parser(name, help=text, formatter_class=shape)
        made.set_defaults(run=run)
        if out:
            made.add_argument("--out", type=Path, default=Path(out), help="folder of the results")
        return made

    _command("list", list_names, "list the environments and the agents")
    text = "play Figure 1 of the paper and write figure, tables and curves"
    figure = _command("reproduce", reproduce, text, "results")
    figure.add_argument("--seeds", type=positive, default=100, help="runs of each agent")
    figure.add_argument("--horizon", type=positive, help="steps of each run, for a quick look")
    text = "check every statement of the paper on real instances"
    theory = _command("verify", verify, text, "results/verify")
    theory.add_argument("--quick", action="store_true", help="fewer runs, shorter horizons")
    theory.add_argument("--seed", type=natural, default=2022, help="all randomness follows from it")
    text = "train a policy of stable-baselines3 on freshly drawn episodes"
    training = _command("train", train, text, "models")
    training.add_argument("--algo", required=True, help="ppo, a2c, dqn or recurrent-ppo")
    training.add_argument("--env", default="WGPBandit-Abrupt-v0", help="the environment's id")
    text = "what it is made with, as '{\"horizon\": 100}'"
    training.add_argument("--env-kwargs", type=json_object, default={}, help=text)
    training.add_argument("--steps", type=positive, help="steps to train; default: the settings'")
    training.add_argument("--seed", type=natural, default=0, help="all randomness follows from it")
    text = "play trained policies beside WGP-UCB on the same episodes"
    beside = _command("compare", compare, text, "results/compare")
    beside.add_argument("--episodes", type=positive, default=100, help="episodes of each agent")
    beside.add_argument("--models", type=Path, help="folder of models; default: the package's")
    for command in (figure, beside):
        command.add_argument("--root-seed", type=natural, default=2022, help="the others' source")
    for command in (figure, theory, beside):
        command.add_argument("--jobs", type=positive, default=default_jobs(), help="processes")
    return root


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


def list_names(options: argparse.Namespace) -> int:
    """Print every environment id and agent name with one line each."""
    from wgp_agents.registry import AGENTS
    from wgp_gym.registration import ENVIRONMENTS

    del options
    print("Environments (gymnasium.make):")
    for environment in ENVIRONMENTS:
        print(f"  {environment.id:26}{environment.summary}")
    print("Agents (wgp_agents.make):")
    for agent in AGENTS.values():
        print(f"  {agent.name:26}{agent.summary}")
    return 0


def reproduce(options: argparse.Namespace) -> int:
    """Play Figure 1, print its tables, and write its files; return the exit code."""
    from wgp_agents.benchmark import experiment, plots, report

    started = time.perf_counter()
    try:
        experiment.check_horizon(options.horizon)
        options.out.mkdir(parents=True, exist_ok=True)
    except (ValueError, OSError) as error:
        return refused("reproduce", error)
    work = experiment.units(options.seeds, options.root_seed, options.horizon)
    collected = report.collect(experiment.run(work, options.jobs))
    rows = report.summary_rows(collected)
    manifest: dict[str, Any] = {
        "command": "reproduce",
        "seeds": options.seeds,
        "root_seed": options.root_seed,
        "horizon": options.horizon,
        "jobs": options.jobs,
        "seconds": round(time.perf_counter() - started, 2),
    }
    report.write_files(collected, rows, manifest, options.out)
    curves = {panel: report.load_curves(options.out, panel) for panel in experiment.PANELS}
    plots.figure1(curves, options.out)
    print("\nFinal regret in Figure 1, mean ± standard error (*: lowest mean):")
    print(report.table([row for row in rows if row["in_figure"]]))
    print("\nUnder other settings:")
    print(report.table([row for row in rows if not row["in_figure"]]))
    files = "figure1.png, figure1.pdf, summary.csv, runs.csv, curves.npz, manifest.json"
    print(f"\nWritten to {options.out}: {files}")
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
        plots.draw_page(plots.load_curves(options.out / "curves.csv"), page)
    except OSError as error:
        return refused("verify", error)
    print(checks.table(rows))
    print(f"\n{len(rows)} rows: {checks.summary(rows)}.")
    print(f"Written to {options.out}: statements.csv, curves.csv, verify.png, manifest.json")
    return 0 if all(row.expected for row in rows) else UNEXPECTED


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
    print(
        f"Mean regret on 100 held-out episodes after {last['steps']:,} steps: "
        f"{last['regret']:.0f}, {last['share_of_random']:.0%} of random play's."
    )
    print(f"Written to {options.out}: {path.name}, its notes (.json) and learning curve (.csv)")
    return 0


def compare(options: argparse.Namespace) -> int:
    """Play trained policies beside WGP-UCB, and write tables and picture; return the exit code."""
    from wgp_agents.benchmark import plots

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
    plots.comparison(*comparison.load(options.out), options.out / "compare.png")
    print(comparison.table(rows))
    files = "compare.png, summary.csv, runs.csv, learning.csv, curves.npz, manifest.json"
    print(f"\nWritten to {options.out}: {files}")
    return 0


def refused(command: str, error: Exception) -> int:
    """Say why a request cannot be met; return the exit code."""
    remedy = " Install wgp-gym[rl]." if isinstance(error, ImportError) else ""
    print(f"wgp-gym {command}: error: {error}{remedy}", file=sys.stderr)
    return WRONG_REQUEST
