"""Trained policies beside learners: the command, its files, and the models that are shipped."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from matplotlib.figure import Figure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import wgp_agents
from wgp_agents import cli
from wgp_agents.algorithms.learned.sb3.model import SHIPPED, load_model, shipped_model
from wgp_agents.algorithms.learned.weights_file import model_file
from wgp_agents.benchmark import run as running
from wgp_agents.benchmark.figures import compare as plots
from wgp_agents.benchmark.folder import ResultsFolder
from wgp_agents.benchmark.output import LOCK, locked
from wgp_agents.benchmark.play import attempt
from wgp_agents.benchmark.results import load_results
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.training import comparison, rivals
from wgp_agents.training.rivals import RIVALS, TASKS, Match
from wgp_gym.wrappers import VectorHistoryObservation

TASK, EPISODES = "WGPBandit-Abrupt-v0", 3
TRAINED = ("ppo", "a2c", "dqn", "recurrent-ppo")
ON_THE_TRUTH = ("general", "abrupt", "slow", "the gate")


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


@pytest.mark.slow
def test_all_files_are_there(results: Path) -> None:
    names = {path.name for path in results.iterdir()}
    expected = {".lock", "compare.png", "summary.csv", "runs.csv", "learning.csv", "models.json"}
    assert names == expected | set(TASKS)
    assert (results / "compare.png").stat().st_size > 50_000
    models = json.loads((results / "models.json").read_text("utf-8"))
    assert models["versions"]["stable-baselines3"]
    assert len(models["models"]) == len(TRAINED) * len(TASKS) + len(ON_THE_TRUTH)
    for task in TASKS:
        played = load_results(results / task)
        assert played.runs(task).tolist() == list(range(EPISODES))
        assert len(played.agents) == len(RIVALS)


@pytest.mark.slow
def test_the_rows_are_what_each_agent_plays_alone(results: Path) -> None:
    found = rows(results, "runs.csv")
    assert len(found) == len(TASKS) * len(RIVALS) * EPISODES
    for task in TASKS:
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_picture_is_drawn_from_the_files(results: Path) -> None:
    regrets, learning = comparison.drawn_from(results, Match())
    for task in TASKS:
        assert set(regrets[task]) == {rival.name for rival in RIVALS}
        trained = {"in-context/general", "in-context/specialist"}  # the gate's has no curve
        assert set(learning[task]) == trained | {f"{algo}/trained" for algo in TRAINED}
        for algo in TRAINED:
            notes = json.loads(shipped_model(algo, task).with_suffix(".json").read_text("utf-8"))
            ((steps, share),) = learning[task][f"{algo}/trained"]
            assert (np.diff(steps) > 0).all()
            assert steps[-1] == notes["steps"]
            assert share[-1] == notes["share_of_random"]


LIMITS = {"ppo": 0.35, "a2c": 0.4, "dqn": 0.5, "recurrent-ppo": 0.45}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("algo", TRAINED)
@pytest.mark.slow
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
@pytest.mark.slow
def test_the_shipped_model_is_found_for_every_kind_of_environment(wrap: Any) -> None:
    agent = wgp_agents.make("dqn", wrap(gymnasium.make(TASK)))
    agent.reset(0)
    assert np.all(agent.act() == np.ravel(agent.act())[0])


@pytest.mark.parametrize("kwargs", [{"horizon": 20}, {"noise_std": 5.0}])
@pytest.mark.slow
def test_the_shipped_model_is_not_played_where_it_was_not_trained(kwargs: dict[str, Any]) -> None:
    match = "'model' parameter of SB3Agent must be given: the shipped one was trained with T = 500"
    with pytest.raises(ValueError, match=match):
        wgp_agents.make("dqn", gymnasium.make(TASK, **kwargs))
    path = shipped_model("dqn", TASK)
    wgp_agents.make("dqn", gymnasium.make(TASK, **kwargs), model=path).reset(0)
    box = gymnasium.make(TASK, continuous=True)
    with pytest.raises(ValueError, match="must be trained on the points of the box of the problem"):
        wgp_agents.make("dqn", box, model=path)


@pytest.mark.slow
def test_models_of_a_folder_are_played_and_another_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models, out = tmp_path / "models", tmp_path / "out"
    shutil.copytree(SHIPPED, models)
    few = tuple(one for one in RIVALS if one.agent in ("ppo", "random", "wgp-ucb"))
    monkeypatch.setattr(rivals, "RIVALS", few)
    name = model_file("ppo", TASK, 0, "zip")
    shutil.copy(models / model_file("ppo", TASKS[1], 0, "zip"), models / name)
    words = ["compare", "--models", str(models), "--episodes", "2", "--jobs", "1"]
    words += ["--out", str(out)]
    assert cli.main(words) == 0
    other = wgp_agents.make("ppo", make_vector(TASK, 2), model=models / name)
    found = load_results(out / TASK)
    seeds = (found.per_run(TASK, "random", key).tolist() for key in ("env_seed", "agent_seed"))
    played = rollout(other, make_vector(TASK, 2), *seeds)["cumulative_regret"][:, -1]
    np.testing.assert_array_equal(found.final_regret(TASK, "PPO (trained)"), played)
    before = contents(out)
    shutil.copy(SHIPPED / name, models / name)
    capsys.readouterr()
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert f"{out} holds results of another set of models: {name}." in said
    assert contents(out) == before


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("fault", ["another model", "no JSON", "another process"])
@pytest.mark.slow
def test_what_is_not_of_these_models_is_refused(
    fault: str, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(results, out)
    said, told = out / "models.json", "holds results of another set of models"
    if fault == "another model":
        models = json.loads(said.read_text("utf-8"))["models"]
        digest = models[model_file("ppo", TASK, 0, "zip")]["sha256"]
        said.write_text(said.read_text("utf-8").replace(digest, 64 * "0"), "utf-8")
    if fault == "no JSON":
        said.write_text("{", "utf-8")
        told = "names no models"
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    words = ["compare", "--episodes", str(EPISODES), "--jobs", "1", "--out", str(out)]
    with locked(out / LOCK) if fault == "another process" else nullcontext():
        assert cli.main(words) == 2
    told = "Another process is writing to" if fault == "another process" else told
    assert told in capsys.readouterr().err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_a_second_call_plays_what_is_missing_and_writes_the_tables_anew(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resumed = tmp_path / "resumed"
    shutil.copytree(results, resumed)
    for file in resumed.glob("*.*"):
        if file.name != "models.json":
            file.unlink()
    lost = sorted(resumed.glob("*/units/*/random-*/*.npz"))
    assert len(lost) == len(TASKS)
    for file in lost:
        file.unlink()
    played: list[str] = []

    def _attempt(unit: Any, **rest: Any) -> Any:
        played.append(unit.agent.name)
        return attempt(unit, **rest)

    monkeypatch.setattr(running, "attempt", _attempt)
    words = ["compare", "--episodes", str(EPISODES), "--jobs", "1", "--out", str(resumed)]
    assert cli.main(words) == 0
    assert played == ["random"] * len(TASKS)
    assert cli.main(words) == 0
    assert played == ["random"] * len(TASKS)
    for ending in ("csv", "json", "npz", "png"):
        for file in results.rglob(f"*.{ending}"):
            if file.name != "timings.csv":
                again = resumed / file.relative_to(results)
                assert again.read_bytes() == file.read_bytes(), file


@pytest.mark.parametrize(
    ("others", "told"),
    [
        (["--root-seed", "7"], "root_seed is 2022 there, and 7 here"),
        (["--episodes", "4"], f"seeds is {EPISODES} there, and 4 here"),
    ],
)
@pytest.mark.slow
def test_other_settings_are_refused_and_overwrite_nothing(
    others: list[str], told: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(results)
    words = ["compare", "--episodes", str(EPISODES), "--jobs", "1", "--out", str(results)]
    assert cli.main([*words, *others]) == 2
    assert f"holds results of another experiment: {told}." in capsys.readouterr().err
    assert contents(results) == before


@pytest.mark.slow
def test_a_folder_of_something_else_is_refused(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(results)
    assert cli.main(["compare", "--episodes", "3", "--out", str(results / TASK)]) == 2
    said = capsys.readouterr().err
    assert "Choose an empty folder, or one that `wgp-gym compare` has begun." in said
    assert contents(results) == before


@pytest.mark.slow
def test_two_at_once_are_refused(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "--episodes", str(EPISODES), "--jobs", "1", "--out", str(results)]
    with ResultsFolder.locked(results / TASK):
        assert cli.main(words) == 2
    assert f"Another process is writing to {results / TASK}." in capsys.readouterr().err


@pytest.mark.slow
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
        task: {name: [rng.random((4, 20)).cumsum(axis=1) * size] for name, size in sizes.items()}
        for task in "ab"
    }
    learning = {
        task: {"ppo/trained": [np.array([[1e6, 2e6], shares])]}
        for task, shares in (("a", [0.5, 0.4]), ("b", [0.3, 0.2]))
    }
    plots.comparison(curves, learning, tmp_path / "x.png")
    for i, task in enumerate("ab"):
        above, below = figures[0].axes[i], figures[0].axes[2 + i]
        drawn = [np.asarray(line.get_ydata(), float) for line in below.lines]
        untrained = curves[task]["neural-greedy/untrained"][0][:, -1].mean()
        level = untrained / curves[task]["random"][0][:, -1].mean()
        assert [len(y) for y in drawn] == [2, 2, 2]  # random, PPO, neural greedy
        np.testing.assert_allclose(drawn[1], learning[task]["ppo/trained"][0][1])
        np.testing.assert_allclose(drawn[2], level)
        labels = above.get_legend_handles_labels()[1]
        assert labels == ["random", "PPO (trained)", "neural greedy (untrained)"]
        assert untrained < above.get_ylim()[1] < 2 * untrained
        bar: Any = above.containers[1]
        low, high = bar.lines[2][0].get_segments()[-1]
        runs = curves[task]["ppo/trained"][0][:, int(low[0]) - 1]
        assert high[1] - low[1] == pytest.approx(2 * runs.std(ddof=1) / np.sqrt(4))


def test_a_model_of_another_algorithm_is_refused() -> None:
    env = gymnasium.make(TASK)
    model = load_model("ppo", shipped_model("ppo", TASK))[0]
    with pytest.raises(ValueError, match=r"must be trained by 'dqn'\. Got 'PPO' instead"):
        wgp_agents.make("dqn", env, model=model)
    with pytest.raises(ValueError, match="'deterministic' parameter of SB3Agent must be True for"):
        wgp_agents.make("dqn", env, deterministic=False)


@pytest.mark.slow
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
    assert "'models' parameter of compare must be a folder with a trained model in it" in said
    assert "playing" not in said


@pytest.mark.parametrize("words", [["compare"], ["train", "--algo", "ppo"]])
def test_without_the_extra_the_remedy_is_named(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [
        name for name in sys.modules if name.startswith("wgp_agents.algorithms.learned.sb3")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)  # as if it were not there
    assert cli.main([*words, "--out", str(tmp_path)]) == 2
    assert "Install wgp-gym[rl]." in capsys.readouterr().err
