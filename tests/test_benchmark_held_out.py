"""The tasks of `adaptive-held-out.toml` that are no environment's, and the table of its results."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmarks.held_out import HeavyTails, RandomTimes, StudentNoise
from scripts.bench_adaptive import ADAPTIVE, BEST_BOTH, column, own_width, ratio, verdict
from wgp_gym.envs import BanditEnv


def test_heavy_tails_are_those_of_student() -> None:
    drawn = StudentNoise(2.0).draw(np.random.default_rng(0), 20_000)
    unit = stats.t(df=3).std()
    # Under the null hypothesis p is uniform; of normal numbers it is below 1e-50.
    assert stats.kstest(drawn * unit / 2.0, stats.t(df=3).cdf).pvalue > 0.01
    env = BanditEnv(HeavyTails(horizon=50))
    assert env.problem.noise_scale == 1.0


@pytest.mark.slow
def test_changes_come_at_random_times() -> None:
    env, rate, steps = BanditEnv(RandomTimes(horizon=200, rate=0.05)), 0.05, 200
    counts, first = [], []
    for seed in range(40):
        env.reset(seed=seed)
        changed, seen = [], env.expected_rewards()
        for _ in range(steps):
            now = env.expected_rewards()
            *_, info = env.step(0)
            assert info["changed"] == (not np.array_equal(now, seen))
            changed.append(info["changed"])
            seen = now
        counts.append(sum(changed))
        first.append(int(np.argmax(changed)))
    low, high = stats.binom.interval(0.999, 40 * (steps - 1), rate)
    assert low <= sum(counts) <= high
    assert len(set(first)) > 10  # every episode has times of its own


def test_a_verdict_names_the_ratio_and_who_is_better() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(90.0, 110.0, size=100)
    base[0] = 500.0
    regrets = {
        ADAPTIVE: base,
        "better": base - 20 + rng.normal(size=100),
        "as good": base + rng.normal(size=100),
        "worse": base + 20 + rng.normal(size=100),
        BEST_BOTH: np.full(100, base.mean() / 1.25),
    }
    cells = column(regrets)
    assert ratio(regrets, BEST_BOTH) == pytest.approx(1.25)
    mean, median, worst, over, better = verdict(regrets, cells, "fixed 0.9, width 3.0").split(" | ")
    assert mean.startswith(f"{base.mean():.0f} (")
    assert (median, worst) == (f"{np.median(base):.0f}", f"{500 / np.median(base):.1f}")
    assert over == "1.25 (fixed 0.9, width 3.0)"
    assert better == f"better {cells['better']}"


def test_each_task_has_the_width_of_its_own_scale() -> None:
    own = {"arms drift": 0.3, "one arm rises": 0.3, "clicks": 0.03, "linear slow": 1.0}
    own |= {"Markov drift": 1.0, "parking": 1.0, "2-D slow": 3.0, "abrupt horizon=500": 3.0}
    assert {task: own_width(task) for task in own} == {k: f"width {v}" for k, v in own.items()}
