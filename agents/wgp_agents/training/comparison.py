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
from wgp_agents.training.rivals import (
    RANDOM,
    REFERENCES,
    RIVALS,
    SPECIALISTS,
    TASKS,
    Rival,
    model_of,
    models,
)
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


def experiment(task: str, folder: Path | None, episodes: int, root_seed: int) -> Experiment:
    """Return the experiment of one task, an environment's id: every rival on the same episodes.

    The trained models are in `folder`; None takes those that the package brings.
    """

    def _spec(rival: Rival) -> AgentSpec:
        given = dict(rival.parameters)
        if rival.trained and folder is not None:
            given["model"] = str(model_of(task, rival, folder))
        if rival.own_model:
            given["model"] = SPECIALISTS[task]
        return AgentSpec(label(rival.name), rival.agent, given)

    title = f"Trained policies beside learners: {task}"
    text = f"Of `wgp-gym compare --episodes {episodes} --root-seed {root_seed}`."
    return Experiment(
        title=title,
        description=text,
        tasks=(TaskSpec(task, task, seed_name=task, first_seed=FIRST_SEED),),
        agents=tuple(map(_spec, RIVALS)),
        seeds=episodes,
        root_seed=root_seed,
        source={"title": title, "description": text},
    )


@contextmanager
def folder_of_models(out: Path, folder: Path | None) -> Iterator[None]:
    """Lock the folder of a comparison for this process and for these models; see `experiment`."""
    now = {
        model.file.name: model.notes | {"sha256": digest(str(model.file), "model")}
        for model in models(folder)
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
    folder: Path | None, episodes: int, root_seed: int, jobs: int, out: Path, extend: bool = False
) -> list[Unit]:
    """Play every rival in every task, what was not played before; return the units that failed.

    `out` has a folder of `wgp-gym run` for each task; with `extend` it may have fewer episodes of
    the same kind. For the others see `experiment`, for errors `wgp_agents.benchmark.run.run`.
    """
    work = {task: experiment(task, folder, episodes, root_seed) for task in TASKS}
    for one in work.values():
        check(one)
    failed: list[Unit] = []
    for task, one in work.items():
        failed += run(one, out / task, Workers(jobs), extend=extend)
    return failed


def load(out: Path) -> dict[str, Results]:
    """Return the results of each task."""
    return {task: load_results(out / task) for task in TASKS}


def rows(results: Mapping[str, Results]) -> list[Row]:
    """Return one row for each task and rival.

    Differences from WGP-UCB, tuned for the known B_T and without it, are paired, episode by
    episode; "lower_than" counts the episodes.
    """
    return [row for task, found in results.items() for row in rows_of(task, found)]


def rows_of(task: str, found: Results) -> list[Row]:
    """Return the rows of one task."""
    played = {rival: found.final_regret(task, label(rival.name)) for rival in RIVALS}
    made: list[Row] = []
    for rival, final in played.items():
        mean = estimate(final)
        row: dict[str, object] = {
            **{"environment": task, "agent": rival.agent, "note": rival.note},
            "episodes": len(final),
            "mean_final_regret": float(mean.mean),
            "standard_error": float(mean.standard_error),
            "median_final_regret": float(np.median(final)),
            "share_of_random": float(mean.mean / played[RANDOM].mean()),
        }
        for name, reference in REFERENCES.items():
            other = played[reference]
            difference = paired_difference(final, other)
            row[f"minus_{name}"] = float(difference.mean)
            row[f"minus_{name}_standard_error"] = float(difference.standard_error)
            row[f"lower_than_{name}"] = int((final < other).sum())
        made.append(row)
    return made


def rows_as_text(made: list[Row]) -> str:
    """Return the rows for people."""
    head = f"{'mean final regret':>20}{'median':>8}{'of random':>11}"
    lines = [f"{'':22}{'':26}{head}   minus WGP-UCB: {'known B_T':14}unknown B_T"]
    for row in made:
        title = label(Rival(str(row["agent"]), str(row["note"])).name)
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
    results: Mapping[str, Results], summary: list[Row], models_folder: Path | None, out: Path
) -> None:
    """Write summary.csv, runs.csv and learning.csv."""
    write_csv(out / "summary.csv", summary)
    write_csv(out / "runs.csv", [row for task in results for row in episodes_of(results, task)])
    learning: list[Row] = []
    for model in models(models_folder):
        whose = {"environment": model.task, "agent": model.rival.name}
        learning += [whose | point for point in model.learning]
    write_csv(out / "learning.csv", learning)


def episodes_of(results: Mapping[str, Results], task: str) -> Iterator[Row]:
    """Yield a row for each episode of a task."""
    for rival in RIVALS:
        columns = {
            name: results[task].per_run(task, label(rival.name), name).tolist()
            for name in ("env_seed", "agent_seed", "final_regret")
        }
        for values in zip(*columns.values(), strict=True):
            row = {"environment": task, "agent": rival.agent, "note": rival.note}
            yield row | dict(zip(columns, values, strict=True))


def drawn_from(out: Path) -> tuple[dict[str, dict[str, Array]], dict[str, dict[str, Array]]]:
    """Return what the picture shows, read back from the files, by task and "agent/note".

    That is cumulative regrets `(episodes, T)`; and steps of training with the final regret as a
    share of random play's, `(2, n)`.
    """
    regrets = {
        task: {rival.name: found.cumulative_regret(task, label(rival.name)) for rival in RIVALS}
        for task, found in load(out).items()
    }
    points: dict[str, dict[str, list[tuple[float, float]]]] = {task: {} for task in TASKS}
    with (out / "learning.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            curve = points[row["environment"]].setdefault(row["agent"], [])
            curve.append((float(row["steps"]), float(row["share_of_random"])))
    learning = {
        task: {name: np.array(curve).T for name, curve in found.items()}
        for task, found in points.items()
    }
    return regrets, learning
