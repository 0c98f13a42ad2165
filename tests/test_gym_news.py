"""Headlines that come and go: arrivals, lifetimes, click rates, and what a mask says."""

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray
from scipy import stats

from wgp_gym.envs import BanditEnv, BanditVectorEnv, NewsTask
from wgp_gym.envs.episode import Episode

Make = Callable[..., BanditEnv]
Floats = NDArray[np.float64]

NAME = "WGPBandit-News-v0"
ALPHA = 1e-3  # of each statistical test here, with fixed seeds


def episode(seed: int = 0, **parameters: Any) -> Episode:
    return NewsTask(**parameters).draw(np.random.default_rng(seed))


def available(drawn: Episode) -> NDArray[np.bool_]:
    assert drawn.available is not None
    return drawn.available


def lives(drawn: Episode) -> list[tuple[int, int, Floats]]:
    """Return the first step of every article, the one after its last, and its click rates.

    A rate that goes up, or from 0, is a new article's.
    """
    found = []
    for rates in drawn.values.T:
        before = np.append(0.0, rates[:-1])
        starts = np.flatnonzero(rates > before)
        ends = np.append(starts, len(rates))[1:]
        for start, end in zip(starts, ends, strict=True):
            stop = start + np.count_nonzero(rates[start:end])
            found.append((int(start), int(stop), rates[start:stop]))
    return found


def test_click_rates_halve_and_empty_slots_pay_nothing() -> None:
    drawn = episode(half_life=50.0)
    assert ((drawn.values > 0) == available(drawn)).all()
    assert drawn.values.max() <= 1
    falls = np.concatenate([rates[1:] / rates[:-1] for _, _, rates in lives(drawn)])
    np.testing.assert_allclose(falls, 0.5 ** (1 / 50), rtol=1e-12)


def test_norms_are_those_of_the_click_rates() -> None:
    drawn = episode()
    assert drawn.norm_bound == pytest.approx(np.linalg.norm(drawn.values, axis=1).max())
    moves = np.linalg.norm(np.diff(drawn.values, axis=0), axis=1)
    assert drawn.variation_budget == pytest.approx(moves.sum())


@pytest.mark.slow
def test_lifetimes_are_geometric() -> None:
    """Where few slots are taken: articles that came after the start and left before the end."""
    drawn = episode(1, num_arms=400, arrival_rate=0.5, lifetime=20.0, horizon=20_000)
    lengths = np.array([b - a for a, b, _ in lives(drawn) if 0 < a < 19_000])
    assert lengths.mean() == pytest.approx(20, abs=4 * 20 / math.sqrt(len(lengths)))
    cuts = stats.geom(1 / 20).ppf(np.linspace(0, 1, 11))[1:-1]
    counts = np.bincount(np.searchsorted(cuts, lengths), minlength=10)
    ends = np.concatenate([[0.0], stats.geom(1 / 20).cdf(cuts), [1.0]])
    assert stats.chisquare(counts, np.diff(ends) * len(lengths)).pvalue > ALPHA


@pytest.mark.slow
def test_arrivals_are_a_poisson_process() -> None:
    drawn = episode(2, num_arms=400, arrival_rate=0.7, lifetime=20.0, horizon=20_000)
    starts = np.array([a for a, _, _ in lives(drawn) if a > 0])
    counts = np.bincount(np.bincount(starts, minlength=20_000)[1:], minlength=5)
    expected = 19_999 * stats.poisson(0.7).pmf(np.arange(4))
    found = np.append(counts[:4], counts[4:].sum())
    rest = np.append(expected, 19_999 - expected.sum())
    assert stats.chisquare(found, rest).pvalue > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("step", [0, 149])
def test_episodes_begin_in_the_long_runs_state(step: int) -> None:
    """The number of articles is Poisson with mean 0.2 x 30 = 6, at the start and later."""
    numbers = [
        available(episode(seed, arrival_rate=0.2, lifetime=30.0, horizon=150))[step].sum()
        for seed in range(1000)
    ]
    inner = stats.poisson(6).pmf(np.arange(2, 11))
    expected = 1000 * np.concatenate([[stats.poisson(6).cdf(1)], inner, [stats.poisson(6).sf(10)]])
    counts = np.bincount(np.clip(numbers, 1, 11), minlength=12)[1:]
    assert stats.chisquare(counts, expected).pvalue > ALPHA


@pytest.mark.slow
def test_full_pages_lose_articles_as_erlang_has_it() -> None:
    """The share of steps with all five slots taken, at 4 erlangs: 0.199, by Erlang's formula.

    It holds for any law of lifetimes in continuous time; of 100 steps, discrete ones are as good.
    """
    drawn = episode(3, num_arms=5, arrival_rate=0.04, lifetime=100.0, horizon=400_000)
    powers = [4.0**k / math.factorial(k) for k in range(6)]
    share = available(drawn).all(axis=1).mean()
    assert share == pytest.approx(powers[5] / sum(powers), abs=0.015)


@pytest.mark.slow
def test_first_click_rates_are_beta() -> None:
    drawn = episode(4, num_arms=400, arrival_rate=0.5, lifetime=20.0, horizon=5000)
    first = [rates[0] for start, _, rates in lives(drawn) if start > 0]
    assert stats.kstest(first, stats.beta(1, 3).cdf).pvalue > ALPHA
    other = episode(4, num_arms=400, arrival_rate=0.5, lifetime=20.0, horizon=5000, click_rate=0.1)
    first = [rates[0] for start, _, rates in lives(other) if start > 0]
    assert stats.kstest(first, stats.beta(0.4, 3.6).cdf).pvalue > ALPHA


@pytest.mark.slow
def test_the_first_articles_are_of_any_age() -> None:
    """E 2^{-age / h} of a geometric age from 0 on is p / (1 - (1 - p) 2^{-1 / h})."""
    rates = np.concatenate(
        [
            drawn.values[0][available(drawn)[0]]
            for drawn in (episode(seed, horizon=1, num_arms=200) for seed in range(300))
        ]
    )
    p, fall = 1 / 200, 0.5 ** (1 / 100)
    expected = 0.25 * p / (1 - (1 - p) * fall)
    assert rates.mean() == pytest.approx(expected, abs=4 * rates.std() / math.sqrt(len(rates)))


def test_slots_are_taken_uniformly() -> None:
    drawn = episode(5, num_arms=8, arrival_rate=0.1, lifetime=5.0, horizon=50_000)
    per_slot = [np.count_nonzero(np.diff(rates) > 0) for rates in drawn.values.T]
    assert sum(per_slot) > 4000
    assert stats.chisquare(per_slot).pvalue > ALPHA


def test_a_page_is_never_empty() -> None:
    drawn = episode(6, num_arms=3, arrival_rate=0.01, lifetime=5.0, horizon=5000)
    number = available(drawn).sum(axis=1)
    assert number.min() == 1
    alone = (number == 1).mean()
    assert alone > 0.9  # 0.05 erlangs


def test_an_empty_slot_never_pays(make_env: Make) -> None:
    env = make_env(NAME, horizon=400)
    env.reset(seed=0)
    paid = []
    for _ in range(400):
        empty = np.flatnonzero(~env.available())
        arm = int(empty[0]) if len(empty) else 0
        _, reward, _, _, info = env.step(arm)
        if len(empty):
            paid.append(reward)
            assert info["expected_reward"] == 0.0
            assert info["regret"] == info["optimal_reward"] > 0
    assert len(paid) > 200
    assert not any(paid)


def test_the_mask_is_that_of_the_next_action(make_env: Make) -> None:
    env = make_env(NAME, horizon=50, arrival_rate=0.5, lifetime=20.0)
    _, info = env.reset(seed=3)
    (drawn,) = env.dynamics.episodes
    space = env.action_space
    assert isinstance(space, spaces.Discrete)
    for t in range(50):
        mask = info["action_mask"]
        assert mask.dtype == np.int8
        np.testing.assert_array_equal(mask, available(drawn)[t])
        np.testing.assert_array_equal(env.available(), available(drawn)[t])
        np.testing.assert_array_equal(env.action_masks(), available(drawn)[t])
        assert ((env.expected_rewards() > 0) == mask).all()
        action = int(space.sample(mask=mask))
        assert mask[action]
        mask[:] = 7  # nobody else's
        env.available()[:] = False
        info = env.step(action)[4]
    np.testing.assert_array_equal(info["action_mask"], available(drawn)[-1])  # after the end


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_the_masks_of_a_batch(mode: str) -> None:
    env = gymnasium.make_vec(
        NAME, 3, vectorization_mode="vector_entry_point", horizon=4, autoreset_mode=mode
    )
    assert isinstance(env, BanditVectorEnv)
    _, info = env.reset(seed=5)
    for step in range(11):
        assert (info["action_mask"].dtype, info["action_mask"].shape) == (np.int8, (3, 30))
        assert info["_action_mask"].all()
        np.testing.assert_array_equal(info["action_mask"], env.available())
        np.testing.assert_array_equal(info["action_mask"], env.expected_rewards() > 0)
        info = env.step(env.optimal_action())[4]
        played = info.get("final_info", info)
        assert not played["regret"].any(), step


def test_other_tasks_have_all_arms_and_no_mask(make_env: Make) -> None:
    for parameters in ({}, {"continuous": True}):
        env = make_env("WGPBandit-Abrupt-v0", **parameters)
        _, info = env.reset(seed=0)
        assert env.available().shape == (100,)
        assert env.available().all()
        assert "action_mask" not in info


def test_bounds_rescale_all_click_rates(make_env: Make) -> None:
    plain = episode(7)
    for name, value in (("norm_bound", 0.4), ("variation_budget", 9.0)):
        drawn = episode(7, **{name: value})
        factor = value / getattr(plain, name)
        np.testing.assert_allclose(drawn.values, factor * plain.values, rtol=1e-12)
        assert getattr(drawn, name) == pytest.approx(value, rel=1e-9)
        with pytest.raises(ValueError, match=rf"'{name}' .* every click rate is in \[0, 1\]"):
            episode(7, **{name: 1e4})
    with pytest.raises(ValueError, match=r"'variation_budget' .* within norm_bound = 0\.1"):
        episode(7, norm_bound=0.1, variation_budget=50.0)
    with pytest.raises(ValueError, match=r"'variation_budget' .* above 0 for functions that are"):
        episode(7, variation_budget=0)


@pytest.mark.parametrize(
    "parameters",
    [
        {"num_arms": 1000, "arrival_rate": 1000.0, "lifetime": 1.0, "horizon": 40_000},
        {"num_arms": 2, "arrival_rate": 1000.0, "horizon": 10**6},
        {"arrival_rate": 1.0, "lifetime": 10.0, "horizon": 10**6},
    ],
    ids=str,
)
def test_more_articles_than_can_be_drawn(make_env: Make, parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"'arrival_rate' .* such that articles and the steps"):
        make_env(NAME, **parameters)
    make_env(NAME, **parameters | {"arrival_rate": 1e-3})


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("num_arms", 1, r"an int in \[2, 1000\]"),
        ("arrival_rate", 0.0, r"a float in \[1e-06, 1000\]"),
        ("lifetime", 0.5, r"a float in \[1, 1e\+06\]"),
        ("click_rate", 1.0, r"a float in \[0.01, 0.99\]"),
        ("half_life", 0.0, r"a float in \[1, 1e\+09\]"),
        ("horizon", 10**8, "such that"),
    ],
)
def test_refused(make_env: Make, name: str, value: Any, rule: str) -> None:
    with pytest.raises(ValueError, match=f"The '{name}' parameter of NewsTask must be {rule}"):
        make_env(NAME, **{name: value})


@pytest.mark.parametrize(
    "parameters",
    [
        {"arrival_rate": 1000.0, "lifetime": 1e6},
        {"arrival_rate": 1e-6, "lifetime": 1.0},
        {"num_arms": 2, "click_rate": 0.01, "half_life": 1.0},
        {"num_arms": 1000, "click_rate": 0.99, "half_life": 1e9},
    ],
    ids=str,
)
def test_the_ends_of_ranges(parameters: dict[str, Any]) -> None:
    drawn = episode(8, horizon=3000, **parameters)
    assert available(drawn).any(axis=1).all()
    there = np.take_along_axis(available(drawn), drawn.optimal_action[:, None], 1)
    assert there.all()  # also where click rates have gone to 0
