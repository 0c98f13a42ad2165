"""WGP-UCB's plays as a Minari dataset: recorded, saved, loaded, and played again exactly.

Functions and noise depend on the seed alone, so a recorded seed and the recorded actions give
back every observation and every reward, bit for bit.

    python docs/harnesses/minari_dataset.py
"""

import os
import tempfile

import gymnasium
import minari
import numpy as np

import wgp_agents
import wgp_gym  # noqa: F401  registers the environments

NAME = "wgp-bandit/abrupt/wgp-ucb-v0"


def record(seeds):
    """Record an episode of WGP-UCB for each seed; return the regrets."""
    env = minari.DataCollector(gymnasium.make("WGPBandit-Abrupt-v0", horizon=50))
    agent = wgp_agents.make("wgp-ucb", env)
    regrets = []
    for seed in seeds:
        observation, info = env.reset(seed=seed)
        agent.reset(seed)
        truncated = False
        while not truncated:
            action = agent.act(observation)
            observation, reward, _, truncated, info = env.step(action)
            agent.observe(action, reward)
        regrets.append(info["cumulative_regret"])
    env.create_dataset(
        NAME,
        algorithm_name="WGP-UCB",
        author="you",
        author_email="you@example.org",
        code_permalink="https://example.org/your/code",
        description="WGP-UCB on the abrupt task",
        eval_env="WGPBandit-Abrupt-v0",
    )
    env.close()
    return regrets


def replay(dataset):
    """Play the recorded actions; return the regrets, and how many numbers came out otherwise."""
    env = dataset.recover_environment()
    notes = dataset.storage.get_episode_metadata(dataset.episode_indices)
    regrets, differences = [], 0
    for episode, note in zip(dataset.iterate_episodes(), notes, strict=True):
        observations, rewards = [env.reset(seed=int(note["seed"]))[0]], []
        for action in episode.actions:
            observation, reward, _, _, info = env.step(action)
            observations.append(observation)
            rewards.append(reward)
        differences += int(np.sum(np.array(observations) != episode.observations))
        differences += int(np.sum(np.array(rewards) != episode.rewards))
        regrets.append(info["cumulative_regret"])
    return regrets, differences


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MINARI_DATASETS_PATH"] = folder  # without it: ~/.minari
        recorded = record(seeds=[11, 12, 13])
        dataset = minari.load_dataset(NAME)
        print(f"loaded: {dataset.total_episodes} episodes, {dataset.total_steps} steps")
        replayed, differences = replay(dataset)
    print(f"observations and rewards that differ in the replay: {differences}")
    print(f"regrets: recorded {recorded}, replayed {replayed}")
