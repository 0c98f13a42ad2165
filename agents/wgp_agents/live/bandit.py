"""A bandit on a running system: ask and tell, in the user's own words and units."""

from __future__ import annotations

import re
import time as clock
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Self, cast, overload

from wgp_agents.live.arms import Choices
from wgp_agents.live.choices import CANDIDATES, choices_of
from wgp_agents.live.decision import Decision, decision_of
from wgp_agents.live.events import BATCH, Event, told
from wgp_agents.live.fitting import owner_of_row, rows_to_fit
from wgp_agents.live.follower import Follower
from wgp_agents.live.history import answered, history_of
from wgp_agents.live.knobs import Knobs
from wgp_agents.live.occasion import Occasion, occasion_of, time_of
from wgp_agents.live.reasons import why
from wgp_agents.live.rewards import RewardKind
from wgp_agents.live.settings import DEFAULT_AGENT, Settings, agreed, check_agent_name, checked_unit
from wgp_agents.live.storage import Session, open_store
from wgp_agents.live.times import Time, Timescale, as_seconds, when
from wgp_agents.live.values import check_kinds, features_of
from wgp_agents.live.watched import Watched
from wgp_gym.kernels import Kernel
from wgp_gym.types import Json, Mask
from wgp_gym.validation import check_int, reject

if TYPE_CHECKING:
    from wgp_agents.live.decisions import LogLike

__all__ = ["LiveBandit"]

MOST_AT_ONCE = 1_000  # decisions of one `ask`
AGAIN = "\x1e"  # behind a key: asked anew after it was retracted


class LiveBandit(Watched):
    """An agent on a running system.

        seller = LiveBandit(Arms([9.99, 10.99, 12.99]), storage="shop.db", name="espresso")
        decision = seller.ask()
        seller.tell(decision.id, 41_320.0)

    What it knows follows from its log alone: from what was asked and told, in the order in which it
    was asked. Made again with the same storage and name it goes on as if it had never stopped.
    Several threads and processes may use one bandit.

    Args:
        arms: What is chosen from: `Arms`, `Knobs` or `Offers`.
        agent: The agent's name. The default learns the unit of rewards, the noise, the lengthscale
            and the rate of change, and plays a random arm at 3 % of its decisions ("exploration").
        parameters: Parameters of the agent, as JSON has them. Those in the unit of rewards are in
            `unit`, or in the learned one.
        contexts: What is known of the occasion at each decision: the range of each quantity.
        kernel: The kernel over the columns of arms and then contexts, see `Knobs.columns`; default:
            a product over them all, of lengthscales that the adaptive agent learns.
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
        kernel: Kernel | None = None,
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
        if kernel is not None and not isinstance(kernel, Kernel):
            reject("kernel", owner, "a Kernel", kernel)
        choices = choices_of(arms, candidates)
        scale = None if timescale is None else as_seconds(timescale, owner)
        settings = Settings(
            choices.to_json(),
            agent=check_agent_name(agent),
            parameters=parameters or {},
            contexts=None if contexts is None else contexts.to_json(),
            reward=reward,
            minimize=minimize,
            unit=checked_unit(unit, owner),
            timescale=None if scale is None else scale[0],
            dated=scale is not None and scale[1],
            horizon=horizon,
            seed=seed,
            lookback=lookback,
            kernel=kernel,
        )
        self._begin(settings, storage, name)

    @classmethod
    def open(
        cls,
        storage: str | PathLike[str],
        name: str,
        *,
        agent: str | None = None,
        kernel: Kernel | None = None,
    ) -> Self:
        """Return the bandit of this name, as it was made.

        Args:
            storage: A file or URL of a database.
            name: The bandit's name.
            agent: Its agent, which must be said where that is "module:Class": a database does not
                tell what code is run.
            kernel: Its kernel, which must be said where one was given.

        Raises:
            ValueError: If there is none.
        """
        found = cls.__new__(cls)
        found._begin(None, storage, name, agent, kernel)
        return found

    def _begin(
        self,
        settings: Settings | None,
        storage: str | PathLike[str] | None,
        name: str,
        agent: str | None = None,
        kernel: Kernel | None = None,
    ) -> None:
        self.name = name
        if settings is not None:
            settings.make_agent(settings.new_choices())  # what cannot be made is not written down
        self._store = open_store(storage, name, new=settings is not None)
        with self._store.session() as session:
            self._settings = agreed(settings, session, name, agent, kernel)
        self._follower = Follower(self._settings, self._store)
        with self._follower.session():
            pass  # it has read the log

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
            key: Asked again with the same key, the answer is the same; anew, if it was retracted.
            time: When it is: a date, where `timescale` is a duration (default: now); a number,
                where that is one. Without a timescale it is kept in the log and does nothing else.

        Raises:
            ValueError: If an argument does not fit, or the answer to a key is not allowed now.
        """
        count = 1 if n is None else check_int("n", n, "ask", 1, MOST_AT_ONCE)
        keys = [key if n is None or key is None else f"{key}{BATCH}{i}" for i in range(count)]
        with self._follower.session() as session:
            choices = self._follower.choices
            occasion = occasion_of(self._settings, choices, context, arms, time, "ask")
            found = [self._decide(session, occasion, allowed, one) for one in keys]
        return found[0] if n is None else found

    def _decide(
        self,
        session: Session,
        occasion: Occasion,
        allowed: Sequence[object] | None,
        key: str | None,
    ) -> Decision:
        known, free = answered(session, key, AGAIN)
        follower, rewards = self._follower, self._settings.rewards
        if known is not None:
            occasion.check_again(known, follower.choices, allowed)
            return self._decision(known)
        shown, mask = occasion.shown(self._settings, follower.choices, allowed)
        follower.touched = True
        number, learner = follower.count + 1, follower.learner
        action = learner.choose(number, occasion.time, shown, mask)
        data = why(learner, rewards, action, mask, lambda i: occasion.label(i, follower.choices))
        return self._decision(self._ask(session, action, occasion, mask, data, free))

    def _ask(
        self,
        session: Session,
        index: int,
        occasion: Occasion,
        mask: Mask | None,
        more: Mapping[str, Json],
        key: str | None = None,
    ) -> Event:
        """Write a decision down."""
        label = occasion.label(index, self._follower.choices)
        data = {"arm": label, "index": index, **more, **occasion.written(mask)}
        number = str(self._follower.count + 1)
        return self._follower.append(session, Event("asked", number, data, occasion.time, key))

    def _decision(self, event: Event) -> Decision:
        time = when(event.time, self._settings.dated or event.data.get("dated") is True)
        key = None if event.key is None else re.split(f"[{BATCH}{AGAIN}]", event.key)[0]
        return decision_of(event, self.name, key, time)

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
                of then. Default: now, where `timescale` is a duration.

        Raises:
            ValueError: If there is no such decision, it has another reward already, or this is no
                reward.
        """
        paid = None if reward is None else self._settings.rewards.check(reward, "tell")
        moment = clock.time() if self._settings.dated else None
        if time is not None:
            moment = time_of(self._settings, time, "tell")
        with self._follower.session() as session:
            history = history_of(session, self.name, decision, "tell")
            if history.told:
                if history.reward == paid:
                    return
                reject("reward", "tell", f"{history.reward}, as told before: see `amend`", reward)
            self._follower.append(session, told(history.asked, paid, moment))

    def amend(self, decision: str | Decision, reward: float | None) -> None:
        """Put another reward in the place of one that was wrong: as if it had been told so."""
        paid = None if reward is None else self._settings.rewards.check(reward, "amend")
        with self._follower.session() as session:
            history = history_of(session, self.name, decision, "amend")
            if not history.told:
                reject("decision", "amend", "one whose reward was told: see `tell`", decision)
            event = Event("amended", history.asked.decision, {"reward": paid})
            self._follower.rewrite(session, event, history.asked.seq)

    def retract(self, decision: str | Decision) -> None:
        """Take a decision back, with its reward: as if it had never been."""
        with self._follower.session() as session:
            history = history_of(session, self.name, decision, "retract")
            event = Event("retracted", history.asked.decision, {})
            self._follower.rewrite(session, event, history.asked.seq)

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
        with self._follower.session() as session:
            return self._record(session, arm, reward, context, time, "record")

    def _record(
        self,
        session: Session,
        arm: object,
        reward: float | None,
        context: Mapping[str, object] | None,
        time: Time | None,
        owner: str,
    ) -> str:
        paid = None if reward is None else self._settings.rewards.check(reward, owner)
        choices = self._follower.choices
        if choices.changing:
            reject("arm", owner, "left out: offers are known to `ask` alone", arm)
        occasion = occasion_of(self._settings, choices, context, None, time, owner)
        index = choices.index(arm, owner)
        asked = self._ask(session, index, occasion, None, {"human": True})
        self._follower.append(session, told(asked, paid, occasion.time))
        return str(asked.decision)

    def fit(self, log: LogLike) -> int:
        """Learn from the decisions of another system, and return how many there were.

        Args:
            log: A DataFrame or the path of a CSV file with the columns `arm` and `reward` (empty:
                it never came), and where there are any `time` and `context_...`; oldest first.

        Raises:
            ValueError: If a row does not fit, or times fall or, with a timescale, are missing; then
                nothing is learned.
            ModuleNotFoundError: If pandas is not installed: the extra "live" brings it.
        """
        with self._follower.session():
            choices = self._follower.choices
        rows = rows_to_fit(log, self._settings, choices)
        with self._follower.session() as session:
            for i, row in enumerate(rows):
                time = cast("Time | None", row.time)
                self._record(session, row.arm, row.reward, row.context, time, owner_of_row(i))
        return len(rows)

    # Arms that come and go

    def add_arm(self, arm: object, features: Mapping[str, object] | None = None) -> None:
        """Take in a new arm, or again one that was removed: see `Arms.add`."""
        with self._follower.session() as session:
            trial = self._trial()
            new = trial.add(arm, features, "add_arm")
            if features is None and not self._follower.choices.has(new):
                check_kinds(trial.arms, "arm", "add_arm")
            row = None if features is None else cast(Json, features_of(features, "add_arm"))
            event = Event("arms", None, {"added": new, "features": row})
            self._follower.rewrite(session, event, session.last + 1)

    def remove_arm(self, arm: object) -> None:
        """Take an arm out of the choice; what is known of it stays."""
        with self._follower.session() as session:
            trial = self._trial()
            trial.remove(arm, "remove_arm")
            label = cast(Json, trial.arms[trial.index(arm, "remove_arm")])
            self._follower.append(session, Event("arms", None, {"removed": label}))

    def _trial(self) -> Choices:
        """Return a copy of what is chosen from, to see whether a change fits."""
        trial = choices_of(self._follower.choices.to_json())
        trial.there = self._follower.choices.there.copy()
        return trial
