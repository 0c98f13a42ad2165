"""The worlds that learners are trained on, and how they do on episodes that are held out."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from wgp_agents.algorithms.references.baselines import Random
from wgp_agents.base import Agent
from wgp_agents.benchmark.files import JSON
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_gym import seeds
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array
from wgp_gym.validation import reject

__all__ = ["GENERAL", "Scores", "World", "check_worlds", "draw", "training_seed", "worlds_of"]

GENERAL = "general"  # the law of random worlds, in general.toml
EACH = 10**9  # seeds of one training

Make = Callable[[Any], Agent]


@dataclass(frozen=True)
class World:
    """A law of episodes.

    Attributes:
        environment: An environment's id.
        kwargs: What it is made with.
        share: How often it is played, beside the others' shares.
        each_round: What is drawn anew for each batch of episodes: of `[low, high]` a number,
            log-uniform (whole where both are), of a list of texts one. Learners of a batch share
            a kernel and T, so these cannot be drawn for each episode.
    """

    environment: str
    kwargs: Mapping[str, JSON] = field(default_factory=dict)
    share: float = 1.0
    each_round: Mapping[str, list[Any]] = field(default_factory=dict)

    def drawn(self, rng: np.random.Generator) -> dict[str, JSON]:
        """Return what the environment of a round is made with."""
        return {**self.kwargs, **{name: draw(law, rng) for name, law in self.each_round.items()}}


def draw(law: list[Any], rng: np.random.Generator) -> JSON:
    """Draw one of a list of texts, or a number between two, log-uniform."""
    if any(isinstance(one, str) for one in law):
        return str(law[rng.integers(len(law))])
    low, high = law
    number = float(np.exp(rng.uniform(np.log(low), np.log(high))))
    return round(number) if isinstance(low, int) and isinstance(high, int) else number


def worlds_of(environment: str, kwargs: Mapping[str, JSON]) -> list[World]:
    """Return what is trained on: an environment's episodes, or "general", the law in general.toml.

    Raises:
        ValueError: If "general" is given keywords.
    """
    if environment != GENERAL:
        return [World(environment, dict(kwargs))]
    if kwargs:
        reject("kwargs", "train", f"left out for {GENERAL!r}, whose worlds have their own", kwargs)
    text = (Path(__file__).parent / "general.toml").read_text("utf-8")
    return [World(**one) for one in tomllib.loads(text)["world"]]


def check_worlds(worlds: list[World], shortest: int) -> None:
    """Check that a learner can be trained on all of these.

    Raises:
        ValueError: If one is no bandit of fixed arms, or its episodes have fewer steps.
    """
    for world in worlds:
        env = make_vector(world.environment, 1, **world.drawn(np.random.default_rng(0)))
        problem: Any = getattr(env.unwrapped, "problem", None)
        masked = getattr(getattr(env.unwrapped, "task", None), "masked", False)
        is_bandit = isinstance(problem, BanditProblem)
        if not is_bandit or masked or problem.contextual or problem.continuous:
            rule = "a bandit of a finite number of arms, all of which stay"
            reject("environment", "train", rule, world.environment)
        if problem.known_horizon("train") < shortest:
            reject("horizon", "train", f"at least {shortest}", problem.horizon)


def training_seed(seed: int) -> int:
    """Return the first seed of a training's episodes: none is another training's, or held out."""
    return int(seeds("train")[EACH * seed])


class Scores:
    """Regrets on validation episodes, over all worlds of a law."""

    def __init__(self, worlds: list[World]) -> None:
        self._worlds = worlds
        rng = np.random.default_rng(0)  # what each round draws is drawn once here
        self._kwargs = [world.drawn(rng) for world in worlds]

    @cache  # noqa: B019  (one object a training)
    def _random(self, which: int, episodes: int, first: int) -> float:
        return float(self._regrets(which, episodes, first, Random).mean())

    def _regrets(self, which: int, episodes: int, first: int, make: Make) -> Array:
        env = make_vector(self._worlds[which].environment, episodes, **self._kwargs[which])
        regret: Array = rollout(make(env), env, first)["cumulative_regret"][:, -1]
        return regret

    def of(self, make: Make, episodes: int, first: int) -> dict[str, float]:
        """Return the mean regret, and that as a share of random play's, weighted by the shares.

        Args:
            make: Makes the agent, of an environment.
            episodes: How many episodes of each world are played.
            first: The first one's place among the validation seeds.
        """
        start = seeds("validation")[first]
        regrets, shares = np.zeros((2, len(self._worlds)))
        for which in range(len(self._worlds)):
            regrets[which] = self._regrets(which, episodes, start, make).mean()
            shares[which] = regrets[which] / self._random(which, episodes, start)
        weights = np.array([world.share for world in self._worlds])
        mean = {"regret": regrets, "share_of_random": shares}
        return {name: float(np.average(one, weights=weights)) for name, one in mean.items()}
