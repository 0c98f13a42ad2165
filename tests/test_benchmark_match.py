"""Several trainings of trained agents, and rivals of one's own, in `wgp-gym compare`."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from wgp_agents import cli
from wgp_agents.algorithms.learned.weights_file import state_file
from wgp_agents.benchmark.results import load_results
from wgp_agents.training import comparison, match, rivals
from wgp_agents.training.rivals import RIVALS, TASKS, Match, Training, missing
from wgp_agents.training.worlds import GENERAL

FEW = tuple(
    one
    for one in RIVALS
    if one.agent in ("random", "wgp-ucb") or one.name == "in-context/specialist"
)
SPECIALIST = FEW[1]


def test_every_trained_rival_comes_with_the_package() -> None:
    everybody = Match()
    assert not missing(everybody)
    assert len(everybody.all_trainings) == 4 * 2 + 2 + 1 + 1
    general = [one for one in everybody.all_trainings if one.environment == GENERAL]
    assert {one.rival.name for one in general} == {"in-context/general", "learned-wgp-ucb"}


def test_what_is_missing_of_two_trainings(tmp_path: Path) -> None:
    found = {one.file_name for one in missing(Match(FEW, 2, tmp_path))}
    names = {f"in-context-wgpbandit-{task}-seed1.npz" for task in ("abrupt", "slow")}
    assert found == names
    with pytest.raises(ValueError, match=r"folder with in-context-wgpbandit-abrupt-seed1\.npz"):
        _ = Match(FEW, 2, tmp_path).files
    assert len(missing(Match(RIVALS, 3, tmp_path))) == 2 * 12


def test_a_folder_goes_before_the_package(tmp_path: Path) -> None:
    training = Training(SPECIALIST, TASKS[0], 0)
    shipped = training.file(tmp_path)
    assert shipped == training.shipped
    assert shipped is not None
    mine = tmp_path / training.file_name
    shutil.copy(shipped, mine)
    assert training.file(tmp_path) == mine
    assert Training(SPECIALIST, TASKS[0], 1).file(tmp_path) is None


def test_a_training_that_is_not_done_is_missing(tmp_path: Path) -> None:
    (dqn,) = (one for one in RIVALS if one.agent == "dqn")
    later, first = Training(dqn, TASKS[0], 1), Training(dqn, TASKS[0], 0)
    for training in (later, first):
        (tmp_path / training.file_name).write_bytes(b"a checkpoint")
        state_file(tmp_path / training.file_name).write_bytes(b"its state")
    assert later.file(tmp_path) is None
    assert first.file(tmp_path) == first.shipped
    assert later in missing(Match(RIVALS, 2, tmp_path))
    state_file(tmp_path / later.file_name).unlink()
    assert later.file(tmp_path) == tmp_path / later.file_name


@pytest.mark.slow
def test_further_trainings_are_trained_and_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rivals, "RIVALS", FEW)
    monkeypatch.chdir(tmp_path)
    trained: list[str] = []

    def _train(training: Training, folder: Path, running: object) -> str:
        """Take the other task's specialist for what was trained."""
        (other,) = (task for task in TASKS if task != training.environment)
        model = Training(training.rival, other, 0).shipped
        assert model is not None
        folder.mkdir(exist_ok=True)
        shutil.copy(model, folder / training.file_name)
        trained.append(training.file_name)
        return "done"

    monkeypatch.setattr(match, "train", _train)
    out = tmp_path / "out"
    words = ["compare", "--trainings", "2", "--episodes", "2", "--jobs", "1", "--out", str(out)]
    words += ["--agent", "wgp-ucb:discount=0.9", "--agent", "wgp_agents:IGPUCB"]
    assert cli.main(words) == 0
    assert sorted(trained) == [
        f"in-context-wgpbandit-{task}-seed1.npz" for task in ("abrupt", "slow")
    ]
    said = capsys.readouterr().out
    assert "Models of models: in-context-wgpbandit-abrupt-seed1.npz" in said
    with (out / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["environment"] == TASKS[0]]
    own = {row["training"]: row for row in rows if row["agent"] == "in-context"}
    assert set(own) == {"1", "2"}
    assert own["1"]["mean_final_regret"] != own["2"]["mean_final_regret"]
    assert float(own["2"]["training_seconds"]) > 1
    notes = {(row["agent"], row["note"]) for row in rows}
    assert {("wgp-ucb", "discount=0.9"), ("wgp_agents:IGPUCB", "")} <= notes
    means = [float(own[number]["mean_final_regret"]) for number in "12"]
    line = next(text for text in said.splitlines() if "in-context (specialist)" in text)
    assert f"trainings: {means[0]:.0f} {means[1]:.0f}" in line
    shown = re.search(r"\) +(\d+) ±", line)
    assert shown is not None
    assert float(shown[1]) == pytest.approx(sum(means) / 2, abs=0.51)
    both = Match(FEW, 2, Path("models"))
    regrets, learning = comparison.drawn_from(out, both)
    assert len(regrets[TASKS[0]]["in-context/specialist"]) == 2
    assert len(learning[TASKS[0]]["in-context/specialist"]) == 2
    played = load_results(out / TASKS[0])
    assert "in-context (specialist), training 2" in played.agents
    assert cli.main(words) == 0  # nothing is trained again
    assert len(trained) == 2


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("no-such-agent", "no-such-agent"),
        ("wgp-ucb:discount", "key=value"),
        ("random", "one that does not take part already"),
        ("wgp-ucb:discount=7", "'discount' parameter of WGPUCB"),
    ],
)
def test_bad_rivals_are_refused_before_anything_is_trained(
    flag: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(match, "train", None)
    words = ["compare", "--trainings", "2", "--agent", flag, "--models", str(tmp_path / "models")]
    assert cli.main([*words, "--out", str(tmp_path / "out")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_training_that_fails_says_why(tmp_path: Path) -> None:
    broken: Any = Training(SPECIALIST, "WGPBandit-None-v0", 1)
    with pytest.raises(ValueError, match=r"seed1\.npz failed: .*WGPBandit-None"):
        match.train_all([broken], tmp_path, 1)
