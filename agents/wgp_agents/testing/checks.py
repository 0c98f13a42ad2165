"""Checks of play: actions, seeds, batches, copies, refusals, masks and `predict`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial

import numpy as np

from wgp_agents.testing.trial import AGENT_SEED, OTHER_SEED, SEED, STEPS, B, Run, Trial
from wgp_gym.types import Action, Indices, Mask
from wgp_gym.validation import shown

__all__ = [
    "check_actions",
    "check_active",
    "check_allowed",
    "check_batches",
    "check_copies",
    "check_predict",
    "check_refusals",
    "check_restarts",
    "check_seeds",
    "compare",
]

BATCHES = (1, 2, B)


def check_actions(trial: Trial) -> None:
    """Check the type and the range of what `act` returns."""
    single = trial.start()
    continuous, n = single.agent.problem.continuous, len(single.agent.problem.domain)
    wanted = "a point of the box" if continuous else f"an int of at least 0 and below {n}"
    for _ in range(STEPS):
        rule = f"with one environment an action is {wanted}"
        action = chosen(trial, single, rule)
        fits = single.env.action_space.contains(action) and (continuous or type(action) is int)
        fault = f"act returns {shown(action)} ({type(action).__name__})."
        trial.require(fits, fault, rule)
        single.step()
    batch = trial.start(B)
    for _ in range(STEPS):
        rule = f"with a vector environment an action is an array, for each learner {wanted}"
        action = chosen(trial, batch, rule)
        fits = isinstance(action, np.ndarray) and batch.env.action_space.contains(action)
        trial.require(fits, f"act returns {shown(action)} for {B} learners.", rule)
        batch.step()


def chosen(trial: Trial, run: Run, rule: str) -> Action:
    """Return what an agent chooses, if that is an action at all."""
    try:
        return run.agent.act(run.observation)
    except TypeError as error:
        trial.require(False, f"act fails ({error})", rule)
        raise


def check_seeds(trial: Trial) -> None:
    """Check that a seed decides all, whatever was learned before."""
    run = trial.start().play()
    run.observation, _ = run.env.reset(seed=SEED)
    run.agent.reset(AGENT_SEED)
    first, run.actions = run.actions, []
    rule = "reset(seed) starts anew: the same seed, the same plays, and nothing learned is left"
    trial.alike(run.play().actions, first, "After reset(seed) it plays otherwise", rule)


def check_batches(trial: Trial) -> None:
    """Check that learner i of a batch is the single learner with the seed s + i."""
    rule = "learner i of reset(s) is the single learner of reset(s + i), whatever B is"
    alone = [run.play().actions for run in trial.singles()]
    for batch in BATCHES:
        played = trial.start(batch).play().actions
        for i in range(batch):
            what = f"Learner {i} of {batch} plays otherwise than the single one"
            trial.alike([row[i] for row in played], alone[i], what, rule)


def check_copies(trial: Trial) -> None:
    """Check that a copy, what was pickled, and who got its state, goes on as the original."""
    for batch in (None, B):
        run = trial.start(batch).play()
        ways: dict[str, Callable[[Run], Run]] = {"deepcopy": copy.deepcopy, "pickle": pickled}
        for how, copied in (ways | {"state_dict": partial(restated, trial)}).items():
            rule = f"{how} gives an agent that goes on as the original, and apart from it"
            try:
                twin = copied(run)
            except Exception as error:  # an agent may hold anything
                trial.require(False, f"{how} fails ({type(error).__name__}: {error}).", rule)
            ahead = copy.deepcopy(twin).play()  # which moves neither of the two
            trial.alike(
                ahead.actions, twin.play().actions, f"A {how} of a {how} plays otherwise", rule
            )
            original = copy.deepcopy(run).play()
            trial.alike(ahead.actions, original.actions, f"After {how} it plays otherwise", rule)


def pickled(run: Run) -> Run:
    """Return a run that was written down and read."""
    restored: Run = pickle.loads(pickle.dumps(run))
    return restored


def restated(trial: Trial, run: Run) -> Run:
    """Return a run with another agent that was brought to the state of this one."""
    twin = copy.deepcopy(run)
    twin.agent = trial.made(twin.env)
    twin.agent.reset(OTHER_SEED)
    twin.agent.load_state_dict(run.agent.state_dict())
    return twin


def check_refusals(trial: Trial) -> None:
    """Check that bad feedback is refused before anything changes."""
    for batch in (None, B):
        run = trial.start(batch).play()
        twin = copy.deepcopy(run)
        action, ones = run.agent.act(run.observation), np.ones(batch or 1)
        twin.agent.act(twin.observation)
        for bad in (np.nan, np.inf, None, "much"):
            rewards: list[object] = [*ones]
            rewards[-1] = bad
            reward = bad if batch is None else rewards
            rule = "observe raises ValueError for such a reward, and changes nothing"
            try:
                run.agent.observe(action, reward)  # type: ignore[arg-type]
            except ValueError:
                continue
            trial.require(False, f"observe takes the reward {shown(reward)}.", rule)
        trial.alike(
            run.play().actions, twin.play().actions, "After refusals it plays otherwise", rule
        )


def check_active(trial: Trial) -> None:
    """Check that learners without data stay as they are."""
    masks = np.random.default_rng(0).random((3 * STEPS, B)) < 0.5
    batch, singles = trial.start(B), trial.singles()
    for mask in masks:
        batch.step(active=mask)
        for single, learns in zip(singles, mask, strict=True):
            single.step(learns=bool(learns))
    rule = "observe(active=mask) changes the learners in the mask, and no other"
    compare(trial, batch, singles, "With others active", rule)


def check_restarts(trial: Trial) -> None:
    """Check that some learners start anew while the others go on."""
    batch, singles = trial.start(B).play(), [run.play() for run in trial.singles()]
    for mask, seed in (([True, False, False], None), ([False, True, True], OTHER_SEED)):
        batch.agent.reset(seed, learners=mask)
        for i in np.flatnonzero(mask):
            singles[i].agent.reset(None if seed is None else seed + int(i))
        batch.play()
        for single in singles:
            single.play()
    rule = "reset(seed, learners=mask) starts those in the mask anew, as single ones, and no other"
    compare(trial, batch, singles, "After others' reset", rule)


def compare(trial: Trial, batch: Run, singles: list[Run], when: str, rule: str) -> None:
    """Check that each learner of a batch has played as the single one."""
    for i, single in enumerate(singles):
        own = [row[i] for row in batch.actions]
        trial.alike(own, single.actions, f"{when} learner {i} plays otherwise", rule)


def check_allowed(trial: Trial) -> None:
    """Check that an agent keeps to the arms that are allowed, or says that it cannot."""
    run = trial.start(B)
    problem, draw = run.agent.problem, np.random.default_rng(0)
    n = len(problem.domain)
    if problem.continuous or not run.agent.takes_allowed:
        rule = "act(allowed=mask) raises ValueError where the agent cannot keep to a mask"
        try:
            run.agent.act(run.observation, allowed=np.ones(n, bool))
        except ValueError:
            return
        trial.require(False, "act takes a mask, and takes_allowed is False.", rule)
    rule = "act(allowed=mask) plays only arms that are True in the mask"
    for t in range(2 * STEPS):
        mask: Mask = draw.random((B, n)) < (0.5 if t % 2 else 0.02)
        mask[np.arange(B), draw.integers(n, size=B)] = True  # at least one
        action: Indices = run.step(allowed=mask)
        outside = ~mask[np.arange(B), action]
        trial.require(not outside.any(), f"Arms {action[outside]} are not allowed.", rule)
    one, other = trial.start(), trial.start()
    for _ in range(STEPS):
        one.step(allowed=np.ones(n, bool))
    trial.alike(one.actions, other.play().actions, "With all arms allowed it plays otherwise", rule)


def check_predict(trial: Trial) -> None:
    """Check that `predict` plays from observations as `act` and `observe` do."""
    rule = (
        "predict(observation, episode_start=...) returns the actions of act and observe, and None"
    )
    one, other = trial.start(B), trial.start(B)
    dim, start = one.agent.problem.domain.shape[1], np.ones(B, bool)
    for t in range(STEPS):
        action = one.agent.act(one.observation)
        found = other.agent.predict(other.observation, episode_start=start if t == 0 else ~start)
        fits = isinstance(found, tuple) and len(found) == 2 and found[1] is None
        trial.require(fits, f"predict returns {shown(found)}.", rule)
        same = np.array_equal(found[0], action)
        fault = f"predict plays {shown(found[0])} instead of {shown(action)} at step {t + 1}."
        trial.require(same, fault, rule)
        one.observation = one.env.step(action)[0]
        other.observation = other.env.step(action)[0]
        one.agent.observe(action, one.observation[:, 2 + dim].astype(float))  # as it is shown
