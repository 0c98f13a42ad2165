"""A bandit on a running system: ask and tell, in the user's own words and units."""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple, Self, cast, overload

import numpy as np

from wgp_agents.live.choices import CANDIDATES, Arm, Arms, Choices, Offers, choices_of
from wgp_agents.live.decision import Decision
from wgp_agents.live.events import Event, as_text, from_text
from wgp_agents.live.knobs import Knobs
from wgp_agents.live.learner import Entry, Learner
from wgp_agents.live.rewards import RewardKind, Rewards
from wgp_agents.live.settings import DEFAULT_AGENT, Settings, agreed, check_agent_name, version
from wgp_agents.live.storage import Session, Snapshot, open_store
from wgp_agents.live.times import Time, Timescale, as_seconds, as_time, when
from wgp_gym.types import Array, Json, Mask
from wgp_gym.validation import check_int, reject

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["LiveBandit"]

SNAPSHOT_EVERY = 1_000  # events
MOST_AT_ONCE = 1_000  # decisions of one `ask`


class History(NamedTuple):
    """What the log says of one decision.

    Attributes:
        asked: When it was asked.
        told: Whether its reward, or that there is none, was told.
        reward: The reward as it is now; None: none.
    """

    asked: Event
    told: bool
    reward: float | None


class LiveBandit:
    """An agent on a running system.

        seller = LiveBandit(Arms([9.99, 10.99, 12.99]), storage="sqlite:///shop.db", name="espresso")
        decision = seller.ask()
        seller.tell(decision.id, 41_320.0)

    What it knows follows from its log alone: from what was asked and told, in the order in which it
    was asked. Made again with the same storage and name it goes on as if it had never stopped.
    Several threads and processes may use one bandit.

    Args:
        arms: What is chosen from: `Arms`, `Knobs` or `Offers`.
        agent: The agent's name. The default learns the unit of rewards, the noise, the lengthscale
            and the rate of change.
        parameters: Parameters of the agent, as JSON has them. Those in the unit of rewards are in
            `unit`, or in the learned one.
        contexts: What is known of the occasion at each decision: the range of each quantity.
        reward: What rewards are: see `wgp_agents.live.rewards`.
        minimize: Whether less is better.
        unit: (centre, scale) from which and in which an agent counts rewards that is told their
            noise and norm. Default: learned from the first ten rewards, and then fixed.
        timescale: How long a step of the drifting world is, as "1 day" or a number: what is known
            fades by the time that goes by. Default: by decisions.
        horizon: T, for agents that tune themselves by it.
        seed: What all draws follow from.
        lookback: How many decisions may wait for the reward of an earlier one, at most; an earlier
            one beyond is given up.
        candidates: How many points of `Knobs` are chosen from.
        storage: A file or URL of a database, see `open_store`; None: memory.
        name: Its name there.

    Attributes:
        name: As given.

    Raises:
        ValueError: If a parameter is out of its range, or there is a bandit of this name that was
            made otherwise.
    """

    def __init__(
        self,
        arms: Choices | Knobs | Sequence[object],
        *,
        agent: str = DEFAULT_AGENT,
        parameters: Mapping[str, object] | None = None,
        contexts: Knobs | None = None,
        reward: RewardKind = "real",
        minimize: bool = False,
        unit: tuple[float, float] | None = None,
        timescale: Timescale | None = None,
        horizon: int | None = None,
        seed: int = 0,
        lookback: int = 100,
        candidates: int = CANDIDATES,
        storage: str | PathLike[str] | None = None,
        name: str = "bandit",
    ) -> None:
        owner = type(self).__name__
        if contexts is not None and not isinstance(contexts, Knobs):
            reject("contexts", owner, "Knobs(...)", contexts)
        single = isinstance(arms, Sequence | np.ndarray) and not isinstance(arms, str)
        choices = choices_of(Arms(arms) if single else arms, candidates)
        scale = None if timescale is None else as_seconds(timescale, owner)
        settings = Settings(
            choices.to_json(),
            agent=check_agent_name(agent),
            parameters=parameters or {},
            contexts=None if contexts is None else contexts.to_json(),
            reward=reward,
            minimize=minimize,
            unit=None if unit is None else (float(unit[0]), float(unit[1])),
            timescale=None if scale is None else scale[0],
            dated=scale is not None and scale[1],
            horizon=horizon,
            seed=seed,
            lookback=lookback,
        )
        self._begin(settings, storage, name)

    @classmethod
    def open(cls, storage: str | PathLike[str], name: str, *, agent: str | None = None) -> Self:
        """Return the bandit of this name, as it was made.

        Args:
            storage: A file or URL of a database.
            name: The bandit's name.
            agent: Its agent, which must be said where that is "module:Class": a database does not
                tell what code is run.

        Raises:
            ValueError: If there is none.
        """
        found = cls.__new__(cls)
        found._begin(None, storage, name, agent)
        return found

    def _begin(
        self,
        settings: Settings | None,
        storage: str | PathLike[str] | None,
        name: str,
        agent: str | None = None,
    ) -> None:
        self.name = name
        self._lock = threading.RLock()
        self._stale = self._touched = False
        self._seq = self._count = 0
        if settings is not None:
            settings.make_agent(settings.new_choices())  # what cannot be made is not written down
        self._store = open_store(storage, name)
        with self._store.session() as session:
            self._settings = agreed(settings, session, name, agent)
            self._rebuild(session)

    def close(self) -> None:
        """Let go of the storage."""
        self._store.close()

    # Ask

    @overload
    def ask(
        self,
        n: None = None,
        *,
        context: Mapping[str, object] | None = None,
        arms: Mapping[str, Mapping[str, object]] | None = None,
        allowed: Sequence[object] | None = None,
        key: str | None = None,
        time: Time | None = None,
    ) -> Decision: ...

    @overload
    def ask(
        self,
        n: int,
        *,
        context: Mapping[str, object] | None = None,
        arms: Mapping[str, Mapping[str, object]] | None = None,
        allowed: Sequence[object] | None = None,
        key: str | None = None,
        time: Time | None = None,
    ) -> list[Decision]: ...

    def ask(
        self,
        n: int | None = None,
        *,
        context: Mapping[str, object] | None = None,
        arms: Mapping[str, Mapping[str, object]] | None = None,
        allowed: Sequence[object] | None = None,
        key: str | None = None,
        time: Time | None = None,
    ) -> Decision | list[Decision]:
        """Return what is to be done now.

        Args:
            n: How many decisions at once: a list of so many, that differ where that is worth it.
                Default: one, by itself.
            context: What is known of the occasion, where the bandit has contexts.
            arms: The offers of this decision, by their ids, where it was made with `Offers`.
            allowed: The arms that may be chosen now. Default: all that are there.
            key: Asked again with the same key, the answer is the same.
            time: When it is. Default: now, where `timescale` is a duration; it must be said where
                that is a number.

        Raises:
            ValueError: If an argument does not fit.
        """
        count = 1 if n is None else check_int("n", n, "ask", 1, MOST_AT_ONCE)
        occasion = self._occasion(context, arms, time)
        keys = [key if n is None or key is None else f"{key}#{i}" for i in range(count)]
        with self._session() as session:
            found = [self._decide(session, occasion, allowed, one) for one in keys]
        return found[0] if n is None else found

    def _decide(
        self,
        session: Session,
        occasion: Occasion,
        allowed: Sequence[object] | None,
        key: str | None,
    ) -> Decision:
        if key is not None and (known := session.by_key(key)) is not None:
            return self._decision(known)
        shown, mask = self._shown(occasion, allowed)
        number = self._count + 1
        self._touched = True
        action = self._learner.choose(number, occasion.time, shown, mask)
        bands = self._learner.bands()
        data: dict[str, Json] = {"arm": self._label(action, occasion), "index": action}
        if bands is not None:
            mean, std = float(bands[0][action]), float(bands[1][action])
            rewards, unit = self._settings.rewards, self._learner.unit
            data["mean"] = float(rewards.written(mean, unit))
            data["std"] = float(rewards.spread(mean, std, unit))
        return self._decision(self._asked(session, number, data, occasion, mask, key))

    def _asked(
        self,
        session: Session,
        number: int,
        data: dict[str, Json],
        occasion: Occasion,
        mask: Mask | None,
        key: str | None,
    ) -> Event:
        if occasion.context is not None:
            data["context"] = dict(occasion.context)  # type: ignore[arg-type]  # checked: knobs
        if occasion.offers is not None:
            data["offers"] = [[i, dict(f)] for i, f in occasion.offers.items()]
        if mask is not None and occasion.offers is None:
            data["allowed"] = np.flatnonzero(mask).tolist()
        return self._append(session, Event("asked", str(number), data, occasion.time, key))

    def _occasion(
        self,
        context: Mapping[str, object] | None,
        offers: Mapping[str, Mapping[str, object]] | None,
        time: Time | None,
    ) -> Occasion:
        """Return what is known of a decision before it is taken."""
        settings, owner = self._settings, "ask"
        if (context is None) != (settings.knobs is None):
            rule = "left out" if settings.knobs is None else f"a dict of {settings.knobs.names}"
            reject("context", owner, rule, context)
        if (offers is None) == self._choices.changing:
            rule = "the offers by their ids" if self._choices.changing else "left out"
            reject("arms", owner, rule, offers)
        if offers is not None and not (isinstance(offers, Mapping) and 0 < len(offers)):
            reject("arms", owner, "a dict of features by id", offers)
        if offers is not None and len(offers) > len(self._choices.there):
            reject("arms", owner, f"at most {len(self._choices.there)} offers", len(offers))
        if settings.knobs is not None and context is not None:
            settings.knobs.place(context, owner)
        return Occasion(context, offers, self._time(time, owner))

    def _time(self, given: Time | None, owner: str) -> float | None:
        settings = self._settings
        if given is not None:
            return as_time(given, owner)
        if settings.timescale is None:
            return None
        if not settings.dated:
            reject("time", owner, "given, as the timescale is a number", given)
        return clock.time()

    def _shown(
        self, occasion: Occasion, allowed: Sequence[object] | None
    ) -> tuple[Array | None, Mask | None]:
        """Return the places that are shown, and which may be chosen."""
        settings, choices = self._settings, self._choices
        if not settings.is_contextual(choices):
            return None, choices.mask(allowed, "ask")
        context = None
        if settings.knobs is not None and occasion.context is not None:
            context = settings.knobs.place(occasion.context, "ask")
        if occasion.offers is None:
            return settings.shown(choices, context, None), choices.mask(allowed, "ask")
        assert isinstance(choices, Offers)
        offers = [choices.knobs.place(f, "ask") for f in occasion.offers.values()]
        mask = np.arange(choices.most) < len(offers)
        if allowed is not None:
            ids = list(occasion.offers)
            wrong = [one for one in allowed if one not in ids]
            if wrong or not allowed:
                reject("allowed", "ask", "ids of the offers", allowed)
            mask &= np.isin(np.arange(choices.most), [ids.index(cast(str, a)) for a in allowed])
        found = None if mask.all() else mask
        return settings.shown(choices, context, np.array(offers)), found

    def _label(self, action: int, occasion: Occasion) -> Json:
        if occasion.offers is not None:
            return list(occasion.offers)[action]
        return cast(Json, self._choices.arms[action])

    def _decision(self, event: Event) -> Decision:
        data = event.data
        return Decision(
            id=cast(str, event.decision),
            arm=cast(Arm, data["arm"]),
            index=cast(int, data["index"]),
            mean=cast("float | None", data.get("mean")),
            std=cast("float | None", data.get("std")),
            time=when(event.time, self._settings.dated),
            propensity=cast("float | None", data.get("propensity")),
            context=cast("Mapping[str, object] | None", data.get("context")),
            key=event.key,
        )

    # Tell

    def tell(
        self, decision: str | Decision, reward: float | None, *, time: Time | None = None
    ) -> None:
        """Say what a decision paid; None: that will never be known.

        The reward counts as of the time of its decision, whenever it comes. Told twice alike, it
        counts once.

        Args:
            decision: The decision, or its id.
            reward: What it paid.
            time: When that was known, for the log; where the decision was given up, it counts as
                of then.

        Raises:
            ValueError: If there is no such decision, it has another reward already, or this is no
                reward.
        """
        paid = None if reward is None else self._settings.rewards.check(reward)
        moment = None if time is None else as_time(time, "tell")
        with self._session() as session:
            history = self._history(session, decision, "tell")
            if history.told:
                if history.reward == paid:
                    return
                reject("reward", "tell", f"{history.reward}, as told before: see `amend`", reward)
            data: dict[str, Json] = {"reward": paid, "arm": history.asked.data["arm"]}
            self._append(session, Event("told", history.asked.decision, data, moment))

    def amend(self, decision: str | Decision, reward: float | None) -> None:
        """Put another reward in the place of one that was wrong: as if it had been told so."""
        paid = None if reward is None else self._settings.rewards.check(reward)
        with self._session() as session:
            history = self._history(session, decision, "amend")
            if not history.told:
                reject("decision", "amend", "one whose reward was told: see `tell`", decision)
            self._rewrite(
                session, Event("amended", history.asked.decision, {"reward": paid}), history
            )

    def retract(self, decision: str | Decision) -> None:
        """Take a decision back, with its reward: as if it had never been."""
        with self._session() as session:
            history = self._history(session, decision, "retract")
            self._rewrite(session, Event("retracted", history.asked.decision, {}), history)

    def record(
        self,
        arm: object,
        reward: float | None,
        *,
        context: Mapping[str, object] | None = None,
        time: Time | None = None,
    ) -> str:
        """Learn from what somebody else chose, and return the decision's id.

        Raises:
            ValueError: If there is no such arm, or this is no reward.
        """
        paid = None if reward is None else self._settings.rewards.check(reward)
        if self._choices.changing:
            reject("arm", "record", "left out: offers are known to `ask` alone", arm)
        occasion = self._occasion(context, None, time)
        with self._session() as session:
            index = self._choices.index(arm, "record")
            number = self._count + 1
            data: dict[str, Json] = {"arm": self._label(index, occasion), "index": index}
            data["human"] = True
            event = self._asked(session, number, data, occasion, None, None)
            told: dict[str, Json] = {"reward": paid, "arm": data["arm"]}
            self._append(session, Event("told", event.decision, told, occasion.time))
        return str(number)

    # Arms that come and go

    def add_arm(self, arm: object, features: Mapping[str, object] | None = None) -> None:
        """Take in a new arm, or again one that was removed; what is known of the rest stays."""
        with self._session() as session:
            trial = choices_of(self._choices.to_json())
            trial.there = self._choices.there.copy()
            trial.add(arm, features, "add_arm")
            data: dict[str, Json] = {"added": cast(Json, arm)}
            data["features"] = None if features is None else cast(Json, dict(features))
            self._touched = True
            session.append(Event("arms", None, data))
            self._rebuild(session)

    def remove_arm(self, arm: object) -> None:
        """Take an arm out of the choice; what is known of it stays."""
        with self._session() as session:
            trial = choices_of(self._choices.to_json())
            trial.there = self._choices.there.copy()
            trial.remove(arm, "remove_arm")
            label = cast(Json, self._choices.arms[self._choices.index(arm, "remove_arm")])
            self._append(session, Event("arms", None, {"removed": label}))

    # The log and the learner

    @contextmanager
    def _session(self) -> Iterator[Session]:
        """Open the log, for this thread alone, and take in what others wrote."""
        with self._lock:
            self._touched = False
            try:
                with self._store.session() as session:
                    self._sync(session)
                    yield session
            except BaseException:
                self._stale = self._stale or self._touched  # it may know what was not kept
                raise

    def _sync(self, session: Session) -> None:
        if self._stale or session.last < self._seq:
            self._rebuild(session)
        events = session.events(self._seq)
        if any(rewrites(event) for event in events):
            self._rebuild(session)
            return
        for event in events:
            self._take(session, event, {})

    def _append(self, session: Session, event: Event) -> Event:
        """Write an event down, and learn from it."""
        self._touched = True
        kept = session.append(event)
        self._take(session, kept, {})
        if kept.seq % SNAPSHOT_EVERY == 0:
            self._keep(session)
        return kept

    def _rewrite(self, session: Session, event: Event, history: History) -> None:
        """Write down an event that changes the past, and learn anew from there."""
        self._touched = True
        session.append(event)
        session.drop_snapshots(history.asked.seq)
        self._rebuild(session)

    def _rebuild(self, session: Session) -> None:
        """Learn from the log: from its last snapshot, where that is still right."""
        self._stale = True
        kept = session.snapshot(version=version())
        start = self._restored(kept)
        events = session.events(start)
        if start and any("added" in event.data for event in events if event.kind == "arms"):
            start = self._restored(None)
            events = session.events(start)
        if start == 0:
            for event in events:
                if event.kind == "arms" and "added" in event.data:
                    features = cast("Mapping[str, object] | None", event.data.get("features"))
                    if event.data["added"] in self._choices.arms:
                        continue
                    self._choices.add(event.data["added"], features, "open")
            self._make_learner()
        changed = changes(events)
        for event in events:
            self._take(session, event, changed)
        self._stale = False

    def _restored(self, kept: Snapshot | None) -> int:
        """Take a snapshot, if it is right, and return its number; else start anew, from 0."""
        self._choices = self._settings.new_choices()
        self._seq = self._count = 0
        if kept is None:
            return 0
        try:
            head, _, body = kept.data.partition(b"\n")
            about = cast("dict[str, Json]", from_text(head.decode()))
            self._choices = choices_of(about["choices"])
            if kept.fingerprint != self._fingerprint():
                raise ValueError("It is of other settings.")
            self._choices.there = np.array(about["there"], bool)
            self._make_learner()
            self._learner.unpack(body)
            self._seq, self._count = kept.seq, cast(int, about["count"])
        except (ValueError, KeyError, TypeError):  # damaged, or written otherwise: the log has all
            return self._restored(None)
        return self._seq

    def _make_learner(self) -> None:
        settings = self._settings
        self._learner = Learner(
            settings.make_agent(self._choices),
            settings.rewards,
            unit=settings.given_unit,
            seed=settings.seed,
            lookback=settings.lookback,
            timescale=settings.timescale,
        )

    def _keep(self, session: Session) -> None:
        """Keep a snapshot of what is known."""
        about: dict[str, Json] = {
            "choices": cast(Json, self._choices.to_json()),
            "there": self._choices.there.tolist(),
            "count": self._count,
        }
        data = as_text(about).encode() + b"\n" + self._learner.packed()
        session.keep(Snapshot(self._seq, data, version(), self._fingerprint()))

    def _fingerprint(self) -> str:
        return self._settings.fingerprint(self._choices.to_json())

    def _take(self, session: Session, event: Event, changed: Mapping[str, Event]) -> None:
        """Learn from an event; `changed` has what was amended or retracted later."""
        change = None if event.decision is None else changed.get(event.decision)
        gone = change is not None and change.kind == "retracted"
        if event.kind == "asked":
            self._count += 1
            if not gone:
                self._learner.add(self._entry(event))
        elif event.kind == "told" and not gone:
            reward = (change or event).data["reward"]
            self._learner.answer(
                int(cast(str, event.decision)),
                cast("float | None", reward),
                late=lambda: self._late(session, event),
            )
        elif event.kind == "arms":
            label = event.data.get("removed", event.data.get("added"))
            self._choices.there[self._choices.index(label, "open")] = "added" in event.data
        self._seq = event.seq

    def _late(self, session: Session, told: Event) -> Entry:
        """Return a decision that was given up, as of when its reward came."""
        (asked, *_) = session.of_decision(cast(str, told.decision))
        entry = self._entry(asked)
        entry.time = told.time
        return entry

    def _entry(self, asked: Event) -> Entry:
        data, settings, choices = asked.data, self._settings, self._choices
        offers = data.get("offers")
        occasion = Occasion(
            cast("Mapping[str, object] | None", data.get("context")),
            None if offers is None else {i: f for i, f in offers},  # type: ignore[union-attr]
            asked.time,
        )
        shown, mask = None, None
        if settings.is_contextual(choices):
            shown, mask = self._shown(occasion, None)
        if data.get("allowed") is not None:
            mask = np.isin(np.arange(len(choices.there)), data["allowed"])
        elif offers is None:
            mask = None
        number, index = int(cast(str, asked.decision)), cast(int, data["index"])
        return Entry(number, index, asked.time, shown, mask)

    def _history(self, session: Session, decision: str | Decision, owner: str) -> History:
        """Return what the log says of a decision."""
        name = decision.id if isinstance(decision, Decision) else decision
        events = session.of_decision(name) if isinstance(name, str) else []
        if not events or events[-1].kind == "retracted":
            reject("decision", owner, "one that was asked, and not retracted", decision)
        told = [event for event in events if event.kind in ("told", "amended")]
        reward = cast("float | None", told[-1].data["reward"]) if told else None
        return History(events[0], bool(told), reward)


class Occasion(NamedTuple):
    """What is known of a decision before it is taken.

    Attributes:
        context: The context, as the user wrote it.
        offers: The features of the offers, by id.
        time: When it is.
    """

    context: Mapping[str, object] | None
    offers: Mapping[str, Mapping[str, object]] | None
    time: float | None


def rewrites(event: Event) -> bool:
    """Tell whether an event changes what earlier ones mean."""
    return event.kind in ("amended", "retracted") or (
        event.kind == "arms" and "added" in event.data
    )


def changes(events: Sequence[Event]) -> dict[str, Event]:
    """Return the last change of each decision that was amended or retracted."""
    kinds = ("amended", "retracted")
    return {e.decision: e for e in events if e.kind in kinds and e.decision is not None}
