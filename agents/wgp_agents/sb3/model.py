"""The algorithms, and the files of trained models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import sb3_contrib
import stable_baselines3

from wgp_gym.validation import check_choice

__all__ = ["ALGORITHMS", "algorithm", "load_model", "save_model"]

ALGORITHMS = {
    "ppo": stable_baselines3.PPO,
    "a2c": stable_baselines3.A2C,
    "dqn": stable_baselines3.DQN,
    "recurrent-ppo": sb3_contrib.RecurrentPPO,
}


def algorithm(name: str) -> Any:
    """Return an algorithm's class.

    Raises:
        ValueError: If there is none of this name.
    """
    return ALGORITHMS[check_choice("algo", name, "SB3Agent", ALGORITHMS)]


def notes_of(path: Path) -> Path:
    """Return where a model's notes stand: beside it."""
    return path.with_suffix(".json")


def load_model(name: str, path: str | Path) -> tuple[Any, float]:
    """Return a model and its reward scale.

    Raises:
        ValueError: If there is no algorithm of this name.
        FileNotFoundError: If there is no such file.
    """
    file = Path(path)
    notes = notes_of(file)
    scale = json.loads(notes.read_text("utf-8"))["reward_scale"] if notes.is_file() else 1.0
    return algorithm(name).load(file, device="cpu"), float(scale)


def save_model(model: Any, path: Path, notes: dict[str, Any]) -> None:
    """Write a model, without what only its training needs, and its notes beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.stem + ".part.zip")
    optimizer = model.policy.optimizer
    moments, optimizer.state = optimizer.state, type(optimizer.state)(dict)  # two thirds of a file
    try:
        model.save(part, exclude=["replay_buffer", "rollout_buffer", "ep_info_buffer"])
    finally:
        optimizer.state = moments
    part.replace(path)
    notes_of(path).write_text(json.dumps(notes, indent=2), "utf-8")
