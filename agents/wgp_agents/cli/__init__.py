"""The command `wgp-gym`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

from wgp_agents.benchmark.values import LARGEST_NUMBER, MOST_RUNS
from wgp_agents.cli import commands, experiments, leaderboard, warm_up
from wgp_agents.cli.arguments import (
    ALL,
    INTERRUPTED,
    UNEXPECTED,
    Parser,
    folder,
    json_object,
    processes,
    whole_number,
)
from wgp_agents.cli.terminal import discard, prepare_streams, say

__all__ = ["main"]

MOST_STEPS = 10**12

Command = Callable[[argparse.Namespace], int]
"""What does a command, by its flags; it returns the exit code."""

runs = partial(whole_number, 1, MOST_RUNS)
steps = partial(whole_number, 1, MOST_STEPS)
seed = partial(whole_number, 0, LARGEST_NUMBER)
seconds = partial(whole_number, 1, MOST_STEPS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The words after `wgp-gym`; None takes them from the command line.

    Returns:
        The exit code: 0; 1 if a statement came out otherwise than documented, a unit of work
        failed, a picture could not be drawn or nobody reads the messages any more; 2 for a request
        that cannot be met; 130 after an interrupt.
    """
    prepare_streams()
    try:
        options = parser().parse_args(arguments)
        with drawn_by_agg():
            code: int = options.run(options)
    except KeyboardInterrupt:
        print("\nInterrupted. Files that were written before are whole.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        discard(sys.stderr)
        return UNEXPECTED
    finally:
        say("", end="")  # here, and not when Python ends, a closed pipe does no harm
    return code


@contextmanager
def drawn_by_agg() -> Iterator[None]:
    """Let pictures be drawn without a window, here and in processes that are started meanwhile.

    A notebook's shell has MPLBACKEND name a backend that is often not installed for the command.
    """
    before = os.environ.get("MPLBACKEND")
    os.environ["MPLBACKEND"] = "agg"
    try:
        yield
    finally:
        if before is None:
            del os.environ["MPLBACKEND"]
        else:
            os.environ["MPLBACKEND"] = before


def parser() -> Parser:
    """Return the command's parser."""
    text = "Bandits in a drifting world: run experiments, check the paper, compare with RL."
    root = Parser(prog="wgp-gym", description=text)
    root.add_argument("--version", action="version", version=f"wgp-gym {version('wgp-gym')}")
    commands_of = root.add_subparsers(required=True, metavar="COMMAND")

    def _command(name: str, run: Command, text: str, out: str = "") -> Parser:
        shape = argparse.ArgumentDefaultsHelpFormatter
        made: Parser = commands_of.add_parser(
            name, help=text, description=text, formatter_class=shape
        )
        made.set_defaults(run=run)
        if out:
            text = "folder of the results"
            made.add_argument("--out", type=folder, default=Path(out), help=text)
        return made

    _command("list", commands.list_names, "list the environments and the agents")
    _command("warm-up", warm_up.run, "compile all agents beforehand, as for a container's image")
    text = "run an experiment: any agents in any environments; a second call goes on with the first"
    run_flags(_command("run", experiments.run, text))
    text = "write tables, figures and a page from a folder of results"
    report_flags(_command("report", experiments.report, text))
    text = "play Figure 1 of the paper and write figure, tables and curves"
    figure = _command("reproduce", experiments.reproduce, text, "results/figure1")
    text = "check every statement of the paper on real instances"
    theory = _command("verify", commands.verify, text)
    text = "folder of the results; default: results/verify, with --quick results/verify-quick"
    theory.add_argument("--out", type=folder, help=text)
    theory.add_argument("--quick", action="store_true", help="fewer runs, shorter horizons")
    theory.add_argument("--seed", type=seed, default=2022, help="all randomness follows from it")
    text = "train an agent on fresh episodes: on the truth, or a policy of stable-baselines3"
    train_flags(_command("train", commands.train, text, "models"))
    text = "play trained agents beside learners on the same episodes"
    beside = _command("compare", commands.compare, text, "results/compare")
    compare_flags(beside)
    text = "rank every agent that needs nothing beforehand on a fixed suite of tasks"
    leaderboard_flags(_command("leaderboard", leaderboard.run, text))
    text = "write an agent's plays as a Minari data set, for learning offline"
    dataset_flags(_command("dataset", commands.dataset, text))
    numbers_flags(figure)
    for command in (figure, theory, beside):
        command.add_argument("--jobs", type=processes, default=ALL, help="processes")
    return root


def compare_flags(command: Parser) -> None:
    """Add the flags of `compare`."""
    command.add_argument("--episodes", type=runs, default=100, help="episodes of each agent")
    text = "folder of models, which go before the package's; default: models, with --trainings"
    command.add_argument("--models", type=folder, help=text)
    text = "trainings of each trained agent; those that are missing are trained first"
    command.add_argument("--trainings", type=partial(whole_number, 1, 100), default=1, help=text)
    text = "one agent more, as NAME or module:Class; may be given again"
    command.add_argument(
        "--agent", action="append", default=[], metavar="NAME[:PARAMETER=VALUE,...]", help=text
    )
    command.add_argument("--root-seed", type=seed, default=2022, help="the others' source")
    text = "keep the episodes in the folder, and play more of them"
    command.add_argument("--extend", action="store_true", help=text)


def leaderboard_flags(command: Parser) -> None:
    """Add the flags of `leaderboard`."""
    text = "small: 2 minutes; standard: 20; full: hours"
    sizes = "small", "standard", "full"
    command.add_argument("--suite", choices=sizes, default="small", help=text)
    text = "an agent beside the package's, as module:Class or NAME; may be given again"
    command.add_argument(
        "--agent", action="append", default=[], metavar="NAME[:PARAMETER=VALUE,...]", help=text
    )
    text = "folder of the results; default: results/leaderboard-SUITE"
    command.add_argument("--out", type=folder, help=text)
    text = "put tables between <!-- leaderboard --> and <!-- /leaderboard --> there, picture beside"
    command.add_argument("--into", type=folder, help=text)
    command.add_argument("--jobs", type=processes, default=ALL, help="processes")


def dataset_flags(command: Parser) -> None:
    """Add the flags of `dataset`."""
    for name, shape in (("env", "ID[:KEY=VALUE,...]"), ("agent", "NAME[:PARAMETER=VALUE,...]")):
        command.add_argument(f"--{name}", required=True, metavar=shape, help="who plays what")
    command.add_argument("--episodes", type=runs, default=1000, help="how many it is to have")
    text = "its id; default: wgp-bandit/, the task and the agent"
    command.add_argument("--name", help=text)
    text = "which set of seeds: no two share an episode"
    command.add_argument("--seed", type=partial(whole_number, 0, 10**5 - 1), default=0, help=text)


def numbers_flags(command: Parser) -> None:
    """Add the flags that take the place of an experiment's own numbers."""
    command.add_argument("--seeds", type=runs, help="runs of each agent")
    command.add_argument("--root-seed", type=seed, help="all randomness follows from it")
    command.add_argument("--horizon", type=steps, help="steps of each run, for a quick look")
    text = "keep the runs in the folder, and play what the experiment has beside them"
    command.add_argument("--extend", action="store_true", help=text)


def run_flags(command: Parser) -> None:
    """Add the flags of `run`."""
    text = "a TOML file, or the name of one that comes with the package"
    command.add_argument("experiment", nargs="?", help=text)
    for flag, shape, text in (
        ("--env", "ID[:KEY=VALUE,...]", "without a file: an environment; may be given again"),
        ("--agent", "NAME[:PARAMETER=VALUE,...]", "without a file: an agent; [0.9,0.99] is a grid"),
    ):
        command.add_argument(flag, action="append", default=[], metavar=shape, help=text)
    numbers_flags(command)
    command.add_argument("--out", type=folder, help="folder of the results; default: results/NAME")
    command.add_argument("--dry-run", action="store_true", help="show the plan and its time")
    command.add_argument("--no-report", action="store_true", help="only play")
    command.add_argument("--jobs", type=processes, default=ALL, help="processes")
    text = "where they run: loky (here), dask or ray (a cluster), or another backend of joblib"
    command.add_argument("--backend", default="loky", help=text)
    text = "the cluster's scheduler; without it, one is started here"
    command.add_argument("--address", default="", help=text)


def report_flags(command: Parser) -> None:
    """Add the flags of `report`."""
    command.add_argument("folder", type=folder, help="what `wgp-gym run` has written")
    command.add_argument(
        "--format",
        action="append",
        choices=experiments.FORMATS,
        help="what to write beside the tables in CSV; default: html and md",
    )
    text = "report on what there is, though runs are missing"
    command.add_argument("--partial", action="store_true", help=text)
    text = "put the Markdown tables between <!-- results --> and <!-- /results --> in this file"
    command.add_argument("--into", type=folder, help=text)


def train_flags(command: Parser) -> None:
    """Add the flags of `train`."""
    text = "in-context, learned-wgp-ucb, ppo, a2c, dqn or recurrent-ppo"
    command.add_argument("--algo", required=True, help=text)
    text = "the environment's id; of the first two, or general: random worlds"
    command.add_argument("--env", default="WGPBandit-Abrupt-v0", help=text)
    text = "what it is made with, as '{\"horizon\": 100}'"
    command.add_argument("--env-kwargs", type=json_object, default={}, help=text)
    command.add_argument("--steps", type=steps, help="steps to train; default: the settings'")
    text = "of the first two: of processor time, in the place of --steps"
    command.add_argument("--seconds", type=seconds, help=text)
    command.add_argument("--seed", type=seed, default=0, help="all randomness follows from it")
