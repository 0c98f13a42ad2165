"""The adaptive agent: its unit and zero of rewards, what it learns, its parameters."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import (
    DRIFTS,
    NOISE_RATIOS,
    STILL,
    AdaptiveWGPUCB,
    Belief,
)
from wgp_agents.gp.action_sets import ChangingArms
from wgp_agents.gp.surrogates.kernel_features import ChangingFeatures, FixedFeatures
from wgp_gym.kernels import Empirical, Linear, Matern, ModifiedMatern, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

LINE = np.linspace(0.0, 1.0, 20)[:, None]
PROBLEM = BanditProblem(SquaredExponential(0.2), LINE, 500, 0.1)
NAME = "adaptive-wgp-ucb"
CHANGE = 99  # the first step of the second function of the abrupt task, counted from 0


def task(name: str, batch: int, **parameters: Any) -> Any:
    return gymnasium.make_vec(
        f"WGPBandit-{name}-v0",
        num_envs=batch,
        vectorization_mode="vector_entry_point",
        **parameters,
    )


class Run(NamedTuple):
    """What happened: plays and regrets `(T, B)`, what was believed, and the last posterior."""

    plays: NDArray[Any]
    regret: Floats
    beliefs: list[Belief]
    mean: Floats
    std: Floats


def play(agent: Any, env: Any, unit: float = 1.0, zero: float = 0.0, seed: int = 0) -> Run:
    """Play one episode, of which the agent hears zero + unit x reward."""
    observation, _ = env.reset(seed=seed)
    agent.reset(seed + 1_000)
    plays, regret, beliefs = [], [], []
    for _ in range(agent.problem.horizon):
        plays.append(agent.act(observation))
        observation, reward, _, _, info = env.step(plays[-1])
        agent.observe(plays[-1], zero + unit * reward)
        regret.append(info["regret"])
        if hasattr(agent, "belief"):
            beliefs.append(agent.belief())
    return Run(np.array(plays), np.array(regret), beliefs, *agent.posterior())


TASKS = [("Abrupt", 150), ("Slow", 150), ("Stock", 60), ("Parking", 60), ("LinearContextual", 60)]
every_task = pytest.mark.parametrize(("name", "horizon"), TASKS)


@functools.cache
def episode(name: str, horizon: int, unit: float = 1.0, zero: float = 0.0) -> Run:
    env = task(name, 3, horizon=horizon)
    return play(wgp_agents.make(NAME, env), env, unit, zero)


@every_task
@pytest.mark.parametrize("power", [-20, 20])
def test_another_unit_of_rewards_changes_nothing(name: str, horizon: int, power: int) -> None:
    base, other = episode(name, horizon), episode(name, horizon, 2.0**power)
    assert np.array_equal(base.plays, other.plays)
    assert np.array_equal(2.0**power * base.mean, other.mean)
    assert np.array_equal(2.0**power * base.std, other.std)
    assert np.array_equal(2.0**power * base.beliefs[-1].scale, other.beliefs[-1].scale)
    assert len(np.unique(base.plays)) > 5


@every_task
@pytest.mark.parametrize("zero", [1e3, -1e6])
def test_another_zero_of_rewards_changes_nothing(name: str, horizon: int, zero: float) -> None:
    base, other = episode(name, horizon), episode(name, horizon, 1.0, zero)
    assert (base.plays == other.plays).mean() >= 0.99
    same = (base.plays == other.plays).reshape(horizon, 3, -1).all(axis=(0, 2))
    assert same.any()
    assert other.mean[same] - zero == pytest.approx(base.mean[same], abs=1e-6)
    assert other.std[same] == pytest.approx(base.std[same], rel=1e-5, abs=1e-6)


# Over nine blocks of 30 seeds the regret after the first change was 0.05 to 0.10 times that of
# igp-ucb and 0.14 to 0.29 times that of wgp-ucb (of this block: 0.06 and 0.18), and less than
# either's in at least 93 % of the runs.


@functools.cache
def abrupt(name: str) -> Run:
    env = task("Abrupt", 30)
    return play(wgp_agents.make(name, env), env)


@pytest.mark.parametrize(("rival", "most"), [("igp-ucb", 0.2), ("wgp-ucb", 0.5)])
def test_it_adapts_where_the_world_jumps(rival: str, most: float) -> None:
    own, other = (abrupt(name).regret[CHANGE:].sum(axis=0) for name in (NAME, rival))
    assert own.mean() < most * other.mean()
    assert (own < other).mean() > 0.8


def test_its_memory_shortens_at_a_change_and_grows_again() -> None:
    # over nine blocks: all above 50 before, at least 87 % shorter 13 steps after, all above 60
    # later, and medians of 99, 13 and 99 again
    memory = np.array([belief.memory for belief in abrupt(NAME).beliefs])
    before, after, later = memory[CHANGE - 1], memory[CHANGE + 13], memory[2 * CHANGE]
    assert (before > 50).mean() > 0.9
    assert (after < 0.3 * before).mean() > 0.7
    assert (later > 60).mean() > 0.7


@pytest.mark.slow
def test_in_a_world_at_rest_it_is_not_far_from_who_knows_it() -> None:
    # over nine blocks of 30 seeds 13 to 15, and 0.37 to 2.14 times igp-ucb's, which now and then
    # stays at a wrong arm; of this block 14 and 0.37
    env = task("Stationary", 30, horizon=250)
    own, other = (
        play(agent, env).regret.sum(axis=0).mean()
        for agent in (
            wgp_agents.make(NAME, env),
            wgp_agents.make("igp-ucb", env, confidence_width=3.0),
        )
    )
    assert own < min(2 * other, 20.0)


def test_defaults() -> None:
    models = AdaptiveWGPUCB(PROBLEM).bank.models
    assert models.drift.tolist() == 2 * list(DRIFTS)  # under each rule of restarts
    assert models.noise.tolist() == 2 * list(NOISE_RATIOS)
    assert models.table.tolist() == [0] * 7 + [1] * 7
    ahead = 1.0 * (models.drift == 0) + 1.0 * (models.table == 0)[:, None]
    assert np.array_equal(models.prior, ahead.ravel())
    # Each block is an evidence class, and the pool of all is one more.
    classes = models.evidence_class.reshape(14, 2, 5)
    assert (classes[:, 0] == np.arange(14)[:, None]).all()
    assert (classes[:, 1] == 14).all()


def test_the_horizon_changes_nothing() -> None:
    plays: list[list[int]] = []
    for horizon in (365, 10**9, None):
        agent = AdaptiveWGPUCB(BanditProblem(SquaredExponential(0.2), LINE, horizon, 0.1))
        agent.reset(0)
        plays.append([])
        for t in range(60):
            plays[-1].append(int(agent.act()))
            agent.observe(plays[-1][-1], math.sin(3 * plays[-1][-1] + t // 30))
    assert plays[0] == plays[1] == plays[2]
    assert len(set(plays[0])) > 5


def features_of(agent: AdaptiveWGPUCB) -> FixedFeatures:
    assert isinstance(agent.bank.features, FixedFeatures)
    return agent.bank.features


@pytest.mark.parametrize("kernel", [SquaredExponential(0.2), Matern(0.2, 0.5), ModifiedMatern(0.2)])
def test_a_kernel_of_a_lengthscale_has_a_table_for_each_factor(kernel: Any) -> None:
    agent = AdaptiveWGPUCB(BanditProblem(kernel, LINE, 50, 0.1), lengthscales=(1.0, 0.5, 3.0))
    shown = features_of(agent)
    for g, factor in enumerate((1.0, 0.5, 3.0)):
        twin = type(kernel)(factor * 0.2, *([0.5] if isinstance(kernel, Matern) else []))
        gram = shown.features[g].T @ shown.features[g]
        assert gram == pytest.approx(0.3 + twin(LINE, LINE), abs=1e-6)
        assert not shown.features[g, shown.rank[g] :].any()


@pytest.mark.parametrize("kernel", [Linear(), Empirical(np.eye(20))])
def test_a_kernel_without_a_lengthscale_has_one_table(kernel: Any) -> None:
    agent = AdaptiveWGPUCB(BanditProblem(kernel, LINE, 500, 0.1))
    assert len(features_of(agent).rank) == len(features_of(agent).features) == 1
    assert len(agent.bank.models.prior) == 7 * 5 * 2
    agent.reset(0)
    agent.observe(3, 1.0)
    assert agent.belief().lengthscale == 1.0


UNIT = r"a list of at least one number in \[0, 1\]"
BAD_DRIFTS: tuple[Any, ...] = ((), 0.1, (-0.1,), (0.1, 1.1), [[0.1]], (math.nan,), "fit")
BAD_FACTORS: tuple[Any, ...] = ((), 1.0, (0.0,), (1.0, -1.0), (math.inf,), (math.nan,), None)
BAD_WIDTHS: tuple[Any, ...] = (-0.1, math.nan, math.inf, None, "wide", np.ones(2))
BAD_CHANCES: tuple[Any, ...] = (-0.1, 1.0, math.nan, None, True)
NUMBERS: list[tuple[str, Any, str]] = [
    *(("drifts", bad, UNIT) for bad in BAD_DRIFTS),
    *(
        ("noise_ratios", bad, r"a list of at least one number in \[1e-09, 1e\+09\]")
        for bad in BAD_FACTORS
    ),
    *(
        ("lengthscales", bad, r"a list of at least one number in \[1e-06, 1e\+06\]")
        for bad in BAD_FACTORS
    ),
    *(("width", bad, r"a float in \[0, 1e.30\]") for bad in BAD_WIDTHS),
    *(("exploration", bad, r"a float in \[0, 1\)") for bad in BAD_CHANCES),
]


def test_more_models_than_memory_holds() -> None:
    with pytest.raises(ValueError, match="drifts x noise_ratios x lengthscales is at most 2,000"):
        AdaptiveWGPUCB(PROBLEM, drifts=np.linspace(0.0, 1.0, 1000).tolist())


@pytest.mark.parametrize(("name", "bad", "rule"), NUMBERS)
def test_parameters_out_of_range_are_refused(name: str, bad: Any, rule: str) -> None:
    message = f"The '{name}' parameter of AdaptiveWGPUCB must be {rule}. Got "
    with pytest.raises(ValueError, match=message):
        AdaptiveWGPUCB(PROBLEM, **{name: bad})


def test_belief_asks_for_a_reset() -> None:
    agent = AdaptiveWGPUCB(PROBLEM)
    with pytest.raises(RuntimeError, match="reset"):
        agent.belief()


def test_the_ends_of_the_ranges_are_allowed() -> None:
    agent = AdaptiveWGPUCB(PROBLEM, drifts=(-0.0, 1e-310, 1.0), noise_ratios=(1e-6, 1e6), width=0.0)
    agent.reset(0)
    for t in range(40):
        arm = agent.act()
        agent.observe(arm, math.sin(arm + t // 20))
    assert np.isfinite(agent.posterior()).all()
    assert np.isfinite(agent.belief()).all()


def test_a_width_of_zero_plays_the_mean_and_a_wide_one_the_unknown() -> None:
    for width, best in ((0.0, "mean"), (1e12, "std")):
        agent = AdaptiveWGPUCB(PROBLEM, width=width)
        agent.reset(0)
        for t in range(30):
            arm = agent.act()
            told = agent.posterior().mean
            if best == "std":  # that of the bound
                points = agent.action_set.candidates
                told = np.sqrt(agent.bank.standardised(points).bound_variance[0])
            assert told[arm] >= told.max() - 1e-6
            agent.observe(arm, math.sin(3 * arm) + t / 30)


@pytest.mark.slow
def test_exploration_plays_all_arms_alike_at_its_rate() -> None:
    # 40,000 plays; of a right agent the share of each other arm is 0.015, with a std of 0.0006
    batch = BanditProblem(SquaredExponential(0.2), LINE, 500, np.full(400, 0.1))
    agent = AdaptiveWGPUCB(batch, exploration=0.3, width=0.0, drifts=(0.0,), noise_ratios=(0.01,))
    agent.reset(0)
    for t in range(20):
        agent.observe(np.full(400, t), np.full(400, math.sin(LINE[t, 0])))
    plays = np.array([agent.act() for _ in range(100)])
    share = np.bincount(plays.ravel(), minlength=20) / plays.size
    assert share[:-1] == pytest.approx(0.015, abs=0.003)
    assert share[-1] == pytest.approx(0.715, abs=0.012)
    assert np.bincount(plays[:, 0], minlength=20).max() < 95


def test_new_arms_are_played_by_the_bound_of_their_own_posterior() -> None:
    env = task("LinearContextual", 3, horizon=60)
    observation, _ = env.reset(seed=2)
    agent = AdaptiveWGPUCB(env)
    agent.reset(0)
    seen = set()
    for t in range(60):
        played = agent.act(observation)
        mean, std = agent.posterior()
        drift = agent.belief().drift
        with np.errstate(divide="ignore"):
            width = 0.9 * np.where(drift > 0, np.sqrt(-np.log(drift)), STILL)
        informed = agent.bank.informed  # plays that told of the scale
        width *= np.sqrt(1 + 1 / np.where(informed > 0, informed, np.inf))
        upper = mean + width[:, None] * std
        assert upper[np.arange(3), played] == pytest.approx(upper.max(axis=1), abs=1e-7), t
        seen.update(played.tolist())
        observation, reward, *_ = env.step(played)
        agent.observe(played, reward)
    assert len(seen) > 3


def test_new_arms_have_the_posterior_of_dense_matrices() -> None:
    env = task("LinearContextual", 1, horizon=40)
    observation, _ = env.reset(seed=2)
    agent = AdaptiveWGPUCB(env, drifts=(0.05,), noise_ratios=(0.01,))
    agent.reset(0)
    kernel, stand_ins = agent.problem.kernel, agent.problem.domain
    level = 0.3 * np.diag(kernel(stand_ins, stand_ins)).mean()
    places: list[Floats] = []
    rewards: list[float] = []
    for _ in range(40):
        played = agent.act(observation)
        assert agent.arms is not None
        if places:
            age, X, shown = np.arange(len(places)), np.array(places), agent.arms[0]
            M = (kernel(X, X) + level) * 0.95 ** (np.abs(age - age[:, None]) / 2)
            k = (kernel(X, shown) + level) * 0.95 ** ((len(X) - age[:, None]) / 2)
            solved = np.linalg.solve(M + 0.01 * np.eye(len(X)), k)
            mean = rewards[0] + (np.array(rewards) - rewards[0]) @ solved
            variance = np.diag(kernel(shown, shown)) + level - np.sum(k * solved, axis=0)
            told = agent.posterior()
            assert told.mean[0] == pytest.approx(mean, abs=1e-7)
            std = agent.belief().scale[0] * np.sqrt(variance)
            assert told.std[0] == pytest.approx(std, abs=1e-7)
        places.append(agent.arms[0, played[0]].copy())
        observation, reward, *_ = env.step(played)
        rewards.append(float(reward[0]))
        agent.observe(played, reward)


def test_the_level_of_new_arms_is_in_the_unit_of_their_kernel() -> None:
    arms = ChangingArms(Linear(), LINE, np.ones(2)).candidates
    seen = ChangingFeatures(Linear(), LINE).see(arms, np.zeros(2, np.int64))
    assert seen.which.tolist() == [0, 1]
    gram = seen.features[1].T @ seen.features[1]
    assert gram == pytest.approx(LINE @ LINE.T + 0.3 * (LINE**2).mean(), abs=1e-12)


@pytest.mark.parametrize(
    ("kernel", "error", "wider"),
    [(SquaredExponential(0.2), 2e-5, 5e-6), (Matern(0.2, 2.5), 0.15, 0.1)],
)
def test_128_features_are_near_the_exact_posterior(
    kernel: Any, error: float, wider: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # over three seeds each the means were off by at most 1e-5 and 0.10 standard deviations, and
    # these by -3e-6 to 1e-6 and -0.03 to 0.05; what is left out of k(x, x) is 1e-6 and 0.016
    monkeypatch.setattr("wgp_agents.gp.surrogates.bank.CUT", 0.0)
    side = np.linspace(0.0, 1.0, 30)
    domain = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    problem = BanditProblem(kernel, domain, 500, 0.1)
    agent = AdaptiveWGPUCB(problem, drifts=(0.01,), noise_ratios=(0.01,), lengthscales=(1.0,))
    agent.reset(0)
    rng = np.random.default_rng(1)
    arms = rng.integers(900, size=150)
    paid = np.sin(6 * domain[arms, 0]) + np.cos(5 * domain[arms, 1]) + 0.1 * rng.normal(size=150)
    for arm, reward in zip(arms.tolist(), paid.tolist(), strict=True):
        agent.observe(arm, reward)
    age = np.arange(150)
    gram = kernel(domain, domain) + 0.3
    M = gram[np.ix_(arms, arms)] * 0.99 ** (np.abs(age - age[:, None]) / 2) + 0.01 * np.eye(150)
    k = gram[arms] * 0.99 ** ((150 - age[:, None]) / 2)
    mean = paid[0] + k.T @ np.linalg.solve(M, paid - paid[0])
    scale = agent.belief().scale
    std = scale * np.sqrt(1.3 - np.sum(k * np.linalg.solve(M, k), axis=0))
    assert features_of(agent).rank.tolist() == [129]
    told = agent.posterior()
    assert (np.abs(told.mean - mean) < error * std).all()
    assert ((1 - 0.4 * error) * std < told.std).all()
    assert (told.std < std + wider * scale).all()
    assert (agent.bank.standardised(agent.action_set.candidates)[1] >= 0).all()
    assert (features_of(agent).residual >= 0).all()
