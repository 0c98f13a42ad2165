"""An episode as a film shows it: played to its end before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.results import MOST_CHANGES
from wgp_agents.registry import AGENTS, make
from wgp_gym.registration import ENVIRONMENTS
from wgp_gym.types import Array
from wgp_gym.validation import check_choice, check_int, reject

__all__ = ["Clip", "record"]

MARGIN = 0.06  # of the vertical range, above and below it
BEYOND = 0.2  # of the range of truth, means and rewards, by which bands may extend the axis


@dataclass(frozen=True, eq=False)
class Clip:
    """An episode as a film shows it, F frames of S steps.

    Attributes:
        title: What stands above it.
        domain: The arms' places, `(n, d)`.
        names: The arms' names, or None where they have coordinates.
        shown: The steps that are shown, counted from 0, `(F,)`.
        mean: The posterior mean before these steps, `(F, n)`.
        low: The lower end of the confidence band, `(F, n)`.
        high: Its upper end, `(F, n)`.
        truth: f_t at these steps, `(F, n)`.
        best: Where it is largest, `(F, d)`.
        played: Where was played at each step, `(S, d)`; with names, the arm's index.
        paid: The rewards, `(S,)`.
        regret: The cumulative regret, `(S,)`.
        changes: The steps, counted from 1, that are the first to meet a new function.
    """

    title: str
    domain: Array
    names: list[str] | None
    shown: NDArray[np.intp]
    mean: Array
    low: Array
    high: Array
    truth: Array
    best: Array
    played: Array
    paid: Array
    regret: Array
    changes: Sequence[int]

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
    parameters: Mapping[str, Any],
    every: int,
    steps: int | None,
) -> Clip:
    """Play an episode and keep what the frames show.

    Raises:
        ValueError: If the agent has no posterior, the arms have too many coordinates, or a
            parameter is out of its range.
    """
    env, player, observation = start(environment, agent, seed, kwargs, parameters)
    inner: Any = env.unwrapped
    task = inner.task
    steps = task.horizon if steps is None else check_int("steps", steps, "film", 1, task.horizon)
    shown = np.unique(np.append(np.arange(0, steps, every), steps - 1))
    kept: dict[str, list[Any]] = {name: [] for name in ("mean", "low", "high", "truth", "best")}
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
        title=f"{AGENTS[agent].title} in {environment}",
        domain=task.domain,
        names=task.arm_names,
        shown=shown,
        played=np.array(played),
        paid=np.array(paid),
        regret=np.array(regret),
        changes=changes if len(changes) <= MOST_CHANGES * steps else [],
        **{name: np.array(values) for name, values in kept.items()},
    )


def start(
    environment: str,
    agent: str,
    seed: int,
    kwargs: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> tuple[Any, Any, Any]:
    """Return environment and agent at the start of an episode, and its first observation.

    Raises:
        ValueError: If the agent has no posterior, the arms have too many coordinates, or a
            parameter is out of its range.
    """
    check_choice("environment", environment, "film", [entry.id for entry in ENVIRONMENTS])
    check_choice("agent", agent, "film", AGENTS)
    env: Any = gymnasium.make(environment, **kwargs)
    checked_shape(environment, env.unwrapped.task.domain)
    observation, _ = env.reset(seed=seed)
    player: Any = make(agent, env, **parameters)
    if not hasattr(player, "confidence_interval"):
        reject("agent", "film", "the name of an agent with a posterior, as 'wgp-ucb'", agent)
    player.reset(seed)
    return env, player, observation


def checked_shape(environment: str, domain: Any) -> None:
    """Check that the arms can be drawn.

    Raises:
        ValueError: If they have more than two coordinates, or two without being a square grid.
    """
    side = round(len(domain) ** 0.5)
    if domain.shape[1] > 2 or (domain.shape[1] == 2 and side**2 != len(domain)):
        rule = "one whose arms lie on a line or on a square grid"
        given = f"{environment} with {len(domain)} arms in {domain.shape[1]} dimensions"
        reject("environment", "film", rule, given)


def position(task: Any, action: Any) -> Any:
    """Return where an action stands, `(d,)`: its place, or the index of an arm with a name."""
    if task.arm_names:
        return np.array([float(action)])
    return np.asarray(action, float) if task.continuous else task.domain[int(action)]
