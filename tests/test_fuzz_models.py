"""Damaged and hostile model files: they play as a model should, or the error names them."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_model import SMALL, TASK, Touch, entries, forged, renote, rewrite, small_model

import wgp_agents
from wgp_agents.algorithms.learned.sb3.notes import NETWORK_RULES, RULES
from wgp_agents.benchmark.rollout import make_vector

pytestmark = pytest.mark.slow

WEIGHTS = "policy.pth"
KINDS = (("ppo", False), ("ppo", True), ("dqn", False), ("recurrent-ppo", False))
Damage = Callable[[Path, Path], Any]  # of a model's file, and of the file that no code may write

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(0, 20)
    | st.just(10**400)
    | st.floats()
    | st.text()
    | st.just("long" * 10_000),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
weights = st.sampled_from([0.0, -1.0, 1e3, 1e30, -3e38, np.inf, np.nan]) | st.floats(width=32)


@st.composite
def bytes_flipped(draw: st.DrawFn) -> Damage:
    places = draw(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1))

    def _damage(path: Path, _: Path) -> None:
        path.write_bytes(flipped(path.read_bytes(), places))

    return _damage


def flipped(data: bytes, places: list[tuple[float, int]]) -> bytes:
    changed = bytearray(data)
    for share, bits in places if data else ():
        changed[int(share * (len(data) - 1))] ^= bits
    return bytes(changed)


@st.composite
def cut(draw: st.DrawFn) -> Damage:
    share, more = draw(st.floats(0, 1)), draw(st.binary())

    def _damage(path: Path, _: Path) -> None:
        data = path.read_bytes()
        path.write_bytes(data[: int(share * len(data))] + more)

    return _damage


@st.composite
def entries_changed(draw: st.DrawFn) -> Damage:
    names = st.sampled_from([WEIGHTS, "policy.optimizer.pth", "pytorch_variables.pth", "data"])
    name, other, data = draw(names), draw(st.none() | names), draw(st.none() | st.binary())

    def _damage(path: Path, _: Path) -> None:
        new = entries(path).get(other) if other else data
        rewrite(path, **{name.replace(".", "__"): new})

    return _damage


@st.composite
def pickles_of_weights_changed(draw: st.DrawFn) -> Damage:
    """Change what `torch.load` unpickles, or the numbers beside it, under right checksums."""
    name = draw(st.sampled_from(["archive/data.pkl", "archive/data/0", "archive/byteorder"]))
    places = draw(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=3))

    def _damage(path: Path, _: Path) -> None:
        with zipfile.ZipFile(io.BytesIO(entries(path)[WEIGHTS])) as archive:
            held = {one: archive.read(one) for one in archive.namelist()}
        held[name] = flipped(held.get(name, b""), places)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for one, data in held.items():
                archive.writestr(one, data)
        rewrite(path, policy__pth=buffer.getvalue())

    return _damage


@st.composite
def code_instead(draw: st.DrawFn) -> Damage:
    kind = draw(st.sampled_from(["settings", "pickle", "torch", "numpy"]))

    def _damage(path: Path, canary: Path) -> None:
        code, buffer = Touch(canary), io.BytesIO()
        if kind == "settings":
            rewrite(path, data=forged(path, canary))
        elif kind == "pickle":
            rewrite(path, policy__pth=pickle.dumps({"action_net.bias": code}))
        elif kind == "torch":
            torch.save({"action_net.bias": code}, buffer)
            rewrite(path, policy__pth=buffer.getvalue())
        else:
            np.save(buffer, np.array([code], object), allow_pickle=True)
            rewrite(path, policy__pth=buffer.getvalue())

    return _damage


@st.composite
def tensors_changed(draw: st.DrawFn) -> Damage:
    number, value = draw(st.integers(0, 30)), draw(weights)
    form = draw(st.sampled_from(["fill", "double", "sparse", "flat", "one", "stretched", "gone"]))

    def _damage(path: Path, _: Path) -> None:
        state = torch.load(io.BytesIO(entries(path)[WEIGHTS]))
        name = list(state)[number % len(state)]
        old: Any = state[name]
        forms: dict[str, Callable[[], Any]] = {
            "fill": lambda: torch.full_like(old, value),
            "double": lambda: old.double(),
            "sparse": lambda: old.to_sparse(),
            "flat": lambda: old.flatten(),
            "one": lambda: torch.tensor(value),
            "stretched": lambda: torch.tensor(value).expand(old.shape),
            "gone": lambda: None,
        }
        state[name] = forms[form]()
        buffer = io.BytesIO()
        torch.save(state, buffer)
        rewrite(path, policy__pth=buffer.getvalue())

    return _damage


@st.composite
def notes_changed(draw: st.DrawFn) -> Damage:
    outer = draw(st.dictionaries(st.sampled_from(["algo", *RULES]), values, max_size=2))
    inner = draw(st.dictionaries(st.sampled_from([*NETWORK_RULES]), values, max_size=2))

    def _damage(path: Path, _: Path) -> None:
        file = path.with_suffix(".json")
        try:
            held = json.loads(file.read_text("utf-8"))["settings"]
        except (ValueError, TypeError, KeyError):
            return  # there is nothing left to change
        if isinstance(held, dict):
            renote(path, **{"settings": held | inner} | outer)

    return _damage


@st.composite
def notes_replaced(draw: st.DrawFn) -> Damage:
    text = draw(
        st.binary()
        | values.map(lambda value: json.dumps(value).encode())
        | st.sampled_from([b"[" * 10**5, b'{"a":' * 10**5, b"9" * 10**4, b" " * 2**21])
    )
    return lambda path, _: path.with_suffix(".json").write_bytes(text)


damages = st.one_of(
    bytes_flipped(),
    cut(),
    entries_changed(),
    pickles_of_weights_changed(),
    code_instead(),
    tensors_changed(),
    notes_changed(),
    notes_replaced(),
)


@cache
def whole(algo: str, continuous: bool) -> tuple[bytes, bytes]:
    """Return the bytes of a model that nobody has damaged, and of its notes."""
    with TemporaryDirectory() as folder:
        path = small_model(algo, Path(folder), continuous=continuous)
        return path.read_bytes(), path.with_suffix(".json").read_bytes()


@settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=1000,
    suppress_health_check=list(HealthCheck),
)
@given(kind=st.sampled_from(KINDS), damage=damages, batch=st.sampled_from([None, 2]))
def test_damaged_models(
    kind: tuple[str, bool],
    damage: Damage,
    batch: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    algo, continuous = kind
    folder = tmp_path_factory.getbasetemp()
    path, canary = folder / "small-model.zip", folder / "canary"
    for file, data in zip((path, path.with_suffix(".json")), whole(*kind), strict=True):
        file.write_bytes(data)
    damage(path, canary)
    task = SMALL | {"continuous": continuous}
    env: Any = make_vector(TASK, batch, **task) if batch else gymnasium.make(TASK, **task)
    try:
        play(wgp_agents.make(algo, env, model=path), env)
    except ValueError as error:
        assert "small-model." in str(error)  # noqa: PT017
        assert len(str(error)) < 1000  # noqa: PT017
    assert not canary.exists()


def play(agent: Any, env: Any) -> None:
    env.reset(seed=0)
    agent.reset(0)
    for _ in range(3):
        action = agent.act()
        assert env.action_space.contains(np.asarray(action)) or action in env.action_space
        agent.observe(action, env.step(action)[1])
