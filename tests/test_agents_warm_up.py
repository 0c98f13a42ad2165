"""`wgp-gym warm-up`: what it compiled, a later process finds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wgp_agents.base import Agent
from wgp_agents.cli import main, warm_up

PLAY = "from wgp_agents.cli.warm_up import play; print(play('d-ucb', 'K arms'))"


def kept(folder: Path) -> dict[str, int]:
    """Return the time of the last change of every file of machine code."""
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.nb[ci]")}


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        place = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", PLAY], env=place, capture_output=True)
        assert done.stdout.split() == [b"True"]
        found.append(kept(tmp_path))
    assert found[0]
    assert found[0] == found[1]


def test_every_agent_is_played_on_what_it_can_play(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played = []

    def _play(*task: str) -> bool:
        played.append(task)
        return task[1] == "arms"

    monkeypatch.setattr(warm_up, "play", _play)
    monkeypatch.setattr("wgp_agents.kernels.jit.cache_folder", lambda: Path(__file__).parent)
    assert main(["warm-up"]) == 0
    assert {("wgp-ucb", "a box"), ("ucb1", "K arms")} <= set(played)
    assert not any(name == "ppo" for name, _ in played)  # it needs an extra
    out = capsys.readouterr().out
    assert "wgp-ucb" in out
    assert f"MB in {Path(__file__).parent}" in out


def test_a_task_that_an_agent_refuses_is_skipped_and_a_fault_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not warm_up.play("d-ucb", "changing arms")

    def _fail(self: Agent, observation: object) -> None:
        raise ValueError("a fault in a play")

    monkeypatch.setattr(Agent, "act", _fail)
    with pytest.raises(ValueError, match="a fault in a play"):
        warm_up.play("d-ucb", "K arms")
    monkeypatch.setattr(warm_up, "play", lambda name, kind: kind == "arms")
    monkeypatch.setattr("wgp_agents.kernels.jit.cache_folder", lambda: Path(__file__).parent)
    assert main(["warm-up"]) == 0
    assert "skipped: K arms, linear arms, a box, changing arms" in capsys.readouterr().out


def test_nowhere_to_keep_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("wgp_agents.kernels.jit.cache_folder", lambda: None)
    assert main(["warm-up"]) == 2
    assert "no folder to keep compiled code in" in capsys.readouterr().err
