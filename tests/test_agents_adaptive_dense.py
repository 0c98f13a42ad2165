"""The bank of models of the adaptive agent, against t x t matrices and Student's densities."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import STILL, AdaptiveWGPUCB
from wgp_agents.gp.action_sets import FixedArms, Points
from wgp_agents.gp.surrogates import bank as banks
from wgp_agents.gp.surrogates.bank import OUTLIER, RATES, ModelBank
from wgp_agents.gp.surrogates.kernel_features import (
    LEVEL,
    FixedFeatures,
    kernels_of,
)
from wgp_gym.kernels import Empirical, Kernel, Matern
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

LINE = np.linspace(0.0, 1.0, 12)[:, None]
SEEN = 0.1  # in the place of CUT: so few features show it
ROUGH = Matern(0.3, 1.5)  # of full rank on these arms: features leave nothing out
DRIFTS, RATIOS, FACTORS = (0.0, 0.02, 0.3), (1e-3, 0.5), (1.0, 0.5)
AHEAD = 1.0  # nats, for eps = 0 and for the first kernel


def jumps(arm: int, t: int) -> float:
    """Return a reward: a level of 40, and a function that turns over at steps 25 and 50."""
    sign = 1.0 if t // 25 % 2 == 0 else -1.0
    return 40.0 + 7.0 * sign * math.sin(6 * LINE[arm % 12, 0] + t // 25) + math.cos(7.1 * t)


def odd(arm: int, t: int) -> float:
    """Return a reward of `jumps`: the third, and two later ones, odd; then of another level."""
    away = {2: -4e3, 38: 1e5, 44: -1e3}.get(t, 0.0)
    return jumps(arm, t) + away + 1e5 * (t >= 60)


class DenseModel:
    """One model: the Gaussian process of all plays since it began, and its scales."""

    def __init__(
        self, gram: Floats, left: Floats, eps: float, noise: float, ahead: float, judged: object
    ) -> None:
        self.gram, self.left, self.eps, self.noise, self.prior = gram, left, eps, noise, ahead
        self.judged = judged  # by which models it is judged beside
        self.arms: list[int] = []
        self.rewards: list[float] = []
        self.ratios: list[
            float
        ] = []  # nu^2 / v, from the first reward that differs, through restarts
        self.gains: list[float] = []  # log densities, from the first that is scored
        self.recent = self.lasting = 0.0
        self.behind: float | None = None  # R where it began anew, and at which gain that was
        self.since = 0
        self.signal = self.informed = self.zero = 0.0
        self.age = 0
        self.held: tuple[Floats, Floats] | None = None

    def posterior(self) -> tuple[Floats, Floats]:
        """Return mean and variance of all arms at the next step, the features' share alone."""
        if self.held is not None:
            return self.held
        t, arms = len(self.arms), self.arms
        fade = (1 - self.eps) ** (np.abs(np.subtract.outer(np.arange(t), np.arange(t))) / 2)
        M = self.gram[np.ix_(arms, arms)] * fade + np.diag(self.noise + self.left[arms])
        k = self.gram[arms] * ((1 - self.eps) ** ((t - np.arange(t)) / 2))[:, None]
        mean = k.T @ np.linalg.solve(M, np.array(self.rewards)) if t else np.zeros(len(self.gram))
        solved = np.sum(k * np.linalg.solve(M, k), axis=0) if t else 0.0
        self.held = mean, np.diag(self.gram) - solved
        return self.held

    def faded(self) -> tuple[float, float]:
        """Return half the faded sum of nu^2 / v, and half their faded number."""
        fade = RATES.scale ** np.arange(len(self.ratios))[::-1]
        return 0.5 * float(fade @ np.array(self.ratios)), 0.5 * float(fade.sum())

    def foretold(self, arm: int) -> tuple[float, float, float]:
        """Return degrees of freedom, location and scale of the reward's density."""
        b, a = self.faded()
        mean, variance = self.posterior()
        bound_variance = float(variance[arm] + self.left[arm] + self.noise)
        return 2 * a, float(mean[arm]), math.sqrt(b / a * bound_variance)

    def cut(self, arm: int, reward: float) -> float:
        """Return the reward, from the model's zero, at most `RATES.clip_at` stds from the mean."""
        _, mean, std = self.foretold(arm)
        reach = RATES.clip_at * std
        return min(max(reward - self.zero, mean - reach), mean + reach)

    def take(self, arm: int, y: float, told: bool) -> None:
        mean, variance = self.posterior()
        unknown = variance[arm] + self.left[arm]
        if told:
            ratio = (y - mean[arm]) ** 2 / (unknown + self.noise)
            share = unknown / (self.gram[arm, arm] + self.left[arm])
            keep = 1 - share + share * RATES.signal
            self.ratios.append(ratio)
            self.signal = keep * self.signal + share * ratio
            self.informed = keep * self.informed + share
        self.arms.append(arm)
        self.rewards.append(y)
        self.held = None

    def regime(self) -> float:
        """Return the log density of all rewards since it began, in the unit of all models."""
        return (self.behind or 0.0) + float(np.sum(self.gains[self.since :]))

    def strategy(self) -> float:
        """Return the log density of all rewards, the old ones faded."""
        fade = RATES.strategy ** np.arange(len(self.gains))[::-1]
        return float(fade @ np.array(self.gains))

    def begin_anew(self, median: float, regime: float) -> bool:
        """Forget; return whether rewards are counted from elsewhere now."""
        self.arms, self.rewards, self.age, self.held = [], [], 0, None
        self.behind, self.since = regime, len(self.gains)
        self.signal, self.informed = (
            RATES.carry_over * self.signal,
            RATES.carry_over * self.informed,
        )
        reach = (
            RATES.recenter_at * math.sqrt(self.signal / self.informed)
            if self.informed
            else math.inf
        )
        moves = abs(median - self.zero) > reach
        self.zero = median if moves else self.zero
        return moves


def without_odd(rewards: list[float]) -> list[float]:
    """Return the rewards, those far from the closest ten less two moved closer."""
    groups = itertools.combinations(sorted(rewards), len(rewards) - 2)
    rest = min(groups, key=lambda group: group[-1] - group[0])
    reach = rest[-1] - rest[0]
    if not reach:
        return rewards
    found = []
    for reward in rewards:
        apart = max(reward - rest[-1], rest[0] - reward)
        closer = rest[-1] + reach if reward > rest[-1] else rest[0] - reach
        found.append(closer if apart > OUTLIER * reach else reward)
    return found


def leading(factor: Floats, diagonal: Floats, noise: float) -> Floats:
    """Return the fewest first columns of a factor that leave at most SEEN min(noise, 1) out."""
    for m in range(factor.shape[1]):
        if (diagonal - np.sum(factor[:, :m] ** 2, axis=1)).max() <= SEEN * min(noise, 1.0):
            return factor[:, :m]
    return factor


class DenseBank:
    """All models of one learner: restarted, scored and chosen as `ModelBank` says.

    Scores are kept as lists of log densities; what is relative in `ModelBank` is taken from them
    when it is asked for.
    """

    def __init__(self, kernels: list[Kernel], domain: Floats, tables: list[Floats]) -> None:
        self.restarts = self.cuts = self.moves = self.mended = 0
        self.grids = []
        for (g, kernel), noise in itertools.product(enumerate(kernels), RATIOS):
            own = leading(tables[g].T, kernel.diagonal(domain), noise)
            left = np.maximum(kernel.diagonal(domain) - np.sum(own**2, axis=1), 0.0)
            level = LEVEL * kernel.diagonal(domain).mean()
            for judged, eps in itertools.product(((g, noise), "pooled"), DRIFTS):
                ahead = AHEAD * (eps == 0.0) + AHEAD * (g == 0)
                self.grids.append((own @ own.T + level, left, eps, noise, ahead, judged))
        self.begin()

    def begin(self) -> None:
        self.models = [DenseModel(*grid) for grid in self.grids]
        self.classes = list(dict.fromkeys(model.judged for model in self.models))
        self.evidence = dict.fromkeys(self.classes, 0.0)
        self.ahead: list[float] = []  # of the choice by the last steps, less that by evidence
        self.picked = 0, 0
        self.arms: list[int] = []
        self.rewards: list[float] = []
        self.chosen = 0

    def take(self, arm: int, reward: float) -> None:
        self.learn(arm, reward)
        if len(self.rewards) == RATES.warmup:
            arms, rewards = self.arms, without_odd(self.rewards)
            if rewards != self.rewards:
                self.mended += 1
                self.begin()
                for early, paid in zip(arms, rewards, strict=True):
                    self.learn(early, paid)

    def learn(self, arm: int, reward: float) -> None:
        self.arms.append(arm)
        self.rewards.append(reward)
        count = len(self.rewards)
        if count == 1:
            for model in self.models:
                model.zero = reward
        ys = [reward - model.zero for model in self.models]
        if all(model.faded()[0] > 0.0 for model in self.models):  # a scale is known
            if count > RATES.warmup:
                whole, ys = ys, [model.cut(arm, reward) for model in self.models]
                self.cuts += whole != ys
            said = stats.t.logpdf(ys, *np.array([m.foretold(arm) for m in self.models]).T)
            self.add_evidence(said)
            self.ahead.append(said[self.picked[1]] - said[self.picked[0]])
            for model, gain in zip(self.models, said - said.max(), strict=True):
                model.gains.append(gain)
                model.recent = RATES.recent * model.recent + gain
                model.lasting = RATES.lasting * model.lasting + gain
        for model, y in zip(self.models, ys, strict=True):
            model.take(arm, y, told=len(set(self.rewards)) > 1)
            model.age += 1
        self.restart_stragglers()
        by_evidence = int(np.argmax([sum(score) for score in self.scores()]))
        lately = [m.recent + RATES.lasting_weight * m.lasting + m.prior for m in self.models]
        self.picked = by_evidence, int(np.argmax(lately))
        self.chosen = self.picked[self.lead() > 0.0]

    def lead(self) -> float:
        fade = RATES.strategy ** np.arange(len(self.ahead))[::-1]
        return float(fade @ np.array(self.ahead))

    def members(self, judged: object) -> list[DenseModel]:
        return [model for model in self.models if model.judged == judged]

    def add_evidence(self, said: Floats) -> None:
        """Add the log density of each class's mixture, weighted by what was known before."""
        for judged in self.classes:
            mine = [q for q, model in enumerate(self.models) if model.judged == judged]
            scores = self.scores()
            weights = np.exp([sum(scores[q][1:]) for q in mine])
            self.evidence[judged] += math.log(weights @ np.exp(said[mine]) / weights.sum())

    def scores(self) -> list[tuple[float, float, float, float]]:
        """Return evidence, R, M, each relative to the best, and prior of all models."""
        best = max(self.evidence.values())
        regime, strategy = (
            {judged: max(score(model) for model in self.members(judged)) for judged in self.classes}
            for score in (DenseModel.regime, DenseModel.strategy)
        )
        return [
            (
                self.evidence[model.judged] - best,
                model.regime() - regime[model.judged],
                model.strategy() - strategy[model.judged],
                model.prior,
            )
            for model in self.models
        ]

    def restart_stragglers(self) -> None:
        """Restart who is far behind the best of its class; nobody waits for another."""
        best = {judged: max(m.regime() for m in self.members(judged)) for judged in self.classes}
        recent = max(model.recent for model in self.models)
        lasting = max(model.lasting for model in self.models)
        for model in self.models:
            regime = best[model.judged]
            if model.age > RATES.warmup and model.regime() < regime - RATES.margin:
                self.moves += model.begin_anew(
                    statistics.median_high(self.rewards[-RATES.warmup :]),
                    regime - RATES.restart_penalty,
                )
                model.recent, model.lasting = recent - RATES.restart_penalty, lasting
                self.restarts += 1

    @property
    def scale(self) -> float:
        model = self.models[self.chosen]
        return math.sqrt(model.signal / model.informed) if model.informed else 0.0

    def moments(self) -> tuple[Floats, Floats]:
        """Return the posterior mean and std of all arms, in the unit of rewards."""
        mean, variance = self.models[self.chosen].posterior()
        left = self.models[self.chosen].left
        return self.models[self.chosen].zero + mean, self.scale * np.sqrt(
            np.maximum(variance, 0.0) + left
        )


def compare(bank: ModelBank, points: Points, dense: list[DenseBank], t: str) -> None:
    """Compare what is chosen, and everything that it says, to 1e-7."""
    best = [learner.models[learner.chosen] for learner in dense]
    assert bank.chosen.tolist() == [learner.chosen for learner in dense], t
    assert bank.age.tolist() == [model.age for model in best], t
    assert bank.zero.tolist() == [model.zero for model in best], t
    close = np.testing.assert_allclose
    close(bank.scale, [learner.scale for learner in dense], 1e-7, 1e-12, err_msg=t)
    mean, variance, _ = bank.predict(points)
    for i, learner in enumerate(dense):
        expected, std = learner.moments()
        close(mean[i], expected, 0, 1e-7, err_msg=t)
        close(np.sqrt(variance[i]), std, 0, 1e-7, err_msg=t)
        assert bank.kept.age[i].tolist() == [model.age for model in learner.models], t
        close(bank.kept.lead[i], learner.lead(), 0, 1e-6)
        close(bank.kept.recent[i], [model.recent for model in learner.models], 0, 1e-6)
        close(bank.kept.lasting[i], [model.lasting for model in learner.models], 0, 1e-6)
        evidence, regime, strategy, _ = np.array(learner.scores()).T
        close(bank.kept.evidence[i][bank.models.evidence_class], evidence, 0, 1e-6)
        close(bank.kept.regime[i], regime, 0, 1e-6)
        close(bank.kept.strategy[i], strategy, 0, 1e-6)


KERNELS: dict[str, tuple[list[Kernel], int]] = {
    "full rank": (kernels_of(ROUGH, FACTORS), 128),
    "truncated": (kernels_of(ROUGH, FACTORS), 5),
    "one kernel": ([Empirical(0.6 * ROUGH(LINE, LINE) * (1 + LINE) * (1 + LINE.T) / 4)], 128),
}


def tables_of(features: FixedFeatures) -> list[Floats]:
    """Return the features of all arms but the constant, of each kernel."""
    return [table[1:m] for table, m in zip(features.features, features.rank, strict=True)]


@pytest.fixture(autouse=True)
def cut_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(banks, "CUT", SEEN)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("full rank", marks=pytest.mark.slow),
        pytest.param("truncated", marks=pytest.mark.slow),
        "one kernel",
    ],
)
def test_the_bank_is_that_of_dense_matrices(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels, most = KERNELS[case]
    monkeypatch.setattr("wgp_agents.gp.surrogates.kernel_features.MAX_FEATURES", most)
    features = FixedFeatures(kernels, LINE)
    tables = tables_of(features)
    assert features.rank.tolist() == [1 + min(most, 12)] * len(kernels)
    action_set = FixedArms(ROUGH, LINE, np.ones(3), max_features=1)
    bank = ModelBank(action_set, features, DRIFTS, RATIOS)
    bank.restart(np.ones(3, bool))
    assert bank.models.rank.max() == 1 + min(most, 12)
    assert (bank.models.rank.min() < features.rank.min()) == (most == 128)  # the larger noise
    dense = [DenseBank(kernels, LINE, tables) for _ in range(3)]
    rng, seen = np.random.default_rng(3), set()
    for t in range(100):  # two are at rest now and then; the second begins with a constant
        arms, active = rng.integers(12, size=3), np.array([True, t % 9 > 0, t % 7 != 4])
        plain = jumps(arms[1], t) if t > 8 else 40.0
        paid = np.array([jumps(arms[0], t), -3e-3 * plain, odd(arms[2], t)])
        bank.update(action_set.embed(arms), paid, active)
        for i in np.flatnonzero(active):
            dense[i].take(int(arms[i]), float(paid[i]))
        compare(bank, action_set.candidates, dense, str(t))
        seen.update(bank.chosen.tolist())
    assert [learner.mended for learner in dense] == [0, 0, 1]
    assert dense[2].cuts > 3
    assert dense[2].moves > 3
    assert min(learner.restarts for learner in dense) > 3
    assert len(seen) > 3


def test_the_agent_plays_the_bound_of_dense_matrices() -> None:
    # kappa = 0.9 (log(1 / eps))^{1/2}, of a function that stays 0.9 x STILL, times
    # (1 + 1 / n)^{1/2} of n plays that told of the scale
    agent = AdaptiveWGPUCB(
        BanditProblem(ROUGH, LINE, 80, 0.1),
        drifts=DRIFTS,
        noise_ratios=RATIOS,
        lengthscales=FACTORS,
    )
    agent.reset(0)
    kernels = kernels_of(ROUGH, FACTORS)
    dense = DenseBank(kernels, LINE, tables_of(FixedFeatures(kernels, LINE)))
    drifts, rules = set(), set()
    for t in range(80):
        model = dense.models[dense.chosen]
        mean, _ = dense.moments()
        std = dense.scale * np.sqrt(np.maximum(model.posterior()[1], 0.0))  # of the features alone
        kappa = 0.9 * math.sqrt(math.log(1 / model.eps)) if model.eps else 0.9 * STILL
        if t > 1:
            kappa *= math.sqrt(1 + 1 / model.informed)
        arm = agent.act()
        if t > 1:
            bound = mean + kappa * std
            assert bound[arm] == pytest.approx(bound.max(), abs=1e-6), t
        agent.observe(arm, jumps(arm, t))
        dense.take(arm, jumps(arm, t))
        compare(agent.bank, agent.action_set.candidates, [dense], str(t))
        drifts.add(model.eps)
        rules.add(model.judged == "pooled")
        tell(agent, dense)
    assert len(drifts) > 1
    assert rules == {False, True}


def tell(agent: AdaptiveWGPUCB, dense: DenseBank) -> None:
    """Compare the agent's posterior and belief with those of dense matrices."""
    model, belief = dense.models[dense.chosen], agent.belief()
    mean, std = dense.moments()
    assert agent.posterior().mean == pytest.approx(mean, rel=0, abs=1e-7)
    assert agent.posterior().std == pytest.approx(std, rel=0, abs=1e-7)
    memory = min(2 / model.eps, model.age) if model.eps else model.age
    assert (belief.drift, belief.memory, belief.noise_ratio) == (model.eps, memory, model.noise)
    assert belief.lengthscale == FACTORS[dense.chosen // 12]
    assert belief.scale == pytest.approx(dense.scale, rel=1e-7)
