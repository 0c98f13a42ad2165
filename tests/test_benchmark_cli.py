"""The command, end to end on small settings: what it writes, says and refuses."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from benchmark_small import ABRUPT, CHANCE, FAILS, SIX_RUNS, stored, write_toml

import wgp_agents
from wgp_agents import cli
from wgp_agents.benchmark import files, plan, play, results
from wgp_agents.benchmark import run as running
from wgp_agents.benchmark.figures import figure1
from wgp_agents.benchmark.results import load_results
from wgp_agents.benchmark.rollout import rollout
from wgp_agents.cli import experiments
from wgp_gym.registration import ENVIRONMENTS

SMALL = ["reproduce", "--seeds", "3", "--horizon", "30", "--root-seed", "7", "--jobs", "1"]
TABLES = {"summary.csv", "comparisons.csv", "aggregate.csv", "runs.csv"}
PLAYED = {"units", "manifest.json", "experiment.toml", "log.txt", "timings.csv"}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def code_of(arguments: list[str]) -> Any:
    try:
        return cli.main(arguments)
    except SystemExit as stopped:  # argparse's own way
        return stopped.code


@pytest.fixture(scope="module")
def figure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("figure")
    assert cli.main([*SMALL, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_toml(tmp_path / "small.toml", SIX_RUNS)


def test_reproduce_writes_figure_page_and_tables(figure: Path) -> None:
    reports = {"figure1.png", "figure1.pdf", "report.html", "report.md"}
    assert {path.name for path in figure.iterdir()} - {
        ".lock",
        ".report.lock",
    } == PLAYED | TABLES | reports
    assert (figure / "figure1.png").read_bytes().startswith(b"\x89PNG")
    assert (figure / "figure1.pdf").read_bytes().startswith(b"%PDF")
    manifest = json.loads((figure / "manifest.json").read_text())
    assert set(manifest["versions"]) == {*files.PACKAGES, "python"}
    made = manifest["experiment"]
    assert (made["seeds"], made["root_seed"], made["title"]) == (3, 7, "Figure 1")
    own = [{}, {}, {}, {"reward": "price"}]  # the fourth: the paper's words on the stocks
    assert [task["kwargs"] for task in made["tasks"]] == [one | {"horizon": 30} for one in own]
    assert len(made["agents"]) == 2 + 3 * 4 + 1


def test_the_figure_shows_the_paper_s_tuning(figure: Path) -> None:
    results = load_results(figure)
    for panel in figure1.PANELS:
        shown = figure1.curves(results, panel)
        assert list(shown) == list(figure1.COMPETITORS)
        for name, curve in shown.items():
            assert curve.shape == (3, 30)
            tuned = "" if name == "igp-ucb" else f" B_T {panel.variation_budget},"
            label = f"{name.upper()},{tuned} lambda default"
            final = results.final_regret(panel.task, label)
            np.testing.assert_allclose(curve[:, -1], final, rtol=1e-5)


def test_a_row_of_runs_can_be_played_again_alone(figure: Path) -> None:
    (row,) = (
        row
        for row in rows(figure / "runs.csv")
        if (row["task"], row["run"]) == ("slow", "2")
        and row["agent"] == "WGP-UCB, B_T known, lambda default"
    )
    env = gymnasium.make("WGPBandit-Slow-v0", horizon=30)
    agent = wgp_agents.make("wgp-ucb", env, variation_budget="known")
    played = rollout(agent, env, int(row["env_seed"]), int(row["agent_seed"]))
    assert played["cumulative_regret"][0, -1] == float(row["final_regret"])
    assert played.variation_budgets[0] == float(row["variation_budget"])


@pytest.mark.slow
def test_two_processes_write_the_same_files(figure: Path, tmp_path: Path) -> None:
    assert cli.main([*SMALL[:-1], "2", "--out", str(tmp_path)]) == 0
    endings = ".npz", ".csv", ".md", ".png", ".pdf", ".json", ".toml"
    found, expected = stored(tmp_path, *endings), stored(figure, *endings)
    assert {*found} == {*expected}
    assert {name for name in found if found[name] != expected[name]} == {"timings.csv"}


@pytest.mark.slow
def test_reproduce_extends_and_refuses(figure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = stored(figure)
    more = ["reproduce", "--seeds", "4", *SMALL[3:], "--out", str(figure)]
    assert cli.main(more) == 2
    said = capsys.readouterr().err
    assert "wgp-gym reproduce: error: " in said
    assert "seeds is 3 there, and 4 here" in said
    assert stored(figure) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["--seeds", "0"],
        ["--jobs", "-1"],
        ["--horizon", "x"],
        ["--seeds", "1" + 400 * "0"],
        ["--seeds", 70_000 * "9"],
        ["--jobs", "100000"],
        ["--horizon", 70_000 * "x"],
    ],
    ids=lambda arguments: " ".join(arguments)[:20],
)
@pytest.mark.parametrize("command", ["reproduce", "run"])
def test_wrong_numbers_are_refused(
    command: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of([command, *arguments]) == 2
    said = capsys.readouterr().err
    assert "must be a whole number of at least 1" in said
    assert len(said.rpartition("error:")[2]) < 600


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "x", "--format", 70_000 * "x"],
        [70_000 * "x"],
        ["run", f"--{70_000 * 'x'}"],
        ["train", "--algo", "ppo", "--env-kwargs", 70_000 * "x"],
        ["train", "--algo", "ppo", "--env-kwargs", 70_000 * "["],
        ["verify", "--out", 70_000 * "x" + "\0"],
    ],
    ids=["choice", "command", "flag", "text", "brackets", "NUL"],
)
def test_what_a_parser_refuses_is_quoted_in_short(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(arguments) == 2
    assert len(capsys.readouterr().err.rpartition("error:")[2]) < 600


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    printed = capsys.readouterr().out
    for name in [*wgp_agents.names(), *(entry.id for entry in ENVIRONMENTS)]:
        assert name in printed


@pytest.mark.slow
def test_flags_and_file_give_the_same_and_flags_go_first(file: Path, tmp_path: Path) -> None:
    numbers = ["--seeds", "3", "--horizon", "15", "--root-seed", "5", "--jobs", "1"]
    numbers += ["--no-report", "--out"]
    flags = ["--env", f"{ABRUPT}:change_points=[[7,14]],horizon=[30,40]", "--agent", "random"]
    flags += ["--agent", "sw-gp-ucb:window=[5,10]"]
    assert cli.main(["run", *flags, *numbers, str(tmp_path / "flags")]) == 0
    assert cli.main(["run", str(file), *numbers, str(tmp_path / "file")]) == 0
    found = [load_results(tmp_path / name) for name in ("flags", "file")]
    for result in found:
        assert result.horizon("abrupt") == 15
        assert result.runs("abrupt").tolist() == [0, 1, 2]
        assert result.experiment.root_seed == 5
    for label in found[1].agents:
        arrays = [result.regret("abrupt", label) for result in found]
        np.testing.assert_array_equal(arrays[0], arrays[1])
    again = tmp_path / "file" / "experiment.toml"
    before = stored(tmp_path / "file")
    out = ["--no-report", "--jobs", "1", "--out"]
    assert cli.main(["run", str(again), *out, str(tmp_path / "again")]) == 0
    assert stored(tmp_path / "again") == before


def test_a_run_reports_and_a_second_call_has_nothing_to_do(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "small.toml", "--jobs", "1"]) == 0
    out = tmp_path / "results" / "small"
    there = {path.name for path in out.iterdir()}
    assert there - {".lock", ".report.lock"} == TABLES | PLAYED | {"report.html", "report.md"}
    printed = capsys.readouterr().out
    assert "| SW-GP-UCB window=5" in printed
    assert "abrupt: " in printed
    assert "load_results('results/small')" in printed
    before = stored(out, ".npz", ".csv", ".md", ".json", ".toml")
    assert cli.main(["run", "small.toml", "--jobs", "1"]) == 0
    assert stored(out, ".npz", ".csv", ".md", ".json", ".toml") == before
    assert "9 units, 0 to play" in (out / "log.txt").read_text()
    (out / "report.md").unlink()
    assert cli.main(["report", str(out), "--format", "figures"]) == 0
    assert list((out / "figures").iterdir())
    assert not (out / "report.md").exists()


@pytest.mark.slow
def test_figures_that_were_drawn_are_drawn_anew_with_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_toml(tmp_path / "small.toml", SIX_RUNS | {"agent": [CHANCE]})

    def _drawn(folder: str, *seeds: str) -> dict[str, bytes]:
        for number in seeds:
            more = ["--extend", "--seeds", number, "--out", folder]
            assert cli.main(["run", "small.toml", "--jobs", "1", *more]) == 0
            if not (tmp_path / folder / "figures").exists():
                assert cli.main(["report", folder, "--format", "figures"]) == 0
        return stored(tmp_path / folder, ".svg")

    monkeypatch.chdir(tmp_path)
    assert _drawn("grown", "3", "4") == _drawn("whole", "4")


def test_a_dry_run_plays_nothing_and_writes_nothing(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def _never(*_: Any) -> None:
        raise AssertionError("it plays")

    monkeypatch.chdir(tmp_path)
    for module, name in ((running, "attempt"), (play, "rollout"), (play, "play")):
        monkeypatch.setattr(module, name, _never)
    before = sorted(tmp_path.rglob("*"))
    assert cli.main(["run", str(file), "--dry-run", "--jobs", "2", "--out", "new"]) == 0
    assert sorted(tmp_path.rglob("*")) == before
    printed = capsys.readouterr().out
    for label in ("SW-GP-UCB window=5", "SW-GP-UCB window=10", "random"):
        assert re.search(rf"  {label} +\d+\.\d (s|min|h)\n", printed)
    assert "1 tasks x 3 agents x 6 runs, in 9 units" in printed


REFUSED: list[tuple[list[str], str]] = [
    (["nothing.toml"], "There is no file nothing.toml"),
    ([], "Give an experiment's file, or one of adaptive, adaptive-held-out"),
    (["--env", ABRUPT], "Give an experiment's file, or one of adaptive, "),
    (["--agent", "random"], "Give an experiment's file, or one of adaptive"),
    (["figure1", "--env", ABRUPT], "either an experiment's file or --env and --agent"),
    (["--env", "WGPBandit-Abrup-v0", "--agent", "random"], "did you mean 'WGPBandit-Abrupt-v0'"),
    (["--env", f"{ABRUPT}:noise_sd=1", "--agent", "random"], "did you mean 'noise_std'"),
    (["--env", f"{ABRUPT}:noise_std=-1", "--agent", "random"], "a float in [0, 1e+30]. Got -1"),
    (["--env", f"{ABRUPT}:noise_std=x", "--agent", "random"], "a float in [0, 1e+30]. Got 'x'"),
    (["--env", ABRUPT, "--agent", "wgp_ucb"], "did you mean 'wgp-ucb'"),
    (["--env", ABRUPT, "--agent", "wgp-ucb:discount=2"], "'discount' parameter"),
    (["--env", ABRUPT, "--agent", "wgp-ucb:discount"], "like NAME:key=value,key=value"),
    (["smoke", "--backend", "lokky"], "did you mean 'loky'"),
    (["smoke", "--address", "tcp://here"], "must be empty for 'loky'"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_nothing_is_written_when_a_run_is_refused(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("wgp-gym run: error: ")
    assert message in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--horizon", "1000"], "'horizon' parameter of TableTask must be an int in [1, 823]"),
        (["--root-seed", "-3"], "must be a whole number of at least 0"),
    ],
    ids=["horizon", "seed"],
)
def test_what_cannot_be_reproduced_is_refused_before_anything_runs(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(["reproduce", *arguments, "--out", str(tmp_path / "new")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", [SMALL, ["run", "smoke"]], ids=["reproduce", "run"])
def test_a_file_in_the_way_is_named(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").touch()
    assert cli.main([*command, "--out", str(tmp_path / "taken")]) == 2
    assert "taken" in capsys.readouterr().err


@pytest.mark.slow
def test_units_that_fail_are_told_and_the_rest_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = write_toml(tmp_path / "fails.toml", FAILS), tmp_path / "out"
    command = ["run", str(file), "--jobs", "1", "--out", str(out)]
    assert cli.main([*command, "--no-report"]) == 1
    assert f"3 units failed: see {out / 'log.txt'}" in capsys.readouterr().out
    assert cli.main(["report", str(out), "--format", "md"]) == 2
    assert "Units are missing, 3 of them" in capsys.readouterr().err
    formats = ["--format", "md", "--format", "html"]
    assert cli.main(["report", str(out), "--partial", *formats]) == 0
    assert len(rows(out / "runs.csv")) == 9
    assert "interval, runs: 3 (" in (out / "report.md").read_text("utf-8")
    assert not (out / "figures").exists()


def test_all_units_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def _broken(*_: Any) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(play, "rollout", _broken)
    file = write_toml(tmp_path / "small.toml", SIX_RUNS)
    assert cli.main(["run", str(file), "--jobs", "1", "--out", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr()
    assert "9 units failed: see" in printed.out
    assert "holds no batch of runs that every agent has played yet" in printed.err


@pytest.mark.slow
def test_a_report_refuses_damage_and_fills_in_a_readme(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, readme = tmp_path / "out", tmp_path / "README.md"
    assert cli.main(["run", str(file), "--jobs", "1", "--no-report", "--out", str(out)]) == 0
    command = ["report", str(out), "--format", "md", "--into", str(readme)]
    assert cli.main(command) == 2
    assert "README.md" in capsys.readouterr().err
    readme.write_text("A\n<!-- results -->\n<!-- /results -->\nB\n")
    assert cli.main(command) == 0
    text = (out / "report.md").read_text("utf-8").partition("\n\n")[2].strip()
    expected = f"A\n<!-- results -->\n\n{text}\n\n<!-- /results -->\nB\n"
    assert readme.read_text("utf-8") == expected
    path = next(out.glob("units/*/random*/0000002.npz"))
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    capsys.readouterr()
    for more in ([], ["--partial"]):
        assert cli.main(["report", str(out), "--format", "md", *more]) == 2
        assert f"wgp-gym report: error: {path} is damaged" in capsys.readouterr().err
    assert cli.main(["report", str(tmp_path)]) == 2
    assert "holds no results of `wgp-gym run`" in capsys.readouterr().err


@pytest.mark.parametrize("command", [SMALL, ["run", "smoke"]], ids=["reproduce", "run"])
def test_an_interrupt_ends_cleanly(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*_: Any, **kwargs: Any) -> None:
        del kwargs
        raise KeyboardInterrupt

    monkeypatch.setattr(plan, "make_vector", interrupt)
    assert cli.main([*command, "--out", str(tmp_path / "out")]) == 130
    assert "Interrupted" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("backend", "jobs", "started"), [("loky", 2, 1), ("loky", 1, 0), ("multiprocessing", 2, 0)]
)
def test_no_thread_runs_while_another_backend_may_fork(
    backend: str, jobs: int, started: int, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[object] = []

    class Noted:
        """A thread that is only counted."""

        def __init__(self, target: object) -> None:
            threads.append(target)

        def start(self) -> None:
            """Do nothing."""

    monkeypatch.setattr(experiments, "Thread", Noted)
    monkeypatch.setattr(running, "run", lambda *_, **__: [])
    monkeypatch.setattr(experiments, "write_report", lambda *_, **__: None)
    monkeypatch.setattr(results, "load_results", lambda *_, **__: None)
    out = str(file.parent / "out")
    assert code_of(["run", str(file), "--backend", backend, "--jobs", str(jobs), "--out", out]) == 0
    assert len(threads) == started
