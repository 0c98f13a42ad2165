"""The report of a live bandit, read from its log.

References:
    [Hin70] Hinkley. Inference about the Change-Point in a Sequence of Random Variables. Biometrika
        57, 1970.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from wgp_agents.gp.model import Posterior
from wgp_agents.live.arms import Choices
from wgp_agents.live.events import ENCODE, Event
from wgp_agents.live.facts import Arm, Change, Choice, Clock, Considered, History, Unit
from wgp_agents.live.follower import changes
from wgp_agents.live.insight import Insight
from wgp_agents.live.report import Report
from wgp_agents.live.rewards import BAND, Rewards
from wgp_agents.live.rewards import Unit as RewardUnit
from wgp_agents.live.settings import Settings
from wgp_gym.types import Json

__all__ = ["Known", "report_of"]

LAST = 100  # decisions, of which each arm's share is reported
YOUNG = 10  # steps for which a model that was restarted counts as new
Expected: TypeAlias = tuple[float, float | None, float | None]  # a mean, and its band
FORMULAS = {"real": "", "clicks": "", "counts": "2 sqrt(y + 3/8)", "heavy-tailed": "asinh"}


@dataclass
class Row:
    """One decision, with its reward as it is now."""

    asked: Event
    told: bool = False
    reward: float | None = None

    @property
    def number(self) -> int:
        """Which decision it is."""
        return int(str(self.asked.decision))


@dataclass
class Tally:
    """What the log has of one arm."""

    plays: int = 0
    last: Row | None = None
    last_reward: float | None = None
    recent: int = 0


def rows_of(events: Sequence[Event]) -> list[Row]:
    """Return the decisions of a log that were not retracted, with their rewards."""
    changed = changes(events)
    rows: dict[str, Row] = {}
    for event in events:
        name = str(event.decision)
        change = changed.get(name)
        if change is not None and change.kind == "retracted":
            continue
        if event.kind == "asked":
            rows[name] = Row(event)
        elif event.kind == "told":
            rows[name].told = True
            rows[name].reward = cast("float | None", (change or event).data["reward"])
    return list(rows.values())


def tallies_of(rows: Sequence[Row]) -> dict[str, Tally]:
    """Return what the decisions say of each arm, by its label as JSON."""
    found: dict[str, Tally] = {}
    recent = deque(rows, maxlen=LAST)
    for row in rows:
        tally = found.setdefault(ENCODE(row.asked.data["arm"]), Tally())
        tally.plays += 1
        tally.last = row
        if row.reward is not None:
            tally.last_reward = row.reward
    for row in recent:
        found[ENCODE(row.asked.data["arm"])].recent += 1
    return found


class Known(NamedTuple):
    """What a bandit knows at some time.

    Attributes:
        expects: What it expects of the arms, in the agent's unit; None: nobody knows.
        insight: What the agent says of itself.
        unit: The agent's unit of rewards.
        time: When that is; None where time is not told, or no decision was taken.
        has_rewards: Whether any reward was told.
        waiting: The numbers of the decisions whose rewards are waited for.
    """

    expects: Posterior | None
    insight: Insight
    unit: RewardUnit
    time: float | None
    has_rewards: bool
    waiting: Collection[int]


def report_of(
    name: str, settings: Settings, choices: Choices, known: Known, events: Sequence[Event]
) -> Report:
    """Return the report of a bandit.

    Args:
        name: Its name.
        settings: What it was made with.
        choices: What is chosen from now.
        known: What it knows.
        events: Its log.
    """
    if settings.timescale is None:  # then times are notes, and no clock
        events = [replace(event, time=None) for event in events]
    rows = rows_of(events)
    told = [row for row in rows if row.told]
    missing = sum(row.reward is None for row in told)
    num_open = sum(row.number in known.waiting for row in rows if not row.told)
    clock: Clock = "decisions"
    if settings.timescale is not None:
        clock = "dates" if settings.dated else "numbers"
    rewards, unit, insight = settings.rewards, known.unit, known.insight
    span, word = step_in_time(settings)
    noise = in_unit(insight.noise_std, rewards, unit)
    drift = in_unit(insight.drift, rewards, unit)
    expected = expected_of(known, rewards)
    return Report(
        name=name,
        agent=settings.agent,
        arms=arms_of(choices, expected, tallies_of(rows), min(len(rows), LAST)),
        num_decisions=len(rows),
        num_open=num_open,
        num_missing=missing,
        num_told=len(told) - missing,
        num_given_up=len(rows) - len(told) - num_open,
        time=known.time,
        noise_std=noise,
        drift=drift,
        drift_per_time=None if drift is None or span is None else drift / math.sqrt(span),
        memory=insight.memory,
        memory_time=None if span is None or insight.memory is None else insight.memory * span,
        time_unit=word,
        clock=clock,
        minimize=settings.minimize,
        unit=Unit(unit.centre, unit.scale, FORMULAS[settings.reward]),
        changes=changes_of(rows),
        choice=choice_of(rows[-1], rewards, unit) if rows else None,
        history=history_of(rows, clock, rewards).thinned(),
    )


def in_unit(value: float | None, rewards: Rewards, unit: RewardUnit) -> float | None:
    """Return a size of rewards in the user's unit; None where that depends on the reward."""
    return value * unit.scale if value is not None and rewards.is_straight else None


def expected_of(known: Known, rewards: Rewards) -> list[Expected]:
    """Return mean, lower and upper end of each arm's band; none where nothing is known."""
    if known.expects is None or not known.has_rewards:
        return []
    mean, std = known.expects
    means = rewards.possible(rewards.written(mean, known.unit)).tolist()
    lows, highs = rewards.band(mean, std, known.unit)
    rows = zip(means, lows.tolist(), highs.tolist(), np.isfinite(std).tolist(), strict=True)
    return [(one, low, high) if sure else (one, None, None) for one, low, high, sure in rows]


def arms_of(
    choices: Choices, expected: Sequence[Expected], tallies: Mapping[str, Tally], recent: int
) -> tuple[Arm, ...]:
    """Return what is known of each arm; of offers, nothing is kept."""
    found = []
    for i, label in enumerate(choices.arms):
        tally = tallies.get(ENCODE(label), Tally())
        mean, low, high = expected[i] if expected else (None, None, None)
        last = tally.last
        found.append(
            Arm(
                label=label if is_plain(label) else text(cast(Json, label)),  # type: ignore[arg-type]
                mean=mean,
                low=low,
                high=high,
                plays=tally.plays,
                share=tally.recent / max(recent, 1),
                last_decision=None if last is None else last.number,
                last_time=None if last is None else last.asked.time,
                last_reward=tally.last_reward,
                there=bool(choices.there[i]),
            )
        )
    return tuple(found)


def changes_of(rows: Sequence[Row]) -> tuple[Change, ...]:
    """Return the changes that the agent noticed: when the model that it plays was restarted."""
    found: list[Change] = []
    before = None
    for place, row in enumerate(rows):
        age = number(row.asked.data.get("age"))
        if age is not None and before is not None and age <= YOUNG < before:
            found.append(Change(row.number, surprise(rows[:place]), row.asked.time))
        before = age
    return tuple(found)


def surprise(rows: Sequence[Row]) -> float | None:
    """Return by how much rewards are off what was expected, since a change that was just noticed.

    Of the last ten rewards before the notice, x_1 the latest, these are the k with the largest
    (x_1 + ... + x_k)^2 / k, x the differences: where the likelihood of a normal mean that jumped
    from 0 is largest [Hin70]. The model that is played may have been restarted before the change.
    """
    off = [
        row.reward - number_of(row.asked.data["mean"])
        for row in reversed(rows[-YOUNG:])
        if row.reward is not None and row.asked.data.get("mean") is not None
    ]
    if not off:
        return None
    counts = np.arange(1, len(off) + 1)
    means = np.cumsum(off) / counts
    return float(means[np.argmax(means**2 * counts)])


def choice_of(row: Row, rewards: Rewards, unit: RewardUnit) -> Choice:
    """Return why a decision was taken."""
    data = row.asked.data
    rival = cast("Mapping[str, Json] | None", data.get("runner_up"))
    other = None
    if rival is not None:
        other = Considered(
            text(rival["arm"]) if not is_plain(rival["arm"]) else rival["arm"],  # type: ignore[arg-type]
            number(rival.get("bound")),
            number(rival.get("mean")),
            number(rival.get("std")),
        )
    label = data["arm"]
    chosen = Considered(
        label if is_plain(label) else text(label),  # type: ignore[arg-type]
        number(data.get("bound")),
        number(data.get("mean")),
        number(data.get("std")),
    )
    return Choice(row.number, chosen, other, row.asked.time, number(data.get("propensity")))


def history_of(rows: Sequence[Row], clock: Clock, rewards: Rewards) -> History:
    """Return the past of a bandit."""
    data = [row.asked.data for row in rows]
    bands = [band_of(one, rewards) for one in data]
    return History(
        decision=tuple(row.number for row in rows),
        time=() if clock == "decisions" else tuple(row.asked.time for row in rows),
        reward=tuple(row.reward for row in rows),
        expected=tuple(mean_of(one, rewards) for one in data),
        low=tuple(low for low, _ in bands),
        high=tuple(high for _, high in bands),
        memory=tuple(memory_in(d.get("memory")) for d in data),
    )


def mean_of(data: Mapping[str, Json], rewards: Rewards) -> float | None:
    """Return what was expected of a decision, within what rewards can be."""
    mean = number(data.get("mean"))
    return None if mean is None else float(rewards.possible(mean))


def band_of(data: Mapping[str, Json], rewards: Rewards) -> tuple[float | None, float | None]:
    """Return the band that holds 95 per cent of a decision's rewards, if the noise is known."""
    if "band" in data:  # in the log where a transform is no straight line
        low, high = cast("list[float]", data["band"])
        return low, high
    mean, std, noise = (number(data.get(name)) for name in ("mean", "std", "noise"))
    if mean is None or std is None or noise is None:
        return None, None
    half, (least, most) = BAND * math.hypot(std, noise), rewards.limits
    return min(max(mean - half, least), most), min(max(mean + half, least), most)


def memory_in(value: Json) -> float | None:
    """Return a memory of the log, in which "inf" is infinite."""
    return math.inf if value == "inf" else number(value)


def number(value: Json) -> float | None:
    """Return a number of the log, if there is one."""
    return None if value is None else number_of(value)


def number_of(value: Json) -> float:
    """Return a number of the log."""
    return float(cast(float, value))


def is_plain(label: object) -> bool:
    """Tell whether an arm is a number or a text."""
    return isinstance(label, int | float | str) and not isinstance(label, bool)


def text(label: Json) -> str:
    """Return an arm as a text: of knobs, name = value."""
    if isinstance(label, Mapping):
        return ", ".join(f"{name} = {value}" for name, value in label.items())
    return str(label)


def step_in_time(settings: Settings) -> tuple[float | None, str]:
    """Return how long a step is, and in what unit; None where time is not told."""
    step = settings.timescale
    if step is None or not settings.dated:
        return step, ""
    for name, seconds in (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0)):
        if step >= seconds:
            return step / seconds, name
    return step, "second"
