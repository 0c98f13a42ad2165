"""Live bandits that were never played, to be reported."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from wgp_agents.live.facts import Arm, Change, Choice, Considered, History, Unit
from wgp_agents.live.report import Report

START = 1_767_225_600.0  # 2026-01-01, in UTC
DAY = 86_400.0


def prices(days: int = 365, arms: int = 40) -> Report:
    """Return a seller of one year, with prices for arms and dates."""
    rng = np.random.default_rng(0)
    day = np.arange(1, days + 1)
    season = 40 + 4 * np.sin(2 * np.pi * day / 365) + np.where(day > 120, 5.0, 0.0)
    expected = season + rng.normal(size=days) * 0.6
    reward: list[float | None] = (season + 6 * rng.normal(size=days)).tolist()
    reward[-3:] = [None] * 3
    band = 1.96 * np.hypot(6, 8 / np.sqrt(day))
    memory = np.minimum(day, 60) * np.where((day > 120) & (day < 150), 0.2, 1.0)
    labels = np.round(np.linspace(9.99, 29.49, arms), 2)
    means = 46 - ((labels - 18) / 4) ** 2
    width = 1 + np.abs(labels - 17) / 3
    rows = tuple(
        Arm(
            label=float(labels[k]),
            mean=float(means[k]),
            low=float(means[k] - width[k]),
            high=float(means[k] + width[k]),
            plays=int(60 * np.exp(-(((labels[k] - 17) / 3) ** 2))),
            share=float(np.exp(-(((labels[k] - 17) / 3) ** 2)) / 8),
            last_decision=max(days - 3 * k, 1) if k % 7 else None,
            last_time=START + DAY * max(days - 3 * k, 1) if k % 7 else None,
            last_reward=float(means[k] + 3) if k % 7 else None,
            there=k != 5,
        )
        for k in range(arms)
    )
    chosen = Considered(float(labels[arms // 2]), 48.31, 45.2, 1.06)
    return Report(
        name="espresso",
        agent="adaptive-wgp-ucb",
        arms=rows,
        num_decisions=days,
        num_open=3,
        num_missing=12,
        num_told=days - 15,
        time=START + DAY * days,
        noise_std=6.02,
        drift=0.314,
        drift_per_time=0.314,
        memory=38.2,
        memory_time=38.2,
        time_unit="day",
        clock="dates",
        unit=Unit(41.2, 6.31, "log(1 + y)"),
        changes=(Change(121, 4.9, START + DAY * 120),),
        choice=Choice(
            days,
            chosen,
            Considered(float(labels[arms // 2 + 1]), 48.02, 44.1, 1.3),
            START + DAY * days,
        ),
        history=History(
            tuple(day.tolist()),
            tuple((START + DAY * day).tolist()),
            tuple(reward),
            (None, *expected[1:].tolist()),
            (None, *(expected - band)[1:].tolist()),
            (None, *(expected + band)[1:].tolist()),
            tuple(memory.tolist()),
        ),
    )


def offers(words: Callable[[str], str] = str, arms: int = 6) -> Report:
    """Return one of names for arms, without time, that draws its choices and forgets nothing."""
    names = ["Breakfast menu", "Two for one", "Free delivery", "Loyalty card", "Nothing", "Coupon"]
    names += [f"Offer {k}" for k in range(6, arms)]
    made = prices(60, arms)
    labelled = [
        replace(arm, label=words(name)) for arm, name in zip(made.arms, names, strict=False)
    ]
    history: dict[str, Any] = {"time": (), "memory": (math.inf,) * 60}
    return replace(
        made,
        name=words("offers"),
        agent=words("exp3"),
        arms=tuple(replace(arm, last_time=None) for arm in labelled),
        clock="decisions",
        time=None,
        noise_std=None,
        drift=None,
        drift_per_time=None,
        memory=math.inf,
        memory_time=None,
        time_unit=words(""),
        unit=Unit(transform=words("")),
        changes=(),
        choice=Choice(60, Considered(labelled[1].label, mean=44.0), propensity=0.31),
        history=replace(made.history, **history),
    )
