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
from wgp_agents.registry import agent_entry
from wgp_agents.training.rivals import Match, Rival, Training, missing

__all__ = ["more_rivals", "train_all", "train_missing"]


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
    with ThreadPoolExecutor(jobs) as pool:
        trainings = [pool.submit(train, one, folder) for one in work]
        try:
            for done in tqdm(as_completed(trainings), total=len(work), unit="training"):
                tqdm.write(done.result(), file=sys.stderr)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def train(training: Training, folder: Path) -> str:
    """Train one, by the command; return a line that says how it did."""
    started = time.perf_counter()
    rival, environment, seed = training
    command = [sys.executable, "-c", "import sys; from wgp_agents import cli; sys.exit(cli.main())"]
    command += ["train", "--algo", rival.agent, "--env", environment, "--seed", str(seed)]
    command += ["--out", str(folder)]
    if rival.seconds is not None:
        command += ["--seconds", str(rival.seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise ValueError(f"The training of {training.file_name} failed: {said[-1]}")
    seconds = time.perf_counter() - started
    return f"{training.file_name}, {seconds:.0f} s. {done.stdout.splitlines()[0]}"
