"""Who is compared: trained agents, learners and the two ends of the scale; and their weights."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wgp_agents.algorithms.learned import gate
from wgp_agents.algorithms.learned.in_context import model as in_context
from wgp_agents.algorithms.learned.sb3.model import SHIPPED
from wgp_agents.algorithms.learned.sb3.notes import brief, read_notes, refuse
from wgp_agents.algorithms.learned.weights_file import model_file, state_file
from wgp_agents.benchmark.figures.compare import label
from wgp_agents.benchmark.files import JSON
from wgp_agents.training.worlds import GENERAL
from wgp_gym.validation import reject

__all__ = [
    "RANDOM",
    "REFERENCES",
    "RIVALS",
    "TASKS",
    "Entry",
    "Match",
    "Rival",
    "Training",
    "missing",
]

LEARNING = ("steps", "regret", "share_of_random")  # the columns of a learning curve
TASKS = ("WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0")
OWN = "its task"  # what a rival is trained on; the other is GENERAL
OF_TASK = dict(zip(TASKS, ("abrupt", "slow"), strict=True))  # the shipped in-context models' names
SECONDS = {"in-context/specialist": 420, "in-context/general": 900, "learned-wgp-ucb": 900}


@dataclass(frozen=True)
class Rival:
    """One line of the comparison."""

    agent: str
    note: str = ""  # what tells it from the same agent's other lines
    parameters: Mapping[str, JSON] = field(default_factory=dict, hash=False)  # what it is made with
    trained_on: str = ""  # what it was trained on before: OWN or GENERAL; or nothing

    @property
    def name(self) -> str:
        """The agent's name, and the note if there is one: "agent/note"."""
        return f"{self.agent}/{self.note}" if self.note else self.agent

    @property
    def seconds(self) -> int | None:
        """Seconds of processor time that it is trained for; None: by the settings' steps."""
        return SECONDS.get(self.name)

    @property
    def weights(self) -> str:
        """The parameter that names its weights' file."""
        return "gate" if self.agent == "learned-wgp-ucb" else "model"


REFERENCES = {
    "known": Rival("wgp-ucb", "known B_T", {"variation_budget": "known"}),
    "unknown": Rival("wgp-ucb", "unknown B_T"),
}
RANDOM = Rival("random")
RIVALS = (
    RANDOM,
    *(Rival(a, "trained", trained_on=OWN) for a in ("dqn", "a2c", "recurrent-ppo", "ppo")),
    Rival("neural-greedy", "untrained"),
    Rival("in-context", "general", trained_on=GENERAL),
    Rival("in-context", "specialist", trained_on=OWN),
    Rival("learned-wgp-ucb", trained_on=GENERAL),
    Rival("adaptive-wgp-ucb"),
    *REFERENCES.values(),
    Rival("oracle"),
)


class Training(NamedTuple):
    """One training of a rival, on a task or on random worlds."""

    rival: Rival
    environment: str
    seed: int

    @property
    def file_name(self) -> str:
        """What the file of its weights is called."""
        ending = "zip" if self.rival.seconds is None else "npz"
        return model_file(self.rival.agent, self.environment, self.seed, ending)

    @property
    def shipped(self) -> Path | None:
        """Where the package has the file of the first training; None of a later one."""
        rival = self.rival
        if self.seed:
            return None
        if rival.seconds is None:
            return SHIPPED / self.file_name
        home: Path = gate.FOLDER if rival.weights == "gate" else in_context.FOLDER
        return home / f"{OF_TASK.get(self.environment, GENERAL)}.npz"

    def file(self, folder: Path | None) -> Path | None:
        """Return the file of its weights, in a folder or else the package's, if there is one.

        One whose training is not done, so that its state still stands beside it, is none.
        """
        mine = None if folder is None else folder / self.file_name
        for path in (mine, self.shipped):
            if path is not None and path.is_file() and not state_file(path).exists():
                return path
        return None

    def notes(self, file: Path) -> dict[str, object]:
        """Return what a file says of how its weights were trained."""
        if self.rival.seconds is None:
            return read_notes(self.rival.agent, file)
        read = gate.read_gate if self.rival.weights == "gate" else in_context.read_model
        return dict(read(str(file), "compare").notes)

    def learning(self, file: Path) -> list[dict[str, str]]:
        """Return the rows of its learning curve, from the table beside a policy, or the notes.

        What was trained on the truth may have none in its notes.

        Raises:
            ValueError: If there is none, or it is damaged.
        """
        if self.rival.seconds is None:
            return learning_of(file)
        curve = self.notes(file).get("curve")
        return [] if curve is None else checked(curve, file)


class Entry(NamedTuple):
    """A rival, with what it was trained to in one of its trainings, if it was trained."""

    rival: Rival
    training: int = 0

    @property
    def label(self) -> str:
        """How it is named in the results."""
        further = f", training {self.training + 1}" if self.training else ""
        return label(self.rival.name) + further

    def of(self, task: str) -> Training:
        """Return the training that it plays in a task."""
        own = self.rival.trained_on == OWN
        return Training(self.rival, task if own else self.rival.trained_on, self.training)


@dataclass(frozen=True)
class Match:
    """Who takes part.

    Attributes:
        rivals: The lines.
        trainings: How many trainings of each trained one.
        folder: Where their weights are, before the package's; None: only those.
    """

    rivals: Sequence[Rival] = RIVALS
    trainings: int = 1
    folder: Path | None = None

    @property
    def entries(self) -> list[Entry]:
        """Every rival, as often as it was trained."""
        return [
            Entry(rival, training)
            for rival in self.rivals
            for training in range(self.trainings if rival.trained_on else 1)
        ]

    @cached_property
    def files(self) -> dict[Training, Path]:
        """The file of every training.

        Raises:
            ValueError: If there is none of one.
        """
        found = {training: training.file(self.folder) for training in self.all_trainings}
        lost = [training.file_name for training, file in found.items() if file is None]
        if lost:
            reject("models", "compare", f"a folder with {lost[0]} in it", str(self.folder))
        return {training: file for training, file in found.items() if file is not None}

    @property
    def all_trainings(self) -> list[Training]:
        """Every training that somebody plays."""
        trained = [entry for entry in self.entries if entry.rival.trained_on]
        return list(dict.fromkeys(entry.of(task) for task in TASKS for entry in trained))


def missing(match: Match) -> list[Training]:
    """Return the trainings of which there is no file yet."""
    return [one for one in match.all_trainings if one.file(match.folder) is None]


def learning_of(file: Path) -> list[dict[str, str]]:
    """Return the rows of the learning curve in the table beside a file of weights."""
    path = file.with_suffix(".csv")
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, ValueError, csv.Error) as error:
        refuse(f"a file with its learning curve (.csv) beside it ({brief(error)})", path)
    return checked(rows, path)


def checked(rows: object, file: Path) -> list[dict[str, str]]:
    """Return the columns of a learning curve that are shown; refuse other things."""
    rule = f"a file whose learning curve has finite numbers as {', '.join(LEARNING)}"
    try:
        if not isinstance(rows, list):
            raise TypeError("it is no list")
        found = [{key: str(row[key]) for key in LEARNING} for row in rows]
        good = all(np.isfinite([float(x) for x in row.values()]).all() for row in found)
    except (ValueError, KeyError, TypeError) as error:
        refuse(f"{rule} ({brief(error)})", file)
    if not found or not good:
        refuse(rule, file)
    return found
