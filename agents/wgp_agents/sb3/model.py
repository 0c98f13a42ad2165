"""The algorithms, and the files of trained models."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from wgp_gym.problem import BanditProblem
from wgp_gym.validation import check_choice, reject

__all__ = [
    "ALGORITHMS",
    "PACKAGES",
    "SHIPPED",
    "algorithm",
    "load_model",
    "model_file",
    "notes_of",
    "resolve_model",
    "shipped_model",
]

SHIPPED = Path(__file__).parent / "models"
ALGORITHMS = {
    "ppo": stable_baselines3.PPO,
    "a2c": stable_baselines3.A2C,
    "dqn": stable_baselines3.DQN,
    "recurrent-ppo": sb3_contrib.RecurrentPPO,
}
PACKAGES = ("stable-baselines3", "sb3-contrib", "torch")  # that models depend on


def algorithm(name: str) -> Any:
    """Return an algorithm's class.

    Raises:
        ValueError: If there is none of this name.
    """
    return ALGORITHMS[check_choice("algo", name, "SB3Agent", ALGORITHMS)]


def model_file(algo: str, environment: str, seed: int) -> str:
    """Return what a model's file is called, as "ppo-wgpbandit-abrupt-seed0.zip"."""
    task = re.split("[/:]", environment)[-1].removesuffix("-v0").lower()
    return f"{algo}-{task}-seed{seed}.zip"


def shipped_model(algo: str, environment: str | None) -> Path:
    """Return the file of the model that the package brings for an environment.

    Raises:
        ValueError: If it brings none.
    """
    path = SHIPPED / model_file(algo, environment or "", 0)
    if not path.is_file():
        reject("model", "SB3Agent", f"given: none is shipped for {environment}", None)
    return path


def resolve_model(
    algo: str, model: Any, problem: BanditProblem, environment: str | None
) -> tuple[Any, dict[str, Any]]:
    """Return a model that fits a problem, and its notes; a model that is no file has none.

    Args:
        algo: The algorithm's name.
        model: A model, a file, or None for the one that is shipped for the environment.
        problem: What it is to play.
        environment: The environment's id, or None.

    Raises:
        ValueError: If it does not fit, or there is none.
    """
    made, shipped = algorithm(algo), model is None
    notes: dict[str, Any] = {}
    if shipped:
        model = shipped_model(algo, environment)
    if isinstance(model, (str, Path)):
        model, notes = load_model(algo, model)
    if not hasattr(model, "predict") or not hasattr(model, "observation_space"):
        reject("model", "SB3Agent", "a model of stable-baselines3, or the path of one", model)
    if isinstance(model, BaseAlgorithm) and not isinstance(model, made):
        reject("model", "SB3Agent", f"trained by {algo!r}", type(model).__name__)
    dim, arms = problem.domain.shape[1], getattr(model.action_space, "n", None)
    if notes.get("dim", dim) != dim:
        reject("model", "SB3Agent", f"trained in d = {dim}", notes["dim"])
    if arms != (None if problem.continuous else len(problem.domain)):
        kind = "points of the box" if problem.continuous else f"{len(problem.domain)} arms"
        reject("model", "SB3Agent", f"trained on the {kind} of the problem", model.action_space)
    if shipped and not played_as_trained(problem, notes):
        law = f"T = {notes['horizon']} and R = {notes['noise_scale']}"
        reject("model", "SB3Agent", f"given: the shipped one was trained with {law}", None)
    return model, notes


def played_as_trained(problem: BanditProblem, notes: dict[str, Any]) -> bool:
    """Tell whether T and R are those of the training."""
    same_noise = np.all(np.asarray(problem.noise_scale) == notes["noise_scale"])
    return bool(problem.horizon == notes["horizon"] and same_noise)


def notes_of(path: Path) -> Path:
    """Return where a model's notes stand: beside it."""
    return path.with_suffix(".json")


def load_model(name: str, path: str | Path) -> tuple[Any, dict[str, Any]]:
    """Return a model and its notes; the global generators stay as they were.

    Raises:
        ValueError: If there is no such algorithm or file, or the model is another algorithm's.
    """
    made, file = algorithm(name), Path(path)
    if not file.is_file() or not notes_of(file).is_file():
        rule = "a .zip file with its notes (.json) beside it, or a model that is loaded already"
        reject("model", "SB3Agent", rule, str(path))
    notes: dict[str, Any] = json.loads(notes_of(file).read_text("utf-8"))
    if notes.get("algo") != name:
        reject("model", "SB3Agent", f"trained by {name!r}", notes.get("algo"))
    python, numpy, own = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:  # stable-baselines3 seeds all three when it loads
        return made.load(file, device="cpu"), notes
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        torch.set_rng_state(own)
