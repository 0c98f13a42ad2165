"""The commands that list, verify, train and compare."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wgp_agents.cli.arguments import UNEXPECTED
from wgp_agents.cli.experiments import ended
from wgp_agents.cli.terminal import drawn, refused, say
from wgp_gym.validation import check_choice, reject

if TYPE_CHECKING:
    from wgp_agents.training.rivals import Match

__all__ = ["compare", "dataset", "list_names", "train", "verify"]


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
        from wgp_agents.registry import TRAINED
        from wgp_agents.training.learner import LEARNERS

        check_choice("algo", options.algo, "train", (*LEARNERS, *TRAINED))
        learns = options.algo in LEARNERS
        if options.seconds is not None and not learns:
            rule = f"left out but for {' and '.join(LEARNERS)}"
            reject("seconds", "train", rule, options.seconds)
        path, kept = (train_learner if learns else train_policy)(options)
    except (ValueError, TypeError, OSError, ImportError, UnknownEnvironment) as error:
        return refused("train", error)
    say(
        f"Mean regret on held-out episodes after {kept['steps']:,} steps: "
        f"{kept['regret']:.0f}, {kept['share_of_random']:.0%} of random play's."
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
    """Train an agent on the truth; return its file and the best of its curve, which stays."""
    from wgp_agents.algorithms.learned.weights_file import model_file
    from wgp_agents.training import learner

    path = options.out / model_file(options.algo, options.env, options.seed)
    given = {"seed": options.seed, "kwargs": options.env_kwargs}
    budget = {"seconds": options.seconds, "steps": options.steps}
    curve = learner.train(options.algo, options.env, path, **budget, **given)
    return path, min(reversed(curve), key=lambda point: point["share_of_random"])


def compare(options: argparse.Namespace) -> int:
    """Play trained agents beside learners, and write tables and picture; return the exit code."""
    from wgp_agents.benchmark.figures import compare as plots
    from wgp_agents.benchmark.parallel import LostWorker

    out, page = options.out, options.out / "compare.png"
    try:
        from wgp_agents.training import comparison

        match = taking_part(options)
        work = match, options.episodes, options.root_seed, options.jobs
        with comparison.folder_of_models(out, match):
            if failed := comparison.play(*work, out, options.extend):
                return ended(failed, out / failed[0].task.name)
            page.unlink(missing_ok=True)  # or an interrupt would leave it beside newer tables
            results = comparison.load(out)
            rows = comparison.rows(results, match)
            comparison.write_files(results, rows, match, out)
    except (ValueError, OSError, ImportError, LostWorker) as error:
        return refused("compare", error)
    say(comparison.rows_as_text(rows))
    files = ", ".join(["summary.csv, runs.csv, learning.csv, models.json", *results])
    say(f"\nWritten to {out}: {files}")
    read = comparison.drawn_from
    return drawn("compare", lambda: plots.comparison(*read(out, match), page), page)


def taking_part(options: argparse.Namespace) -> Match:
    """Return who is compared, all of whom are trained now, and say whose models are whose."""
    from wgp_agents.training.match import check_rivals, more_rivals, train_missing
    from wgp_agents.training.rivals import RIVALS, Match

    folder, trainings = options.models, options.trainings
    if trainings > 1 and folder is None:
        folder = Path("models")
    match = Match((*RIVALS, *more_rivals(options.agent)), trainings, folder)
    check_rivals(match)
    if trainings > 1:
        train_missing(match, options.jobs)
    if folder is not None:
        own = [one.file_name for one, file in match.files.items() if file.parent == folder]
        if not own:
            reject("models", "compare", "a folder with a trained model in it", str(folder))
        say(f"Models of {folder}: {', '.join(own)}. All others are the package's.")
    return match


def dataset(options: argparse.Namespace) -> int:
    """Write an agent's plays as a Minari data set; return the exit code."""
    from gymnasium.error import Error as UnknownEnvironment

    from wgp_agents.benchmark.declaration import split_flag

    try:
        from wgp_agents.training.dataset import data_set_name, write_dataset

        agent, parameters = split_flag("agent", options.agent)
        environment, kwargs = split_flag("env", options.env)
        name = options.name or data_set_name(agent, environment)
        given = {"seed": options.seed, "parameters": parameters, "kwargs": kwargs}
        made = write_dataset(name, agent, environment, options.episodes, **given)
    except (ValueError, TypeError, OSError, ImportError, UnknownEnvironment) as error:
        return refused("dataset", error)
    scores = [made.storage.metadata[f"ref_{end}_score"] for end in ("min", "max")]
    say(
        f"{made.total_episodes:,} episodes, {made.total_steps:,} steps. Mean return of random play "
        f"{scores[0]:.1f}, of the oracle {scores[1]:.1f}."
    )
    say(f"To read it in Python: minari.load_dataset({name!r})")
    return 0
