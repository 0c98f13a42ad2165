"""Rows of the report follow from the runs; tables and sentences say what the rows say."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from benchmark_small import ABRUPT, CHANCE, SIX_RUNS, WINDOWS, play
from numpy.typing import NDArray

from wgp_agents.benchmark.report import markdown
from wgp_agents.benchmark.report.summarise import summarise
from wgp_agents.benchmark.report.summary import Summary
from wgp_agents.benchmark.report.tables import write_tables
from wgp_agents.benchmark.report.text import findings
from wgp_agents.benchmark.results import Results, load_results

KWARGS = {"change_points": [[15, 30]], "noise_std": [0.1, 1.0]}
VALUES = SIX_RUNS | {
    "seeds": 10,
    "batch": 4,
    "horizon": 45,
    "environment": [{"id": ABRUPT, "kwargs": KWARGS}],
    "agent": [{"name": "oracle"}, WINDOWS, {"name": "wgp-ucb", "label": "a|b"}, CHANCE],
}
RIVALS = ["SW-GP-UCB window=5", "SW-GP-UCB window=10", "a|b", "random"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("results")
    assert play(VALUES, folder) == []
    return load_results(folder)


@pytest.fixture(scope="module")
def summary(results: Results) -> Summary:
    return summarise(results)


def finals(results: Results, task: str, label: str) -> NDArray[np.float64]:
    """Return final regrets, summed anew from single steps."""
    return np.asarray(results.steps(task, label, "regret").astype(float).sum(axis=1))


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def adaptation(regret: NDArray[np.float64], starts: list[int], levels: list[float]) -> float:
    """Return the median steps after a change until ten steps have no more than the level."""
    times = []
    ends = [*starts[1:], regret.shape[1]]
    for run in regret:
        for start, end, level in zip(starts, ends, levels, strict=True):
            means = [run[step : step + 10].mean() for step in range(start, end - 9)]
            found = [k for k, mean in enumerate(means) if mean <= level]
            times.append(found[0] if found else math.inf)
    return float(np.median(times))


def test_rows_follow_from_the_runs(results: Results, summary: Summary) -> None:
    places = [(task, agent) for task in results.tasks for agent in results.agents]
    assert list(summary.rows) == places
    for place, row in summary.rows.items():
        assert (row.task, row.agent) == place
        values = finals(results, row.task, row.agent)
        assert row.runs == 10
        assert row.mean.value == pytest.approx(values.mean(), rel=1e-5)
        assert row.median.value == pytest.approx(np.median(values), rel=1e-5)
        error = values.std(ddof=1) / math.sqrt(10)
        assert row.standard_error == pytest.approx(error, rel=1e-4)
        chance = finals(results, row.task, "random").mean()
        assert row.share_of_random == pytest.approx(values.mean() / chance, rel=1e-5, abs=1e-12)
        for one in (row.mean, row.median):
            assert one.low <= one.value <= one.high
        if row.agent != "oracle":
            # A bootstrap interval of 95 % is near mean +- 2 standard errors.
            width = (row.mean.high - row.mean.low) / error
            assert 2.0 < width < 5.5


def test_adaptation_follows_from_the_steps(results: Results, summary: Summary) -> None:
    for task in results.tasks:
        starts = [step - 1 for step in results.changes(task)]
        assert len(starts) == 2
        level = results.regret(task, "random").mean(axis=0)
        ends = [starts[1], 45]
        levels = [0.1 * level[a:b].mean() for a, b in zip(starts, ends, strict=True)]
        for agent in results.agents:
            expected = adaptation(results.regret(task, agent), starts, levels)
            assert summary.rows[task, agent].adaptation == expected, (task, agent)
        soon = summary.rows[task, "oracle"].adaptation
        assert soon is not None
        assert soon < math.inf


def test_differences_are_those_of_all_pairs(results: Results, summary: Summary) -> None:
    for task in results.tasks:
        pairs = summary.differences[task]
        names = {frozenset((pair.first, pair.second)) for pair in pairs}
        assert names == {frozenset((a, b)) for a in RIVALS for b in RIVALS if a != b}
        assert len(pairs) == 6
        for pair in pairs:
            expected = finals(results, task, pair.first) - finals(results, task, pair.second)
            assert pair.difference == pytest.approx(expected.mean(), rel=1e-4, abs=1e-4)
            assert pair.low <= pair.difference <= pair.high


def test_the_leader_and_what_holds_across_tasks(results: Results, summary: Summary) -> None:
    shares = {
        label: [
            finals(results, task, label) / finals(results, task, "random").mean()
            for task in results.tasks
        ]
        for label in results.agents
    }
    means = {label: float(np.mean([one.mean() for one in shares[label]])) for label in shares}
    assert summary.leader == min(RIVALS, key=means.__getitem__)
    assert [row.agent for row in summary.aggregate] == results.agents
    for row in summary.aggregate:
        own, best = shares[row.agent], shares[summary.leader]
        assert row.tasks == 2
        assert row.mean_share == pytest.approx(means[row.agent], rel=1e-5, abs=1e-12)
        pooled = np.sort(np.concatenate(own))
        assert row.iqm.value == pytest.approx(pooled[5:15].mean(), rel=1e-4, abs=1e-9)
        wins = [
            np.mean((a[:, None] < b[None]) + 0.5 * (a[:, None] == b[None]))
            for a, b in zip(own, best, strict=True)
        ]
        if row.beats_leader is None:
            assert row.agent == summary.leader
        else:
            assert row.beats_leader.value == pytest.approx(np.mean(wins), abs=0.02)


def test_tables_hold_the_rows(results: Results, summary: Summary, tmp_path: Path) -> None:
    write_tables(summary, tmp_path)
    written = read(tmp_path / "summary.csv")
    for found, row in zip(written, summary.rows.values(), strict=True):
        ends = {f"{name}{end}" for name in ("mean", "median") for end in ("", "_low", "_high")}
        known = {"task", "agent", "runs", "standard_error", "share_of_random", "adaptation"}
        assert set(found) == known | ends
        assert (found["task"], found["agent"], found["runs"]) == (row.task, row.agent, "10")
        shown = [float(found[f"median{end}"]) for end in ("", "_low", "_high")]
        assert shown == list(row.median)
        assert float(found["adaptation"]) == row.adaptation
    shares = read(tmp_path / "aggregate.csv")
    for found, share in zip(shares, summary.aggregate, strict=True):
        beats = [found[f"beats_leader{end}"] for end in ("", "_low", "_high")]
        better = share.beats_leader
        assert beats == ["", "", ""] if better is None else list(map(float, beats)) == list(better)
        assert float(found["iqm"]) == share.iqm.value
    runs = read(tmp_path / "runs.csv")
    assert len(runs) == 2 * 5 * 10
    for run in runs:
        final = results.final_regret(run["task"], run["agent"])[int(run["run"])]
        assert float(run["final_regret"]) == final
    assert len(read(tmp_path / "comparisons.csv")) == 12


def test_the_best_is_bold_and_references_are_marked(results: Results, summary: Summary) -> None:
    lines = markdown.regret_table(summary).splitlines()
    assert len({len(line) for line in lines}) == 1
    cells = [[c.strip() for c in line.replace("\\|", "!").strip("|").split("|")] for line in lines]
    assert cells[0] == ["agent", *results.tasks]
    labels = ["oracle (reference)", *(label.replace("|", "!") for label in RIVALS)]
    assert [row[0] for row in cells[2:]] == labels
    for j, task in enumerate(results.tasks, start=1):
        means = [finals(results, task, label).mean() for label in RIVALS]
        bold = [row[0] for row in cells[2:] if row[j].startswith("**") and row[j].endswith("**")]
        assert bold == [labels[1 + int(np.argmin(means))]]
        for row, agent in zip(cells[2:], results.agents, strict=True):
            shown = float(row[j].strip("*").split()[0])
            assert shown == pytest.approx(finals(results, task, agent).mean(), abs=0.51)


def test_findings_are_true(results: Results, summary: Summary) -> None:
    texts = findings(summary)
    assert len(texts) == 2
    for task, text in zip(results.tasks, texts, strict=True):
        best = min(RIVALS, key=lambda label: finals(results, task, label).mean())
        assert text.startswith(f"{task}: {best} has the lowest mean regret, ")
        sign = {pair.first: pair for pair in summary.differences[task] if pair.second == best}
        sign |= {pair.second: pair for pair in summary.differences[task] if pair.first == best}
        assert len(sign) == 3
        clear = [label for label, pair in sign.items() if pair.low > 0 or pair.high < 0]
        assert ("It beats" in text) == bool(clear)
        if clear:
            assert f"It beats {len(clear)} of 3 other agents clearly." in text
        unclear = [label for label in sign if label not in clear]
        assert ("Not clearly above" in text) == bool(unclear)
        for label in unclear:
            assert label in text.partition("Not clearly above: ")[2]
        for label in clear:
            assert label not in text.partition("Not clearly above: ")[2]


def test_the_markdown_page(summary: Summary, tmp_path: Path) -> None:
    markdown.write_markdown(summary, tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text("utf-8")
    assert text.startswith("# small\n\nFinal regret, mean and 95 % bootstrap interval, runs: 10")
    assert markdown.regret_table(summary) in text
    for part in markdown.aggregate_table(summary):
        assert part in text
    for finding in findings(summary):
        assert f"- {finding}\n" in text
    assert "as shares of random play's mean regret" in text
    assert f"better than one of {summary.leader} in the same task" in text


@pytest.mark.parametrize("agents", [[{"name": "oracle"}], [WINDOWS], [CHANCE]])
def test_few_agents_are_enough(agents: list[object], tmp_path: Path) -> None:
    play(SIX_RUNS | {"agent": agents, "seeds": 1, "batch": 1}, tmp_path)
    results = load_results(tmp_path)
    summary = summarise(results)
    assert (summary.leader is None) == (results.agents == ["oracle"])
    write_tables(summary, tmp_path)
    text = markdown.markdown(summary)
    assert "nan" not in text
    assert len(read(tmp_path / "summary.csv")) == len(results.agents)


def test_filling_in_a_readme(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# A\n<!-- results -->\nold\n<!-- /results -->\nend λ\n", "utf-8")
    for _ in range(2):
        markdown.fill_in(path, "results", "\nnew | table\n")
        expected = "# A\n<!-- results -->\n\nnew | table\n\n<!-- /results -->\nend λ\n"
        assert path.read_text("utf-8") == expected


@pytest.mark.parametrize(
    "content",
    [
        "no marks",
        "<!-- results -->\nopen",
        "<!-- /results -->\n<!-- results -->\n",
        "<!-- results -->\n<!-- results -->\n<!-- /results -->",
        "<!-- results -->\n<!-- /results -->\n<!-- /results -->",
    ],
)
def test_a_readme_without_its_marks_is_left_alone(content: str, tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"README\.md must have the lines '<!-- results -->' and"):
        markdown.fill_in(path, "results", "new")
    assert path.read_text() == content
