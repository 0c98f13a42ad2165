"""The algorithms, and the files of trained models."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from wgp_agents.algorithms.learned.policy import actions_of, plays
from wgp_agents.algorithms.learned.sb3.notes import (
    brief,
    default_settings,
    notes_of,
    read_notes,
    refuse,
)
from wgp_agents.algorithms.learned.sb3.stored import restore
from wgp_agents.algorithms.learned.weights_file import model_file
from wgp_gym.problem import BanditProblem
from wgp_gym.validation import check_bool, check_choice, reject

__all__ = [
    "ALGORITHMS",
    "PACKAGES",
    "SHIPPED",
    "algorithm",
    "load_model",
    "resolve_model",
    "same_generators",
    "settings",
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
    """Return an algorithm's class; ValueError if there is none of this name."""
    return ALGORITHMS[check_choice("algo", name, "SB3Agent", ALGORITHMS)]


def shipped_model(algo: str, environment: str | None) -> Path:
    """Return the file of the model that the package brings for an environment, if any."""
    path = SHIPPED / model_file(algo, environment or "", 0, "zip")
    if not path.is_file():
        reject("model", "SB3Agent", f"given: none is shipped for {environment}", None)
    return path


def settings(algo: str) -> dict[str, Any]:
    """Return the tuned settings of an algorithm, from settings.toml, if there is such a one."""
    algorithm(algo)
    return default_settings(algo)


def resolve_model(
    algo: str, model: Any, problem: BanditProblem, environment: str | None, trust: bool = False
) -> tuple[Any, dict[str, Any]]:
    """Return a model that fits a problem, and its notes; a model that is no file has none.

    Args:
        algo: The algorithm's name.
        model: A model, a file, or None for the one that is shipped for the environment.
        problem: What it is to play.
        environment: The environment's id, or None.
        trust: Whether a file may run code: see `load_model`.

    Raises:
        ValueError: If it does not fit, or there is none.
    """
    made, shipped = algorithm(algo), model is None
    notes: dict[str, Any] = {}
    if shipped:
        problem.known_noise("SB3Agent", "model")
        model = shipped_model(algo, environment)
    if isinstance(model, (str, Path)):
        model, notes = load_model(algo, model, trust=trust)
    if not hasattr(model, "predict") or not hasattr(model, "observation_space"):
        reject("model", "SB3Agent", "a model of stable-baselines3, or the path of one", model)
    if isinstance(model, BaseAlgorithm) and not isinstance(model, made):
        reject("model", "SB3Agent", f"trained by {algo!r}", type(model).__name__)
    dim = problem.domain.shape[1]
    if notes.get("dim", dim) != dim:
        reject("model", "SB3Agent", f"trained in d = {dim}", notes["dim"])
    if not plays(getattr(model, "action_space", None), problem):
        rule = f"trained on the {actions_of(problem)} of the problem"
        reject("model", "SB3Agent", rule, model.action_space)
    if shipped and not played_as_trained(problem, notes):
        law = f"T = {notes['horizon']} and R = {notes['noise_scale']}"
        reject("model", "SB3Agent", f"given: the shipped one was trained with {law}", None)
    return model, notes


def played_as_trained(problem: BanditProblem, notes: dict[str, Any]) -> bool:
    """Tell whether T and R are those of the training."""
    same_noise = np.all(np.asarray(problem.noise_scale) == notes["noise_scale"])
    return bool(problem.horizon == notes["horizon"] and same_noise)


def load_model(name: str, path: str | Path, *, trust: bool = False) -> tuple[Any, dict[str, Any]]:
    """Return a model and its notes; the global generators stay as they were.

    Args:
        name: The algorithm's name.
        path: The model's file; its notes stand beside it, with `trust` they may be missing.
        trust: Whether stable-baselines3 loads the file, with all that is in it: settings of any
            kind are pickles, and a pickle runs whatever code its author likes. Without it the
            network is built from the notes, the weights alone are read, and no code is run.

    Raises:
        ValueError: If there is no such algorithm or file, the model is another algorithm's, or
            a file is damaged.
    """
    made, file = algorithm(name), Path(path)
    trust = check_bool("trust", trust, "SB3Agent")
    noted = os.path.isfile(file) and os.path.isfile(notes_of(file))
    if not noted and not (trust and os.path.isfile(file)):
        rule = (
            "a .zip file with its notes (.json) beside it, as 'wgp-gym train' writes both; or a "
            "model that stable-baselines3 has loaded; or, since to load it runs the code in it, "
            "the file of somebody whom you trust, with trust=True"
        )
        refuse(rule, file)
    notes = read_notes(name, file) if noted else {}
    return (load_trusted(made, file) if trust else restore(made, name, notes, file)), notes


def load_trusted(made: Any, file: Path) -> Any:
    """Return what stable-baselines3 loads from a file; whatever code is in it is run."""
    try:
        with same_generators():
            return made.load(file, device="cpu")
    except Exception as error:  # there is no end to what damaged bytes can raise
        refuse(f"a file that stable-baselines3 can load ({brief(error)})", file)


@contextmanager
def same_generators() -> Iterator[None]:
    """Leave the global generators as they were: stable-baselines3 seeds all three when it loads."""
    python, numpy, own = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        torch.set_rng_state(own)
