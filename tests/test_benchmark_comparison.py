"""Trained policies beside learners: the command, its files, and the models that are shipped."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import wgp_agents
from wgp_agents import cli
from wgp_agents.benchmark.figures import compare as plots
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.sb3 import comparison
from wgp_agents.sb3.model import SHIPPED, load_model, shipped_model
from wgp_gym.wrappers import VectorHistoryObservation

TASK, EPISODES = "WGPBandit-Abrupt-v0", 3
TRAINED = ("ppo", "a2c", "dqn", "recurrent-ppo")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `wgp-gym compare` leaves."""
    folder = tmp_path_factory.mktemp("compare")
    words = ["compare", "--episodes", str(EPISODES), "--jobs", "1", "--out", str(folder)]
    assert cli.main(words) == 0
    return folder


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_all_files_are_there(results: Path) -> None:
    names = {path.name for path in results.iterdir()}
    expected = {"compare.png", "summary.csv", "runs.csv", "learning.csv", "curves.npz"}
    assert names == expected | {"manifest.json"}
    assert (results / "compare.png").stat().st_size > 50_000
    manifest = json.loads((results / "manifest.json").read_text("utf-8"))
    assert manifest["episodes"] == EPISODES
    assert manifest["versions"]["stable-baselines3"]
    assert len(manifest["models"]) == len(TRAINED) * len(comparison.TASKS)


def test_the_rows_are_what_each_agent_plays_alone(results: Path) -> None:
    found = rows(results, "runs.csv")
    assert len(found) == len(comparison.TASKS) * len(comparison.RIVALS) * EPISODES
    for task in comparison.TASKS:
        env = gymnasium.make(task)
        agents: dict[tuple[str, str], Any] = {
            ("wgp-ucb", "known B_T"): wgp_agents.make("wgp-ucb", env, variation_budget="known"),
            ("wgp-ucb", "unknown B_T"): wgp_agents.make("wgp-ucb", env),
            ("ppo", "trained"): wgp_agents.make("ppo", env),
            ("random", ""): wgp_agents.make("random", env),
        }
        for row in found:
            agent = agents.get((row["agent"], row["note"]))
            if agent is not None and row["environment"] == task:
                played = rollout(agent, env, int(row["env_seed"]), int(row["agent_seed"]))
                alone = played["cumulative_regret"][0, -1]
                assert float(row["final_regret"]) == pytest.approx(alone, rel=1e-6)


def test_the_summary_follows_from_the_rows(results: Path) -> None:
    finals: dict[tuple[str, str, str], list[float]] = {}
    for row in rows(results, "runs.csv"):
        key = row["environment"], row["agent"], row["note"]
        finals.setdefault(key, []).append(float(row["final_regret"]))
    summary = rows(results, "summary.csv")
    assert len(summary) == len(finals)
    for row in summary:
        task = row["environment"]
        mine = np.array(finals[task, row["agent"], row["note"]])
        by_chance = np.mean(finals[task, "random", ""])
        assert float(row["mean_final_regret"]) == pytest.approx(mine.mean())
        assert float(row["median_final_regret"]) == pytest.approx(np.median(mine))
        assert float(row["share_of_random"]) == pytest.approx(mine.mean() / by_chance)
        for budget in ("known", "unknown"):
            difference = mine - np.array(finals[task, "wgp-ucb", f"{budget} B_T"])
            assert float(row[f"minus_{budget}"]) == pytest.approx(difference.mean())
            error = np.sqrt(difference.var(ddof=1) / EPISODES)
            assert float(row[f"minus_{budget}_standard_error"]) == pytest.approx(error)
            assert int(row[f"lower_than_{budget}"]) == (difference < 0).sum()
        assert (mine == 0).all() == (row["agent"] == "oracle")


def test_the_picture_is_drawn_from_the_files(results: Path) -> None:
    regrets, learning = comparison.load(results)
    for task in comparison.TASKS:
        assert set(regrets[task]) == {rival.name for rival in comparison.RIVALS}
        assert set(learning[task]) == {f"{algo}/trained" for algo in TRAINED}
        for algo in TRAINED:
            notes = json.loads(shipped_model(algo, task).with_suffix(".json").read_text("utf-8"))
            steps, share = learning[task][f"{algo}/trained"]
            assert (np.diff(steps) > 0).all()
            assert steps[-1] == notes["steps"]
            assert share[-1] == notes["share_of_random"]


LIMITS = {"ppo": 0.35, "a2c": 0.4, "dqn": 0.5, "recurrent-ppo": 0.45}


@pytest.mark.parametrize("task", comparison.TASKS)
@pytest.mark.parametrize("algo", TRAINED)
def test_shipped_models_play_fresh_episodes_well(algo: str, task: str) -> None:
    env = make_vector(task, 30)
    played, chance = (
        rollout(wgp_agents.make(name, env), env, seed=3 * 10**15)["cumulative_regret"][:, -1]
        for name in (algo, "random")
    )
    # Of random play's on these 30 episodes, abrupt and slow: PPO 0.26 and 0.23, A2C 0.30 and 0.30,
    # DQN 0.16 and 0.40, RecurrentPPO 0.37 and 0.27.
    assert played.mean() < LIMITS[algo] * chance.mean()
    assert shipped_model(algo, task).stat().st_size < 700_000


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: env,
        lambda env: env.unwrapped,
        lambda env: Monitor(env),
        lambda env: gymnasium.wrappers.TimeLimit(env, 20),
        lambda env: gymnasium.vector.SyncVectorEnv([lambda: env]),
        lambda env: DummyVecEnv([lambda: env]),
        lambda _: make_vector(TASK, 2),
        lambda _: VectorHistoryObservation(make_vector(TASK, 2), 3),
        lambda _: gymnasium.make_vec(TASK, 2, vectorization_mode="sync"),
    ],
)
def test_the_shipped_model_is_found_for_every_kind_of_environment(wrap: Any) -> None:
    agent = wgp_agents.make("dqn", wrap(gymnasium.make(TASK)))
    agent.reset(0)
    assert np.all(agent.act() == np.ravel(agent.act())[0])


@pytest.mark.parametrize("kwargs", [{"horizon": 20}, {"noise_std": 5.0}])
def test_the_shipped_model_is_not_played_where_it_was_not_trained(kwargs: dict[str, Any]) -> None:
    match = "'model' parameter of SB3Agent must be given: the shipped one was trained with T = 500"
    with pytest.raises(ValueError, match=match):
        wgp_agents.make("dqn", gymnasium.make(TASK, **kwargs))
    path = shipped_model("dqn", TASK)
    wgp_agents.make("dqn", gymnasium.make(TASK, **kwargs), model=path).reset(0)
    box = gymnasium.make(TASK, continuous=True)
    with pytest.raises(ValueError, match="must be trained on the points of the box of the problem"):
        wgp_agents.make("dqn", box, model=path)


def test_models_of_a_folder_are_played_from_there_with_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival = next(rival for rival in comparison.RIVALS if rival.agent == "ppo")
    for file in SHIPPED.glob("ppo-wgpbandit-abrupt*"):
        shutil.copy(file, tmp_path)
    seen: dict[str, Any] = {}

    def _make(name: str, env: Any, **parameters: Any) -> Any:
        seen.update(parameters, threads=torch.get_num_threads())
        return wgp_agents.make(name, env, **parameters)

    monkeypatch.setattr(comparison, "make", _make)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seeds = {TASK: comparison.episode_seeds(1, TASK, 2)}
        comparison.play_one(tmp_path, seeds, (TASK, rival))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen["model"].parent == tmp_path
    assert seen["threads"] == 1


def test_the_picture_shows_what_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Figure] = []

    def _figure(*args: Any, **kwargs: Any) -> Figure:
        figures.append(Figure(*args, **kwargs))
        return figures[-1]

    monkeypatch.setattr("matplotlib.figure.Figure", _figure)
    rng = np.random.default_rng(0)
    sizes = {"random": 5, "ppo/trained": 1, "neural-greedy/untrained": 2, "oracle": 0}
    curves = {
        task: {name: rng.random((4, 20)).cumsum(axis=1) * size for name, size in sizes.items()}
        for task in "ab"
    }
    learning = {
        task: {"ppo/trained": np.array([[1e6, 2e6], shares])}
        for task, shares in (("a", [0.5, 0.4]), ("b", [0.3, 0.2]))
    }
    plots.comparison(curves, learning, tmp_path / "x.png")
    for i, task in enumerate("ab"):
        above, below = figures[0].axes[i], figures[0].axes[2 + i]
        drawn = [np.asarray(line.get_ydata(), float) for line in below.lines]
        untrained = curves[task]["neural-greedy/untrained"][:, -1].mean()
        level = untrained / curves[task]["random"][:, -1].mean()
        assert [len(y) for y in drawn] == [2, 2, 2]  # random, PPO, neural greedy
        np.testing.assert_allclose(drawn[1], learning[task]["ppo/trained"][1])
        np.testing.assert_allclose(drawn[2], level)
        labels = above.get_legend_handles_labels()[1]
        assert labels == ["random", "PPO (trained)", "neural greedy (untrained)"]
        assert untrained < above.get_ylim()[1] < 2 * untrained
        bar: Any = above.containers[1]
        low, high = bar.lines[2][0].get_segments()[-1]
        runs = curves[task]["ppo/trained"][:, int(low[0]) - 1]
        assert high[1] - low[1] == pytest.approx(2 * runs.std(ddof=1) / np.sqrt(4))


def test_a_model_of_another_algorithm_is_refused() -> None:
    env = gymnasium.make(TASK)
    model = load_model("ppo", shipped_model("ppo", TASK))[0]
    with pytest.raises(ValueError, match=r"must be trained by 'dqn'\. Got 'PPO' instead"):
        wgp_agents.make("dqn", env, model=model)
    with pytest.raises(ValueError, match="'deterministic' parameter of SB3Agent must be True for"):
        wgp_agents.make("dqn", env, deterministic=False)


def test_a_shipped_model_brings_nothing_of_its_training() -> None:
    code = (
        "import sys, gymnasium, wgp_gym, wgp_agents;"
        "wgp_agents.make('ppo', gymnasium.make('WGPBandit-Abrupt-v0'));"
        "ours = [name for name in sys.modules if name.startswith('wgp_agents')];"
        "print([name for name in ours if 'benchmark' in name or 'training' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "--models", str(tmp_path / "none"), "--out", str(tmp_path)]
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert "'models' parameter of compare must be a folder with dqn-wgpbandit-abrupt-seed0" in said
    assert "playing" not in said


@pytest.mark.parametrize("words", [["compare"], ["train", "--algo", "ppo"]])
def test_without_the_extra_the_remedy_is_named(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.startswith("wgp_agents.sb3")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)  # as if it were not there
    assert cli.main([*words, "--out", str(tmp_path)]) == 2
    assert "Install wgp-gym[rl]." in capsys.readouterr().err
