"""Record the trajectories in `tests/golden/` that hold every environment's numbers still.

Usage: `python scripts/record_golden.py [--overwrite] [--folder PATH] [name ...]`

Records only what is missing. A change in the numbers of an existing (id, seed, actions) means a
new version of the id (-v1), so `--overwrite` is for environments that were never released.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import wgp_gym  # noqa: F401  (registers the ids)
from wgp_gym.envs import (
    BanditEnv,
    BeamTask,
    KnobsTask,
    MarkovTask,
    PricingTask,
    SyntheticTask,
    Task,
)
from wgp_gym.registration import ENVIRONMENTS

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"
SEED = 2022
STEPS = 205  # past both changes of the abrupt task
DIGITS = 9
SHOWN = 16  # numbers of an observation that are recorded: of many arms, the first ones
LONG, SHORT = 2000, 240  # a task of more than `LONG` steps is recorded with `SHORT` ones as well
CONTEXTUAL = {"kernel": "linear", "dim": 2, "points_per_dim": 3, "contextual": True}
DRAWN = {"noise_std": [0.05, 1.0], "lengthscale": [0.05, 0.5], "kernel": ["se", "matern"]}
BOX = {"continuous": True, "antennas": 4, "num_beams": 16}
FUNCTIONS = {"branin": {"function": "branin"}, "hartmann6": {"function": "hartmann6"}}
LOGISTIC = {"link": "logistic", "horizon": SHORT, "num_arms": 5}


def cases() -> dict[str, tuple[str, dict[str, Any]]]:
    """List what is recorded, by file name.

    Every id made bare, on the box where it can be, and shortened so that it changes meanwhile.
    """
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for entry in ENVIRONMENTS:
        found[entry.id] = (entry.id, {})
        task = make(entry.id, {}).task
        if task.horizon > LONG:
            found[f"{entry.id}-short"] = (entry.id, {"horizon": SHORT})
        if task.contextual:
            found[f"{entry.id}-logistic"] = (entry.id, LOGISTIC)
        if isinstance(task, KnobsTask):
            found |= {f"{entry.id}-{name}": (entry.id, one) for name, one in FUNCTIONS.items()}
            found[f"{entry.id}-grid"] = (entry.id, {"continuous": False})
        if isinstance(task, MarkovTask):
            found[f"{entry.id}-contextual"] = (entry.id, CONTEXTUAL)
        if isinstance(task, PricingTask):
            found[f"{entry.id}-poisson"] = (entry.id, {"orders": "poisson", "demand": "logit"})
        if isinstance(task, BeamTask):
            found[f"{entry.id}-continuous"] = (entry.id, BOX)
        if isinstance(task, SyntheticTask | MarkovTask):
            found[f"{entry.id}-continuous"] = (entry.id, {"continuous": True})
            found[f"{entry.id}-drawn"] = (entry.id, DRAWN | times_of(task))
    return found


def times_of(task: Task) -> dict[str, Any]:
    """Return laws of change times, where a task has such times."""
    jumps = task.horizon > len(task.schedule.left) > 1
    return {"change_points": "random", "change_rate": [0.005, 0.05]} if jumps else {}


def make(name: str, parameters: dict[str, Any]) -> BanditEnv:
    """Make an environment without Gymnasium's wrappers."""
    env = gymnasium.make(name, **parameters).unwrapped
    assert isinstance(env, BanditEnv)
    return env


def rounded(values: Any) -> Any:
    """Return numbers as lists of `DIGITS` significant digits."""
    flat = [float(f"{value:.{DIGITS}g}") for value in np.ravel(values)]
    return np.reshape(flat, np.shape(values)).tolist()


def record(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Play random actions for `STEPS` steps and return all numbers that must stay."""
    env = make(name, parameters)
    env.action_space.seed(SEED)
    observation, info = env.reset(seed=SEED)
    problem = env.problem
    first = {key: info[key] for key in ("optimal_reward", "optimal_action")}
    actions = [env.action_space.sample() for _ in range(STEPS)]
    observations, rewards, regrets, variations = [observation[:SHOWN]], [], [], []
    for action in actions:
        observation, reward, _, _, info = env.step(action)
        observations.append(observation[:SHOWN])
        rewards.append(reward)
        regrets.append(info["regret"])
        variations.append(info["variation"])
    _, again = env.reset()  # the episode after
    return {
        "id": name,
        "parameters": parameters,
        "seed": SEED,
        "norm_bound": rounded(problem.norm_bound),
        "variation_budget": rounded(problem.variation_budget),
        "first_optimum": {key: rounded(value) for key, value in first.items()},
        "next_optimum": {key: rounded(again[key]) for key in first},
        "actions": [action.tolist() for action in actions],
        "rewards": rounded(rewards),
        "regrets": rounded(regrets),
        "variations": rounded(variations),
        "observations": rounded(observations),
    }


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="files to record, without .json; default: all")
    parser.add_argument("--folder", type=Path, default=GOLDEN, help="where the recordings are")
    parser.add_argument("--overwrite", action="store_true", help="record again what is there")
    options = parser.parse_args()
    if unknown := set(options.names) - set(cases()):
        parser.error(f"names must be some of {', '.join(cases())}. Got {min(unknown)}.")
    return options


def main() -> None:
    """Record the trajectories that are missing, or all that are asked for."""
    options = parse_arguments()
    for file_name, (name, parameters) in cases().items():
        file = options.folder / f"{file_name}.json"
        if options.names and file_name not in options.names:
            continue
        if file.exists() and not options.overwrite:
            print(f"{file.name}: kept")
            continue
        lines = (f'"{key}": {json.dumps(value)}' for key, value in record(name, parameters).items())
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
        print(f"{file.name}: recorded")


if __name__ == "__main__":
    main()
