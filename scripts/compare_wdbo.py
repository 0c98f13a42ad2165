"""Play W-DBO and the package of its authors, `wdbo-algo`, on two benchmarks of their paper.

Usage: python scripts/compare_wdbo.py [--function NAME] [--steps T] [--seeds N] [--alone]

Needs `pip install wdbo-algo`, with PyTorch, BoTorch and GPyTorch; `--alone` plays without it. The
benchmarks are test functions of three variables, of which the last is time: it runs from one end
of its range to the other in T steps. Both agents play the points of one grid, the package the one
next to the point that it asks for, and see the same noise, of a twentieth of the function's
variance. The package fits its kernels as it goes, a second or so a step; ours is given the
kernel in space. The package draws from global generators, which are seeded here.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.algorithms.adaptive.w_dbo import WDBO
from wgp_gym.kernels import Matern
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]
Played = tuple[NDArray[np.int64], float]
"""The arms, and the mean number of observations held."""

SIDE = 15  # points to a side of the grid
LENGTHSCALE = 0.3  # of our Matern-5/2 kernel in space
INITIAL = 15  # plays at random
NOISE_SHARE = 0.05  # of the noise in the variance of the function, as in the paper
PEAK_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
PEAK_WIDTHS = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
PEAKS = np.array(
    [
        [0.3689, 0.1170, 0.2673],
        [0.4699, 0.4387, 0.7470],
        [0.1091, 0.8732, 0.5547],
        [0.0381, 0.5743, 0.8828],
    ]
)


def hartmann(z: Floats) -> Floats:
    """Return the Hartmann function of three variables at points of [0, 1]^3, turned over."""
    apart = (PEAK_WIDTHS * (z[..., None, :] - PEAKS) ** 2).sum(axis=-1)
    found: Floats = np.exp(-apart) @ PEAK_HEIGHTS
    return found


def rosenbrock(z: Floats) -> Floats:
    """Return the Rosenbrock function of [-1, 1.5]^3, from points of [0, 1]^3, turned over."""
    x = 2.5 * z - 1.0
    rough = 100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2
    found: Floats = -rough.sum(axis=-1)
    return found


FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {"hartmann": hartmann, "rosenbrock": rosenbrock}


def function_values(name: str, domain: Floats, steps: int) -> Floats:
    """Return the function at all points and times, of mean 0 and variance 1, `(T, n)`."""
    clock = np.linspace(0.0, 1.0, steps)[:, None, None]
    shape = (steps, len(domain))
    z = np.concatenate(
        [np.broadcast_to(domain, (*shape, 2)), np.broadcast_to(clock, (*shape, 1))], axis=-1
    )
    values = FUNCTIONS[name](z)
    found: Floats = (values - values.mean()) / values.std()
    return found


def play_ours(values: Floats, noise: Floats, domain: Floats, seed: int) -> Played:
    """Play W-DBO as it comes, after as many plays at random as the package makes."""
    kernel = Matern(LENGTHSCALE, 2.5)
    problem = BanditProblem(kernel, domain, len(values), NOISE_SHARE**0.5)
    agent = WDBO(problem, initial_plays=INITIAL)
    agent.reset(seed)
    arms, held = np.zeros(len(values), np.int64), 0.0
    for t, row in enumerate(values):
        arms[t] = agent.act()
        agent.observe(int(arms[t]), row[arms[t]] + noise[t])
        held += float(agent.surrogate.held[0]) / len(values)
    return arms, held


def play_package(values: Floats, noise: Floats, domain: Floats, seed: int) -> Played:
    """Play the package as its own example does, time in [0, 1].

    Raises:
        SystemExit: If it is not installed.
    """
    try:
        torch, gpytorch, optimizer = (
            importlib.import_module(name) for name in ("torch", "gpytorch", "wdbo_algo.optimizer")
        )
    except ImportError as error:
        raise SystemExit(f"{error}. Run pip install wdbo-algo, or give --alone.") from error
    np.random.seed(seed)  # noqa: NPY002  (the package draws from it)
    torch.manual_seed(seed)
    torch.set_default_dtype(torch.float64)  # or today's BoTorch mixes precisions, and stops
    matern = gpytorch.kernels.MaternKernel
    box = np.array([[0.0, 1.0]] * domain.shape[1])
    agent: Any = optimizer.WDBOOptimizer(box, matern, matern, [2.5], [1.5], INITIAL)
    arms, held = np.zeros(len(values), np.int64), 0.0
    for t, row in enumerate(values):
        now = t / (len(values) - 1)
        wanted = np.asarray(agent.next_query(now), float)
        arms[t] = ((domain - wanted) ** 2).sum(axis=1).argmin()
        agent.tell(domain[arms[t]], now, float(row[arms[t]] + noise[t]))
        agent.clean(now)
        held += agent.dataset_size() / len(values)
    return arms, held


def main() -> None:
    """Play, and print the mean regret of a step, from the first on and after the random plays."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--function", choices=FUNCTIONS, default="hartmann")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--alone", action="store_true")
    asked = parser.parse_args()
    side = np.linspace(0.0, 1.0, SIDE)
    domain = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    values = function_values(asked.function, domain, asked.steps)
    shortfall = values.max(axis=1, keepdims=True) - values
    print(f"{asked.function}, {asked.steps} steps; at random {shortfall.mean():.3f}")
    players = {"ours": play_ours} | ({} if asked.alone else {"wdbo-algo": play_package})
    for seed in range(asked.seeds):
        noise = np.random.default_rng(seed).normal(0.0, NOISE_SHARE**0.5, asked.steps)
        for name, play in players.items():
            start = time.process_time()
            arms, held = play(values, noise, domain, seed)
            regret = shortfall[np.arange(asked.steps), arms]
            print(
                f"seed {seed} {name:9}: mean regret {regret.mean():.3f}, "
                f"from step {INITIAL + 1} on {regret[INITIAL:].mean():.3f}; "
                f"{held:.0f} observations held on average; {time.process_time() - start:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
