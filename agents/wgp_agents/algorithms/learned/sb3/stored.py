"""Models from files, without running code that stands in them.

A file of stable-baselines3 is a zip of settings, many of them pickles, and of weights; and a pickle
is a program. So a network is built from the notes beside the file, and of the file its weights
alone are read, by `torch.load` with `weights_only`.
"""

from __future__ import annotations

import io
import re
import reprlib
import zipfile
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from wgp_agents.algorithms.learned.sb3.embedding import policy_kwargs
from wgp_agents.algorithms.learned.sb3.notes import brief, default_settings, network_of, refuse
from wgp_agents.core.zips import plainly_packed
from wgp_gym.envs.dynamics import REWARD_LIMIT

__all__ = ["MOST_WEIGHTS", "count_weights", "restore"]

WEIGHTS = "policy.pth"
MOST_WEIGHTS = 2**24  # of a network without its critic; the shipped ones have 96,000 at most
OVERHEAD = 2**16  # bytes of a file of weights that are none
MOST_WORDS = 2**14  # bytes that tell of them: those of the shipped models have 2,000
NUMBERS = re.compile("[^/]+/data/[0-9]+")  # where `torch.save` puts the weights themselves

Weights = Mapping[str, torch.Tensor]


def restore(made: Any, algo: str, notes: dict[str, Any], file: Path) -> Any:
    """Return the model in a file, fit to play; no generator is used, none of its pickles read.

    Args:
        made: The algorithm's class.
        algo: Its name.
        notes: The model's notes, checked.
        file: The model's file.

    Raises:
        ValueError: If its weights are not those of a network as in the notes.
    """
    if count_weights(algo, notes) > MOST_WEIGHTS:
        refuse(f"a network of at most {MOST_WEIGHTS} weights by its notes", file)
    model = untrained(made, algo, notes)
    model.policy.load_state_dict(read_weights(file, model.policy.state_dict()))
    require_spread(file, getattr(model.policy, "log_std", torch.zeros(1)))
    head = model.policy.q_net if algo == "dqn" else model.policy.action_net
    head.register_forward_hook(partial(require_finite, file))
    return model


def require_spread(file: Path, log_std: torch.Tensor) -> None:
    """Refuse a policy over a box whose standard deviation overflows, or vanishes."""
    std = log_std.exp()
    if not ((std > 0) & torch.isfinite(std)).all():
        refuse("a network whose standard deviations are finite and above zero", file)


def require_finite(file: Path, layer: Any, shown: Any, values: torch.Tensor) -> None:
    """Refuse to play by numbers that are none: large weights overflow."""
    del layer, shown
    if not torch.isfinite(values).all():
        refuse("a network whose values are finite", file)


def count_weights(algo: str, notes: dict[str, Any]) -> int:
    """Return how many weights there are from the observation to the action, without offsets."""
    network = network_of(algo, notes)
    seen = 1 + 2 * network["history"] * notes["dim"] * network["frequencies"]
    memory = network.get("lstm_hidden_size", 0)
    widths = [memory or seen, *network["net_arch"], notes["arms"] or notes["dim"]]
    total: int = 4 * memory * (seen + memory) + sum(a * b for a, b in pairwise(widths))
    return total


def untrained(made: Any, algo: str, notes: dict[str, Any]) -> Any:
    """Return a model as the notes have it, with any weights; it cannot be trained."""
    network, dim, arms = network_of(algo, notes), notes["dim"], notes["arms"]
    top = np.array([1.0] + [*[1.0] * (1 + dim), REWARD_LIMIT] * network["history"], np.float32)
    model = made(default_settings(algo)["policy"], None, device="cpu", _init_setup_model=False)
    model.observation_space = spaces.Box(np.where(top > 1, -top, 0), top, dtype=np.float32)
    box = spaces.Box(0.0, 1.0, (dim,), np.float32)
    model.action_space = box if arms is None else spaces.Discrete(arms)
    words = policy_kwargs(dim, network) | ({} if algo == "dqn" else {"ortho_init": False})
    shown = model.observation_space, model.action_space
    with torch.random.fork_rng(devices=[]):  # the weights that it starts with are drawn
        model.policy = model.policy_class(*shown, no_rate, **words)
    return model


def no_rate(left: float) -> float:
    """Return the learning rate of a policy that does not learn."""
    del left
    return 0.0


def read_weights(file: Path, wanted: Weights) -> dict[str, torch.Tensor]:
    """Return the weights in a file, of the names, shapes and types of those that are wanted."""
    room = OVERHEAD + sum(one.numel() * one.element_size() for one in wanted.values())
    try:
        found = unpack(file, room)
        others = [name for name in found if name not in wanted]
        wrong = [name for name in wanted if not same_kind(found.get(name), wanted[name])]
        finite = not wrong and all(torch.isfinite(found[name]).all() for name in wanted)
    except Exception as error:  # there is no end to what damaged bytes can raise
        refuse(f"a file whose {WEIGHTS!r} can be read ({brief(error)})", file)
    told = "a file with the weights that its notes tell of"
    if wrong:
        refuse(f"{told}, {wrong[0]!r} of shape {tuple(wanted[wrong[0]].shape)}", file)
    if others:
        refuse(f"{told}, no {reprlib.repr(others[0])}", file)
    if not finite:
        refuse("a file with finite weights", file)
    return {name: found[name] for name in wanted}


def same_kind(given: Any, wanted: torch.Tensor) -> bool:
    """Tell whether something is a dense tensor of the shape and the type of another."""
    if not isinstance(given, torch.Tensor):
        return False
    kinds = [(one.shape, one.dtype, one.layout, one.device) for one in (given, wanted)]
    return kinds[0] == kinds[1]


def unpack(file: Path, room: int) -> dict[Any, Any]:
    """Return what `torch.save` has put into a model's file, of at most `room` bytes.

    Of damaged files, any error may come.
    """
    with zipfile.ZipFile(file) as archive:
        if not plainly_packed(archive):
            raise ValueError("it is packed in a way that may need any memory")
        with archive.open(WEIGHTS) as stream:
            data = stream.read(room + 1)
    if len(data) > room:
        raise ValueError(f"it has more than {room} bytes")
    with zipfile.ZipFile(io.BytesIO(data)) as inner:
        found = torch.load(packed_anew(inner, room), map_location="cpu", weights_only=True)
    if not isinstance(found, dict):
        raise TypeError("it is no state of a network")
    return found


def packed_anew(archive: zipfile.ZipFile, room: int) -> io.BytesIO:
    """Return an archive of `torch.save`, so that torch reads what was checked and nothing else.

    What tells of the numbers may be nested, and long nests overflow the stack: hence `MOST_WORDS`.
    """
    if not plainly_packed(archive):
        raise ValueError("what is in it is packed in a way that may need any memory")
    sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    words = sum(size for name, size in sizes.items() if not NUMBERS.fullmatch(name))
    if sum(sizes.values()) > room or words > MOST_WORDS:
        raise ValueError(f"it claims to hold more than {room} bytes, or {MOST_WORDS} of words")
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as copy:
        for name in sizes:
            copy.writestr(name, archive.read(name))
    whole.seek(0)
    return whole
