"""Where Adaptive WGP-UCB may fail: odd rewards, and changes that its plays do not show.

Usage: python scripts/stress_adaptive.py odd | hidden | locks [--learners B]

odd: twenty arms under a squared-exponential kernel, noise 0.1. The share of plays within 0.1 of
the best arm, 100 to 200 steps after an odd reward, or after a shift of all.

hidden: ten independent arms, noise 0.1; the best one stays at 0.5, another rises from 0.2 to 0.9
at T / 4. Regret, and the share of the last tenth of the plays on the new best arm, by the
probability of exploration; and of WGPBandit-Hidden-v0 with one change at T / 4 the share of plays
in the last tenth nearer to the new optimum's reward than to the old one's.

locks: the abrupt and the slow task, B runs each (take 1,000): mean, median and largest regret, and
the share of runs above three medians of the agent as it is, by width and exploration.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from wgp_agents import make
from wgp_agents.base import Agent
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_gym.kernels import Empirical, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

NOISE, SEED, STEPS, ODD_STEP, LOCK_SEED = 0.1, 5, 350, 150, 6_060_606
LINE = np.linspace(0.0, 1.0, 20)
WAVE = np.sin(9.0 * LINE)

Added = Callable[[int, Array], Array]  # what is added to rewards, of the step and uniform draws

ODD: dict[str, Added] = {
    "nothing": lambda t, u: 0.0 * u,
    "one of 100": lambda t, u: np.full_like(u, 100.0 * (t == ODD_STEP)),
    "one of 10,000": lambda t, u: np.full_like(u, 1e4 * (t == ODD_STEP)),
    "one of -1e30": lambda t, u: np.full_like(u, -1e30 * (t == ODD_STEP)),
    "the first, by 100": lambda t, u: np.full_like(u, 100.0 * (t == 0)),
    "the first, by -100": lambda t, u: np.full_like(u, -100.0 * (t == 0)),
    "each of 100 with 1 %": lambda t, u: np.where(u < 0.01, 100.0, 0.0),
    "all by 100": lambda t, u: np.full_like(u, 100.0 * (t >= ODD_STEP)),
    "all by -100": lambda t, u: np.full_like(u, -100.0 * (t >= ODD_STEP)),
}


def played(agent: Agent, values: Array, added: Added = ODD["nothing"]) -> NDArray[np.int64]:
    """Return the plays `(T, B)` on arms of the values `(T, n)`."""
    rng = np.random.default_rng(SEED)
    agent.reset(SEED)
    plays = []
    for t, value in enumerate(values):
        arms = agent.act()
        noise, uniform = NOISE * rng.normal(size=len(arms)), rng.random(len(arms))
        agent.observe(arms, value[arms] + noise + added(t, uniform))
        plays.append(arms)
    return np.array(plays)


def odd(learners: int) -> None:
    """Print the share of good plays after each kind of odd reward."""
    good = WAVE.max() - 0.1 < WAVE
    each = np.full(learners, NOISE)
    for name, added in ODD.items():
        problem = BanditProblem(SquaredExponential(0.2), LINE[:, None], 500, each)
        plays = played(make("adaptive-wgp-ucb", problem), np.tile(WAVE, (STEPS, 1)), added)
        share = good[plays[ODD_STEP + 100 :]].mean()
        print(f"{name:22} {100 * share:5.1f} % good plays")


def hidden(learners: int) -> None:
    """Print regret and the share of plays on the new best arm, with and without exploration."""
    values = np.full((2, 10), 0.2)
    values[:, 3] = 0.5
    values[1, 7] = 0.9
    each, places = np.ones(learners), np.linspace(0.0, 1.0, 10)[:, None]
    for horizon in (1000, 5000):
        problem = BanditProblem(Empirical(np.eye(10)), places, horizon, NOISE * each, each)
        agents = {
            f"exploration {e:g}": make("adaptive-wgp-ucb", problem, exploration=e)
            for e in (0.0, 0.002, 0.02)
        } | {"wgp-ucb": make("wgp-ucb", problem)}
        for name, agent in agents.items():
            paid = np.repeat(values, (horizon // 4, horizon - horizon // 4), axis=0)
            plays = played(agent, paid)
            regret = (paid.max(axis=1, keepdims=True) - np.take_along_axis(paid, plays, 1)).sum(0)
            share = (plays[-horizon // 10 :] == 7).mean()
            print(f"T {horizon}, {name:18} regret {regret.mean():5.0f}, {100 * share:3.0f} % found")
        hidden_in_rkhs(horizon, learners)


def hidden_in_rkhs(horizon: int, learners: int) -> None:
    """Print the same of one hidden change of a function in the RKHS."""
    agents: dict[str, dict[str, float]] = {
        f"exploration {e:g}": {"exploration": e} for e in (0.0, 0.002, 0.02)
    }
    for name, parameters in (agents | {"wgp-ucb": {}, "igp-ucb": {}}).items():
        change = horizon // 4
        env = make_vector(
            "WGPBandit-Hidden-v0", learners, horizon=horizon, change_points=[change + 1]
        )
        known = "adaptive-wgp-ucb" if parameters else name
        found = rollout(make(known, env, **parameters), env, SEED, SEED)
        best = found["optimal_reward"]
        gap = best[:, -1:] - best[:, :1]
        share = (found["regret"][:, -horizon // 10 :] < gap / 2).mean()
        regret = found["cumulative_regret"][:, -1]
        print(
            f"T {horizon}, {name:18} regret {regret.mean():5.0f}, median {np.median(regret):5.0f}, "
            f"{100 * share:3.0f} % found, in the RKHS",
            flush=True,
        )


def locks(learners: int) -> None:
    """Print how regrets are spread, by what may be set against runs that miss a change."""
    options: dict[str, dict[str, float]] = {
        "as it is": {},
        "width 1.2": {"width": 1.2},
        "exploration 0.003": {"exploration": 0.003},
        "exploration 0.01": {"exploration": 0.01},
        "exploration 0.03": {"exploration": 0.03},
    }
    for task, noise in itertools.product(("Abrupt", "Slow", "Stationary"), (0.1, 1.0)):
        limit = np.inf
        for name, parameters in options.items():
            env = make_vector(f"WGPBandit-{task}-v0", learners, noise_std=noise)
            agent = make("adaptive-wgp-ucb", env, **parameters)
            regret = rollout(agent, env, LOCK_SEED, LOCK_SEED)["cumulative_regret"][:, -1]
            middle = float(np.median(regret))
            limit = 3 * middle if np.isinf(limit) else limit
            share = 100 * float((regret > limit).mean())
            print(
                f"{task} noise {noise:g}, {name:18} mean {regret.mean():5.0f}, "
                f"median {middle:4.0f}, largest {regret.max():5.0f}, beyond {share:4.1f} %",
                flush=True,
            )


def main() -> None:
    """Read the command line and run what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["odd", "hidden", "locks"])
    parser.add_argument("--learners", type=int, default=100)
    arguments = parser.parse_args()
    with threadpool_limits(1):
        {"odd": odd, "hidden": hidden, "locks": locks}[arguments.what](arguments.learners)


if __name__ == "__main__":
    main()
