"""The command that compiles everything beforehand: for container images, and for the impatient."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

from wgp_agents.cli.terminal import complain, say

__all__ = ["play", "run"]

TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "arms": ("WGPBandit-Abrupt-v0", {}),
    "K arms": ("WGPBandit-ArmsAbrupt-v0", {}),
    "linear arms": ("WGPBandit-LinearAbrupt-v0", {}),
    "a box": ("WGPBandit-Abrupt-v0", {"continuous": True}),
    "changing arms": ("WGPBandit-LinearContextual-v0", {}),
}
STEPS = 70  # past the steps after which inverses are computed anew


def run(options: argparse.Namespace) -> int:
    """Play some steps with every agent that needs no extra; return the exit code."""
    from tqdm import tqdm

    from wgp_agents.kernels.jit import cache_folder
    from wgp_agents.registry import names

    del options
    folder = cache_folder()
    if folder is None:
        complain("warm-up", "There is no folder to keep compiled code in: see the warning above.")
        return 2
    for name in tqdm(names(), unit="agent", leave=False):
        start = time.perf_counter()
        played = {kind: play(name, kind) for kind in TASKS}
        seconds = time.perf_counter() - start
        done = [kind for kind, plays in played.items() if plays]
        skipped = [kind for kind, plays in played.items() if not plays]
        note = f"; skipped: {', '.join(skipped)}" if skipped else ""
        tqdm.write(f"{name:18}{seconds:6.1f} s  {', '.join(done)}{note}")
    size = sum(file.stat().st_size for file in folder.iterdir())
    say(f"Compiled code: {size / 1e6:.1f} MB in {folder}")
    return 0


def play(name: str, kind: str) -> bool:
    """Play some steps of one agent on a kind of task; return False if it refuses such tasks."""
    import gymnasium

    import wgp_agents
    import wgp_gym  # noqa: F401 (registers the environments)

    id, kwargs = TASKS[kind]
    env = gymnasium.make(id, **kwargs)
    observation, _ = env.reset(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            agent = wgp_agents.make(name, env)
        except ValueError:  # not a task of this agent
            return False
        agent.reset(0)
        for _ in range(STEPS):
            action = agent.act(observation)
            observation, reward, *_ = env.step(action)
            agent.observe(action, reward)
    return True
