"""What a third and three times each constant of Adaptive WGP-UCB do: a table of docs/adaptive.md.

Usage: python scripts/vary_adaptive.py [--runs N] [--seed S] [--only NAME ...]

Plays the agent with one rate of its bank, its priors, its width or a grid a third and three times
as large, on nine tasks with the same seeds, and prints the geometric mean over the tasks of its
mean regret over that of the agent as it is, the same of the medians and of the ninth deciles, and
the tasks that change most. A fading rate is moved by the number of steps for which it counts,
1 / (1 - rate). Some 15 minutes on one core.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import DRIFTS, NOISE_RATIOS, AdaptiveWGPUCB
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.gp.surrogates.bank import RATES, ModelBank
from wgp_agents.kernels.bank_arrays import BankRates
from wgp_gym.types import Array

TASKS: dict[str, tuple[str, float, dict[str, Any]]] = {
    "abrupt, noise 0.1": ("WGPBandit-Abrupt-v0", 1.0, {}),
    "abrupt, noise 1": ("WGPBandit-Abrupt-v0", 1.0, {"noise_std": 1.0}),
    "slow, noise 0.1": ("WGPBandit-Slow-v0", 1.0, {}),
    "slow, noise 1": ("WGPBandit-Slow-v0", 1.0, {"noise_std": 1.0}),
    "stationary, noise 1": ("WGPBandit-Stationary-v0", 1.0, {"noise_std": 1.0}),
    "arms, abrupt": ("WGPBandit-ArmsAbrupt-v0", 0.3, {}),
    "arms, drift": ("WGPBandit-ArmsDrift-v0", 0.3, {}),
    "linear, slow": ("WGPBandit-LinearSlow-v0", 0.3, {}),
    "stock": ("WGPBandit-Stock-v0", 0.2, {}),
}
FADING = ("strategy", "recent", "lasting", "scale", "signal")
COUNTED = (
    "lasting_weight",
    "margin",
    "restart_penalty",
    "carry_over",
    "recenter_at",
    "clip_at",
    "warmup",
)
SEED = 8_080_808
Make = Callable[[Any], AdaptiveWGPUCB]


def with_rates(name: str, factor: float) -> Make:
    """Return a maker of the agent with one rate of its bank moved."""
    old = getattr(RATES, name)
    if name in FADING:
        new: float = 1.0 - (1.0 - old) / factor
    else:
        new = max(round(factor * old), 2) if name == "warmup" else factor * old
    rates = BankRates(**(RATES._asdict() | {name: new}))

    def make(env: Any) -> AdaptiveWGPUCB:
        agent = AdaptiveWGPUCB(env)
        features = agent.bank.features
        agent.bank = ModelBank(agent.action_set, features, DRIFTS, NOISE_RATIOS, rates)
        return agent

    return make


def with_prior(factor: float) -> Make:
    """Return a maker of the agent with all priors of its models moved."""

    def make(env: Any) -> AdaptiveWGPUCB:
        agent = AdaptiveWGPUCB(env)
        models = agent.bank.models
        agent.bank.models = models._replace(prior=factor * models.prior)
        return agent

    return make


def with_parameter(**parameters: Any) -> Make:
    """Return a maker of the agent with other parameters."""
    return lambda env: AdaptiveWGPUCB(env, **parameters)


def variants() -> Iterator[tuple[str, Make]]:
    """Yield what is compared, by name."""
    for times, factor in (("/ 3", 1 / 3), ("x 3", 3.0)):
        for name in (*FADING, *COUNTED):
            yield f"{name} {times}", with_rates(name, factor)
        yield f"prior {times}", with_prior(factor)
        yield f"width {times}", with_parameter(width=0.9 * factor)
        yield f"drifts {times}", with_parameter(drifts=[factor * eps for eps in DRIFTS])
        moved = [factor * ratio for ratio in NOISE_RATIOS]
        yield f"noise ratios {times}", with_parameter(noise_ratios=moved)


def regrets(make: Make, runs: int, seed: int) -> dict[str, Array]:
    """Return the final regrets in each task, `(runs,)`."""
    found = {}
    for k, (name, (environment, share, parameters)) in enumerate(TASKS.items()):
        env = make_vector(environment, max(round(share * runs), 1), **parameters)
        start = seed + 100_000 * k
        found[name] = rollout(make(env), env, start, start)["cumulative_regret"][:, -1]
    return found


def compare(base: dict[str, Array], other: dict[str, Array]) -> str:
    """Return the ratios of means, medians and ninth deciles, and the tasks that change most."""
    cells = []
    for statistic in (np.mean, np.median, lambda x: np.quantile(x, 0.9)):
        ratios = [statistic(other[name]) / statistic(base[name]) for name in base]
        cells.append(f"{np.exp(np.mean(np.log(ratios))):.2f}")
    ratios_of = {name: np.median(other[name]) / np.median(base[name]) for name in base}
    order = sorted(ratios_of, key=ratios_of.__getitem__)
    low, high = order[0], order[-1]
    cells.append(f"{low} {ratios_of[low]:.2f}, {high} {ratios_of[high]:.2f}")
    return " | ".join(cells)


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", nargs="*", default=None, help="names of constants")
    arguments = parser.parse_args()
    chosen = [
        (name, make)
        for name, make in variants()
        if arguments.only is None or any(name.startswith(part) for part in arguments.only)
    ]
    with threadpool_limits(1):
        base = regrets(with_parameter(), arguments.runs, arguments.seed)
        print(
            "| | mean | median | ninth decile | least and most, of medians |\n|---|---|---|---|---|"
        )
        for name, make in tqdm(chosen):
            row = compare(base, regrets(make, arguments.runs, arguments.seed))
            print(f"| {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
