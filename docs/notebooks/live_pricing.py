# %% [markdown]
# # Live pricing
#
# A shop chooses one of thirteen prices each day, for a year. What a day pays is known a week
# later. Demand moves with the season, which the shop does not know. `LiveBandit` decides; a season
# that we made up answers.

# %%
import matplotlib.pyplot as plt
import numpy as np

from wgp_agents.live import Arms, LiveBandit

DAYS, DELAY, NOISE = 365, 7, 400.0
PRICES = [round(8.0 + 0.5 * k, 2) for k in range(13)]  # 8.00 to 14.00
rng = np.random.default_rng(7)

# %% [markdown]
# ## The season
#
# The day's expected profit is a hill over the prices. Its top wanders between 9 and 13 in the
# course of the year.

# %%
day = np.arange(DAYS)
best_price = 11.0 + 2.0 * np.sin(2 * np.pi * day / DAYS)
expected = 5_000.0 - 250.0 * (np.array(PRICES) - best_price[:, None]) ** 2  # (days, prices)
paid = expected + rng.normal(0.0, NOISE, (DAYS, 1))  # a day's luck is that of all prices

# %% [markdown]
# ## A year, asked and told
#
# `ask` in the morning; `tell` a week later, when the books are closed. In a real shop
# `storage="sqlite:///shop.db"` keeps it all, and `ask` and `tell` may come from different
# processes.

# %%
seller = LiveBandit(Arms(PRICES), name="espresso", seed=0)
chosen, waiting = [], []
for today in range(DAYS):
    decision = seller.ask()
    arm = PRICES.index(decision.arm)
    chosen.append(arm)
    waiting.append((today + DELAY, decision.id, paid[today, arm]))
    while waiting[0][0] <= today:
        _, number, reward = waiting.pop(0)
        seller.tell(number, reward)

# %% [markdown]
# ## What it earned
#
# Beside the best price of each day, which nobody knows; the best single price of the year, known
# in hindsight; and a price drawn anew each day.

# %%
top = expected.max(axis=1).sum()
earned = {
    "LiveBandit": expected[day, chosen].sum(),
    "the best single price, in hindsight": expected.sum(axis=0).max(),
    "a random price": expected.mean(axis=1).sum(),
}
for name, one in earned.items():
    print(f"{name}: {100 * (1 - one / top):.1f} % of the year's best profit lost")

# %% [markdown]
# ## The picture
#
# Dots are the shop's prices, the line is the best price of the day. Some dots are away from the
# line on purpose: at 3 % of its decisions the bandit tries a price at random, so that it notices
# when another has become better.

# %%
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.plot(day, best_price, color="tab:orange", label="best price, not known to the shop")
axes.plot(day, np.array(PRICES)[chosen], ".", color="tab:blue", label="price that was chosen")
axes.set(xlabel="day", ylabel="price")
axes.legend()
figure.savefig("live_pricing.png", dpi=100)

# %% [markdown]
# ## Why it decided so
#
# The report says for each price what it is expected to earn now, with a band, and why the last
# decision was taken.

# %%
print(seller.report().table())

# %% [markdown]
# More: [Live](../live.md), which says how well it decides beside other packages, what it costs and
# what it does not do.
