"""A user's environment and a user's agent, by module:name, in a whole experiment."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import wgp_agents
from wgp_agents.benchmark.accepted import environment_parameters
from wgp_agents.benchmark.declaration import declare, from_flags, read_declaration, task_name
from wgp_agents.benchmark.experiment import AgentSpec, TaskSpec, Unit
from wgp_agents.benchmark.figures.styles import styles
from wgp_agents.benchmark.parallel import Workers
from wgp_agents.benchmark.plan import check
from wgp_agents.benchmark.play import attempt
from wgp_agents.benchmark.results import load_results
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.benchmark.run import run
from wgp_agents.cli import main
from wgp_agents.registry import AGENTS

OWN = Path(__file__).with_name("own_bandit.py")
DECLARATION = """
seeds = 4
batch = 2

[[environment]]
id = "own_coins:Coins-v0"
kwargs = { bias = 0.5, horizon = 20 }

[[agent]]
name = "own_coins:Stubborn"
parameters = { arm = 1 }

[[agent]]
name = "thompson"
"""
CODE = "import sys; from wgp_agents.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with an experiment's file and the module that it names."""
    sys.modules.pop("own_coins", None)
    (tmp_path / "own.toml").write_text(DECLARATION, encoding="utf-8")
    shutil.copy(OWN, tmp_path / "own_coins.py")
    return tmp_path


def command(folder: Path, *words: str, path: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, which is on Python's path or not."""
    paths = [str(folder)] * path + [one for one in sys.path if one]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COVERAGE_PROCESS_START": ""}
    done = [sys.executable, "-P", "-c", CODE, *words]
    return subprocess.run(done, cwd=folder, env=environ, capture_output=True, text=True)


@pytest.mark.slow
def test_an_experiment_with_a_module_is_run_resumed_and_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(folder)
    experiment = declare(read_declaration(str(folder / "own.toml")))
    check(experiment)
    out = folder / "out"
    assert run(experiment, out, Workers(1)) == []
    results = load_results(out)
    assert (results.tasks, results.agents) == (["coins"], ["Stubborn", "Thompson sampling"])
    # Arm 1 costs (0.8 - 0.5) / 2 at each of 20 steps, in every run.
    np.testing.assert_allclose(results.final_regret("coins", "Stubborn"), 3.0)
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    assert list(manifest["files"]) == ["own_coins"]  # what is played follows from the module

    (lost,) = (out / "units").glob("*/own_coins_Stubborn-*/0000002.npz")
    before = lost.read_bytes()
    lost.unlink()
    assert run(experiment, out, Workers(1)) == []
    assert lost.read_bytes() == before
    assert main(["report", str(out), "--format", "md"]) == 0
    assert "Stubborn" in (out / "report.md").read_text("utf-8")

    with (folder / "own_coins.py").open("a", encoding="utf-8") as file:
        file.write("\nMEANS = MEANS / 2\n")
    lost.unlink()
    with pytest.raises(ValueError, match="own_coins"):
        run(experiment, out, Workers(1))


@pytest.mark.slow
def test_modules_are_found_in_other_processes_and_not_asked_for_by_a_report(folder: Path) -> None:
    done = command(folder, "run", "own.toml", "--out", "out", "--jobs", "2", "--no-report")
    assert done.returncode == 0, done.stderr
    results = load_results(folder / "out")  # no module is imported to read them
    assert "own_coins" not in sys.modules
    np.testing.assert_allclose(results.final_regret("coins", "Stubborn"), 3.0)
    done = command(folder, "report", "out", "--format", "md", path=False)
    assert done.returncode == 0, done.stderr


def test_names_in_flags() -> None:
    flags = ["own_bandit:Coins-v0:horizon=9,bias=0.5", "own_bandit:Coins-v0", "a.b:c/D-v1:k=1"]
    found = from_flags(flags, ["own_bandit:Stubborn:arm=[0,1]", "wgp-ucb:discount=0.9", "random"])
    assert [(one["id"], one["kwargs"]) for one in found["environment"]] == [
        ("own_bandit:Coins-v0", {"horizon": 9, "bias": 0.5}),
        ("own_bandit:Coins-v0", {}),
        ("a.b:c/D-v1", {"k": 1}),
    ]
    assert [(one["name"], one["parameters"]) for one in found["agent"]] == [
        ("own_bandit:Stubborn", {"arm": [0, 1]}),
        ("wgp-ucb", {"discount": 0.9}),
        ("random", {}),
    ]


def test_a_declaration_with_modules() -> None:
    experiment = declare(from_flags(["own_bandit:Coins-v0"], ["own_bandit:Stubborn:arm=[0,1]"]))
    assert [task.name for task in experiment.tasks] == ["coins"]
    assert [agent.label for agent in experiment.agents] == ["Stubborn arm=0", "Stubborn arm=1"]
    assert type(experiment).from_dict(experiment.as_dict()) == experiment
    looks = styles(experiment.agents)
    assert looks["Stubborn arm=0"].colour == looks["Stubborn arm=1"].colour
    assert looks["Stubborn arm=0"] != looks["Stubborn arm=1"]
    for flags, message in (
        ((["own_bandit:Coins-v0:bia=1"], ["random"]), r"no parameter 'bia' \(did you mean 'bias'"),
        ((["own_bandit:Coins-v0"], ["own_bandit:Stubborn:a=1"]), "has no parameter 'a'"),
        ((["own_bandit:Coin-v0"], ["random"]), r"module 'own_bandit' must be .*'Coins-v0'\?\)"),
        ((["no_such:Coin-v0"], ["random"]), r"is it on Python's path\? \(ModuleNotFoundError"),
        ((["own_bandit:Coins-v0"], ["no_such:A"]), r"is it on Python's path\? \(ModuleNotFoundEr"),
        ((["WGPBandit-Abrup-v0"], ["random"]), r"did you mean 'WGPBandit-Abrupt-v0'\?"),
    ):
        with pytest.raises(ValueError, match=message):
            declare(from_flags(*flags))


def test_an_environment_without_a_bandit_cannot_be_run(tmp_path: Path) -> None:
    experiment = declare(from_flags(["CartPole-v1"], ["random"]))
    with pytest.raises(TypeError, match="An agent is made from a BanditProblem or"):
        run(experiment, tmp_path / "out", Workers(1))


def test_the_single_environments_are_those_of_a_vector_of_them() -> None:
    import own_bandit

    env = make_vector("own_bandit:Coins-v0", 3, horizon=20)
    assert isinstance(env, gymnasium.vector.SyncVectorEnv)
    batch = rollout(wgp_agents.make("thompson", env), env, seed=5)
    for i in range(3):
        single = own_bandit.Coins(20)
        alone = rollout(wgp_agents.make("thompson", single), single, seed=5 + i)
        for name, values in alone.steps.items():
            np.testing.assert_array_equal(batch[name][i], values[0], err_msg=name)
    assert batch["changed"].sum() == 3


def test_a_registered_agent_is_known_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    wgp_agents.register_agent("stubborn", "own_bandit:Stubborn", preset={"arm": 2})
    try:
        task = TaskSpec("coins", "own_bandit:Coins-v0", {"horizon": 20})
        sent = pickle.dumps(Unit(task, AgentSpec("stubborn", "stubborn"), range(2), 1))
    finally:
        del AGENTS["stubborn"]
    received = pickle.loads(sent)  # as in a process where nobody has registered it
    try:
        outcome = attempt(received)
    finally:
        AGENTS.pop("stubborn", None)
    assert outcome.error == ""
    assert outcome.arrays is not None
    assert (outcome.arrays["action"] == 2).all()


def test_parameters_and_names_of_environments() -> None:
    assert environment_parameters("own_bandit:Coins-v0") == ["horizon", "bias"]
    assert "horizon" in environment_parameters("wgp_gym:WGPBandit-Abrupt-v0")
    assert task_name("own_bandit:Coins-v0") == "coins"
    assert task_name("WGPBandit-LinearAbrupt-v0") == "linear abrupt"
    hostile: list[Any] = ["", ":", "x:", ":Coins-v0", "a b:C-v0", "..x:C-v0", "x:C v0", 3, None]
    for name in hostile:
        with pytest.raises(ValueError, match="must be an id of Gymnasium's registry, or 'module:"):
            TaskSpec("task", name)
