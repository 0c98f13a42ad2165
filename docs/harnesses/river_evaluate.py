"""river's `bandit.evaluate` compares our agents with its own policies, on our environments.

python docs/harnesses/river_evaluate.py
"""

import gymnasium
import numpy as np
from river import bandit, stats

import wgp_gym  # noqa: F401  registers the environments
from wgp_agents.benchmark.river import KeepRegret, RiverPolicy

EPISODES = 4

# river hides the episode from its policies, so B is fixed here, and the learners are told it.
env = KeepRegret(gymnasium.make("WGPBandit-Abrupt-v0", horizon=200, norm_bound=5.0))
policies = {
    "WGP-UCB": RiverPolicy("wgp-ucb", env, seed=1),
    "random": RiverPolicy("random", env, seed=1),
    "river's epsilon-greedy": bandit.EpsilonGreedy(epsilon=0.1, seed=1),
}
trace = bandit.evaluate(
    policies=list(policies.values()),
    env=env,
    reward_stat=stats.Mean(),
    n_episodes=EPISODES,
    seed=7,
)
for step in trace:
    if step["step"] == 199:
        print(step)
regrets = np.reshape(env.regrets, (EPISODES, len(policies)))
for name, column in zip(policies, regrets.T, strict=True):
    print(f"regrets of {name}: {column.tolist()}")
means = zip(policies, regrets.mean(axis=0), strict=True)
print("mean regret per episode:", ", ".join(f"{name} {mean:.2f}" for name, mean in means))
