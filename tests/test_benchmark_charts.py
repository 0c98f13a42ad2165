"""The charts and tables of a report say what the stored runs say, worked out anew with numpy."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_small import ABRUPT, CHANCE, SIX_RUNS, play
from numpy.typing import NDArray

from wgp_agents.benchmark.folder import ResultsFolder
from wgp_agents.benchmark.report import charts, tables
from wgp_agents.benchmark.report import summarise as summarising
from wgp_agents.benchmark.report.charts import Chart
from wgp_agents.benchmark.report.markdown import growth_tables
from wgp_agents.benchmark.report.summarise import (
    adaptation_threshold,
    band,
    summarise,
)
from wgp_agents.benchmark.report.summary import Summary
from wgp_agents.benchmark.report.tables import Table
from wgp_agents.benchmark.report.text import left_out
from wgp_agents.benchmark.results import Results, load_results
from wgp_agents.benchmark.statistics import (
    Interval,
    interquartile_mean,
    loglog_slope,
    mean_interval,
    probability_of_improvement,
)

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
        self.charts = charts.charts(self.summary)
        self.tables = tables.page_tables(self.summary)
        self._finals: dict[tuple[str, str], Floats] = {}

    def chart(self, title: str, task: int | None = None) -> Chart:
        """Return a chart by its title and the number of its task."""
        (found,) = [one for one in self.charts if (one.title, one.task) == (title, task)]
        return found

    def table(self, title: str, task: int | None = None) -> Table:
        """Return a table likewise."""
        (found,) = [one for one in self.tables if (one.title, one.task) == (title, task)]
        return found

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
        patch.setattr(summarising, "POINTS", POINTS)
        return Made(folder)


def test_what_is_there(made: Made) -> None:
    assert made.results.tasks == TASKS
    assert made.results.agents == AGENTS
    assert made.results.runs(TASKS[0]).tolist() == [2, 3, 4, 5]
    assert made.results.runs(TASKS[1]).tolist() == list(range(6))
    of_task = ["Cumulative regret", "Regret per step", "Final regret of every run"]
    of_task += ["What was played"]
    expected: list[tuple[str, int | None]] = [(name, i) for i in (0, 1) for name in of_task]
    expected += [("Performance profiles", None), ("Probability of improvement", None)]
    for i in (0, 1):
        names = ("discount", "regularization")
        expected += [(f"Final regret against {name}", i) for name in names]
    expected += [("wgp-ucb: discount and regularization", i) for i in (0, 1)]
    expected += [("abrupt: final regret against noise_std", None)]
    assert [(one.title, one.task) for one in made.charts] == expected


def by_agent(chart: Chart) -> dict[str, dict[str, Any]]:
    """Return the traces of agents by label."""
    return {AGENTS[one["agent"]]: one for one in chart.data if one["agent"] is not None}


@pytest.mark.parametrize("i", [0, 1])
@pytest.mark.parametrize("name", ["Cumulative regret", "Regret per step"])
def test_curves(made: Made, i: int, name: str) -> None:
    chart = made.chart(name, i)
    steps = np.array(chart.x, int)
    assert len(steps) == POINTS
    assert (steps[0], steps[-1]) == (1, HORIZON)
    assert set(np.diff(steps)) <= {2, 3}
    assert [(one["x0"], one["x1"]) for one in chart.layout["shapes"]] == [(14, 14), (27, 27)]
    ends = [one["y"][-1] for one in chart.data]
    assert ends == sorted(ends)  # so that what the pointer shows is in order
    assert set(by_agent(chart)) == set(AGENTS)
    for label, trace in by_agent(chart).items():
        regret = made.results.steps(TASKS[i], label, "regret").astype(float)
        if name == "Regret per step":
            runs = np.stack([regret[:, max(t - 10, 0) : t].mean(axis=1) for t in steps], axis=1)
        else:
            runs = np.stack([regret[:, :t].sum(axis=1) for t in steps], axis=1)
        mean = runs.mean(axis=0)
        wide = 1.96 * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
        for key, values in (("y", mean), ("low", mean - wide), ("high", mean + wide)):
            np.testing.assert_allclose(trace[key], values, rtol=1e-4, atol=1e-4)
        assert (wide > 0).any() == (label != "oracle")


def test_bands_need_two_runs() -> None:
    alone = band(np.array([[1.0, 2.0]]))
    assert (alone.mean.tolist(), alone.low, alone.high) == ([1.0, 2.0], None, None)
    two = band(np.array([[1.0, 2.0], [3.0, 2.0]]))
    assert two.low is not None
    assert two.high is not None
    curves = np.array([two.mean, two.low, two.high])
    np.testing.assert_allclose(curves, np.array([[2, 2], [0.04, 2], [3.96, 2]]))


@pytest.mark.parametrize("i", [0, 1])
def test_boxes(made: Made, i: int) -> None:
    found = by_agent(made.chart("Final regret of every run", i))
    means = {label: made.finals(TASKS[i], label).mean() for label in AGENTS}
    assert list(found) == sorted(AGENTS, key=means.__getitem__)
    for label, trace in found.items():
        finals = made.finals(TASKS[i], label)
        ranks = np.array([0.05, 0.25, 0.5, 0.75, 0.95]) * (len(finals) - 1)
        expected = np.interp(ranks, np.arange(len(finals)), np.sort(finals))
        names = ("lowerfence", "q1", "median", "q3", "upperfence")
        np.testing.assert_allclose([trace[name][0] for name in names], expected, rtol=1e-4)
        np.testing.assert_allclose(trace["x"], [finals], rtol=1e-4)
        assert trace["mean"] == pytest.approx([means[label]], rel=1e-4)


def test_a_box_shows_the_first_hundred_runs(made: Made) -> None:
    finals = np.arange(150.0) ** 2
    played = {place: replace(one, final=finals) for place, one in made.summary.played.items()}
    many = replace(made.summary, played=played)
    (trace, *_) = charts.boxes(many, 0, many.tasks[0]).data
    assert trace["x"] == [finals[:100].tolist()]
    assert trace["upperfence"] == pytest.approx([np.quantile(finals, 0.95)], rel=1e-4)


@pytest.mark.parametrize("i", [0, 1])
def test_plays_are_those_of_the_first_run(made: Made, i: int) -> None:
    chart = made.chart("What was played", i)
    assert chart.caption.startswith(f"points: in run {(2, 0)[i]}; line: the true optimum")
    columns = np.array(chart.x, int) - 1
    optimum = chart.data[-1]
    assert (optimum["agent"], optimum["name"]) == (None, "true optimum")
    best = made.results.steps(TASKS[i], "random", "optimal_action")
    assert optimum["y"] == best[0, columns].tolist()
    for label, trace in by_agent(chart).items():
        actions = made.results.steps(TASKS[i], label, "action")
        assert trace["y"] == actions[0, columns].tolist()
        assert trace["mode"] == "markers"
    assert len({tuple(trace["y"]) for trace in chart.data}) > 2


def test_profiles(made: Made) -> None:
    chart = made.chart("Performance profiles")
    shares = {
        label: [made.finals(t, label) / made.finals(t, "random").mean() for t in TASKS]
        for label in AGENTS
    }
    largest = max(np.quantile(one, 0.99) for found in shares.values() for one in found)
    tau = np.linspace(0, min(largest, 2.0), POINTS)
    assert tau[-1] > 1.0
    np.testing.assert_allclose(chart.x, tau, rtol=1e-4)
    assert list(by_agent(chart)) == AGENTS
    for label, trace in by_agent(chart).items():
        expected = [np.mean([(one <= t).mean() for one in shares[label]]) for t in tau]
        np.testing.assert_allclose(trace["y"], expected, atol=1e-4)


def test_the_map_of_improvement_reads_from_row_to_column(made: Made) -> None:
    chart = made.chart("Probability of improvement")
    (trace,) = chart.data
    assert [AGENTS[j] for j in chart.agents] == RIVALS
    assert [text.split("  ")[1] for text in trace["y"]] == RIVALS
    assert trace["x"] == [text.split("  ")[0] for text in trace["y"]]
    for row, better in zip(trace["z"], RIVALS, strict=True):
        for value, than in zip(row, RIVALS, strict=True):
            if better == than:
                assert value is None
                continue
            pairs = [(made.finals(t, better)[:, None], made.finals(t, than)) for t in TASKS]
            wins = [np.mean((a < b) + 0.5 * (a == b)) for a, b in pairs]
            assert value == pytest.approx(np.mean(wins), abs=1e-4)
    assert max(value for row in trace["z"] for value in row if value is not None) > 0.7


def check_means(made: Made, means: list[Interval], tasks: list[str], labels: list[str]) -> None:
    """Check means with their intervals."""
    for found, task, label in zip(means, tasks, labels, strict=True):
        finals = made.finals(task, label)
        assert found.value == pytest.approx(finals.mean(), rel=1e-4)
        assert finals.min() <= found.low < found.value < found.high <= finals.max()
        assert found == mean_interval(made.results.final_regret(task, label))


@pytest.mark.parametrize("i", [0, 1])
def test_sensitivity(made: Made, i: int) -> None:
    by_name = {one.parameter: one for one in made.summary.sensitivity if one.task == TASKS[i]}
    assert set(by_name) == {"discount", "regularization"}
    for line, ridge in zip(by_name["discount"].lines, ("1.0", "0.01", "0.1"), strict=True):
        assert line.label == f"WGP-UCB regularization={ridge}"
        assert (line.x, line.like) == ([0.7, 0.9], f"U 0.7 {ridge}")
        check_means(made, line.means, [TASKS[i]] * 2, [f"U {x} {ridge}" for x in (0.7, 0.9)])
    for line, discount in zip(by_name["regularization"].lines, ("0.9", "0.7"), strict=True):
        assert line.label == f"WGP-UCB discount={discount}"
        assert line.x == [0.01, 0.1, 1.0]
        check_means(made, line.means, [TASKS[i]] * 3, [f"U {discount} {x}" for x in line.x])
    for name, kind in (("discount", "linear"), ("regularization", "log")):
        chart = made.chart(f"Final regret against {name}", i)
        assert chart.layout["xaxis"] == {"title": {"text": name}, "type": kind}
        for trace, line in zip(chart.data, by_name[name].lines, strict=True):
            assert trace["agent"] is None  # it always shows
            assert AGENTS[trace["like"]] == line.like
            assert (trace["x"], trace["name"]) == (line.x, line.label)
            check_bars(trace, line.means)


def check_bars(trace: dict[str, Any], means: list[Interval]) -> None:
    """Check that a trace shows means and intervals."""
    values = np.array(means)
    np.testing.assert_allclose(trace["y"], values[:, 0], rtol=1e-4)
    ends = trace["error_y"]
    np.testing.assert_allclose(ends["array"], values[:, 2] - values[:, 0], rtol=1e-4)
    np.testing.assert_allclose(ends["arrayminus"], values[:, 0] - values[:, 1], rtol=1e-4)


@pytest.mark.parametrize("i", [0, 1])
def test_the_map_of_two_parameters(made: Made, i: int) -> None:
    chart = made.chart("wgp-ucb: discount and regularization", i)
    (trace,) = chart.data
    titles = [chart.layout[name]["title"]["text"] for name in ("xaxis", "yaxis")]
    assert titles == ["discount", "regularization"]
    assert (trace["x"], trace["y"]) == (["0.7", "0.9"], ["0.01", "0.1", "1"])
    expected = np.array(
        [[made.finals(TASKS[i], f"U {x} {y}").mean() for x in (0.7, 0.9)] for y in (0.01, 0.1, 1.0)]
    )
    np.testing.assert_allclose(trace["z"], expected, rtol=1e-3)
    (outline,) = chart.layout["shapes"]
    row, column = np.unravel_index(expected.argmin(), expected.shape)
    assert (outline["x0"], outline["y0"]) == (column - 0.5, row - 0.5)


def test_growth(made: Made) -> None:
    (found,) = made.summary.growth
    assert (found.kwarg, found.x) == ("noise_std", [0.05, 1.0])
    assert [line.agent for line in found.lines] == RIVALS
    (_, text) = growth_tables(made.summary)
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in text.splitlines()]
    assert [row[0] for row in rows[2:]] == RIVALS
    chart = made.chart(found.title)
    assert [chart.layout[name]["type"] for name in ("xaxis", "yaxis")] == ["log", "log"]
    assert list(by_agent(chart)) == RIVALS
    assert chart.x == found.x
    shown = made.table("Growth").lines
    for line, label, row, cells in zip(found.lines, RIVALS, rows[2:], shown, strict=True):
        check_means(made, line.means, TASKS[::-1], [label, label])
        check_bars(by_agent(chart)[label], line.means)
        ratio = made.finals(TASKS[0], label).mean() / made.finals(TASKS[1], label).mean()
        assert line.slope is not None
        assert line.slope.value == pytest.approx(np.log(ratio) / np.log(20), rel=1e-4)
        finals = [made.results.final_regret(task, label) for task in TASKS[::-1]]
        assert line.slope == loglog_slope(np.array(found.x), finals)
        low, high = line.slope.low, line.slope.high
        assert row[1] == f"{line.slope.value:.2f} ({low:.2f} to {high:.2f})"
        slope = cells.cells[1]
        assert f"{slope.text} {slope.spread}".replace("\N{MINUS SIGN}", "-") == row[1]
    assert len({line.slope for line in found.lines}) > 1


@pytest.mark.slow
def test_growth_from_zero_is_not_logarithmic(tmp_path: Path) -> None:
    kwargs = {"change_points": [[7, 14]], "noise_std": [0.5, 0.0]}
    play(SIX_RUNS | {"environment": [{"id": ABRUPT, "kwargs": kwargs}]}, tmp_path)
    summary = summarise(load_results(tmp_path))
    (found,) = summary.growth
    chart = charts.growth(summary, found)
    assert [chart.layout[name]["type"] for name in ("xaxis", "yaxis")] == ["linear", "linear"]
    assert found.x == [0.0, 0.5]
    assert [line.slope for line in found.lines] == [None] * len(summary.agents)


def values_of(table: Table) -> list[list[float | str | None]]:
    """Return what the columns beside the first are sorted by."""
    return [[cell.value for cell in line.cells[1:]] for line in table.lines]


@pytest.mark.parametrize("i", [0, 1])
def test_the_table_of_regrets(made: Made, i: int) -> None:
    table = made.table("Final regret", i)
    titles = [column.title for column in table.columns]
    assert titles == ["Agent", "Mean", "Median", "Of random play's", "Adaptation"]
    assert table.caption == f"{(4, 6)[i]} runs of {HORIZON} steps"
    chance = made.finals(TASKS[i], "random").mean()
    assert [line.agent for line in table.lines] == list(range(len(AGENTS)))
    for (mean, median, share, adaptation), label in zip(values_of(table), AGENTS, strict=True):
        finals = made.finals(TASKS[i], label)
        assert mean == pytest.approx(finals.mean(), rel=1e-4)
        assert median == pytest.approx(np.median(finals), rel=1e-4)
        assert share == pytest.approx(finals.mean() / chance, rel=1e-4)
        assert adaptation == 0.0 if label == "oracle" else adaptation != 0.0
    best = [AGENTS[line.agent] for line in table.lines if line.cells[1].best]
    assert best == [min(RIVALS, key=lambda label: made.finals(TASKS[i], label).mean())]


def test_the_table_of_differences(made: Made) -> None:
    for i, task in enumerate(TASKS):
        table = made.table("Paired differences", i)
        best = min(RIVALS, key=lambda label: made.finals(task, label).mean())
        assert table.caption.startswith(f"each agent minus {best}, ")
        assert [one.title for one in table.columns] == ["Agent", "Difference", "Regret is"]
        pairs = {frozenset((p.first, p.second)): p for p in made.summary.differences[task]}
        for line, (value, said) in zip(table.lines, values_of(table), strict=True):
            first = AGENTS[line.agent]
            apart = made.finals(task, first) - made.finals(task, best)
            assert value == pytest.approx(apart.mean(), rel=1e-3, abs=1e-3)
            better = pairs[frozenset((first, best))].better
            words = {best: "clearly higher", first: "clearly lower", None: "not clearly different"}
            assert said == words[better]
        assert {AGENTS[line.agent] for line in table.lines} == set(RIVALS) - {best}


def test_few_competitors_show_all_pairs(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_PAIRED", len(RIVALS))
    shown = tables.differences_table(made.summary, 0, TASKS[0])
    assert len(shown.lines) == len(RIVALS) * (len(RIVALS) - 1) // 2
    assert shown.caption.startswith("all pairs")
    for line in shown.lines:
        first, second, difference, _ = line.cells
        finals = [made.finals(TASKS[0], str(cell.value)) for cell in (first, second)]
        expected = (finals[0] - finals[1]).mean()
        assert difference.value == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_the_table_across_tasks(made: Made) -> None:
    table, leader = made.table("Across tasks"), made.summary.leader
    assert table.columns[3].title == f"Beats {leader}"
    assert [line.agent for line in table.lines] == list(range(len(AGENTS)))
    for j, ((middle, mean, beats), label) in enumerate(zip(values_of(table), AGENTS, strict=True)):
        shares = [made.finals(t, label) / made.finals(t, "random").mean() for t in TASKS]
        pooled = np.sort(np.concatenate(shares))
        assert middle == pytest.approx(pooled[2:8].mean(), rel=1e-4)
        assert mean == pytest.approx(np.mean([one.mean() for one in shares]), rel=1e-4)
        better = made.summary.aggregate[j].beats_leader
        assert (label == leader) == (better is None)
        assert beats == (None if better is None else better.value)


def test_costs_are_milliseconds_of_a_run(made: Made) -> None:
    table = made.table("Cost")
    titles = [column.title for column in table.columns[1:]]
    assert titles == ["Milliseconds per run", "Peak memory, MiB"]
    # Of random play 250, 100 and 400 ms; the last line, cut short, counts for nothing.
    expected = {"oracle": [1500.0, 70.0], "random": [250.0, 120.0]}
    assert [AGENTS[line.agent] for line in table.lines] == list(expected)
    assert values_of(table) == [pytest.approx(numbers) for numbers in expected.values()]


def test_what_else_the_page_shows(made: Made) -> None:
    shown = made.summary
    assert shown.labels == AGENTS
    assert [agent.reference for agent in shown.agents] == [label == "oracle" for label in AGENTS]
    looks = {(agent.style.colour, agent.style.dash) for agent in shown.agents}
    assert len(looks) == len(AGENTS)
    assert shown.agents[1].parameters == {"discount": 0.9, "regularization": 0.01}
    assert [task.runs for task in shown.tasks] == [4, 6]
    for task, noise in zip(shown.tasks, NOISES, strict=True):
        assert task.kwargs == {"change_points": [14, 27], "noise_std": noise}
        assert task.horizon == HORIZON
    assert shown.reproduction.units == len(AGENTS) * len(TASKS) * 3
    assert shown.reproduction.seconds == pytest.approx(5.3)
    assert shown.missing.units == [f"random in {TASKS[0]}, run 0 on"]
    assert left_out(shown)[0].startswith("Units are missing, 1 of them")


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
    summary = summarise(results)
    leader = summary.leader
    assert leader is not None
    for row in summary.aggregate:
        own = shares[row.agent]
        middle = interquartile_mean(own, groups=["one", "one"], resamples=1_000)
        assert row.iqm == pytest.approx(middle)
        if row.beats_leader is not None:
            both = own, shares[leader]
            better = probability_of_improvement(*both, groups=["one", "one"], resamples=1_000)
            assert row.beats_leader == pytest.approx(better)


def test_a_task_twice_in_one_group_says_no_more_than_once() -> None:
    first, second = np.random.default_rng(0).gamma(3.0, size=(2, 8))
    once = probability_of_improvement([first], [second])
    twice = probability_of_improvement([first] * 2, [second] * 2, groups=["one", "one"])
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high), abs=0.01)
    apart = probability_of_improvement([first] * 2, [second] * 2)
    assert apart.high - apart.low < 0.9 * (once.high - once.low)
