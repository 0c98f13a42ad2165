"""What a comparison needs before it is played: rivals of one's own, and trainings not yet done."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tqdm import tqdm

from wgp_agents.benchmark.declaration import split_flag
from wgp_agents.benchmark.plan import check
from wgp_agents.registry import agent_entry
from wgp_agents.training.comparison import experiment
from wgp_agents.training.rivals import TASKS, Match, Rival, Training, missing
from wgp_gym.validation import reject

__all__ = ["check_rivals", "more_rivals", "train_all", "train_missing"]


def more_rivals(flags: Sequence[str]) -> list[Rival]:
    """Return the rivals that flags name: "NAME" or "module:Class", with ":parameter=value,...".

    Raises:
        ValueError: If a flag does not read so, or there is no such agent.
    """
    found: list[Rival] = []
    for flag in flags:
        name, parameters = split_flag("agent", flag)
        agent_entry(name)
        found.append(Rival(name, flag[len(name) + 1 :].strip(), parameters))
    return found


def check_rivals(match: Match) -> None:
    """Check that everybody who is not trained can play, before hours of training begin.

    Raises:
        ValueError: If an agent takes part twice, or cannot be made.
    """
    names = [rival.name for rival in match.rivals]
    for name in names:
        if names.count(name) > 1:
            reject("agent", "compare", "one that does not take part already", name)
    untrained = [rival for rival in match.rivals if not rival.trained_on]
    for task in TASKS:
        check(experiment(task, Match(untrained), 2, 0))


def train_missing(match: Match, jobs: int) -> None:
    """Train what there is no file of, in the folder of the models.

    Raises:
        ValueError: If a training fails.
    """
    if work := missing(match):
        assert match.folder is not None  # without further trainings nothing is missing
        train_all(work, match.folder, jobs)


def train_all(work: Sequence[Training], folder: Path, jobs: int) -> None:
    """Train, each in a process of its own; what was trained before is not trained again.

    Raises:
        ValueError: If a training fails.
    """
    running: list[subprocess.Popen[str]] = []
    with ThreadPoolExecutor(jobs) as pool:
        trainings = [pool.submit(train, one, folder, running) for one in work]
        try:
            for done in tqdm(as_completed(trainings), total=len(work), unit="training"):
                tqdm.write(done.result(), file=sys.stderr)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in running:
                process.terminate()  # it goes on from its last checkpoint
            raise


def train(training: Training, folder: Path, running: list[subprocess.Popen[str]]) -> str:
    """Train one, by the command; return a line that says how it did.

    Its process is among those that are `running` until it ends.
    """
    started = time.perf_counter()
    rival, environment, seed = training
    command = [sys.executable, "-c", "import sys; from wgp_agents import cli; sys.exit(cli.main())"]
    command += ["train", "--algo", rival.agent, "--env", environment, "--seed", str(seed)]
    command += ["--out", str(folder)]
    if rival.seconds is not None:
        command += ["--seconds", str(rival.seconds)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        running.append(process)
        out, said = process.communicate()
        running.remove(process)
    if process.returncode:
        lines = said.strip().splitlines() or ["it said nothing"]
        raise ValueError(f"The training of {training.file_name} failed: {lines[-1]}")
    seconds = time.perf_counter() - started
    return f"{training.file_name}, {seconds:.0f} s. {out.splitlines()[0]}"
