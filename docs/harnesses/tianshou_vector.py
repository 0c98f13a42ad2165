"""Tianshou 2: its vector environments, a Collector, and a DQN that learns a task of two arms.

Run it with `python docs/harnesses/tianshou_vector.py`. The DQN sees the last five plays. The
regret of an episode stands in the last `info` that the Collector keeps, and is the same whether
environments share this process (`DummyVectorEnv`) or have their own (`SubprocVectorEnv`). Tianshou
seeds by a reset and resets again before it collects: `SeededEpisodes` holds it to the seeds given.
"""

from __future__ import annotations

from collections.abc import Callable

import gymnasium
import numpy as np
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import BaseVectorEnv, DummyVectorEnv, SubprocVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

import wgp_gym  # noqa: F401  (registers the environments)
from wgp_gym.wrappers import HistoryObservation, SeededEpisodes

TASK = {"points_per_dim": 2, "horizon": 20, "change_points": [], "noise_std": 0.05}
TRAIN_ENVS, TEST_ENVS, PROCESSES = 10, 100, 2
TRAIN_SEED, TEST_SEED = 0, 10_000


def make_env() -> gymnasium.Env:
    """Two arms, of which one is better for a whole episode."""
    return HistoryObservation(gymnasium.make("WGPBandit-Abrupt-v0", **TASK), length=5)


def make_tests(count: int) -> list[Callable[[], gymnasium.Env]]:
    """Return functions that make environments, each of one held-out episode."""
    return [lambda i=i: SeededEpisodes(make_env(), [TEST_SEED + i]) for i in range(count)]


def make_dqn() -> DQN:
    """A network that predicts the next reward of each arm: gamma = 0, as plays change nothing."""
    env = make_env()
    net = Net(state_shape=env.observation_space.shape, action_shape=2, hidden_sizes=[64, 64])
    policy = DiscreteQLearningPolicy(
        model=net,
        action_space=env.action_space,
        observation_space=env.observation_space,
        eps_training=0.3,
    )
    return DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.0)


def regrets(dqn: DQN, envs: BaseVectorEnv, random: bool = False) -> np.ndarray:
    """Play one episode in each environment, always the same ones; return their regrets."""
    envs.action_space[0].seed(TEST_SEED)
    buffer = VectorReplayBuffer(len(envs) * TASK["horizon"], len(envs))
    collector = Collector(dqn, envs, buffer)
    collector.reset()
    collector.collect(n_episode=len(envs), random=random)
    steps = buffer[:]
    return np.asarray(steps.info.cumulative_regret[steps.truncated])


def main() -> None:
    """Train, then play held-out episodes in both kinds of vector environment."""
    torch.manual_seed(TRAIN_SEED)
    np.random.seed(TRAIN_SEED)  # noqa: NPY002  (Tianshou draws from it)
    train_envs = DummyVectorEnv([make_env] * TRAIN_ENVS)
    train_envs.seed(TRAIN_SEED)
    dqn = make_dqn()
    buffer = VectorReplayBuffer(20_000, TRAIN_ENVS)
    dqn.run_training(
        OffPolicyTrainerParams(
            training_collector=Collector(dqn, train_envs, buffer, exploration_noise=True),
            max_epochs=1,
            epoch_num_steps=6_000,
            collection_step_num_env_steps=50,
            update_step_num_gradient_steps_per_sample=0.2,
            show_progress=False,
            verbose=False,
        )
    )

    test_envs = DummyVectorEnv(make_tests(TEST_ENVS))
    random, trained = regrets(dqn, test_envs, random=True), regrets(dqn, test_envs)
    processes = SubprocVectorEnv(make_tests(PROCESSES))
    difference = np.abs(regrets(dqn, processes) - trained[:PROCESSES]).max()
    processes.close()
    print(
        f"mean regret of {TEST_ENVS} episodes: random {random.mean():.3f}, "
        f"trained {trained.mean():.3f}; Subproc - Dummy {difference:.1e}"
    )


if __name__ == "__main__":
    main()
