"""stable-baselines3's `evaluate_policy` takes our agents as they are: each has its own `predict`.

Single environments, wrapped or not, and stable-baselines3's vector environments; a learner starts
anew with every episode. The regret is read off the infos, by the callback that it offers.

    python docs/harnesses/sb3_evaluate.py
"""

import gymnasium
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import wgp_agents
import wgp_gym  # noqa: F401  registers the environments

ID, SEED = "WGPBandit-Abrupt-v0", 7


def evaluate(name, env, episodes):
    """Return the mean return and the regrets of an agent's episodes."""
    regrets = []

    def keep(local, _):
        if local["done"]:
            regrets.append(local["info"]["cumulative_regret"])

    agent = wgp_agents.make(name, env)
    agent.reset(SEED)  # its own chance; `evaluate_policy` starts the first episode
    mean, _ = evaluate_policy(agent, env, n_eval_episodes=episodes, callback=keep)
    return mean, regrets


if __name__ == "__main__":
    for name in ("random", "wgp-ucb", "oracle"):
        env = Monitor(gymnasium.make(ID, horizon=200))
        env.reset(seed=SEED)
        mean, regrets = evaluate(name, env, episodes=3)
        print(f"{name}, one environment: return {mean:.3f}, regrets {regrets}")
        envs = make_vec_env(ID, n_envs=3, seed=SEED, env_kwargs={"horizon": 200})
        envs.reset()
        mean, regrets = evaluate(name, envs, episodes=3)
        print(f"{name}, three at once: return {mean:.3f}, regrets {regrets}")
