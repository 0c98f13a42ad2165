"""The contract of every agent as a check that anybody can run on an agent of their own."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from wgp_agents.base import Agent
from wgp_agents.registry import make
from wgp_agents.testing import checks, elapsed, live
from wgp_agents.testing.trial import HORIZON, BrokenContract, Trial

__all__ = ["BrokenContract", "check_agent"]


def check_agent(
    agent: str | Callable[..., Agent],
    task: str = "WGPBandit-Abrupt-v0",
    *,
    kwargs: Mapping[str, object] | None = None,
    parameters: Mapping[str, object] | None = None,
) -> None:
    """Check that an agent keeps the contract of every agent, as Gymnasium's `check_env` does.

    It plays some 20 episodes of up to 48 steps, alone and in batches of up to 3.

    Args:
        agent: Its class; or what `wgp_agents.make` takes, a name or "module:Class".
        task: The id of the environment to play. It needs a native vector environment, or
            single ones are stepped one by one.
        kwargs: What the environment is made with, so that T is at least 48; default:
            `{"horizon": 48}`.
        parameters: What the agent is made with, beside the environment.

    Raises:
        ValueError: If an episode is shorter than 48 steps.
        BrokenContract: If it does not keep it; the message says what it did, and the rule.
    """
    made = partial(make, agent) if isinstance(agent, str) else agent
    name = agent if isinstance(agent, str) else getattr(agent, "__name__", repr(agent))
    given = {"horizon": HORIZON} if kwargs is None else kwargs
    trial = Trial(name, partial(made, **dict(parameters or {})), task, given)
    trial.start()  # imports what the agent needs, and an import may draw
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    for check in CHECKS:
        check(trial)
    after = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    trial.require(
        before == after,
        "It draws from, or seeds, a global random generator.",
        "an agent draws from its own streams, which reset(seed) gives it",
    )


CHECKS: tuple[Callable[[Trial], None], ...] = (
    checks.check_actions,
    checks.check_seeds,
    checks.check_batches,
    checks.check_copies,
    checks.check_refusals,
    checks.check_active,
    checks.check_restarts,
    checks.check_allowed,
    checks.check_predict,
    live.check_choices,
    elapsed.check_time,
    elapsed.check_learners_time,
    elapsed.check_time_counts,
    live.check_awaited,
    live.check_reasons,
    live.check_checkpoints,
    live.check_reseeding,
)
