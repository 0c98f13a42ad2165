"""What a fleet knows: a batched agent whose learners go through their decisions each on its own.

As `wgp_agents.live.learner`, in rounds: in each, every learner takes in its next decision, if it
has one. What is taken in for the time being is undone for all learners together.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wgp_agents.base import Agent
from wgp_agents.core.checkpoint import Checkpoint
from wgp_agents.core.state_file import packed, unpacked
from wgp_agents.gp.model import Posterior
from wgp_agents.live.learner import REST, draws_of
from wgp_agents.live.rewards import FIRST, Rewards, Unit
from wgp_gym.types import Indices
from wgp_gym.validation import reject

__all__ = ["FleetLearner"]


@dataclass
class Turn:
    """One decision of one learner.

    Attributes:
        number: Which of its decisions it is: 1, 2, 3, ...
        action: The index of the arm.
        reward: What it paid; None: nothing yet, or never.
        open: Whether its reward is still to come.
    """

    number: int
    action: int
    reward: float | None = None
    open: bool = True


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
        self.recent: list[deque[Turn]] = [deque() for _ in range(agent.num_learners)]
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

    def add(self, who: Sequence[int], turns: Sequence[Turn]) -> None:
        """Take note of decisions."""
        self._go_back()
        for i, turn in zip(who, turns, strict=True):
            self.recent[i].append(turn)
        self._settle(who)

    def answer(
        self, who: Sequence[int], numbers: Sequence[int], paid: Sequence[float | None]
    ) -> None:
        """Take note of rewards; None: one will never come. Those of decisions given up are lost."""
        self._go_back()
        for i, number, reward in zip(who, numbers, paid, strict=True):
            for turn in self.recent[i]:
                if turn.number == number:
                    turn.reward, turn.open = reward, False
            if reward is not None:
                self.has_rewards[i] = True
                if len(self._first) < FIRST:
                    self._first.append(reward)
        fixed = self.unit_is_fixed
        self._learn_unit()
        self._settle(who if fixed else range(len(self.recent)))

    def is_open(self, i: int, number: int) -> bool:
        """Tell whether the reward of a learner's decision is still waited for."""
        return any(turn.open and turn.number == number for turn in self.recent[i])

    def _learn_unit(self) -> None:
        """Learn the unit from the first rewards of all, and fix it once there are enough."""
        if self.unit_is_fixed or not self._first:
            return
        self.unit = Unit.of(self.rewards.straightened(self._first))
        self.unit_is_fixed = len(self._first) == FIRST

    def _settle(self, who: Sequence[int]) -> None:
        """Take in for good what nothing before it is waited for, of these learners."""
        if not self.unit_is_fixed:
            return
        while True:
            ready = {i: self.recent[i][0] for i in who if self.recent[i] and self._is_ready(i)}
            if not ready:
                return
            for i, turn in ready.items():
                turn.open = False
                self.recent[i].popleft()
            self._take(ready)

    def _is_ready(self, i: int) -> bool:
        return not self.recent[i][0].open or len(self.recent[i]) > self._lookback

    def _look_ahead(self, who: Indices) -> None:
        """Take in, for the time being, what these learners have not settled.

        First what is known, then open plays, as `Learner` does.
        """
        if self._settled is not None or not any(self.recent[i] for i in who.tolist()):
            return
        self._settled = Checkpoint(self.agent)
        for turns in rounds(self.recent, who.tolist()):
            self._take(turns)
        for turns in rounds(self.recent, who.tolist()):
            actions, is_open = np.zeros((2, len(self.recent)), np.int64)
            for i, turn in turns.items():
                actions[i], is_open[i] = turn.action, turn.open
            if is_open.any():
                self.agent.hallucinate(actions, active=is_open > 0)

    def _go_back(self) -> None:
        """Forget what was taken in for the time being."""
        if self._settled is not None:
            self._settled.restore()
            self._settled = None

    def _take(self, turns: dict[int, Turn]) -> None:
        """Take in one decision of each of some learners: its reward, or time without one."""
        batch = len(self.recent)
        actions, rewards = np.zeros(batch, np.int64), np.zeros(batch)
        paid, without = np.zeros((2, batch), bool)
        for i, turn in turns.items():
            actions[i] = turn.action
            if turn.reward is not None:
                rewards[i], paid[i] = turn.reward, True
            else:
                without[i] = True
        if paid.any():
            self.agent.observe(actions, self.rewards.read(rewards, self.unit), active=paid)
        if self.agent.takes_elapsed and without.any():
            self.agent.elapse(1.0, active=without)

    def beliefs(self, who: Indices) -> Posterior | None:
        """Return what these learners' own models expect of all arms, `(k, n)` each."""
        self._look_ahead(who)
        return self._found(who, "posterior")

    def expects(self, who: Indices) -> Posterior | None:
        """Return mean and believable standard deviation of all arms, `(k, n)` each.

        Decisions that are open count as time that went by.
        """
        self._go_back()
        settled = Checkpoint(self.agent)
        for ahead in rounds(self.recent, who.tolist()):
            self._take(ahead)
        found = self._found(who, "bands") or self._found(who, "posterior")
        settled.restore()
        return found

    def _found(self, who: Indices, method: str) -> Posterior | None:
        find = getattr(self.agent, method, None)
        if find is None:
            return None
        mean, std = find()
        return Posterior(mean[who], std[who])

    def packed(self) -> bytes:
        """Return what is known as the bytes of an .npz archive."""
        self._go_back()
        rest = {
            "unit": list(self.unit),
            "fixed": self.unit_is_fixed,
            "first": self._first,
            "has_rewards": self.has_rewards.tolist(),
            "recent": [[list(vars(turn).values()) for turn in turns] for turns in self.recent],
        }
        return packed({**self.agent.state_dict(), REST: json.dumps(rest)})

    def unpack(self, data: bytes) -> None:
        """Go on from what `packed` returned.

        Raises:
            ValueError: If it is that of another agent, or damaged.
        """
        state = unpacked(data)
        rest = json.loads(str(state.pop(REST, "{}")))
        self.agent.load_state_dict(state)
        self.unit, self.unit_is_fixed = Unit(*rest["unit"]), bool(rest["fixed"])
        self._first, self.has_rewards[:] = rest["first"], rest["has_rewards"]
        self.recent = [deque(Turn(*turn) for turn in turns) for turns in rest["recent"]]
        self._settled = None


def rounds(recent: Sequence[Sequence[Turn]], who: Sequence[int]) -> Iterator[dict[int, Turn]]:
    """Yield the first decision of each of some learners, then the second of each, and so on."""
    for place in range(max((len(recent[i]) for i in who), default=0)):
        yield {i: recent[i][place] for i in who if place < len(recent[i])}
