"""The occasion of a decision: its context, its offers and its time."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from wgp_agents.live.arms import Choices
from wgp_agents.live.choices import Offers
from wgp_agents.live.events import Event
from wgp_agents.live.learner import Entry
from wgp_agents.live.settings import Settings
from wgp_agents.live.times import Time, as_time, is_date
from wgp_agents.live.values import plain
from wgp_gym.types import Array, Json, Mask
from wgp_gym.validation import reject, shown

__all__ = ["Occasion", "check_context", "entry_of_event", "occasion_of", "time_of"]


class Occasion(NamedTuple):
    """What is known of a decision before it is taken.

    Attributes:
        context: The context, as the user wrote it.
        offers: The features of the offers, by id.
        time: When it is.
        dated: Whether the log must say that this is a date, as the bandit has no timescale.
    """

    context: Mapping[str, object] | None
    offers: Mapping[str, Mapping[str, object]] | None
    time: float | None
    dated: bool = False

    def label(self, action: int, choices: Choices) -> Json:
        """Return an arm as the user wrote it; of offers its id."""
        if self.offers is not None:
            return list(self.offers)[action]
        return cast(Json, choices.arms[action])

    def shown(
        self, settings: Settings, choices: Choices, allowed: Sequence[object] | None
    ) -> tuple[Array | None, Mask | None]:
        """Return the places that the agent is shown, `(n, d)`, and which it may choose, `(n,)`.

        None: they stay; and all.

        Raises:
            ValueError: If none may be chosen, or one is unknown.
        """
        if not settings.is_contextual(choices):
            return None, choices.mask(allowed, "ask")
        context = None
        if settings.knobs is not None and self.context is not None:
            context = settings.knobs.place(self.context, "ask", "context")
        if self.offers is None:
            return settings.shown(choices, context, None), choices.mask(allowed, "ask")
        assert isinstance(choices, Offers)
        knobs = choices.knobs
        offers = [knobs.place(row, "ask", f"arms[{id!r}]") for id, row in self.offers.items()]
        mask = self._offered(len(choices.there), allowed)
        return settings.shown(choices, context, np.array(offers)), mask

    def _offered(self, room: int, allowed: Sequence[object] | None) -> Mask | None:
        """Return which places hold offers that may be chosen; None: all."""
        ids = list(self.offers or ())
        mask = np.arange(room) < len(ids)
        if allowed is not None:
            listed = isinstance(allowed, Sequence | np.ndarray) and not isinstance(allowed, str)
            if not listed or not len(allowed) or any(one not in ids for one in allowed):
                reject("allowed", "ask", "ids of the offers", allowed)
            mask &= np.isin(np.arange(room), [ids.index(cast(str, one)) for one in allowed])
        return None if mask.all() else mask

    def check_again(self, asked: Event, choices: Choices, allowed: Sequence[object] | None) -> None:
        """Raise ValueError if what was answered to the same key before is not allowed now.

        Other arms of the list may have gone meanwhile.
        """
        if allowed is None:
            return
        arm, index = asked.data["arm"], cast(int, asked.data["index"])
        here = self.offers is None
        if not (choices.named(allowed, "ask")[index] if here else arm in list(allowed)):
            rule = f"a list that has {shown(arm)}, the answer to this key before: see `retract`"
            reject("allowed", "ask", rule, allowed)

    def written(self, mask: Mask | None) -> dict[str, Json]:
        """Return what the log says of it."""
        found: dict[str, Json] = {}
        if self.dated:
            found["dated"] = True
        if self.context is not None:
            found["context"] = cast(Json, dict(self.context))
        if self.offers is not None:
            found["offers"] = [[name, cast(Json, dict(row))] for name, row in self.offers.items()]
        if mask is not None:
            found["allowed"] = np.flatnonzero(mask).tolist()
        return found


def occasion_of(
    settings: Settings,
    choices: Choices,
    context: Mapping[str, object] | None,
    offers: Mapping[str, Mapping[str, object]] | None,
    time: Time | None,
    owner: str,
) -> Occasion:
    """Return the occasion of a decision, in Python's own numbers and texts.

    Raises:
        ValueError: If something is missing, or left over.
    """
    check_context(settings, context, owner)
    context = None if context is None else plain_row(context)
    if (offers is None) == choices.changing:
        rule = "the features of the offers, by id" if choices.changing else "left out"
        reject("arms", owner, rule, offers)
    if offers is not None:
        room = len(choices.there)
        if not isinstance(offers, Mapping) or not 0 < len(offers) <= room:
            reject("arms", owner, f"a dict of 1 to {room} offers", offers)
        if not all(isinstance(name, str) for name in offers):
            reject("arms", owner, "a dict whose keys are texts", list(offers))
        if not all(isinstance(row, Mapping) for row in offers.values()):
            reject("arms", owner, "a dict of dicts: the features of each offer", offers)
        offers = {name: plain_row(row) for name, row in offers.items()}
    dated = settings.timescale is None and is_date(time)
    return Occasion(context, offers, moment(settings, time, owner), dated)


def check_context(settings: Settings, context: Mapping[str, object] | None, owner: str) -> None:
    """Raise ValueError unless a context is one of this bandit's, or none where it has none."""
    if (context is None) != (settings.knobs is None):
        rule = "left out" if settings.knobs is None else f"a dict of {settings.knobs.names}"
        reject("context", owner, rule, context)
    if settings.knobs is not None and context is not None:
        settings.knobs.place(context, owner, "context")


def plain_row(row: Mapping[str, object]) -> dict[str, object]:
    """Return named values without numpy's types, as the log can hold them."""
    return {name: plain(value) for name, value in row.items()}


def time_of(settings: Settings, given: Time, owner: str) -> float:
    """Return a time as a number: a date or a number, as the timescale says.

    Raises:
        ValueError: If it is none, or of the other kind.
    """
    return as_time(given, owner, None if settings.timescale is None else settings.dated)


def moment(settings: Settings, given: Time | None, owner: str) -> float | None:
    """Return the time of a decision: as given, or now, where the timescale is a duration."""
    if given is not None:
        return time_of(settings, given, owner)
    if settings.timescale is None:
        return None
    if not settings.dated:
        reject("time", owner, "given, as the timescale is a number", given)
    return clock.time()


def entry_of_event(asked: Event, settings: Settings, choices: Choices) -> Entry:
    """Return a decision of the log as a learner takes it in."""
    data = asked.data
    offers = cast("Sequence[tuple[str, Mapping[str, object]]] | None", data.get("offers"))
    context = cast("Mapping[str, object] | None", data.get("context"))
    occasion = Occasion(context, None if offers is None else dict(offers), asked.time)
    shown = None
    if settings.is_contextual(choices):
        shown, _ = occasion.shown(settings, choices, None)
    mask = None
    if data.get("allowed") is not None:
        mask = np.isin(np.arange(len(choices.there)), cast("list[int]", data["allowed"]))
    return Entry(int(str(asked.decision)), cast(int, data["index"]), asked.time, shown, mask)
