"""A training that was interrupted goes on, one that was done is not done again, none is mixed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_model import SMALL, TASK, Touch, small_settings

from wgp_agents import cli
from wgp_agents.algorithms.learned.sb3.model import ALGORITHMS, load_model
from wgp_agents.algorithms.learned.weights_file import state_file
from wgp_agents.benchmark.files import JSON
from wgp_agents.benchmark.output import locked
from wgp_agents.training import training

STEPS, EVERY = 300, 100
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 7, "n_epochs": 2, "batch_size": 14},
    "a2c": {"n_steps": 7},
    # With a warm-up, a target network, a buffer that is filled again and again, much exploration.
    "dqn": {"learning_starts": 120, "target_update_interval": 60, "buffer_size": 80}
    | {"exploration_fraction": 1.0},
    "recurrent-ppo": {"n_steps": 7, "n_epochs": 2, "batch_size": 14},
}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let checkpoints come often, of few held-out episodes."""
    monkeypatch.setattr(training, "SHORTEST", EVERY)
    monkeypatch.setattr(training, "HELD_OUT_EPISODES", 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of trainings without an interrupt, which are not done twice."""
    return tmp_path_factory.mktemp("whole")


def train(path: Path, algo: str = "ppo", steps: int = STEPS, **kwargs: Any) -> Any:
    """Train a small model, of groups that stand at different t."""
    overrides = small_settings(algo) | {"envs": 4, "groups": 2} | SETTINGS[algo]
    return training.train(algo, TASK, steps, 5, path, SMALL | kwargs, overrides)


@contextmanager
def interrupt(checkpoint: int) -> Iterator[None]:
    """Interrupt a training while it measures the regret of a checkpoint."""
    measure, calls = training.held_out_regret, iter(range(checkpoint + 1))

    def _measure(*given: Any) -> Any:
        if next(calls) == checkpoint:  # the first call is random play's
            raise KeyboardInterrupt
        return measure(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "held_out_regret", _measure)
        try:
            yield
        except KeyboardInterrupt:
            return
    pytest.fail("The training came to its end.")


def weights(algo: str, path: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = load_model(algo, path)[0].policy.state_dict()
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algo", "checkpoints"), [("ppo", (1,)), *((algo, (2, 2)) for algo in ALGORITHMS)]
)
def test_an_interrupted_training_gives_the_same_model(
    algo: str,
    checkpoints: tuple[int, ...],
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole, resumed = folder / f"{algo}.zip", tmp_path / "resumed.zip"
    curve = train(whole, algo)
    for checkpoint in checkpoints:
        with interrupt(checkpoint):
            train(resumed, algo)
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002
    capsys.readouterr()
    assert train(resumed, algo) == curve
    kept = sum(checkpoints) - len(checkpoints)
    done = int(curve[kept - 1]["steps"]) if kept else 0
    assert f"the training goes on after {done} steps" in capsys.readouterr().err
    assert len(curve) >= STEPS // EVERY
    for name, tensor in weights(algo, whole).items():
        assert torch.equal(weights(algo, resumed)[name], tensor), name
    csv = [path.with_suffix(".csv").read_bytes() for path in (whole, resumed)]
    assert csv[0] == csv[1]
    notes = [json.loads(path.with_suffix(".json").read_text("utf-8")) for path in (whole, resumed)]
    assert {**notes[0], "seconds": 0} == {**notes[1], "seconds": 0}
    assert {path.suffix for path in tmp_path.iterdir()} == {".zip", ".json", ".csv", ".lock"}


@pytest.mark.slow
def test_what_is_trained_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.zip"
    curve, before = train(path), contents(tmp_path)
    monkeypatch.setattr(training, "build", None)
    assert train(path) == curve
    assert f"{path} was trained before, with these settings." in capsys.readouterr().err
    assert contents(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [None, 2])
@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"steps": 301}, "settings.steps is 300 there, and 301 here"),
        ({"noise_std": 0.2}, "kwargs.noise_std is null there, and 0.2 here"),
        ({"algo": "a2c"}, 'algo is "ppo" there, and "a2c" here'),
    ],
)
def test_other_settings_are_refused_and_overwrite_nothing(
    others: dict[str, Any],
    told: str,
    checkpoint: int | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "m.zip"
    if checkpoint is None:
        train(path)
    else:
        with interrupt(checkpoint):
            train(path)
    before = contents(tmp_path)
    capsys.readouterr()
    with pytest.raises(ValueError, match=rf"m\.zip holds results of another training: {told}"):
        train(path, **others)
    assert "goes on" not in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_a_table_with_other_rows_is_refused(tmp_path: Path) -> None:
    table, path = tmp_path / "rewards.csv", tmp_path / "m.zip"
    kwargs: dict[str, JSON] = {"table": str(table), "kernel": "se", "noise_std": 0.1}
    chosen = small_settings("ppo")

    def _train() -> None:
        training.train("ppo", "WGPBandit-Table-v0", 20, 5, path, kwargs, chosen)

    rows = ["step,a,b", *(f"{t},{t % 3},{t % 2}" for t in range(12))]
    table.write_text("\n".join(rows), "utf-8")
    _train()
    table.write_text("\n".join([*rows[:-1], "11,1,1"]), "utf-8")
    with pytest.raises(ValueError, match=r"m\.zip holds results of another training: files\."):
        _train()


def test_a_model_without_notes_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "m.zip"
    path.write_bytes(b"of somebody else")
    with pytest.raises(ValueError, match=r"m\.zip holds results of another training: algo is null"):
        train(path)
    assert path.read_bytes() == b"of somebody else"


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    with (
        locked(tmp_path / ".m.lock"),
        pytest.raises(ValueError, match="Another process is writing to"),
    ):
        train(tmp_path / "m.zip")
    assert {path.name for path in tmp_path.iterdir()} == {".m.lock"}


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "code"])
def test_a_damaged_state_is_named_runs_no_code_and_the_training_begins_anew(
    damage: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, path, canary = folder / "ppo.zip", tmp_path / "m.zip", tmp_path / "canary"
    train(whole)
    with interrupt(3):
        train(path)
    state = state_file(path)
    if damage == "cut":
        state.write_bytes(state.read_bytes()[:-100])
    else:
        torch.save({"settings": Touch(canary)}, state)
    capsys.readouterr()
    train(path)
    assert f"{state} cannot be read" in capsys.readouterr().err
    assert not canary.exists()
    for name, tensor in weights("ppo", whole).items():
        assert torch.equal(weights("ppo", path)[name], tensor), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seconds", "long"),
        ("settings", '"x"'),
        ("settings", "[1]"),
        ("versions", [1]),
        ("curve", [[1]]),
        ("seconds", None),
    ],
)
def test_an_edited_state_is_named_and_the_training_begins_anew(
    name: str, value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.zip"
    with interrupt(1):
        train(path)
    state = torch.load(state_file(path), weights_only=True)
    torch.save(state | {name: value}, state_file(path))
    train(path)
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.slow
def test_other_versions_than_those_of_the_steps_before_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.zip"
    with interrupt(1):
        train(path)
    state = torch.load(state_file(path), weights_only=True)
    state["versions"]["torch"] = "0.1"
    torch.save(state, state_file(path))
    train(path)
    assert "other versions than now, of torch." in capsys.readouterr().err


@pytest.mark.slow
def test_a_state_of_another_network_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.zip"
    with interrupt(2):
        train(path)
    state = torch.load(state_file(path), weights_only=True)
    del state["model"]["policy"]["action_net.bias"]
    torch.save(state, state_file(path))
    with pytest.raises(ValueError, match=r"m\.training is no state of this training .* Remove it"):
        train(path)


@pytest.mark.slow
def test_the_command_says_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "--algo", "a2c", "--steps", "30", "--env-kwargs", '{"horizon": 12}']
    words += ["--out", str(tmp_path)]
    assert cli.main(words) == 0
    first = capsys.readouterr().out
    assert cli.main(words) == 0
    said = capsys.readouterr()
    assert said.out == first
    assert "was trained before" in said.err
    assert cli.main([*words, "--steps", "31"]) == 2
    assert "settings.steps is 30 there, and 31 here" in capsys.readouterr().err
