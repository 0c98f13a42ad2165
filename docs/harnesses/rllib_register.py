"""RLlib: an environment by `register_env`, and a PPO that learns a task of two arms.

Run it with `python docs/harnesses/rllib_register.py`. All is sampled and learned in this process
(`num_env_runners=0`); the policy sees the last five plays. Held-out episodes are played by hand,
a hundred at once in the native vector environment, and the regret stands in the last `info`.
An environment without a wrapper needs no `register_env`: its id with the package's name before
it, "wgp_gym:WGPBandit-Abrupt-v0", does, in other processes too.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module import RLModule
from ray.tune.registry import register_env

import wgp_gym  # noqa: F401  (registers the environments)
from wgp_gym.wrappers import HistoryObservation, VectorHistoryObservation

ID = "WGPBandit-Abrupt-v0"
TASK = {"points_per_dim": 2, "horizon": 20, "change_points": [], "noise_std": 0.05}
ITERATIONS, TEST_ENVS, TEST_SEED = 10, 100, 10_000


def make_env(config: dict[str, Any]) -> gymnasium.Env:
    """Two arms, of which one is better for a whole episode."""
    return HistoryObservation(gymnasium.make(ID, **config), length=5)


def make_config() -> PPOConfig:
    """Small batches, and gamma = 0, as plays change nothing."""
    return (
        PPOConfig()
        .environment("two-arms", env_config=TASK)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=16)
        .training(
            gamma=0.0,
            lr=3e-3,
            train_batch_size_per_learner=1600,
            minibatch_size=200,
            num_epochs=5,
            vf_clip_param=1000.0,
            grad_clip=0.5,
        )
        .rl_module(model_config={"fcnet_hiddens": [64, 64]})
        .debugging(seed=0, log_level="ERROR")
    )


def mean_regret(module: RLModule | None) -> float:
    """Play the held-out episodes, greedily by the module or else at random."""
    native = {"num_envs": TEST_ENVS, "vectorization_mode": "vector_entry_point"}
    envs = VectorHistoryObservation(gymnasium.make_vec(ID, **native, **TASK), length=5)
    envs.action_space.seed(0)
    observations, info = envs.reset(seed=TEST_SEED)
    for _ in range(TASK["horizon"]):
        actions = envs.action_space.sample()
        if module is not None:
            outputs = module.forward_inference({"obs": torch.from_numpy(observations)})
            actions = outputs["action_dist_inputs"].argmax(dim=1).numpy()
        observations, _, _, _, info = envs.step(actions)
    return float(np.mean(info["cumulative_regret"]))


def main() -> None:
    """Train, then compare with random play."""
    ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR")
    register_env("two-arms", make_env)
    algorithm = make_config().build_algo()
    for _ in range(ITERATIONS):
        algorithm.train()
    random, trained = mean_regret(None), mean_regret(algorithm.get_module())
    algorithm.stop()
    ray.shutdown()
    print(f"mean regret of {TEST_ENVS} episodes: random {random:.3f}, trained {trained:.3f}")


if __name__ == "__main__":
    main()
