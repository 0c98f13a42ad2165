"""What a fleet knows: a batched agent whose learners go through their decisions each on its own.

As `wgp_agents.live.learner`, in rounds: in each, every learner takes in its next decision, if it
has one. What is taken in for the time being is undone for all learners together.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from wgp_agents.base import Agent
from wgp_agents.core.checkpoint import Checkpoint
from wgp_agents.core.state_file import packed, unpacked
from wgp_agents.gp.model import Posterior
from wgp_agents.live.insight import posterior_of
from wgp_agents.live.learner import FORM, REST, Entry, check_form, draws_of, entry_of, plain
from wgp_agents.live.rewards import Rewards, Unit, suffice
from wgp_gym.types import Indices
from wgp_gym.validation import reject

__all__ = ["FleetLearner"]


class FleetLearner:
    """A batched agent whose learners have their own decisions, answered in any order.

    Args:
        agent: The agent, of B learners.
        rewards: How rewards are read.
        unit: Their unit, for all; None: it is learned from the first rewards, if one is needed.
        seed: What all draws follow from, with the learner and the number of the decision.
        lookback: How many decisions of a learner stay unsettled, at most.

    Attributes:
        recent: What is not settled, by learner.
        has_rewards: Who was ever told one, `(B,)`.

    Raises:
        ValueError: If the agent's `act` changes what it knows: each would act for all.
    """

    def __init__(
        self, agent: Agent, rewards: Rewards, *, unit: Unit | None, seed: int, lookback: int
    ) -> None:
        if agent.learns_by_acting:
            rule = "an agent that learns by observing alone: in a fleet, some act and others wait"
            reject("agent", "LiveBandits", rule, type(agent).__name__)
        self.agent, self.rewards = agent, rewards
        self.unit = unit or Unit()
        self.unit_is_fixed = unit is not None or not rewards.needs_unit(agent.takes_units)
        self._seed, self._lookback = seed, lookback
        self.recent: list[deque[Entry]] = [deque() for _ in range(agent.num_learners)]
        self.has_rewards = np.zeros(agent.num_learners, bool)
        self._first: list[float] = []  # rewards from which the unit is learned
        self._settled: Checkpoint | None = None  # where to go back to
        agent.reset(seed)

    def choose(self, who: Indices, numbers: Sequence[int]) -> Indices:
        """Return the actions of the learners `who` `(k,)`, at these decisions, `(k,)`."""
        self._go_back()
        self._look_ahead(who)
        mask = np.zeros(len(self.recent), bool)
        mask[who] = True
        seeds = [0] * len(self.recent)
        for i, number in zip(who.tolist(), numbers, strict=True):
            seeds[i] = draws_of(self._seed + i, number)
        self.agent.reseed(seeds, learners=mask)
        chosen: Indices = np.asarray(self.agent.act())[who]
        return chosen

    def add(self, who: Sequence[int], entries: Sequence[Entry]) -> None:
        """Take note of decisions."""
        self._go_back()
        for i, entry in zip(who, entries, strict=True):
            self.recent[i].append(entry)
        self._settle(who)

    def answer(
        self,
        who: Sequence[int],
        numbers: Sequence[int],
        paid: Sequence[float | None],
        late: Callable[[int, int], Entry],
    ) -> None:
        """Take note of rewards; None: one will never come.

        Args:
            who: Whose they are.
            numbers: Of which of their decisions.
            paid: In the user's unit.
            late: Returns a learner's decision that was given up; it counts as of now.
        """
        self._go_back()
        for i, number, reward in zip(who, numbers, paid, strict=True):
            found = next((entry for entry in self.recent[i] if entry.number == number), None)
            if found is None and reward is not None:
                found = late(i, number)
                found.late = True
                self.recent[i].append(found)
            if found is not None:
                found.reward, found.open = reward, False
            if reward is not None:
                self.has_rewards[i] = True
                if not self.unit_is_fixed:
                    self._first.append(reward)
        fixed = self.unit_is_fixed
        self._learn_unit()
        self._settle(who if fixed else range(len(self.recent)))

    def is_open(self, i: int, number: int) -> bool:
        """Tell whether the reward of a learner's decision is still waited for."""
        return any(entry.open and entry.number == number for entry in self.recent[i])

    def _learn_unit(self) -> None:
        """Learn the unit from the first rewards of all, and fix it once enough of them differ."""
        if self.unit_is_fixed or not self._first:
            return
        first = self.rewards.straightened(self._first)
        self.unit = Unit.of(first)
        self.unit_is_fixed = suffice(first)

    def _settle(self, who: Sequence[int]) -> None:
        """Take in for good what nothing before it is waited for, of these learners."""
        for i in who:
            for entry in islice(self.recent[i], max(len(self.recent[i]) - self._lookback, 0)):
                entry.open = False  # given up
        while ready := {i: self.recent[i][0] for i in who if self._is_ready(i)}:
            for i in ready:
                self.recent[i].popleft()
            self._take(ready)

    def _is_ready(self, i: int) -> bool:
        """Tell whether a learner's next decision can be taken in for good."""
        if not self.recent[i] or self.recent[i][0].open:
            return False
        return self.unit_is_fixed or self.recent[i][0].reward is None

    def _look_ahead(self, who: Indices) -> None:
        """Take in, for the time being, what these learners have not settled.

        First what is known, then open plays, as `Learner` does.
        """
        if self._settled is not None or not any(self.recent[i] for i in who.tolist()):
            return
        self._settled = Checkpoint(self.agent)
        for entries in rounds(self.recent, who.tolist()):
            self._take(entries)
        for entries in rounds(self.recent, who.tolist()):
            actions, is_open = np.zeros((2, len(self.recent)), np.int64)
            for i, entry in entries.items():
                actions[i], is_open[i] = entry.action, entry.open
            if is_open.any():
                self.agent.hallucinate(actions, active=is_open > 0)

    def _go_back(self) -> None:
        """Forget what was taken in for the time being."""
        if self._settled is not None:
            self._settled.restore()
            self._settled = None

    def _take(self, entries: dict[int, Entry]) -> None:
        """Take in one decision of each of some learners: its reward, or time without one."""
        batch = len(self.recent)
        actions, rewards, steps = np.zeros(batch, np.int64), np.zeros(batch), np.ones(batch)
        paid, without = np.zeros((2, batch), bool)
        for i, entry in entries.items():
            actions[i] = entry.action
            if entry.reward is None:
                without[i] = True
                continue
            rewards[i], paid[i] = entry.reward, True
            if entry.late and self.agent.takes_elapsed:
                steps[i] = 0.0  # it has gone by
        if paid.any():
            told = self.rewards.read(rewards, self.unit)
            self.agent.observe(actions, told, active=paid, elapsed=steps)
        if self.agent.takes_elapsed and without.any():
            self.agent.elapse(1.0, active=without)

    def beliefs(self, who: Indices) -> Posterior | None:
        """Return what these learners' own models expect of all arms, `(k, n)` each."""
        self._look_ahead(who)
        find = getattr(self.agent, "posterior", None)
        return None if find is None else of_these(find(), who)

    def expects(self, who: Indices) -> Posterior | None:
        """Return mean and believable standard deviation of all arms, `(k, n)` each.

        Decisions that are open count as time that went by.
        """
        self._go_back()
        settled = Checkpoint(self.agent)
        try:
            for ahead in rounds(self.recent, who.tolist()):
                self._take(ahead)
            return of_these(posterior_of(self.agent), who)
        finally:
            settled.restore()

    def packed(self) -> bytes:
        """Return what is known as the bytes of an .npz archive."""
        self._go_back()
        rest = {
            "form": FORM,
            "unit": list(self.unit),
            "fixed": self.unit_is_fixed,
            "first": self._first,
            "has_rewards": self.has_rewards.tolist(),
            "recent": [[plain(entry) for entry in entries] for entries in self.recent],
        }
        return packed({**self.agent.state_dict(), REST: json.dumps(rest)})

    def unpack(self, data: bytes) -> None:
        """Go on from what `packed` returned.

        Raises:
            ValueError: If it is that of another agent or version, or damaged.
        """
        state = unpacked(data)
        rest = json.loads(str(state.pop(REST, "{}")))
        check_form(rest)
        self.agent.load_state_dict(state)
        self.unit, self.unit_is_fixed = Unit(*rest["unit"]), bool(rest["fixed"])
        self._first, self.has_rewards[:] = rest["first"], rest["has_rewards"]
        self.recent = [deque(entry_of(row) for row in rows) for rows in rest["recent"]]
        self._settled = None


def rounds(recent: Sequence[Sequence[Entry]], who: Sequence[int]) -> Iterator[dict[int, Entry]]:
    """Yield the first decision of each of some learners, then the second of each, and so on."""
    for place in range(max((len(recent[i]) for i in who), default=0)):
        yield {i: recent[i][place] for i in who if place < len(recent[i])}


def of_these(found: Posterior | None, who: Indices) -> Posterior | None:
    """Return the rows of some learners, `(k, n)` each."""
    return None if found is None else Posterior(found.mean[who], found.std[who])
