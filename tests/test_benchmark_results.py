"""Results that are loaded: what was played, run by run and step by step, in every layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_small import ABRUPT, CHANCE, FAILS, SIX_RUNS, WINDOWS, play

import wgp_agents
import wgp_agents.benchmark.folder as folder_module
import wgp_agents.benchmark.reader as reader
from wgp_agents.benchmark.experiment import run_seeds
from wgp_agents.benchmark.figures.curves import regret_around_changes, regret_curves
from wgp_agents.benchmark.files import read_whole, write_whole
from wgp_agents.benchmark.layout import PER_RUN, PER_STEP
from wgp_agents.benchmark.report.summarise import summarise
from wgp_agents.benchmark.results import Results, load_results
from wgp_agents.benchmark.rollout import make_vector, rollout

BOX = {"points_per_dim": 8, "horizon": 12, "change_points": [[6]], "continuous": [False, True]}
VALUES = SIX_RUNS | {
    "seeds": 5,
    "environment": [
        *SIX_RUNS["environment"],
        {"id": ABRUPT, "name": "box", "kwargs": BOX},
        {"id": "WGPBandit-Slow-v0"},
    ],
    "agent": [WINDOWS, CHANCE, {"name": "oracle"}],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("results")
    assert play(VALUES, folder) == []
    return load_results(folder)


def test_each_file_is_read_once_and_again_when_it_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert play(SIX_RUNS, tmp_path) == []
    opened: list[Path] = []

    def _counted(path: Path, most: int) -> bytes:
        opened.append(path)
        return read_whole(path, most)

    monkeypatch.setattr(folder_module, "read_whole", _counted)
    found = load_results(tmp_path)
    summarise(found)
    regret_curves(found, "abrupt")
    regret_around_changes(found, "abrupt")
    files = sorted(tmp_path.glob("units/*/*/*.npz"))
    assert sorted(opened) == files
    before = found.regret("abrupt", "random")
    unit = next(path for path in files if path.parent.name.startswith("random"))
    write_whole(unit, unit.read_bytes())
    assert np.array_equal(found.regret("abrupt", "random"), before)
    assert opened[len(files) :] == [unit]
    write_whole(unit, b"damaged")
    with pytest.raises(ValueError, match="A run plays it again"):
        found.regret("abrupt", "random")


@pytest.mark.slow
def test_each_file_is_read_once_for_a_report_and_its_pictures_however_large(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MOST_KEPT", 0)
    opened: list[Path] = []

    def _counted(path: Path, most: int) -> bytes:
        opened.append(path)
        return read_whole(path, most)

    monkeypatch.setattr(folder_module, "read_whole", _counted)
    found = load_results(results.folder.path)
    found.want_means()
    summarise(found)
    for task in found.tasks:
        regret_curves(found, task)
        regret_around_changes(found, task)
    assert sorted(opened) == sorted(results.folder.path.glob("units/*/*/*.npz"))


def test_names_and_runs(results: Results) -> None:
    tasks = ["abrupt", "box continuous=False", "box continuous=True", "slow"]
    assert results.tasks == tasks
    assert results.agents == ["SW-GP-UCB window=5", "SW-GP-UCB window=10", "random", "oracle"]
    assert [results.horizon(task) for task in tasks] == [20, 12, 12, 20]
    assert all(results.runs(task).tolist() == [0, 1, 2, 3, 4] for task in tasks)
    assert results.random() == "random"
    assert results.task("slow").id == "WGPBandit-Slow-v0"
    assert results.agent("SW-GP-UCB window=10").parameters == {"window": 10}


def test_arrays_are_those_of_a_direct_rollout(results: Results) -> None:
    for task in map(results.task, results.tasks):
        for agent in map(results.agent, results.agents):
            seeds = [run_seeds(2022, task.seed_name, run) for run in range(5)]
            of_env, of_agent = ([pair[i] for pair in seeds] for i in (0, 1))
            env = make_vector(task.id, 5, **task.kwargs)
            player = wgp_agents.make(agent.name, env, **agent.parameters)
            played = rollout(player, env, of_env, of_agent)
            where = (task.name, agent.label)
            for name in ("action", "optimal_action", "changed"):
                found = results.steps(*where, name)
                expected = played[name]
                if task.kwargs.get("continuous") and name != "changed":
                    expected = expected.astype(np.float32)
                    assert found.shape == (5, 12, 1)
                np.testing.assert_array_equal(found, expected)
            exact = played["regret"]
            np.testing.assert_array_equal(results.regret(*where), exact.astype(np.float32))
            total = results.cumulative_regret(*where)
            np.testing.assert_allclose(total, played["cumulative_regret"], rtol=1e-5, atol=1e-6)
            final = results.final_regret(*where)
            np.testing.assert_array_equal(final, played["cumulative_regret"][:, -1])
            expected_of = {
                "env_seed": of_env,
                "agent_seed": of_agent,
                "norm_bound": played.norm_bounds,
                "variation_budget": played.variation_budgets,
                "final_regret": final,
            }
            for name in PER_RUN:
                column = results.per_run(*where, name)
                np.testing.assert_array_equal(column, expected_of[name])
            assert set(results.read(*where)) == {*PER_RUN, *PER_STEP}


def test_changes_are_the_first_steps_of_new_functions(results: Results) -> None:
    # Over 12 steps the one change is less than a tenth; over 20 steps two are.
    assert (
        results.changes("abrupt")
        == np.flatnonzero(results.steps("abrupt", "random", "changed").all(axis=0))
        .__add__(1)
        .tolist()
    )
    assert len(results.changes("abrupt")) == 2
    assert len(results.changes("box continuous=True")) == 1
    assert results.changes("slow") == []


def test_a_change_that_one_run_does_not_meet_is_none(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = np.zeros((5, 20), bool)
    changed[:, 6] = changed[1:, 13] = True
    read, found = folder_module.ResultsFolder.read, load_results(results.folder.path)

    def _changed(*unit: Any) -> Any:
        arrays = read(*unit)
        return {**arrays, "changed": changed[: len(arrays["changed"])]}

    monkeypatch.setattr(folder_module.ResultsFolder, "read", _changed)
    assert found.changes("abrupt") == [7]


def test_the_frame_is_tidy_and_complete(results: Results, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = results.frame()
    assert len(frame) == 4 * 4 * 5
    columns = ["task", "environment", "agent", "name", "agent.window", "run", *PER_RUN]
    assert {*columns, "task.continuous"} == set(frame.columns)
    assert not frame.duplicated(["task", "agent", "run"]).any()
    for (task, agent), rows in frame.groupby(["task", "agent"]):
        assert rows["run"].tolist() == [0, 1, 2, 3, 4]
        for name in PER_RUN:
            np.testing.assert_array_equal(rows[name], results.per_run(task, agent, name))
        assert set(rows["environment"]) == {results.task(task).id}
        assert set(rows["name"]) == {results.agent(agent).name}
        window = results.agent(agent).parameters.get("window", np.nan)
        np.testing.assert_array_equal(rows["agent.window"], window)
    results.to_csv(tmp_path / "runs.csv")
    again = pandas.read_csv(tmp_path / "runs.csv", float_precision="round_trip")
    assert list(again.columns) == list(frame.columns)
    for name in ("task", "agent", "run", *PER_RUN):
        assert again[name].tolist() == frame[name].tolist()


@pytest.mark.slow
def test_parquet_holds_the_frame(results: Results, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = results.frame()
    results.to_parquet(tmp_path / "runs.parquet")
    again = pandas.read_parquet(tmp_path / "runs.parquet")
    assert list(again.columns) == list(frame.columns)
    for name in ("task", "agent", "run", "agent.window", *PER_RUN):
        pandas.testing.assert_series_equal(again[name], frame[name])
    mixed = {
        "agent": [
            {"name": "wgp-ucb", "parameters": {"discount": ["default", 0.9]}},
            {"name": "sw-gp-ucb", "parameters": {"window": ["default", 4]}},
        ]
    }
    play(SIX_RUNS | mixed, tmp_path / "mixed")
    load_results(tmp_path / "mixed").to_parquet(tmp_path / "mixed.parquet")
    column = pandas.read_parquet(tmp_path / "mixed.parquet")["agent.discount"]
    assert {"default", "0.9"} < set(column)


def test_rliable_takes_scores_where_higher_is_better(results: Results, tmp_path: Path) -> None:
    scores = results.to_rliable()
    assert list(scores) == results.agents
    for agent, array in scores.items():
        assert array.shape == (5, 4)
        for j, task in enumerate(results.tasks):
            chance = results.final_regret(task, "random").mean()
            expected = 1 - results.final_regret(task, agent) / chance
            np.testing.assert_allclose(array[:, j], expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(scores["random"].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scores["oracle"], 1, atol=1e-6)
    play(SIX_RUNS | {"agent": [WINDOWS]}, tmp_path)
    alone = load_results(tmp_path)
    for agent, array in alone.to_rliable().items():
        np.testing.assert_array_equal(array[:, 0], -alone.final_regret("abrupt", agent))


@pytest.mark.slow
def test_partial_takes_the_batches_that_every_agent_has(tmp_path: Path) -> None:
    values = VALUES | {"seeds": 6}
    play(values, tmp_path)
    whole = load_results(tmp_path)
    final = whole.final_regret("abrupt", "random")
    next(tmp_path.glob("units/abrupt*/sw*/0000002.npz")).unlink()
    for path in tmp_path.glob("units/slow*/random*/*.npz"):
        path.unlink()
    with pytest.raises(
        ValueError,
        match=r"Units are missing, 4 of them, such as .*\.npz\. Run the experiment again",
    ):
        load_results(tmp_path)
    part = load_results(tmp_path, partial=True)
    assert part.tasks == whole.tasks[:-1]
    assert part.runs("abrupt").tolist() == [0, 1, 4, 5]
    assert part.runs("box continuous=True").tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_array_equal(part.final_regret("abrupt", "random"), final[[0, 1, 4, 5]])
    rows = [row["run"] for row in part.rows() if row["task"] == "abrupt"]
    assert rows == [0, 1, 4, 5] * 4
    with pytest.raises(ValueError, match="as many runs of one task as of another"):
        part.to_rliable()
    for path in tmp_path.glob("units/*/random*/*.npz"):
        path.unlink()
    part = load_results(tmp_path, partial=True)
    assert part.agents == [label for label in whole.agents if label != "random"]
    assert part.tasks == whole.tasks
    for path in tmp_path.glob("units/*/*/*.npz"):
        path.unlink()
    with pytest.raises(ValueError, match="holds no batch of runs that every agent has played"):
        load_results(tmp_path, partial=True)


def test_partial_results_of_units_that_failed(tmp_path: Path) -> None:
    play(FAILS, tmp_path)
    assert load_results(tmp_path, partial=True).runs("abrupt").tolist() == [0, 2, 3]


def test_unknown_names_are_refused(results: Results) -> None:
    with pytest.raises(ValueError, match=r"'task' .* did you mean 'abrupt'|did you mean 'abrupt'"):
        results.final_regret("abrup", "random")
    with pytest.raises(ValueError, match="'agent' parameter of the results"):
        results.regret("abrupt", "rando")
    with pytest.raises(ValueError, match=r"'name' parameter of Results\.steps"):
        results.steps("abrupt", "random", "final_regret")
    with pytest.raises(ValueError, match=r"'names' parameter of Results\.read .*'regret'"):
        results.read("abrupt", "random", ["regrets"])
    with pytest.raises(ValueError, match=r"'name' parameter of Results\.per_run"):
        results.per_run("abrupt", "random", "regret")
