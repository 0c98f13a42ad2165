"""What the log says of one decision."""

from __future__ import annotations

from typing import NamedTuple, cast

from wgp_agents.live.decision import Decision
from wgp_agents.live.events import Event, check_text
from wgp_agents.live.storage import Session
from wgp_gym.validation import reject

__all__ = ["DecisionHistory", "history_of"]


class DecisionHistory(NamedTuple):
    """What the log says of one decision.

    Attributes:
        asked: When it was asked.
        told: Whether its reward, or that there is none, was told.
        reward: The reward as it is now; None: none.
    """

    asked: Event
    told: bool
    reward: float | None


def answered(session: Session, key: str | None, again: str) -> tuple[Event | None, str | None]:
    """Return the decision that was asked with a key, and the key for a new one if there is none.

    One that was retracted does not count; the new key has `again` behind it.
    """
    if key is None:
        return None, None
    check_text("key", key, "ask")
    free = key
    while (known := session.by_key(free)) is not None:
        if session.of_decision(str(known.decision))[-1].kind != "retracted":
            return known, None
        free += again
    return None, free


def history_of(
    session: Session, bandit: str, decision: str | Decision, owner: str
) -> DecisionHistory:
    """Return what the log says of a decision.

    Raises:
        ValueError: If it was never asked, was retracted, or is another bandit's.
    """
    if isinstance(decision, Decision) and decision.bandit != bandit:
        reject("decision", owner, f"one of {bandit!r}", f"one of {decision.bandit!r}")
    name = decision.id if isinstance(decision, Decision) else decision
    if not isinstance(name, str):
        reject("decision", owner, "a Decision, or a text, as Decision.id", decision)
    events = session.of_decision(name)
    if not events or events[-1].kind == "retracted":
        reject("decision", owner, "one that was asked, and not retracted", decision)
    told = [event for event in events if event.kind in ("told", "amended")]
    reward = cast("float | None", told[-1].data["reward"]) if told else None
    return DecisionHistory(events[0], bool(told), reward)
