"""A whole training of an in-context learner: its budget, checkpoints, validation and files."""

from __future__ import annotations

import json
import re
import sys
import time
import tomllib
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from wgp_agents.algorithms.learned.in_context.agent import InContext
from wgp_agents.algorithms.learned.in_context.memory import Shape
from wgp_agents.algorithms.learned.in_context.model import Model, read_model, write_model
from wgp_agents.algorithms.references.baselines import Random
from wgp_agents.benchmark.files import JSON, versions, write_csv
from wgp_agents.benchmark.output import diff_settings, locked, raise_other_results
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.training.in_context import FIRST_SCORED, Settings, Trainer, World
from wgp_agents.training.resume import State, read_state, write_state
from wgp_gym import seeds
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array
from wgp_gym.validation import check_float, check_int, reject

__all__ = ["GENERAL", "general_worlds", "model_file", "train"]

GENERAL = "general"  # the law of random worlds, in in_context.toml
EACH = 10**9  # seeds of one training
CHECKED = 1.5  # the width at checkpoints
WIDTHS = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5)
EPISODES, CHOSEN_ON = 100, 200  # validation episodes of a checkpoint, and of the choice of a width
CHECKPOINTS = 12
STEPS = 10_000_000
LONGEST = 10.0**7  # seconds


def general_worlds() -> list[World]:
    """Return the law of random worlds that the shipped generalist was trained on."""
    text = (Path(__file__).parent / "in_context.toml").read_text("utf-8")
    return [World(**one) for one in tomllib.loads(text)["world"]]


def model_file(environment: str, seed: int) -> str:
    """Return what a model's file is called, as "in-context-wgpbandit-abrupt-seed0.npz"."""
    task = re.split("[/:]", environment)[-1].removesuffix("-v0").lower()
    return f"in-context-{task}-seed{seed}.npz"


class Scores:
    """Regrets on validation episodes, as a share of random play's, over all worlds of a law."""

    def __init__(self, worlds: list[World]) -> None:
        self._worlds = worlds
        rng = np.random.default_rng(0)  # what each round draws is drawn once here
        self._kwargs = [world.drawn(rng) for world in worlds]

    @cache  # noqa: B019  (one object a training)
    def _random(self, which: int, episodes: int, first: int) -> float:
        return float(self._regrets(which, episodes, first, Random).mean())

    def _regrets(self, which: int, episodes: int, first: int, make: Any) -> Array:
        env = make_vector(self._worlds[which].environment, episodes, **self._kwargs[which])
        regret: Array = rollout(make(env), env, first)["cumulative_regret"][:, -1]
        return regret

    def of(self, model: Model, width: float, episodes: int, first: int) -> dict[str, float]:
        """Return the mean regret, and that as a share of random play's, weighted by the shares."""
        regrets, shares = np.zeros((2, len(self._worlds)))
        for which in range(len(self._worlds)):
            found = self._regrets(
                which,
                episodes,
                first,
                lambda env: InContext(env, model=model, confidence_width=width),
            )
            regrets[which] = found.mean()
            shares[which] = regrets[which] / self._random(which, episodes, first)
        weights = np.array([world.share for world in self._worlds])
        mean = {"regret": regrets, "share_of_random": shares}
        return {name: float(np.average(one, weights=weights)) for name, one in mean.items()}


def train(
    environment: str,
    path: Path,
    *,
    seed: int = 0,
    seconds: float | None = None,
    steps: int | None = None,
    kwargs: Mapping[str, JSON] | None = None,
) -> list[dict[str, float]]:
    """Train an in-context learner, and write its model and learning curve.

    A training that was interrupted goes on from its last checkpoint; one that was done is not done
    again. It seeds torch's generator and keeps torch to one thread: run it in a process of its own.

    Args:
        environment: The id of the environment whose episodes it is trained on; or "general", the
            package's law of random worlds.
        path: The model's file, .npz; its curve stands beside it, as .csv.
        seed: What all randomness follows from, below 100,000.
        seconds: How long to train, at least 1; None: by `steps`.
        steps: Steps of the environment to train for; default, without `seconds`, ten million.
        kwargs: What the environment is made with.

    Returns:
        The learning curve: steps, seconds, mean regret on validation episodes, and that as a share
        of random play's.

    Raises:
        ValueError: If a number is out of its range, both budgets are given, the file's model was
            trained with other settings, or another process trains it.
    """
    owner = "train"
    check_int("seed", seed, owner, 0, 10**5 - 1)
    if seconds is not None and steps is not None:
        reject("steps", owner, "left out where 'seconds' is given", steps)
    if seconds is not None:
        check_float("seconds", seconds, owner, 1, LONGEST)
    else:
        steps = check_int("steps", STEPS if steps is None else steps, owner, 1)
    torch.set_num_threads(1)
    general = environment == GENERAL
    if general and kwargs:
        reject("kwargs", owner, f"left out for {GENERAL!r}, whose worlds have their own", kwargs)
    worlds = general_worlds() if general else [World(environment, dict(kwargs or {}))]
    settings = Settings(shape=Shape(clock=not general))
    notes: dict[str, Any] = {"environment": environment, "kwargs": dict(kwargs or {}), "seed": seed}
    notes |= {"seconds_asked": seconds, "steps_asked": steps}
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(f".{path.stem}.lock")):
        if (curve := finished(path, notes)) is not None:
            tqdm.write(f"{path} was trained before, with these settings.", file=sys.stderr)
            return curve
        check_worlds(worlds, settings)
        trainer = Trainer(worlds, settings, seed, seeds("train")[EACH * seed])
        run = Run(trainer, Scores(worlds), path, notes)
        with closing(run):
            run.go_on()
            run.finish()
    return run.curve


def check_worlds(worlds: list[World], settings: Settings) -> None:
    """Check that a network can be trained on all of these.

    Raises:
        ValueError: If one is no bandit of fixed arms, or its episodes are too short.
    """
    least = settings.segments * (FIRST_SCORED + 1)
    for world in worlds:
        env = make_vector(world.environment, 1, **world.drawn(np.random.default_rng(0)))
        problem = getattr(env.unwrapped, "problem", None)
        if not isinstance(problem, BanditProblem) or problem.contextual:
            reject("environment", "train", "a bandit whose arms stay", world.environment)
        if problem.known_horizon("train") < least:
            reject("horizon", "train", f"at least {least}", problem.horizon)


def finished(path: Path, notes: Mapping[str, object]) -> list[dict[str, float]] | None:
    """Return the learning curve of a model that was trained so; None where there is none.

    Raises:
        ValueError: If it was trained otherwise.
    """
    if not path.exists() or state_file(path).exists():
        return None
    try:
        was = read_model(str(path), "train").notes
    except ValueError:
        raise ValueError(f"{path} is no model of an in-context learner. Remove it.") from None
    if found := diff_settings({name: was.get(name) for name in notes}, dict(notes)):
        raise_other_results(path, "training", found)
    curve = was.get("curve")
    return [dict(point) for point in curve] if isinstance(curve, list) else []


def state_file(path: Path) -> Path:
    """Return where the state of a training stands until it is done: beside the model."""
    return path.with_suffix(".training")


def state_in(file: Path) -> State:
    """Return the state of a training that was interrupted.

    Raises:
        ValueError: If the file is damaged.
    """
    try:
        return read_state(file)
    except Exception as error:  # there is no end to what damaged bytes can raise
        name = type(error).__name__
        raise ValueError(f"{file} is no state of a training ({name}). Remove it.") from None


class Run:
    """One training, from where it stands to its end.

    Args:
        trainer: The network in training.
        scores: How it is validated.
        path: The model's file.
        notes: What is asked.
    """

    def __init__(self, trainer: Trainer, scores: Scores, path: Path, notes: dict[str, Any]) -> None:
        self.trainer, self.scores, self.path, self.notes = trainer, scores, path, notes
        self.curve: list[dict[str, float]] = []
        self.best = trainer.average.state_dict()
        self._before = 0.0  # seconds of earlier calls
        self._since = time.perf_counter()
        if (file := state_file(path)).exists():
            self._take_over(state_in(file), file)
        self._bar = tqdm(total=100.0, unit="%", desc="training", bar_format=BAR)

    def _take_over(self, state: State, file: Path) -> None:
        if found := diff_settings(json.loads(state["notes"]), self.notes):
            raise_other_results(file, "training", found)
        self.trainer.restore(state["trainer"])
        self.curve, self.best = state["curve"], state["best"]
        self._before = state["seconds"]
        tqdm.write(f"{file}: the training goes on after {self.seconds:.0f} s.", file=sys.stderr)

    @property
    def seconds(self) -> float:
        """How long it has been trained."""
        return self._before + time.perf_counter() - self._since

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
            if self.done * CHECKPOINTS >= len(self.curve) + 1:
                self.checkpoint()

    def checkpoint(self) -> None:
        """Measure the regret, keep the best weights so far, and write the state."""
        model = self.trainer.model(CHECKED)
        found = self.scores.of(model, CHECKED, EPISODES, seeds("validation")[0])
        point = {"steps": self.trainer.steps, "seconds": round(self.seconds, 1)} | found
        if found["share_of_random"] <= min((p["share_of_random"] for p in self.curve), default=9e9):
            self.best = {k: v.clone() for k, v in self.trainer.average.state_dict().items()}
        self.curve.append(point)
        tqdm.write(f"{point['seconds']:8.0f} s: regret {point['regret']:.1f}", file=sys.stderr)
        write_state(state_file(self.path), self._state())

    def _state(self) -> State:
        return {
            "notes": json.dumps(self.notes),
            "trainer": self.trainer.state(),
            "curve": self.curve,
            "best": self.best,
            "seconds": self.seconds,
        }

    def finish(self) -> None:
        """Choose the width on other validation episodes, and write the best weights."""
        if not self.curve:
            self.checkpoint()
        self.trainer.average.load_state_dict(self.best)
        first = seeds("validation")[EPISODES]
        model = self.trainer.model(CHECKED)
        tried = {
            width: self.scores.of(model, width, CHOSEN_ON, first)["share_of_random"]
            for width in WIDTHS
        }
        width = min(tried, key=lambda one: tried[one])
        said = {"width": width, "widths": {str(one): tried[one] for one in tried}}
        said |= {"curve": self.curve, "versions": versions(("torch",))}
        weights = self.trainer.average.weights()
        write_model(self.path, weights, self.trainer.settings.shape, self.notes | said)
        write_csv(self.path.with_suffix(".csv"), self.curve)
        state_file(self.path).unlink(missing_ok=True)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()


BAR = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
