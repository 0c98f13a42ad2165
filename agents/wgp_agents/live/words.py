"""What a report of a live bandit says in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from wgp_agents.benchmark.report.numbers import decimals_for, number
from wgp_agents.live.facts import Arm, Change, Choice, Clock, Considered, Facts

__all__ = ["Column", "arm_columns", "arms_to_show", "key_facts", "moment", "one_line"]

Write = Callable[[float, int], str]
"""Writes a number with so many decimals."""
NOTHING = "-"
MOST_ARMS = 40  # in a table of text


@dataclass(frozen=True)
class Column:
    """A column of the table of arms.

    Attributes:
        name: Its name for programs.
        title: Its heading.
        hint: What it means.
        numeric: Whether it holds numbers.
        values: What it holds, one for each arm; None where there is nothing.
        texts: The same for people.
    """

    name: str
    title: str
    hint: str
    numeric: bool
    values: Sequence[object]
    texts: Sequence[str]


def arm_columns(facts: Facts, write: Write = number) -> list[Column]:
    """Return the table of arms; means and ends of a band have the same decimals."""
    arms = facts.arms
    labels = [labelled(arm.label) for arm in arms]
    bands = (
        ("mean", "Mean", "what a play is expected to earn, as of this report"),
        ("low", "Low", "lower end of the band that holds the mean with 95 %"),
        ("high", "High", "upper end of that band"),
    )
    values = {name: [getattr(arm, name) for arm in arms] for name, *_ in bands}
    digits = common_decimals([one for column in values.values() for one in column])
    made = [Column("arm", "Arm", "", facts.numeric, [a.label for a in arms], labels)]
    for name, title, hint in bands:
        texts = [NOTHING if one is None else wide(one, digits, write) for one in values[name]]
        made.append(Column(name, title, hint, True, values[name], texts))
    made += [
        of_arms(arms, "plays", "Plays", "how often it was played", lambda v: write(v, 0)),
        of_arms(arms, "share", "Last 100", "its share of them", lambda v: f"{100 * v:.0f} %"),
        of_arms(arms, "last_decision", "Last played", "decision number", lambda v: write(v, 0)),
    ]
    if facts.clock != "decisions":
        title = "When (UTC)" if facts.clock == "dates" else "When"
        made.append(of_arms(arms, "last_time", title, "", lambda v: moment(v, facts.clock)))
    rewards = common_decimals([arm.last_reward for arm in arms])
    hint = "the last that came for it"
    made.append(
        of_arms(arms, "last_reward", "Last reward", hint, lambda v: wide(v, rewards, write))
    )
    if not all(arm.there for arm in arms):
        there = [arm.there for arm in arms]
        texts = ["" if one else "removed" for one in there]
        made.append(Column("there", "State", "", False, there, texts))
    return made


def arms_to_show(facts: Facts) -> list[int]:
    """Return the places of the arms in a short table, in the user's order.

    All, or of more than forty the best twenty by their means, and others by how often they were
    played.
    """
    arms, sign = facts.arms, 1.0 if facts.minimize else -1.0
    if len(arms) <= MOST_ARMS:
        return [*range(len(arms))]

    def _by_mean(k: int) -> tuple[bool, bool, float]:
        mean = arms[k].mean
        return not arms[k].there, mean is None, 0.0 if mean is None else sign * mean

    order = sorted(range(len(arms)), key=_by_mean)
    best, others = order[: MOST_ARMS // 2], order[MOST_ARMS // 2 :]
    played = sorted((k for k in others if arms[k].plays), key=lambda k: -arms[k].plays)
    return sorted(best + played[: MOST_ARMS - len(best)])


def of_arms(
    arms: Sequence[Arm], name: str, title: str, hint: str, write: Callable[[float], str]
) -> Column:
    """Return a column of one attribute of arms."""
    values = [getattr(arm, name) for arm in arms]
    texts = [NOTHING if value is None else write(value) for value in values]
    return Column(name, title, hint, True, values, texts)


def key_facts(facts: Facts, write: Write = number) -> list[tuple[str, str]]:
    """Return terms and what is to be said of each."""
    per = f"per {facts.time_unit}" if facts.time_unit else "per unit of time"
    units = f" {facts.time_unit}s" if facts.time_unit else " in time"

    def _each(in_steps: float | None, step: str, in_time: float | None, time: str) -> str:
        parts = [(in_steps, step), (in_time, time)]
        return "; ".join(f"{short(v, write)}{word}" for v, word in parts if v is not None)

    memory = _each(facts.memory, " steps", facts.memory_time, units)
    if facts.memory == math.inf:
        memory = "everything since the start"
    known = [
        ("Decisions", counts(facts, write)),
        ("Noise", "" if facts.noise_std is None else f"{short(facts.noise_std, write)} (std)"),
        ("Drift", _each(facts.drift, " per step", facts.drift_per_time, f" {per}")),
        ("Memory", memory),
        ("Agent's unit", unit(facts, write)),
        ("Changes noticed", changes(facts, write)),
    ]
    if facts.time is not None:
        known.insert(0, ("As of", as_of(facts.time, facts.clock)))
    if facts.choice is not None:
        known.append(("Last decision", because(facts.choice, facts, write)))
    return [(term, text or "not known") for term, text in known]


def as_of(time: float, clock: Clock) -> str:
    """Return of when a report is, and in what zone all its dates are."""
    return moment(time, clock) + (" (all dates are in UTC)" if clock == "dates" else "")


def counts(facts: Facts, write: Write) -> str:
    """Return how many decisions there are, of each kind."""
    kinds = ((facts.num_told, "told"), (facts.num_open, "open"), (facts.num_missing, "missing"))
    texts = [f"{write(count, 0)} {word}" for count, word in kinds]
    if facts.num_given_up:
        texts.append(f"{write(facts.num_given_up, 0)} given up")
    return f"{write(facts.num_decisions, 0)} ({', '.join(texts)})"


def unit(facts: Facts, write: Write) -> str:
    """Return how rewards are turned into the agent's unit."""
    made = one_line(facts.unit.transform) or "y"
    if (facts.unit.centre, facts.unit.scale) == (0.0, 1.0):
        return f"{made}, as given" if made == "y" else made
    sign = "+" if facts.unit.centre < 0 else "-"
    centre, scale = short(abs(facts.unit.centre), write), short(facts.unit.scale, write)
    return f"({made} {sign} {centre}) / {scale}"


def changes(facts: Facts, write: Write) -> str:
    """Return how many changes were noticed, and the last few."""
    if not facts.changes:
        return "none"
    latest = [change(one, facts.clock, write) for one in facts.changes[:-4:-1]]
    return f"{write(len(facts.changes), 0)}; latest first: {'; '.join(latest)}"


def change(found: Change, clock: Clock, write: Write) -> str:
    """Return when a change was noticed, and how large it is."""
    text = f"decision {write(found.decision, 0)}"
    if found.time is not None:
        text += f" ({moment(found.time, clock)})"
    return text if found.size is None else f"{text}, size {short(found.size, write)}"


def because(choice: Choice, facts: Facts, write: Write) -> str:
    """Return why a decision was taken."""
    when = "" if choice.time is None else f" ({moment(choice.time, facts.clock)})"
    text = f"number {write(choice.decision, 0)}{when}: {labelled(choice.chosen.label)}"
    side = "lower" if facts.minimize else "upper"
    if choice.chosen.bound is not None:
        text += f", {side} bound {short(choice.chosen.bound, write)}"
    text += belief(choice.chosen, write)
    if choice.propensity is not None and choice.propensity < 1.0:
        text += f", drawn with probability {short(choice.propensity, write)}"
    if choice.runner_up is not None:
        text += f"; next best {labelled(choice.runner_up.label)}"
        if choice.runner_up.bound is not None:
            text += f", {short(choice.runner_up.bound, write)}"
        text += belief(choice.runner_up, write)
    return text


def belief(arm: Considered, write: Write) -> str:
    """Return what was known of an arm, in brackets."""
    known = (("mean", arm.mean), ("std", arm.std))
    parts = [f"{word} {short(value, write)}" for word, value in known if value is not None]
    return f" ({', '.join(parts)})" if parts else ""


def common_decimals(values: Sequence[float | None]) -> int:
    """Return the decimals that show three digits of the largest of some numbers."""
    known = [abs(value) for value in values if value is not None and math.isfinite(value)]
    return decimals_for(max(known, default=0.0))


def short(value: float, write: Write) -> str:
    """Return a number with three digits."""
    return wide(value, decimals_for(abs(value)), write)


def wide(value: float, digits: int, write: Write) -> str:
    """Return a number with so many decimals, or that it has no end."""
    return write(value, digits) if math.isfinite(value) else f"{value}"


def moment(time: float, clock: Clock) -> str:
    """Return a time as people read it: a number, or a date in UTC, to the second at most."""
    if clock != "dates":
        return f"{time:.10g}"
    try:
        date = datetime.fromtimestamp(round(time), UTC)
    except (OverflowError, OSError, ValueError):  # a year that no calendar has
        return f"{time:.10g} s"
    shown = f"{date:%Y-%m-%d %H:%M:%S}"
    return shown.removesuffix(":00").removesuffix(" 00:00")


def labelled(label: str | float) -> str:
    """Return what the user calls an arm, in one line."""
    if isinstance(label, float | np.floating):
        return f"{label:.12g}"
    return one_line(str(label))


def one_line(text: str) -> str:
    """Return a text without what would break a line, or speak to a terminal."""
    return "".join(one if one.isprintable() else " " for one in text)
