"""Many bandits of one kind that play as one batch."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Self, cast

import numpy as np

from wgp_agents.gp.model import Posterior
from wgp_agents.live.arms import Choices
from wgp_agents.live.choices import CANDIDATES, choices_of
from wgp_agents.live.decision import Decision, decision_of
from wgp_agents.live.events import BATCH, Event
from wgp_agents.live.fleet_learner import FleetLearner
from wgp_agents.live.knobs import Knobs
from wgp_agents.live.learner import Entry
from wgp_agents.live.rewards import RewardKind
from wgp_agents.live.settings import (
    DEFAULT_AGENT,
    Settings,
    agreed,
    check_agent_name,
    checked_unit,
    version,
)
from wgp_agents.live.storage import Session, Snapshot, open_store
from wgp_gym.types import Indices, Json
from wgp_gym.validation import cut, near_miss, reject

__all__ = ["LiveBandits"]

SNAPSHOT_EVERY = 20  # decisions of each, on the average


class LiveBandits:
    """Many bandits of one kind, each with a name, that play as one batch.

        shops = LiveBandits(Arms([9.99, 10.99, 12.99]), [f"shop {i}" for i in range(10_000)])
        decisions = shops.ask()                 # or of some: shops.ask(["shop 7", "shop 12"])
        shops.tell({decision.id: reward_of(decision) for decision in decisions.values()})

    Each is what a `LiveBandit` would be, with draws of its own, but has no contexts, timescale,
    `retract`, `amend`, `record` and report. Only the unit of rewards, where one is learned, is
    learned from the first rewards of all, and a decision's `std` is that of its own
    model (`expects` has one to be believed). A step of all costs far less than so many
    steps; a step of one alone costs about as much as one of all, so ask for many at once.

    Args:
        arms: What is chosen from: `Arms` or `Knobs`.
        names: The bandits' names.
        agent, parameters, reward, minimize, unit, horizon, seed, lookback, candidates, storage,
        name: As in `LiveBandit`; the name is that of all together.

    Attributes:
        name, names: As given.

    Raises:
        ValueError: If a parameter is out of its range, or there are bandits of this name that were
            made otherwise.
    """

    def __init__(
        self,
        arms: Choices | Knobs | Sequence[object],
        names: Sequence[str],
        *,
        agent: str = DEFAULT_AGENT,
        parameters: Mapping[str, object] | None = None,
        reward: RewardKind = "real",
        minimize: bool = False,
        unit: tuple[float, float] | None = None,
        horizon: int | None = None,
        seed: int = 0,
        lookback: int = 100,
        candidates: int = CANDIDATES,
        storage: str | PathLike[str] | None = None,
        name: str = "bandits",
    ) -> None:
        owner = "LiveBandits"
        choices = choices_of(arms, candidates)
        if choices.changing:
            reject("arms", owner, "Arms(...) or Knobs(...)", arms)
        known = [*names]
        if not known or len({*known}) < len(known) or not all(isinstance(n, str) for n in known):
            reject("names", owner, "texts of which none is there twice", names)
        settings = Settings(
            choices.to_json(),
            agent=check_agent_name(agent),
            parameters=parameters or {},
            reward=reward,
            minimize=minimize,
            unit=checked_unit(unit, owner),
            horizon=horizon,
            seed=seed,
            lookback=lookback,
            names=tuple(known),
        )
        self._begin(settings, storage, name)

    @classmethod
    def open(cls, storage: str | PathLike[str], name: str, *, agent: str | None = None) -> Self:
        """Return the bandits of this name, as they were made: see `LiveBandit.open`."""
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
        self.name, self._lock = name, threading.RLock()
        self._stale = self._touched = False
        self._store = open_store(storage, name, owner="LiveBandits", new=settings is not None)
        with self._store.session() as session:
            self._settings = agreed(settings, session, name, agent, owner="LiveBandits")
            self.names = list(self._settings.names or ())
            self._place = {one: i for i, one in enumerate(self.names)}
            self._choices = self._settings.new_choices()
            self._count = np.zeros(len(self.names), np.int64)
            self._rebuild(session)

    def close(self) -> None:
        """Let go of the storage."""
        self._store.close()

    def ask(
        self, names: Sequence[str] | None = None, *, key: str | None = None
    ) -> dict[str, Decision]:
        """Return what each of these bandits is to do now, by its name.

        Args:
            names: Whose turn it is. Default: all.
            key: Asked again with the same key, a bandit's answer is the same.

        Raises:
            ValueError: If there is no such bandit.
        """
        who = np.arange(len(self.names)) if names is None else self._places(names)
        with self._session() as session:
            known: dict[int, Event] = {}
            if key is not None:
                pairs = ((i, session.by_key(self._key(key, i))) for i in who.tolist())
                known = {i: event for i, event in pairs if event is not None}
            new = [i for i in who.tolist() if i not in known]
            if new:
                known |= self._decide(session, np.array(new, np.int64), key)
        return {self.names[i]: decision_of(known[i], self.name, key) for i in who.tolist()}

    def _key(self, key: str, bandit: int) -> str:
        return f"{key}{BATCH}{bandit}"  # a name may hold any sign, a number does not

    def _decide(self, session: Session, who: Indices, key: str | None) -> dict[int, Event]:
        """Let these bandits choose, and return the events, by bandit."""
        self._touched = True
        numbers = (self._count[who] + 1).tolist()
        actions = self._learner.choose(who, numbers).tolist()
        data: list[dict[str, Json]] = [
            {"bandit": i, "index": a} for i, a in zip(who.tolist(), actions, strict=True)
        ]
        self._describe(who, actions, data)
        events = [
            Event("asked", f"{self.names[i]}#{k}", row, key=key and self._key(key, i))
            for i, k, row in zip(who.tolist(), numbers, data, strict=True)
        ]
        return dict(zip(who.tolist(), self._extend(session, events), strict=True))

    def _describe(self, who: Indices, actions: list[int], data: list[dict[str, Json]]) -> None:
        """Say what each of the arms chosen is, and what is expected of it."""
        rewards, unit, rows = self._settings.rewards, self._learner.unit, np.arange(len(who))
        found = self._learner.beliefs(who)
        for row, action in zip(data, actions, strict=True):
            row["arm"] = cast(Json, self._choices.arms[action])
        if found is not None:
            mean, std = found[0][rows, actions], found[1][rows, actions]
            means = rewards.written(mean, unit).tolist()
            spreads = rewards.spread(mean, std, unit).tolist()
            known = self._learner.has_rewards[who].tolist()
            for row, one, spread, told in zip(data, means, spreads, known, strict=True):
                if told:
                    row["mean"] = one
                if told and spread > 0.0:  # the adaptive agent knows no unit after one reward
                    row["std"] = spread

    def tell(self, rewards: Mapping[str, float | None]) -> None:
        """Say what decisions paid, by their ids; None: that will never be known.

        Told twice alike, it counts once. One of a decision that was given up (`lookback`) counts as
        of now.

        Raises:
            ValueError: If a decision is none of these bandits', or has a reward already.
        """
        if not isinstance(rewards, Mapping):
            reject("rewards", "tell", "a dict of rewards by the ids of decisions", rewards)
        paid = {
            i: None if r is None else self._settings.rewards.check(r, f"tell (of {cut(str(i))})")
            for i, r in rewards.items()
        }
        with self._session() as session:
            events = []
            for name, reward in paid.items():
                bandit, number = self._decided(name)
                if not self._learner.is_open(bandit, number):
                    before = told_before(session, name)
                    if before == reward:
                        continue
                    if before != "":
                        rule = f"{before} for {name}, as told before"
                        reject("rewards", "tell", rule, reward)
                data: dict[str, Json] = {"bandit": bandit, "reward": reward}
                events.append(Event("told", name, data))
            if events:
                self._extend(session, events)

    def expects(self, name: str) -> Posterior:
        """Return what one bandit expects of all arms: see `LiveBandit.expects`.

        Raises:
            ValueError: If there is no such bandit, or the agent has no posterior.
        """
        who = self._places([name])
        with self._session():
            found = self._learner.expects(who)
        if found is None:
            reject("agent", "expects", "one with a posterior", self._settings.agent)
        rewards, unit = self._settings.rewards, self._learner.unit
        mean, std = found[0][0], found[1][0]
        return Posterior(rewards.written(mean, unit), rewards.spread(mean, std, unit))

    def _places(self, names: Iterable[str]) -> Indices:
        if isinstance(names, str) or not isinstance(names, Iterable):
            reject("names", "ask", "a list of names, none twice", names)
        names = [*names]
        for name in names:
            if not isinstance(name, str) or name not in self._place:
                hint = near_miss(name, self.names)
                reject("names", "ask", f"of bandits that there are{hint}", name)
        if len({*names}) < len(names):
            reject("names", "ask", "a list of names, none twice", names)
        return np.array([self._place[name] for name in names], np.int64)

    def _decided(self, decision: str) -> tuple[int, int]:
        """Return whose decision this is, and which of them."""
        name, _, number = str(decision).rpartition("#")
        bandit = self._place.get(name, -1)
        asked = number.isdecimal() and bandit >= 0 and 0 < int(number) <= self._count[bandit]
        if not asked:
            reject("rewards", "tell", "by the ids of decisions that were asked", decision)
        return bandit, int(number)

    @contextmanager
    def _session(self) -> Iterator[Session]:
        """Open the log, for this thread alone, and take in what others wrote."""
        with self._lock:
            self._touched = False
            try:
                with self._store.session() as session:
                    if self._stale:
                        self._rebuild(session)
                    events = session.events(self._seq)
                    self._stale = bool(events)  # if it is interrupted
                    self._take(session, events)
                    self._stale = False
                    yield session
            except BaseException:
                self._stale = self._stale or self._touched  # it may know what was not kept
                raise

    def _extend(self, session: Session, events: list[Event]) -> list[Event]:
        """Write events down, and learn from them."""
        self._touched = True
        kept = session.extend(events)
        self._take(session, kept)
        if self._seq - self._kept >= SNAPSHOT_EVERY * len(self.names):
            self._keep(session)
        return kept

    def _take(self, session: Session, events: Sequence[Event]) -> None:
        """Learn from events: those of one kind in a row together."""
        asked: list[tuple[int, Entry]] = []
        told: list[tuple[int, int, float | None]] = []
        for event in events:
            bandit = cast(int, event.data["bandit"])
            number = int(str(event.decision).rpartition("#")[2])
            if event.kind == "asked":
                self._answer(session, told)
                asked.append((bandit, Entry(number, cast(int, event.data["index"]))))
                self._count[bandit] = number
            else:
                self._add(asked)
                told.append((bandit, number, cast("float | None", event.data["reward"])))
            self._seq = event.seq
        self._add(asked)
        self._answer(session, told)

    def _add(self, asked: list[tuple[int, Entry]]) -> None:
        if asked:
            self._learner.add([i for i, _ in asked], [entry for _, entry in asked])
            asked.clear()

    def _answer(self, session: Session, told: list[tuple[int, int, float | None]]) -> None:
        if told:
            who, numbers, paid = zip(*told, strict=True)
            self._learner.answer(who, numbers, paid, lambda i, k: self._late(session, i, k))
            told.clear()

    def _late(self, session: Session, bandit: int, number: int) -> Entry:
        """Return a decision that was given up."""
        (asked, *_) = session.of_decision(f"{self.names[bandit]}#{number}")
        return Entry(number, cast(int, asked.data["index"]))

    def _rebuild(self, session: Session) -> None:
        """Learn from the log: from its last snapshot, where that is still right."""
        self._stale = True
        kept = session.snapshot(version=version(), fingerprint=self._settings.fingerprint())
        for snapshot in (kept, None):
            self._learner = self._new_learner()
            self._seq, self._count = 0, np.zeros(len(self.names), np.int64)
            try:
                if snapshot is not None:
                    counts, _, body = snapshot.data.partition(b"\n")
                    self._learner.unpack(body)
                    self._count[:] = json.loads(counts)
                    self._seq = snapshot.seq
                break
            except (ValueError, KeyError, TypeError):  # damaged: the log has all
                continue
        self._kept = self._seq
        self._take(session, session.events(self._seq))
        self._stale = False

    def _new_learner(self) -> FleetLearner:
        settings = self._settings
        return FleetLearner(
            settings.make_agent(self._choices, len(self.names)),
            settings.rewards,
            unit=settings.given_unit,
            seed=settings.seed,
            lookback=settings.lookback,
        )

    def _keep(self, session: Session) -> None:
        data = json.dumps(self._count.tolist()).encode() + b"\n" + self._learner.packed()
        session.keep(Snapshot(self._seq, data, version(), self._settings.fingerprint()))
        self._kept = self._seq


def told_before(session: Session, name: str) -> float | str | None:
    """Return the reward of a decision that was told; "" if none was."""
    told = [event for event in session.of_decision(name) if event.kind == "told"]
    return cast("float | None", told[-1].data["reward"]) if told else ""
