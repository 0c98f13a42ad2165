"""One decision of a live bandit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from wgp_agents.live.arms import Arm
from wgp_agents.live.events import Event

__all__ = ["Decision", "decision_of"]


@dataclass(frozen=True)
class Decision:
    """What a live bandit says is to be done now.

    Attributes:
        id: Its name, under which the reward is told.
        arm: The arm, as the user wrote it; of offers its id.
        index: Which of the arms that is; of offers, of those that were shown.
        mean: The reward that is expected of it, in the user's unit; None where the agent has no
            posterior.
        std: The standard deviation of that.
        time: When it was taken; None where nobody tells the time.
        propensity: The probability with which this arm was chosen; None where it is not known.
        context: What was known of the occasion.
        key: The key that it was asked with.
        bandit: Whose it is.
    """

    id: str
    arm: Arm
    index: int
    mean: float | None = None
    std: float | None = None
    time: float | datetime | None = None
    propensity: float | None = None
    context: Mapping[str, object] | None = None
    key: str | None = None
    bandit: str = ""


def decision_of(
    asked: Event, bandit: str, key: str | None, time: float | datetime | None = None
) -> Decision:
    """Return the decision that an event of a bandit's log is, with its key and time as asked."""
    data = asked.data
    return Decision(
        id=cast(str, asked.decision),
        arm=cast(Arm, data["arm"]),
        index=cast(int, data["index"]),
        mean=cast("float | None", data.get("mean")),
        std=cast("float | None", data.get("std")),
        time=time,
        propensity=cast("float | None", data.get("propensity")),
        context=cast("Mapping[str, object] | None", data.get("context")),
        key=key,
        bandit=bandit,
    )
