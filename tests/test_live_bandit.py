"""A live bandit: asked and told in any order, it knows what it would know had all come in time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
import pandas
import pytest

import wgp_agents
from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_agents.live import Arms, Knobs, LiveBandit, LiveBandits, Offers
from wgp_agents.live import bandit as bandit_module
from wgp_agents.live.insight import insight_of
from wgp_agents.live.learner import Entry, Learner, draws_of
from wgp_agents.live.rewards import Rewards
from wgp_gym.kernels import Categorical, Empirical, OnColumns, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

PRICES = [10.0, 12.0, 14.0, 16.0, 18.0, 20.0]
ALL = ["adaptive-wgp-ucb", "wgp-ucb", "tv-gp-ucb", "d-ucb", "master", "exp3"]


def revenue(arm: object, noise: float = 0.0) -> float:
    """Return what a price earns."""
    assert isinstance(arm, float)
    return 40.0 - 0.5 * (arm - 15.0) ** 2 + noise


def live(agent: str = "adaptive-wgp-ucb", **kwargs: object) -> LiveBandit:
    """Return a bandit on a few prices, with T for those that ask for it."""
    return LiveBandit(Arms(PRICES), agent=agent, horizon=200, **kwargs)  # type: ignore[arg-type]


def knows(bandit: LiveBandit) -> Array:
    """Return all that a bandit expects, or what it would do next for many decisions."""
    try:
        return np.concatenate(bandit.expects())
    except ValueError:  # without a posterior
        return np.array([decision.index for decision in bandit.ask(20)])


def date_of(day: float) -> datetime:
    """Return a day as a date, counted from 1970."""
    return datetime.fromtimestamp(86_400 * day, UTC)


def floats(values: Iterable[float | None]) -> Array:
    """Return numbers of which none is missing, `(n,)`."""
    found = [value for value in values if value is not None]
    return np.array(found)


def play(bandit: LiveBandit, steps: int, seed: int = 0) -> list[tuple[str, float]]:
    """Ask and tell in turn; return what was told."""
    rng, told = np.random.default_rng(seed), []
    for _ in range(steps):
        decision = bandit.ask()
        told.append((decision.id, revenue(decision.arm, rng.normal())))
        bandit.tell(*told[-1])
    return told


def test_asked_and_told_in_turn_it_is_the_agent_itself() -> None:
    bandit = live("wgp-ucb", unit=(0.0, 1.0), seed=5)
    places = (np.array(PRICES)[:, None] - 10.0) / 10.0
    problem = BanditProblem(SquaredExponential(0.2), places, 200, noise_scale=0.5, norm_bound=1.0)
    agent = wgp_agents.make("wgp-ucb", problem)
    agent.reset(5)
    rng = np.random.default_rng(1)
    for k in range(1, 30):
        decision = bandit.ask()
        agent.reseed(draws_of(5, k))
        assert decision.index == agent.act()
        mean, _ = agent.posterior()
        if k > 1:
            assert decision.mean == mean[decision.index]
        reward = rng.normal()
        bandit.tell(decision.id, reward)
        agent.observe(decision.index, reward)


@pytest.mark.parametrize("agent", ALL)
def test_rewards_in_any_order_end_in_the_same_knowledge(agent: str) -> None:
    rewards = [revenue(a) for a in (10.0, 14.0, 20.0, 12.0)]
    found = []
    for order in [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)]:
        bandit = live(agent, unit=(40.0, 5.0))
        play(bandit, 12)
        decisions = [bandit.ask() for _ in range(4)]
        for i in order:
            bandit.tell(decisions[i].id, rewards[i])
            bandit.ask(key="a look in between")
        bandit.tell(bandit.ask(key="a look in between").id, None)
        found.append(knows(bandit))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_open_decisions_count_in_the_uncertainty_and_not_in_the_expectation() -> None:
    bandit, other = live("wgp-ucb"), live("wgp-ucb")
    for one in (bandit, other):
        play(one, 30)
    arm = bandit.ask(key="first").arm
    other.tell(other.ask(key="first"), None)  # the same decision, given up
    waiting, given_up = bandit.ask(allowed=[arm]), other.ask(allowed=[arm])
    assert waiting.std is not None
    assert waiting.mean is not None
    assert given_up.std is not None
    assert given_up.mean is not None
    assert waiting.std < 0.98 * given_up.std
    assert abs(waiting.mean - given_up.mean) < 0.05 * given_up.std
    # What is known has nothing of it: a reward that did not come has told nothing.
    np.testing.assert_allclose(bandit.expects().std, other.expects().std)


@pytest.mark.parametrize("agent", ["adaptive-wgp-ucb", "wgp-ucb", "d-ucb"])
def test_several_at_once_differ(agent: str) -> None:
    bandit = live(agent)
    assert len({decision.arm for decision in bandit.ask(6)}) >= 4


@pytest.mark.parametrize("agent", ALL)
@pytest.mark.parametrize("late", [False, True])
def test_what_is_amended_or_retracted_has_never_been(agent: str, late: bool) -> None:
    bandit, other = live(agent, seed=1), live(agent, seed=1)
    rng = np.random.default_rng(3)
    decisions = []
    for k in range(25):
        decision = bandit.ask()
        decisions.append(decision)
        reward = revenue(decision.arm, rng.normal())
        bandit.tell(decision.id, 1e5 if k == 7 else reward)
        if k == 7:
            right = reward
        if k == (7 if not late else 20) and k >= 7:
            bandit.amend(decisions[7].id, right)
            bandit.retract(decisions[3].id)
    # The same decisions, told rightly, without the fourth: recorded, since another would be asked.
    log = [e for e in bandit.log() if e.decision != decisions[3].id]
    for event in log:
        if event.kind == "asked":
            paid = [
                e for e in log if e.decision == event.decision and e.kind in ("told", "amended")
            ]
            last = paid[-1].data["reward"]
            assert isinstance(last, float)
            other.record(event.data["arm"], last)
    if agent in ("master", "exp3"):  # their draws follow the number of the decision
        return
    np.testing.assert_allclose(knows(bandit), knows(other), rtol=1e-9, atol=1e-9)


def test_a_reward_that_was_told_is_not_told_otherwise() -> None:
    bandit = live()
    decision = bandit.ask()
    bandit.tell(decision.id, 3.0)
    bandit.tell(decision.id, 3.0)
    with pytest.raises(ValueError, match="amend"):
        bandit.tell(decision.id, 4.0)
    with pytest.raises(ValueError, match="'decision'"):
        bandit.tell("17", 4.0)
    bandit.retract(decision)
    with pytest.raises(ValueError, match="'decision'"):
        bandit.tell(decision.id, 4.0)


def test_a_key_gives_the_same_answer() -> None:
    bandit = live()
    first = bandit.ask(key="order-17")
    play(bandit, 5)
    assert bandit.ask(key="order-17") == first
    three = bandit.ask(3, key="batch")
    assert bandit.ask(3, key="batch") == three


@pytest.mark.slow
@pytest.mark.parametrize("agent", ALL)
def test_made_again_it_goes_on_as_if_it_had_never_stopped(agent: str, tmp_path: Path) -> None:
    kept = live(agent, storage=tmp_path / "shop.db", name="espresso", seed=2)
    same = live(agent, name="espresso", seed=2)
    for k in range(6):
        kept.close()
        kept = LiveBandit.open(tmp_path / "shop.db", "espresso")
        for bandit in (kept, same):
            play(bandit, 6, seed=k)
        asked = [bandit.ask() for bandit in (kept, same)]
        assert asked[0] == asked[1]
    kept.close()
    np.testing.assert_array_equal(
        knows(LiveBandit.open(tmp_path / "shop.db", "espresso")), knows(same)
    )


def test_other_settings_under_a_name_that_is_taken_are_refused(tmp_path: Path) -> None:
    live(storage=tmp_path / "shop.db").close()
    with pytest.raises(ValueError, match=r"'minimize'.*LiveBandit\.open"):
        live(storage=tmp_path / "shop.db", minimize=True)
    with pytest.raises(ValueError, match="'name'"):
        LiveBandit.open(tmp_path / "shop.db", "latte")


def test_arms_come_and_go_and_what_is_known_of_the_rest_stays() -> None:
    bandit = live()
    play(bandit, 40)
    before = bandit.expects()
    bandit.remove_arm(14.0)
    assert all(decision.arm != 14.0 for decision in bandit.ask(10))
    bandit.add_arm(15.0)
    after = bandit.expects()
    assert after.mean.shape == (7,)
    assert abs(after.mean[:6] - before.mean).max() < 6.0
    bandit.add_arm(14.0)
    play(bandit, 40)
    with pytest.raises(ValueError, match="'arm'"):
        bandit.add_arm(15.0)
    with pytest.raises(ValueError, match="'allowed'"):
        bandit.ask(allowed=[11.0])
    assert bandit.ask(allowed=[20.0]).arm == 20.0


@pytest.mark.parametrize("agent", ["adaptive-wgp-ucb", "wgp-ucb", "tv-gp-ucb"])
def test_closed_for_a_while_it_is_less_sure(agent: str) -> None:
    def _bands(days: float) -> Array:
        bandit = live(agent, timescale="1 day", seed=4)
        rng = np.random.default_rng(4)
        for day in range(30):
            decision = bandit.ask(time=date_of(day))
            bandit.tell(decision.id, revenue(decision.arm, rng.normal()) + 0.3 * day)
        return bandit.expects(time=date_of(29 + days)).std

    assert (_bands(60) > 1.02 * _bands(1)).all()
    np.testing.assert_array_equal(_bands(1), _bands(1))


def test_by_decisions_time_does_nothing() -> None:
    bandit = live("wgp-ucb")
    play(bandit, 10)
    before = bandit.expects()
    np.testing.assert_array_equal(bandit.expects(time=1e9).std, before.std)


def test_a_step_a_day_is_a_step_a_decision() -> None:
    by_days, by_steps = live("tv-gp-ucb", timescale=1.0), live("tv-gp-ucb")
    rng = np.random.default_rng(0)
    for day in range(20):
        one, other = by_days.ask(time=day), by_steps.ask()
        assert one.arm == other.arm
        reward = revenue(one.arm, rng.normal())
        by_days.tell(one.id, reward)
        by_steps.tell(other.id, reward)
    np.testing.assert_allclose(by_days.expects(time=20).std, by_steps.expects().std, rtol=1e-9)


def test_agents_that_count_plays_refuse_a_timescale() -> None:
    with pytest.raises(ValueError, match="timescale"):
        live("master", timescale="1 day")


def test_less_is_better_is_more_is_better_turned_round() -> None:
    more, less = live(seed=9), live(seed=9, minimize=True)
    rng = np.random.default_rng(0)
    for _ in range(30):
        one, other = more.ask(), less.ask()
        assert one.arm == other.arm
        reward = revenue(one.arm, rng.normal())
        more.tell(one.id, reward)
        less.tell(other.id, -reward)
    np.testing.assert_allclose(less.expects().mean, -more.expects().mean, rtol=1e-9)


@pytest.mark.parametrize(
    "agent", ["gp-ucb", "tv-gp-ucb", "et-gp-ucb", "pe-gp-ucb", "wgp-ucb", "d-ucb", "ucb1"]
)
def test_rewards_in_any_unit_do_not_lock_an_agent(agent: str) -> None:
    bandit = live(agent)
    rng = np.random.default_rng(0)
    arms = []
    for _ in range(60):
        decision = bandit.ask()
        arms.append(decision.arm)
        bandit.tell(decision.id, 1e4 * revenue(decision.arm, 2 * rng.normal()))
    assert len(set(arms)) >= 4
    late = np.array(arms[30:])
    assert np.mean(abs(late - 15.0) <= 3.0) > 0.6  # chance is a third


@pytest.mark.slow
def test_contexts_change_what_is_best() -> None:
    bandit = LiveBandit(Arms(["ice", "tea"]), contexts=Knobs(temperature=(-10, 40)))
    rng = np.random.default_rng(0)
    right = []
    for _ in range(200):
        heat = float(rng.uniform(-10, 40))
        decision = bandit.ask(context={"temperature": heat})
        best = "ice" if heat > 15 else "tea"
        bandit.tell(decision.id, float(decision.arm == best) + 0.1 * rng.normal())
        right.append(decision.arm == best)
    assert np.mean(right[100:]) > 0.85
    with pytest.raises(ValueError, match="'context'"):
        bandit.ask()
    with pytest.raises(ValueError, match="'temperature'"):
        bandit.ask(context={"temperature": 99})


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["adaptive-wgp-ucb", "wgp-ucb"])
def test_offers_are_known_by_their_features(agent: str) -> None:
    bandit = LiveBandit(Offers(8, price=(0, 100), size=["S", "M"]), agent=agent, horizon=300)
    rng = np.random.default_rng(0)
    regret = []
    for k in range(150):
        offers: dict[str, dict[str, Any]] = {
            f"o{k}-{i}": {"price": float(rng.uniform(0, 100)), "size": "SM"[rng.integers(2)]}
            for i in range(rng.integers(2, 9))
        }
        worth = {
            name: 1 - (row["price"] / 100 - 0.6) ** 2 - 0.5 * (row["size"] == "S")
            for name, row in offers.items()
        }
        decision = bandit.ask(arms=offers)
        bandit.tell(decision.id, worth[str(decision.arm)] + 0.05 * rng.normal())
        regret.append(max(worth.values()) - worth[str(decision.arm)])
    assert np.mean(regret[100:]) < 0.35 * np.mean(regret[:5]) or np.mean(regret[100:]) < 0.05


def test_knobs_are_found() -> None:
    bandit = LiveBandit(Knobs(speed=(0, 300), tool=["A", "B"]), candidates=60)
    rng = np.random.default_rng(0)
    paid = []
    for _ in range(100):
        decision = bandit.ask()
        arm = decision.arm
        assert isinstance(arm, dict)
        speed = arm["speed"]
        assert isinstance(speed, float)
        worth = -(((speed - 210) / 100) ** 2) + 0.5 * (arm["tool"] == "B")
        bandit.tell(decision.id, worth + 0.05 * rng.normal())
        paid.append(worth)
    assert np.mean(paid[50:]) > 0.4  # the best is 0.5, random play -0.9


def test_given_up_decisions_count_when_their_reward_comes_after_all() -> None:
    bandit = live("wgp-ucb", lookback=3)
    play(bandit, 15)
    first = bandit.ask()
    for _ in range(5):
        bandit.tell(bandit.ask().id, 40.0)
    before = bandit.expects()
    bandit.tell(first.id, 400.0)
    assert bandit.expects().mean[first.index] > before.mean[first.index] + 1.0


def test_a_decision_that_was_given_up_is_one_step() -> None:
    bandit = live("wgp-ucb", unit=(0.0, 1.0), lookback=2)
    places = (np.array(PRICES)[:, None] - 10.0) / 10.0
    problem = BanditProblem(SquaredExponential(0.2), places, 200, noise_scale=0.5, norm_bound=1.0)
    agent = wgp_agents.make("wgp-ucb", problem)
    agent.reset(0)
    decisions = [bandit.ask() for _ in range(30)]
    report = bandit.report()
    assert (report.num_open, report.num_given_up) == (2, 28)
    assert "30 (0 told, 2 open, 0 missing, 28 given up)" in report.table()
    agent.elapse(28.0)
    for late, decision in [(0, d) for d in decisions[28:]] + [(1, d) for d in decisions[:28]]:
        bandit.tell(decision, 0.1 * decision.index)
        agent.observe(decision.index, 0.1 * decision.index, elapsed=1.0 - late)
    assert (bandit.report().num_open, bandit.report().num_given_up) == (0, 0)
    np.testing.assert_allclose(bandit.expects().mean, agent.posterior().mean, rtol=1e-9)


@pytest.mark.slow
def test_what_another_version_learned_is_learned_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, log = tmp_path / "shop.db", pandas.DataFrame({"arm": PRICES * 90, "reward": 7.0})
    with monkeypatch.context() as patch:
        patch.setattr("wgp_agents.live.learner.FORM", 1)
        patch.setattr(Rewards, "read", lambda self, values, unit: np.asarray(values, float) - 5.0)
        old = live("wgp-ucb", storage=path, unit=(0.0, 1.0))
        old.fit(log)
        assert old.expects().mean.max() < 3.0
        old.close()
    found = LiveBandit.open(path, "bandit").expects()
    fresh = live("wgp-ucb", unit=(0.0, 1.0))
    fresh.fit(log)
    np.testing.assert_array_equal(found.mean, fresh.expects().mean)


def test_missing_rewards_are_steps_that_go_by() -> None:
    bandit = live("tv-gp-ucb")
    play(bandit, 20)
    before = bandit.expects()
    for _ in range(5):
        bandit.tell(bandit.ask().id, None)
    after = bandit.expects()
    assert (after.std >= before.std).all()


@pytest.mark.parametrize(
    ("kwargs", "named"),
    [
        ({"agent": "wgp-ucbb"}, "wgp-ucb"),
        ({"lookback": 0}, "lookback"),
        ({"seed": -1}, "seed"),
        ({"reward": "money"}, "reward"),
        ({"unit": (0.0, 0.0)}, "unit"),
        ({"contexts": {"a": (0, 1)}}, "contexts"),
        ({"parameters": {"discount": 3.0}, "agent": "wgp-ucb"}, "discount"),
        ({"timescale": "soon"}, "timescale"),
        ({"minimize": "yes"}, "minimize"),
        ({"unit": 5}, "unit"),
        ({"unit": ("a", 1)}, "unit"),
        ({"unit": (0.0, 1.0), "reward": "clicks"}, "unit"),
        ({"name": ""}, "name"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(kwargs: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        LiveBandit(Arms(PRICES), **kwargs)


def test_agents_that_need_a_horizon_say_so() -> None:
    with pytest.raises(ValueError, match="horizon"):
        LiveBandit(Arms(PRICES), agent="exp3")


def test_all_orders_of_three_rewards_are_one_knowledge() -> None:
    found = []
    for order in itertools.permutations(range(3)):
        bandit = live()
        play(bandit, 11)
        decisions = bandit.ask(3)
        for i in order:
            bandit.tell(decisions[i].id, revenue(decisions[i].arm))
        found.append(knows(bandit))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_the_report_says_what_the_log_says() -> None:
    bandit = live(timescale="1 day", name="espresso")
    rng = np.random.default_rng(0)
    paid: dict[str, float] = {}
    decisions = []
    for day in range(40):
        decision = bandit.ask(time=date_of(day))
        decisions.append(decision)
        if day % 10 == 9:
            bandit.tell(decision, None)
        elif day < 38:
            paid[decision.id] = revenue(decision.arm, rng.normal())
            bandit.tell(decision, paid[decision.id])
    bandit.retract(decisions[5])
    bandit.amend(decisions[6], 33.0)
    bandit.remove_arm(20.0)
    report = bandit.report()
    assert (report.num_decisions, report.num_open, report.num_missing) == (39, 1, 4)
    assert report.num_told == 34
    kept = [d for d in decisions if d is not decisions[5]]
    for arm in report.arms:
        mine = [d for d in kept if d.arm == arm.label]
        assert arm.plays == len(mine)
        assert arm.share == pytest.approx(len(mine) / 39)
        assert arm.there == (arm.label != 20.0)
        if mine:
            assert arm.last_decision == int(mine[-1].id)
    expected = bandit.expects()
    np.testing.assert_allclose(floats(arm.mean for arm in report.arms), expected.mean)
    highs = floats(arm.high for arm in report.arms)
    np.testing.assert_allclose(highs, expected.mean + 1.96 * expected.std)
    row = report.history.decision.index(7)
    assert report.history.reward[row] == 33.0
    assert report.choice is not None
    assert report.choice.chosen.label == decisions[-1].arm
    assert report.choice.runner_up is not None
    first, second = floats([report.choice.chosen.bound, report.choice.runner_up.bound])
    assert first >= second
    assert report.noise_std == pytest.approx(1.0, rel=0.9)
    assert "espresso" in report.table()
    assert report.memory_time == report.memory


def test_a_change_is_noticed_and_reported() -> None:
    bandit = live()
    rng = np.random.default_rng(0)
    for k in range(160):
        decision = bandit.ask()
        assert isinstance(decision.arm, float)
        best = 12.0 if k < 80 else 19.0
        bandit.tell(decision, 40.0 - 2.0 * (decision.arm - best) ** 2 + rng.normal())
    changes = bandit.report().changes
    assert any(80 < change.decision <= 110 for change in changes)
    assert not any(20 < change.decision <= 80 for change in changes)


def test_right_after_a_restart_the_memory_is_known_to_be_none() -> None:
    """It is 0 steps then, as before the first reward, when it is not known."""
    env = gymnasium.make("WGPBandit-Abrupt-v0")  # f changes at t = 100
    observation, _ = env.reset(seed=2)
    agent = wgp_agents.make("adaptive-wgp-ucb", env)
    agent.reset(2)
    said = [insight_of(agent)]
    for _ in range(100):
        action = agent.act(observation)
        observation, reward, *_ = env.step(action)
        agent.observe(action, float(reward))
        said.append(insight_of(agent))
    assert said[0].memory is None
    assert said[1].memory == 1.0
    assert [one.memory for one in said[1:] if one.age == 0] == [0.0]


def test_the_report_is_of_the_last_decision_or_of_a_later_day() -> None:
    bandit = live(timescale="1 day")
    assert bandit.report().time is None
    rng = np.random.default_rng(0)
    for day in range(60):  # a log of the past: 1970
        decision = bandit.ask(time=date_of(day))
        bandit.tell(decision, revenue(decision.arm, rng.normal()), time=date_of(day))
    last, later = bandit.report(), bandit.report(time=date_of(400))
    assert (last.time, later.time) == (86_400.0 * 59, 86_400.0 * 400)
    assert "1970-03-01 (all dates are in UTC)" in last.table()
    for found, time in ((last, date_of(59)), (later, date_of(400))):
        expected = bandit.expects(time=time)
        highs = floats(arm.high for arm in found.arms)
        np.testing.assert_allclose(highs, expected.mean + 1.96 * expected.std)
    assert (
        floats(arm.high for arm in later.arms).max() > floats(arm.high for arm in last.arms).max()
    )
    assert bandit.report(time=date_of(3)) == last == bandit.report()  # no way back, no trace
    assert live().report(time=3.0).time is None


@pytest.mark.parametrize("reward", ["real", "clicks", "counts", "heavy-tailed"])
def test_before_anything_was_told_the_report_has_no_numbers(reward: Any) -> None:
    bandit = live(reward=reward)
    decision = bandit.ask()
    report = bandit.report()
    assert {(arm.mean, arm.low, arm.high) for arm in report.arms} == {(None, None, None)}
    assert (report.noise_std, report.drift, report.memory) == (None, None, None)
    assert re.search(r"10 +- +- +- ", report.table())
    bandit.tell(decision, 1.0)
    bandit.tell(bandit.ask(), 1.0)  # of one size nobody knows how large noise is
    report = bandit.report()
    assert [arm.mean for arm in report.arms] == pytest.approx([1.0] * 6)
    assert {(arm.low, arm.high) for arm in report.arms} == {(None, None)}
    assert (report.noise_std, report.drift) == (None, None)
    bandit.tell(bandit.ask(), None)
    bandit.tell(bandit.ask(), 0.0)
    assert (bandit.report().noise_std is None) == (reward in ("counts", "heavy-tailed"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reward", "minimize"), [("clicks", False), ("counts", True), ("heavy-tailed", True)]
)
def test_bands_of_transformed_rewards_hold_what_they_say(reward: Any, minimize: bool) -> None:
    held, rewards_held = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        centre = np.exp(rng.normal(0.5, 1.0, 6))  # of the last kind, medians
        if reward == "clicks":
            centre = np.minimum(0.1 * centre, 1.0)
        bandit = LiveBandit(Arms([*"abcdef"]), reward=reward, minimize=minimize, seed=seed)
        draws: dict[str, Any] = {
            "clicks": lambda k, c=centre, r=rng: float(r.random() < c[k]),
            "counts": lambda k, c=centre, r=rng: float(r.poisson(c[k])),
            "heavy-tailed": lambda k, c=centre, r=rng: float(c[k] * np.exp(r.normal())),
        }
        for _ in range(60):
            decision = bandit.ask()
            bandit.tell(decision, draws[reward](decision.index))
        found = bandit.report()
        low, high = (floats(getattr(arm, end) for arm in found.arms) for end in ("low", "high"))
        if reward != "heavy-tailed":
            assert (low >= 0).all()
        if reward == "clicks":
            assert (high <= 1).all()
        held += ((low <= centre) & (centre <= high)).tolist()
        past = found.history
        rewards_held += [
            low <= paid <= high
            for low, paid, high in zip(past.low, past.reward, past.high, strict=True)
            if low is not None and high is not None and paid is not None
        ]
    # Measured: 1.00 of the arms, and 0.951 to 0.975 of the rewards.
    assert np.mean(held) > 0.95
    assert 0.93 < np.mean(rewards_held) < 0.99


@pytest.mark.parametrize("size", [-50.0, 10.0, -5.0])
def test_a_change_has_its_size(size: float) -> None:
    for seed in range(3):
        bandit, rng = live(seed=seed), np.random.default_rng(seed)
        for k in range(100):
            decision = bandit.ask()
            level = 100.0 if k < 80 else 100.0 + size
            bandit.tell(decision, level + 0.1 * decision.index + rng.normal())
        (change, *_) = bandit.report().changes
        assert 80 < change.decision <= 90
        assert change.size == pytest.approx(size, abs=2.5)  # the mean of some, of noise 1


def test_what_others_decided_is_learned_and_replayed(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    arms = rng.choice(PRICES, 600)
    log = pandas.DataFrame({"arm": arms, "reward": [revenue(a, rng.normal()) for a in arms]})
    bandit = live("wgp-ucb")
    found = bandit.replay(log)
    assert found.num_used > 60
    assert found.estimate > np.mean(log.reward) + 1.0  # it does better than chance
    assert found.low < 40.0
    path = tmp_path / "log.csv"
    log.loc[3, "reward"] = np.nan
    log.to_csv(path, index=False)
    assert bandit.fit(path) == 600
    assert bandit.expects().mean.argmax() in (2, 3)  # 14 and 16
    log.loc[5, "arm"] = 11.0
    with pytest.raises(ValueError, match="'arm'"):
        bandit.fit(log)
    assert len(bandit.log()) == 1200


@pytest.mark.parametrize("timescale", [None, "1 day"])
def test_a_log_out_of_order_is_not_learned(timescale: Any, tmp_path: Path) -> None:
    days = [f"2026-05-{day:02d}" for day in range(1, 29)]
    log = pandas.DataFrame({"arm": 12.0, "reward": range(28), "time": days})
    bandit = live(timescale=timescale)
    path = tmp_path / "log.csv"
    for wrong in (log[::-1], log.sample(frac=1.0, random_state=0)):
        wrong.to_csv(path, index=False)
        with pytest.raises(ValueError, match="'log' parameter of fit must be sorted by 'time'"):
            bandit.fit(path)
        with pytest.raises(ValueError, match="sorted by 'time'"):
            bandit.fit(wrong)
    holes = log.assign(time=[None, *days[1:]])
    if timescale is None:
        assert bandit.fit(holes) + bandit.fit(log.drop(columns="time")) == 56
    else:
        with pytest.raises(ValueError, match="with a time in every row"):
            bandit.fit(holes)
        with pytest.raises(ValueError, match="the log has no column 'time'"):
            bandit.fit(log.drop(columns="time"))
        dated = log.assign(time=pandas.to_datetime(log.time))
        assert bandit.fit(dated) == bandit.fit(log.iloc[[-1] * 28]) == 28
        dated.loc[3, "time"] = pandas.NaT
        with pytest.raises(ValueError, match="with a time in every row"):
            bandit.fit(dated)


def test_a_row_that_does_not_fit_is_named() -> None:
    log = pandas.DataFrame({"arm": PRICES, "reward": 1.0})
    for column, bad in (("arm", 11.0), ("reward", np.inf)):
        with pytest.raises(ValueError, match=rf"'{column}' parameter of fit \(row 2\)"):
            live().fit(log.assign(**{column: [*log[column][:2], bad, *log[column][3:]]}))


def test_a_known_answer_that_is_not_allowed_now_is_refused() -> None:
    bandit = live()
    first = bandit.ask(key="a")
    others = [price for price in PRICES if price != first.arm]
    with pytest.raises(ValueError, match=rf"'allowed'.*{first.arm}, the answer to this key"):
        bandit.ask(key="a", allowed=others)
    assert bandit.ask(key="a", allowed=[first.arm]) == bandit.ask(key="a") == first
    bandit.retract(first)
    assert bandit.ask(key="a", allowed=others).arm != first.arm
    shelf = LiveBandit(Offers(price=(0, 9)))
    offers = {"x": {"price": 3}, "y": {"price": 4}}
    only = shelf.ask(arms=offers, key="a", allowed=["y"])
    assert shelf.ask(arms=offers, key="a", allowed=["y", "x"]) == only
    with pytest.raises(ValueError, match="'y', the answer"):
        shelf.ask(arms=offers, key="a", allowed=["x"])


@pytest.mark.parametrize("kind", [LiveBandit, LiveBandits])
def test_to_open_what_is_not_there_makes_nothing(kind: Any, tmp_path: Path) -> None:
    for storage in (tmp_path / "typo.db", f"sqlite:///{tmp_path / 'typo.db'}"):
        with pytest.raises(ValueError, match=rf"'storage' parameter of {kind.__name__}.open"):
            kind.open(storage, "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_removed_takes_no_more(replaced: bool, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    bandit = live(storage=path)
    decision = bandit.ask()
    for part in tmp_path.iterdir():
        part.rename(part.with_name(f"old-{part.name}"))
    if replaced:
        assert live(storage=path).ask().id == "1"  # a new one may begin
    for call in (bandit.ask, lambda: bandit.tell(decision, 1.0), bandit.expects):
        with pytest.raises(ValueError, match=r"'storage'.*removed or replaced"):
            call()
    assert path.exists() == replaced


def test_what_is_wrong_is_said_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    bandit = live(storage=path, seed=np.int64(3), lookback=np.int32(50))
    decision = bandit.ask()
    for bad in (1, np.int64(1)):
        with pytest.raises(ValueError, match=r"'decision' parameter of tell.*text, as Decision.id"):
            bandit.tell(bad, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="parameter of amend"):
        bandit.amend(decision, np.inf)
    bandit.close()
    with pytest.raises(ValueError, match=r"'arms'.*`LiveBandit.open`.*`add_arm`"):
        LiveBandit(Arms([*PRICES, 22.0]), horizon=200, storage=path)


@pytest.mark.parametrize("lookback", [1, 2, 100])
def test_a_replay_learns_the_unit_that_the_bandit_learns(lookback: int) -> None:
    rng = np.random.default_rng(0)
    log = pandas.DataFrame({"arm": rng.choice(PRICES, 400)})
    log["reward"] = [revenue(arm, 3.0 * rng.normal()) for arm in log.arm]
    log.loc[:30, "reward"] = 0.0  # as of a shop that was closed
    log.loc[:5, "reward"] = np.nan
    log.loc[[12, 14], "reward"] = [3.0, np.nan]
    bandit = live("wgp-ucb", lookback=lookback)
    bandit.fit(log)
    unit = bandit.report().unit
    told = live("wgp-ucb", lookback=lookback, unit=(unit.centre, unit.scale))
    assert bandit.replay(log) == told.replay(log)


@pytest.mark.parametrize(("reward", "bad"), [("clicks", 2.0), ("counts", -1.0)])
def test_a_replay_takes_the_rewards_that_the_bandit_takes(reward: Any, bad: float) -> None:
    log = pandas.DataFrame({"arm": PRICES * 20, "reward": 1.0})
    bandit = live("wgp-ucb", reward=reward)
    assert bandit.replay(log).estimate == 1.0
    log.loc[100, "reward"] = bad
    with pytest.raises(ValueError, match="'reward' parameter of replay"):
        bandit.replay(log)


@pytest.mark.parametrize("agent", ["exp3", "random"])
def test_agents_that_draw_say_with_what_probability(agent: str) -> None:
    bandit = live(agent)
    play(bandit, 20)
    found = [bandit.ask() for _ in range(300)]
    chances = {d.arm: d.propensity for d in found}
    assert sum(p for p in chances.values() if p is not None) == pytest.approx(1.0)
    for arm, chance in chances.items():
        assert chance is not None
        share = np.mean([d.arm == arm for d in found])
        assert abs(share - chance) < 4 * np.sqrt(chance * (1 - chance) / 300)


def test_a_kernel_of_ones_own_is_played_and_must_be_said_again(tmp_path: Path) -> None:
    machine = Knobs(speed=(0, 300), tool=["A", "B"])
    kernel = OnColumns(SquaredExponential(0.3), machine.columns("speed")) * OnColumns(
        Categorical(0.9), machine.columns("tool")
    )
    path = tmp_path / "mill.db"
    mill = LiveBandit(machine, candidates=40, kernel=kernel, storage=path)
    for _ in range(5):
        mill.tell(mill.ask(), 1.0)
    mill.close()
    with pytest.raises(ValueError, match="'kernel'"):
        LiveBandit.open(path, "bandit")
    again = LiveBandit.open(path, "bandit", kernel=kernel)
    assert again.report().num_told == 5
    with pytest.raises(ValueError, match="'names'"):
        machine.columns("sped")


@pytest.mark.parametrize("agent", ["exp3", "exp3-s", "rexp3"])
def test_masks_that_come_and_go_are_learned_as_they_were(agent: str, tmp_path: Path) -> None:
    path, arms = tmp_path / "shop.db", ["a", "b", "c", "d"]
    bandit = LiveBandit(arms, agent=agent, horizon=400, unit=(0.0, 1.0), storage=path)
    first = bandit.ask(allowed=["a", "b"])  # it stays open for a while
    for t in range(30):
        decision = bandit.ask(allowed=["a", "b"] if t % 2 else None)
        bandit.tell(decision, float(decision.index == 2))
    bandit.tell(first, 1.0)
    bandit.close()
    problem = BanditProblem(
        Empirical(np.eye(4)), np.linspace(0, 1, 4)[:, None], 400, 0.5, 1.0, reward_range=(-1, 1)
    )
    plain = wgp_agents.make(agent, problem)
    plain.reset(0)
    again = LiveBandit.open(path, "bandit")
    log = again.log()
    told: dict[str | None, Any] = {
        event.decision: event.data["reward"] for event in log if event.kind == "told"
    }
    for event in log:
        if event.kind == "asked":
            allowed: Any = event.data.get("allowed")
            plain.act(allowed=None if allowed is None else np.isin(range(4), allowed))
            plain.observe(event.data["index"], told[event.decision])
    plain.act()
    chances = plain.propensities()
    assert chances is not None
    decision = again.ask()
    assert decision.propensity == pytest.approx(chances[decision.index], rel=1e-9)


@pytest.mark.parametrize("agent", ["exp3", "master"])
def test_an_arm_that_came_was_not_there_before(agent: str) -> None:
    bandit = LiveBandit(["a", "b", "c"], agent=agent, horizon=400, unit=(0.0, 1.0))
    plain = wgp_agents.make(
        agent,
        BanditProblem(
            Empirical(np.eye(4)), np.linspace(0, 1, 4)[:, None], 400, 0.5, 1.0, reward_range=(-1, 1)
        ),
    )
    plain.reset(0)
    for t in range(40):
        decision = bandit.ask()
        bandit.tell(decision, float(decision.index == 2))
        plain.reseed(draws_of(0, t + 1))
        plain.act(allowed=[True, True, True, False])
        plain.observe(decision.index, float(decision.index == 2))
    bandit.add_arm("d")
    plain.reseed(draws_of(0, 41))
    action, decision = plain.act(), bandit.ask()
    assert decision.index == action
    if agent == "exp3":
        chances = plain.propensities()
        assert chances is not None
        assert decision.propensity == pytest.approx(chances[decision.index], rel=1e-9)


@pytest.mark.parametrize("equal", [0.0, 0.07, 1e6 + 0.1])
def test_equal_rewards_are_no_unit(equal: float) -> None:
    bandit = live("wgp-ucb")
    for _ in range(12):
        bandit.tell(bandit.ask(), equal)
    assert bandit.report().unit.scale == 1.0
    rng = np.random.default_rng(0)
    for _ in range(60):
        decision = bandit.ask()
        bandit.tell(decision, 1e3 * revenue(decision.arm, rng.normal()))
    assert 100.0 < bandit.report().unit.scale < 1e6


def test_an_interrupt_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shop.db"
    one, other = live(storage=path), live(storage=path)
    one.ask()
    add = Learner.add

    def _interrupted(self: Learner, entry: Entry) -> None:
        add(self, entry)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "add", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            other.expects()
    ids = [bandit.ask().id for bandit in (other, one, live(storage=path), other)]
    assert ids == ["2", "3", "4", "5"]


def test_an_error_within_a_look_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit, same = live(), live()
    for one in (bandit, same):
        play(one, 15)
        one.ask()

    def _broken(_: object) -> None:
        raise ValueError("not finite")

    with monkeypatch.context() as patch:
        patch.setattr(AdaptiveWGPUCB, "bands", _broken)
        with pytest.raises(ValueError, match="not finite"):
            bandit.report()
    np.testing.assert_array_equal(bandit.expects().std, same.expects().std)
    assert bandit.ask() == same.ask()


def test_the_drift_is_that_of_an_expected_reward_with_its_level() -> None:
    eps, steps = 0.0125, 3_000.0
    grid: dict[str, Any] = {
        "drifts": [eps],
        "noise_ratios": [0.2],
        "lengthscales": [1.0],
        "exploration": 0.0,
    }
    bandit = live(parameters=grid)
    play(bandit, 30)
    problem = BanditProblem(SquaredExponential(0.2), (np.array(PRICES)[:, None] - 10.0) / 10.0, 200)
    agent = AdaptiveWGPUCB(problem, **grid)
    agent.reset(0)
    history = bandit.report().history
    asked = [event.data["index"] for event in bandit.log() if event.kind == "asked"]
    for action, reward in zip(asked, history.reward, strict=True):
        agent.observe(cast(int, action), reward)
    agent.elapse(steps)  # then nothing is known but the law of the function
    spread = agent.posterior().std
    np.testing.assert_allclose(spread, agent.belief().scale * np.sqrt(1.3), rtol=1e-6)
    # The covariance of two values in a row is the variance times (1 - eps)^{1/2}.
    expected = spread[0] * np.sqrt(2.0 * (1.0 - np.sqrt(1.0 - eps)))
    assert bandit.report().drift == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_an_old_open_decision_hides_nothing_from_the_report() -> None:
    bandit, other = live(lookback=200), live(lookback=200)
    for one in (bandit, other):
        first = one.ask()
        play(one, 80)
    other.tell(first.id, None)
    found, expected = bandit.report(), other.report()
    assert found.memory == expected.memory
    assert found.memory is not None
    assert found.memory > 10
    assert found.noise_std == pytest.approx(expected.noise_std)


@pytest.mark.slow
def test_changes_are_in_the_log_whoever_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    whole = live(storage=path)
    rng = np.random.default_rng(0)
    for k in range(130):
        bandit = whole if k % 2 else live(storage=path)  # two workers
        decision = bandit.ask()
        assert isinstance(decision.arm, float)
        best = 12.0 if k < 80 else 19.0
        bandit.tell(decision, 40.0 - 2.0 * (decision.arm - best) ** 2 + rng.normal())
    changes = live(storage=path).report().changes
    assert changes == whole.report().changes
    assert [80 < change.decision <= 110 for change in changes] == [True]
    assert changes[0].size is not None
    assert changes[0].size < -5.0  # rewards fell


@pytest.mark.parametrize("lookback", [1, 5])
def test_a_short_lookback_learns(lookback: int) -> None:
    bandit = live("wgp-ucb", lookback=lookback)
    rng = np.random.default_rng(0)
    waiting: list[tuple[str, float]] = []
    for _ in range(60):
        decision = bandit.ask()
        waiting.append((decision.id, revenue(decision.arm, rng.normal())))
        if len(waiting) > 6:
            bandit.tell(*waiting.pop(0))
    assert bandit.report().unit.scale > 0.5
    assert bandit.expects().mean.argmax() in (1, 2, 3)


def test_many_open_decisions_wait_for_a_unit_of_ten_rewards() -> None:
    bandit = live("wgp-ucb")
    rng = np.random.default_rng(0)
    for decision in bandit.ask(120):
        bandit.tell(decision, revenue(decision.arm, rng.normal()))
    assert 0.5 < bandit.report().unit.scale < 20.0


def test_a_key_whose_decision_was_retracted_is_asked_anew() -> None:
    bandit = live()
    first = bandit.ask(key="order")
    bandit.retract(first)
    second = bandit.ask(key="order")
    assert second.id != first.id
    assert second.key == "order"
    assert bandit.ask(key="order") == second
    bandit.tell(second, 3.0)
    batch = bandit.ask(2, key="17")
    assert bandit.ask(key="17#0").id not in {decision.id for decision in batch}


def test_a_decision_of_another_bandit_is_refused() -> None:
    one, other = live(name="one"), live(name="other")
    decision = one.ask()
    other.ask()
    with pytest.raises(ValueError, match="'decision'"):
        other.tell(decision, 1.0)


def test_its_own_log_can_be_replayed() -> None:
    pandas = pytest.importorskip("pandas")
    bandit = live("random")
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(100):
        decision = bandit.ask()
        reward = revenue(decision.arm, rng.normal())
        bandit.tell(decision, reward)
        rows.append({"arm": decision.arm, "reward": reward, "propensity": decision.propensity})
    assert bandit.replay(pandas.DataFrame(rows), method="ips").num_rows == 100


@pytest.mark.slow
def test_what_is_expected_is_of_a_context() -> None:
    bandit = LiveBandit(Arms(["ice", "tea"]), contexts=Knobs(temperature=(-10, 40)))
    rng = np.random.default_rng(0)
    for _ in range(150):
        heat = float(rng.uniform(-10, 40))
        decision = bandit.ask(context={"temperature": heat})
        good = (decision.arm == "ice") == (heat > 15)
        bandit.tell(decision, float(good) + 0.1 * rng.normal())
    hot, cold = (bandit.expects(context={"temperature": t}) for t in (35.0, -5.0))
    assert hot.mean.argmax() == 0
    assert cold.mean.argmax() == 1
    with pytest.raises(ValueError, match="'context'"):
        bandit.expects()
    shelf = LiveBandit(Offers(price=(0, 1)))
    shelf.ask(arms={"a": {"price": 0.5}})
    with pytest.raises(ValueError, match="'arms'"):
        shelf.expects()


def test_kernels_that_differ_in_one_number_are_two(tmp_path: Path) -> None:
    names, path = [f"arm {i}" for i in range(40)], tmp_path / "shop.db"
    one, other = np.eye(40), np.eye(40)
    other[20, 21] = other[21, 20] = 0.9
    LiveBandit(names, kernel=Empirical(one), storage=path).close()
    with pytest.raises(ValueError, match="'kernel'"):
        LiveBandit.open(path, "bandit", kernel=Empirical(other))
    LiveBandit.open(path, "bandit", kernel=Empirical(one))


@pytest.mark.slow
def test_rewards_in_any_unit_do_not_lock_w_dbo() -> None:
    test_rewards_in_any_unit_do_not_lock_an_agent("w-dbo")


def test_an_arm_added_in_another_kind_of_number_is_the_one_that_was() -> None:
    bandit = LiveBandit([10, 20, 30])
    bandit.remove_arm(10)
    bandit.add_arm(np.float64(10))
    bandit.add_arm(np.float64(15))
    bandit.remove_arm(15)
    assert [arm.label for arm in bandit.report().arms if arm.there] == [10, 20, 30]
    added = [event.data["added"] for event in bandit.log() if "added" in event.data]
    assert [type(one) for one in added] == [int, float]
    with pytest.raises(ValueError, match="a new arm"):
        bandit.add_arm(10.0)


@pytest.mark.parametrize(
    ("timescale", "good", "bad"), [("1 day", "1970-01-02", 1), (1.0, 1, "1970-01-02")]
)
def test_times_are_of_the_kind_of_the_timescale(timescale: Any, good: Any, bad: Any) -> None:
    bandit = live("wgp-ucb", timescale=timescale)
    decision = bandit.ask(time=good)
    log = pandas.DataFrame({"arm": [12.0], "reward": [1.0], "time": [bad]})
    for call in (
        lambda: bandit.ask(time=bad),
        lambda: bandit.tell(decision, 1.0, time=bad),
        lambda: bandit.record(12.0, 1.0, time=bad),
        lambda: bandit.fit(log),
        lambda: bandit.expects(time=bad),
        lambda: bandit.replay(log),
    ):
        with pytest.raises(ValueError, match=r"must be .*(date|number|span)"):
            call()
    bandit.tell(decision, 1.0, time=good)
    assert np.isfinite(bandit.expects(time=good).mean).all()


def test_without_a_timescale_a_time_comes_back_as_it_was_given() -> None:
    bandit = live()
    assert bandit.ask(time="1970-01-02", key="a").time == date_of(1)
    assert bandit.ask(key="a").time == date_of(1)
    assert bandit.ask(time=5).time == 5.0
    assert bandit.ask().time is None


def test_numpys_numbers_are_kept_as_plain_ones() -> None:
    bandit = LiveBandit(
        Offers(price=(0, 9), n=[1, 2]), contexts=Knobs(t=(-10, 40), day=["Mon", "Tue"])
    )
    context = {"t": np.float32(0.5), "day": np.str_("Mon")}
    decision = bandit.ask(context=context, arms={"a": {"price": np.int64(3), "n": np.int8(2)}})
    assert decision.context == {"t": 0.5, "day": "Mon"}
    assert bandit.log()[0].data["offers"] == [["a", {"price": 3, "n": 2}]]
    offer = {"price": 3, "n": 2}
    cases: list[tuple[dict[str, object], str]] = [
        ({"context": {"t": 99, "day": "Mon"}}, r"context\['t'\]"),
        ({"context": {"t": 9}}, "'context'"),
        ({"arms": {"a": {"price": 3, "n": True}}}, r"arms\['a'\]\['n'\]"),
        ({"arms": {"a": 3}}, "'arms'"),
        ({"allowed": "a"}, "'allowed'"),
        ({"allowed": 3}, "'allowed'"),
        ({"time": 10**400}, "'time'"),
    ]
    for more, named in cases:
        given: dict[str, Any] = {"context": context, "arms": {"a": offer}} | more
        with pytest.raises(ValueError, match=named):
            bandit.ask(**given)
    assert bandit.ask(context=context, arms={"a": offer, "b": offer}, allowed=["b"]).arm == "b"


def test_texts_in_a_file_stay_texts(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,context_zone\n007,1,01\n008,,NA\nNA,2,01\n1,3,NA\n")
    arms = Arms({"007": 1, "008": 2, "NA": 3, 1.0: 4})
    bandit = LiveBandit(arms, contexts=Knobs(zone=["01", "NA"]))
    assert bandit.fit(path) == 4
    asked = [event.data for event in bandit.log() if event.kind == "asked"]
    assert [one["arm"] for one in asked] == ["007", "008", "NA", 1.0]
    assert [one["context"] for one in asked] == [{"zone": zone} for zone in ("01", "NA") * 2]
    assert bandit.report().num_missing == 1
    path.write_text("arm,reward,context_zone,propensity\n" + "NA,2,01,0.5\n008,3,NA,0.5\n" * 20)
    assert bandit.replay(path, method="ips").num_rows == 40


@pytest.mark.parametrize("method", ["rejection", "ips"])
def test_a_replay_does_not_choose_arms_that_were_removed(method: Any) -> None:
    rng = np.random.default_rng(3)
    log = pandas.DataFrame({"arm": rng.choice(PRICES, 300), "propensity": 1 / 6})
    log["reward"] = np.where(log.arm == 20.0, 100.0, np.where(log.arm == 10.0, 1.0, 2.0))
    bandit = live("wgp-ucb", unit=(0.0, 10.0))
    assert bandit.replay(log, method=method).estimate > 20.0  # it finds the best one
    bandit.remove_arm(20.0)
    found = bandit.replay(log, method=method)
    assert found.estimate < 4.0
    assert found.num_rows == 300
    log["allowed"] = [[arm, 20.0] for arm in log.arm]
    log.loc[log.arm == 20.0, "allowed"] = None
    log = log[log.arm != 20.0]
    assert bandit.replay(log, method=method).num_used == len(log)  # one arm is left in each row
    log["allowed"] = [[20.0]] * len(log)
    log["arm"] = 20.0
    with pytest.raises(ValueError, match="row 0"):
        bandit.replay(log, method=method)


def test_the_report_tells_1_from_its_text() -> None:
    bandit = LiveBandit(Arms({1.5: 1, "1.5": 2, "True": 3, True: 4}))
    for arm, times in ((1.5, 2), ("1.5", 3), ("True", 4), (True, 1)):
        for _ in range(times):
            bandit.record(arm, 1.0)
    assert [arm.plays for arm in bandit.report().arms] == [2, 3, 4, 1]


@pytest.mark.slow
def test_it_goes_on_in_every_database(database: str) -> None:
    kept, same = live(storage=database, name="espresso"), live(name="espresso")
    for k in range(3):
        kept.close()
        kept = LiveBandit.open(database, "espresso")
        for bandit in (kept, same):
            play(bandit, 4, seed=k)
        assert kept.ask() == same.ask()
    np.testing.assert_array_equal(kept.expects().mean, same.expects().mean)


@pytest.mark.slow
def test_a_snapshot_saves_time_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas, path = pytest.importorskip("pandas"), tmp_path / "shop.db"
    bandit = live("wgp-ucb", storage=path, unit=(40.0, 5.0))
    log = [{"arm": PRICES[k % 6], "reward": 30.0 + k % 7} for k in range(520)]
    assert bandit.fit(pandas.DataFrame(log)) == 520  # two events each: a snapshot after 500
    bandit.retract("519")
    play(bandit, 3)
    bandit.close()
    by_snapshot = LiveBandit.open(path, "bandit").expects()

    def _refused(_: Learner, data: bytes) -> None:
        raise ValueError(f"{len(data)} bytes of another version")

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "unpack", _refused)  # then all comes from the log
        by_log = LiveBandit.open(path, "bandit")
    for found, expected in zip(by_snapshot, by_log.expects(), strict=True):
        np.testing.assert_array_equal(found, expected)
    by_log.retract("7")  # before any snapshot
    fresh = live("wgp-ucb", unit=(40.0, 5.0))
    paid: dict[str | None, Any] = {
        event.decision: event.data["reward"] for event in by_log.log() if event.kind == "told"
    }
    for event in by_log.log():
        if event.kind == "asked" and event.decision not in ("7", "519"):
            fresh.record(event.data["arm"], paid[event.decision])
    for found, expected in zip(by_log.expects(), fresh.expects(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_known_answer_stays_though_other_allowed_arms_went() -> None:
    bandit = LiveBandit(Arms(["a", "b"]))
    first = bandit.ask(key="k", allowed=["b", "a"])
    (other,) = {"a", "b"} - {str(first.arm)}
    bandit.remove_arm(other)
    assert bandit.ask(key="k", allowed=["b", "a"]) == first
    numbers = LiveBandit(Arms([1, 2, 3]))
    some: Any = np.array([1, 2])
    one = numbers.ask(key="k", allowed=some)
    assert numbers.ask(key="k", allowed=some) == one


def test_a_log_of_arms_of_two_kinds_still_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shop.db"
    bandit = LiveBandit(Arms(["1", "2"]), storage=path, name="old")
    with pytest.raises(ValueError, match="'arm' parameter of add_arm"):
        bandit.add_arm(3)
    monkeypatch.setattr(bandit_module, "check_kinds", lambda *_: None)  # as before there was one
    bandit.add_arm(3)
    bandit.close()
    monkeypatch.undo()
    assert LiveBandit.open(path, "old").ask(allowed=[3]).arm == 3
