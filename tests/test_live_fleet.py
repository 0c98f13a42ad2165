"""Many bandits as one batch: each is what it would be alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgp_agents.live import Arms, LiveBandit, LiveBandits

PRICES = [10.0, 12.0, 14.0, 16.0, 18.0, 20.0]
NAMES = ["Bonn", "Cork", "Gent"]


def revenue(arm: object, noise: float) -> float:
    """Return what a price earns."""
    assert isinstance(arm, float)
    return 40.0 - 0.5 * (arm - 15.0) ** 2 + noise


@pytest.mark.parametrize("agent", ["wgp-ucb", "adaptive-wgp-ucb", "tv-gp-ucb", "d-ucb"])
def test_each_is_what_it_would_be_alone(agent: str) -> None:
    kwargs: dict[str, Any] = {"agent": agent, "horizon": 100, "unit": (40.0, 5.0)}
    fleet = LiveBandits(Arms(PRICES), NAMES, seed=3, **kwargs)
    alone = [LiveBandit(Arms(PRICES), seed=3 + i, **kwargs) for i in range(3)]
    rng = np.random.default_rng(0)
    waiting = []
    for k in range(25):
        who = NAMES if k % 3 else NAMES[: 1 + k % 2]
        for name, decision in fleet.ask(who).items():
            other = alone[NAMES.index(name)].ask()
            assert decision.arm == other.arm
            if other.mean is None:  # before the first reward, and of an agent without a posterior
                assert decision.mean is None
            else:
                assert decision.mean == pytest.approx(other.mean, rel=1e-9)
            waiting.append((decision, name, other))
        rng.shuffle(waiting)
        late, now = waiting[:3], waiting[3:]
        waiting = late
        told = {}
        for decision, name, other in now:
            paid = None if rng.random() < 0.2 else revenue(decision.arm, rng.normal())
            told[decision.id] = paid
            alone[NAMES.index(name)].tell(other, paid)
        fleet.tell(told)


@pytest.mark.slow
def test_made_again_they_go_on(tmp_path: Path) -> None:
    kept = LiveBandits(Arms(PRICES), NAMES, storage=tmp_path / "f.db", name="shops")
    same = LiveBandits(Arms(PRICES), NAMES, name="shops")
    for k in range(45):
        if k % 9 == 5:
            kept.close()
            kept = LiveBandits.open(tmp_path / "f.db", "shops")
        asked = kept.ask(), same.ask()
        assert asked[0] == asked[1]
        told = {d.id: revenue(d.arm, k % 5) for d in asked[0].values()}
        for fleet in (kept, same):
            fleet.tell(told)
    np.testing.assert_array_equal(kept.expects("Cork").mean, same.expects("Cork").mean)


def test_a_reward_counts_once_and_a_key_gives_the_same_answer() -> None:
    fleet = LiveBandits(Arms(PRICES), NAMES)
    decisions = fleet.ask(key="monday")
    assert fleet.ask(["Cork"], key="monday") == {"Cork": decisions["Cork"]}
    paid = {decisions["Cork"].id: 3.0}
    fleet.tell(paid)
    fleet.tell(paid)
    with pytest.raises(ValueError, match="'rewards'"):
        fleet.tell({decisions["Cork"].id: 4.0})


def test_a_key_is_of_one_bandit() -> None:
    fleet = LiveBandits(Arms(PRICES), ["b#c", "c", "c\x1f0"])
    first = fleet.ask(["b#c"], key="a")["b#c"]
    assert fleet.ask(["c"], key="a#b")["c"].id != first.id
    third = fleet.ask(["c\x1f0"], key="a")
    assert fleet.ask(["b#c"], key="a\x1fc")["b#c"].id not in {first.id, third["c\x1f0"].id}


def test_a_bandit_and_many_of_one_name_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "f.db"
    fleet = LiveBandits(Arms(PRICES), NAMES, storage=path, name="shops")
    fleet.ask()
    LiveBandit(Arms(PRICES), storage=path, name="espresso").close()
    with pytest.raises(ValueError, match=r"'name'.*`LiveBandits.open`"):
        LiveBandit(Arms(PRICES), storage=path, name="shops")
    with pytest.raises(ValueError, match=r"'name'.*`LiveBandits.open`"):
        LiveBandit.open(path, "shops")
    with pytest.raises(ValueError, match=r"'name'.*`LiveBandit.open`"):
        LiveBandits(Arms(PRICES), NAMES, storage=path, name="espresso")
    with pytest.raises(ValueError, match=r"'name'.*`LiveBandit.open`"):
        LiveBandits.open(path, "espresso")
    fleet.close()
    assert LiveBandits.open(path, "shops").ask()["Cork"].id == "Cork#2"


@pytest.mark.parametrize(
    "bad", [{"Cork#7": 1.0}, {"Rome#1": 1.0}, {"Cork": 1.0}, {"Cork#1": np.nan}, {"Cork#x": 1.0}]
)
def test_what_is_no_decision_or_reward_is_refused(bad: Any) -> None:
    fleet = LiveBandits(Arms(PRICES), NAMES)
    fleet.ask()
    with pytest.raises(ValueError, match="'reward"):
        fleet.tell(bad)
    fleet.tell({"Cork#1": 1.0})


def test_unknown_names_and_agents_that_learn_by_acting_are_refused() -> None:
    fleet = LiveBandits(Arms(PRICES), NAMES)
    with pytest.raises(ValueError, match="Cork"):
        fleet.ask(["Corc"])
    for bad in (3, "Cork", ["Cork", "Cork"], [3], [["Cork"]]):
        with pytest.raises(ValueError, match="'names' parameter of ask"):
            fleet.ask(bad)  # type: ignore[arg-type]
    any_order = (name for name in NAMES)
    assert fleet.ask(any_order).keys() == {*NAMES}  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"of tell \(of Cork#1\)"):
        fleet.tell({"Gent#1": 1.0, "Cork#1": np.inf})
    with pytest.raises(ValueError, match="'agent'"):
        LiveBandits(Arms(PRICES), NAMES, agent="master", horizon=100)
    with pytest.raises(ValueError, match="'names'"):
        LiveBandits(Arms(PRICES), ["a", "a"])


@pytest.mark.slow
def test_late_rewards_of_given_up_decisions_count_as_of_now() -> None:
    fleet = LiveBandits(Arms(PRICES), NAMES, lookback=2, agent="wgp-ucb", horizon=100)
    first = fleet.ask()
    for _ in range(14):
        fleet.tell({d.id: revenue(d.arm, 0.0) for d in fleet.ask().values()})
    arm = first["Cork"].index
    before = fleet.expects("Cork").mean[arm]
    fleet.tell({first["Cork"].id: 400.0})
    assert fleet.expects("Cork").mean[arm] > before + 1.0
    with pytest.raises(ValueError, match="'rewards'"):
        fleet.tell({first["Cork"].id: 401.0})


@pytest.mark.parametrize("agent", ["wgp-ucb", "adaptive-wgp-ucb", "d-ucb"])
def test_a_decision_that_was_given_up_is_one_step(agent: str) -> None:
    kwargs: dict[str, Any] = {"agent": agent, "horizon": 100, "unit": (40.0, 5.0), "lookback": 3}
    fleet = LiveBandits(Arms(PRICES), NAMES, seed=3, **kwargs)
    alone = LiveBandit(Arms(PRICES), seed=4, **kwargs)  # as Cork
    waiting = []
    for k in range(20):
        decision, other = fleet.ask(NAMES[: 2 + k % 2])["Cork"], alone.ask()
        assert decision.arm == other.arm
        waiting.append((decision, other))
        if len(waiting) > 6:
            decision, other = waiting.pop(0)
            fleet.tell({decision.id: revenue(decision.arm, k % 3)})
            alone.tell(other, revenue(decision.arm, k % 3))
    if agent != "d-ucb":
        for found, expected in zip(fleet.expects("Cork"), alone.expects(), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
