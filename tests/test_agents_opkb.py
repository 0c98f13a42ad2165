"""What OPKB promises beside its plays: its constants, its replays, changes found, what it takes."""

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_agents.algorithms.adaptive.opkb import CONSTANTS, OPKB, OPKBConstants
from wgp_agents.algorithms.adaptive.replays import Designs, Replays, design_factors
from wgp_agents.kernels.basis import Basis, make_basis
from wgp_gym.features import exact_features
from wgp_gym.kernels import CentredLinear, Empirical, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

DOMAIN = np.linspace(0.0, 1.0, 20)[:, None]
PROBLEM = BanditProblem(SquaredExponential(0.2), DOMAIN, 400, 0.1, norm_bound=1.0)
QUICK = OPKBConstants(0.01, 20.0, 0.4, 0.02, 0.2, 0.1, 1)


def alike(arms: int, horizon: int, **more: Any) -> BanditProblem:
    """Return a problem whose arms have nothing to do with each other."""
    domain = np.linspace(0.0, 1.0, arms)[:, None]
    return BanditProblem(Empirical(np.eye(arms)), domain, horizon, 0.1, **more)


def bump(top: float, domain: Floats = DOMAIN) -> Floats:
    found: Floats = np.exp(-(((domain[:, 0] - top) / 0.3) ** 2))
    return found


def play(agent: OPKB, steps: int, f: Floats, seed: int = 0) -> list[Any]:
    """Return the plays of steps that pay f and noise."""
    noise, plays = np.random.default_rng(seed).normal(0, 0.1, steps), []
    for t in range(steps):
        plays.append(agent.act())
        agent.observe(plays[-1], f[plays[-1]] + noise[t])
    return plays


def test_the_experiments_of_its_paper_have_blocks_of_39_steps() -> None:
    # There the kernel of 100 random arms in 10 dimensions is the identity, up to 1e-6. Then
    # pi is uniform, gamma_T = 50 log(1 + 10,000 / (100 * 100)), and E = ceil(38.4).
    agent = OPKB(alike(100, 10_000, reward_range=(-1.0, 1.0)))
    assert agent.information_gain[0] == pytest.approx(50 * np.log(2), rel=1e-9)
    assert agent.block_length.tolist() == [39]
    theory = OPKB(alike(100, 10_000, reward_range=(-1.0, 1.0)), constants="theory")
    logarithm = np.log(8 * 100 * 10_000 * np.log2(10_000) / 1e-4)
    assert theory.block_length.tolist() == [int(np.ceil(200 * np.log(2) * logarithm))]


def test_theory_plays_the_design_alone_on_short_tasks() -> None:
    agent = OPKB(alike(4, 900, norm_bound=1.0), constants="theory", regularization=1.0)
    agent.reset(0)
    assert agent.block_length[0] > 900
    counts = np.bincount(play(agent, 900, np.arange(4) / 4), minlength=4)
    assert abs(counts - 225).max() < 59  # uniform, for independent arms: 4.5 deviations of 13


def designs(basis: Basis, p: Floats) -> Designs:
    """Return the strategies p `(B, n)` with their factors."""
    factors = design_factors(basis.phi, basis.rank, basis.regularization, p)
    return Designs(p, np.zeros(len(p)), factors)


@pytest.mark.slow
def test_replays_come_with_their_probabilities() -> None:
    batch, m = 20_000, 3
    features = exact_features(Empirical(np.eye(2)), np.array([[0.0], [1.0]]))
    basis = make_basis(features, np.ones(batch), np.full(batch, 1e-12))
    half, length = np.full((batch, 2), 0.5), np.full(batch, 2)
    replays, rows = Replays(basis, designs(basis, half), length, m + 1, 1), np.arange(batch)
    for j in range(1, m + 1):
        replays.follow(rows, np.full(batch, j), half)
    replays.begin(rows, np.full(batch, m))
    rng, everyone = np.random.default_rng(0), np.ones(batch, bool)
    for clock in range(2 * 2**m):
        before = replays.arrays.live.copy()
        arms = replays.choose(rng.integers(0, 2**53, batch).astype(np.uint64))
        live = replays.arrays.live
        assert not live[:, 0].any()  # orders below the smallest have none
        for j in (1, 2):
            if clock % (2 * 2**j) == 0:
                # A share of 20,000 has a deviation of at most 0.0036.
                assert live[:, j].mean() == pytest.approx(2 ** ((j - m) / 2), abs=0.015)
            else:
                np.testing.assert_array_equal(live[:, j], before[:, j])
        together = (live[:, 1] & live[:, 2]).mean()
        assert together == pytest.approx(2 ** (-1 - 0.5), abs=0.015)  # drawn independently
        ended = replays.learn(arms, np.zeros(batch), everyone)
        np.testing.assert_array_equal(ended[:, m], clock == 2 * 2**m - 1)


def test_replays_begin_also_where_another_has_the_first_play() -> None:
    batch, m = 2_000, 2
    features = exact_features(Empirical(np.eye(2)), np.array([[0.0], [1.0]]))
    basis = make_basis(features, np.ones(batch), np.full(batch, 1e-12))
    half, everyone = np.full((batch, 2), 0.5), np.ones(batch, bool)
    factors = design_factors(basis.phi, basis.rank, basis.regularization, half)
    first_design = Designs(half, np.zeros(batch), factors)
    replays, rows = Replays(basis, first_design, np.full(batch, 2), m + 1, 0), np.arange(batch)
    for j in (0, 1, 2):
        replays.follow(rows, np.full(batch, j), half)
    replays.begin(rows, np.full(batch, m))
    first, ones = np.zeros(batch, np.int64), np.ones(batch)
    replays.learn(first, ones, everyone)
    replays.choose(np.random.default_rng(0).integers(0, 2**53, batch).astype(np.uint64))
    live = replays.arrays.live
    assert live[:, 0].mean() == pytest.approx(2**-1, abs=0.05)  # 4.5 deviations of 0.011
    assert live[:, 1].mean() == pytest.approx(2**-0.5, abs=0.05)
    begun = live[:, 0].copy()
    ended = replays.learn(first, ones, everyone)
    np.testing.assert_array_equal(ended[:, 0], begun)
    # 2 plays, each of the weight 1 / (1/2 + 1), in an interval of 2 steps
    np.testing.assert_allclose(replays.estimates(rows, np.zeros_like(rows))[:, 0], 1 / 1.5)


def test_an_estimate_is_the_mean_of_what_was_weighted() -> None:
    phi = np.random.default_rng(0).normal(size=(6, 3))
    features = exact_features(lambda X: phi, DOMAIN[:6])
    basis = make_basis(features, np.array([0.1]), np.array([1e-12]))
    p = np.arange(1.0, 7.0) / 21
    replays, one = Replays(basis, designs(basis, p[None]), np.array([4]), 2, 0), np.array([0])
    replays.begin(one, one)
    rewards = np.zeros(6)
    inverse = np.linalg.inv((phi.T * p) @ phi + 0.1 * np.eye(3))
    for arm, y in ((0, 1.0), (3, -2.0), (3, 0.5), (5, 4.0)):
        ended = replays.learn(np.array([arm]), np.array([y]), np.ones(1, bool))
        rewards += phi @ inverse @ phi[arm] * y / 4
    assert ended[0].tolist() == [True, False]
    np.testing.assert_allclose(replays.estimates(one, one)[0], rewards, atol=1e-12)


def alarms(flips: bool) -> int:
    """Return how many of 20 learners find a change after step 1,200, where f may change its sign.

    Their threshold is three times the usual one: these blocks are short, of 8 steps to 10 arms.
    """
    rng, arms = np.random.default_rng(0), np.arange(20)
    f = rng.uniform(-0.8, 0.8, (20, 10))
    problem = replace(alike(10, 4000, reward_range=(-1.0, 1.0)), noise_scale=np.full(20, 0.1))
    agent = OPKB(problem, constants=CONSTANTS["practical"]._replace(threshold=0.015))
    agent.reset(0)
    before = np.zeros(20, np.int64)
    for t in range(2400):
        chosen = agent.act()
        if t == 1200:
            before = agent.changes.copy()
        sign = -1 if flips and t >= 1200 else 1
        agent.observe(chosen, sign * f[arms, chosen] + rng.normal(0, 0.1, 20))
    return int((agent.changes > before).sum())


@pytest.mark.slow
def test_it_finds_a_change_and_few_that_are_none() -> None:
    # On four seeds 20, 20, 20 and 20 found the change, and 3, 2, 2 and 1 one that was none.
    assert alarms(flips=True) >= 17
    assert alarms(flips=False) <= 8


def test_it_plays_the_best_arms_more_and_more() -> None:
    agent = OPKB(replace(PROBLEM, horizon=4000, reward_range=(-1.0, 1.0)))
    agent.reset(0)
    f = bump(0.3)
    assert f.mean() < 0.5
    assert (
        f[play(agent, 4000, f)][-1000:].mean() > 0.8
    )  # 0.855 to 0.92 on nine seeds; the best pays 1


def test_rewards_are_taken_in_units_of_their_range() -> None:
    one, other = OPKB(PROBLEM, constants=QUICK), OPKB(PROBLEM, constants=QUICK, reward_range=(2, 6))
    one.reset(0)
    other.reset(0)
    assert play(one, 200, bump(0.3)) != play(one, 200, np.zeros(20))
    one.reset(0)
    for y in np.random.default_rng(0).uniform(-1, 1, 200):
        arm = one.act()
        assert arm == other.act()
        one.observe(arm, y)
        other.observe(arm, 4 + 2 * y)


def test_its_state_stays_as_large_as_it_is_also_after_the_horizon() -> None:
    agent = OPKB(replace(PROBLEM, horizon=30), constants=QUICK)
    agent.reset(0)
    size = len(pickle.dumps(agent.replays)) + agent.gaps.nbytes
    play(agent, 500, bump(0.3))
    assert len(pickle.dumps(agent.replays)) + agent.gaps.nbytes == size
    shares = agent.replays.arrays.strategies.sum(axis=2)
    np.testing.assert_allclose(shares[0, : agent.replays.arrays.order[0] + 1], 1, atol=1e-12)


def test_a_learner_with_its_own_parameters_is_the_single_one_of_these() -> None:
    lambdas, deltas = [100.0, 3.0, 0.5], [1e-4, 0.1, 0.5]
    problem = replace(PROBLEM, horizon=60, norm_bound=np.ones(3))
    batch = OPKB(problem, constants=QUICK, regularization=lambdas, delta=deltas)
    batch.reset(5)
    f, rows = np.stack([bump(top) for top in (0.1, 0.5, 0.8)]), []
    for _ in range(150):
        rows.append(batch.act())
        batch.observe(rows[-1], f[np.arange(3), rows[-1]])
    for i in range(3):
        single = replace(problem, norm_bound=1.0)
        alone = OPKB(single, constants=QUICK, regularization=lambdas[i], delta=deltas[i])
        alone.reset(5 + i)
        for t in range(150):
            assert alone.act() == rows[t][i]
            alone.observe(rows[t][i], f[i, rows[t][i]])


def test_another_s_play_beside_the_grid_counts_for_the_nearest_point() -> None:
    agents = [OPKB(replace(PROBLEM, continuous=True), constants=QUICK) for _ in range(2)]
    for agent, beside in zip(agents, (0.0, 0.02), strict=True):
        agent.reset(0)
        for t in range(100):
            agent.observe(DOMAIN[t % 19] + beside, float(t % 3))
    places = [[agent.act() for _ in range(20)] for agent in agents]
    np.testing.assert_array_equal(places[0], places[1])
    grid = DOMAIN.astype(np.float32)
    assert all(place.dtype == np.float32 and place in grid for place in places[0])


def test_what_it_is_shown_before_it_has_acted_is_no_replay() -> None:
    agent = OPKB(PROBLEM, constants=QUICK)
    agent.reset(0)
    for t in range(100):
        agent.observe(t % 20, 0.1 * (t % 3))
        assert agent.replays.arrays.live.sum() == 1  # the block alone
    assert agent.replays.arrays.order[0] >= 3


def test_a_copy_goes_on_as_the_original_does() -> None:
    agent = OPKB(PROBLEM, constants=QUICK)
    agent.reset(0)
    play(agent, 77, bump(0.3))
    other = copy.deepcopy(agent)
    assert play(agent, 100, bump(0.8)) == play(other, 100, bump(0.8))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"constants": "practicle"}, "'constants' parameter of OPKB must be one of .*'practical'"),
        ({"regularization": 0.0}, "'regularization' parameter of OPKB must be a float in"),
        ({"delta": 1.0}, "'delta' parameter of OPKB must be a float in"),
        ({"reward_range": (1, 0)}, "'reward_range' parameter of OPKB must be None or two finite"),
        *(
            ({"constants": OPKBConstants(**QUICK._asdict() | {name: wrong})}, f"{name!r} parameter")
            for name, wrong in (
                *(("length", 0.0), ("beta", -1.0), ("exploration", 1.5), ("threshold", -0.1)),
                *(("mixture", 2.0), ("nearness", -1.0), ("smallest_replay", -1)),
            )
        ),
    ],
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OPKB(PROBLEM, **parameters)


def test_arms_that_are_drawn_anew_are_refused() -> None:
    problem = BanditProblem(CentredLinear(), np.zeros((5, 2)), 50, 0.1, 1.0, contextual=True)
    with pytest.raises(ValueError, match="'env' parameter of OPKB must be a task whose arms stay"):
        OPKB(problem)


def test_a_norm_bound_that_is_not_drawn_yet_is_asked_for() -> None:
    agent = OPKB(replace(PROBLEM, norm_bound=None))
    with pytest.raises(RuntimeError, match=r"give the agent a 'reward_range'"):
        agent.reset(0)
