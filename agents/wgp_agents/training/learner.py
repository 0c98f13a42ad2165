"""A whole training on the truth: its budget, checkpoints, validation and files."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from wgp_agents.algorithms.learned.gate import read_gate
from wgp_agents.algorithms.learned.in_context.memory import Shape
from wgp_agents.algorithms.learned.in_context.model import read_model
from wgp_agents.algorithms.learned.weights_file import state_file
from wgp_agents.benchmark.files import JSON, versions, write_csv
from wgp_agents.benchmark.output import diff_settings, locked, raise_other_results
from wgp_agents.training.gate import GateSettings, GateTrainer
from wgp_agents.training.in_context import InContextTrainer, Settings
from wgp_agents.training.resume import State, read_state, write_state
from wgp_agents.training.trainer import Trainer
from wgp_agents.training.worlds import (
    GENERAL,
    Scores,
    World,
    check_worlds,
    training_seed,
    worlds_of,
)
from wgp_gym.validation import check_choice, check_float, check_int, reject

__all__ = ["LEARNERS", "train"]

STEPS = 10_000_000
LONGEST = 10.0**7  # seconds
BAR = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"


def in_context_trainer(worlds: list[World], seed: int, clock: bool) -> Trainer:
    """Return an in-context learner in training; one of a single task is shown t / T."""
    settings = Settings(shape=Shape(clock=clock))
    return InContextTrainer(worlds, settings, seed, training_seed(seed))


def gate_trainer(worlds: list[World], seed: int, clock: bool) -> Trainer:
    """Return a gate in training, which is shown no clock."""
    del clock
    return GateTrainer(worlds, GateSettings(), seed, training_seed(seed))


LEARNERS: dict[str, Callable[[list[World], int, bool], Trainer]] = {
    "in-context": in_context_trainer,
    "learned-wgp-ucb": gate_trainer,
}
READERS: dict[str, Callable[[str, str], Any]] = {
    "in-context": read_model,
    "learned-wgp-ucb": read_gate,
}


def train(
    algo: str,
    environment: str,
    path: Path,
    *,
    seed: int = 0,
    seconds: float | None = None,
    steps: int | None = None,
    kwargs: Mapping[str, JSON] | None = None,
) -> list[dict[str, float]]:
    """Train an agent on the truth, and write its weights and learning curve.

    A training that was interrupted goes on from its last checkpoint; one that was done is not done
    again. It seeds torch's generator and keeps torch to one thread: run it in a process of its own.

    Args:
        algo: "in-context" or "learned-wgp-ucb".
        environment: The id of the environment whose episodes it is trained on; or "general", the
            package's law of random worlds.
        path: The file of the weights, .npz; the curve stands beside it, as .csv.
        seed: What all randomness follows from, below 100,000.
        seconds: How long to train, in seconds of processor time, at least 1; None: by `steps`.
        steps: Steps of the environment to train for; default, without `seconds`, ten million.
        kwargs: What the environment is made with.

    Returns:
        The learning curve: steps, seconds, mean regret on validation episodes, and that as a share
        of random play's.

    Raises:
        ValueError: If a number is out of its range, both budgets are given, the file's weights
            were trained with other settings, or another process trains them.
    """
    owner = "train"
    check_choice("algo", algo, owner, LEARNERS)
    check_int("seed", seed, owner, 0, 10**5 - 1)
    if seconds is not None and steps is not None:
        reject("steps", owner, "left out where 'seconds' is given", steps)
    if seconds is not None:
        check_float("seconds", seconds, owner, 1, LONGEST)
    else:
        steps = check_int("steps", STEPS if steps is None else steps, owner, 1)
    torch.set_num_threads(1)
    worlds = worlds_of(environment, kwargs or {})
    notes: dict[str, Any] = {"algo": algo, "environment": environment}
    notes |= {"kwargs": dict(kwargs or {}), "seed": seed}
    notes |= {"seconds_asked": seconds, "steps_asked": steps}
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(f".{path.stem}.lock")):
        if (curve := finished(algo, path, notes)) is not None:
            tqdm.write(f"{path} was trained before, with these settings.", file=sys.stderr)
            if not path.with_suffix(".csv").exists():
                write_csv(path.with_suffix(".csv"), curve)
            return curve
        trainer = LEARNERS[algo](worlds, seed, environment != GENERAL)
        check_worlds(worlds, trainer.shortest)
        run = Run(trainer, Scores(worlds), path, notes)
        with closing(run):
            run.go_on()
            run.finish()
    return run.curve


def finished(algo: str, path: Path, notes: Mapping[str, object]) -> list[dict[str, float]] | None:
    """Return the learning curve of weights that were trained so; None where there are none.

    Raises:
        ValueError: If they were trained otherwise, or do not say how.
    """
    if not path.exists() or state_file(path).exists():
        return None
    try:
        was = READERS[algo](str(path), "train").notes
    except ValueError:
        raise ValueError(f"{path} is no file of {algo}'s weights. Remove it.") from None
    if found := diff_settings({name: was.get(name) for name in notes}, dict(notes)):
        raise_other_results(path, "training", found)
    curve = was.get("curve")
    if not isinstance(curve, list) or not curve:
        raise ValueError(f"{path} does not say how it was trained. Remove it.")
    return [dict(point) for point in curve]


def state_in(file: Path) -> State:
    """Return the state of a training that was interrupted.

    Raises:
        ValueError: If the file is damaged.
    """
    try:
        state = read_state(file)
        if not isinstance(json.loads(state["notes"]), dict):
            raise TypeError("its notes are no table")
    except Exception as error:  # there is no end to what damaged bytes can raise
        raise no_state(file, error) from None
    return state


def no_state(file: Path, error: Exception) -> ValueError:
    """Return the error of a file that is no state of a training."""
    return ValueError(f"{file} is no state of a training ({type(error).__name__}). Remove it.")


class Run:
    """One training, from where it stands to its end.

    Args:
        trainer: The network in training.
        scores: How it is validated.
        path: The weights' file.
        notes: What is asked.
    """

    def __init__(self, trainer: Trainer, scores: Scores, path: Path, notes: dict[str, Any]) -> None:
        self.trainer, self.scores, self.path, self.notes = trainer, scores, path, notes
        self.curve: list[dict[str, float]] = []
        self._best = trainer.best_so_far()
        self._before = 0.0  # seconds of earlier calls
        self._since = time.process_time()  # what else the machine does takes nothing away
        if (file := state_file(path)).exists():
            self._take_over(state_in(file), file)
        self._bar = tqdm(total=100.0, unit="%", desc="training", bar_format=BAR)

    def _take_over(self, state: State, file: Path) -> None:
        if found := diff_settings(json.loads(state["notes"]), self.notes):
            raise_other_results(file, "training", found)
        try:
            self.trainer.restore(state["trainer"])
            self.curve, self._best = state["curve"], state["best"]
            self._before = float(state["seconds"])
        except Exception as error:  # there is no end to what an edited state can raise
            raise no_state(file, error) from None
        tqdm.write(f"{file}: the training goes on after {self.seconds:.0f} s.", file=sys.stderr)

    @property
    def seconds(self) -> float:
        """How long it has been trained."""
        return self._before + time.process_time() - self._since

    @property
    def done(self) -> float:
        """The share of the training that is behind, in [0, 1]."""
        if self.notes["seconds_asked"]:
            return min(self.seconds / float(self.notes["seconds_asked"]), 1.0)
        return min(self.trainer.steps / int(self.notes["steps_asked"]), 1.0)

    def go_on(self) -> None:
        """Train to the end of the budget, with a checkpoint now and then."""
        while self.done < 1.0:
            self.trainer.round(self.done)
            self._bar.update(100.0 * self.done - self._bar.n)
            if self.done * self.trainer.validation.checkpoints >= len(self.curve) + 1:
                self.checkpoint()

    def checkpoint(self) -> None:
        """Measure the regret, keep the best weights so far, and write the state."""
        asked = self.trainer.validation
        found = self._score(asked.width, asked.episodes, 0)
        point = {"steps": self.trainer.steps, "seconds": round(self.seconds, 1)} | found
        if found["share_of_random"] <= min((p["share_of_random"] for p in self.curve), default=9e9):
            self._best = self.trainer.best_so_far()
        self.curve.append(point)
        tqdm.write(f"{point['seconds']:8.0f} s: regret {point['regret']:.1f}", file=sys.stderr)
        write_state(state_file(self.path), self._state())

    def _score(self, width: float, episodes: int, first: int) -> dict[str, float]:
        return self.scores.of(lambda env: self.trainer.agent(env, width), episodes, first)

    def _state(self) -> State:
        return {
            "notes": json.dumps(self.notes),
            "trainer": self.trainer.state(),
            "curve": self.curve,
            "best": self._best,
            "seconds": self.seconds,
        }

    def finish(self) -> None:
        """Choose the width on other validation episodes, and write the best weights."""
        if not self.curve:
            self.checkpoint()
        self._bar.set_description("choosing the width")
        self.trainer.go_back(self._best)
        asked = self.trainer.validation
        tried = {
            width: self._score(width, asked.chosen_on, asked.episodes)["share_of_random"]
            for width in asked.widths
        }
        width = min(tried, key=lambda one: tried[one])
        said = {"widths": {str(one): tried[one] for one in tried}, "curve": self.curve}
        said |= {"versions": versions(("torch",))}
        self.trainer.write(self.path, width, self.notes | said)
        write_csv(self.path.with_suffix(".csv"), self.curve)
        state_file(self.path).unlink(missing_ok=True)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()
