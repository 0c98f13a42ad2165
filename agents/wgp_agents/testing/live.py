"""Checks of what a running system asks: choices and why, awaited plays, checkpoints, streams."""

from __future__ import annotations

import copy

import numpy as np

from wgp_agents.core.checkpoint import Checkpoint
from wgp_agents.testing.checks import compare
from wgp_agents.testing.trial import OTHER_SEED, STEPS, B, Run, Trial
from wgp_gym.types import Action, Array
from wgp_gym.validation import shown

__all__ = [
    "check_awaited",
    "check_checkpoints",
    "check_choices",
    "check_reasons",
    "check_reseeding",
]

SUM = 1e-5  # that probabilities may be away from 1

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


def check_awaited(trial: Trial) -> None:
    """Check that plays whose rewards are to come count for those who played, and no other."""
    masks = np.random.default_rng(1).random((3 * STEPS, B)) < 0.5
    batch, singles = trial.start(B), trial.singles()
    for mask in masks:
        actions = np.array(batch.step())
        # Told is what somebody plays who is left out: that it is not told to them then shows.
        actions[mask] = actions[mask.argmin()]
        batch.agent.hallucinate(actions, arms=shown_to(batch), active=mask)
        for single, action, played in zip(singles, actions, mask, strict=True):
            single.step()
            if played:
                single.agent.hallucinate(action, arms=shown_to(single))
    rule = "hallucinate(active=mask) changes the learners in the mask, and no other"
    compare(trial, batch, singles, "After others' hallucinate", rule)


def shown_to(run: Run) -> Array | None:
    """Return the arms last shown, where they change."""
    return run.agent.arms if run.agent.problem.contextual else None


def check_reasons(trial: Trial) -> None:
    """Check the upper bounds of all arms, and the probabilities of a choice, if there are any."""
    for batch in (None, B):
        run = trial.start(batch)
        shape = (*(() if batch is None else (batch,)), len(run.agent.problem.domain))
        for _ in range(STEPS):
            run.step()
            bounds = run.agent.bounds()
            fits = bounds is None or (np.shape(bounds) == shape and not np.isnan(bounds).any())
            rule = f"bounds() returns None or the upper bounds of all arms, an array {shape}"
            trial.require(fits, f"bounds() returns {shown(bounds)}.", rule)
            action = run.agent.act(run.observation)
            chances = run.agent.propensities()
            fits = chances is None or are_chances(chances, shape, action)
            rule = (
                "propensities() returns None or the probability of each arm at the last act, an "
                f"array {shape}: they add up to 1, and that of the arm chosen is above 0"
            )
            trial.require(fits, f"propensities() returns {shown(chances)}.", rule)


def are_chances(chances: Array, shape: tuple[int, ...], action: Action) -> bool:
    """Tell whether these are the probabilities of arms, of which one was chosen."""
    if np.shape(chances) != shape or not np.all(chances >= 0):
        return False
    if not np.allclose(np.sum(chances, axis=-1), 1.0, rtol=0, atol=SUM):
        return False
    if np.asarray(action).dtype.kind not in "iu":  # a point of a box
        return True
    return bool(np.all(np.take_along_axis(chances, np.asarray(action)[..., None], axis=-1) > 0))
