"""Play agents on the hard instance of lower bounds, beside the regret that nobody can do without.

Usage: python -m scripts.bench_lower_bound [--agents NAME ...] [--runs N] [--seed S]

For each T and B_T the budget says how many blocks `WGPBandit-LowerBound-v0` has and how high its
needles are. "least" is `least_regret`, "rate" its order, R (M blocks T)^{1/2}; then each agent's
mean regret over the least one, WGP-UCB told B_T. Where the ratio is the same in all rows, an
agent has the rate of the bound.
"""

from __future__ import annotations

import argparse
import itertools
import math
from typing import Any

import wgp_agents
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_gym.envs.lower_bound import least_regret

NAME = "WGPBandit-LowerBound-v0"
HORIZONS, BUDGETS = (250, 500, 1000), (30.0, 100.0, 300.0)
AGENTS = ("wgp-ucb", "adaptive-wgp-ucb", "random")
KNOWN = {"wgp-ucb": {"variation_budget": "known"}}
NEEDLES, NOISE = 10, 0.1


def bound(env: Any, horizon: int) -> tuple[int, float, float]:
    """Return the number of blocks, the mean least regret of the episodes drawn, and its order."""
    blocks = env.unwrapped.task.schedule.num_knots
    heights = [float(episode.optimal_reward.max()) for episode in env.unwrapped.dynamics.episodes]
    least = [blocks * least_regret(height, horizon / blocks, NEEDLES, NOISE) for height in heights]
    return blocks, sum(least) / len(least), NOISE * math.sqrt(NEEDLES * blocks * horizon)


def main() -> None:
    """Print a row for each T and B_T."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--agents", nargs="+", default=AGENTS, help="agents to play")
    parser.add_argument("--runs", type=int, default=20, help="episodes of each row")
    parser.add_argument("--seed", type=int, default=2024, help="of the first episode")
    options = parser.parse_args()
    print("| T | B_T | blocks | least | rate |" + "".join(f" {a} |" for a in options.agents))
    print("|---:" * (5 + len(options.agents)) + "|")
    for horizon, budget in itertools.product(HORIZONS, BUDGETS):
        ratios = []
        for name in options.agents:
            env = make_vector(
                NAME,
                options.runs,
                horizon=horizon,
                variation_budget=budget,
                num_needles=NEEDLES,
                noise_std=NOISE,
            )
            agent: Any = wgp_agents.make(name, env, **KNOWN.get(name, {}))
            played = rollout(agent, env, seed=options.seed)
            blocks, least, rate = bound(env, horizon)
            ratios.append(float(played["cumulative_regret"][:, -1].mean()) / least)
        numbers = "".join(f" {ratio:.2f} |" for ratio in ratios)
        print(
            f"| {horizon} | {budget:g} | {blocks} | {least:.2f} | {rate:.2f} |{numbers}", flush=True
        )


if __name__ == "__main__":
    main()
