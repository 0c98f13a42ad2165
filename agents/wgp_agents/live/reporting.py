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
from typing import cast

import numpy as np

from wgp_agents.gp.model import Posterior
from wgp_agents.live.choices import Choices
from wgp_agents.live.events import ENCODE, Event
from wgp_agents.live.facts import Arm, Change, Choice, Clock, Considered, History, Unit
from wgp_agents.live.follower import changes
from wgp_agents.live.insight import Insight
from wgp_agents.live.report import Report
from wgp_agents.live.rewards import Rewards
from wgp_agents.live.rewards import Unit as RewardUnit
from wgp_agents.live.settings import Settings
from wgp_gym.types import Json

__all__ = ["report_of"]

LAST = 100  # decisions, of which each arm's share is reported
YOUNG = 10  # steps for which a model that was restarted counts as new
BAND = 1.96  # standard deviations either side, 95 per cent
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


def report_of(
    name: str,
    settings: Settings,
    choices: Choices,
    unit: RewardUnit,
    expects: Posterior | None,
    insight: Insight,
    events: Sequence[Event],
    waiting: Collection[int],
) -> Report:
    """Return the report of a bandit.

    Args:
        name: Its name.
        settings: What it was made with.
        choices: What is chosen from now.
        unit: The agent's unit of rewards.
        expects: What it expects of the arms, in the user's unit; None: nothing is known.
        insight: What the agent says of itself.
        events: Its log.
        waiting: The numbers of the decisions whose rewards are waited for.
    """
    if settings.timescale is None:  # then times are notes, and no clock
        events = [replace(event, time=None) for event in events]
    rows = rows_of(events)
    told = [row for row in rows if row.told]
    missing = sum(row.reward is None for row in told)
    num_open = sum(row.number in waiting for row in rows if not row.told)
    clock: Clock = "decisions"
    if settings.timescale is not None:
        clock = "dates" if settings.dated else "numbers"
    rewards, scale, (span, word) = settings.rewards, unit.scale, step_in_time(settings)
    straight = settings.reward in ("real", "clicks")
    noise = insight.noise_std if straight and insight.noise_std is not None else None
    drift = insight.drift if straight and insight.drift is not None else None
    return Report(
        name=name,
        agent=settings.agent,
        arms=arms_of(choices, expects, tallies_of(rows), min(len(rows), LAST)),
        num_decisions=len(rows),
        num_open=num_open,
        num_missing=missing,
        num_told=len(told) - missing,
        num_given_up=len(rows) - len(told) - num_open,
        noise_std=None if noise is None else noise * scale,
        drift=None if drift is None else drift * scale,
        drift_per_time=None if drift is None or span is None else drift * scale / math.sqrt(span),
        memory=insight.memory,
        memory_time=None if span is None or insight.memory is None else insight.memory * span,
        time_unit=word,
        clock=clock,
        minimize=settings.minimize,
        unit=Unit(unit.centre, unit.scale, FORMULAS[settings.reward]),
        changes=changes_of(rows),
        choice=choice_of(rows[-1], rewards, unit) if rows else None,
        history=history_of(rows, clock).thinned(),
    )


def arms_of(
    choices: Choices,
    expects: Posterior | None,
    tallies: Mapping[str, Tally],
    recent: int,
) -> tuple[Arm, ...]:
    """Return what is known of each arm; of offers, nothing is kept."""
    found = []
    for i, label in enumerate(choices.arms):
        tally = tallies.get(ENCODE(label), Tally())
        mean = None if expects is None else float(expects.mean[i])
        half = None if expects is None else BAND * float(expects.std[i])
        known = mean is not None and half is not None and math.isfinite(half)
        last = tally.last
        found.append(
            Arm(
                label=label if is_plain(label) else text(cast(Json, label)),  # type: ignore[arg-type]
                mean=mean,
                low=mean - half if known else None,  # type: ignore[operator]  # both are known
                high=mean + half if known else None,  # type: ignore[operator]
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


def history_of(rows: Sequence[Row], clock: Clock) -> History:
    """Return the past of a bandit."""
    data = [row.asked.data for row in rows]
    means = [number(d.get("mean")) for d in data]
    half = [reach(number(d.get("std")), number(d.get("noise"))) for d in data]
    pairs = list(zip(means, half, strict=True))
    return History(
        decision=tuple(row.number for row in rows),
        time=() if clock == "decisions" else tuple(row.asked.time for row in rows),
        reward=tuple(row.reward for row in rows),
        expected=tuple(means),
        low=tuple(None if m is None or h is None else m - h for m, h in pairs),
        high=tuple(None if m is None or h is None else m + h for m, h in pairs),
        memory=tuple(memory_in(d.get("memory")) for d in data),
    )


def reach(std: float | None, noise: float | None) -> float | None:
    """Return how far 95 per cent of rewards are from the mean, if the noise is known."""
    return None if std is None or noise is None else BAND * math.hypot(std, noise)


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
