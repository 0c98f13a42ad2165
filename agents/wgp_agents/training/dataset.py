"""An agent's plays as a Minari data set, for learning offline: https://minari.farama.org."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from tqdm import tqdm

import wgp_agents
from wgp_agents.benchmark.output import locked
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.evaluation import act
from wgp_agents.training.worlds import training_seed
from wgp_gym.types import Array
from wgp_gym.validation import check_int, reject

__all__ = ["data_set_name", "write_dataset"]

OWNER = "wgp-gym dataset"
AT_ONCE = 100  # episodes of a batch; after each the data set is whole
MOST_EPISODES = 10**8
SCORED = 100  # episodes from which the reference scores follow


def write_dataset(
    name: str,
    agent: str,
    environment: str,
    episodes: int,
    *,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Play episodes and write them, batch by batch; return the data set.

    It stands where Minari keeps its own: in the folder that MINARI_DATASETS_PATH names, or in
    ~/.minari/datasets. One that was begun by the same call goes on where it was left. Episode i has
    the seed `wgp_gym.seeds("train")[10**9 * seed + i]`, which the data set notes: the
    environment gives back what was not recorded, the whole of f_t. Its reference scores, of which
    `minari.get_normalized_score` makes 0 and 1, are the mean returns of random play and of the
    oracle over the first 100 of these episodes, whether it has so many or not.

    Args:
        name: The data set's id, as "wgp-bandit/abrupt/wgp-ucb-v0".
        agent: The agent's name, or "module:Class".
        environment: The environment's id.
        episodes: How many episodes it is to have.
        seed: Which of 100,000 sets of seeds, none of which shares an episode with another.
        parameters: What the agent is made with.
        kwargs: What the environment is made with.

    Raises:
        ValueError: If a parameter is out of its range, or there is another data set of this name.
        ImportError: Without the extra `minari`.
    """
    minari = imported()
    check_int("episodes", episodes, OWNER, 1, MOST_EPISODES)
    check_int("seed", seed, OWNER, 0, 10**5 - 1)
    first, made_with = training_seed(seed), dict(kwargs or {})
    said = f"wgp-gym dataset: {agent} {dict(parameters or {})} in {environment} {made_with}"
    said += f", seed {seed}"
    home = Path(minari.storage.get_dataset_path())
    with locked(home / f".{name.replace('/', '-')}.lock"):
        found = begun(minari, name, said)
        done = 0 if found is None else int(found.total_episodes)
        for start in tqdm(range(done, episodes, AT_ONCE), unit="batch", file=sys.stderr):
            seeds = list(range(first + start, first + min(start + AT_ONCE, episodes)))
            played = recorded(minari, agent, environment, seeds, dict(parameters or {}), made_with)
            if found is None:
                found = created(minari, name, agent, environment, made_with, said, first, played)
            else:
                found.update_dataset_from_buffer(played)
    return found


def data_set_name(agent: str, environment: str) -> str:
    """Return what a data set is called, as "wgp-bandit/abrupt/wgp-ucb-v0"."""
    task = re.split("[/:]", environment)[-1].removesuffix("-v0").removeprefix("WGPBandit-")
    return f"wgp-bandit/{task.lower()}/{agent.rpartition(':')[2].lower()}-v0"


def imported() -> Any:
    """Return the package minari; ImportError names the remedy."""
    try:
        import_module("h5py")  # what Minari writes with
        return import_module("minari")
    except ImportError as error:
        remedy = f"A Minari data set needs {error.name}. Install wgp-gym[minari]."
        raise ImportError(remedy) from error


def begun(minari: Any, name: str, said: str) -> Any:
    """Return the data set of this name, None where there is none.

    Raises:
        ValueError: If it is another one, or the name is no id.
    """
    minari.dataset.minari_dataset.parse_dataset_id(name)  # raises
    folder = minari.storage.get_dataset_path(name) / "data"
    if not (folder / "metadata.json").exists():
        with suppress(OSError):  # an empty one, of a call that was ended early
            folder.rmdir()
            folder.parent.rmdir()
        return None
    found = minari.load_dataset(name)
    was = found.storage.metadata.get("description")
    if was != said:
        rule = f"a name that is free, or of a data set of {said!r}"
        reject("name", OWNER, rule, f"{name}, of {was!r}")
    drop_unfinished(folder, int(found.total_episodes))
    return minari.load_dataset(name)


def drop_unfinished(folder: Path, episodes: int) -> None:
    """Remove the episodes of a batch that was being written when its call was ended."""
    with import_module("h5py").File(folder / "main_data.hdf5", "a", track_order=True) as file:
        for name in [name for name in file if int(name.rpartition("_")[2]) >= episodes]:
            del file[name]


def recorded(
    minari: Any,
    agent: str,
    environment: str,
    seeds: list[int],
    parameters: dict[str, Any],
    kwargs: dict[str, Any],
) -> list[Any]:
    """Play the episodes of these seeds, and return them as Minari's buffers."""
    with closing(make_vector(environment, len(seeds), **kwargs)) as env:
        player = wgp_agents.make(agent, env, **parameters)
        observation, info = env.reset(seed=seeds)
        player.reset(seeds)
        observations, actions, rewards, over = [observation.copy()], [], [], False
        while not over:
            action = act(player, observation, info)
            observation, reward, terminated, truncated, info = env.step(action)
            player.observe(action, reward)
            observations.append(observation.copy())
            actions.append(np.array(action))
            rewards.append(np.array(reward))
            over = bool((terminated | truncated).any())
    seen, played, paid = (np.stack(rows, axis=1) for rows in (observations, actions, rewards))
    ends = np.arange(1, played.shape[1] + 1) == played.shape[1]
    buffer = minari.data_collector.EpisodeBuffer
    return [
        buffer(
            seed=one,
            observations=seen[i],
            actions=played[i],
            rewards=paid[i],
            terminations=np.zeros_like(ends),
            truncations=ends,
        )
        for i, one in enumerate(seeds)
    ]


def created(
    minari: Any,
    name: str,
    agent: str,
    environment: str,
    kwargs: dict[str, Any],
    said: str,
    first: int,
    played: list[Any],
) -> Any:
    """Write a new data set with its first episodes."""
    with closing(gymnasium.make(environment, **kwargs)) as env:
        low, high = (mean_return(name, environment, kwargs, first) for name in ("random", "oracle"))
        return minari.create_dataset_from_buffers(
            dataset_id=name,
            buffer=played,
            env=env,
            eval_env=env.spec,
            algorithm_name=agent,
            description=said,
            ref_min_score=low,
            ref_max_score=high,
            author="unknown",  # without an author, address and link it warns
            author_email="unknown",
            code_permalink="unknown",
        )


def mean_return(agent: str, environment: str, kwargs: dict[str, Any], first: int) -> float:
    """Return an agent's mean sum of rewards over the first 100 episodes."""
    with closing(make_vector(environment, SCORED, **kwargs)) as env:
        rewards: Array = rollout(wgp_agents.make(agent, env), env, first)["reward"]
    return float(rewards.sum(axis=1).mean())
