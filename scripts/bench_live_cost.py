"""What a decision of a live bandit costs: with and without storage, opened anew, many at once.

Usage: python scripts/bench_live_cost.py [--events 100000] [--bandits 10000]

One thread, on a machine that does nothing else. Milliseconds: median, and 99th percentile.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wgp_agents.live import Arms, Event, LiveBandit, LiveBandits, open_store
from wgp_agents.live.decision import Decision

STEPS, WARM = 1_500, 50


def paid(decision: Decision, rng: np.random.Generator) -> float:
    """Return a reward of a price."""
    assert isinstance(decision.arm, float)
    return 40.0 - 0.02 * (decision.arm - 30.0) ** 2 + 6.0 * float(rng.normal())


def prices(n: int) -> Arms:
    """Return n prices."""
    return Arms(np.round(np.linspace(10.0, 49.0, n), 3).tolist())


def told(times: list[float]) -> str:
    """Return median and 99th percentile in milliseconds."""
    found = 1e3 * np.array(times[WARM:])
    return f"{np.median(found):7.2f} {np.quantile(found, 0.99):7.2f}"


def decisions(bandit: LiveBandit, delay: int = 0) -> str:
    """Ask and tell in turn, each reward `delay` decisions late."""
    rng, times, waiting = np.random.default_rng(0), [], list[tuple[str, float]]()
    for _ in range(STEPS):
        start = time.perf_counter()
        decision = bandit.ask()
        asked = time.perf_counter() - start
        waiting.append((decision.id, paid(decision, rng)))
        start = time.perf_counter()
        if len(waiting) > delay:
            bandit.tell(*waiting.pop(0))
        times.append(asked + time.perf_counter() - start)
    return told(times)


def fill(path: Path, events: int) -> None:
    """Write the log of a bandit with so many events, as if it had been used."""
    bandit = LiveBandit(prices(40), storage=path, name="old")
    bandit.close()
    store, rng = open_store(path, "old"), np.random.default_rng(0)
    arms = prices(40).arms
    for start in range(0, events // 2, 5_000):
        rows = []
        for k in range(start, min(start + 5_000, events // 2)):
            i = int(rng.integers(40))
            arm = arms[i]
            assert isinstance(arm, float)
            rows.append(Event("asked", str(k + 1), {"arm": arm, "index": i}))
            reward = 40.0 - 0.02 * (arm - 30.0) ** 2 + 6.0 * float(rng.normal())
            rows.append(Event("told", str(k + 1), {"reward": reward, "arm": arm}))
        with store.session() as session:
            session.extend(rows)
    store.close()


def seconds(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Measure all, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--bandits", type=int, default=10_000)
    options = parser.parse_args()
    print("ask and tell                                  median     p99")
    for agent, horizon in (("adaptive-wgp-ucb", None), ("wgp-ucb", 365)):
        for n in (40, 100):
            bandit = LiveBandit(prices(n), agent=agent, horizon=horizon)
            print(f"{agent}, {n} arms, memory".ljust(44), decisions(bandit))
    for delay in (3, 14):
        bandit = LiveBandit(prices(40))
        print(
            f"rewards {delay} decisions late, 40 arms, memory".ljust(44), decisions(bandit, delay)
        )
    with tempfile.TemporaryDirectory() as folder:
        bandit = LiveBandit(prices(100), storage=Path(folder) / "new.db")
        print("adaptive-wgp-ucb, 100 arms, SQLite".ljust(44), decisions(bandit))
        path = Path(folder) / "old.db"
        fill(path, options.events)
        first = seconds(lambda: LiveBandit.open(path, "old"))
        old = LiveBandit.open(path, "old")
        for _ in range(1_000):
            old.tell(old.ask(), 1.0)
        again = seconds(lambda: LiveBandit.open(path, "old"))
        print(
            f"a log of {options.events:,} events: rebuilt in {first:.1f} s, opened in {again:.2f} s"
        )
        print(f"its report: {seconds(old.report):.1f} s")
    names = [f"shop {i}" for i in range(options.bandits)]
    fleet, rng = (
        LiveBandits(prices(40), names, agent="wgp-ucb", horizon=365),
        np.random.default_rng(0),
    )
    times = []
    for _ in range(8):
        start = time.perf_counter()
        found = fleet.ask()
        rewards = {decision.id: paid(decision, rng) for decision in found.values()}
        fleet.tell(rewards)
        times.append(time.perf_counter() - start)
    each = 1e3 * np.median(times[2:]) / options.bandits
    print(f"{options.bandits:,} bandits of wgp-ucb, 40 arms, ask and tell: {each:.3f} ms each")


if __name__ == "__main__":
    main()
