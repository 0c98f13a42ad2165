"""Trained policies, learners and the two ends of the scale, side by side on the same episodes."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wgp_agents.benchmark.experiment import run_seeds
from wgp_agents.benchmark.figures.compare import label
from wgp_agents.benchmark.files import write_arrays, write_csv, write_manifest
from wgp_agents.benchmark.parallel import run_in_order
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.benchmark.statistics import estimate, paired_difference
from wgp_agents.registry import make
from wgp_agents.sb3.model import PACKAGES, model_file, shipped_model
from wgp_agents.sb3.notes import brief, read_notes, refuse
from wgp_gym.kernels import Array
from wgp_gym.validation import reject

__all__ = ["RIVALS", "TASKS", "Rival", "load", "model_of", "play", "rows", "table", "write_files"]

LEARNING = ("steps", "regret", "share_of_random")  # the columns of a learning curve
FIRST_SEED = 2 * 10**15  # of episodes that neither training nor its learning curve has seen


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


TASKS = ("WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0")
REFERENCES = {
    "known": Rival("wgp-ucb", "known B_T", {"variation_budget": "known"}),
    "unknown": Rival("wgp-ucb", "unknown B_T"),
}
RANDOM = Rival("random")
RIVALS = (
    RANDOM,
    *(Rival(name, "trained", trained=True) for name in ("dqn", "a2c", "recurrent-ppo", "ppo")),
    Rival("neural-greedy", "untrained"),
    *REFERENCES.values(),
    Rival("oracle"),
)

Regrets = dict[tuple[str, Rival], Array]
"""Cumulative regrets `(episodes, T)` by task and rival."""


def model_of(task: str, rival: Rival, folder: Path | None) -> Path:
    """Return the file of a trained rival: in a folder, or the one that the package brings.

    Raises:
        ValueError: If there is none.
    """
    if folder is None:
        return shipped_model(rival.agent, task)
    path = folder / model_file(rival.agent, task, 0)
    if not path.is_file():
        reject("models", "compare", f"a folder with {path.name} in it", str(folder))
    return path


@dataclass(frozen=True)
class Trained:
    """What the files of one model say of it.

    Attributes:
        task: Its task.
        rival: The rival that plays it.
        file: The model's file.
        notes: Its notes.
        learning: The rows of its learning curve.
    """

    task: str
    rival: Rival
    file: Path
    notes: dict[str, Any]
    learning: list[dict[str, str]]


def models(folder: Path | None) -> Iterator[Trained]:
    """Yield every model.

    Raises:
        ValueError: If one of its files is missing or damaged.
    """
    for task in TASKS:
        for rival in RIVALS:
            if rival.trained:
                file = model_of(task, rival, folder)
                yield Trained(task, rival, file, read_notes(rival.agent, file), learning_of(file))


def learning_of(file: Path) -> list[dict[str, str]]:
    """Return the rows of a model's learning curve, which stands beside its file.

    Raises:
        ValueError: If there is none, or it does not consist of finite numbers.
    """
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


def play_one(
    folder: Path | None, seeds: dict[str, list[tuple[int, int]]], piece: tuple[str, Rival]
) -> Array:
    """Return the cumulative regrets `(episodes, T)` of one rival in one task."""
    task, rival = piece
    of_env, of_agent = zip(*seeds[task], strict=True)
    env, given = make_vector(task, len(of_env)), dict(rival.parameters)
    if rival.trained:
        given["model"] = model_of(task, rival, folder)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        played = rollout(make(rival.agent, env, **given), env, of_env, of_agent)
    finally:
        torch.set_num_threads(threads)
    regrets: Array = played["cumulative_regret"]
    return regrets


def episode_seeds(root_seed: int, task: str, episodes: int) -> list[tuple[int, int]]:
    """Return the seeds of environment and agent of each episode, the same for all rivals."""
    drawn = (run_seeds(root_seed, task, run) for run in range(episodes))
    return [(FIRST_SEED + env_seed, agent_seed) for env_seed, agent_seed in drawn]


def play(folder: Path | None, episodes: int, root_seed: int, jobs: int) -> Regrets:
    """Play every rival in every task.

    Args:
        folder: Where the trained models are; None takes those that the package brings.
        episodes: How many, the same for all rivals.
        root_seed: The seed that all others follow from.
        jobs: Processes.

    Raises:
        ValueError: If a model is missing.
    """
    list(models(folder))  # before anything is played
    work = [(task, rival) for task in TASKS for rival in RIVALS]
    seeds = {task: episode_seeds(root_seed, task, episodes) for task in TASKS}
    one = partial(play_one, folder, seeds)
    return dict(zip(work, run_in_order(one, work, jobs, "rival", "playing"), strict=True))


def rows(regrets: Regrets) -> list[dict[str, Any]]:
    """Return one row for each task and rival.

    Differences from WGP-UCB, tuned for the known B_T and without it, are paired, episode by
    episode; "lower_than" counts the episodes.
    """
    made = []
    for (task, rival), runs in regrets.items():
        final = runs[:, -1]
        mean = estimate(final)
        row: dict[str, Any] = {"environment": task, "agent": rival.agent, "note": rival.note}
        row |= {
            "episodes": len(final),
            "mean_final_regret": float(mean.mean),
            "standard_error": float(mean.standard_error),
            "median_final_regret": float(np.median(final)),
            "share_of_random": float(mean.mean / regrets[task, RANDOM][:, -1].mean()),
        }
        for name, reference in REFERENCES.items():
            other = regrets[task, reference][:, -1]
            difference = paired_difference(final, other)
            row[f"minus_{name}"] = float(difference.mean)
            row[f"minus_{name}_standard_error"] = float(difference.standard_error)
            row[f"lower_than_{name}"] = int((final < other).sum())
        made.append(row)
    return made


def table(made: list[dict[str, Any]]) -> str:
    """Return the rows for people."""
    head = f"{'mean final regret':>20}{'median':>8}{'of random':>11}"
    lines = [f"{'':22}{'':26}{head}   minus WGP-UCB: {'known B_T':14}unknown B_T"]
    for row in made:
        title = label(Rival(row["agent"], row["note"]).name)
        lines.append(
            f"{row['environment']:22}{title:26}"
            f"{row['mean_final_regret']:12.0f} ± {row['standard_error']:<5.1f}"
            f"{row['median_final_regret']:8.0f}{row['share_of_random']:11.0%}{'':16}"
            + "".join(
                f"{row[f'minus_{name}']:+6.0f} ± {row[f'minus_{name}_standard_error']:<5.1f}"
                for name in REFERENCES
            )
        )
    return "\n".join(lines)


def write_files(
    regrets: Regrets,
    summary: list[dict[str, Any]],
    models_folder: Path | None,
    manifest: dict[str, Any],
    folder: Path,
) -> None:
    """Write summary.csv, runs.csv, learning.csv, curves.npz and manifest.json.

    Args:
        regrets: What was played.
        summary: Its rows.
        models_folder: Where the trained models are; None: those that the package brings.
        manifest: What to say of it; its "root_seed" gives the seeds.
        folder: Where the files go; it must exist.
    """
    write_csv(folder / "summary.csv", summary)
    episodes: list[dict[str, Any]] = []
    learning: list[dict[str, Any]] = []
    notes: dict[str, Any] = {}
    for (task, rival), runs in regrets.items():
        seeds = episode_seeds(manifest["root_seed"], task, len(runs))
        for (env_seed, agent_seed), final in zip(seeds, runs[:, -1].tolist(), strict=True):
            row = {"environment": task, "agent": rival.agent, "note": rival.note}
            played = {"env_seed": env_seed, "agent_seed": agent_seed, "final_regret": final}
            episodes.append(row | played)
    for model in models(models_folder):
        notes[model.file.name] = model.notes
        whose = {"environment": model.task, "agent": model.rival.name}
        learning += [whose | point for point in model.learning]
    write_csv(folder / "runs.csv", episodes)
    write_csv(folder / "learning.csv", learning)
    arrays = {f"{task}/{rival.name}": runs for (task, rival), runs in regrets.items()}
    write_arrays(folder / "curves.npz", arrays)
    content = {"tasks": TASKS, "rivals": [asdict(rival) for rival in RIVALS], "models": notes}
    write_manifest(folder / "manifest.json", manifest | content, PACKAGES)


def load(folder: Path) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return what the picture shows, read back from the files, by task and "agent/note".

    Returns:
        Cumulative regrets `(episodes, T)`; and steps of training with the final regret as a share
        of random play's, `(2, n)`.
    """
    regrets: dict[str, dict[str, Any]] = {task: {} for task in TASKS}
    with np.load(folder / "curves.npz") as arrays:
        for name, runs in arrays.items():
            task, _, rival = name.partition("/")
            regrets[task][rival] = runs
    points: dict[str, dict[str, Any]] = {task: {} for task in TASKS}
    with (folder / "learning.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            curve = points[row["environment"]].setdefault(row["agent"], [])
            curve.append((float(row["steps"]), float(row["share_of_random"])))
    learning = {
        task: {name: np.array(curve).T for name, curve in found.items()}
        for task, found in points.items()
    }
    return regrets, learning
