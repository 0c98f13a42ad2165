"""What a live bandit knows: its agent, taken through the decisions in the order they were asked.

Rewards come late, in any order, or never. The agent takes each decision in its turn, with its
reward. Those that are still open count in the variances, not in the means (`Agent.hallucinate`).
Until all decisions up to one are answered, the later ones are taken in only for the time being:

    settled  o o o o o | ? o o ? ?
                       ^ the agent at its checkpoint; what follows is taken in again
                         whenever one of these is answered

So a late reward ends in the very state that it would have led to in time. At most `lookback`
decisions stay unsettled. An open one beyond is given up: the step that it took goes by without a
reward. If that comes nevertheless, it is learned as of the day it comes, and takes no step more. An
agent that counts plays (not `takes_elapsed`) has no steps without a reward: for it the late one is
the play's only step.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import numpy as np

from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_agents.base import Agent
from wgp_agents.core.checkpoint import Checkpoint
from wgp_agents.core.observation import observation_of
from wgp_agents.core.state_file import packed, unpacked
from wgp_agents.core.units import RewardUnits
from wgp_agents.gp.agent import GPAgent
from wgp_agents.live.rewards import Rewards, Unit, differ, suffice
from wgp_gym.types import Array, Mask

__all__ = ["FORM", "Entry", "Learner", "enough"]

TIMES = 10  # so many times `lookback`, decisions that wait for a unit
REST = "live"  # the entry of a state that holds what is not the agent's
FORM = 2  # of what is learned: what another version has learned otherwise is learned anew


@dataclass
class Entry:
    """One decision, as the agent takes it in.

    Attributes:
        number: Which decision it is: 1, 2, 3, ...
        action: The index of the arm.
        time: When it was taken, in the user's unit; None where nobody tells the time.
        arms: The places that were shown, `(n, d)`; None where they stay.
        allowed: Which arms were there, `(n,)`; None: all.
        reward: What it paid; None: nothing yet, or never.
        open: Whether its reward is still to come.
        late: Whether it was given up before its reward came, so that its step has gone by.
    """

    number: int
    action: int
    time: float | None = None
    arms: Array | None = None
    allowed: Mask | None = None
    reward: float | None = None
    open: bool = True
    late: bool = False


class Learner:
    """An agent that is taken through decisions in order, whenever their rewards come.

    Args:
        agent: The agent, of one learner.
        rewards: How rewards are read.
        unit: Their unit; None: it is learned, if one is needed.
        seed: What the agent's draws follow from, with the number of the decision.
        lookback: How many decisions stay unsettled, at most.
        timescale: How long a step of the drifting world is, in the user's unit of time; None: a
            decision is a step.
    """

    def __init__(
        self,
        agent: Agent,
        rewards: Rewards,
        *,
        unit: Unit | None,
        seed: int,
        lookback: int,
        timescale: float | None,
    ) -> None:
        self.agent, self.rewards = agent, rewards
        self.unit = unit or Unit()
        self.unit_is_fixed = unit is not None or not rewards.needs_unit(agent.takes_units)
        self._seed, self._lookback, self._timescale = seed, lookback, timescale
        self.recent: list[Entry] = []
        self.has_rewards = False  # whether any was ever told
        self.clock: float | None = None  # up to when the agent has let time go by
        self._settled: tuple[Checkpoint, float | None] | None = None  # where to go back to
        self._acted: int | None = None  # the decision whose `act` the settled agent has made
        agent.reset(seed)

    # The decisions and their rewards

    def choose(
        self, number: int, time: float | None, arms: Array | None, allowed: Mask | None
    ) -> int:
        """Return the action of a new decision; the arguments are those of `Entry`."""
        self._look_ahead()
        self._let_go_by(time)
        if not self.recent:
            self._acted = number
        return self._act(number, arms, allowed)

    def add(self, entry: Entry) -> None:
        """Take note of a decision."""
        self._go_back()
        self.recent.append(entry)
        self._settle()

    def answer(self, number: int, reward: float | None, late: Callable[[], Entry]) -> None:
        """Take note of a reward; None: it will never come.

        Args:
            number: The decision's.
            reward: In the user's unit.
            late: Returns the decision, in case it was given up.
        """
        self._go_back()
        self.has_rewards |= reward is not None
        for entry in self.recent:
            if entry.number == number:
                entry.reward, entry.open = reward, False
                break
        else:
            if reward is not None:
                entry = late()
                entry.reward, entry.open, entry.late = reward, False, True
                self.recent.append(entry)
        self._settle()

    def _settle(self) -> None:
        """Take in for good what nothing before it is waited for."""
        self._learn_unit()
        for entry in self.recent[: -self._lookback]:
            entry.open = False  # given up
        while self.recent and not self.recent[0].open:
            if self.recent[0].reward is not None and not self.unit_is_fixed:
                return
            self._take(self.recent.pop(0))

    def _learn_unit(self) -> None:
        """Learn the unit from the first rewards, and fix it once there are enough that differ."""
        if self.unit_is_fixed:
            return
        paid = self.rewards.straightened([e.reward for e in self.recent if e.reward is not None])
        if paid.size:
            self.unit = Unit.of(paid)
        self.unit_is_fixed = enough(paid, len(self.recent), self._lookback)

    # The agent

    def _look_ahead(self) -> None:
        """Take in, for the time being, what is not settled: first what is known, then open plays.

        So rewards that came are judged by what was known, and open plays count in the variances.
        """
        if self._settled is not None or not self.recent:
            return
        self._settled = Checkpoint(self.agent), self.clock
        for entry in self.recent:
            self._take(entry)
        for entry in self.recent:
            if entry.open:
                self.agent.hallucinate(entry.action, arms=entry.arms)

    def _go_back(self) -> None:
        """Forget what was taken in for the time being."""
        if self._settled is not None:
            checkpoint, self.clock = self._settled
            checkpoint.restore()
            self._settled = None

    def _take(self, entry: Entry) -> None:
        """Take in a decision: its reward, or the time that goes by without one."""
        self._let_go_by(entry.time)
        agent, arms = self.agent, entry.arms
        # Exp3 learns by who was there; of these two kinds it is known that they do not.
        masked = entry.allowed is not None or agent.allowed is not None
        acts = masked and not isinstance(agent, GPAgent | AdaptiveWGPUCB)
        if (acts or agent.learns_by_acting) and self._acted != entry.number:
            self._act(entry.number, arms, entry.allowed)
        if entry.reward is not None:
            paid = float(self.rewards.read(entry.reward, self.unit))
            with quiet(not self.unit_is_fixed):
                agent.observe(entry.action, paid, arms=arms, elapsed=self._steps(entry))
        elif self._timescale is None and agent.takes_elapsed:
            agent.elapse(1.0)

    def _steps(self, entry: Entry) -> float:
        """Return how many steps go by with a reward: none where they have gone by already."""
        by_time = self._timescale is not None
        return 0.0 if by_time or (entry.late and self.agent.takes_elapsed) else 1.0

    def _let_go_by(self, time: float | None) -> None:
        """Let the agent's time go by, up to the time of a decision."""
        if self._timescale is None or time is None:
            return
        if self.clock is not None and time > self.clock:
            self.agent.elapse((time - self.clock) / self._timescale)
        self.clock = time if self.clock is None else max(time, self.clock)

    def _act(self, number: int, arms: Array | None, allowed: Mask | None) -> int:
        """Let the agent choose, with the draws of a decision."""
        self.agent.reseed(draws_of(self._seed, number))
        shown = None if arms is None else observation_of(arms)
        return int(self.agent.act(shown, allowed=allowed))

    # What it knows

    def waits_for(self) -> frozenset[int]:
        """Return the decisions whose rewards are waited for; other open ones were given up."""
        return frozenset(entry.number for entry in self.recent if entry.open)

    def beliefs(self, actions: list[int]) -> list[tuple[float, float]]:
        """Return mean and standard deviation of some arms, in the agent's unit.

        They are cheap: the believable ones of the adaptive agent, of others those of their own
        model; none where an agent has no posterior.
        """
        self._look_ahead()
        if isinstance(self.agent, AdaptiveWGPUCB):
            mean, std = self.agent.bands(actions)
            return list(zip(mean.tolist(), std.tolist(), strict=True))
        find = getattr(self.agent, "posterior", None)
        if find is None:
            return []
        mean, std = find()
        return [(float(mean[i]), float(std[i])) for i in actions]

    @contextmanager
    def known(self, time: float | None = None, arms: Array | None = None) -> Iterator[Agent]:
        """Show the agent as it is with all that is known; decisions that are open are only time.

        Args:
            time: Of when, if that is later than the last decision.
            arms: The places that it is shown, `(n, d)`, where they change.
        """
        self._go_back()
        settled, clock = Checkpoint(self.agent), self.clock
        try:
            for entry in self.recent:
                self._take(entry)
            self._let_go_by(time)
            if arms is not None:
                self.agent.act(observation_of(arms))
            yield self.agent
        finally:
            settled.restore()
            self.clock = clock

    # To be kept

    def packed(self) -> bytes:
        """Return what is known as the bytes of an .npz archive."""
        self._go_back()
        rest = {
            "form": FORM,
            "unit": list(self.unit),
            "fixed": self.unit_is_fixed,
            "clock": self.clock,
            "acted": self._acted,
            "has_rewards": self.has_rewards,
            "recent": [plain(entry) for entry in self.recent],
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
        self.clock, self._acted = rest["clock"], rest["acted"]
        self.has_rewards = bool(rest["has_rewards"])
        self.recent = [entry_of(row) for row in rest["recent"]]
        self._settled = None


def enough(paid: Array, waiting: int, lookback: int) -> bool:
    """Tell whether a unit is learned from enough rewards, for which so many decisions wait."""
    return suffice(paid) or (waiting > TIMES * lookback and differ(paid))


@contextmanager
def quiet(unknown: bool) -> Iterator[None]:
    """Keep agents from warning of rewards while their unit is not known yet."""
    if not unknown:
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RewardUnits)
        yield


def draws_of(seed: int, number: int) -> int:
    """Return the seed of a decision's draws."""
    words = np.random.SeedSequence((seed, number)).generate_state(2, np.uint32)
    return int(words[0]) << 32 | int(words[1])


def check_form(rest: Mapping[str, object]) -> None:
    """Raise ValueError if another version has learned this, in another way."""
    if rest.get("form") != FORM:
        raise ValueError(f"It is of form {rest.get('form')}, and this version learns form {FORM}.")


def plain(entry: Entry) -> dict[str, object]:
    """Return a decision as JSON may hold it."""
    found = asdict(entry)
    for name in ("arms", "allowed"):
        if found[name] is not None:
            found[name] = found[name].tolist()
    return found


def entry_of(row: Mapping[str, object]) -> Entry:
    """Return a decision that `plain` wrote."""
    entry = Entry(**row)  # type: ignore[arg-type]  # a row of our own
    entry.arms = None if entry.arms is None else np.array(entry.arms, float)
    entry.allowed = None if entry.allowed is None else np.array(entry.allowed, bool)
    return entry
