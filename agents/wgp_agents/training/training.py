"""Training on freshly drawn episodes, with our regret on episodes that are held out."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from tqdm import tqdm

from wgp_agents.algorithms.learned.sb3.agent import SB3Agent
from wgp_agents.algorithms.learned.sb3.embedding import NETWORK, policy_kwargs
from wgp_agents.algorithms.learned.sb3.model import PACKAGES, algorithm, settings
from wgp_agents.algorithms.learned.sb3.notes import NETWORK_RULES, brief, network_of, notes_of
from wgp_agents.algorithms.learned.sb3.stored import MOST_WEIGHTS, count_weights
from wgp_agents.algorithms.learned.sb3.vec_env import NativeVecEnv
from wgp_agents.algorithms.learned.weights_file import state_file
from wgp_agents.algorithms.references.baselines import Random
from wgp_agents.base import Agent
from wgp_agents.benchmark.experiment import TaskSpec
from wgp_agents.benchmark.files import JSON, versions, write_csv, write_whole
from wgp_agents.benchmark.inputs import files_of
from wgp_agents.benchmark.output import locked
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.training.earlier import finished, interrupted, settings_of
from wgp_agents.training.resume import State, restore, state_of, write_state
from wgp_agents.training.worlds import training_seed
from wgp_gym import seeds
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array
from wgp_gym.validation import check_int, reject
from wgp_gym.wrappers import VectorHistoryObservation

__all__ = ["held_out_regret", "save_model", "settings", "train"]

HELD_OUT = seeds("validation").start
HELD_OUT_EPISODES = 100
CHECKPOINTS = 20
SHORTEST = 20_000  # steps between two of them: each plays 100 episodes
READ = ("reward_scale", "deterministic")  # by the agent, from the notes
NOT_KEPT = (  # what a training needs, but not the trained policy
    "replay_buffer",
    "rollout_buffer",
    "ep_info_buffer",
    "learning_rate",
    "lr_schedule",
    "_last_obs",
    "_last_original_obs",
    "_last_episode_starts",
)
OWN = ("steps", "envs", "groups", "policy", "history", "frequencies", *READ, *NETWORK)


def held_out_regret(
    environment: str, kwargs: Mapping[str, object], make_agent: Callable[[Any], Agent]
) -> Array:
    """Return the final regrets of an agent on the episodes that are held out, `(100,)`."""
    env = make_vector(environment, HELD_OUT_EPISODES, **kwargs)
    regret: Array = rollout(make_agent(env), env, HELD_OUT)["cumulative_regret"][:, -1]
    return regret


class Progress(BaseCallback):
    """Shows a bar, and at each checkpoint measures the regret and saves model, notes and curve.

    With `found`, the state of a training that was interrupted, it goes on from there. `curve` is
    the learning curve so far.
    """

    def __init__(
        self, steps: int, path: Path, notes: dict[str, Any], found: State | None = None
    ) -> None:
        super().__init__()
        self.curve: list[dict[str, float]] = found["curve"] if found else []
        self._found, self._saved = found, -1
        self._bar = tqdm(total=steps, unit="step", unit_scale=True, desc="training")
        self._every = max(steps // CHECKPOINTS, SHORTEST)
        self._next = self._every * (1 + len(self.curve))
        self._path, self._notes = path, notes
        self._task = notes["environment"], notes["kwargs"]
        self._random = float(held_out_regret(*self._task, Random).mean())
        self._started = time.perf_counter() - (found["seconds"] if found else 0.0)

    def _on_training_start(self) -> None:
        if self._found is not None:
            self._go_on(self._found["model"])
            self._saved, self._found = len(self.curve), None

    def _go_on(self, state: State) -> None:
        """Take over the state of the training that was interrupted."""
        try:
            restore(self.model, state)
        except Exception as error:  # there is no end to what an edited state can raise
            file, why = state_file(self._path), brief(error)
            raise ValueError(f"{file} is no state of this training ({why}). Remove it.") from error

    def _on_rollout_start(self) -> None:
        """Write the whole state, at the beginning and after each checkpoint."""
        if self._saved < len(self.curve):
            self._saved = len(self.curve)
            state = {
                "settings": json.dumps(settings_of(self._notes)),
                "versions": self._notes["versions"],
                "curve": self.curve,
                "seconds": time.perf_counter() - self._started,
                "model": state_of(self.model),
            }
            write_state(state_file(self._path), state)

    def _on_step(self) -> bool:
        self._bar.update(self.num_timesteps - self._bar.n)
        if self.num_timesteps >= self._next:
            self._next += self._every
            self.measure()
        return True

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()

    def _on_training_end(self) -> None:
        if not self.curve or self.curve[-1]["steps"] < self.num_timesteps:
            self.measure()

    def measure(self) -> None:
        """Measure the regret of held-out episodes, and save model, notes and curve."""
        shown = {key: self._notes[key] for key in READ}

        def _agent(env: Any) -> SB3Agent:
            return SB3Agent(env, algo=self._notes["algo"], model=self.model, **shown)

        regret = float(held_out_regret(*self._task, _agent).mean())
        point = {"steps": self.num_timesteps, "regret": regret}
        self.curve.append(point | {"share_of_random": regret / self._random})
        seconds = round(time.perf_counter() - self._started, 1)
        save_model(self.model, self._path, self._notes | self.curve[-1] | {"seconds": seconds})
        write_csv(self._path.with_suffix(".csv"), self.curve)


def train(
    algo: str,
    environment: str,
    steps: int | None,
    seed: int,
    path: Path,
    kwargs: Mapping[str, JSON] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> list[dict[str, float]]:
    """Train a model, and write it, its notes and its learning curve.

    A training that was interrupted goes on from its last checkpoint, and gives the same model as
    if it had not been; one that was done is not done again.

    An episode that is cut off at T counts as one that would go on, as stable-baselines3 has it.
    It seeds the global generators, as stable-baselines3 does, and keeps torch to one thread: run
    it in a process of its own.

    Args:
        algo: "ppo", "a2c", "dqn" or "recurrent-ppo".
        environment: The environment's id.
        steps: Steps to train, over all episodes; None takes the settings'.
        seed: What all randomness follows from, below 100,000.
        path: The model's file, .zip; its notes and curve stand beside it, as .json and .csv.
        kwargs: What the environment is made with.
        overrides: Settings in the place of those of settings.toml.

    Returns:
        The learning curve: steps, mean regret on 100 held-out episodes, and that as a share of
        random play's.

    Raises:
        ValueError: If there is no such algorithm, it cannot play the task, a number is out of its
            range, the file's model was trained with other settings, or another process trains it.
    """
    check_int("seed", seed, "train", 0, 10**5 - 1)
    environment, made_with = environment.rpartition(":")[2], dict(kwargs or {})
    chosen = {**settings(algo), **(overrides or {})}
    steps = check_int("steps", chosen["steps"] if steps is None else steps, "train", 1)
    chosen["steps"] = steps
    torch.set_num_threads(1)
    env = training_env(environment, chosen, made_with)
    problem = env.problem
    if algo == "dqn" and problem.continuous:
        reject("algo", "train", "'ppo', 'a2c' or 'recurrent-ppo' on a continuous task", algo)
    notes = {"algo": algo, "environment": environment, "kwargs": made_with, "seed": seed}
    notes |= notes_on(problem, chosen)
    if digests := files_of(TaskSpec(environment, environment, made_with)):
        notes["files"] = digests
    check_network(algo, notes)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(f".{path.stem}.lock")):
        found = interrupted(path, notes)
        if found is None and (curve := finished(path, steps)):
            tqdm.write(f"{path} was trained before, with these settings.", file=sys.stderr)
            return curve
        model = build(algo, env, seed, chosen)
        env.seed(training_seed(seed))  # after the model, which gives the environment its own seed
        progress = Progress(steps, path, notes, found)
        with closing(progress):
            model.learn(steps, callback=progress)
        state_file(path).unlink(missing_ok=True)
    return progress.curve


def notes_on(problem: BanditProblem, chosen: dict[str, Any]) -> dict[str, Any]:
    """Return what is to be noted of the task and the settings: a model is loaded by them."""
    notes: dict[str, Any] = {
        "dim": problem.domain.shape[1],
        "horizon": problem.known_horizon("train"),
    }
    notes |= {"arms": None if problem.continuous else len(problem.domain)}
    notes |= {"noise_scale": float(np.max(problem.known_noise("train")))}
    notes |= {key: chosen[key] for key in READ}
    return notes | {"settings": chosen, "versions": versions(PACKAGES)}


def check_network(algo: str, notes: dict[str, Any]) -> None:
    """Check that a network can be loaded again, before it is trained."""
    for key, value in network_of(algo, notes).items():
        if not NETWORK_RULES[key].holds(value):
            reject(key, "train", NETWORK_RULES[key].text, value)
    if (weights := count_weights(algo, notes)) > MOST_WEIGHTS:
        reject("net_arch", "train", f"a network of at most {MOST_WEIGHTS} weights", weights)


def training_env(
    environment: str, chosen: dict[str, Any], made_with: Mapping[str, object]
) -> NativeVecEnv:
    """Return the episodes of the training, in groups that stand at different t."""
    groups, scale = chosen["groups"], chosen["reward_scale"]
    if chosen["envs"] % groups:
        reject("envs", "train", f"a multiple of groups = {groups}", chosen["envs"])
    raw = [make_vector(environment, chosen["envs"] // groups, **made_with) for _ in range(groups)]
    shown = [VectorHistoryObservation(env, chosen["history"], scale) for env in raw]
    return NativeVecEnv(shown, scale)


def build(algo: str, env: NativeVecEnv, seed: int, chosen: dict[str, Any]) -> Any:
    """Return an untrained model."""
    given = {key: value for key, value in chosen.items() if key not in OWN}
    start = given.pop("learning_rate_start")
    return algorithm(algo)(
        chosen["policy"],
        env,
        seed=seed,
        device="cpu",
        policy_kwargs=policy_kwargs(env.problem.domain.shape[1], chosen),
        learning_rate=Linear(start),
        **given,
    )


def save_model(model: Any, path: Path, notes: Mapping[str, object]) -> None:
    """Write a model, without what only its training needs, and its notes beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    optimizer, buffer = model.policy.optimizer, io.BytesIO()
    moments, optimizer.state = optimizer.state, type(optimizer.state)(dict)  # two thirds of a file
    try:
        model.save(buffer, exclude=NOT_KEPT)
    finally:
        optimizer.state = moments
    text = json.dumps(notes, indent=2)
    write_whole(path, buffer.getvalue())
    write_whole(notes_of(path), text.encode())


class Linear:
    """A learning rate that falls in a straight line to zero; a class, so that models pickle it."""

    def __init__(self, start: float) -> None:
        self.start = start

    def __call__(self, left: float) -> float:
        """Return the rate when a share `left` of the training is left."""
        return self.start * max(left, 0.0)  # the last rollout may end beyond the last step
