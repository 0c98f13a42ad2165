"""The table of agents: what it says, its types in an editor, and others' agents in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
import wgp_gym
from scripts.write_stub import STUB, stub
from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.registry import (
    AGENTS,
    ARMS,
    FAMILIES,
    AgentEntry,
    agent_class,
    agent_entry,
    agent_parameters,
)
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

PROBLEM = BanditProblem(
    SquaredExponential(0.2), np.linspace(0.0, 1.0, 9)[:, None], 50, 0.1, 1.0, 1.0
)
CLASS = f"{__name__}:Last"


class Last(Agent):
    """Plays the last arm, or the one that is so many before it."""

    def __init__(self, env: EnvLike, before: int = 0) -> None:
        super().__init__(env)
        self.before = before

    def _restart(self, mask: NDArray[np.bool_]) -> None: ...

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        return np.full(self.num_learners, len(self.problem.domain) - 1 - self.before)

    def _learn(self, actions: Any, rewards: Any, active: Any) -> None: ...


class Later(Last):
    """Hands on what it is given."""

    def __init__(self, env: EnvLike, *, steps: int = 3, **others: Any) -> None:
        super().__init__(env, **others)
        self.steps = steps


class Unfinished(Agent):
    """Lacks its methods."""


@pytest.fixture(autouse=True)
def _table_as_before() -> Iterator[None]:
    before = dict(AGENTS)
    yield
    AGENTS.clear()
    AGENTS.update(before)


def test_the_stub_is_that_of_the_table() -> None:
    assert STUB.read_text("utf-8") == stub(), "Run: python scripts/write_stub.py"


def test_the_stub_changes_with_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(AGENTS, "d-ts")
    without = STUB.read_text("utf-8")
    assert 'Literal["d-ts"]' in without
    assert stub() != without
    assert 'Literal["d-ts"]' not in stub()


def test_make_has_the_type_that_it_makes() -> None:
    # mypy checks these on its ordinary run; here, that the classes are those.
    agent = wgp_agents.make("wgp-ucb", PROBLEM, discount=0.9)
    assert_type(agent, wgp_agents.WGPUCB)
    assert type(agent) is wgp_agents.WGPUCB
    assert_type(wgp_agents.make("qff-wgp-ucb", PROBLEM), wgp_agents.WGPUCB)
    assert_type(wgp_agents.make("d-ts", gymnasium.make("WGPBandit-ArmsDrift-v0")), wgp_agents.DTS)
    name: str = "igp-ucb"
    assert_type(wgp_agents.make(name, PROBLEM), Agent)


def test_the_table_is_whole() -> None:
    for name, entry in AGENTS.items():
        assert entry.name == name
        assert entry.title
        assert entry.summary
        assert entry.family in FAMILIES
        made = agent_class(name)
        assert getattr(wgp_agents, made.__name__) is made
        assert set(dict(entry.preset)) <= {*agent_parameters(name), *entry.fixed}


def test_what_the_package_exports() -> None:
    assert wgp_agents.Agent is Agent
    assert wgp_agents.__version__ == wgp_gym.__version__
    assert not hasattr(wgp_agents, "WGP")
    with pytest.raises(AttributeError, match="'wgp_agents' has no attribute 'WGP'"):
        getattr(wgp_agents, "WGP")  # noqa: B009


def test_an_unknown_name_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'wgp-ucb'\?\)\. Got 'wgp_ucb'") as caught:
        wgp_agents.make("wgp_ucb", PROBLEM)
    assert len(str(caught.value)) < 250  # the names are not listed
    hostile: list[Any] = ["an agent", "", ":", "a:", ":B", "a:b:C", "..os:A", "a-b:C", 3, None]
    for name in hostile:
        with pytest.raises(ValueError, match="must be the name of an agent, one of wgp_agents"):
            wgp_agents.make(name, PROBLEM)


def test_an_agent_is_registered_and_made() -> None:
    entry = wgp_agents.register_agent("last", Last, title="LAST", preset={"before": 2}, family=ARMS)
    assert entry == AGENTS["last"] == agent_entry("last")
    assert (entry.entry_point, entry.title, entry.reference) == (CLASS, "LAST", False)
    agent = wgp_agents.make("last", PROBLEM)
    agent.reset(0)
    assert agent.act() == 6
    agent = wgp_agents.make("last", PROBLEM, before=1)
    agent.reset(0)
    assert agent.act() == 7
    assert "last" in wgp_agents.names()
    assert not hasattr(wgp_agents, "Last")  # attributes of the package are its own classes
    # The same once more, as in a notebook's cell that is run again.
    again = {"title": "LAST", "preset": {"before": 2}, "family": ARMS}
    assert wgp_agents.register_agent("last", Last, **again) == entry  # type: ignore[arg-type]


def test_a_place_is_registered_unseen() -> None:
    entry = wgp_agents.register_agent("far", "no_such_module:Far")
    assert (entry.title, entry.summary) == ("Far", "no_such_module:Far, registered in this process")
    with pytest.raises(ValueError, match=r"can be imported: is it on Python's path\? \(ModuleNo"):
        wgp_agents.make("far", PROBLEM)


@pytest.mark.parametrize(
    ("name", "agent", "message"),
    [
        ("wgp-ucb", Last, "'name' parameter of register_agent must be one that no other agent has"),
        ("a b", Last, "must be one word without a colon"),
        ("a:b", Last, "must be one word without a colon"),
        ("", Last, "must be one word without a colon"),
        ("x", "module.Class", "must be a class at the top of a module, or its 'module:Class'"),
        ("x", None, "'agent' parameter of register_agent must be a class at the top of a module"),
        ("x", int, "must be a subclass of wgp_agents.Agent that has its abstract methods"),
        ("x", Unfinished, "must be a subclass of wgp_agents.Agent that has its abstract methods"),
    ],
)
def test_what_cannot_be_registered(name: str, agent: Any, message: str) -> None:
    before = dict(AGENTS)
    with pytest.raises(ValueError, match=message):
        wgp_agents.register_agent(name, agent)
    assert before == AGENTS


def test_a_class_in_a_function_cannot_be_registered() -> None:
    class Inner(Last):
        pass

    with pytest.raises(ValueError, match="must be a class at the top of a module"):
        wgp_agents.register_agent("inner", Inner)
    with pytest.raises(ValueError, match="'family' parameter of register_agent must be one of"):
        wgp_agents.register_agent("last", Last, family="bandits")


def test_a_class_is_made_by_its_place() -> None:
    assert agent_class(CLASS) is Last
    assert agent_parameters(CLASS) == ["before"]
    agent = wgp_agents.make(CLASS, PROBLEM, before=4)
    agent.reset(0)
    assert agent.act() == 4
    expected = AgentEntry(CLASS, CLASS, "Last", f"of the module {__name__}", FAMILIES[-1])
    assert agent_entry(CLASS) == expected
    with pytest.raises(ValueError, match=r"has no parameter 'befor' \(did you mean 'before'\?\)"):
        wgp_agents.make(CLASS, PROBLEM, befor=4)


def test_parameters_that_a_class_hands_to_its_base() -> None:
    assert agent_parameters(f"{__name__}:Later") == ["steps", "before"]
    assert wgp_agents.make(f"{__name__}:Later", PROBLEM, steps=1, before=2).reset(0) is None


@pytest.mark.parametrize("place", [f"{__name__}:PROBLEM", f"{__name__}:Missing", "os:path"])
def test_what_stands_there_is_no_agent(place: str) -> None:
    with pytest.raises(ValueError, match=r"must be a subclass of wgp_agents\.Agent") as caught:
        agent_class(place)
    assert place in str(caught.value)


def test_a_module_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_agents.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"\(ZeroDivisionError: division by zero\)\. Got 'broken_"):
        agent_class("broken_agents:Mine")


@pytest.mark.slow
def test_the_working_folder_is_not_looked_at_unless_asked(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("print('mine was run')\n", encoding="utf-8")
    text = '[[environment]]\nid = "WGPBandit-Abrupt-v0"\n[[agent]]\nname = "mine:A"\n'
    (tmp_path / "x.toml").write_text(text, encoding="utf-8")
    # As the command does: the folder of a script stands first on the path, not the working one.
    code = (
        "import sys; del sys.path[0]; from wgp_agents.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, "run", "x.toml", "--dry-run"]
    plain = os.pathsep.join(filter(None, sys.path))
    for path, ran in ((plain, ""), (f"{tmp_path}{os.pathsep}{plain}", "mine was run\n")):
        environ = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, ran)
        assert ("is it on Python's path?" in done.stderr) == (not ran)
