"""Trainings on the truth: they learn, go on after an interrupt, and keep their word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from wgp_agents import cli
from wgp_agents.algorithms.learned.in_context.model import FOLDER, read_model
from wgp_agents.algorithms.learned.weights_file import model_file, state_file
from wgp_agents.benchmark.files import JSON
from wgp_agents.training import learner
from wgp_agents.training.gate import GateTrainer
from wgp_agents.training.in_context import InContextTrainer, Settings
from wgp_agents.training.learner import train
from wgp_agents.training.worlds import World, draw, worlds_of

TASK = "WGPBandit-Abrupt-v0"
SHORT: dict[str, JSON] = {"horizon": 24, "points_per_dim": 10}
EACH = 64 * 24  # steps of a round


@pytest.mark.slow
def test_it_learns() -> None:
    settings = Settings(batch=32, minibatch=32, epochs=2)
    kwargs: dict[str, JSON] = {
        "change_points": [],
        "noise_std": 0.05,
        "horizon": 60,
        "points_per_dim": 10,
    }
    trainer = InContextTrainer([World(TASK, kwargs)], settings, seed=0, first_seed=10**9)
    regrets = [trainer.round(0.0) for _ in range(14)]
    assert np.mean(regrets[-4:]) < 0.6 * np.mean(regrets[:2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algo", "trainer", "each"),
    [("in-context", InContextTrainer, EACH), ("learned-wgp-ucb", GateTrainer, 16 * 24)],
)
def test_a_training_that_was_interrupted_gives_the_same_model(
    algo: str, trainer: Any, each: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, halved = tmp_path / "whole.npz", tmp_path / "halved.npz"
    curve = train(algo, TASK, whole, steps=3 * each, kwargs=SHORT)
    plain, calls = trainer.round, []

    def interrupted(self: Any, done: float) -> Any:
        calls.append(done)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(self, done)

    monkeypatch.setattr(trainer, "round", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(algo, TASK, halved, steps=3 * each, kwargs=SHORT)
    assert not halved.exists()
    assert halved.with_suffix(".training").exists()
    again = train(algo, TASK, halved, steps=3 * each, kwargs=SHORT)
    assert len(calls) == 4  # the third round alone was played again
    assert [one["regret"] for one in again] == [one["regret"] for one in curve]
    with np.load(whole) as first, np.load(halved) as second:
        arrays = [name for name in first if first[name].dtype == np.float32]
        assert arrays
        for name in arrays:
            np.testing.assert_array_equal(first[name], second[name])
    assert not halved.with_suffix(".training").exists()


@pytest.mark.slow
def test_a_model_that_is_done_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / model_file("in-context", TASK, 0)
    assert path.name == "in-context-wgpbandit-abrupt-seed0.npz"
    curve = train("in-context", TASK, path, steps=1, kwargs=SHORT)
    monkeypatch.setattr(InContextTrainer, "round", None)
    assert train("in-context", TASK, path, steps=1, kwargs=SHORT) == curve
    with pytest.raises(ValueError, match="training"):
        train("in-context", TASK, path, steps=2, kwargs=SHORT)


def test_the_command_tells_of_the_weights_that_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of the best checkpoint, not of the last."""
    curve = [
        {"steps": steps, "seconds": 1.0, "regret": 100 * share, "share_of_random": share}
        for steps, share in ((1000, 0.5), (2000, 0.3), (3000, 0.4))
    ]
    monkeypatch.setattr(learner, "train", lambda *_, **__: curve)
    assert cli.main(["train", "--algo", "in-context", "--out", str(tmp_path)]) == 0
    assert "after 2,000 steps: 30, 30% of random play's" in capsys.readouterr().out


def test_bad_budgets_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    with pytest.raises(ValueError, match="steps"):
        train("in-context", TASK, path, seconds=1, steps=1)
    with pytest.raises(ValueError, match="seconds"):
        train("in-context", TASK, path, seconds=0.5)
    with pytest.raises(ValueError, match="kwargs"):
        train("in-context", "general", path, steps=1, kwargs=SHORT)


def test_what_each_round_draws() -> None:
    rng = np.random.default_rng(0)
    numbers = np.array([draw([0.05, 0.5], rng) for _ in range(4_000)], float)
    assert 0.05 <= numbers.min() < 0.051
    assert 0.49 < numbers.max() <= 0.5
    share = np.mean(numbers < np.sqrt(0.05 * 0.5))  # the middle of the logarithms
    assert share == pytest.approx(0.5, abs=0.04)
    assert {draw(["se", "matern"], rng) for _ in range(50)} == {"se", "matern"}
    assert all(isinstance(draw([400, 700], rng), int) for _ in range(5))


def test_the_law_of_random_worlds_makes_environments() -> None:
    worlds = worlds_of("general", {})
    assert sum(world.share for world in worlds) == pytest.approx(1.0)
    trainer = InContextTrainer(worlds, Settings(batch=2), seed=0, first_seed=10**9)
    for which in range(len(worlds)):
        env = trainer._env(which)
        env.reset(seed=0)
        assert np.isfinite(env.unwrapped.expected_rewards()).all()


def test_shipped_models_are_small_and_tell_how_they_were_trained() -> None:
    for name, environment in (("general", "general"), ("abrupt", TASK)):
        path = FOLDER / f"{name}.npz"
        model = read_model(str(path), "a test")
        assert path.stat().st_size < 2**20
        assert model.notes["environment"] == environment
        assert model.shape.clock == (name != "general")


@pytest.mark.parametrize("fault", ["no notes", "no trainer", "junk"])
def test_a_damaged_state_is_refused(fault: str, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    asked = {"algo": "in-context", "environment": TASK, "kwargs": SHORT, "seed": 0}
    asked |= {"seconds_asked": None, "steps_asked": 1}
    state = {"notes": json.dumps(asked), "trainer": {}, "curve": [], "best": {}, "seconds": 1.0}
    if fault == "no notes":
        del state["notes"]
    torch.save(state, state_file(path))
    if fault == "junk":
        state_file(path).write_bytes(b"junk")
    with pytest.raises(ValueError, match=r"m\.training is no state of a training"):
        train("in-context", TASK, path, steps=1, kwargs=SHORT)


def test_arms_that_come_and_go_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="arms, all of which stay"):
        train("in-context", "WGPBandit-News-v0", tmp_path / "m.npz", steps=1)
