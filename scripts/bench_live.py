"""The trial of a live system: forty prices for a year, beside other packages; late rewards.

Usage: python scripts/bench_live.py [--seeds N] [--first S] [--jobs J] [--only NAME ...]
    [--days NAME ...]

40 prices, one decision a day for 365 days. Revenue is 40 (thousand euros, say) on average
over prices and days, its noise has standard deviation 6, and the best price moves with the season.
Printed is the share of the best revenue that was lost, in per cent, with its standard error, and
milliseconds a day where rewards come at once. Days: rewards come at once; 3 or 14 days late; 30 %
never; a fifth of the prices is out of stock; on a fifth of the days somebody else chooses, half the
time a price near the last one, and the player is told (these days do not count). Players that are
slow play fewer seeds, which their row says.

Players whose package is not installed are named and skipped.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import time
import warnings
from abc import ABC, abstractmethod
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import wgp_agents
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask

PRICES = np.arange(10.0, 50.0)
DAYS, LEVEL, NOISE = 365, 40.0, 6.0


class Scenario(NamedTuple):
    """What happens on the way: days that a reward takes, and shares of days or prices."""

    delay: int = 0
    lost: float = 0.0
    out: float = 0.0
    human: float = 0.0


SCENARIOS = {
    "at once": Scenario(),
    "3 days late": Scenario(delay=3),
    "14 days late": Scenario(delay=14),
    "30 % lost": Scenario(lost=0.3),
    "a fifth out of stock": Scenario(out=0.2),
    "a fifth by humans": Scenario(human=0.2),
}


def revenue(seed: int) -> Array:
    """Return the expected revenue of each day and price, `(T, n)`, 40 on average.

    A quarter of the customers buys at any price; the others by a logistic curve around what they
    are willing to pay, which moves by 20 to 40 % over the year. Some prices are liked better than
    their neighbours.
    """
    rng, year = np.random.default_rng([seed, 21]), np.arange(DAYS) / DAYS
    swing, phase = rng.uniform(0.2, 0.4), rng.uniform(0.0, 1.0, 3)
    waves = np.sin(2 * np.pi * (year + phase[0])) + 0.3 * np.sin(4 * np.pi * (year + phase[1]))
    willing = rng.uniform(26.0, 36.0) * (1.0 + swing * waves)[:, None]
    traffic = 1.0 + rng.uniform(0.0, 0.1) * np.sin(2 * np.pi * (year + phase[2]))[:, None]
    demand = 0.25 + 0.75 / (1.0 + np.exp((PRICES - willing) / (0.12 * willing)))
    x = np.linspace(0.0, 1.0, len(PRICES))
    smooth = np.exp((x[:, None] - x) ** 2 / (-2 * 0.08**2)) + 1e-9 * np.eye(len(x))
    liked = np.exp(0.05 * np.linalg.cholesky(smooth) @ rng.normal(size=len(x)))
    earned = PRICES * demand * traffic * liked
    return np.asarray(earned * (LEVEL / earned.mean()))


# Players


class Player(ABC):
    """Who sets prices, and learns from what they earn, whenever that is known.

    Args:
        seed: Of its own draws.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 5])
        self.asked: dict[int, int] = {}
        self.days: list[int] = []
        self.arms: list[int] = []
        self.rewards: list[float] = []

    @abstractmethod
    def _choose(self, allowed: Mask) -> int:
        """Return the index of a price that may be asked today."""

    def _learn(self, arm: int, reward: float) -> None:
        """Learn what a price earned, if it keeps more than the lists."""
        del arm, reward

    def ask(self, allowed: Mask, day: int) -> int:
        """Return the index of today's price."""
        self.today = day
        self.asked[day] = self._choose(allowed)
        return self.asked[day]

    def tell(self, day: int, reward: float | None) -> None:
        """Learn what a day earned; None: nobody will ever know."""
        arm = self.asked.pop(day)
        if reward is not None:
            self.record(day, arm, reward)

    def record(self, day: int, arm: int, reward: float) -> None:
        """Learn what a price earned, whoever asked it."""
        self.days.append(day)
        self.arms.append(arm)
        self.rewards.append(reward)
        self._learn(arm, reward)


class Live(Player):
    """`LiveBandit` with its defaults."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        live = importlib.import_module("wgp_agents.live")
        self.bandit = live.LiveBandit(live.Arms(PRICES.tolist()), seed=seed)
        self.ids: dict[int, str] = {}

    def _choose(self, allowed: Mask) -> int:
        decision = self.bandit.ask(allowed=None if allowed.all() else PRICES[allowed].tolist())
        self.ids[self.today] = decision.id
        return int(decision.index)

    def tell(self, day: int, reward: float | None) -> None:
        """Learn what a day earned."""
        self.bandit.tell(self.ids.pop(day), reward)

    def _learn(self, arm: int, reward: float) -> None:
        self.bandit.record(PRICES[arm], reward)


class ByHand(Player):
    """The agent without the live layer: it learns rewards as they come."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        places = np.linspace(0.0, 1.0, len(PRICES))[:, None]
        problem = BanditProblem(SquaredExponential(0.2), places, DAYS, NOISE)
        self.agent = wgp_agents.make("adaptive-wgp-ucb", problem)
        self.agent.reset(seed)

    def _choose(self, allowed: Mask) -> int:
        return int(self.agent.act(allowed=allowed))

    def _learn(self, arm: int, reward: float) -> None:
        self.agent.observe(arm, reward)


class Random(Player):
    """Any price."""

    def _choose(self, allowed: Mask) -> int:
        return int(self.rng.choice(np.flatnonzero(allowed)))


class Sklearn(Player):
    """A Gaussian process by hand: mean + 2 std, time as an input or the last `window` rewards.

    It is fitted anew each day, its parameters once in ten rewards; the first five prices are drawn.
    """

    def __init__(self, seed: int, window: int | None = None) -> None:
        super().__init__(seed)
        self.window, self.fitted = window, 0
        gp, k = (importlib.import_module(f"sklearn.gaussian_process{m}") for m in ("", ".kernels"))
        scales, bounds = (0.2, 0.3), ((0.05, 2.0), (0.05, 5.0))
        used = 2 if window is None else 1
        shape = k.RBF(scales[:used], bounds[:used])
        self.kernel = k.ConstantKernel(1.0, (0.1, 10.0)) * shape + k.WhiteKernel(0.3, (0.01, 2.0))
        self.make = gp.GaussianProcessRegressor

    def _places(self, arms: Array, days: Array) -> Array:
        x = arms / (len(PRICES) - 1.0)
        return np.column_stack([x, days / 100.0] if self.window is None else [x])

    def _choose(self, allowed: Mask) -> int:
        if len(self.rewards) < 5:
            return int(self.rng.choice(np.flatnonzero(allowed)))
        since = -self.window if self.window else 0
        y = np.array(self.rewards[since:])
        again = len(self.rewards) >= self.fitted + 10 or self.fitted == 0
        model = self.make(self.kernel, optimizer="fmin_l_bfgs_b" if again else None)
        x = self._places(np.array(self.arms[since:], float), np.array(self.days[since:], float))
        model.fit(x, (y - y.mean()) / (y.std() or 1.0))
        if again:
            self.kernel, self.fitted = model.kernel_, len(self.rewards)
        n = len(PRICES)
        mean, std = model.predict(
            self._places(np.arange(n, dtype=float), np.full(n, float(self.today))), return_std=True
        )
        # The noise is no part of what may be learned.
        noise = model.kernel_.k2.noise_level
        bound = mean + 2.0 * np.sqrt(np.maximum(std**2 - noise, 0.0))
        return int(np.where(allowed, bound, -np.inf).argmax())


class BayesOpt(Player):
    """bayesian-optimization: its upper bound, noise told as alpha, repeated points allowed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        package = importlib.import_module("bayes_opt")
        bound = package.acquisition.UpperConfidenceBound(kappa=2.576, random_state=seed)
        self.optimizer = package.BayesianOptimization(
            None, {"price": (PRICES[0], PRICES[-1])}, bound, random_state=seed, verbose=0,
            allow_duplicate_points=True,
        )  # fmt: skip
        self.optimizer.set_gp_params(alpha=0.3)  # rewards are standardised inside

    def _choose(self, allowed: Mask) -> int:
        if len(self.rewards) < 5:
            return int(self.rng.choice(np.flatnonzero(allowed)))
        wish = self.optimizer.suggest()["price"]
        there = np.flatnonzero(allowed)
        return int(there[np.abs(PRICES[there] - wish).argmin()])

    def _learn(self, arm: int, reward: float) -> None:
        self.optimizer.register({"price": PRICES[arm]}, reward)


class River(Player):
    """river.bandit, on fading means: UCB1 on scaled rewards, or epsilon-greedy."""

    def __init__(self, seed: int, kind: str) -> None:
        super().__init__(seed)
        bandit, stats, scale = (
            importlib.import_module(f"river.{m}") for m in ("bandit", "stats", "preprocessing")
        )
        if kind == "ucb":
            scaler = scale.TargetStandardScaler(None)
            self.policy = bandit.UCB(1, stats.EWMean(0.3), scaler, seed=seed)
        else:
            self.policy = bandit.EpsilonGreedy(0.1, 0.0, stats.EWMean(0.3), 1, seed=seed)

    def _choose(self, allowed: Mask) -> int:
        return int(self.policy.pull(np.flatnonzero(allowed).tolist()))

    def _learn(self, arm: int, reward: float) -> None:
        self.policy.update(arm, reward)


class MABWiser(Player):
    """MABWiser, each price tried once before: UCB1 in the noise's unit, softmax, or greedy."""

    def __init__(self, seed: int, kind: str) -> None:
        super().__init__(seed)
        mab = importlib.import_module("mabwiser.mab")
        learning = {
            "ucb1": mab.LearningPolicy.UCB1(NOISE),
            "softmax": mab.LearningPolicy.Softmax(3.0),
            "greedy": mab.LearningPolicy.EpsilonGreedy(0.1),
        }[kind]
        self.mab = mab.MAB(list(range(len(PRICES))), learning, seed=seed)

    def _choose(self, allowed: Mask) -> int:
        there = np.flatnonzero(allowed).tolist()
        untried = [a for a in there if a not in {*self.arms, *self.asked.values()}]
        if untried or not self.arms:
            return int(self.rng.choice(untried or there))
        if allowed.all():
            return int(self.mab.predict())
        return int(max(there, key=self.mab.predict_expectations().__getitem__))

    def _learn(self, arm: int, reward: float) -> None:
        self.mab.partial_fit([arm], [reward])


class Row(NamedTuple):
    """A player of the table, and the package that it needs.

    One that is slow plays some of the seeds, and some of the scenarios: the first ones.
    """

    kind: type[Player]
    parameters: dict[str, Any]
    package: str
    seeds: int = 1_000
    days: int = len(SCENARIOS)


PLAYERS: dict[str, Row] = {
    "LiveBandit": Row(Live, {}, "wgp_agents.live"),
    "the agent, told as rewards come": Row(ByHand, {}, "wgp_agents"),
    "scikit-learn, time an input": Row(Sklearn, {}, "sklearn", 20),
    "scikit-learn, last 60 rewards": Row(Sklearn, {"window": 60}, "sklearn"),
    "bayesian-optimization": Row(BayesOpt, {}, "bayes_opt", 5, 1),
    "river, UCB": Row(River, {"kind": "ucb"}, "river"),
    "river, epsilon-greedy": Row(River, {"kind": "greedy"}, "river"),
    "MABWiser, UCB1": Row(MABWiser, {"kind": "ucb1"}, "mabwiser"),
    "MABWiser, softmax": Row(MABWiser, {"kind": "softmax"}, "mabwiser"),
    "MABWiser, epsilon-greedy": Row(MABWiser, {"kind": "greedy"}, "mabwiser"),
    "random": Row(Random, {}, "numpy"),
}


def missing(package: str) -> bool:
    """Tell whether a package cannot be imported."""
    try:
        return importlib.util.find_spec(package) is None
    except ModuleNotFoundError:  # a part of one that is not there
        return True


# The shop


class Outcome(NamedTuple):
    """The share of the best revenue that was lost, in per cent, and milliseconds a day."""

    lost: float
    milliseconds: float


def play(name: str, scenario: Scenario, seed: int) -> Outcome:
    """Return what a player makes of a year."""
    earned, rng = revenue(seed), np.random.default_rng([seed, 22])
    noise = rng.normal(0.0, NOISE, DAYS)
    gone, human, near = (rng.random(DAYS) for _ in range(3))
    there = rng.random(earned.shape) >= scenario.out
    there[~there.any(axis=1), 0] = True
    strange, step = rng.integers(0, len(PRICES), DAYS), rng.integers(-3, 4, DAYS)
    player, arm, won, best = PLAYERS[name].kind(seed, **PLAYERS[name].parameters), 0, 0.0, 0.0
    waiting: list[tuple[int, float | None]] = []
    start = time.perf_counter()
    for day in range(DAYS):
        paid = earned[day] + noise[day]
        if human[day] < scenario.human:
            shifted = int(np.clip(arm + step[day], 0, len(PRICES) - 1))
            taken = shifted if near[day] < 0.5 else int(strange[day])
            player.record(day, taken, float(paid[taken]))
        else:
            arm = player.ask(there[day], day)
            won, best = won + earned[day, arm], best + earned[day, there[day]].max()
            waiting.append((day, None if gone[day] < scenario.lost else float(paid[arm])))
        while waiting and waiting[0][0] <= day - scenario.delay:
            player.tell(*waiting.pop(0))
    return Outcome(100.0 * (1.0 - won / best), 1e3 * (time.perf_counter() - start) / DAYS)


def quietly(name: str, scenario: Scenario, seed: int) -> Outcome:
    """Return `play`, without what peers print and warn of."""
    with warnings.catch_warnings(), threadpool_limits(1), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return play(name, scenario, seed)


def shop(names: list[str], scenarios: list[str], seeds: range, jobs: int) -> None:
    """Print what each player loses in each scenario."""
    print(f"| | {' | '.join(scenarios)} | ms a day |\n|---|{'---:|' * (len(scenarios) + 1)}")
    for name in names:
        if missing(PLAYERS[name].package):
            print(f"| {name}: skipped, as {PLAYERS[name].package} is not installed |")
            continue
        mine, cells, spent = seeds[: PLAYERS[name].seeds], [], []
        for scenario in scenarios[: PLAYERS[name].days]:
            tasks = (delayed(quietly)(name, SCENARIOS[scenario], seed) for seed in mine)
            lost, took = np.array(Parallel(jobs)(tasks)).T
            cells.append(shown(lost, 1))
            spent.append(took.mean())
        label = name if len(mine) == len(seeds) else f"{name} ({len(mine)} seeds)"
        cells += [""] * (len(scenarios) - len(cells))
        print(f"| {label} | {' | '.join(cells)} | {spent[0]:.2g} |", flush=True)


def shown(values: Array, digits: int) -> str:
    """Return a mean with its standard error."""
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
    return f"{values.mean():.{digits}f} ({error:.{digits}f})"


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=PLAYERS, default=[*PLAYERS], metavar="NAME")
    parser.add_argument("--days", nargs="+", choices=SCENARIOS, default=[*SCENARIOS])
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    shop(given.only, given.days, seeds, given.jobs)


if __name__ == "__main__":
    main()
