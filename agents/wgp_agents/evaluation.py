"""Agents and models on the episodes of the same seeds."""

from __future__ import annotations

import copy
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from wgp_agents.base import Agent
from wgp_agents.late_rewards import LateRewards
from wgp_agents.registry import make
from wgp_gym.types import Array
from wgp_gym.validation import reject, seed_list, shown

__all__ = ["Evaluation", "Model", "act", "all_over", "evaluate"]

MOST_AT_ONCE = 100  # episodes of one batch
MOST_SEEDS = 100_000  # of one call
PLAYERS = "an agent's name, class or instance, a function of an environment, or a model"


class Model(Protocol):
    """What stable-baselines3 calls a model or a policy, as far as it is looked at here."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """Return the actions for observations `(B, ...)`, and the next state."""


Player: TypeAlias = str | Agent | Model | Callable[..., Agent | Model]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What was played on the episodes of given seeds.

    Attributes:
        seeds: The environment's seed of each episode, S of them.
        regrets: Each episode's cumulative regret at its end, `(S,)`.
        returns: Each episode's sum of rewards, as the environment paid them, `(S,)`.
    """

    seeds: tuple[int, ...]
    regrets: Array
    returns: Array

    @property
    def mean_regret(self) -> float:
        """The mean regret."""
        return float(self.regrets.mean())

    @property
    def regret_error(self) -> float:
        """The standard error of the mean regret; NaN of one episode."""
        return standard_error(self.regrets)

    @property
    def mean_return(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    @property
    def return_error(self) -> float:
        """The standard error of the mean return; NaN of one episode."""
        return standard_error(self.returns)


def standard_error(values: Array) -> float:
    """Return s / sqrt(S), s with S - 1 in its denominator; NaN of one value."""
    if len(values) < 2:
        return math.nan
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def evaluate(
    player: Player,
    env: Any,
    seeds: Sequence[int],
    *,
    deterministic: bool = True,
    **env_kwargs: Any,
) -> Evaluation:
    """Play the episodes of exactly these seeds, whoever plays.

    An episode's functions and noise follow from its seed alone, so that two players on the same
    seeds are compared in pairs. Learners start anew with every episode, with its seed.

    Args:
        player: An agent's name, as `make` takes it, or its class; a function that returns an agent
            for an environment, asked after the reset for each batch of episodes; an `Agent`, of
            which a copy plays, bound to `env` (`Agent.bind`), so that it goes by the bounds of
            these episodes whatever it was made from; or a model with `predict`, as
            stable-baselines3 trains them.
        env: An id, "module:id", or an environment, single or vector, in its wrappers: a model is
            shown what it shows, an agent, or a model that takes `action_masks`, the mask in its
            info, too, where arms come and go. With
            an id up to 100 episodes are played at once, and one where each tells a kernel of its
            own.
        seeds: The seeds, ints of at least 0, at most 100,000.
        deterministic: Whether a model is to play its likeliest action. What it draws otherwise does
            not follow from the seeds.
        **env_kwargs: What an environment is made with that is named by its id.

    Returns:
        The regret and the return of each episode.

    Raises:
        ValueError: If there is no seed, `env` is none of these or of another task than that of an
            `Agent`, a model was trained on other spaces of observations or actions, or episodes
            played at once end at different steps.
    """
    checked = checked_seeds(seeds)
    made = isinstance(env, str)
    if made:
        env = made_env(env, player, len(checked), env_kwargs)
    elif env_kwargs:
        reject("env", "evaluate", f"an id, to be made with {', '.join(env_kwargs)}", env)
    elif not isinstance(env, gymnasium.Env | VectorEnv):
        rule = (
            "an id or an environment of Gymnasium; with one of stable-baselines3 take its "
            "`evaluate_policy`, and wgp_gym.wrappers.SeededEpisodes for the seeds"
        )
        reject("env", "evaluate", rule, env)
    try:
        found = blocks(player, env, checked, deterministic)
    finally:
        if made:
            env.close()
    regrets, returns = np.concatenate(found, axis=1)
    return Evaluation(tuple(checked), regrets, returns)


def checked_seeds(seeds: Sequence[int]) -> list[int]:
    """Return the seeds, checked, of a range that may be too long to write out."""
    rule = f"a list or a range of 1 to {MOST_SEEDS:,} ints of at least 0"
    if not isinstance(seeds, Iterable):
        reject("seeds", "evaluate", rule, seeds)
    listed = list(itertools.islice(seeds, MOST_SEEDS + 1))
    if not 1 <= len(listed) <= MOST_SEEDS:
        reject("seeds", "evaluate", rule, seeds)
    return [seed for seed in seed_list(listed, len(listed)) if seed is not None]


def made_env(name: str, player: Player, count: int, kwargs: dict[str, Any]) -> Any:
    """Return an environment that `player` can play, for `count` episodes."""
    if isinstance(player, Agent) and not player.batched:
        return gymnasium.make(name, **kwargs)
    width = math.ceil(count / math.ceil(count / MOST_AT_ONCE))
    if isinstance(player, Agent):
        width = player.num_learners
    one = gymnasium.make_vec(name, num_envs=1, **kwargs)  # natively where it can be
    if width == 1 or not tells_one_kernel(one):
        return one
    one.close()
    return gymnasium.make_vec(name, num_envs=width, **kwargs)


def tells_one_kernel(env: Any) -> bool:
    """Tell whether several episodes of a vector environment may share one agent's kernel."""
    base = env.unwrapped
    task = getattr(base.envs[0].unwrapped if hasattr(base, "envs") else base, "task", None)
    return bool(getattr(task, "tells_one_kernel", True))


def blocks(player: Player, env: Any, seeds: list[int], deterministic: bool) -> list[Array]:
    """Play the episodes of all seeds, as many at once as `env` has: regrets, returns `(2, b)`."""
    single = not isinstance(env, VectorEnv)
    width = 1 if single else env.num_envs
    found, seat = [], None
    for start in range(0, len(seeds), width):
        block = seeds[start : start + width]
        filled = block + block[-1:] * (width - len(block))  # the last one once more
        # An agent's model is of a kernel and a noise, which may be drawn with the episodes.
        if seat is None or (isinstance(seat, Agent) and not isinstance(player, Agent)):
            env.reset(seed=filled[0] if single else filled)
            seat = seated(player, env)
        if isinstance(seat, Agent):
            played = learned(seat, env, filled)
        else:
            played = predicted(seat, env, filled, deterministic)
        found.append(played[:, : len(block)])
    return found


def seated(player: Player, env: Any) -> Agent | Model:
    """Return who plays the episodes that `env` is in."""
    if isinstance(player, str):
        return make(player, env)
    if isinstance(player, Agent):
        player = copy.deepcopy(player)
        player.bind(env)
    elif isinstance(player, type) or not hasattr(player, "predict"):
        if not callable(player):
            reject("player", "evaluate", PLAYERS, player)
        player = player(env)
    if isinstance(player, Agent):
        return player
    if not hasattr(player, "predict"):
        reject("player", "evaluate", PLAYERS, player)
    check_spaces(player, env)
    return player


def check_spaces(model: Model, env: Any) -> None:
    """Raise ValueError if a model says that it was trained on other spaces than those of `env`."""
    single = "single_" if isinstance(env, VectorEnv) else ""
    remedy = "put it in the wrappers of its training, as HistoryObservation"
    for kind in ("observation", "action"):
        trained = getattr(model, f"{kind}_space", None)
        space = getattr(env, f"{single}{kind}_space")
        if not isinstance(trained, spaces.Space) or same_space(trained, space):
            continue
        known, found = shown(trained), space
        if trained.shape != space.shape:
            known, found = f"shape {trained.shape}", space.shape
        rule = f"one whose {kind}s are of {known}, as the model was trained on: {remedy}"
        reject("env", "evaluate", rule, found)


def same_space(one: spaces.Space[Any], other: spaces.Space[Any]) -> bool:
    """Tell whether two spaces are the same, in whatever precision their floats are."""
    if isinstance(one, spaces.Box) and isinstance(other, spaces.Box):
        alike = one.shape == other.shape and one.dtype.kind == other.dtype.kind
        ends = (one.low, other.low), (one.high, other.high)
        return alike and all(np.allclose(*pair) for pair in ends)
    return bool(one == other)


def learned(agent: Agent, env: Any, seeds: list[int]) -> Array:
    """Play the episodes of these seeds with an agent that acts and observes."""
    given = seeds if agent.batched else seeds[0]
    observation, info = env.reset(seed=given)
    agent.reset(given)
    returns, over = np.zeros(len(seeds)), False
    rewards = LateRewards(agent)
    while not over:
        action = act(agent, observation, info)
        observation, reward, terminated, truncated, info = env.step(action)
        rewards.observe(action, reward, info)
        returns += reward
        over = all_over(terminated, truncated)
    return np.stack([final_regrets(info, len(seeds)), returns])


def act(agent: Agent, observation: Any, info: dict[str, Any]) -> Any:
    """Return what an agent plays, of the arms that an environment's info says are there.

    An agent that does not keep to a mask is not shown it.
    """
    mask = info.get("action_mask")
    if mask is None or not agent.takes_allowed:
        return agent.act(observation)
    return agent.act(observation, allowed=np.asarray(mask, bool))


def predicted(model: Model, env: Any, seeds: list[int], deterministic: bool) -> Array:
    """Play them with a model that is shown observations, always as a batch.

    One that takes masks, as sb3-contrib's MaskablePPO, is shown those of the infos, too.
    """
    single = not isinstance(env, VectorEnv)
    observation, info = env.reset(seed=seeds[0] if single else seeds)
    state, starts = None, np.ones(len(seeds), bool)
    returns, over = np.zeros(len(seeds)), False
    masked = takes_masks(model)
    while not over:
        rows = np.asarray(observation)[None] if single else observation
        mask = info.get("action_mask") if masked else None
        given = {} if mask is None else {"action_masks": np.atleast_2d(mask).astype(bool)}
        actions, state = model.predict(rows, state, starts, deterministic, **given)
        action = actions[0] if single else actions
        observation, reward, terminated, truncated, info = env.step(action)
        starts = np.zeros(len(seeds), bool)
        returns += reward
        over = all_over(terminated, truncated)
    return np.stack([final_regrets(info, len(seeds)), returns])


def takes_masks(model: Model) -> bool:
    """Tell whether a model's `predict` takes `action_masks`."""
    try:
        return "action_masks" in inspect.signature(model.predict).parameters
    except (TypeError, ValueError):  # of compiled code
        return False


def final_regrets(info: dict[str, Any], count: int) -> Array:
    """Return the regrets at the end of episodes, `(B,)`."""
    # Where the step that ends an episode begins the next one, it keeps the old one's info.
    last = info.get("final_info", info)
    if "cumulative_regret" not in last:
        reject("env", "evaluate", "an environment of wgp_gym, whose info tells the regret", info)
    return np.asarray(last["cumulative_regret"], float).reshape(count)


def all_over(terminated: Any, truncated: Any) -> bool:
    """Tell whether the episodes have ended; ValueError if some have, and others have not."""
    over = np.asarray(terminated) | np.asarray(truncated)
    if over.any() and not over.all():
        count = f"{over.sum()} of {over.size}"
        raise ValueError(f"The sub-environments must end at the same step. Here {count} did.")
    return bool(over.all())
