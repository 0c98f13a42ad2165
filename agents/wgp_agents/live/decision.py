"""One decision of a live bandit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from wgp_agents.live.choices import Arm

__all__ = ["Decision"]


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
