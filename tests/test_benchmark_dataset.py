"""Data sets of plays: what is in them is what was played, and an interrupt loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import wgp_agents
from wgp_agents import cli
from wgp_agents.benchmark.rollout import rollout
from wgp_agents.training import dataset as data_sets
from wgp_agents.training.dataset import data_set_name, write_dataset
from wgp_gym import seeds

minari = pytest.importorskip("minari")
pytest.importorskip("h5py")

TASK, NAME = "WGPBandit-Abrupt-v0", "wgp-bandit/abrupt/wgp-ucb-v0"
SHORT: dict[str, Any] = {"horizon": 12, "points_per_dim": 10}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def test_the_command_writes_what_the_agent_plays_alone(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["dataset", "--agent", "wgp-ucb:variation_budget=known", "--episodes", "3"]
    assert cli.main([*words, "--env", f"{TASK}:horizon=12,points_per_dim=10", "--seed", "2"]) == 0
    said = capsys.readouterr().out
    assert "3 episodes, 36 steps" in said
    found = minari.load_dataset(NAME)
    env = found.recover_environment()
    agent = wgp_agents.make("wgp-ucb", env, variation_budget="known")
    first = seeds("train")[2 * 10**9]
    notes = found.storage.get_episode_metadata(found.episode_indices)
    for i, (episode, note) in enumerate(zip(found.iterate_episodes(), notes, strict=True)):
        assert note["seed"] == first + i
        alone = rollout(agent, env, first + i, first + i)
        np.testing.assert_array_equal(episode.actions, alone["action"][0])
        np.testing.assert_array_equal(episode.rewards, alone["reward"][0])
        assert episode.truncations.tolist() == [False] * 11 + [True]
        assert not episode.terminations.any()
        observation, _ = env.reset(seed=int(note["seed"]))
        for t, action in enumerate(episode.actions):
            np.testing.assert_array_equal(episode.observations[t], observation)
            observation, *_ = env.step(action)
        np.testing.assert_array_equal(episode.observations[-1], observation)


@pytest.mark.slow
def test_scores_of_0_and_1_are_random_play_and_the_oracle() -> None:
    found = write_dataset(NAME, "oracle", TASK, 100, kwargs=SHORT)
    returns = np.array([episode.rewards.sum() for episode in found.iterate_episodes()])
    assert minari.get_normalized_score(found, returns).mean() == pytest.approx(1.0)
    env = gymnasium.make(TASK, **SHORT)
    agent = wgp_agents.make("random", env)
    chance = [rollout(agent, env, seeds("train")[i])["reward"].sum() for i in range(100)]
    assert found.storage.metadata["ref_min_score"] == pytest.approx(np.mean(chance))


def test_what_was_interrupted_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_sets, "AT_ONCE", 2)
    plain, calls = data_sets.recorded, []

    def _recorded(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(*given)

    monkeypatch.setattr(data_sets, "recorded", _recorded)
    with pytest.raises(KeyboardInterrupt):
        write_dataset(NAME, "random", TASK, 5, kwargs=SHORT)
    assert minari.load_dataset(NAME).total_episodes == 2
    found = write_dataset(NAME, "random", TASK, 5, kwargs=SHORT)
    whole = write_dataset(f"other/{NAME}", "random", TASK, 5, kwargs=SHORT)
    for one, other in zip(found.iterate_episodes(), whole.iterate_episodes(), strict=True):
        np.testing.assert_array_equal(one.rewards, other.rewards)
    count = len(calls)
    assert write_dataset(NAME, "random", TASK, 5, kwargs=SHORT).total_episodes == 5
    assert len(calls) == count


def test_a_batch_that_was_cut_off_is_written_anew(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    write_dataset(NAME, "random", TASK, 2, kwargs=SHORT)
    with h5py.File(tmp_path / NAME / "data" / "main_data.hdf5", "a", track_order=True) as file:
        file.copy(file["episode_0"], "episode_2")  # of a batch of which no more was written
        file["episode_2"].attrs["id"] = 2
    found = write_dataset(NAME, "random", TASK, 4, kwargs=SHORT)
    assert (found.total_episodes, found.total_steps) == (4, 48)
    notes = minari.load_dataset(NAME).storage.get_episode_metadata(range(4))
    assert [int(note["seed"]) for note in notes] == [seeds("train")[i] for i in range(4)]


def test_agents_are_shown_the_mask_of_what_is_there() -> None:
    kwargs: dict[str, Any] = {"horizon": 40, "num_arms": 6, "lifetime": 20, "arrival_rate": 0.2}
    found = write_dataset("wgp-bandit/news/ucb1-v0", "ucb1", "WGPBandit-News-v0", 2, kwargs=kwargs)
    env = gymnasium.make("WGPBandit-News-v0", **kwargs)
    agent = wgp_agents.make("ucb1", env)
    for i, episode in enumerate(found.iterate_episodes()):
        seed = seeds("train")[i]
        np.testing.assert_array_equal(episode.actions, rollout(agent, env, seed, seed)["action"][0])


def test_reference_scores_do_not_depend_on_how_it_was_begun() -> None:
    few = write_dataset(NAME, "random", TASK, 1, kwargs=SHORT)
    many = write_dataset(f"other/{NAME}", "random", TASK, 7, kwargs=SHORT)
    for name in ("ref_min_score", "ref_max_score"):
        assert few.storage.metadata[name] == many.storage.metadata[name]


def test_names_that_are_no_ids_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Malformed dataset ID"):
        write_dataset("a b/c-v0", "random", TASK, 1, kwargs=SHORT)
    assert not [path for path in tmp_path.rglob("*") if path.name != ".a b-c-v0.lock"]
    (tmp_path / NAME / "data").mkdir(parents=True)
    assert write_dataset(NAME, "random", TASK, 1, kwargs=SHORT).total_episodes == 1


def test_another_data_set_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    write_dataset(NAME, "random", TASK, 1, kwargs=SHORT)
    with pytest.raises(ValueError, match="'name' parameter of wgp-gym dataset must be a name that"):
        write_dataset(NAME, "oracle", TASK, 2, kwargs=SHORT)
    assert minari.load_dataset(NAME).total_episodes == 1
    assert cli.main(["dataset", "--agent", "no-agent", "--env", TASK]) == 2
    assert "no-agent" in capsys.readouterr().err


def test_names_of_data_sets() -> None:
    assert data_set_name("wgp-ucb", TASK) == NAME
    assert data_set_name("module:Mine", "package:Own-v0") == "wgp-bandit/own/mine-v0"
