"""Checks of time: it is taken or refused, belongs to each learner, and makes a difference."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np

from wgp_agents.base import Agent
from wgp_agents.testing.checks import compare
from wgp_agents.testing.trial import HORIZON, STEPS, B, Run, Trial
from wgp_gym.types import Actions, Array

__all__ = ["check_learners_time", "check_time", "check_time_counts"]

MANY = 96  # plays of the first half, so that a usual window is full
LONG = 1e6  # steps after which nothing that fades is left


def check_time(trial: Trial) -> None:
    """Check that time is taken or refused, and that one step a play is what is meant otherwise."""
    run, twin = trial.start(B), trial.start(B)
    for name in ("_learn_elapsed", "_elapse") if run.agent.takes_elapsed else ():
        own = getattr(type(run.agent), name) is not getattr(Agent, name)
        rule = "an agent with takes_elapsed True has the methods _learn_elapsed and _elapse"
        trial.require(own, f"It says takes_elapsed = True, and has no {name}.", rule)
    for one in (run, twin):
        one.play(3)
    for elapsed in (1.0, np.ones(B)):
        for one, told in ((run, {"elapsed": elapsed}), (twin, {})):
            action = one.agent.act(one.observation)
            one.observation, reward, *_ = one.env.step(action)
            one.agent.observe(action, reward, **told)
    rule = "observe(elapsed=1) is observe without it"
    trial.alike(run.play().actions, twin.play().actions, "With elapsed=1 it plays otherwise", rule)
    action, ones = run.agent.act(run.observation), np.ones(B)
    refused = -1.0 if run.agent.takes_elapsed else 0.5
    rule = "observe and elapse take numbers of at least 0, and with takes_elapsed False none but 1"
    for tell in (
        partial(run.agent.observe, action, ones, elapsed=refused),
        partial(run.agent.elapse, refused),
    ):
        try:
            tell()
        except ValueError:
            continue
        trial.require(False, f"It takes {refused} steps.", rule)


def check_learners_time(trial: Trial) -> None:
    """Check that time goes by for those that are told so, and for no other."""
    if not trial.start(B).agent.takes_elapsed:
        return
    draw, batch, singles = np.random.default_rng(2), trial.start(B), trial.singles()
    for _ in range(2 * STEPS):
        elapsed, steps = draw.choice([0.0, 0.5, 1.0, 3.0], size=(2, B))
        learns, waits = draw.random((2, B)) < 0.6
        batch.step(active=learns, elapsed=elapsed)
        batch.agent.elapse(steps, active=waits)
        for i, single in enumerate(singles):
            single.step(learns=bool(learns[i]), elapsed=elapsed[i])
            if waits[i]:
                single.agent.elapse(steps[i])
    rule = "observe and elapse let the time of the learners in the mask go by, and of no other"
    compare(trial, batch, singles, "With others' time", rule)


def check_time_counts(trial: Trial) -> None:
    """Check that an agent for which no time makes a difference does not count plays as time.

    Plays between which no time lies may then come in any order.
    """
    run = trial.start(B)
    if not run.agent.takes_elapsed or not timeless(run):
        return
    first, last = (told(run, order) for order in (1, -1))
    rule = (
        "with takes_elapsed True time is what elapsed and elapse say; an agent for which plays are "
        "time says takes_elapsed = False"
    )
    fault = "It takes elapsed and goes by the order of plays at one time."
    trial.require(np.array_equal(first, last), fault, rule)


def timeless(run: Run) -> bool:
    """Tell whether an agent's state is the same whatever time goes by."""
    states = []
    for steps in (1.0, LONG):
        one = copy.deepcopy(run)
        one.play(2)
        one.step(elapsed=steps)
        one.agent.elapse(steps)
        states.append(one.agent.state_dict())
    here, there = states
    same = (np.asarray(here[k]).tobytes() == np.asarray(there.get(k)).tobytes() for k in here)
    return here.keys() == there.keys() and all(same)


def told(run: Run, order: int) -> Array:
    """Return what an agent plays after it was told of the same plays in one order or the other."""
    one = copy.deepcopy(run)
    one.agent.act(one.observation)
    arms = one.agent.arms if one.agent.problem.contextual else None
    for action, reward in plays(one.agent)[::order]:
        one.agent.observe(action, np.full(B, reward), arms=arms, elapsed=0.0)
    return np.array([one.agent.act(one.observation) for _ in range(STEPS)])


def plays(agent: Agent) -> list[tuple[Actions, float]]:
    """Return plays of some arms, of which each pays first more than at last, or less."""
    points, n = agent.problem.domain, min(len(agent.problem.domain), HORIZON // 2)
    found = []
    rounds = [1.0] * -(-MANY // n)
    for part in (*rounds, *(-one for one in rounds)):
        for k in range(n):
            chosen = np.full(B, k) if not agent.problem.continuous else np.tile(points[k], (B, 1))
            # The means that are left, k / 100, differ: ties would be broken by rounding.
            found.append((chosen, part * (-1) ** k * (1.0 + 0.01 * k) + 0.01 * k))
    return found
