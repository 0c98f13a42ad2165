"""The charts and tables of a report say what the stored runs say, worked out anew with numpy."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_small import ABRUPT, CHANCE, SIX_RUNS, play
from numpy.typing import NDArray

from wgp_agents.benchmark.folder import ResultsFolder
from wgp_agents.benchmark.report import charts, sweeps, tables
from wgp_agents.benchmark.report.content import content
from wgp_agents.benchmark.report.markdown import growth_tables
from wgp_agents.benchmark.report.summary import (
    Summary,
    adaptation_threshold,
    aggregate_rows,
    summarise,
)
from wgp_agents.benchmark.results import Results, load_results
from wgp_agents.benchmark.statistics import (
    interquartile_mean,
    loglog_slope,
    mean_interval,
    probability_of_improvement,
)

Chart = dict[str, Any]
Floats = NDArray[np.float64]

HORIZON = 40
POINTS = 15  # of a curve, so that 40 steps are thinned
UCB = {
    "name": "wgp-ucb",
    "label": "U {discount} {regularization}",
    "parameters": {"discount": [0.9, 0.7], "regularization": [1.0, 0.01, 0.1]},
}
LABELS = [f"U {d} {r}" for d in (0.9, 0.7) for r in (1.0, 0.01, 0.1)]
AGENTS = [*LABELS, "oracle", "random"]
RIVALS = [*LABELS, "random"]
NOISES = (1.0, 0.05)
TASKS = [f"abrupt noise_std={noise}" for noise in NOISES]
KWARGS = {"change_points": [[14, 27]], "noise_std": list(NOISES)}
VALUES = SIX_RUNS | {
    "horizon": HORIZON,
    "environment": [{"id": ABRUPT, "kwargs": KWARGS}],
    "agent": [UCB, {"name": "oracle"}, CHANCE],
}
TIMINGS = """task,agent,first_run,runs,seconds,peak_memory_mib,worker
{0},random,0,2,0.5,90.0,a
{0},random,2,2,0.2,120.0,a
{1},random,4,4,1.6,100.0,b
{0},oracle,0,2,3.0,70.0,b
{0},oracle,2,2,9.0
"""


class Made:
    """An experiment of which the first batch of the first task is missing, and its report."""

    def __init__(self, folder: Path) -> None:
        self.results = load_results(folder, partial=True)
        self.summary: Summary = summarise(self.results)
        self.content = content(self.results, self.summary)
        self.charts: dict[str, Chart] = {one["id"]: one for one in self.content["charts"]}
        self.tables: dict[str, Chart] = {one["id"]: one for one in self.content["tables"]}
        assert len(self.charts) == len(self.content["charts"])
        self._finals: dict[tuple[str, str], Floats] = {}

    def finals(self, task: str, label: str) -> Floats:
        """Return final regrets, summed anew from single steps."""
        if (task, label) not in self._finals:
            regret = self.results.steps(task, label, "regret").astype(float)
            self._finals[task, label] = regret.sum(axis=1)
        return self._finals[task, label]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("results")
    assert play(VALUES, folder) == []
    opened = ResultsFolder.open(folder)
    unit = next(
        unit
        for unit in opened.experiment.units()
        if (unit.task.name, unit.agent.label, unit.runs.start) == (TASKS[0], "random", 0)
    )
    opened.file(unit).unlink()
    (folder / "timings.csv").write_text(TIMINGS.format(*TASKS), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "POINTS", POINTS)
        return Made(folder)


def test_what_is_there(made: Made) -> None:
    assert made.results.tasks == TASKS
    assert made.results.agents == AGENTS
    assert made.results.runs(TASKS[0]).tolist() == [2, 3, 4, 5]
    assert made.results.runs(TASKS[1]).tolist() == list(range(6))
    of_task = ["regret-curves", "per-step", "final", "plays"]
    expected = [f"{name}-{i}" for i in (0, 1) for name in of_task] + ["profiles", "improvement"]
    for i in (0, 1):
        expected += [f"sensitivity-{i}-{name}" for name in ("discount", "regularization")]
        expected.append(f"map-{i}-wgp-ucb-discount-regularization")
    assert list(made.charts) == [*expected, "growth-abrupt-noise_std-"]
    for name, chart in made.charts.items():
        digits = [int(part) for part in name.split("-") if part in ("0", "1")]
        assert chart["task"] == (digits[0] if digits else None)


@pytest.mark.parametrize("i", [0, 1])
@pytest.mark.parametrize("name", ["regret-curves", "per-step"])
def test_curves(made: Made, i: int, name: str) -> None:
    chart = made.charts[f"{name}-{i}"]
    steps = np.array(chart["x"])
    assert len(steps) == POINTS
    assert (steps[0], steps[-1]) == (1, HORIZON)
    assert set(np.diff(steps)) <= {2, 3}
    assert (chart["marks"], chart["mark_label"]) == ([14, 27], "change")
    assert [line["agent"] for line in chart["series"]] == list(range(len(AGENTS)))
    for line, label in zip(chart["series"], AGENTS, strict=True):
        regret = made.results.steps(TASKS[i], label, "regret").astype(float)
        if name == "per-step":
            runs = np.stack([regret[:, max(t - 10, 0) : t].mean(axis=1) for t in steps], axis=1)
        else:
            runs = np.stack([regret[:, :t].sum(axis=1) for t in steps], axis=1)
        mean = runs.mean(axis=0)
        wide = 1.96 * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
        for key, values in (("y", mean), ("low", mean - wide), ("high", mean + wide)):
            np.testing.assert_allclose(line[key], values, rtol=1e-4, atol=1e-4)
        assert (wide > 0).any() == (label != "oracle")


def test_bands_need_two_runs() -> None:
    shown = charts.thinned(2)
    assert charts.band(np.array([[1.0, 2.0]]), shown) == {"y": [1.0, 2.0]}
    two = charts.band(np.array([[1.0, 2.0], [3.0, 2.0]]), shown)
    assert two == {"y": [2.0, 2.0], "low": [0.04, 2.0], "high": [3.96, 2.0]}


def test_numbers_keep_five_digits() -> None:
    assert charts.rounded(np.array([123.456789, 0.00123456789])) == [123.46, 0.0012346]


@pytest.mark.parametrize("i", [0, 1])
def test_boxes(made: Made, i: int) -> None:
    boxes = made.charts[f"final-{i}"]["boxes"]
    assert [one["agent"] for one in boxes] == list(range(len(AGENTS)))
    for one, label in zip(boxes, AGENTS, strict=True):
        finals = made.finals(TASKS[i], label)
        ranks = np.array([0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]) * (len(finals) - 1)
        expected = np.interp(ranks, np.arange(len(finals)), np.sort(finals))
        np.testing.assert_allclose(one["quantiles"], expected, rtol=1e-4)
        np.testing.assert_allclose(one["points"], finals, rtol=1e-4)
        assert one["mean"] == pytest.approx(finals.mean(), rel=1e-4)


def test_a_box_shows_the_first_hundred_runs() -> None:
    finals = np.arange(150.0) ** 2
    one = charts.box(3, finals)
    assert one["points"] == finals[:100].tolist()
    assert (one["agent"], one["mean"]) == (3, finals.mean())
    assert one["quantiles"][-1] == pytest.approx(149**2, rel=1e-4)


@pytest.mark.parametrize("i", [0, 1])
def test_plays_are_those_of_the_first_run(made: Made, i: int) -> None:
    chart = made.charts[f"plays-{i}"]
    first = (2, 0)[i]
    assert chart["caption"].startswith(f"in run {first}, against the true optimum")
    assert chart["marks"] == [14, 27]
    columns = np.array(chart["x"]) - 1
    optimum, *played = chart["series"]
    assert (optimum["agent"], optimum["label"]) == (None, "true optimum")
    best = made.results.steps(TASKS[i], "random", "optimal_action")
    assert optimum["y"] == best[0, columns].tolist()
    assert [line["agent"] for line in played] == list(range(len(AGENTS)))
    for line, label in zip(played, AGENTS, strict=True):
        actions = made.results.steps(TASKS[i], label, "action")
        assert line["y"] == actions[0, columns].tolist()
        assert (line["markers"], line["line"]) == (True, False)
    assert len({tuple(line["y"]) for line in chart["series"]}) > 2


def test_profiles(made: Made) -> None:
    chart = made.charts["profiles"]
    shares = {
        label: [made.finals(t, label) / made.finals(t, "random").mean() for t in TASKS]
        for label in AGENTS
    }
    largest = max(np.quantile(one, 0.99) for found in shares.values() for one in found)
    tau = np.linspace(0, min(largest, 2.0), POINTS)
    assert tau[-1] > 1.0
    np.testing.assert_allclose(chart["x"], tau, rtol=1e-4)
    assert [line["agent"] for line in chart["series"]] == list(range(len(AGENTS)))
    for line, label in zip(chart["series"], AGENTS, strict=True):
        expected = [np.mean([(one <= t).mean() for one in shares[label]]) for t in tau]
        np.testing.assert_allclose(line["y"], expected, atol=1e-4)


def test_the_map_of_improvement_reads_from_row_to_column(made: Made) -> None:
    chart = made.charts["improvement"]
    assert len(chart["x"]) == len(chart["y"]) == len(RIVALS)
    assert all(text.endswith(label) for text, label in zip(chart["y"], RIVALS, strict=True))
    assert chart["low_is_best"] is not True
    for row, better in zip(chart["values"], RIVALS, strict=True):
        for value, than in zip(row, RIVALS, strict=True):
            if better == than:
                assert value is None
                continue
            pairs = [(made.finals(t, better)[:, None], made.finals(t, than)) for t in TASKS]
            wins = [np.mean((a < b) + 0.5 * (a == b)) for a, b in pairs]
            assert value == pytest.approx(np.mean(wins), abs=0.0051)
    flat = [value for row in chart["values"] for value in row if value is not None]
    assert max(flat) > 0.7


def check_line(made: Made, line: Chart, tasks: list[str], labels: list[str]) -> None:
    """Check a line of means with their intervals."""
    for k, (task, label) in enumerate(zip(tasks, labels, strict=True)):
        finals = made.finals(task, label)
        assert line["y"][k] == pytest.approx(finals.mean(), rel=1e-4)
        assert finals.min() <= line["low"][k] < line["y"][k] < line["high"][k] <= finals.max()
        found = mean_interval(made.results.final_regret(task, label))
        assert (line["low"][k], line["high"][k]) == (found.low, found.high)


@pytest.mark.parametrize("i", [0, 1])
def test_sensitivity(made: Made, i: int) -> None:
    chart = made.charts[f"sensitivity-{i}-discount"]
    assert (chart["x_label"], chart["x_log"]) == ("discount", False)
    for line, ridge in zip(chart["series"], ("1.0", "0.01", "0.1"), strict=True):
        assert line["label"] == f"WGP-UCB regularization={ridge}"
        assert line["x"] == [0.7, 0.9]
        assert line["like"] == AGENTS.index(f"U 0.7 {ridge}")
        check_line(made, line, [TASKS[i]] * 2, [f"U {x} {ridge}" for x in (0.7, 0.9)])
    chart = made.charts[f"sensitivity-{i}-regularization"]
    assert (chart["x_label"], chart["x_log"]) == ("regularization", True)
    for line, discount in zip(chart["series"], ("0.9", "0.7"), strict=True):
        assert line["label"] == f"WGP-UCB discount={discount}"
        assert line["x"] == [0.01, 0.1, 1.0]
        check_line(made, line, [TASKS[i]] * 3, [f"U {discount} {x}" for x in line["x"]])


@pytest.mark.parametrize("i", [0, 1])
def test_the_map_of_two_parameters(made: Made, i: int) -> None:
    chart = made.charts[f"map-{i}-wgp-ucb-discount-regularization"]
    assert (chart["x_label"], chart["x"]) == ("discount", ["0.7", "0.9"])
    assert (chart["y_label"], chart["y"]) == ("regularization", ["0.01", "0.1", "1"])
    assert chart["low_is_best"] is True
    expected = [
        [made.finals(TASKS[i], f"U {x} {y}").mean() for x in (0.7, 0.9)] for y in (0.01, 0.1, 1.0)
    ]
    np.testing.assert_allclose(chart["values"], expected, rtol=1e-4)


def test_growth(made: Made) -> None:
    chart = made.charts["growth-abrupt-noise_std-"]
    assert (chart["x_log"], chart["y_log"], chart["x_label"]) == (True, True, "noise_std")
    assert [AGENTS[line["agent"]] for line in chart["series"]] == RIVALS
    (_, text) = growth_tables(made.results, made.summary)
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in text.splitlines()]
    assert [row[0] for row in rows[2:]] == RIVALS
    for line, label, row in zip(chart["series"], RIVALS, rows[2:], strict=True):
        assert line["x"] == [0.05, 1.0]
        check_line(made, line, TASKS[::-1], [label, label])
        ratio = made.finals(TASKS[0], label).mean() / made.finals(TASKS[1], label).mean()
        word, value, *ends = line["note"].split()
        assert word == "slope"
        assert float(value) == pytest.approx(np.log(ratio) / np.log(20), abs=0.0051)
        finals = [made.results.final_regret(task, label) for task in TASKS[::-1]]
        found = loglog_slope(np.array(line["x"]), finals)
        assert " ".join(ends) == f"({found.low:.2f} to {found.high:.2f})"
        assert row[1] == line["note"].removeprefix("slope ")
    assert len({line["note"] for line in chart["series"]}) > 1


def test_growth_from_zero_is_not_logarithmic(tmp_path: Path) -> None:
    kwargs = {"change_points": [[7, 14]], "noise_std": [0.5, 0.0]}
    play(SIX_RUNS | {"environment": [{"id": ABRUPT, "kwargs": kwargs}]}, tmp_path)
    results = load_results(tmp_path)
    (chart,) = sweeps.growth_charts(results, summarise(results))
    assert (chart["x_log"], chart["y_log"]) == (False, False)
    for line in chart["series"]:
        assert line["x"] == [0.0, 0.5]
        assert "note" not in line


@pytest.mark.parametrize("i", [0, 1])
def test_the_table_of_regrets(made: Made, i: int) -> None:
    table = made.tables[f"regret-{i}"]
    titles = [column["title"] for column in table["columns"]]
    assert titles == ["Agent", "Mean", "Median", "Of random play's", "Adaptation"]
    assert [column["best"] for column in table["columns"]] == [None, *["low"] * 4]
    assert table["caption"] == f"{(4, 6)[i]} runs of {HORIZON} steps"
    chance = made.finals(TASKS[i], "random").mean()
    for j, (line, label) in enumerate(zip(table["rows"], AGENTS, strict=True)):
        place, mean, median, share, adaptation = line["cells"]
        finals = made.finals(TASKS[i], label)
        assert line["agent"] == place == j
        assert mean[0] == pytest.approx(finals.mean(), rel=1e-4)
        assert median[0] == pytest.approx(np.median(finals), rel=1e-4)
        assert share == pytest.approx(finals.mean() / chance, rel=1e-4)
        assert median[1] <= median[0] <= median[2]
        assert mean[1] < mean[0] < mean[2] or label == "oracle"
        assert adaptation == 0.0 if label == "oracle" else adaptation != 0.0


def test_the_table_of_differences(made: Made) -> None:
    for i, task in enumerate(TASKS):
        table = made.tables[f"differences-{i}"]
        best = min(RIVALS, key=lambda label: made.finals(task, label).mean())
        assert table["caption"].startswith(f"each agent minus {best}, ")
        assert [one["title"] for one in table["columns"]] == ["Agent", "Difference", "Regret is"]
        assert len(table["rows"]) == len(RIVALS) - 1
        seen = set()
        for line in table["rows"]:
            first, (value, low, high), verdict = line["cells"]
            assert line["agent"] == first
            seen.add(AGENTS[first])
            apart = made.finals(task, AGENTS[first]) - made.finals(task, best)
            assert value == pytest.approx(apart.mean(), rel=1e-3, abs=1e-3)
            assert low <= value <= high
            assert ("lower" in verdict, "higher" in verdict) == (high < 0, low > 0)
        assert seen == set(RIVALS) - {best}


def test_few_competitors_show_all_pairs(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_PAIRED", len(RIVALS))
    shown = tables.differences_table(made.results, made.summary, 0, TASKS[0])
    assert len(shown["rows"]) == len(RIVALS) * (len(RIVALS) - 1) // 2
    assert shown["caption"].startswith("all pairs")
    for line in shown["rows"]:
        first, second, (value, low, high), verdict = line["cells"]
        finals = [made.finals(TASKS[0], AGENTS[j]) for j in (first, second)]
        assert value == pytest.approx((finals[0] - finals[1]).mean(), rel=1e-3, abs=1e-3)
        assert ("lower" in verdict, "higher" in verdict) == (high < 0, low > 0)


def test_the_table_across_tasks(made: Made) -> None:
    table = made.tables["across"]
    leader = made.summary.leader
    assert table["columns"][3]["title"] == f"Beats {leader}"
    for j, (line, label) in enumerate(zip(table["rows"], AGENTS, strict=True)):
        place, middle, mean, beats = line["cells"]
        assert line["agent"] == place == j
        shares = [made.finals(t, label) / made.finals(t, "random").mean() for t in TASKS]
        pooled = np.sort(np.concatenate(shares))
        assert middle[0] == pytest.approx(pooled[2:8].mean(), rel=1e-4)
        assert middle[1] <= middle[0] <= middle[2]
        assert mean == pytest.approx(np.mean([one.mean() for one in shares]), rel=1e-4)
        if label == leader:
            assert beats == [None, None, None]
        else:
            assert beats[1] <= beats[0] <= beats[2]
            row = made.summary.aggregate[j]
            assert beats == [row[f"beats_leader{end}"] for end in ("", "_low", "_high")]


def test_costs_are_milliseconds_of_a_run(made: Made) -> None:
    table = made.tables["cost"]
    assert [column["title"] for column in table["columns"][1:]] == [
        "Milliseconds per run",
        "Peak memory, MiB",
    ]
    # Of random play 250, 100 and 400 ms; the last line, cut short, counts for nothing.
    expected = {"oracle": [1500.0, 70.0], "random": [250.0, 120.0]}
    assert [line["agent"] for line in table["rows"]] == [AGENTS.index(name) for name in expected]
    for line, (label, numbers) in zip(table["rows"], expected.items(), strict=True):
        assert line["cells"] == [AGENTS.index(label), *map(pytest.approx, numbers)]


def test_what_else_the_page_shows(made: Made) -> None:
    shown = made.content
    assert [agent["label"] for agent in shown["agents"]] == AGENTS
    assert [agent["reference"] for agent in shown["agents"]] == [a == "oracle" for a in AGENTS]
    assert len({(agent["colour"], agent["dash"]) for agent in shown["agents"]}) == len(AGENTS)
    assert shown["agents"][1]["parameters"] == {"discount": 0.9, "regularization": 0.01}
    assert [task["runs"] for task in shown["tasks"]] == [4, 6]
    for task, noise in zip(shown["tasks"], NOISES, strict=True):
        assert task["kwargs"] == {"change_points": [14, 27], "noise_std": noise}
        assert task["horizon"] == HORIZON
    again = shown["reproduce"]
    assert again["units"] == len(AGENTS) * len(TASKS) * 3
    assert again["seconds"] == pytest.approx(5.3)
    assert f"random in {TASKS[0]}, run 0 on" in again["failed"]
    assert not any("run 2 on" in text or TASKS[1] in text for text in again["failed"])
    assert shown["findings"][0].startswith("Units are missing, ")


def test_what_is_partial_is_left_out_of_every_agent(made: Made, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made.results.folder.path, folder)
    for unit in made.results.folder.experiment.units():
        if unit.agent.label == "oracle":
            ResultsFolder.open(folder).file(unit).unlink()
    results: Results = load_results(folder, partial=True)
    assert results.agents == [*LABELS, "random"]
    assert results.runs(TASKS[0]).tolist() == [2, 3, 4, 5]
    assert len(results.missing) == 1 + 6
    for label in results.agents:
        expected = made.results.final_regret(TASKS[0], label)
        np.testing.assert_array_equal(results.final_regret(TASKS[0], label), expected)


def test_each_change_has_the_threshold_of_its_own_phase(made: Made) -> None:
    for task in TASKS:
        chance = made.results.steps(task, "random", "regret").astype(float)
        expected = [chance[:, 13:26].mean() / 10, chance[:, 26:].mean() / 10]
        found = adaptation_threshold(made.results, task, [14, 27])
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
        assert expected[0] != pytest.approx(expected[1], rel=0.01)


def test_tasks_of_one_entry_are_resampled_together(tmp_path: Path) -> None:
    kwargs = {"change_points": [[7, 14]], "noise_std": [0.5, 0.1]}
    play(SIX_RUNS | {"environment": [{"id": ABRUPT, "kwargs": kwargs}]}, tmp_path)
    results = load_results(tmp_path)
    shares = {
        label: [
            results.final_regret(task, label) / results.final_regret(task, "random").mean()
            for task in results.tasks
        ]
        for label in results.agents
    }
    rows, leader = aggregate_rows(results)
    assert leader is not None
    for row in rows:
        own = shares[row["agent"]]
        middle = interquartile_mean(own, groups=["one", "one"], resamples=1_000)
        assert (row["iqm_low"], row["iqm_high"]) == pytest.approx((middle.low, middle.high))
        if row["agent"] != leader:
            both = own, shares[leader]
            better = probability_of_improvement(*both, groups=["one", "one"], resamples=1_000)
            ends = row["beats_leader_low"], row["beats_leader_high"]
            assert ends == pytest.approx((better.low, better.high))


def test_a_task_twice_in_one_group_says_no_more_than_once() -> None:
    first, second = np.random.default_rng(0).gamma(3.0, size=(2, 8))
    once = probability_of_improvement([first], [second])
    twice = probability_of_improvement([first] * 2, [second] * 2, groups=["one", "one"])
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high), abs=0.01)
    apart = probability_of_improvement([first] * 2, [second] * 2)
    assert apart.high - apart.low < 0.9 * (once.high - once.low)
