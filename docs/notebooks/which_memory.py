# %% [markdown]
# # Which memory?
#
# A function drifts while we look for its maximum. Old rewards speak of another function than
# today's, so a learner must forget; but each reward that it forgets was paid for. Four
# memories, and one agent that finds out by itself, on the same 50 episodes.

# %%
import matplotlib.pyplot as plt
import numpy as np

import wgp_agents

TASK, SEEDS = "WGPBandit-Slow-v0", range(50)


def regrets(agent, **parameters):
    """Return the final regret of each episode, of an agent with these parameters."""
    return wgp_agents.evaluate(
        lambda env: wgp_agents.make(agent, env, **parameters), TASK, seeds=SEEDS
    ).regrets


# %% [markdown]
# ## Three memories, as long as each other
#
# A discount eta counts the last 1 / (1 - eta) steps, more or less. A window W counts the last W.
# Restarts every H steps count between 0 and H. Give all three the same length, from 5 steps to
# 200, and everything else alike.

# %%
LENGTHS = [5, 10, 20, 40, 80, 200]
memories = {
    "wgp-ucb": [regrets("wgp-ucb", discount=1 - 1 / length) for length in LENGTHS],
    "sw-gp-ucb": [regrets("sw-gp-ucb", window=length) for length in LENGTHS],
    "r-gp-ucb": [regrets("r-gp-ucb", restart_period=length) for length in LENGTHS],
}
print(f"{'memory':10}", *(f"{length:5}" for length in LENGTHS))
for name, found in memories.items():
    print(f"{name:10}", *(f"{one.mean():5.0f}" for one in found))

# %% [markdown]
# ## One that forgets nothing, and one that is told nothing
#
# IGP-UCB keeps all rewards. The adaptive agent learns the drift, the noise and the unit; it has no
# memory to set.

# %%
others = {name: regrets(name) for name in ("igp-ucb", "adaptive-wgp-ucb", "random")}
for name, found in others.items():
    print(f"{name}: {found.mean():.0f} +- {found.std(ddof=1) / len(found) ** 0.5:.0f}")

# %% [markdown]
# ## The picture
#
# Bars are one standard error. Each memory has a best length, which nobody knows beforehand: a
# window or restarts that are too short by a factor of four cost nearly as much as to forget
# nothing.

# %%
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, found in memories.items():
    mean = [one.mean() for one in found]
    error = [one.std(ddof=1) / np.sqrt(len(one)) for one in found]
    axes.errorbar(LENGTHS, mean, error, marker="o", capsize=3, label=name)
for (name, found), style in zip(others.items(), ("--", "-", ":"), strict=True):
    if name != "random":  # far above
        axes.axhline(found.mean(), color="black", linestyle=style, label=name)
axes.set(xscale="log", xlabel="memory, steps", ylabel="mean regret after 500 steps", ylim=(0, None))
axes.set_xticks(LENGTHS, LENGTHS)
axes.minorticks_off()
axes.legend()
figure.savefig("which_memory.png", dpi=100)

# %% [markdown]
# ## Was it chance?
#
# All played the same episodes with the same noise, so differences are paired.

# %%
best = min((one.mean(), name, k) for name, found in memories.items() for k, one in enumerate(found))
_, name, k = best
difference = memories[name][k] - others["adaptive-wgp-ucb"]
error = difference.std(ddof=1) / len(difference) ** 0.5
print(f"best in hindsight: {name} with a memory of {LENGTHS[k]}")
print(f"its regret less the adaptive agent's: {difference.mean():.0f} +- {error:.0f}")

# %% [markdown]
# More: [the agent with nothing to set](../adaptive.md), and `wgp-gym run sensitivity`, the same
# question with lambda and B ([experiments](../experiments.md)).
