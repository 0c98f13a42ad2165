"""Trained policies, learners and the two ends of the scale, side by side on the same episodes."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wgp_agents.benchmark.parallel import run_in_order
from wgp_agents.benchmark.report import versions, write_arrays, write_csv, write_whole
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.benchmark.statistics import estimate, paired_difference
from wgp_agents.registry import AGENTS, make
from wgp_gym.kernels import Array

__all__ = ["RIVALS", "TASKS", "Regrets", "Rival", "learning_curves", "play", "rows", "table"]

FIRST_SEED = 2_000_000_000  # of episodes that neither training nor its learning curve has seen


@dataclass(frozen=True)
class Rival:
    """One line of the comparison.

    Attributes:
        agent: The agent's name.
        note: What tells it from the same agent's other lines.
        parameters: What it is made with.
        trained: Whether it plays a model that was trained before, on other episodes.
    """

    agent: str
    note: str = ""
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)
    trained: bool = False

    @property
    def name(self) -> str:
        """The agent's name, and the note if there is one: "agent/note"."""
        return f"{self.agent}/{self.note}" if self.note else self.agent

    @property
    def title(self) -> str:
        """How it is written in tables."""
        return AGENTS[self.agent].title + (f" ({self.note})" if self.note else "")


TASKS = ("WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0")
REFERENCE = Rival("wgp-ucb", "known B_T", {"variation_budget": "known"})
RANDOM = Rival("random")
RIVALS = (
    RANDOM,
    *(Rival(name, "trained", trained=True) for name in ("dqn", "a2c", "recurrent-ppo", "ppo")),
    Rival("neural-greedy", "untrained"),
    REFERENCE,
    Rival("wgp-ucb", "unknown B_T"),
    Rival("oracle"),
)

Regrets = dict[tuple[str, Rival], Array]
"""Cumulative regrets `(episodes, T)` by task and rival."""


def model_of(task: str, rival: Rival, folder: Path | None) -> Path:
    """Return the file of a trained rival: in a folder, or the one that the package brings."""
    from wgp_agents.sb3.model import model_file, shipped_model

    if folder is None:
        return shipped_model(rival.agent, task)
    return folder / model_file(rival.agent, task, 0)


def play_one(models: Path | None, episodes: int, piece: tuple[str, Rival]) -> Array:
    """Return the cumulative regrets `(episodes, T)` of one rival in one task."""
    task, rival = piece
    env = make_vector(task, episodes)
    given = {"model": model_of(task, rival, models)} if rival.trained else {}
    agent = make(rival.agent, env, **rival.parameters, **given)
    regrets: Array = rollout(agent, env, FIRST_SEED)["cumulative_regret"]
    return regrets


def play(models: Path | None, episodes: int, jobs: int) -> Regrets:
    """Play every rival in every task.

    Args:
        models: The folder of the trained models; None takes those that the package brings.
        episodes: How many, the same for all rivals.
        jobs: Processes.

    Raises:
        ValueError: If there is no model for a task.
    """
    work = [(task, rival) for task in TASKS for rival in RIVALS]
    one = partial(play_one, models, episodes)
    return dict(zip(work, run_in_order(one, work, jobs, "rival", "playing"), strict=True))


def learning_curves(models: Path | None) -> dict[tuple[str, Rival], Array]:
    """Return steps of training and mean regret on episodes held out from it, `(2, n)`."""
    curves = {}
    for task in TASKS:
        for rival in filter(lambda rival: rival.trained, RIVALS):
            path = model_of(task, rival, models).with_suffix(".csv")
            with path.open(encoding="utf-8", newline="") as file:
                points = [(row["steps"], row["regret"]) for row in csv.DictReader(file)]
            curves[task, rival] = np.array(points, float).T
    return curves


def rows(regrets: Regrets) -> list[dict[str, Any]]:
    """Return one row for each task and rival; differences are paired, episode by episode."""
    made = []
    for (task, rival), runs in regrets.items():
        final, reference = runs[:, -1], regrets[task, REFERENCE][:, -1]
        mean, difference = estimate(final), paired_difference(final, reference)
        made.append(
            {
                "environment": task,
                "agent": rival.agent,
                "note": rival.note,
                "episodes": len(final),
                "mean_final_regret": float(mean.mean),
                "standard_error": float(mean.standard_error),
                "share_of_random": float(mean.mean / regrets[task, RANDOM][:, -1].mean()),
                "minus_wgp_ucb": float(difference.mean),
                "difference_standard_error": float(difference.standard_error),
            }
        )
    return made


def table(made: list[dict[str, Any]]) -> str:
    """Return the rows for people."""
    lines = []
    for row in made:
        title = Rival(row["agent"], row["note"]).title
        lines.append(
            f"{row['environment']:22}{title:26}"
            f"{row['mean_final_regret']:7.0f} ± {row['standard_error']:<5.1f}"
            f"{row['share_of_random']:7.0%}"
            f"{row['minus_wgp_ucb']:+9.0f} ± {row['difference_standard_error']:.1f}"
        )
    head = f"{'task':22}{'agent':26}{'final regret':>15}{'of random':>9}{'minus WGP-UCB':>14}"
    return "\n".join([head, *lines])


def write_files(
    regrets: Regrets, curves: dict[tuple[str, Rival], Array], manifest: dict[str, Any], folder: Path
) -> None:
    """Write summary.csv, runs.csv, learning.csv, curves.npz and manifest.json."""
    write_csv(folder / "summary.csv", rows(regrets))
    episodes = [
        {
            "environment": task,
            "agent": rival.agent,
            "note": rival.note,
            "env_seed": FIRST_SEED + run,
        }
        | {"final_regret": float(final)}
        for (task, rival), runs in regrets.items()
        for run, final in enumerate(runs[:, -1])
    ]
    write_csv(folder / "runs.csv", episodes)
    points = [
        {"environment": task, "agent": rival.name, "steps": int(steps), "regret": regret}
        for (task, rival), curve in curves.items()
        for steps, regret in curve.T.tolist()
    ]
    write_csv(folder / "learning.csv", points)
    arrays = {f"{task}/{rival.name}": runs for (task, rival), runs in regrets.items()}
    write_arrays(folder / "curves.npz", arrays)
    text = json.dumps(manifest | {"versions": versions()}, indent=2)
    write_whole(folder / "manifest.json", text.encode())


def load(folder: Path) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return cumulative regrets and learning curves, read back, by task and "agent/note"."""
    with np.load(folder / "curves.npz") as arrays:
        regrets: dict[str, dict[str, Any]] = {task: {} for task in TASKS}
        for name, runs in arrays.items():
            task, _, rival = name.partition("/")
            regrets[task][rival] = runs
    learning: dict[str, dict[str, Any]] = {task: {} for task in TASKS}
    with (folder / "learning.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            points = learning[row["environment"]].setdefault(row["agent"], [])
            points.append((float(row["steps"]), float(row["regret"])))
    return regrets, {
        task: {name: np.array(points).T for name, points in found.items()}
        for task, found in learning.items()
    }
