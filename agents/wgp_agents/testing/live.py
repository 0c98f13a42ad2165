"""Checks of what a running system asks of an agent: time, awaited plays, checkpoints, streams."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np

from wgp_agents.core.checkpoint import Checkpoint
from wgp_agents.testing.trial import OTHER_SEED, STEPS, B, Trial

__all__ = ["check_checkpoints", "check_choices", "check_reseeding", "check_time"]

OF_CHOICES = ("._streams", ".arms", ".allowed", "._unanswered", "action_set")


def check_choices(trial: Trial) -> None:
    """Check that a choice changes nothing but what the agent says."""
    run = trial.start(B)
    for _ in range(STEPS):
        run.step()
        before = run.agent.state_dict()
        run.agent.act(run.observation)
        after = run.agent.state_dict()
        moved = [k for k in sorted({*before, *after}) if differs(before.get(k), after.get(k))]
        moved = [k for k in moved if not any(word in k for word in OF_CHOICES)]
        rule = "act changes streams, arms and allowed alone, where learns_by_acting is False"
        fault = f"act changes {', '.join(moved[:3])}."
        trial.require(run.agent.learns_by_acting or not moved, fault, rule)


def differs(one: object, other: object) -> bool:
    """Tell whether two entries of a state differ."""
    return np.asarray(one).tobytes() != np.asarray(other).tobytes()


def check_time(trial: Trial) -> None:
    """Check that time is taken or refused, and that one step a play is what is meant otherwise."""
    run, twin = trial.start(B), trial.start(B)
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
    if run.agent.takes_elapsed:
        run.agent.observe(action, ones, elapsed=[0.0, 0.5, 3.0])
        run.agent.elapse(2.5, active=[True, False, True])
        run.play(3)


def check_checkpoints(trial: Trial) -> None:
    """Check that a checkpoint brings an agent back, after awaited plays and other streams."""
    for batch in (None, B):
        run = trial.start(batch).play()
        ahead, checkpoint = copy.deepcopy(run).play(), Checkpoint(run.agent)
        for reward in range(STEPS):
            action = run.agent.act(run.observation)
            run.agent.hallucinate(action)
            run.agent.observe(action, float(reward) if batch is None else np.full(B, reward))
        run.agent.reseed(OTHER_SEED)
        checkpoint.restore()
        rule = "Checkpoint(agent).restore() brings back all that an agent knows"
        trial.alike(run.play().actions, ahead.actions, "After restore it plays otherwise", rule)


def check_reseeding(trial: Trial) -> None:
    """Check that what is drawn after `reseed` depends on its seed, not on what was drawn before."""
    run = trial.start(B).play()
    twin = copy.deepcopy(run)
    for _ in range(0 if run.agent.learns_by_acting else 5):
        twin.agent.act(twin.observation)
    for one in (run, twin):
        one.agent.reseed(OTHER_SEED)
    rule = "after reseed(seed) all that is drawn is a function of the seed"
    trial.alike(run.play().actions, twin.play().actions, "After reseed it plays otherwise", rule)
