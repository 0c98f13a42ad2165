"""Measure what every agent costs a step, and what forgetting earns on each agent's home task.

Usage: python scripts/bench_agents.py [speed | home] [--runs N] [--json FILE] [--only AGENT ...]

speed: 100 learners x T = 500 of every agent that needs no training, act + observe alone, as a
ratio to WGP-UCB's: GP agents on 100 arms (one dimension), linear ones on 10 arms (d = 2),
K-armed ones on 10. The second of two runs counts. What oracle-discount tries beforehand counts too.

home: each adaptive agent and its stationary parent on the task of its own paper, the same
episodes for both: the regret after the first change, or of the whole drift, with the paired
difference and its 95 % interval.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import wgp_agents
import wgp_gym  # noqa: F401 (registers the environments)
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.benchmark.statistics.estimates import mean_interval
from wgp_agents.registry import AGENTS, ARMS, GP, LINEAR
from wgp_gym.types import Array

LEARNERS = 100
HORIZON = 500
ABRUPT, SLOW = "WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0"
LINEAR_ABRUPT, LINEAR_SLOW = "WGPBandit-LinearAbrupt-v0", "WGPBandit-LinearSlow-v0"
CONTEXTUAL = "WGPBandit-LinearContextual-v0"
ARMS_ABRUPT, ARMS_DRIFT = "WGPBandit-ArmsAbrupt-v0", "WGPBandit-ArmsDrift-v0"
SPEED_TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    GP: (ABRUPT, {}),
    LINEAR: (LINEAR_ABRUPT, {"horizon": HORIZON, "num_arms": 10}),
    ARMS: (ARMS_ABRUPT, {"horizon": HORIZON}),
}
KNOWN = {"variation_budget": "known"}
LOGISTIC = {"link": "logistic"}
# Garivier and Moulines 2011, the first experiment of Section 5.
GM_MEANS = [[0.5, 0.3, 0.4], [0.5, 0.3, 0.9], [0.5, 0.3, 0.4]]
GM11 = {"means": GM_MEANS, "num_arms": 3, "change_points": [3000, 5000], "horizon": 10_000}
# Besson and Kaufmann 2019, Problem 2, with the tunings of their experiments: a twentieth of the
# exploration that theory asks for, and the numbers of samples that they give the other tests.
BK_MEANS = [[0.9, 0.5, 0.4], [0.7, 0.4, 0.5], [0.5, 0.3, 0.6], [0.3, 0.2, 0.7], [0.1, 0.1, 0.8]]
BK19 = {"means": BK_MEANS, "num_arms": 3, "horizon": 5000}
BK_ALPHA = 0.05 * math.sqrt(3 * 4 * math.log(5000) / 5000)
BK_GLR = {"exploration": "constant", "alpha": BK_ALPHA, "delta": (3 * 4 * 5000) ** -0.5}


class Home(NamedTuple):
    """An adaptive agent, its stationary parent, and the task to compare them on."""

    agent: str
    parent: str
    environment: str
    kwargs: dict[str, Any]
    parameters: dict[str, Any]
    parent_parameters: dict[str, Any]


HOMES = (
    *(
        Home(agent, parent, environment, {}, parameters, {})
        for environment in (ABRUPT, SLOW)
        for agent, parent, parameters in (
            ("r-gp-ucb", "igp-ucb", KNOWN),
            ("sw-gp-ucb", "igp-ucb", KNOWN),
            ("wgp-ucb", "igp-ucb", KNOWN),
            ("rand-wgp-ucb", "igp-ucb", KNOWN),
            ("wgp-ts", "gp-ts", KNOWN),
            ("tv-gp-ucb", "gp-ucb", {}),
            ("tv-r-gp-ucb", "gp-ucb", {}),
        )
    ),
    *(
        Home(agent, parent, environment, {}, KNOWN, parent_parameters)
        for environment in (LINEAR_ABRUPT, LINEAR_SLOW, CONTEXTUAL)
        for agent, parent, parent_parameters in (
            ("d-lin-ucb", "lin-ucb", {}),
            ("sw-lin-ucb", "lin-ucb", {}),
            ("restart-lin-ucb", "lin-ucb", {}),
            ("d-rand-lin-ucb", "d-rand-lin-ucb", {"discount": 1.0}),
            ("d-lin-ts", "d-lin-ts", {"discount": 1.0}),
        )
    ),
    *(
        Home("bob-lin-ucb", "lin-ucb", environment, {}, {}, {})
        for environment in (LINEAR_ABRUPT, LINEAR_SLOW, CONTEXTUAL)
    ),
    Home("d-glm-ucb", "d-glm-ucb", LINEAR_ABRUPT, LOGISTIC, KNOWN, {"discount": 1.0}),
    Home("sw-glm-ucb", "sw-glm-ucb", LINEAR_ABRUPT, LOGISTIC, KNOWN, {"window": math.inf}),
    *(
        Home(agent, parent, ARMS_ABRUPT, kwargs, parameters, {})
        for kwargs, changes in (({}, 4), (GM11, 2))
        for agent, parent, parameters in (
            ("d-ucb", "ucb1", {"num_changes": changes}),
            ("sw-ucb", "ucb1", {"num_changes": changes}),
            ("d-ts", "thompson", {"num_changes": changes}),
            ("exp3-s", "exp3", {"num_changes": changes}),
            ("rexp3", "exp3", KNOWN),
            ("cusum-ucb", "ucb1", {"num_changes": changes}),
            ("pht-ucb", "ucb1", {"num_changes": changes}),
            ("m-ucb", "ucb1", {"num_changes": changes}),
            ("glr-ucb", "ucb1", {}),
            ("adswitch", "ucb1", {}),
        )
    ),
    Home("cusum-ucb", "ucb1", ARMS_ABRUPT, BK19, {"num_changes": 4, "num_samples": 150}, {}),
    Home("pht-ucb", "ucb1", ARMS_ABRUPT, BK19, {"num_changes": 4}, {}),
    Home("m-ucb", "ucb1", ARMS_ABRUPT, BK19, {"num_changes": 4, "window": 150}, {}),
    Home("glr-ucb", "ucb1", ARMS_ABRUPT, BK19, BK_GLR, {}),
    Home("adswitch", "ucb1", ARMS_ABRUPT, BK19, {}, {}),
    *(
        Home(agent, parent, ARMS_DRIFT, {}, parameters, {})
        for agent, parent, parameters in (
            ("d-ucb", "ucb1", {"num_changes": 4}),
            ("sw-ucb", "ucb1", {"num_changes": 4}),
            ("d-ts", "thompson", {"num_changes": 4}),
            ("rexp3", "exp3", KNOWN),
        )
    ),
)


def seconds_of(name: str, environment: str, kwargs: dict[str, Any]) -> float:
    """Return the seconds that act and observe of 100 learners take over an episode."""
    env = make_vector(environment, LEARNERS, **kwargs)
    agent = wgp_agents.make(name, env)
    spent = 0.0
    for _ in range(2):  # the first one compiles
        observation, _ = env.reset(seed=1)
        agent.reset(2)
        spent = 0.0
        for _ in range(agent.problem.known_horizon("a benchmark")):
            start = time.perf_counter()
            actions = agent.act(observation)
            spent += time.perf_counter() - start
            observation, rewards, *_ = env.step(actions)
            start = time.perf_counter()
            agent.observe(actions, rewards)
            spent += time.perf_counter() - start
    return spent


def speed(only: list[str]) -> list[dict[str, Any]]:
    """Return a row for each agent: its seconds, and their ratio to WGP-UCB's."""
    base = seconds_of("wgp-ucb", *SPEED_TASKS[GP])
    rows = []
    for name, entry in AGENTS.items():
        if entry.family not in SPEED_TASKS or (only and name not in only):
            continue
        seconds = seconds_of(name, *SPEED_TASKS[entry.family])
        rows.append({"agent": name, "seconds": seconds, "ratio": seconds / base})
        print(f"{name:18}{seconds:9.3f} s{seconds / base:9.2f} x", flush=True)
    return rows


def regret_after(
    environment: str, kwargs: dict[str, Any], runs: int, name: str, parameters: dict[str, Any]
) -> Array:
    """Return the regret of each run from the first change on, `(runs,)`."""
    env = make_vector(environment, runs, **kwargs)
    played = rollout(wgp_agents.make(name, env, **parameters), env, 1_000_000)
    after = np.cumsum(played["changed"], axis=1) > 0
    regret: Array = np.sum(played["regret"] * after, axis=1)
    return regret


def home(runs: int, only: list[str]) -> list[dict[str, Any]]:
    """Return a row for each pair of agent and parent."""
    rows, known = [], {}
    for one in HOMES:
        if only and one.agent not in only:
            continue
        task = one.environment, str(one.kwargs)
        found = []
        for name, parameters in (
            (one.agent, one.parameters),
            (one.parent, one.parent_parameters),
        ):
            key = (*task, name, str(parameters))
            if key not in known:
                known[key] = regret_after(one.environment, one.kwargs, runs, name, parameters)
            found.append(known[key])
        difference = mean_interval(found[0] - found[1])
        row = {
            "environment": one.environment,
            "kwargs": one.kwargs,
            "agent": one.agent,
            "parameters": one.parameters,
            "regret": float(found[0].mean()),
            "parent": one.parent,
            "parent_parameters": one.parent_parameters,
            "parent_regret": float(found[1].mean()),
            "difference": list(map(float, difference)),
        }
        rows.append(row)
        print(line(row), flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    """Return a row as a line of text; a star marks a task with parameters of its own."""
    value, low, high = row["difference"]
    verdict = "better" if high < 0 else "worse" if low > 0 else "no difference shown"
    task = row["environment"].removeprefix("WGPBandit-").removesuffix("-v0")
    words = [
        f"{task + ' *' * bool(row['kwargs']):18}",
        f"{row['agent']:18}{row['regret']:9.1f}  ",
        f"{row['parent']:18}{row['parent_regret']:9.1f}  ",
        f"{value:9.1f} [{low:.1f}, {high:.1f}]  {verdict}",
    ]
    return "".join(words)


def main() -> None:
    """Measure, print, and write the rows where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("speed", "home"), nargs="?", default="speed")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    with threadpool_limits(limits=1):
        rows = speed(options.only) if options.what == "speed" else home(options.runs, options.only)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
