"""The unit of live rewards, and their times."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pandas
import pytest

from wgp_agents.live.rewards import RewardKind, Rewards, Unit
from wgp_agents.live.times import as_seconds, as_time

HUGE = pytest.param(10**400, id="huge")  # no float holds it


@pytest.mark.parametrize("kind", ["real", "clicks", "counts", "heavy-tailed"])
@pytest.mark.parametrize("minimize", [False, True])
def test_what_is_read_is_written_back_and_keeps_its_order(kind: RewardKind, minimize: bool) -> None:
    rewards, unit = Rewards(kind, minimize), Unit(0.3, 2.5) if kind != "clicks" else Unit()
    values = np.linspace(0, 1, 30) if kind == "clicks" else np.linspace(0, 4000, 300)
    read = rewards.read(values, unit)
    assert (np.diff(read) * (-1 if minimize else 1) > 0).all()
    np.testing.assert_allclose(rewards.written(read, unit), values, rtol=1e-9, atol=1e-9)


def test_the_transforms_are_those_of_the_table() -> None:
    unit = Unit(2.0, 4.0)
    assert Rewards("real").read(10.0, unit) == 2.0
    assert Rewards("real", minimize=True).read(10.0, unit) == -2.0
    assert Rewards("counts").read(10.0, unit) == pytest.approx((2 * math.sqrt(10.375) - 2) / 4)
    assert Rewards("heavy-tailed").read(10.0, unit) == pytest.approx(math.asinh(2.0))
    assert Rewards("clicks").read(1, Unit()) == 1.0


def test_counts_get_a_variance_that_does_not_grow() -> None:
    rng = np.random.default_rng(0)
    spread = [Rewards("counts").read(rng.poisson(m, 20_000), Unit()).std() for m in (5, 50, 500)]
    np.testing.assert_allclose(spread, 1.0, atol=0.03)  # standard errors of 0.005


def test_the_spread_of_a_straight_line_is_exact() -> None:
    assert Rewards().spread(3.0, 2.0, Unit(5.0, 10.0)) == pytest.approx(20.0)


def test_the_unit_is_the_median_and_the_spread_of_what_is_not_odd() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(40.0, 6.0, 4001)
    values[:400] = 1e9
    unit = Unit.of(values)
    assert unit.centre == pytest.approx(np.median(values))
    assert unit.scale == pytest.approx(1.4826 * np.median(abs(values - unit.centre)))
    assert Unit.of(np.array([3.0, 3.0, 3.0])) == Unit(3.0, 1.0)
    assert Unit.of(np.array([3.0, 3.0, 3.0, 7.0])).scale == pytest.approx(np.std([3, 3, 3, 7]))


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("real", math.nan), ("real", math.inf), ("real", "3"), ("real", [1.0]), ("clicks", 1.5),
        ("clicks", -0.1), ("counts", -1), ("heavy-tailed", math.nan),
        pytest.param("real", 10**400, id="huge"),
        pytest.param("real", -(10**400), id="huge loss"),
    ],
)  # fmt: skip
def test_what_is_no_reward_is_refused(kind: RewardKind, bad: Any) -> None:
    with pytest.raises(ValueError, match="The 'reward' parameter of tell"):
        Rewards(kind).check(bad)


def test_times_are_numbers_or_dates() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert as_time(noon, "ask") == noon.timestamp()
    assert as_time("2026-05-01T12:00", "ask") == noon.timestamp()
    assert as_time("2026-05-01T14:00+02:00", "ask") == noon.timestamp()
    assert as_time(np.datetime64("2026-05-01T12:00"), "ask") == noon.timestamp()
    assert as_time(date(2026, 5, 1), "ask") == noon.timestamp() - 43_200
    assert as_time(17, "ask") == 17.0


@pytest.mark.parametrize(
    "bad", ["soon", math.nan, True, None, [1], HUGE, np.datetime64("NaT"), pandas.NaT]
)
def test_what_is_no_time_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="The 'time' parameter of ask"):
        as_time(bad, "ask")


def test_a_time_is_of_the_kind_that_is_expected() -> None:
    assert as_time("1970-01-02", "ask", dated=True) == 86_400.0
    assert as_time(3, "ask", dated=False) == 3.0
    for bad in (86_400, np.float64(1.0)):
        with pytest.raises(ValueError, match=r"must be a date.* as the timescale is a duration"):
            as_time(bad, "ask", dated=True)
    for late in ("1970-01-02", date(1970, 1, 2), np.datetime64("1970-01-02")):
        with pytest.raises(ValueError, match="must be a finite number, as the timescale is one"):
            as_time(late, "ask", dated=False)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1 day", (86_400.0, True)), ("6 hours", (21_600.0, True)), ("90 min", (5_400.0, True)),
        ("week", (604_800.0, True)), (timedelta(hours=1), (3_600.0, True)), (0.5, (0.5, False)),
        ("2d", (172_800.0, True)), ("1 hr", (3_600.0, True)), ("2 hrs", (7_200.0, True)),
        ("5 mins", (300.0, True)), ("1 sec", (1.0, True)),
    ],
)  # fmt: skip
def test_timescales(given: Any, expected: tuple[float, bool]) -> None:
    assert as_seconds(given, "LiveBandit") == expected


@pytest.mark.parametrize("bad", ["a while", "0 days", 0, -1, math.inf, True, "", HUGE])
def test_what_is_no_timescale_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"The 'timescale' parameter of LiveBandit .*second, minu"):
        as_seconds(bad, "LiveBandit")
