"""Rewards that come late or never: when, to whom, and what is shown meanwhile."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray
from scipy import stats

import wgp_gym
from wgp_gym.wrappers import (
    DelayedRewards,
    HistoryObservation,
    RegretReward,
    SeededEpisodes,
    VectorDelayedRewards,
    VectorRegretReward,
)

ABRUPT, CONTEXTUAL = "WGPBandit-Abrupt-v0", "WGPBandit-LinearContextual-v0"
P_VALUE = 1e-3  # of each test of a distribution; the seeds are fixed
GEOMETRIC: list[str | float] = ["geometric", 4.0]


def bare(name: str = ABRUPT, horizon: int = 40, **parameters: Any) -> Any:
    wgp_gym.register()
    return gymnasium.make(name, horizon=horizon, **parameters)


def vector(name: str = ABRUPT, batch: int = 3, horizon: int = 40, **parameters: Any) -> Any:
    mode: dict[str, Any] = {"vectorization_mode": "vector_entry_point"}
    return gymnasium.make_vec(name, batch, horizon=horizon, **mode, **parameters)


def actions_of(env: Any, count: int) -> list[Any]:
    env.action_space.seed(5)
    return [env.action_space.sample() for _ in range(count)]


def played(env: Any, actions: list[Any], **reset: Any) -> list[tuple[Any, ...]]:
    observation, info = env.reset(**reset)
    return [(observation, 0.0, False, False, info), *(env.step(action) for action in actions)]


@pytest.mark.parametrize("parameters", [{}, {"continuous": True, "dim": 2, "points_per_dim": 6}])
def test_no_delay_changes_nothing(parameters: dict[str, Any]) -> None:
    env, late = bare(**parameters), DelayedRewards(bare(**parameters))
    actions = actions_of(env, 40)
    for one, other in zip(played(env, actions, seed=1), played(late, actions, seed=1), strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        assert one[1:4] == other[1:4]
        told = dict(other[-1])
        assert told.pop("reward") == one[1]
        assert told.pop("arrives") == told["t"]
        np.testing.assert_equal(told, one[-1])


@pytest.mark.parametrize("delay", [1, 7, 39, 40, 1000])
def test_a_fixed_delay(delay: int) -> None:
    env, late = bare(), DelayedRewards(bare(), delay=delay)
    actions = actions_of(env, 40)
    known, seen = played(env, actions, seed=1), played(late, actions, seed=1)
    for t in range(1, 41):
        assert seen[t][-1]["reward"] == known[t][1]
        assert seen[t][-1]["arrives"] == (t + delay if t + delay <= 40 else 0)
        assert seen[t][-1]["cumulative_regret"] == known[t][-1]["cumulative_regret"]
        observation, reward = seen[t][0], seen[t][1]
        assert observation[0] == np.float32(t / 40)
        if t <= delay:
            assert reward == 0
            assert not observation[1:].any()
        else:
            assert reward == known[t - delay][1]
            np.testing.assert_array_equal(observation[1:], known[t - delay][0][1:])


def when(delay: Any, missing: float, batch: int = 30, horizon: int = 400) -> NDArray[Any]:
    """Return when the rewards of plays arrive, `(B, T)`."""
    env = VectorDelayedRewards(
        vector(batch=batch, horizon=horizon, points_per_dim=3), delay=delay, missing=missing
    )
    env.reset(seed=2)
    plays = [env.step(np.zeros(batch, np.int64))[-1]["arrives"] for _ in range(horizon)]
    return np.array(plays).T


def test_how_many_are_missing() -> None:
    arrives = when(0, 0.3)
    lost = arrives == 0
    assert stats.binomtest(int(lost.sum()), lost.size, 0.3).pvalue > P_VALUE
    pairs = int((lost[:, 1:] & lost[:, :-1]).sum())  # neighbours are independent
    assert stats.binomtest(pairs, lost[:, 1:].size, 0.09).pvalue > P_VALUE
    np.testing.assert_array_equal(np.where(lost, 0, np.arange(1, 401)), arrives)
    assert not when(0, 1.0, 2, 20).any()


@pytest.mark.parametrize("mean", [0.3, 4.0, 50.0])
def test_geometric_delays(mean: float) -> None:
    arrives = when(["geometric", mean], 0.2, horizon=2000)[:, :400]  # of which all arrive
    delays = (arrives - np.arange(1, 401))[arrives > 0]
    law = stats.geom(1 / (1 + mean), loc=-1)
    assert law.mean() == pytest.approx(mean)
    edges = np.unique(law.ppf(np.linspace(0, 1, 12)[1:-1]))
    found = np.histogram(delays, [-0.5, *(edges + 0.5), np.inf])[0]
    expected = delays.size * np.diff(np.concatenate([[0], law.cdf(edges), [1]]))
    assert stats.chisquare(found, expected).pvalue > P_VALUE
    wrong = stats.geom(1 / (1 + 1.3 * mean), loc=-1)
    other = delays.size * np.diff(np.concatenate([[0], wrong.cdf(edges), [1]]))
    assert stats.chisquare(found, other).pvalue < 1e-4


def test_what_is_paid_and_shown_by_hand() -> None:
    parameters: dict[str, Any] = {"delay": GEOMETRIC, "missing": 0.2}
    env, late = bare(horizon=200), DelayedRewards(bare(horizon=200), **parameters)
    actions = actions_of(env, 200)
    known, seen = played(env, actions, seed=3), played(late, actions, seed=3)
    arrives = [one[-1]["arrives"] for one in seen[1:]]
    several = 0
    for t in range(1, 201):
        now = [s for s in range(1, t + 1) if arrives[s - 1] == t]
        several += len(now) > 1
        assert seen[t][1] == pytest.approx(sum(known[s][1] for s in now), abs=1e-12)
        shown = known[now[-1]][0][1:] if now else np.zeros(3)
        np.testing.assert_array_equal(seen[t][0][1:], shown)
    assert several > 10
    assert sum(not one[0][1] for one in seen[1:]) > 10


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
@pytest.mark.parametrize("name", [ABRUPT, CONTEXTUAL])
def test_a_batch_is_the_single_environments(name: str, mode: str) -> None:
    parameters: dict[str, Any] = {"delay": 0 if name == CONTEXTUAL else GEOMETRIC, "missing": 0.3}
    more: dict[str, Any] = {"num_arms": 3} if name == CONTEXTUAL else {}
    many = VectorDelayedRewards(vector(name, horizon=20, autoreset_mode=mode, **more), **parameters)
    actions = actions_of(many, 50)
    found: list[Any] = []
    for k in range(2):
        step = many.step(actions[0]) if k and mode == "NextStep" else None
        begun = many.reset(seed=7 if not k else None) if step is None else (step[0], step[-1])
        if step is not None:
            assert not step[1].any()
        found += [begun, *(many.step(action) for action in actions[25 * k : 25 * k + 20])]
    for i in range(3):
        one = DelayedRewards(bare(name, horizon=20, **more), **parameters)
        alone: list[Any] = []
        for k in range(2):
            alone.append(one.reset(seed=7 + i if not k else None))
            alone += [one.step(action[i]) for action in actions[25 * k : 25 * k + 20]]
        for single, batch in zip(alone, found, strict=True):
            np.testing.assert_array_equal(single[0], batch[0][i])
            if len(single) > 2:
                assert single[1] == batch[1][i]
            for key, value in single[-1].items():
                np.testing.assert_array_equal(batch[-1][key][i], value, key)
                assert batch[-1]["_" + key].all()


def test_the_delays_follow_from_the_seed_and_the_episode() -> None:
    def arrivals(env: Any, seed: int | None, action: int) -> list[int]:
        env.reset(seed=seed)
        return [env.step(action)[-1]["arrives"] for _ in range(40)]

    env = DelayedRewards(bare(), delay=GEOMETRIC, missing=0.3)
    first, second = arrivals(env, 1, 0), arrivals(env, None, 0)
    assert first != second
    assert (arrivals(env, 1, 7), arrivals(env, None, 3)) == (first, second)
    assert arrivals(env, 2, 0) != first
    lost = arrivals(DelayedRewards(bare(), missing=0.3), 1, 0)  # the same rewards are lost
    assert [t == 0 for t in lost[:10]] == [t == 0 for t in first[:10]]
    assert all(t == 0 for t, alone in zip(first, lost, strict=True) if alone == 0)


def test_a_seed_that_a_wrapper_inside_names() -> None:
    law: dict[str, Any] = {"delay": ["geometric", 3.0], "missing": 0.2}
    within = DelayedRewards(SeededEpisodes(bare(), [7, 8]), **law)
    around = SeededEpisodes(DelayedRewards(bare(), **law), [7, 8])
    actions = actions_of(within, 40)
    for seed in (7, 8, 7):
        named = played(DelayedRewards(bare(), **law), actions, seed=seed)
        np.testing.assert_equal(played(within, actions), named)
        np.testing.assert_equal(played(around, actions), named)


def test_the_observation_shows_the_tasks_own_rewards() -> None:
    """A policy under `RegretReward` is told no more than before, though its rewards come late."""
    plain, paid = DelayedRewards(bare(), delay=2), DelayedRewards(RegretReward(bare()), delay=2)
    actions = actions_of(plain, 40)
    one, other = (played(env, actions, seed=1) for env in (plain, paid))
    np.testing.assert_equal([step[0] for step in other], [step[0] for step in one])
    regrets = [step[-1]["regret"] for step in one]
    np.testing.assert_allclose([step[1] for step in other[3:]], np.negative(regrets[1:-2]))
    many = VectorDelayedRewards(VectorRegretReward(vector(batch=1)), delay=2)
    shown, _ = many.reset(seed=1)
    for step, action in zip(one, [*actions, None], strict=True):
        np.testing.assert_equal(shown[0], step[0])
        if action is not None:
            shown = many.step(np.array([action]))[0]


def test_a_history_shows_what_has_arrived() -> None:
    late = DelayedRewards(bare(), delay=2, missing=0.25)
    env = HistoryObservation(DelayedRewards(bare(), delay=2, missing=0.25), 40)
    actions = actions_of(late, 40)
    inside, rows = played(late, actions, seed=4), played(env, actions, seed=4)
    expected = [one[0][1:] for one in inside[1:]]
    for t in range(1, 41):
        shown = rows[t][0][1:].reshape(40, 3)
        np.testing.assert_array_equal(shown[:t], expected[:t][::-1])
        assert not shown[t:].any()
    assert 0 < sum(row[0] for row in expected) < 38


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_gymnasium_checks_it() -> None:
    env = DelayedRewards(bare(), delay=["geometric", 2.0], missing=0.1)
    assert env.spec is not None
    assert '"missing": 0.1' in env.spec.to_json()
    again = gymnasium.make(env.spec)
    actions = actions_of(env, 40)
    np.testing.assert_equal(played(again, actions, seed=1), played(env, actions, seed=1))
    check_env(env, skip_render_check=True)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"delay": -1}, r"'delay' parameter of DelayedRewards must be an int of|an int in \[0"),
        ({"delay": 1.5}, r"'delay' .* an int in \[0, 1000000\]"),
        ({"delay": True}, r"'delay' .* an int in \[0, 1000000\]"),
        ({"delay": ["poisson", 2.0]}, "'delay' .* \\[\"geometric\", mean\\]"),
        ({"delay": ["geometric"]}, "'delay' .* \\[\"geometric\", mean\\]"),
        ({"delay": ["geometric", 0.0]}, r"'delay' .* float in \(0, 1e\+06\]"),
        ({"missing": 1.1}, r"'missing' .* float in \[0, 1\]"),
        ({"missing": None}, r"'missing' .* float in \[0, 1\]"),
    ],
)
def test_refused(parameters: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        DelayedRewards(bare(), **parameters)
    with pytest.raises(ValueError, match=match.replace("DelayedRewards", "VectorDelayedRewards")):
        VectorDelayedRewards(vector(), **parameters)


def test_environments_that_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'env' .* an environment of wgp_gym"):
        DelayedRewards(gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match=r"'env' .* bare environment"):
        DelayedRewards(HistoryObservation(bare(), 3))
    with pytest.raises(ValueError, match=r"'delay' .* 0 where arms are drawn anew"):
        DelayedRewards(bare(CONTEXTUAL, num_arms=3), delay=1)
    with pytest.raises(ValueError, match=r"'env' .* another autoreset_mode"):
        VectorDelayedRewards(vector(autoreset_mode="SameStep"))
