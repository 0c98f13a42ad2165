# %% [markdown]
# # RL beside bandits
#
# A policy that was trained on thousands of episodes knows the law of the task. A bandit algorithm
# knows a kernel, or nothing, and learns within the episode. Both play the same 40 episodes, which
# no training saw. It needs the extra `rl`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import wgp_agents
import wgp_gym

PLAYERS = ("ppo", "dqn", "wgp-ucb", "adaptive-wgp-ucb", "learned-wgp-ucb")
TASKS = ("WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0")
seeds = wgp_gym.seeds("test")[:40]  # ranges that no purpose shares: training has its own

# %% [markdown]
# ## The match
#
# PPO and DQN are stable-baselines3's, trained before on freshly drawn episodes of each task; they
# are shown their last 20 plays. The rest start from nothing in each episode. `evaluate` takes a
# name, or any model with `predict`.

# %%
found = {
    (task, player): wgp_agents.evaluate(player, task, seeds=seeds)
    for task in TASKS
    for player in PLAYERS
}
for task in TASKS:
    print(task)
    for player in PLAYERS:
        one = found[task, player]
        median = np.median(one.regrets)
        print(f"  {player}: {one.mean_regret:.0f} +- {one.regret_error:.0f}, median {median:.0f}")

# %% [markdown]
# ## The picture
#
# A dot is an episode; the bar is the mean. A trained policy may be good in most episodes, and fail
# badly in a few that are unlike the rest: look at the dots far to the right.

# %%
figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for axes, task in zip(panels, TASKS, strict=True):
    for row, player in enumerate(PLAYERS):
        one = found[task, player]
        axes.plot(one.regrets, [row] * len(seeds), "o", alpha=0.3, color="tab:blue")
        axes.plot(one.mean_regret, row, "|", markersize=22, markeredgewidth=3, color="black")
    axes.set(xscale="log", xlabel="final regret", title=task)
    axes.set_yticks(range(len(PLAYERS)), PLAYERS)
panels[0].invert_yaxis()
figure.savefig("rl_beside_bandits.png", dpi=100)

# %% [markdown]
# ## In pairs
#
# The truth and the noise follow from the seed alone, so a difference on the same seed is the
# players' doing.

# %%
for task in TASKS:
    less = found[task, "dqn"].regrets - found[task, "adaptive-wgp-ucb"].regrets
    print(
        f"{task}: the adaptive agent is ahead of DQN in {(less > 0).sum()} of {len(seeds)} episodes"
    )

# %% [markdown]
# Read with care: they know different things beforehand, there is one training of each, and the
# policies see the clock. All of that, more players and 100 episodes: [Beside reinforcement
# learning](../rl.md).
