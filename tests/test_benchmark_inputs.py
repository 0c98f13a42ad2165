"""Files that an experiment reads: no results of two versions of one stand beside each other."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmark_small import CHANCE, SIX_RUNS, Table, play, stored

from wgp_agents.benchmark import play as playing
from wgp_agents.benchmark.accepted import environment_parameters
from wgp_agents.benchmark.declaration import declare
from wgp_agents.benchmark.experiment import AgentSpec, TaskSpec
from wgp_agents.benchmark.files import JSON, Damaged
from wgp_agents.benchmark.folder import ResultsFolder
from wgp_agents.benchmark.inputs import files_of, names_of
from wgp_agents.benchmark.modules import module_files
from wgp_agents.benchmark.play import attempt
from wgp_agents.benchmark.results import load_results
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.registry import AGENTS, agent_parameters
from wgp_gym.registration import ENVIRONMENTS

OLD = "t,A,B\n" + "".join(f"{i},{i % 3},{i % 5}\n" for i in range(30))
NEW = OLD.replace("4,1,4", "4,1,5")


def on_table(name: str) -> Table:
    entry = {"id": "WGPBandit-Table-v0", "kwargs": {"table": name}}
    return SIX_RUNS | {"environment": [entry], "agent": [CHANCE]}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "p.csv"
    path.write_text(OLD)
    return path


@pytest.mark.parametrize("name", ["~/p.csv", "p.csv", "{}/p.csv"])
def test_a_file_is_known_by_every_name(
    name: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    values, folder = on_table(name.format(tmp_path)), tmp_path / "out"
    assert play(values, folder) == []
    sha = hashlib.sha256(OLD.encode()).hexdigest()
    files = json.loads((folder / "manifest.json").read_text())["files"]
    assert files == {name.format(tmp_path): sha}
    next(folder.glob("units/*/*/*.npz")).unlink()
    table.write_text(NEW)
    before = stored(folder)
    for more in ({}, {"seeds": 8}):
        with pytest.raises(ValueError, match=r"p\.csv is .*Choose another folder \(--extend only"):
            play(values | more, folder, extend=bool(more))
    assert stored(folder) == before
    table.unlink()
    with pytest.raises(FileNotFoundError, match=r"There is no file .*p\.csv"):
        play(values, folder)
    assert stored(folder) == before


def test_another_file_of_the_same_relative_path(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    play(on_table("p.csv"), tmp_path / "out")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "p.csv").write_text(NEW)
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"p\.csv is "):
        play(on_table("p.csv"), tmp_path / "out")


def test_a_file_may_be_called_as_a_word_of_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("source").write_text(OLD)
    play(on_table("source"), tmp_path / "out")
    Path("source").write_text(NEW)
    with pytest.raises(ValueError, match="another experiment: the SHA-256 of source is "):
        play(on_table("source"), tmp_path / "out")


def test_data_sets_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dow29").write_text("mine")
    Path("value").write_text("mine")
    assert files_of(TaskSpec("a", "WGPBandit-Stock-v0", {"prices": "dow29"})) == {}
    assert files_of(TaskSpec("a", "WGPBandit-Table-v0", {"reward": "value"})) == {}


@pytest.mark.parametrize("change", [NEW, None], ids=["changed", "removed"])
def test_a_file_that_changes_under_a_run_fails_its_units(
    change: str | None, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def _rollout(*rest: Any) -> Any:
        nonlocal calls
        calls += 1
        played = rollout(*rest)
        if calls == 2:
            table.unlink()
            if change is not None:
                table.write_text(change)
        return played

    values, folder = on_table(str(table)), tmp_path / "out"
    assert play(values, tmp_path / "whole") == []
    monkeypatch.setattr(playing, "rollout", _rollout)
    failed = play(values, folder)
    assert [unit.runs.start for unit in failed] == [2, 4]
    assert calls == 2  # what comes after is not even begun
    assert stored(folder).items() <= stored(tmp_path / "whole").items()
    log = (folder / "log.txt").read_text()
    what = f"The file '{table}' is another one" if change else f"There is no file '{table}'"
    assert log.count(what) == 2
    with pytest.raises((ValueError, FileNotFoundError), match=r"p\.csv"):
        play(values, folder)
    table.write_text(OLD)
    assert play(values, folder) == []
    assert stored(folder) == stored(tmp_path / "whole")


def test_a_worker_with_another_file_fails(table: Path) -> None:
    (unit, *_) = declare(on_table(str(table))).units()
    outcome = attempt(unit, {str(table): "0" * 64})
    assert outcome.arrays is None
    assert f"ValueError: The file '{table}' is another one on" in outcome.error
    assert attempt(unit, files_of(unit.task, unit.agent)).error == ""


@pytest.mark.slow
def test_units_of_another_file_are_refused_and_played_again(table: Path, tmp_path: Path) -> None:
    values = on_table(str(table))
    table.write_text(NEW)
    play(values, tmp_path / "new")
    table.write_text(OLD)
    play(values, tmp_path / "old")
    mixed = Path(shutil.copytree(tmp_path / "old", tmp_path / "mixed"))
    victim = next(mixed.glob("units/*/*/0000002.npz"))
    shutil.copy(tmp_path / "new" / victim.relative_to(mixed), victim)
    for partial in (False, True):
        with pytest.raises(Damaged, match=r"another unit: its\.files\..*p\.csv is "):
            load_results(mixed, partial=partial).final_regret("table", "random")
    assert play(values, mixed) == []
    assert "A run plays it again." in (mixed / "log.txt").read_text()
    assert stored(mixed) == stored(tmp_path / "old")


def test_a_manifest_of_another_file_is_refused(table: Path, tmp_path: Path) -> None:
    play(on_table(str(table)), tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"][str(table)] = "0" * 64
    path.write_text(json.dumps(manifest))
    with pytest.raises(Damaged, match=r"another unit: its\.files\."):
        load_results(path.parent).final_regret("table", "random")
    manifest["files"] = {}
    path.write_text(json.dumps(manifest))
    with pytest.raises(Damaged, match="its 'files' must be those of"):
        ResultsFolder.open(path.parent)


MODULES = {
    "mine.py": "import numpy, gone\nfrom parts import rate, deep\nfrom helper import EPS\n",
    "helper.py": "EPS = 1.0\n\ndef late():\n    import later\n",
    "later.py": "import mine\nLATE = 1\n",
    "parts/__init__.py": "from .near import *\nrate = 0.1\n",
    "parts/near.py": "from .inner import deepest\n",
    "parts/deep.py": "DEEP = 1\n",
    "parts/inner/__init__.py": "",
    "parts/inner/deepest.py": "D = 1\n",
    "parts/unused.py": "U = 1\n",
    "alone.py": "import numpy as np\nimport wgp_agents.base\nfrom wgp_gym import kernels\n",
    "wrong.py": "import helper\nif\n",
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder on Python's path with modules that import each other."""
    for name, text in MODULES.items():
        path = tmp_path / "on_path" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "on_path")
    return tmp_path / "on_path"


def module_digest(name: str) -> str:
    """Return the digest of an environment's module."""
    return files_of(TaskSpec("a", f"{name}:Coins-v0", {}))[name]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_is_known_with_all_that_it_imports(name: str, modules: Path) -> None:
    before = module_digest("mine")
    file = modules / name
    file.write_text(MODULES[name] + "# changed\n")
    is_part = name not in ("parts/unused.py", "alone.py", "wrong.py")
    assert (module_digest("mine") != before) == is_part
    file.write_text(MODULES[name])
    assert module_digest("mine") == before
    assert not {"mine", "helper", "parts"} & sys.modules.keys()  # nothing was imported


def test_a_module_that_imports_what_is_installed_alone_has_the_digest_of_its_file(
    modules: Path,
) -> None:
    for name in ("alone", "wrong"):
        sha = hashlib.sha256(MODULES[f"{name}.py"].encode()).hexdigest()
        assert module_digest(name) == sha
    assert module_digest("parts.deep") != hashlib.sha256(b"DEEP = 1\n").hexdigest()
    for missing in ("nothing_like_it", "helper.part", "parts.nothing"):
        with pytest.raises(FileNotFoundError, match=f"There is no file '{missing}'"):
            module_digest(missing)


def test_runs_of_another_helper_are_not_mixed(tmp_path: Path, modules: Path) -> None:
    shutil.copy(Path(__file__).with_name("own_bandit.py"), modules / "helped_coins.py")
    with (modules / "helped_coins.py").open("a") as file:
        file.write("\nimport helper\n")
    entry = {"id": "helped_coins:Coins-v0", "kwargs": {"horizon": 20}}
    values = SIX_RUNS | {"environment": [entry], "agent": [CHANCE]}
    assert play(values, tmp_path / "out") == []
    (modules / "helper.py").write_text("EPS = 2.0\n")
    with pytest.raises(
        ValueError, match=r"helped_coins is .*Choose another folder \(--extend only"
    ):
        play(values | {"seeds": 8}, tmp_path / "out", extend=True)


@pytest.mark.slow
def test_all_parameters_that_name_files_are_known() -> None:
    named = set()
    for one in ENVIRONMENTS:
        for name in environment_parameters(one.id):
            kwargs: dict[str, JSON] = {name: "no/such/file.csv"}
            try:
                make_vector(one.id, 1, **kwargs)
                read = False
            except FileNotFoundError:
                read = True
            except (ValueError, TypeError):
                read = False
            assert names_of(TaskSpec("a", one.id, kwargs)) == ["no/such/file.csv"] * read, name
            named |= {name} if read else set()
    assert named == {"prices", "table", "places"}


def test_a_model_and_its_notes_are_files(tmp_path: Path) -> None:
    model = tmp_path / "m.zip"
    agent = AgentSpec("PPO", "ppo", {"model": str(model)})
    assert names_of(agent) == [str(tmp_path / "m.json"), str(model)]
    model.write_bytes(b"m")
    with pytest.raises(FileNotFoundError, match=r"m\.json"):
        files_of(agent)
    (tmp_path / "m.json").write_bytes(b"n")
    expected = [hashlib.sha256(content).hexdigest() for content in (b"n", b"m")]
    assert list(files_of(agent).values()) == expected
    assert names_of(AgentSpec("PPO", "ppo"), AgentSpec("UI", "ui-gp-ucb", {"model": "walk"})) == []


def test_an_agents_extra_says_nothing_of_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, fields in (
        ("ui-gp-ucb", {"extra": "rl"}),
        ("gp-ucb", {"files": ("table",)}),
        ("qff-wgp-ucb", {"fixed": ("features",)}),
    ):
        monkeypatch.setitem(AGENTS, name, replace(AGENTS[name], **fields))
    assert names_of(AgentSpec("UI", "ui-gp-ucb", {"model": "walk"})) == []
    assert names_of(AgentSpec("GP", "gp-ucb", {"table": "t.csv"})) == ["t.csv"]
    assert names_of(AgentSpec("GP", "gp-ucb", {"table": "t.zip"})) == ["t.json", "t.zip"]
    assert "features" in agent_parameters("wgp-ucb")
    assert "features" not in agent_parameters("qff-wgp-ucb")


def test_packages_without_a_file_and_names_that_are_no_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    inner = tmp_path / "space_xyz" / "inner"
    inner.mkdir(parents=True)
    (inner / "algo.py").write_text("from . import near\nfrom helper_xyz import config\n")
    (inner / "near.py").write_text("")
    (tmp_path / "helper_xyz.py").write_text("config = 3\n")
    (tmp_path / "config.py").write_text("")  # another one, which nobody imports
    found = module_files("space_xyz.inner.algo")
    assert {*found} == {"space_xyz.inner.algo", "space_xyz.inner.near", "helper_xyz"}
    assert "space_xyz" not in sys.modules
