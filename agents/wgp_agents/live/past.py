"""A bandit and the log of another system: what would it have earned, and what can it learn?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from wgp_agents.live.arms import Choices
from wgp_agents.live.decisions import read_table, reader_of
from wgp_agents.live.evaluation import Method, Replay, replay
from wgp_agents.live.learner import enough
from wgp_agents.live.rewards import Unit
from wgp_agents.live.settings import Settings
from wgp_gym.types import Array
from wgp_gym.validation import reject

if TYPE_CHECKING:
    import pandas

    from wgp_agents.live.decisions import LogLike

__all__ = ["Row", "replay_of", "rows_of_log", "table_of"]

CONTEXT = "context_"  # what the names of a context's columns begin with


class Row(NamedTuple):
    """One decision of another system.

    Attributes:
        arm: What was chosen.
        reward: What it paid; None: it never came.
        context: What was known; None where the log does not say.
        time: When it was; None where the log does not say.
    """

    arm: object
    reward: float | None
    context: Mapping[str, object] | None
    time: object | None


def table_of(log: LogLike, settings: Settings, choices: Choices) -> pandas.DataFrame:
    """Return the table of a log: of a file, arms and categories that are texts stay texts.

    Raises:
        ModuleNotFoundError: If pandas is not installed: the extra "live" brings it.
    """
    known: dict[str, Sequence[object]] = {"arm": choices.arms}
    if settings.knobs is not None:
        known |= {CONTEXT + name: row for name, row in settings.knobs.categories.items()}
    readers = {name: reader_of(labels) for name, labels in known.items()}
    return read_table(log, {name: one for name, one in readers.items() if one is not None})


def rows_of_log(frame: pandas.DataFrame, owner: str = "fit") -> Iterator[Row]:
    """Yield the decisions of a log.

    Raises:
        ValueError: If it has no columns `arm` and `reward`.
    """
    for name in ("arm", "reward"):
        if name not in frame.columns:
            reject("log", owner, "a table with the columns 'arm' and 'reward'", [*frame.columns])
    words = [name for name in frame.columns if str(name).startswith(CONTEXT)]
    for row in frame.to_dict("records"):
        missing = row["reward"] is None or row["reward"] != row["reward"]
        context = {word.removeprefix(CONTEXT): row[word] for word in words}
        reward = None if missing else cast(float, row["reward"])
        yield Row(row["arm"], reward, context or None, row.get("time"))


def checked(reward: float | None, settings: Settings) -> float | None:
    """Return the reward of a row as the bandit would be told it."""
    return None if reward is None else settings.rewards.check(reward, "replay")


def first_unit(rewards: Sequence[float | None], settings: Settings) -> Unit:
    """Return the unit that a bandit learns which is told these rewards in their order."""
    paid = settings.rewards.straightened([one for one in rewards if one is not None])
    if not paid.size or np.ptp(paid) == 0.0:
        return Unit.of(paid) if paid.size else Unit()
    told = waiting = 0
    for reward in rewards:
        if enough(paid[:told], waiting + 1, settings.lookback):  # when the row's decision is asked
            break
        told += reward is not None
        waiting += told > 0  # before the first reward, nothing needs a unit
    return Unit.of(paid[:told])


def replay_of(
    log: LogLike,
    settings: Settings,
    choices: Choices,
    *,
    method: Method = "rejection",
    max_weight: float | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Replay:
    """Return what the agent of a bandit, made anew, would have earned on a log: see `replay`.

    Where it is told a unit of rewards, that is learned from the first of the log, as the bandit
    would. It chooses among the arms that are there; on rows of arms that were removed its choice is
    never the log's.

    Raises:
        ValueError: If a row does not fit, as in `fit`.
    """
    if choices.changing:
        reject("arms", "replay", "Arms or Knobs: a log has no offers", type(choices).__name__)
    unit = settings.given_unit or Unit()
    agent = settings.make_agent(choices)
    table = table_of(log, settings, choices)
    rewards = [checked(row.reward, settings) for row in rows_of_log(table, "replay")]
    if settings.unit is None and settings.rewards.needs_unit(agent.takes_units):
        unit = first_unit(rewards, settings)

    def _places(context: Mapping[str, object]) -> Array:
        assert settings.knobs is not None
        named = {name.removeprefix(CONTEXT): value for name, value in context.items()}
        return settings.shown(choices, settings.knobs.place(named, "replay", "context"), None)

    return replay(
        table,
        lambda: settings.make_agent(choices),
        lambda label: choices.index(label, "replay"),
        method=method,
        num_arms=len(choices.arms),
        features=None if settings.knobs is None else _places,
        timescale=settings.timescale if not settings.dated else f"{settings.timescale} s",
        max_weight=max_weight,
        level=level,
        seed=seed,
        there=None if choices.there.all() else choices.there,
        told_as=lambda y: float(settings.rewards.read(settings.rewards.check(y, "replay"), unit)),
    )
