"""A learner that follows a log: all that it knows is what the log says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import cast

import numpy as np

from wgp_agents.live.choices import choices_of
from wgp_agents.live.events import Event, as_text, from_text
from wgp_agents.live.learner import Entry, Learner
from wgp_agents.live.occasion import entry_of_event
from wgp_agents.live.settings import Settings, version
from wgp_agents.live.storage import Session, Snapshot, Store
from wgp_gym.types import Json

__all__ = ["Follower"]

SNAPSHOT_EVERY = 1_000  # events


class Follower:
    """A learner, what it chooses from, and how far in the log it is: known within a session.

    Args:
        settings: What the bandit was made with.
        store: Its log.

    Attributes:
        settings: As given.
        choices: What is chosen from, as of the last event.
        learner: The learner.
        count: How many decisions were asked.
    """

    learner: Learner

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self._store, self._lock = settings, store, RLock()
        self._stale, self.touched = True, False
        self.choices = settings.new_choices()
        self._seq = self.count = 0

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open the log, for this thread alone, and take in what others wrote.

        What is learned in it before an error may not be in the log: set `touched` before.
        """
        with self._lock:
            self.touched = False
            try:
                with self._store.session() as session:
                    self._catch_up(session)
                    yield session
            except BaseException:
                self._stale = self._stale or self.touched
                raise

    def append(self, session: Session, event: Event) -> Event:
        """Write an event down, and learn from it."""
        self.touched = True
        kept = session.append(event)
        self._take(session, kept, {})
        if kept.seq % SNAPSHOT_EVERY == 0:
            self._keep(session)
        return kept

    def rewrite(self, session: Session, event: Event, since: int) -> None:
        """Write down an event that changes what one before means, and learn anew from there."""
        self.touched = True
        session.append(event)
        session.drop_snapshots(since)
        self._rebuild(session)

    def _catch_up(self, session: Session) -> None:
        if self._stale or session.last < self._seq:
            self._rebuild(session)
            return
        events = session.events(self._seq) if session.last > self._seq else []
        if any(rewrites(event) for event in events):
            self._rebuild(session)
            return
        self._stale = bool(events)  # if it is interrupted
        for event in events:
            self._take(session, event, {})
        self._stale = False

    def _rebuild(self, session: Session) -> None:
        """Learn from the log: from its last snapshot, where that is still right."""
        self._stale = True
        self._restore(session.snapshot(version=version()))
        events = session.events(self._seq)
        if self._seq and any(adds(event) for event in events):  # of which no snapshot knows
            self._start_anew()
            events = session.events()
        if self._seq == 0 and any(map(adds, events)):
            self._add_arms(events)
        changed = changes(events)
        for event in events:
            self._take(session, event, changed)
        self._stale = False
        if len(events) >= SNAPSHOT_EVERY:
            self._keep(session)

    def _start_anew(self) -> None:
        self.choices = self.settings.new_choices()
        self._seq = self.count = 0
        self.learner = self._new_learner()

    def _add_arms(self, events: Sequence[Event]) -> None:
        """Let all arms that ever came be there from the start, so that their places are known."""
        for event in filter(adds, events):
            if not self.choices.has(event.data["added"]):
                features = cast("Mapping[str, object] | None", event.data.get("features"))
                self.choices.add(event.data["added"], features, "add_arm")
                self.choices.there[-1] = False
        self.learner = self._new_learner()

    def _restore(self, kept: Snapshot | None) -> None:
        """Take a snapshot, if it is right; else start anew."""
        if kept is None:
            self._start_anew()
            return
        try:
            head, _, body = kept.data.partition(b"\n")
            about = from_text(head.decode())
            self.choices = choices_of(about["choices"])
            if kept.fingerprint != self.settings.fingerprint(self.choices.to_json()):
                raise ValueError("It is of other settings.")
            self.choices.there = np.array(about["there"], bool)
            self.learner = self._new_learner()
            self.learner.unpack(body)
            self._seq, self.count = kept.seq, cast(int, about["count"])
        except (ValueError, KeyError, TypeError):  # written otherwise: the log has all
            self._start_anew()

    def _new_learner(self) -> Learner:
        settings = self.settings
        return Learner(
            settings.make_agent(self.choices),
            settings.rewards,
            unit=settings.given_unit,
            seed=settings.seed,
            lookback=settings.lookback,
            timescale=settings.timescale,
        )

    def _keep(self, session: Session) -> None:
        """Keep a snapshot of what is known."""
        choices = self.choices.to_json()
        about: dict[str, Json] = {
            "choices": cast(Json, choices),
            "there": self.choices.there.tolist(),
            "count": self.count,
        }
        data = as_text(about).encode() + b"\n" + self.learner.packed()
        session.keep(Snapshot(self._seq, data, version(), self.settings.fingerprint(choices)))

    def _take(self, session: Session, event: Event, changed: Mapping[str, Event]) -> None:
        """Learn from an event; `changed` has what was amended or retracted later."""
        change = None if event.decision is None else changed.get(event.decision)
        gone = change is not None and change.kind == "retracted"
        if event.kind == "asked":
            self.count += 1
            if not gone:
                self.learner.add(self._entry(event))
        elif event.kind == "told" and not gone:
            reward = cast("float | None", (change or event).data["reward"])
            number = int(str(event.decision))
            self.learner.answer(number, reward, lambda: self._late(session, event))
        elif event.kind == "arms":
            arm = event.data.get("removed", event.data.get("added"))
            self.choices.there[self.choices.index(arm, "add_arm")] = "added" in event.data
        self._seq = event.seq

    def _entry(self, asked: Event) -> Entry:
        """Return a decision of the log as the learner takes it in."""
        entry, there = entry_of_event(asked, self.settings, self.choices), self.choices.there
        # The log has no mask where all arms were there, of which some had not come yet.
        if entry.allowed is None and not there.all() and self.learner.agent.takes_allowed:
            entry.allowed = there | (np.arange(len(there)) == entry.action)
        return entry

    def _late(self, session: Session, told: Event) -> Entry:
        """Return a decision that was given up, as of when its reward came."""
        (asked, *_) = session.of_decision(str(told.decision))
        entry = self._entry(asked)
        entry.time = told.time
        return entry


def adds(event: Event) -> bool:
    """Tell whether an event brings an arm."""
    return event.kind == "arms" and "added" in event.data


def rewrites(event: Event) -> bool:
    """Tell whether an event changes what earlier ones mean."""
    return event.kind in ("amended", "retracted") or adds(event)


def changes(events: Sequence[Event]) -> dict[str, Event]:
    """Return the last change of each decision that was amended or retracted."""
    kinds = ("amended", "retracted")
    return {e.decision: e for e in events if e.kind in kinds and e.decision is not None}
