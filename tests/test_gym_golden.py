"""Recorded trajectories: the numbers of an (id, seed, actions) that exists stay for good.

`scripts/record_golden.py` records those that are missing. If a test here fails, the change that
broke it needs a new version of the id, not a new recording.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgp_gym.envs import BanditEnv
from wgp_gym.registration import ENVIRONMENTS

Make = Callable[..., BanditEnv]

ROOT = Path(__file__).parents[1]
GOLDEN = sorted((ROOT / "tests" / "golden").glob("WGPBandit-*.json"))
SHOWN = 16  # numbers of an observation that are recorded
TOLERANCE = 1e-6  # rewards have single precision; other machines may round otherwise


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


def check_optimum(info: dict[str, Any], recorded: dict[str, Any]) -> None:
    close(info["optimal_reward"], recorded["optimal_reward"])
    np.testing.assert_allclose(info["optimal_action"], recorded["optimal_action"], atol=1e-5)


def test_every_environment_is_recorded(environment_id: str) -> None:
    assert environment_id in {path.stem for path in GOLDEN}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_trajectory(make_env: Make, path: Path) -> None:
    golden = json.loads(path.read_text("utf-8"))
    assert golden["id"] in {entry.id for entry in ENVIRONMENTS}
    assert path.stem.startswith(golden["id"])
    assert path.stem != golden["id"] or golden["parameters"] == {}
    env = make_env(golden["id"], **golden["parameters"])
    observation, info = env.reset(seed=golden["seed"])
    check_optimum(info, golden["first_optimum"])
    close(env.problem.norm_bound, golden["norm_bound"])
    close(env.problem.variation_budget, golden["variation_budget"])
    close(observation[:SHOWN], golden["observations"][0])
    recorded = [golden[key] for key in ("rewards", "regrets", "variations")]
    assert len(golden["actions"]) == len(recorded[0]) > 200
    for action, numbers, seen in zip(
        golden["actions"],
        zip(*recorded, strict=True),
        golden["observations"][1:],
        strict=True,
    ):
        observation, reward, _, _, info = env.step(action)
        close([reward, info["regret"], info["variation"]], numbers)
        close(observation[:SHOWN], seen)
    check_optimum(env.reset()[1], golden["next_optimum"])


def test_recordings_differ() -> None:
    recorded = {path.read_text("utf-8").split('"rewards"')[1] for path in GOLDEN}
    assert len(recorded) == len(GOLDEN)


def test_the_script_records_only_what_is_missing(tmp_path: Path) -> None:
    kept, missing = "WGPBandit-Slow-v0", "WGPBandit-Abrupt-v0"
    (tmp_path / f"{kept}.json").write_text("as it was")
    program = str(ROOT / "scripts" / "record_golden.py")
    script = [sys.executable, program, "--folder", str(tmp_path)]

    def run(*arguments: str) -> list[str]:
        done = subprocess.run(
            [*script, *arguments], check=True, capture_output=True, text=True, timeout=60
        )
        return sorted(done.stdout.splitlines())

    assert run(kept, missing) == [f"{missing}.json: recorded", f"{kept}.json: kept"]
    assert (tmp_path / f"{kept}.json").read_text() == "as it was"
    assert run("--overwrite", kept) == [f"{kept}.json: recorded"]
    for name in (kept, missing):
        again = json.loads((tmp_path / f"{name}.json").read_text())
        golden = json.loads((ROOT / "tests" / "golden" / f"{name}.json").read_text())
        assert again["actions"] == golden["actions"]
        close(again["rewards"], golden["rewards"])
    assert len(list(tmp_path.iterdir())) == 2
