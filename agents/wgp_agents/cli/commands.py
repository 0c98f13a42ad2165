"""The commands that list, verify, train and compare."""

from __future__ import annotations

import argparse
from pathlib import Path

from wgp_agents.cli.arguments import UNEXPECTED
from wgp_agents.cli.experiments import ended
from wgp_agents.cli.terminal import drawn, refused, say
from wgp_gym.validation import reject

__all__ = ["compare", "list_names", "train", "verify"]


def list_names(options: argparse.Namespace) -> int:
    """Print every environment id and agent name with one line each, the agents by family."""
    from wgp_agents.registry import AGENTS, FAMILIES
    from wgp_gym.registration import ENVIRONMENTS

    del options
    width = 2 + max(len(name) for name in [*AGENTS, *(entry.id for entry in ENVIRONMENTS)])
    say("Environments (gymnasium.make), beside your own, as module:id:")
    for environment in ENVIRONMENTS:
        say(f"  {environment.id:{width}}{environment.summary}")
    say("\nAgents (wgp_agents.make), beside your own, as module:Class.")
    say("* marks a reference, which reads the truth:")
    for family in FAMILIES:
        say(f"\n{family}:")
        for agent in AGENTS.values():
            if agent.family == family:
                say(f"{'*' if agent.reference else '':2}{agent.name:{width}}{agent.summary}")
    return 0


def verify(options: argparse.Namespace) -> int:
    """Check the paper's statements, print them, and write their files; return the exit code."""
    from wgp_agents.benchmark.parallel import LostWorker
    from wgp_agents.theory.verify import plots
    from wgp_agents.theory.verify import run as checks
    from wgp_agents.theory.verify.stored import ChecksFolder, Settings

    out = options.out or Path("results") / ("verify-quick" if options.quick else "verify")
    page = out / "verify.png"
    try:
        with ChecksFolder.open_to_write(out, Settings(options.quick, options.seed)) as folder:
            page.unlink(missing_ok=True)  # or an interrupt would leave an older one by new rows
            for found in checks.run(folder, options.jobs):
                rows = found.rows
    except (ValueError, OSError, LostWorker) as error:
        return refused("verify", error)
    say(checks.rows_as_text(rows))
    say(f"\n{checks.summary(rows)}")
    say(f"Written to {out}: statements.csv, curves.csv, checks")
    read_back = out / "curves.csv"
    code = drawn("verify", lambda: plots.draw_page(plots.load_curves(read_back), page), page)
    return code if all(row.expected for row in rows) else UNEXPECTED


def train(options: argparse.Namespace) -> int:
    """Train an agent, print how it did, and write its files; return the exit code."""
    from gymnasium.error import Error as UnknownEnvironment

    try:
        from wgp_agents.training.learner import LEARNERS

        learns = options.algo in LEARNERS
        if options.seconds is not None and not learns:
            rule = f"left out but for {' and '.join(LEARNERS)}"
            reject("seconds", "train", rule, options.seconds)
        path, last = (train_learner if learns else train_policy)(options)
    except (ValueError, TypeError, OSError, ImportError, UnknownEnvironment) as error:
        return refused("train", error)
    say(
        f"Mean regret on held-out episodes after {last['steps']:,} steps: "
        f"{last['regret']:.0f}, {last['share_of_random']:.0%} of random play's."
    )
    notes = "" if learns else ", its notes (.json)"
    say(f"Written to {options.out}: {path.name}{notes} and learning curve (.csv)")
    return 0


def train_policy(options: argparse.Namespace) -> tuple[Path, dict[str, float]]:
    """Train a policy of stable-baselines3; return its file and the end of its learning curve."""
    from wgp_agents.algorithms.learned.weights_file import model_file
    from wgp_agents.training import training

    path = options.out / model_file(options.algo, options.env, options.seed, "zip")
    work = options.algo, options.env, options.steps, options.seed, path, options.env_kwargs
    return path, training.train(*work)[-1]


def train_learner(options: argparse.Namespace) -> tuple[Path, dict[str, float]]:
    """Train an agent on the truth; return the same."""
    from wgp_agents.algorithms.learned.weights_file import model_file
    from wgp_agents.training import learner

    path = options.out / model_file(options.algo, options.env, options.seed)
    given = {"seed": options.seed, "kwargs": options.env_kwargs}
    budget = {"seconds": options.seconds, "steps": options.steps}
    return path, learner.train(options.algo, options.env, path, **budget, **given)[-1]


def compare(options: argparse.Namespace) -> int:
    """Play trained policies beside WGP-UCB, and write tables and picture; return the exit code."""
    from wgp_agents.benchmark.figures import compare as plots
    from wgp_agents.benchmark.parallel import LostWorker

    out, page = options.out, options.out / "compare.png"
    try:
        from wgp_agents.training import comparison

        work = options.models, options.episodes, options.root_seed, options.jobs
        with comparison.folder_of_models(out, options.models):
            if failed := comparison.play(*work, out, options.extend):
                return ended(failed, out / failed[0].task.name)
            page.unlink(missing_ok=True)  # or an interrupt would leave it beside newer tables
            results = comparison.load(out)
            rows = comparison.rows(results)
            comparison.write_files(results, rows, options.models, out)
    except (ValueError, OSError, ImportError, LostWorker) as error:
        return refused("compare", error)
    say(comparison.rows_as_text(rows))
    files = ", ".join(["summary.csv, runs.csv, learning.csv, models.json", *results])
    say(f"\nWritten to {out}: {files}")
    return drawn("compare", lambda: plots.comparison(*comparison.drawn_from(out), page), page)
