"""stable-baselines3's `evaluate_policy` takes our agents as they are: each has its own `predict`.

It resets an environment itself, and names no seed: an episode that was begun before is not the one
that it plays. `SeededEpisodes` hands out the seeds asked for, one at each reset. A learner starts
anew with every episode. The regret is read off the infos, by the callback that it offers.

`wgp_agents.evaluate` is shorter, and takes models, too: same seeds, same episodes.

    python docs/harnesses/sb3_evaluate.py
"""

import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import wgp_agents
import wgp_gym  # noqa: F401  registers the environments
from wgp_gym.wrappers import HistoryObservation, SeededEpisodes

ID, HORIZON, SEEDS = "WGPBandit-Abrupt-v0", 200, [7, 8, 9]


def make_env(seeds):
    """Return an environment that plays the episodes of these seeds; it shows the last 4 plays."""
    env = HistoryObservation(gymnasium.make(ID, horizon=HORIZON), length=4)
    return Monitor(SeededEpisodes(env, seeds))


def evaluate(policy, env):
    """Return the mean return and the regrets of a policy's episodes."""
    regrets = []

    def keep(local, _):
        if local["done"]:
            regrets.append(local["info"]["cumulative_regret"])

    mean, _ = evaluate_policy(policy, env, n_eval_episodes=len(SEEDS), callback=keep)
    return mean, regrets


if __name__ == "__main__":
    ppo = PPO("MlpPolicy", make_env(SEEDS), n_steps=100, batch_size=100, seed=0)  # untrained
    for name in ("random", "wgp-ucb", "oracle", "ppo"):
        env = make_env(SEEDS)
        envs = DummyVecEnv([lambda seed=seed: make_env([seed]) for seed in SEEDS])
        for form, one in (("one environment", env), ("three at once", envs)):
            policy = ppo if name == "ppo" else wgp_agents.make(name, one)
            if name != "ppo":
                policy.reset(SEEDS[0])  # its own chance; the bounds are those of what it plays
            mean, regrets = evaluate(policy, one)
            print(f"{name}, {form}: return {mean:.3f}, regrets {regrets}")
        found = wgp_agents.evaluate(ppo if name == "ppo" else name, env, SEEDS)
        print(f"{name}, evaluate: return {found.mean_return:.3f}, regrets {found.regrets.tolist()}")
