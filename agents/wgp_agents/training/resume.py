"""A training's whole state in a file, so that it goes on as if it had not been interrupted.

Beside weights and optimizer that is the replay buffer, every random generator, and where the
episodes stand. The file is read by `torch.load` with `weights_only`: no code in it is run.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

__all__ = ["State", "read_state", "restore", "state_of", "write_state"]

COUNTERS = (  # of stable-baselines3's algorithms; each has some of them
    "num_timesteps",
    "exploration_rate",
    "_n_updates",
    "_n_calls",
    "_episode_num",
)
BUFFER = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")

State = dict[str, Any]
"""Tensors, numbers, texts, and lists and tables of these, as `torch.load` returns them."""


def write_state(path: Path, state: State) -> None:
    """Write a state, whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)  # were it a link, something else would be written
    torch.save(state, part)  # straight to the disk: a replay buffer has 200 MB
    os.replace(part, path)


def read_state(path: Path) -> State:
    """Return the state in a file."""
    found: State = torch.load(path, map_location="cpu", weights_only=True)
    return found


def state_of(model: Any) -> State:
    """Return the state of a model that is being trained, at the start of a rollout."""
    state: State = {
        "policy": model.policy.state_dict(),
        "optimizer": model.policy.optimizer.state_dict(),
        "counters": {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)},
        "episode_starts": torch.from_numpy(np.array(model._last_episode_starts)),
        "episodes": model.env.position(),
        "generators": generators_of(model),
    }
    if (memory := getattr(model, "_last_lstm_states", None)) is not None:
        state["memory"] = [list(pair) for pair in memory]
    if (buffer := getattr(model, "replay_buffer", None)) is not None:
        filled = buffer.buffer_size if buffer.full else buffer.pos
        arrays = {name: torch.from_numpy(getattr(buffer, name)[:filled]) for name in BUFFER}
        state["buffer"] = {"pos": buffer.pos, "full": buffer.full, "arrays": arrays}
    return state


def restore(model: Any, state: State) -> None:
    """Give a model that was made in the same way the state of another, generators last."""
    model.policy.load_state_dict(state["policy"])
    model.policy.optimizer.load_state_dict(state["optimizer"])
    for name, value in state["counters"].items():
        if name in COUNTERS:
            setattr(model, name, value)
    model._last_episode_starts = state["episode_starts"].numpy()
    model._last_obs = model.env.return_to(state["episodes"])
    if "memory" in state:
        kind = type(model._last_lstm_states)
        model._last_lstm_states = kind(*(tuple(pair) for pair in state["memory"]))
    if "buffer" in state:
        buffer, kept = model.replay_buffer, state["buffer"]
        buffer.pos, buffer.full = kept["pos"], kept["full"]
        for name in BUFFER:
            array = kept["arrays"][name].numpy()
            getattr(buffer, name)[: len(array)] = array
    set_generators(model, state["generators"])


def generators_of(model: Any) -> State:
    """Return the states of the generators that a training draws from."""
    _, key, place, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    return {
        "torch": torch.get_rng_state(),
        "numpy": [torch.from_numpy(np.asarray(key).astype(np.int64)), place, has_gauss, gauss],
        "actions": json.dumps(model.action_space.np_random.bit_generator.state),
    }


def set_generators(model: Any, states: State) -> None:
    """Set the generators to the states that `generators_of` has returned."""
    key, *rest = states["numpy"]
    np.random.set_state(("MT19937", key.numpy().astype(np.uint32), *rest))  # noqa: NPY002
    model.action_space.np_random.bit_generator.state = json.loads(states["actions"])
    torch.set_rng_state(states["torch"])
