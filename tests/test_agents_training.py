"""How a training is set up, measured and saved; its outcomes are in test_agents_rl.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import stable_baselines3
import torch
from conftest import TWO_ARMS
from test_agents_rl import TASK, vector

from wgp_agents.algorithms.learned.sb3.model import load_model, shipped_model
from wgp_agents.algorithms.learned.sb3.vec_env import NativeVecEnv
from wgp_agents.algorithms.references.baselines import Random
from wgp_agents.benchmark.rollout import rollout
from wgp_agents.training import training
from wgp_agents.training.worlds import training_seed


class Stub:
    """A model that learns nothing."""

    num_timesteps = 0

    def learn(self, steps: int, callback: Any) -> None:
        del steps, callback


def test_a_training_has_its_own_seeds_its_scale_and_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def _build(algo: str, env: Any, seed: int, chosen: dict[str, Any]) -> Stub:
        made.append(env)
        return Stub()

    monkeypatch.setattr(training, "build", _build)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        training.train("ppo", TASK, 10, 3, tmp_path / "m.zip", TWO_ARMS)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    chosen = training.settings("ppo")
    plain = training.training_env(TASK, chosen | {"reward_scale": 1.0}, TWO_ARMS)
    plain.seed(training_seed(3))
    made[0].reset()
    plain.reset()
    actions = np.zeros(chosen["envs"], int)
    found, expected = (env.step(actions)[1] for env in (made[0], plain))
    np.testing.assert_allclose(found, expected / chosen["reward_scale"], rtol=1e-6)


def test_the_held_out_episodes_are_played(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def _rollout(agent: Any, env: Any, seed: int) -> Any:
        seeds.append(seed)
        return rollout(agent, env, seed)

    monkeypatch.setattr(training, "rollout", _rollout)
    training.held_out_regret(TASK, TWO_ARMS, Random)
    assert seeds == [training.HELD_OUT]


@pytest.mark.parametrize(("steps", "every"), [(400_000, 20_000), (1_000_000, 50_000)])
def test_checkpoints_come_twenty_times_but_not_too_often(
    steps: int, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = {"algo": "ppo", "environment": TASK, "kwargs": TWO_ARMS}
    progress = training.Progress(steps, tmp_path / "m.zip", notes)
    measured: list[int] = []
    monkeypatch.setattr(progress, "measure", lambda: measured.append(progress.num_timesteps))
    for done in range(10_000, 100_001, 10_000):
        model: Any = SimpleNamespace(num_timesteps=done)
        progress.model = model
        progress.on_step()
    assert measured == list(range(every, 100_001, every))


def test_groups_must_be_of_one_size() -> None:
    with pytest.raises(ValueError, match="'envs' parameter of train must be a multiple of groups"):
        training.training_env(TASK, training.settings("ppo") | {"envs": 10}, {})


def test_a_second_reset_goes_on_to_new_episodes() -> None:
    inner, twin = vector(3, horizon=4), vector(3, horizon=4)
    env = NativeVecEnv([inner])
    env.seed(7)
    env.reset()
    env.reset()
    twin.reset(seed=7)
    twin.reset()
    np.testing.assert_array_equal(
        inner.unwrapped.expected_rewards(), twin.unwrapped.expected_rewards()
    )


def test_saving_leaves_the_optimizer_as_it_was(tmp_path: Path) -> None:
    state = torch.get_rng_state()
    model = stable_baselines3.PPO("MlpPolicy", gymnasium.make(TASK), n_steps=64, device="cpu")
    model.learn(64)
    torch.set_rng_state(state)
    moments = model.policy.optimizer.state
    assert len(moments)
    training.save_model(model, tmp_path / "m.zip", {})
    assert model.policy.optimizer.state is moments


def test_loading_leaves_numpys_global_generator_alone() -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index] # noqa: NPY002
    load_model("ppo", shipped_model("ppo", TASK))
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index] # noqa: NPY002
