"""The command, end to end on a small setting, and the files it writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import wgp_agents
from wgp_agents import cli
from wgp_agents.benchmark import experiment, files, report
from wgp_agents.benchmark.rollout import rollout
from wgp_gym.registration import ENVIRONMENTS

SMALL = ["reproduce", "--seeds", "3", "--horizon", "30", "--root-seed", "7"]
FILES = {
    "figure1.png", "figure1.pdf", "summary.csv", "runs.csv", "curves.npz", "manifest.json",
}  # fmt: skip


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as text:
        return list(csv.DictReader(text))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    assert cli.main([*SMALL, "--jobs", "1", "--out", str(folder)]) == 0
    return folder


def test_all_files_are_there_and_no_other(results: Path) -> None:
    assert {path.name for path in results.iterdir()} == FILES
    assert (results / "figure1.png").read_bytes().startswith(b"\x89PNG")
    assert (results / "figure1.pdf").read_bytes().startswith(b"%PDF")


def test_manifest_says_how_to_do_it_again(results: Path) -> None:
    manifest = json.loads((results / "manifest.json").read_text())
    assert (manifest["seeds"], manifest["root_seed"], manifest["horizon"]) == (3, 7, 30)
    assert set(manifest["versions"]) == {*files.PACKAGES, "python"}
    assert [panel["environment"] for panel in manifest["panels"]] == [
        panel.environment for panel in experiment.PANELS
    ]
    assert len(manifest["settings"]) == 4


def test_summary_follows_from_the_runs(results: Path) -> None:
    finals: dict[tuple[str, ...], list[float]] = {}
    keys = ("panel", "variation_budget", "regularization", "agent")
    for row in rows(results / "runs.csv"):
        finals.setdefault(tuple(row[key] for key in keys), []).append(float(row["final_regret"]))
    summary = rows(results / "summary.csv")
    assert len(summary) == len(finals) == 3 * 4 * len(experiment.COMPETITORS)
    for row in summary:
        values = finals[tuple(row[key] for key in keys)]
        assert len(values) == 3
        assert float(row["mean_final_regret"]) == pytest.approx(np.mean(values))
        expected = np.std(values, ddof=1) / np.sqrt(3)
        assert float(row["standard_error"]) == pytest.approx(expected)
        reference = finals[(*(row[key] for key in keys[:3]), "wgp-ucb")]
        difference = np.mean(values) - np.mean(reference)
        assert float(row["minus_wgp-ucb"]) == pytest.approx(difference, abs=1e-9)


def test_curves_end_in_the_runs_final_regrets(results: Path) -> None:
    curves = np.load(results / "curves.npz")
    assert len(curves.files) == 3 * 4 * len(experiment.COMPETITORS)
    for panel in experiment.PANELS:
        for agent in experiment.COMPETITORS:
            finals = [
                float(row["final_regret"])
                for row in rows(results / "runs.csv")
                if (row["panel"], row["agent"]) == (panel.name, agent)
                and row["variation_budget"] == panel.setting.variation_budget
                and row["regularization"] == "R^2"
            ]
            curve = report.load_curves(results, panel)[agent]
            assert curve.shape == (3, 30)
            np.testing.assert_allclose(curve[:, -1], finals, rtol=1e-6)


def test_a_row_of_runs_can_be_played_again_alone(results: Path) -> None:
    (row,) = (
        row
        for row in rows(results / "runs.csv")
        if (row["panel"], row["agent"], row["run"]) == ("slow", "wgp-ucb", "2")
        and (row["variation_budget"], row["regularization"]) == ("known", "R^2")
    )
    env = gymnasium.make("WGPBandit-Slow-v0", horizon=30)
    agent = wgp_agents.make("wgp-ucb", env, variation_budget="known")
    played = rollout(agent, env, int(row["env_seed"]), int(row["agent_seed"]))
    assert played["cumulative_regret"][0, -1] == float(row["final_regret"])
    assert played.variation_budgets[0] == float(row["B_T"])


def test_comparisons_are_paired(results: Path) -> None:
    seeds: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for row in rows(results / "runs.csv"):
        seeds.setdefault((row["panel"], row["run"]), set()).add((row["env_seed"], row["B_T"]))
    assert all(len(episodes) == 1 for episodes in seeds.values())
    assert len(set.union(*seeds.values())) == 9


def test_processes_change_no_number(results: Path, tmp_path: Path) -> None:
    assert cli.main([*SMALL, "--jobs", "2", "--out", str(tmp_path)]) == 0
    for name in ("runs.csv", "summary.csv"):
        assert (tmp_path / name).read_text() == (results / name).read_text()


def test_more_seeds_leave_the_first_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def finals(count: int) -> list[Any]:
        every = experiment.units(count, 7, 30)
        work = [u for u in every if u.agent == "wgp-ucb" and u.setting == u.panel.setting]
        collected = report.collect(experiment.run(work, jobs=1))
        return [result.cumulative_regret[:, -1] for result in collected.values()]

    monkeypatch.setattr(experiment, "CHUNK", 2)
    for few, many in zip(finals(3), finals(5), strict=True):
        np.testing.assert_array_equal(few, many[:3])


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    printed = capsys.readouterr().out
    for name in [*wgp_agents.names(), *(entry.id for entry in ENVIRONMENTS)]:
        assert name in printed


@pytest.mark.parametrize("arguments", [["--seeds", "0"], ["--jobs", "-1"], ["--horizon", "x"]])
def test_wrong_numbers_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["reproduce", *arguments])
    assert "must be a whole number of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--horizon", "1000"], "'horizon' parameter of TableTask must be an int in [1, 823]"),
        (["--root-seed", "-3"], "must be a whole number of at least 0"),
    ],
    ids=["horizon", "seed"],
)
def test_what_cannot_be_met_is_refused_before_anything_runs(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: Any = cli.main(["reproduce", *arguments, "--out", str(tmp_path / "new")])
    except SystemExit as stopped:  # argparse's own way
        code = stopped.code
    assert code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_file_in_the_way_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").touch()
    assert cli.main([*SMALL, "--out", str(tmp_path / "taken")]) == 2
    assert "taken" in capsys.readouterr().err


def test_an_interrupt_ends_cleanly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "run", interrupt)
    assert cli.main([*SMALL, "--out", str(tmp_path)]) == 130
    assert "Interrupted" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
