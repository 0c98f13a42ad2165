"""The examples in docs/harnesses, each in a process of its own: what they print is right.

Packages are looked for, not imported: TorchRL changes how this process would start others.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import TWO_ARMS
from numpy.typing import NDArray
from test_agents_river import ours, river_seeds

import wgp_agents
from wgp_agents.benchmark.rollout import rollout

EXAMPLES = Path(__file__).parents[1] / "docs" / "harnesses"
ID = "WGPBandit-Abrupt-v0"
SEED, EPISODES, STEPS = 10_000, 100, 20
NAMES = ["WGP-UCB", "random", "river's epsilon-greedy"]
slow = pytest.mark.slow  # each imports a framework, and most train
NUMBER = r"-?\d+\.\d+(?:e[+-]?\d+)?"


def run(script: str, home: Path, *packages: str) -> list[str]:
    """Run an example elsewhere, and return the lines that it prints."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    settings = {"OMP_NUM_THREADS": "1", "HOME": str(home), "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script)],
        capture_output=True,
        text=True,
        cwd=home,
        env=os.environ | settings,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def numbers(line: str, start: str) -> list[float]:
    """Return the decimal numbers in a line that begins as it should."""
    assert line.startswith(start), line
    return [float(found) for found in re.findall(NUMBER, line.removeprefix(start))]


def figures(lines: list[str], pattern: str) -> list[float]:
    """Return the numbers that stand in the last line, at the marks # of a pattern."""
    found = re.fullmatch(pattern.replace("#", f"({NUMBER})"), lines[-1])
    assert found, lines
    return [float(number) for number in found.groups()]


def test_examples_import_what_there_is() -> None:
    for script in EXAMPLES.glob("*.py"):
        for node in ast.walk(ast.parse(script.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wgp_"):
                module = importlib.import_module(str(node.module))
                missing = [name.name for name in node.names if not hasattr(module, name.name)]
                assert not missing, script.name


def check_learning(line: str) -> None:
    """Of two arms that differ by |g|, random play pays |g| / 2 in each of 20 steps."""
    trained, by_chance = numbers(line, "mean regret per episode: trained ")
    assert ", random " in line
    assert abs(by_chance - 46) < 7  # 46.0 +- 0.4 on 10,000 episodes; here 320 or 400
    assert 0 < trained < 0.6 * by_chance


@slow
def test_a_single_file_loop_learns(tmp_path: Path) -> None:
    lines = run("single_file_ppo.py", tmp_path)
    check_learning(lines[-1])
    first, last = (numbers(lines[i], lines[i].split(":")[0]) for i in (0, -2))
    assert first[0] < last[0]  # the return of `RecordEpisodeStatistics`
    assert first[1] > last[1]  # the regret of `final_info`


def episode(agent: Any, env: Any, seed: int, agent_seed: int | None) -> tuple[float, float]:
    """Play an episode; return its regret and its return."""
    env.reset(seed=seed)
    agent.reset(agent_seed)
    paid, over, info = 0.0, False, {}
    while not over:
        action = agent.act()
        _, reward, _, over, info = env.step(action)
        agent.observe(action, reward)
        paid += reward
    return info["cumulative_regret"], paid


@slow
def test_stable_baselines3(tmp_path: Path) -> None:
    lines = run("sb3_evaluate.py", tmp_path)
    assert len(lines) == 12
    env = gymnasium.make(ID, horizon=200)
    forms = "one environment", "three at once", "evaluate"
    for place, name in enumerate(("random", "wgp-ucb", "oracle")):
        for form, line in zip(forms, lines[3 * place : 3 * place + 3], strict=True):
            agent, ends = wgp_agents.make(name, env), []
            for seed in (7, 8, 9):  # where they are played in turn, one stream serves all
                own = seed if seed == 7 or form != "one environment" else None
                ends.append(episode(agent, env, seed, own))
            mean, *regrets = numbers(line, f"{name}, {form}: return ")
            assert regrets == [regret for regret, _ in ends]
            assert mean == pytest.approx(np.mean([paid for _, paid in ends]), abs=6e-4)
    models = [numbers(line, line.split(":")[0]) for line in lines[9:]]
    assert models[0] == models[1] == models[2]


@slow
def test_skrl(tmp_path: Path) -> None:
    lines = run("skrl_ppo.py", tmp_path, "skrl")
    *regrets, difference = numbers(lines[0], "single and vector: regrets ")
    assert difference == 0.0
    assert len(set(regrets)) == 4
    assert min(regrets) > 0
    check_learning(lines[-1])


@slow
def test_rl_zoo3(tmp_path: Path) -> None:
    lines = run("zoo_ppo.py", tmp_path, "rl_zoo3")
    first, last = numbers(lines[-2], "regret per episode in the training: first 8 ")
    assert 30 < first < 60
    assert last < 0.6 * first
    check_learning(lines[-1])


@slow
def test_minari(tmp_path: Path) -> None:
    lines = run("minari_dataset.py", tmp_path, "minari", "h5py", "jax")
    assert lines[0] == "loaded: 3 episodes, 150 steps"
    assert lines[1] == "observations and rewards that differ in the replay: 0"
    env = gymnasium.make(ID, horizon=50)
    env.reset(seed=0)
    agent = wgp_agents.make("wgp-ucb", env)
    ours = [rollout(agent, env, seed)["cumulative_regret"][0, -1] for seed in (11, 12, 13)]
    assert numbers(lines[2], "regrets: recorded ") == 2 * ours


@slow
def test_river(tmp_path: Path) -> None:
    lines = run("river_evaluate.py", tmp_path, "river")
    steps = [ast.literal_eval(line) for line in lines if line.startswith("{")]
    env = gymnasium.make(ID, horizon=200, norm_bound=5.0)
    means = dict(zip(NAMES, numbers(lines[-1], "mean regret per episode: "), strict=True))
    for policy, name in enumerate(NAMES[:2]):
        played = ours(name.lower(), env, river_seeds(seed=7, episodes=4), agent_seed=1)
        regrets = [float(one["cumulative_regret"][0, -1]) for one in played]
        assert numbers(lines[-4 + policy], f"regrets of {name}: ") == regrets
        assert means[name] == pytest.approx(np.mean(regrets), abs=0.006)
        last = [step for step in steps if step["policy_idx"] == policy]
        assert [step["arm"] for step in last] == [one["action"][0, -1] for one in played]
        paid = [one["reward"][0].mean() for one in played]
        np.testing.assert_allclose([step["reward_stat"] for step in last], paid, rtol=1e-12)
    assert means["WGP-UCB"] < 0.6 * means["random"]
    assert means["WGP-UCB"] < means["river's epsilon-greedy"] < means["random"]


def gaps() -> NDArray[np.float64]:
    """Return what the worse arm costs per play, in the held-out episodes of the two-armed task."""
    found = np.empty(EPISODES)
    env: Any = gymnasium.make(ID, **TWO_ARMS)
    for i in range(EPISODES):
        env.reset(seed=SEED + i)
        found[i] = np.ptp(env.unwrapped.expected_rewards())
    return found


@slow
def test_tianshou_learns_and_both_vector_environments_agree(tmp_path: Path) -> None:
    pattern = "mean regret of 100 episodes: random #, trained #; Subproc - Dummy #"
    random, trained, difference = figures(run("tianshou_vector.py", tmp_path, "tianshou"), pattern)
    gap = gaps()
    deviation = np.sqrt((gap**2).sum() * STEPS / 4) / EPISODES
    assert abs(random - gap.mean() * STEPS / 2) < 4 * deviation
    # 0.27 to 0.37 of random play's on training seeds 0 to 4; the same arm for ever has 0.98
    assert 0 <= trained < 0.5 * random
    assert difference == 0


def sweep(seed: int) -> tuple[float, float]:
    """Play arm t at step t; return the summed reward and the regret, read off the functions."""
    env: Any = gymnasium.make(ID, horizon=50)
    env.reset(seed=seed)
    reward = regret = 0.0
    for t in range(50):
        means = env.unwrapped.expected_rewards()
        regret += means.max() - means[t]
        reward += float(env.step(t)[1])
    return reward, regret


@slow
def test_torchrl_plays_the_same_episodes(tmp_path: Path) -> None:
    pattern = "reward: TorchRL #, Gymnasium #; mean regret #, largest difference #"
    ours, plain, regret, difference = figures(run("torchrl_env.py", tmp_path, "torchrl"), pattern)
    rewards, regrets = zip(*(sweep(7 + i) for i in range(4)), strict=True)
    assert ours == pytest.approx(rewards[0], abs=2e-4)  # single precision, four decimals
    assert plain == pytest.approx(rewards[0], abs=1e-4)
    assert regret == pytest.approx(np.mean(regrets), abs=1e-4)
    assert difference < 1e-4


def random_regret() -> float:
    """Play the held-out episodes one by one, with the arms that the example draws at random."""
    batch: Any = gymnasium.make_vec(ID, EPISODES, "vector_entry_point", **TWO_ARMS)
    batch.action_space.seed(0)
    played = np.array([batch.action_space.sample() for _ in range(STEPS)])
    env: Any = gymnasium.make(ID, **TWO_ARMS)
    total = 0.0
    for i in range(EPISODES):
        env.reset(seed=SEED + i)
        means = env.unwrapped.expected_rewards()
        total += (means.max() - means[played[:, i]]).sum()
    return total / EPISODES


@slow
def test_rllib_learns(tmp_path: Path) -> None:
    pattern = "mean regret of 100 episodes: random #, trained #"
    random, trained = figures(run("rllib_register.py", tmp_path, "ray"), pattern)
    assert random == pytest.approx(random_regret(), abs=1e-3)
    # 0.20 to 0.27 of random play's on training seeds 0 to 3; the same arm for ever has 0.72
    assert 0 <= trained < 0.5 * random
