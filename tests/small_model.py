"""Small models for the tests of their files, trained not at all, and files that would run code."""

from __future__ import annotations

import base64
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

from wgp_agents.algorithms.learned.sb3.model import same_generators, settings
from wgp_agents.training import training

TASK = "WGPBandit-Abrupt-v0"
SMALL: dict[str, Any] = {"points_per_dim": 5, "horizon": 12}


def small_model(algo: str, folder: Path, **kwargs: Any) -> Path:
    """Write an untrained model with its notes, as a training does; no global generator moves."""
    chosen = settings(algo) | small_settings(algo)
    env = training.training_env(TASK, chosen, SMALL | kwargs)
    with same_generators():
        model = training.build(algo, env, 0, chosen)
    path = folder / f"{algo}.zip"
    training.save_model(model, path, {"algo": algo} | training.notes_on(env.problem, chosen))
    return path


def small_settings(algo: str) -> dict[str, Any]:
    """Return settings of a model that is small, and quickly trained."""
    chosen: dict[str, Any] = {"history": 2, "frequencies": 2, "envs": 2, "groups": 1}
    chosen |= {"net_arch": [4]} | ({"lstm_hidden_size": 4} if algo == "recurrent-ppo" else {})
    chosen |= {"buffer_size": 10} if algo == "dqn" else {"n_steps": 2}
    return chosen | ({"batch_size": 4} if algo != "a2c" else {})


def entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, **changed: bytes | None) -> None:
    """Give entries of a model's file other bytes; those that are None are left out.

    A name's dots are written as two underscores: `policy__pth`.
    """
    held = entries(path) | {name.replace("__", "."): data for name, data in changed.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in held.items():
            if data is not None:
                archive.writestr(name, data)


def renote(path: Path, **changed: Any) -> None:
    """Give a model's notes other entries; those that are `...` are left out."""
    file = path.with_suffix(".json")
    notes = json.loads(file.read_text("utf-8")) | changed
    kept = {key: value for key, value in notes.items() if value is not ...}
    file.write_text(json.dumps(kept), "utf-8")


class Touch:
    """What writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def forged(path: Path, canary: Path) -> bytes:
    """Return a model's settings with a pickle that writes `canary`."""
    held = json.loads(entries(path)["data"])
    code = base64.b64encode(pickle.dumps(Touch(canary))).decode()
    return json.dumps(held | {"clip_range": {":type:": "float", ":serialized:": code}}).encode()
