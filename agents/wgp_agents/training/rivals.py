"""Who is compared: trained policies, learners and the two ends of the scale; and their models."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wgp_agents.algorithms.learned.sb3.model import model_file, shipped_model
from wgp_agents.algorithms.learned.sb3.notes import brief, read_notes, refuse
from wgp_agents.benchmark.files import JSON
from wgp_gym.validation import reject

__all__ = ["RANDOM", "REFERENCES", "RIVALS", "SPECIALISTS", "TASKS", "Rival", "model_of", "models"]

LEARNING = ("steps", "regret", "share_of_random")  # the columns of a learning curve


@dataclass(frozen=True)
class Rival:
    """One line of the comparison."""

    agent: str
    note: str = ""  # what tells it from the same agent's other lines
    parameters: dict[str, JSON] = field(default_factory=dict, hash=False)  # what it is made with
    trained: bool = False  # whether it plays a model of stable-baselines3, trained before
    own_model: bool = False  # whether it plays the in-context model of the task

    @property
    def name(self) -> str:
        """The agent's name, and the note if there is one: "agent/note"."""
        return f"{self.agent}/{self.note}" if self.note else self.agent


TASKS = ("WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0")
SPECIALISTS = dict(zip(TASKS, ("abrupt", "slow"), strict=True))  # in-context models
REFERENCES = {
    "known": Rival("wgp-ucb", "known B_T", {"variation_budget": "known"}),
    "unknown": Rival("wgp-ucb", "unknown B_T"),
}
RANDOM = Rival("random")
RIVALS = (
    RANDOM,
    *(Rival(name, "trained", trained=True) for name in ("dqn", "a2c", "recurrent-ppo", "ppo")),
    Rival("neural-greedy", "untrained"),
    Rival("in-context", "general"),
    Rival("in-context", "specialist", own_model=True),
    Rival("learned-wgp-ucb"),
    Rival("adaptive-wgp-ucb"),
    *REFERENCES.values(),
    Rival("oracle"),
)


def model_of(task: str, rival: Rival, folder: Path | None) -> Path:
    """Return the file of a trained rival: in a folder, or the one that the package brings."""
    if folder is None:
        return shipped_model(rival.agent, task)
    path = folder / model_file(rival.agent, task, 0)
    if not path.is_file():
        reject("models", "compare", f"a folder with {path.name} in it", str(folder))
    return path


@dataclass(frozen=True)
class Trained:
    """What the files of one model say of it."""

    task: str
    rival: Rival  # the rival that plays it
    file: Path
    notes: dict[str, JSON]
    learning: list[dict[str, str]]  # the rows of its learning curve


def models(folder: Path | None) -> Iterator[Trained]:
    """Yield every model."""
    for task in TASKS:
        for rival in RIVALS:
            if rival.trained:
                file = model_of(task, rival, folder)
                yield Trained(task, rival, file, read_notes(rival.agent, file), learning_of(file))


def learning_of(file: Path) -> list[dict[str, str]]:
    """Return the rows of a model's learning curve, which stands beside its file."""
    path = file.with_suffix(".csv")
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        good = all(np.isfinite([float(row[key]) for key in LEARNING]).all() for row in rows)
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        refuse(f"a file with its learning curve (.csv) beside it ({brief(error)})", path)
    if not rows or not good:
        refuse(f"a file whose learning curve has finite numbers as {', '.join(LEARNING)}", path)
    return [{key: row[key] for key in LEARNING} for row in rows]
