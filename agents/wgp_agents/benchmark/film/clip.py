"""An episode as a film shows it: played to its end before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.results import MOST_CHANGES
from wgp_agents.core.access import EnvLike
from wgp_agents.registry import agent_entry, make
from wgp_gym.envs.task import Task
from wgp_gym.registration import ENVIRONMENTS
from wgp_gym.types import Action, Array, Observation
from wgp_gym.validation import check_choice, check_int, reject

__all__ = ["Clip", "record"]

MARGIN = 0.06  # of the vertical range, above and below it
BEYOND = 0.2  # of the range of truth, means and rewards, by which bands may extend the axis


@dataclass(frozen=True, eq=False)
class Clip:
    """An episode as a film shows it, F frames of S steps."""

    title: str  # what stands above it
    domain: Array  # the arms' places, `(n, d)`
    names: list[str] | None  # the arms' names, or None where they have coordinates
    shown: NDArray[np.intp]  # the steps that are shown, counted from 0, `(F,)`
    mean: Array  # the posterior mean before these steps, `(F, n)`
    low: Array  # the lower end of the confidence band, `(F, n)`
    high: Array  # its upper end, `(F, n)`
    truth: Array  # f_t at these steps, `(F, n)`
    best: Array  # where it is largest, `(F, d)`
    played: Array  # where was played at each step, `(S, d)`; with names, the arm's index
    paid: Array  # the rewards, `(S,)`
    regret: Array  # the cumulative regret, `(S,)`
    changes: Sequence[int]  # the steps, counted from 1, that are the first to meet a new function

    @property
    def places(self) -> Array:
        """Where the arms stand on the axis of a line, `(n,)`."""
        return np.arange(len(self.domain), dtype=float) if self.names else self.domain[:, 0]

    def limits(self) -> tuple[float, float]:
        """Return the ends of the rewards' axis, the same in all frames.

        Bands that reach far beyond all else, as before the first plays, are cut off. Where all
        is the same, there is room around it.
        """
        inner = [self.truth, self.mean, self.paid]
        low, high = (float(end(list(map(end, inner)))) for end in (np.min, np.max))
        room = BEYOND * (high - low or max(1.0, abs(high)))
        low, high = max(low - room, float(self.low.min())), min(high + room, float(self.high.max()))
        margin = MARGIN * (high - low or max(1.0, abs(high)))
        return low - margin, high + margin


def record(
    environment: str,
    agent: str,
    seed: int,
    kwargs: Mapping[str, Any],
    parameters: Mapping[str, object],
    every: int,
    steps: int | None,
) -> Clip:
    """Play an episode and keep what the frames show; ValueError if it cannot be filmed."""
    env = drawable_env(environment, kwargs)
    observation, _ = env.reset(seed=seed)
    player = agent_with_posterior(agent, env, parameters)
    player.reset(seed)
    inner: Any = env.unwrapped
    task = inner.task
    steps = task.horizon if steps is None else check_int("steps", steps, "film", 1, task.horizon)
    shown = np.unique(np.append(np.arange(0, steps, every), steps - 1))
    kept: dict[str, list[Array]] = {name: [] for name in ("mean", "low", "high", "truth", "best")}
    played, paid, regret, changes = [], [], [], []
    for t in range(steps):
        if t in shown:
            interval = player.confidence_interval()
            moment = (player.posterior().mean, *interval, inner.expected_rewards())
            for name, values in zip(kept, moment, strict=False):
                kept[name].append(values)
            kept["best"].append(position(task, inner.optimal_action()))
        action = player.act(observation)
        observation, reward, _, _, info = env.step(action)
        player.observe(action, reward)
        played.append(position(task, action))
        paid.append(float(reward))
        regret.append(info["cumulative_regret"])
        if info["changed"]:
            changes.append(t + 1)
    return Clip(
        title=f"{agent_entry(agent).title} in {environment}",
        domain=task.domain,
        names=task.arm_names,
        shown=shown,
        played=np.array(played),
        paid=np.array(paid),
        regret=np.array(regret),
        changes=changes if len(changes) <= MOST_CHANGES * steps else [],
        **{name: np.array(values) for name, values in kept.items()},
    )


def drawable_env(environment: str, kwargs: Mapping[str, Any]) -> gymnasium.Env[Observation, Action]:
    """Return the environment, if its arms lie on a line or on a square grid."""
    check_choice("environment", environment, "film", [entry.id for entry in ENVIRONMENTS])
    env: gymnasium.Env[Observation, Action] = gymnasium.make(environment, **kwargs)
    inner: Any = env.unwrapped
    n, dim = inner.task.domain.shape
    if dim > 2 or (dim == 2 and round(n**0.5) ** 2 != n):
        rule = "one whose arms lie on a line or on a square grid"
        reject("environment", "film", rule, f"{environment} with {n} arms in {dim} dimensions")
    return env


def agent_with_posterior(agent: str, env: EnvLike, parameters: Mapping[str, object]) -> Any:
    """Return the agent, if it has a posterior to draw."""
    agent_entry(agent, "film")
    player = make(agent, env, **parameters)
    if not hasattr(player, "confidence_interval"):
        reject("agent", "film", "the name of an agent with a posterior, as 'wgp-ucb'", agent)
    return player


def position(task: Task, action: Action) -> Array:
    """Return where an action stands, `(d,)`: its place, or the index of an arm with a name."""
    if task.arm_names:
        return np.array([float(action)])
    return np.asarray(action, float) if task.continuous else task.domain[int(action)]
