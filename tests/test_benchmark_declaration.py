"""From a file or flags to an experiment: what is laid out, and what is refused with which words."""

from __future__ import annotations

import datetime
import json
import math
import re
import zlib
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_small import ABRUPT, CHANCE, SIX_RUNS, Table, write_toml

from wgp_agents.benchmark import cost
from wgp_agents.benchmark.cost import estimate
from wgp_agents.benchmark.declaration import (
    declare,
    from_flags,
    read_declaration,
    read_value,
    shipped,
)
from wgp_agents.benchmark.experiment import AgentSpec, Experiment, TaskSpec, run_seeds
from wgp_agents.benchmark.plan import check, plan, readable
from wgp_agents.benchmark.rollout import make_vector


def test_lists_expand_to_all_combinations() -> None:
    kwargs = {"noise_std": [0.1, 0.5], "horizon": [20, 30], "norm_bound": 5}
    made = declare(SIX_RUNS | {"horizon": 40, "environment": [{"id": ABRUPT, "kwargs": kwargs}]})
    assert [task.kwargs for task in made.tasks] == [
        {"noise_std": noise, "horizon": steps, "norm_bound": 5}
        for noise in (0.1, 0.5)
        for steps in (20, 30)
    ]
    assert made.tasks[1].name == "abrupt noise_std=0.1 horizon=30"
    assert made.tasks[1].varied == {"noise_std": 0.1, "horizon": 30}
    assert {task.seed_name for task in made.tasks} == {"abrupt"}
    labels = ["SW-GP-UCB window=5", "SW-GP-UCB window=10", "random"]
    assert [agent.label for agent in made.agents] == labels
    assert [agent.parameters for agent in made.agents] == [{"window": 5}, {"window": 10}, {}]
    assert [agent.varied for agent in made.agents] == [{"window": 5}, {"window": 10}, {}]


def test_default_leaves_a_parameter_alone_and_a_list_in_a_list_is_one_value() -> None:
    kwargs = {"change_points": [[7, 14], "default", []], "noise_std": "default"}
    agent = {"name": "wgp-ucb", "label": "W {discount}", "parameters": {"discount": ["default", 1]}}
    entry = {"id": ABRUPT, "name": "a", "kwargs": kwargs}
    made = declare({"environment": [entry], "agent": [agent]})
    assert [task.kwargs for task in made.tasks] == [
        {"change_points": [7, 14]},
        {},
        {"change_points": []},
    ]
    assert [agent.parameters for agent in made.agents] == [{}, {"discount": 1}]
    assert [agent.label for agent in made.agents] == ["W default", "W 1"]
    assert (made.seeds, made.root_seed, made.batch, made.title) == (100, 2022, 100, "experiment")
    check(made)


def test_flags_say_what_a_file_says(tmp_path: Path) -> None:
    flags = from_flags(
        [f"{ABRUPT}:change_points=[[7,14],[5]],noise_std=[1e-1,default]"],
        ["sw-gp-ucb:window=[5,10]", "igp-ucb:width_form=chowdhury", "random"],
    )
    kwargs = {"change_points": [[7, 14], [5]], "noise_std": [0.1, "default"]}
    file = {
        "title": "comparison",
        "environment": [{"id": ABRUPT, "kwargs": kwargs}],
        "agent": [
            {"name": "sw-gp-ucb", "parameters": {"window": [5, 10]}},
            {"name": "igp-ucb", "parameters": {"width_form": "chowdhury"}},
            {"name": "random", "parameters": {}},
        ],
    }
    assert flags == file
    path = write_toml(tmp_path / "x.toml", file)
    assert declare(read_declaration(str(path))) == declare(flags)
    assert len(declare(flags).tasks) == 4


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1e-3", 1e-3),
        ("true", True),
        ("known", "known"),
        ('"known"', "known"),
        ("data/prices.csv", "data/prices.csv"),
        ("[0.9,0.99]", [0.9, 0.99]),
        ("[[100,200]]", [[100, 200]]),
        ("[true, default]", [True, "default"]),
        ("[1e-3,default,2.5E+1]", [1e-3, "default", 25.0]),
        ('["known",default]', ["known", "default"]),
        ("[a/b.csv,c-d]", ["a/b.csv", "c-d"]),
        ("", ""),
        ("1\nb = 2", "1\nb = 2"),
        ("[" * 600, "[" * 600),
        ("9" * 5_000, "9" * 5_000),
    ],
)
def test_the_values_of_flags(text: str, value: Any) -> None:
    found = read_value(text)
    assert found == value
    assert type(found) is type(value)


WRONG: list[tuple[Table, str]] = [
    ({"sedes": 3}, r"The experiment has no parameter 'sedes' \(did you mean 'seeds'\?\)"),
    ({"seeds": 0}, r"'seeds' parameter of the experiment must be an int in \[1, 1000000\]. Got 0"),
    ({"seeds": 2.5}, r"'seeds' .* must be an int in \[1, 1000000\]. Got 2.5"),
    ({"seeds": True}, "'seeds' .* Got True"),
    ({"batch": 0}, r"'batch' .* must be an int in \[1, 1000000\]"),
    ({"root_seed": -1}, "'root_seed' .* must be an int of at least 0"),
    ({"horizon": "x"}, "'horizon' .* must be an int of at least 1. Got 'x'"),
    ({"title": 3}, "'title' .* must be a text of one line, without control characters. Got 3"),
    ({"agent": []}, r"'agent' .* must be one or more tables \[\[agent\]\]"),
    ({"environment": {"id": ABRUPT}}, r"must be one or more tables \[\[environment\]\]"),
    ({"environment": [{"id": "WGPBandit-Abrupt"}]}, "did you mean 'WGPBandit-Abrupt-v0'"),
    ({"environment": [{"id": ABRUPT, "kwarg": {}}]}, "no parameter 'kwarg' .did you mean 'kwargs'"),
    ({"environment": [{"id": ABRUPT, "kwargs": 3}]}, "must be a table, as { key = value }. Got 3"),
    (
        {"environment": [{"id": ABRUPT, "kwargs": {"noise_sd": 1}}]},
        "WGPBandit-Abrupt-v0 has no parameter 'noise_sd' .did you mean 'noise_std'",
    ),
    (
        {"environment": [{"id": ABRUPT, "kwargs": {"noise_std": []}}]},
        "'noise_std' parameter of a grid must be a value, or a list of one or more",
    ),
    (
        {"environment": [{"id": ABRUPT, "name": " "}]},
        "'name' .* must be a text of one line, without control characters. Got ' '",
    ),
    (
        {"environment": [{"id": ABRUPT}, {"id": ABRUPT}]},
        r"'name' .* different for every \[\[environment\]\].* Got 'abrupt'",
    ),
    ({"agent": [{"name": "wgpucb"}]}, "did you mean 'wgp-ucb'"),
    (
        {"agent": [CHANCE, {"name": "wgp-ucb", "nam": 1}]},
        r"^\[\[agent\]\] number 2: An \[\[agent\]\]",
    ),
    ({"agent": [{"nam": "random"}]}, "no parameter 'nam' .did you mean 'name'"),
    (
        {"agent": [{"name": "wgp-ucb", "parameters": {"discont": 0.9}}]},
        "The agent 'wgp-ucb' has no parameter 'discont' .did you mean 'discount'",
    ),
    ({"agent": [CHANCE, CHANCE]}, r"'label' .* different for every \[\[agent\]\].* Got 'random'"),
    ({"agent": [{"name": "random", "label": 3}]}, "'label' .* must be a text"),
    *(
        (
            {"agent": [{"name": "wgp-ucb", "label": label, "parameters": {"discount": 0.9}}]},
            "stands",
        )
        for label in (
            "{window}",
            "{",
            "{}",
            "{discount.x}",
            "{discount[0]}",
            "{discount:>99999999999}",
            "{discount:.999f}",
            "{discount:{discount}}",
            "{discount:%H}",
        )
    ),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_wrong_is_said(change: Table, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declare(SIX_RUNS | change)


BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
NO_LINES = [f"a{sign}b" for sign in f"{BREAKS}\0\t\x1b\x9f\ud800\ufeff"] + [
    "\ufeffa",
    "a" * 201,
    "",
]


@pytest.mark.parametrize("text", NO_LINES, ids=ascii)
def test_whatever_is_shown_in_tables_is_one_line(text: str) -> None:
    tasks = {"id": ABRUPT, "kwargs": {"noise_std": [0.1, text]}}
    agents = {"name": "wgp-ucb", "parameters": {"discount": ["default", text]}}
    wrong: list[Table] = [
        {"title": text},
        {"environment": [{"id": ABRUPT, "name": text}]},
        {"agent": [CHANCE | {"label": text}]},
    ]
    if text:  # a value that would stand in a label
        wrong += [{"environment": [tasks]}, {"agent": [agents]}]
        wrong += [{"agent": [agents | {"label": "W {discount}"}]}]
    for change in wrong:
        with pytest.raises(ValueError, match=r"must be a text (of|that)"):
            declare(SIX_RUNS | change)


def test_a_label_takes_short_formats_of_its_parameters() -> None:
    label = "{{W}} {discount:>6.2f} {width!r}"
    parameters = {"discount": [0.9, 0.97], "width": "tight"}
    agent = {"name": "wgp-ucb", "label": label, "parameters": parameters}
    labels = [agent.label for agent in declare(SIX_RUNS | {"agent": [agent]}).agents]
    assert labels == ["{W}   0.90 'tight'", "{W}   0.97 'tight'"]


def test_a_description_may_have_lines_but_no_control_characters() -> None:
    assert declare(SIX_RUNS | {"description": "a\n\tb"}).description == "a\n\tb"
    for text in ("a\x1b[2J", "a\rb", "a\0", "a" * 10_001, 3):
        with pytest.raises(ValueError, match="'description'"):
            declare(SIX_RUNS | {"description": text})


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (nested(20), "at most 20 tables and lists inside each other"),
        (nested(100_000), "at most 20 tables and lists inside each other"),
        (10**5_000, r"between -2\^128 and 2\^128"),
        ([math.nan], "must be a number, a text, true or false"),
        ([datetime.date(2022, 1, 1)], "must be a number, a text, true or false"),
        (None, "must be a number, a text, true or false"),
        ("x" * 10_001, "a text of at most 10000 characters"),
        ("\udc80", "a text that UTF-8 can hold"),
        ({"k" * 101: 1}, "A key of the experiment must be a text of at most 100"),
    ],
    ids=["deep", "very deep", "digits", "NaN", "date", "None", "text", "surrogate", "key"],
)
def test_values_are_plain_and_of_a_bearable_size(value: Any, message: str) -> None:
    kwargs = {"noise_std": value}
    with pytest.raises(ValueError, match=message):
        declare(SIX_RUNS | {"environment": [{"id": ABRUPT, "kwargs": kwargs}]})


def test_the_deepest_value_survives_json() -> None:
    def _declared(depth: int) -> Experiment:
        entry = {"id": ABRUPT, "kwargs": {"noise_std": nested(depth)}}
        return declare(SIX_RUNS | {"environment": [entry]})

    made = _declared(16)
    assert Experiment.from_dict(made.as_dict()) == made
    with pytest.raises(ValueError, match="at most 20 tables and lists inside each other"):
        _declared(17)


@pytest.mark.slow
def test_an_experiment_that_is_too_large_is_refused_before_it_is_laid_out() -> None:
    grid = {
        key: [i / 10 for i in range(1, 200)] for key in ("noise_std", "norm_bound", "lengthscale")
    }
    with pytest.raises(ValueError, match=r"\[\[environment\]\] have more than 10000 combinations"):
        declare(SIX_RUNS | {"environment": [{"id": ABRUPT, "kwargs": grid}]})
    grown = [i / 10_000 for i in range(1, 9_000)]
    variants = [
        {"name": "sw-gp-ucb", "label": f"{{delta}} {k}", "parameters": {"delta": grown}}
        for k in "ab"
    ]
    with pytest.raises(ValueError, match="have more than 10000 combinations"):
        declare(SIX_RUNS | {"agent": variants})
    with pytest.raises(
        ValueError, match=r"1500000 units of work\. An experiment has at most 100000"
    ):
        declare(SIX_RUNS | {"seeds": 1_000_000})
    made = declare(SIX_RUNS | {"seeds": 1_000_000, "batch": 100})
    assert len(made.units()) == 30_000


def test_a_long_list_of_equal_values_is_found_at_once() -> None:
    kwargs = {"noise_std": [*range(100_000), 7.0]}
    with pytest.raises(ValueError, match="all different"):
        declare(SIX_RUNS | {"environment": [{"id": ABRUPT, "kwargs": kwargs}]})


def test_ranges_and_misfits_are_all_said_at_once() -> None:
    kwargs = {"noise_std": [0.1, -1.0]}
    agents = [
        {"name": "wgp-ucb", "parameters": {"discount": [0.9, 1.5]}},
        {"name": "qff-wgp-ucb"},
    ]
    made = declare(
        {
            "environment": [{"id": ABRUPT, "kwargs": kwargs}, {"id": "WGPBandit-Stock-v0"}],
            "agent": agents,
        }
    )
    with pytest.raises(ValueError, match=r"^The experiment cannot be run:\n") as raised:
        check(made)
    text = str(raised.value)
    for label in ("WGP-UCB discount=0.9", "WGP-UCB discount=1.5", "QFF-WGP-UCB"):
        assert f"{label} in abrupt noise_std=-1.0: The 'noise_std' parameter" in text
    assert "WGP-UCB discount=1.5 in stock: The 'discount' parameter" in text
    assert "Got 1.5 instead" in text
    assert "QFF-WGP-UCB in stock" in text
    assert "WGP-UCB discount=0.9 in stock" not in text
    assert len(text.splitlines()) == 1 + 6


def test_a_value_of_no_kind_is_told_with_its_place() -> None:
    agents = [{"name": "random"}, {"name": "wgp-ucb", "parameters": {"discount": date(2020, 1, 1)}}]
    with pytest.raises(ValueError, match=r"^\[\[agent\]\] number 2: The 'discount' parameter"):
        declare(SIX_RUNS | {"agent": agents})


def test_a_value_that_fits_one_learner_alone_is_refused() -> None:
    one = {"name": "wgp-ucb", "parameters": {"discount": [[0.9]]}}
    made = declare(SIX_RUNS | {"agent": [one]})
    with pytest.raises(ValueError, match=r"The 'discount' parameter .* Got \[0\.9\] instead"):
        check(made)
    check(declare(SIX_RUNS | {"agent": [one], "seeds": 1, "batch": 1}))


def test_an_episode_that_cannot_begin_is_said_and_long_lists_are_cut() -> None:
    kwargs = {"norm_bound": 1, "variation_budget": [1e6 + i for i in range(12)]}
    made = declare(SIX_RUNS | {"environment": [{"id": ABRUPT, "kwargs": kwargs}]})
    with pytest.raises(ValueError, match="first episode: The 'variation_budget'") as raised:
        check(made)
    lines = str(raised.value).splitlines()
    assert len(lines) == 12
    assert lines[-1] == "... and 26 more"


LIGHT = ["smoke", "figure1"]
HEAVY = [name for name in shipped() if name not in LIGHT]


@pytest.mark.parametrize(
    "name", [*LIGHT, *(pytest.param(name, marks=pytest.mark.slow) for name in HEAVY)]
)
def test_what_is_shipped_can_be_run(name: str) -> None:
    check(declare(read_declaration(name)))


def test_no_file_no_toml(tmp_path: Path) -> None:
    assert {"figure1", "smoke"} <= set(shipped())
    with pytest.raises(ValueError, match=r"must be one of .*did you mean 'figure1'"):
        read_declaration("figur1")
    for content in (
        b"seeds = ",
        b"\xff",
        b"seeds = " + 600 * b"[" + 600 * b"]",
        b"a = " + b"9" * 9_999,
    ):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.toml is not a TOML file"):
            read_declaration(str(tmp_path / "bad.toml"))
    (tmp_path / "large.toml").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(ValueError, match=r"large\.toml has more than 1048576 bytes"):
        read_declaration(str(tmp_path / "large.toml"))
    for name in ("x" * 5_000, "x/" * 5_000, f"{'x' * 5_000}.toml", "a\0.toml"):
        with pytest.raises(ValueError, match="There is no file") as raised:
            read_declaration(name)
        assert len(str(raised.value)) < 400
    for text in (f"{ABRUPT}:noise_std", f"{ABRUPT}:=3", f"{ABRUPT}:a=1,b", f"{ABRUPT}:a=1,a=2"):
        with pytest.raises(ValueError, match=r"'env' .* must be like NAME:key=value"):
            from_flags([text], [])


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    content = write_toml(tmp_path / "plain.toml", SIX_RUNS).read_bytes()
    (tmp_path / "marked.toml").write_bytes(b"\xef\xbb\xbf" + content)
    plain, marked = (read_declaration(str(tmp_path / f"{n}.toml")) for n in ("plain", "marked"))
    assert marked == plain


def test_an_experiment_survives_json() -> None:
    made = declare(SIX_RUNS)
    written = made.as_dict()
    assert json.loads(json.dumps(written)) == written
    again = Experiment.from_dict(written)
    assert again == made
    assert [unit.identity for unit in again.units()] == [unit.identity for unit in made.units()]
    assert [unit.runs for unit in made.cell(made.tasks[0], made.agents[0])] == [
        range(0, 2),
        range(2, 4),
        range(4, 6),
    ]


def test_specs_made_without_a_file_are_checked_too() -> None:
    task, agent = TaskSpec("a", ABRUPT), AgentSpec("R", "random")
    for make, message in (
        (lambda: TaskSpec("a", "WGPBandit-Abrupt"), "'id' .*did you mean 'WGPBandit-Abrupt-v0'"),
        (lambda: TaskSpec("a\n", ABRUPT), "'name' .* must be a text of one line"),
        (lambda: replace(agent, name="randon"), "'name' .*did you mean 'random'"),
        (lambda: Experiment(tasks=(), agents=(agent,)), r"one or more tables \[\[environment\]\]"),
        (lambda: Experiment(tasks=(task,), agents=(agent, agent)), "'label' .* different for"),
        (lambda: Experiment(tasks=(task,), agents=(agent,), cuts=(101,)), r"'cuts' .* \[1, 100\]"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


def test_seeds_follow_from_root_task_and_run_alone() -> None:
    key = (zlib.crc32(b"abrupt"), 3)
    expected = np.random.SeedSequence(7, spawn_key=key).generate_state(2).tolist()
    assert list(run_seeds(7, "abrupt", 3)) == expected
    names = [(root, name, run) for root in (7, 8) for name in ("a", "b") for run in range(50)]
    drawn = [seed for key in names for seed in run_seeds(*key)]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.slow
def test_a_plan_measures_one_of_each_kind_and_draws_few_episodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learners: list[int] = []

    def _counted(name: str, batch: int, **kwargs: Any) -> Any:
        learners.append(batch)
        return make_vector(name, batch, **kwargs)

    monkeypatch.setattr(cost, "make_vector", _counted)
    monkeypatch.setattr(cost, "MEASURING", 0.0)
    kwargs = {"horizon": [40, 400, 4000]}
    here = [{"id": ABRUPT, "kwargs": kwargs}, {"id": "WGPBandit-Slow-v0"}]
    agents = [{"name": "wgp-ucb", "parameters": {"discount": [0.9, 0.97]}}, CHANCE]
    made = declare({"seeds": 200, "batch": 100, "environment": here, "agent": agents})
    rows = estimate(made)
    where = {(row.task, row.agent) for row in rows if row.measured}
    assert len(where) == 4  # two entries of environments and two of agents
    assert {agent for _, agent in where} == {"WGP-UCB discount=0.9", "random"}
    assert len({task for task, _ in where}) == 2
    assert sum(learners) <= 4 + 2 * 21  # one episode a task, and 1 and 20 learners an entry
    seconds = {(row.task, row.agent): row.seconds for row in rows}
    agent = "WGP-UCB discount=0.97"
    assert seconds["abrupt horizon=4000", agent] > 5 * seconds["abrupt horizon=400", agent] / 2
    assert re.search(r"\n4 of 12 pairs were measured; ", plan(made, 2))
    twice = [*here, {"id": ABRUPT, "name": "again", "kwargs": {"horizon": 50, "norm_bound": 2.0}}]
    again = estimate(declare({"seeds": 200, "environment": twice, "agent": agents}))
    assert sum(row.measured for row in again) == 4  # its steps cost what those of the first do


def test_a_plan_measures_every_size_that_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "MEASURING", 0.0)
    kwargs = {"points_per_dim": [5, 400], "horizon": [30, 60], "noise_std": [0.1, 0.2]}
    here, agents = {"id": ABRUPT, "kwargs": kwargs}, [{"name": "wgp-ucb"}, CHANCE]
    made = declare({"seeds": 2, "environment": [here], "agent": agents})
    rows = [row for row in estimate(made) if row.measured]
    where = {(row.task.split()[1], row.agent) for row in rows}
    sizes = ("points_per_dim=5", "points_per_dim=400")
    assert where == {(size, agent.label) for size in sizes for agent in made.agents}
    assert len(rows) == len(where)  # once each, whatever the horizon and the noise


def test_the_plan_names_every_cell_and_its_time() -> None:
    kwargs = {"noise_std": [0.1, 0.5]}
    made = declare(SIX_RUNS | {"seeds": 5, "environment": [{"id": ABRUPT, "kwargs": kwargs}]})
    rows = estimate(made)
    cells = [(task.name, agent.label) for task in made.tasks for agent in made.agents]
    assert [(row.task, row.agent) for row in rows] == cells
    assert all(row.units == 3 and 0 < row.seconds < math.inf for row in rows)
    text = plan(made, 2)
    assert "small: 2 tasks x 3 agents x 5 runs, in 18 units of up to 2 runs" in text
    for task, agent in cells:
        _, _, after = text.partition(f"\n{task}: {ABRUPT}")
        assert re.search(
            rf"^  {re.escape(agent)} +[\d.]+ (s|min|h)$", after.partition("\n\n")[0], re.M
        )
    assert re.search(r"About [\d.]+ \w+ of computing, on 2 processes about [\d.]+ \w+\.$", text)
    assert [readable(s) for s in (2, 90, 5400)] == ["2.0 s", "1.5 min", "1.5 h"]


def test_a_long_key_is_refused_in_few_words() -> None:
    with pytest.raises(ValueError, match="A key of the experiment must be a text of at most") as e:
        declare({"x" * 5_000: [{"id": "WGPBandit-Abrupt-v0"}]})
    assert len(str(e.value)) < 300
