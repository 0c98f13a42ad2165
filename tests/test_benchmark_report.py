"""Reports of experiments that are unusual but legal, and what their charts group."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_small import ABRUPT, CHANCE, SIX_RUNS, WINDOWS, play

from wgp_agents import cli
from wgp_agents.benchmark.declaration import declare
from wgp_agents.benchmark.folder import REPORT_LOCK, ResultsFolder
from wgp_agents.benchmark.plan import check
from wgp_agents.benchmark.report import markdown
from wgp_agents.benchmark.report import summarise as summarising
from wgp_agents.benchmark.report.charts import growth
from wgp_agents.benchmark.report.numbers import with_interval
from wgp_agents.benchmark.report.page import write_page
from wgp_agents.benchmark.report.summarise import comparisons, summarise
from wgp_agents.benchmark.report.summary import Summary
from wgp_agents.benchmark.report.tables import page_tables, write_tables
from wgp_agents.benchmark.results import Results, load_results, scored
from wgp_agents.benchmark.statistics import Interval

PLAIN = {"change_points": [[7, 14]]}
Table = dict[str, Any]


def reported(values: Table, folder: Path) -> tuple[Results, Summary, str]:
    """Play an experiment; return its results, their summary and the Markdown."""
    play(SIX_RUNS | values, folder)
    results = load_results(folder)
    made = summarise(results)
    write_tables(made, folder)
    write_page(made, folder / "report.html")
    return results, made, markdown.markdown(made)


@pytest.mark.slow
def test_variants_that_differ_in_a_fixed_parameter_are_apart(tmp_path: Path) -> None:
    agents = [
        {"name": "wgp-ucb", "label": f"{name} {{discount}}", "parameters": parameters}
        for name, ridge in (("A", 0.01), ("B", 1.0))
        for parameters in [{"discount": [0.8, 0.99], "regularization": ridge}]
    ]
    results, made, _ = reported({"agent": [*agents, CHANCE]}, tmp_path)
    (found,) = [one for one in made.sensitivity if one.parameter == "discount"]
    assert [line.label for line in found.lines] == [
        "WGP-UCB regularization=0.01",
        "WGP-UCB regularization=1.0",
    ]
    for line, name in zip(found.lines, "AB", strict=True):
        assert line.x == [0.8, 0.99]
        means = [results.final_regret("abrupt", f"{name} {x}").mean() for x in (0.8, 0.99)]
        np.testing.assert_allclose([mean.value for mean in line.means], means)


@pytest.mark.slow
def test_tasks_that_differ_in_a_fixed_kwarg_are_apart(tmp_path: Path) -> None:
    entries = [
        {"id": ABRUPT, "kwargs": PLAIN | {"noise_std": [0.1, 1.0]}},
        {"id": ABRUPT, "kwargs": PLAIN | {"noise_std": [0.3, 3.0], "lengthscale": 0.5}},
    ]
    _, made, text = reported({"environment": entries}, tmp_path)
    assert [growth.title for growth in made.growth] == [
        "abrupt: final regret against noise_std",
        "abrupt: final regret against noise_std lengthscale=0.5",
    ]
    assert [growth.x for growth in made.growth] == [[0.1, 1], [0.3, 3]]
    assert "lengthscale=0.5, slope of the logarithms:" in text


@pytest.mark.slow
def test_environments_of_one_name_have_lines_of_their_own(tmp_path: Path) -> None:
    entries = [
        {"id": ABRUPT, "name": "both", "kwargs": PLAIN | {"noise_std": [0.1, 1.0]}},
        {"id": "WGPBandit-Slow-v0", "name": "both", "kwargs": {"noise_std": [0.3, 3.0]}},
    ]
    _, made, text = reported({"environment": entries, "agent": [WINDOWS, CHANCE]}, tmp_path)
    assert [(growth.title, growth.x) for growth in made.growth] == [
        (f"both ({ABRUPT}): final regret against noise_std", [0.1, 1]),
        ("both (WGPBandit-Slow-v0): final regret against noise_std", [0.3, 3]),
    ]
    for found in made.growth:  # random play does not hear the noise
        (chance,) = [line.slope for line in found.lines if line.agent == "random"]
        assert chance is not None
        np.testing.assert_allclose(chance, 0.0, atol=1e-12)
    assert "-0.00" not in text


def test_a_task_without_regret_is_left_out_of_what_is_divided(tmp_path: Path) -> None:
    kwargs = PLAIN | {"norm_bound": [0.0, 1.0]}
    results, made, text = reported({"environment": [{"id": ABRUPT, "kwargs": kwargs}]}, tmp_path)
    assert scored(results) == ["abrupt norm_bound=1.0"]
    assert made.rows["abrupt norm_bound=0.0", "random"].share_of_random is None
    assert made.rows["abrupt norm_bound=1.0", "random"].share_of_random == 1.0
    assert {row.tasks for row in made.aggregate} == {1}
    assert "nan" not in text
    assert made.profiles is not None
    assert set(results.to_rliable()) == set(results.agents)


@pytest.mark.parametrize(
    "values",
    [
        {"agent": [{"name": "oracle"}]},
        {"agent": [{"name": "sw-gp-ucb"}]},
        {"agent": [{"name": "oracle"}, {"name": "sw-gp-ucb"}], "seeds": 1},
        {"environment": [{"id": ABRUPT}], "horizon": 1},
        {"environment": [{"id": ABRUPT, "kwargs": {"dim": 2, "points_per_dim": 3}}]},
        {
            "environment": [
                {"id": ABRUPT, "kwargs": {"dim": 2, "points_per_dim": 3, "continuous": True}}
            ],
            "agent": [CHANCE, {"name": "oracle"}],
        },
        {"agent": [CHANCE, {"name": "sw-gp-ucb", "label": "a/b 'c' $x_$ {{d}} λ <b>|_"}]},
    ],
    ids=["references", "one", "one run", "one step", "grid", "box", "label"],
)
def test_unusual_experiments_are_reported(values: Table, tmp_path: Path) -> None:
    results, made, text = reported(values, tmp_path)
    assert "nan" not in text
    assert "None" not in text
    assert (tmp_path / "report.html").stat().st_size > 10_000
    found = {line.agent for table in page_tables(made) for line in table.lines}
    assert found == set(range(len(results.agents)))


@pytest.mark.slow
def test_no_slope_is_said_where_there_is_no_regret(tmp_path: Path) -> None:
    kwargs = PLAIN | {"norm_bound": [0.0, 1.0], "noise_std": [0.1, 1.0]}
    _, made, text = reported({"environment": [{"id": ABRUPT, "kwargs": kwargs}]}, tmp_path)
    assert "nan" not in text
    still, moving = [one for one in made.growth if one.kwarg == "noise_std"]
    assert [growth(made, one).layout["yaxis"]["type"] for one in (still, moving)] == [
        "linear",
        "log",
    ]
    assert [line.slope is None for line in still.lines + moving.lines] == 3 * [True] + 3 * [False]


def test_many_agents_are_compared_with_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summarising, "MOST_PAIRED", 2)
    results, _, _ = reported({}, tmp_path)
    best = min(results.agents, key=lambda label: results.final_regret("abrupt", label).mean())
    pairs = comparisons(results, "abrupt")
    others = [label for label in results.agents if label != best]
    assert [(pair.first, pair.second) for pair in pairs] == [(best, label) for label in others]


def test_equal_values_of_a_grid_are_refused() -> None:
    kwargs = PLAIN | {"noise_std": [1, 1.0, 2.0]}
    with pytest.raises(ValueError, match=r"'noise_std' parameter of a grid must be .* different"):
        declare(SIX_RUNS | {"environment": [{"id": ABRUPT, "kwargs": kwargs}]})


@pytest.mark.parametrize("label", ["", "  ", "two\nlines", 3])
def test_labels_without_a_word_are_refused(label: Any) -> None:
    with pytest.raises(ValueError, match=r"'label' parameter of an .* a text of one line"):
        declare(SIX_RUNS | {"agent": [{"name": "random", "label": label}]})


def test_lists_for_learners_and_missing_files_are_found_before_anything_runs() -> None:
    tables = [{"id": "WGPBandit-Table-v0", "kwargs": {"table": "nothing.csv"}}]
    agents = [{"name": "wgp-ucb", "parameters": {"discount": [[0.9]]}}, CHANCE]
    here = [*tables, *SIX_RUNS["environment"]]
    with pytest.raises(ValueError, match="cannot be run") as caught:
        check(declare(SIX_RUNS | {"environment": here, "agent": agents}))
    lines = str(caught.value).splitlines()
    assert sum("nothing.csv" in line and "in table" in line for line in lines) == 2
    assert sum("in abrupt: The 'discount' parameter" in line for line in lines) == 1


@pytest.mark.parametrize("id", ["CartPole-v1", "MountainCar-v0"])
def test_what_is_no_bandit_is_found_before_anything_runs(id: str) -> None:
    here = [{"id": id}]
    values = {key: value for key, value in SIX_RUNS.items() if key != "horizon"}
    with pytest.raises(ValueError, match=r"(?s)cannot be run.*bare environment has a `problem`"):
        check(declare(values | {"environment": here, "agent": [CHANCE]}))


def test_an_agent_that_always_fails_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from wgp_agents.benchmark import play as playing
    from wgp_agents.benchmark.rollout import rollout

    def _failing(agent: Any, *rest: Any) -> Any:
        if type(agent).__name__ == "Random":
            raise RuntimeError("no chance")
        return rollout(agent, *rest)

    monkeypatch.setattr(playing, "rollout", _failing)
    assert len(play(SIX_RUNS, tmp_path)) == 3
    assert cli.main(["report", str(tmp_path), "--partial"]) == 0
    results = load_results(tmp_path, partial=True)
    assert results.agents == ["SW-GP-UCB window=5", "SW-GP-UCB window=10"]
    assert results.runs("abrupt").tolist() == list(range(6))
    assert {unit.agent.label for unit in results.missing} == {"random"}
    said = "Units are missing, 3 of them. Left out: the agent random."
    assert said in capsys.readouterr().out
    assert said in (tmp_path / "report.md").read_text()
    assert said in (tmp_path / "report.html").read_text()


def test_one_report_at_a_time_also_while_a_run_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play(SIX_RUNS, tmp_path)
    with ResultsFolder.locked(tmp_path, REPORT_LOCK):
        assert cli.main(["report", str(tmp_path)]) == 2
    assert "Another process is writing to" in capsys.readouterr().err
    assert not (tmp_path / "summary.csv").exists()
    with ResultsFolder.locked(tmp_path):  # a run goes on
        assert cli.main(["report", str(tmp_path), "--format", "md"]) == 0


def test_a_folder_without_a_unit_is_free(tmp_path: Path) -> None:
    with ResultsFolder.open_to_write(tmp_path, declare(SIX_RUNS)):
        pass
    assert play(SIX_RUNS | {"seeds": 2, "horizon": 15}, tmp_path) == []
    assert load_results(tmp_path).horizon("abrupt") == 15


def test_what_blocks_an_extension_is_named_first(tmp_path: Path) -> None:
    play(SIX_RUNS, tmp_path)
    longer = SIX_RUNS | {"seeds": 8, "horizon": 30}
    with pytest.raises(ValueError, match=r"experiment: tasks.0.kwargs.horizon is 20 there, and 30"):
        play(longer, tmp_path, extend=True)


def test_every_agent_plays_a_batch_before_a_second_of_any(tmp_path: Path) -> None:
    play(SIX_RUNS, tmp_path)
    lines = (tmp_path / "timings.csv").read_text().splitlines()[1:]
    firsts = [int(line.split(",")[2]) for line in lines]
    assert firsts == sorted(firsts)


def test_another_release_is_not_extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wgp_agents.benchmark import files, manifest

    play(SIX_RUNS, tmp_path)
    versions = files.versions() | {"wgp-gym": "9.9"}
    monkeypatch.setattr(manifest, "versions", lambda: versions)
    more = SIX_RUNS | {"agent": [WINDOWS, CHANCE, {"name": "oracle"}]}
    with pytest.raises(
        ValueError, match=r"another experiment.*Choose another folder \(--extend only"
    ):
        play(more, tmp_path, extend=True)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((254.2, 239.6, 268.1), "254 (240 to 268)"),
        ((81.6, 66.1, 102.4), "82 (66 to 102)"),
        ((0.0034, 0.0031, 0.0042), "0.00340 (0.00310 to 0.00420)"),
        ((-0.0004, -0.02, 0.5), "0.000 (-0.020 to 0.500)"),
        ((0.0, 0.0, 0.0), "0.00 (0.00 to 0.00)"),
        ((12.34, float("nan"), float("nan")), "12.3"),
    ],
)
def test_numbers_for_people(numbers: tuple[float, float, float], text: str) -> None:
    assert with_interval(Interval(*numbers)) == text


HOSTILE = ("<!-- /results -->", "a|b\\", "```", "~~~", "\\|", "<script>", "**a", "# a")


@pytest.mark.slow
def test_no_name_breaks_out_of_its_place_in_markdown(tmp_path: Path) -> None:
    tasks = [
        {"id": ABRUPT, "name": name, "kwargs": {"noise_std": [0.1, 0.5]}} for name in HOSTILE[:4]
    ]
    agents = [{"name": "random", "label": label} for label in HOSTILE]
    values = {"seeds": 2, "environment": tasks, "agent": agents}
    _, _, text = reported(values, tmp_path / "out")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    cells = [len(re.sub(r"\\.", "", row).split("|")) for row in rows]
    assert cells[: len(HOSTILE) + 2] == [2 + 1 + 2 * len(tasks)] * (len(HOSTILE) + 2)
    assert not re.search(r"(?<!\\)(\\\\)*[<`~]", text)
    readme = tmp_path / "README.md"
    readme.write_bytes(b"A\r\n<!-- results -->\r\n<!-- /results -->\r\nB\r\n")
    for _ in range(2):
        markdown.fill_in(readme, "results", text)
        found = readme.read_bytes().decode()
        assert found.startswith("A\r\n<!-- results -->\r\n\r\n")
        assert found.endswith("\r\n\r\n<!-- /results -->\r\nB\r\n")
        assert found.count("\n") == found.count("\r\n")
    readme.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"README\.md is no text in UTF-8"):
        markdown.fill_in(readme, "results", text)
