"""Trained policies, learners and the two ends of the scale, side by side on the same episodes."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from wgp_agents.algorithms.learned.sb3.model import PACKAGES
from wgp_agents.benchmark.experiment import AgentSpec, Experiment, TaskSpec, Unit
from wgp_agents.benchmark.figures.compare import label
from wgp_agents.benchmark.files import JSON, Row, read_whole, write_csv, write_manifest
from wgp_agents.benchmark.inputs import digest
from wgp_agents.benchmark.output import diff_settings, locked_folder, raise_other_results
from wgp_agents.benchmark.parallel import Workers
from wgp_agents.benchmark.plan import check
from wgp_agents.benchmark.results import Results, load_results
from wgp_agents.benchmark.run import run
from wgp_agents.benchmark.statistics import estimate, paired_difference
from wgp_agents.training.rivals import RANDOM, REFERENCES, TASKS, Entry, Match, Rival
from wgp_gym import seeds
from wgp_gym.types import Array

__all__ = [
    "drawn_from",
    "experiment",
    "folder_of_models",
    "load",
    "play",
    "rows",
    "rows_as_text",
    "write_files",
]

MODELS = "models.json"  # the models that were played
MOST_BYTES = 1 << 22
FIRST_SEED = seeds("test").start  # neither training nor its learning curve has seen these episodes


def experiment(task: str, match: Match, episodes: int, root_seed: int) -> Experiment:
    """Return the experiment of one task, an environment's id: everybody on the same episodes."""

    def _spec(entry: Entry) -> AgentSpec:
        rival, given = entry.rival, dict(entry.rival.parameters)
        if rival.trained_on:
            given[rival.weights] = str(match.files[entry.of(task)])
        return AgentSpec(entry.label, rival.agent, given)

    title = f"Trained agents beside learners: {task}"
    text = f"Of `wgp-gym compare --episodes {episodes} --root-seed {root_seed}`."
    return Experiment(
        title=title,
        description=text,
        tasks=(TaskSpec(task, task, seed_name=task, first_seed=FIRST_SEED),),
        agents=tuple(map(_spec, match.entries)),
        seeds=episodes,
        root_seed=root_seed,
        source={"title": title, "description": text},
    )


@contextmanager
def folder_of_models(out: Path, match: Match) -> Iterator[None]:
    """Lock the folder of a comparison for this process and for these trained models.

    Notes and learning curves are read first: what is damaged is refused before anything is played.
    """
    for training, file in match.files.items():
        training.learning(file)
    now = {
        training.file_name: training.notes(file) | {"sha256": digest(str(file), "model")}
        for training, file in match.files.items()
    }
    said = out / MODELS
    with locked_folder(out, MODELS, (f"{MODELS}.part",), "wgp-gym compare"):
        if not said.exists():
            write_manifest(said, {"models": now}, PACKAGES)
        if found := diff_settings(models_in(said), now):
            raise_other_results(out, "set of models", found)
        yield


def models_in(file: Path) -> dict[str, JSON]:
    """Return the notes of the models that a comparison's file names."""
    try:
        return dict(json.loads(read_whole(file, MOST_BYTES))["models"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError(f"{file} names no models. Choose another folder.") from None


def play(
    match: Match, episodes: int, root_seed: int, jobs: int, out: Path, extend: bool = False
) -> list[Unit]:
    """Play everybody in every task, what was not played before; return the units that failed.

    `out` has a folder of `wgp-gym run` for each task; with `extend` it may have fewer episodes of
    the same kind. For errors see `wgp_agents.benchmark.run.run`.
    """
    work = {task: experiment(task, match, episodes, root_seed) for task in TASKS}
    for one in work.values():
        check(one)
    failed: list[Unit] = []
    for task, one in work.items():
        failed += run(one, out / task, Workers(jobs), extend=extend)
    return failed


def load(out: Path) -> dict[str, Results]:
    """Return the results of each task."""
    return {task: load_results(out / task) for task in TASKS}


def rows(results: Mapping[str, Results], match: Match) -> list[Row]:
    """Return one row for each task, rival and training.

    Differences from WGP-UCB, tuned for the known B_T and without it, are paired, episode by
    episode; "lower_than" counts the episodes.
    """
    return [row for task, found in results.items() for row in rows_of(task, found, match)]


def rows_of(task: str, found: Results, match: Match) -> list[Row]:
    """Return the rows of one task."""
    played = {entry: found.final_regret(task, entry.label) for entry in match.entries}
    made: list[Row] = []
    for entry, final in played.items():
        mean = estimate(final)
        row: dict[str, object] = {
            **named(task, entry),
            "episodes": len(final),
            "mean_final_regret": float(mean.mean),
            "standard_error": float(mean.standard_error),
            "median_final_regret": float(np.median(final)),
            "worst_final_regret": float(final.max()),
            "share_of_random": float(mean.mean / played[Entry(RANDOM)].mean()),
            **trained_for(task, entry, match),
        }
        for name, reference in REFERENCES.items():
            other = played[Entry(reference)]
            difference = paired_difference(final, other)
            row[f"minus_{name}"] = float(difference.mean)
            row[f"minus_{name}_standard_error"] = float(difference.standard_error)
            row[f"lower_than_{name}"] = int((final < other).sum())
        made.append(row)
    return made


def named(task: str, entry: Entry) -> dict[str, object]:
    """Return the columns that name a row: a training counts from 1, and is 0 of who has none."""
    rival = entry.rival
    whose = {"environment": task, "agent": rival.agent, "note": rival.note}
    return whose | {"training": entry.training + 1 if rival.trained_on else 0}


def trained_for(task: str, entry: Entry, match: Match) -> dict[str, object]:
    """Return the steps and seconds that a rival was trained for; 0 of who was not."""
    if not entry.rival.trained_on:
        return {"training_steps": 0, "training_seconds": 0.0}
    training = entry.of(task)
    notes = training.notes(match.files[training])
    curve = notes.get("curve")
    last = curve[-1] if isinstance(curve, list) and curve else notes
    assert isinstance(last, dict)
    return {"training_steps": last.get("steps", 0), "training_seconds": last.get("seconds", 0.0)}


def rows_as_text(made: list[Row]) -> str:
    """Return the rows for people, those of a rival's trainings as one."""
    head = f"{'mean final regret':>20}{'median':>8}{'worst':>8}{'of random':>11}"
    lines = [f"{'':22}{'':26}{head}   minus WGP-UCB: {'known B_T':14}unknown B_T"]
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in made:
        groups.setdefault((row["environment"], row["agent"], row["note"]), []).append(row)
    return "\n".join([*lines, *(line(group) for group in groups.values())])


def line(group: list[Row]) -> str:
    """Return the line of one rival: averages over its trainings, whose means follow."""

    def _mean(name: str) -> float:
        return float(np.mean([float(str(row[name])) for row in group]))

    first = group[0]
    title = label(Rival(str(first["agent"]), str(first["note"])).name)
    minus = "".join(
        f"{_mean(f'minus_{name}'):+6.0f} ± {_mean(f'minus_{name}_standard_error'):<5.1f}"
        for name in REFERENCES
    )
    means = " ".join(f"{float(str(row['mean_final_regret'])):.0f}" for row in group)
    return (
        f"{first['environment']:22}{title:26}"
        f"{_mean('mean_final_regret'):12.0f} ± {_mean('standard_error'):<5.1f}"
        f"{_mean('median_final_regret'):8.0f}{_mean('worst_final_regret'):8.0f}"
        f"{_mean('share_of_random'):11.0%}{'':16}{minus}"
        + (f"  trainings: {means}" if len(group) > 1 else "")
    )


def write_files(
    results: Mapping[str, Results], summary: list[Row], match: Match, out: Path
) -> None:
    """Write summary.csv, runs.csv and learning.csv."""
    write_csv(out / "summary.csv", summary)
    played = [row for task in results for row in episodes_of(results, task, match)]
    write_csv(out / "runs.csv", played)
    learning: list[Row] = []
    for task in TASKS:
        for entry in match.entries:
            if entry.rival.trained_on:
                training = entry.of(task)
                points = training.learning(match.files[training])
                learning += [named(task, entry) | point for point in points]
    write_csv(out / "learning.csv", learning)


def episodes_of(results: Mapping[str, Results], task: str, match: Match) -> Iterator[Row]:
    """Yield a row for each episode of a task."""
    for entry in match.entries:
        columns = {
            name: results[task].per_run(task, entry.label, name).tolist()
            for name in ("env_seed", "agent_seed", "final_regret")
        }
        for values in zip(*columns.values(), strict=True):
            yield named(task, entry) | dict(zip(columns, values, strict=True))


Curves = dict[str, dict[str, list[Array]]]


def drawn_from(out: Path, match: Match) -> tuple[Curves, Curves]:
    """Return what the picture shows, read back from the files, by task and "agent/note".

    That is for each training cumulative regrets `(episodes, T)`; and steps of training with the
    final regret as a share of random play's, `(2, n)`.
    """
    regrets: Curves = {task: {} for task in TASKS}
    for task, found in load(out).items():
        for entry in match.entries:
            runs = found.cumulative_regret(task, entry.label)
            regrets[task].setdefault(entry.rival.name, []).append(runs)
    points: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    with (out / "learning.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name = Rival(row["agent"], row["note"]).name
            curve = points.setdefault((row["environment"], name, row["training"]), [])
            curve.append((float(row["steps"]), float(row["share_of_random"])))
    learning: Curves = {task: {} for task in TASKS}
    for (task, name, _), curve in points.items():
        learning[task].setdefault(name, []).append(np.array(curve).T)
    return regrets, learning
