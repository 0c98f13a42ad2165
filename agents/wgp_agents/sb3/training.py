"""Training on freshly drawn episodes, with our regret on episodes that are held out."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from tqdm import tqdm

from wgp_agents.baselines import Random
from wgp_agents.benchmark.report import write_csv
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.sb3.agent import SB3Agent
from wgp_agents.sb3.embedding import PlayEmbedding
from wgp_agents.sb3.model import algorithm, save_model
from wgp_agents.sb3.vec_env import NativeVecEnv
from wgp_gym.kernels import Array
from wgp_gym.validation import check_int, reject
from wgp_gym.wrappers import VectorHistoryObservation

__all__ = ["held_out_regret", "settings", "train"]

HELD_OUT = 1_000_000_000  # the first of the seeds that no training sees
HELD_OUT_EPISODES = 100
CHECKPOINTS = 20
SHORTEST = 20_000  # steps between two of them: each plays 100 episodes
NETWORK = ("net_arch", "lstm_hidden_size")
SHOWN = ("history", "reward_scale", "frequencies", "deterministic")
OWN = ("steps", "envs", "groups", "policy", *SHOWN, *NETWORK)


def settings(algo: str, environment: str) -> dict[str, Any]:
    """Return the tuned settings of an algorithm for a task, from settings.toml.

    Raises:
        ValueError: If there is no such algorithm.
    """
    algorithm(algo)
    text = files("wgp_agents.sb3").joinpath("settings.toml").read_text("utf-8")
    table = tomllib.loads(text)[algo]
    common: dict[str, Any] = {k: v for k, v in table.items() if not isinstance(v, dict)}
    special: dict[str, Any] = table.get(environment, {})
    return common | special


def held_out_regret(
    environment: str, kwargs: dict[str, Any], make_agent: Callable[[Any], Any]
) -> Array:
    """Return the final regrets of an agent on the episodes that are held out, `(100,)`."""
    env = make_vector(environment, HELD_OUT_EPISODES, **kwargs)
    regret: Array = rollout(make_agent(env), env, HELD_OUT)["cumulative_regret"][:, -1]
    return regret


class Progress(BaseCallback):
    """Shows a bar, and at each checkpoint measures the regret and saves the model."""

    def __init__(self, steps: int, measure: Callable[[Any, int], None]) -> None:
        super().__init__()
        self._bar = tqdm(total=steps, unit="step", unit_scale=True, desc="training")
        self._every = max(steps // CHECKPOINTS, SHORTEST)
        self._next = self._every
        self._measure = measure

    def _on_step(self) -> bool:
        self._bar.update(self.num_timesteps - self._bar.n)
        if self.num_timesteps >= self._next:
            self._next += self._every
            self._measure(self.model, self.num_timesteps)
        return True

    def _on_training_end(self) -> None:
        self._bar.close()


def train(
    algo: str,
    environment: str,
    steps: int | None,
    seed: int,
    path: Path,
    kwargs: dict[str, Any] | None = None,
    overrides: dict[str, Any] | None = None,
) -> list[dict[str, float]]:
    """Train a model, and write it, its notes and its learning curve.

    It seeds the global generators, as stable-baselines3 does, and keeps torch to one thread: run
    it in a process of its own.

    Args:
        algo: "ppo", "a2c", "dqn" or "recurrent-ppo".
        environment: The environment's id.
        steps: Steps to train, over all episodes; None takes the settings'.
        seed: What all randomness follows from.
        path: The model's file, .zip; its notes and curve stand beside it, as .json and .csv.
        kwargs: What the environment is made with.
        overrides: Settings in the place of those of settings.toml.

    Returns:
        The learning curve: steps, mean regret on 100 held-out episodes, and that as a share of
        random play's.

    Raises:
        ValueError: If there is no such algorithm, it cannot play the task, or a number is out of
            its range.
    """
    check_int("seed", seed, "train", 0)
    chosen, made_with = settings(algo, environment) | (overrides or {}), kwargs or {}
    steps = check_int("steps", chosen["steps"] if steps is None else steps, "train", 1)
    torch.set_num_threads(1)
    env = training_env(environment, chosen, made_with)
    if algo == "dqn" and env.problem.continuous:
        reject("algo", "train", "'ppo', 'a2c' or 'recurrent-ppo' on a continuous task", algo)
    model = build(algo, env, seed, chosen)
    env.seed(training_seed(seed))  # after the model, which gives the environment its own seed
    random_regret = float(held_out_regret(environment, made_with, Random).mean())
    curve: list[dict[str, float]] = []
    read = {key: chosen[key] for key in ("history", "reward_scale", "deterministic")}
    notes = {"algo": algo, "environment": environment, "kwargs": made_with, "seed": seed}
    notes |= {"dim": env.problem.domain.shape[1], "settings": chosen}
    notes |= read

    def _measure(trained: Any, done: int) -> None:
        def _agent(env: Any) -> SB3Agent:
            return SB3Agent(env, algo=algo, model=trained, **read)

        regret = held_out_regret(environment, made_with, _agent)
        share = float(regret.mean()) / random_regret
        curve.append({"steps": done, "regret": float(regret.mean()), "share_of_random": share})
        save_model(trained, path, notes | {"steps": done, "curve": curve[-1]})
        write_csv(path.with_suffix(".csv"), curve)

    model.learn(steps, callback=Progress(steps, _measure))
    if not curve or curve[-1]["steps"] < model.num_timesteps:
        _measure(model, int(model.num_timesteps))
    return curve


def training_env(
    environment: str, chosen: dict[str, Any], made_with: dict[str, Any]
) -> NativeVecEnv:
    """Return the episodes of the training, in groups that stand at different t."""
    groups, scale = chosen["groups"], chosen["reward_scale"]
    raw = [make_vector(environment, chosen["envs"] // groups, **made_with) for _ in range(groups)]
    shown = [VectorHistoryObservation(env, chosen["history"], scale) for env in raw]
    return NativeVecEnv(shown, scale)


def training_seed(seed: int) -> int:
    """Return the first seed of the training's episodes: others for each seed, none held out."""
    drawn = int(np.random.SeedSequence([seed, 1]).generate_state(1, np.uint64)[0])
    return drawn % (HELD_OUT - 10_000)


def build(algo: str, env: NativeVecEnv, seed: int, chosen: dict[str, Any]) -> Any:
    """Return an untrained model."""
    shown = {"dim": env.problem.domain.shape[1], "frequencies": chosen["frequencies"]}
    network = {key: chosen[key] for key in NETWORK if key in chosen}
    network |= {"features_extractor_class": PlayEmbedding, "features_extractor_kwargs": shown}
    given = {key: value for key, value in chosen.items() if key not in OWN}
    start = given.pop("learning_rate_start")
    return algorithm(algo)(
        chosen["policy"],
        env,
        seed=seed,
        device="cpu",
        policy_kwargs=network,
        learning_rate=Linear(start),
        **given,
    )


class Linear:
    """A learning rate that falls in a straight line to zero; a class, so that models pickle it."""

    def __init__(self, start: float) -> None:
        self.start = start

    def __call__(self, left: float) -> float:
        """Return the rate when a share `left` of the training is left."""
        return self.start * max(left, 0.0)  # the last rollout may end beyond the last step
