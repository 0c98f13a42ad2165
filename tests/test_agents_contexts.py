"""Tasks whose arms are drawn anew at each step: what agents read, learn and refuse."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
import wgp_gym  # noqa: F401  (registers the ids)
from wgp_agents.base import Agent
from wgp_agents.core.observation import observation_of
from wgp_agents.gp.agent import GPAgent
from wgp_agents.registry import AGENTS, agent_class
from wgp_gym.kernels import CentredLinear, Kernel, Linear, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

ID = "WGPBandit-LinearContextual-v0"
SMALL: dict[str, Any] = {"horizon": 40, "num_arms": 6, "dim": 3}
N, D, STEPS, SEED = 6, 3, 40, 7
PARAMETERS: dict[str, dict[str, Any]] = {
    **{name: {"discount": 0.9} for name in ("wgp-ucb", "wgp-ts", "rand-wgp-ucb")},
    **{name: {"discount": 0.9} for name in ("d-lin-ucb", "d-lin-ts", "d-rand-lin-ucb")},
    **{name: {"window": 9} for name in ("sw-gp-ucb", "sw-lin-ucb")},
    **{name: {"restart_period": 13} for name in ("r-gp-ucb", "restart-lin-ucb")},
    **{name: {} for name in ("igp-ucb", "gp-ucb", "gp-ts", "lin-ucb", "random")},
    "tv-gp-ucb": {},
}
K_ARMED = [name for name, entry in AGENTS.items() if entry.family == "K-armed"]
every_player = pytest.mark.parametrize("name", PARAMETERS)
kernels = pytest.mark.parametrize("kernel", [Linear(), CentredLinear()], ids=["plain", "centred"])


def task(batch: int | None = None, kernel: Kernel | None = None, **given: Any) -> BanditProblem:
    each = 1.0 if batch is None else np.ones(batch)
    stated = {"contextual": True, **given}
    domain = np.random.default_rng(0).random((N, D))
    return BanditProblem(kernel or CentredLinear(), domain, STEPS, 0.1, each, each, **stated)


def make(name: str, env: Any, seed: Any = SEED, **parameters: Any) -> Agent:
    agent = wgp_agents.make(name, env, **{**PARAMETERS.get(name, {}), **parameters})
    agent.reset(seed)
    return agent


def observation(t: int, place: Any, reward: float, arms: Floats) -> Floats:
    """Return [t / T, has_last, place, reward, arms], as the environment shows it."""
    return np.concatenate([[t / STEPS, t > 0], np.broadcast_to(place, D), [reward], arms.ravel()])


def episode(seed: int) -> tuple[Floats, Floats]:
    """Return the arms of all steps `(T, n, d)`, and what each would pay `(T, n)`."""
    rng = np.random.default_rng(seed)
    arms = rng.random((STEPS, N, D))
    pay = arms @ np.array([1.0, -0.5, 0.3]) + 0.1 * rng.standard_normal((STEPS, 1))
    return arms, np.asarray(pay)


def play(agent: Agent, episodes: list[tuple[Floats, Floats]]) -> list[Any]:
    """Play by act and observe; return what was played, and the posterior of each step."""
    found: list[Any] = []
    for t in range(STEPS):
        rows = np.stack([observation(t, 0.0, 0.0, places[t]) for places, _ in episodes])
        played = agent.act(rows if agent.batched else rows[0])
        arms = np.atleast_1d(played)
        rewards = np.array([pay[t, a] for (_, pay), a in zip(episodes, arms, strict=True)])
        found.append(arms.copy())
        if isinstance(agent, GPAgent):
            mean, std = agent.posterior()
            found.append(np.concatenate([np.atleast_2d(mean), np.atleast_2d(std)], axis=1))
        agent.observe(played, rewards if agent.batched else rewards[0])
    return found


@every_player
def test_learner_i_is_the_single_learner(name: str) -> None:
    alone = [play(make(name, task(), SEED + i), [episode(i)]) for i in range(3)]
    for batch in (1, 2, 3, 100):
        together = play(make(name, task(batch)), [episode(i) for i in range(batch)])
        for i in range(min(batch, 3)):
            for one, other in zip(together, alone[i], strict=True):
                np.testing.assert_array_equal(one[i], other[0])


@every_player
def test_observations_alone_say_as_much(name: str) -> None:
    arms, pay = episode(1)
    one, other = make(name, task()), make(name, task())
    place, reward = np.zeros(D), 0.0
    for t in range(STEPS):
        shown = observation(t, place, reward, arms[t])
        action = one.act(shown)
        found, state = other.predict(shown)
        assert (found, state) == (action, None)
        place, reward = arms[t, action], float(pay[t, action])
        one.observe(action, reward)
    assert isinstance(other, GPAgent) == isinstance(one, GPAgent)
    if isinstance(one, GPAgent) and isinstance(other, GPAgent):
        other.predict(observation(STEPS, place, reward, arms[0]))
        one.act(observation(0, 0.0, 0.0, arms[0]))
        np.testing.assert_array_equal(one.posterior(), other.posterior())


@every_player
@pytest.mark.parametrize("batch", [None, 3])
def test_in_the_environment_too(name: str, batch: int | None) -> None:
    def _make() -> Any:
        if batch is None:
            return gymnasium.make(ID, **SMALL)
        return gymnasium.make_vec(ID, batch, vectorization_mode="vector_entry_point", **SMALL)

    runs = []
    for path in ("act", "predict"):
        env = _make()
        shown, _ = env.reset(seed=3)
        agent, run = make(name, env), []
        for _ in range(STEPS):
            action = agent.act(shown) if path == "act" else agent.predict(shown)[0]
            shown, reward, *_ = env.step(action)
            run.append((np.array(action), np.array(reward)))
            if path == "act":
                agent.observe(action, reward)
        runs.append(run)
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["wgp-ucb", "igp-ucb", "r-gp-ucb", "sw-gp-ucb"])
@kernels
def test_the_posterior_speaks_of_the_arms_last_shown(name: str, kernel: Kernel) -> None:
    agent, (arms, pay) = make(name, task(kernel=kernel), regularization=0.5), episode(2)
    assert isinstance(agent, GPAgent)
    np.testing.assert_allclose(agent.posterior().mean, np.zeros(N))
    X, y = np.zeros((0, D)), np.zeros(0)
    for t in range(STEPS):
        action = agent.act(observation(t, 0.0, 0.0, arms[t]))
        w = 0.9 ** np.arange(t - 1, -1, -1.0) if name == "wgp-ucb" else np.ones(t)
        first = {"r-gp-ucb": t - t % 13, "sw-gp-ucb": max(t - 9, 0)}.get(name, 0)
        old, w = X[first:], w[first:]
        k = kernel(arms[t], old)
        C = np.linalg.solve(kernel(old, old) + 0.5 * np.diag(1 / w), k.T).T
        variance = kernel.diagonal(arms[t]) - np.sum(C * k, axis=1)
        mean, std = agent.posterior()
        np.testing.assert_allclose(mean, C @ y[first:], rtol=0, atol=1e-9)
        np.testing.assert_allclose(std**2, variance, rtol=0, atol=1e-9)
        upper = mean + agent.beta() * std
        assert upper[action] >= upper.max() - 1e-9
        agent.observe(action, pay[t, action])
        X, y = np.vstack([X, arms[t, action]]), np.append(y, pay[t, action])


def test_the_determinant_bounds_the_gain_of_arms_not_yet_seen() -> None:
    env = gymnasium.make(ID, **{**SMALL, "num_arms": 2})  # two stand-ins, in three dimensions
    shown, _ = env.reset(seed=0)
    agent = make("wgp-ucb", env, gain="determinant", regularization=1.0)
    assert isinstance(agent, GPAgent)
    for _ in range(STEPS):
        action = agent.act(shown)
        shown, reward, *_ = env.step(action)
        agent.observe(action, reward)
        assert agent.width_gain()[0] >= agent.information_gain() - 1e-9


@pytest.mark.parametrize(
    "parameters", [{"gain": "bound"}, {"gain": "greedy"}, {"information_gain": "computed"}]
)
def test_gains_of_known_arms_are_refused(parameters: dict[str, str]) -> None:
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of WGPUCB must be .*drawn anew"):
        make("wgp-ucb", gymnasium.make(ID, **SMALL), **parameters)


@pytest.mark.parametrize("place", [-0.1, 1.1, math.nan])
def test_arms_outside_the_box_are_refused(place: float) -> None:
    env = gymnasium.make(ID, **SMALL)
    shown, _ = env.reset(seed=0)
    agent = make("lin-ucb", env)
    agent.reset(0)
    shown[-1] = place
    for look in (agent.act, agent.predict):
        with pytest.raises(ValueError, match=r"The arms shown must be in \[0, 1\]"):
            look(shown)


def test_what_others_played_is_learnt_at_its_place() -> None:
    agent, (arms, _) = make("igp-ucb", task(kernel=Linear()), regularization=0.5), episode(2)
    assert isinstance(agent, GPAgent)
    chosen = agent.act(observation(0, 0.0, 0.0, arms[0]))
    other = (chosen + 1) % N
    agent.observe(other, 2.0)
    k = Linear()(arms[0], arms[0])
    expected = 2.0 * k[:, other] / (k[other, other] + 0.5)
    np.testing.assert_allclose(agent.posterior().mean, expected, rtol=0, atol=1e-12)


@every_player
def test_arms_must_be_shown(name: str) -> None:
    agent, shown = make(name, task(2)), np.zeros((2, 3 + D + N * D))
    with pytest.raises(RuntimeError, match=r"drawn anew at each step: show them to act\(\) first"):
        agent.observe([0, 1], [0.0, 0.0])
    with pytest.raises(ValueError, match=r"'observation' .* an array of numbers\. Got None"):
        agent.act()
    with pytest.raises(ValueError, match=r"There must be 2 observations\. Got 1 instead"):
        agent.act(shown[:1])
    for wrong in (shown[:, : 3 + D], shown[:, 1:]):
        for method in (agent.act, agent.predict):
            with pytest.raises(ValueError, match=r"has 24 numbers, .* arms.* Got \d+ instead"):
                method(wrong)
    agent.act(shown)
    agent.observe([0, 1], [0.0, 0.0])
    agent.reset(1)
    with pytest.raises(RuntimeError, match="show them to act"):  # those of another episode
        agent.observe([0, 1], [0.0, 0.0])


def test_a_wrong_observation_changes_nothing() -> None:
    agent, (arms, _) = make("wgp-ts", task()), episode(3)
    assert isinstance(agent, GPAgent)
    agent.act(observation(0, 0.0, 0.0, arms[0]))
    agent.observe(2, 1.0)
    other, before = copy.deepcopy(agent), agent.posterior()
    with pytest.raises(ValueError, match="An observation has 24 numbers"):
        agent.act(np.zeros(6))
    with pytest.raises(ValueError, match="finite last reward"):
        agent.predict(observation(1, arms[0, 1], math.inf, arms[1]))
    np.testing.assert_array_equal(agent.posterior(), before)
    shown = observation(1, 0.0, 0.0, arms[1])
    assert agent.act(shown) == other.act(shown)


def test_learners_restart_one_by_one() -> None:
    agent, (arms, pay) = make("d-lin-ucb", task(2)), episode(4)
    alone = make("d-lin-ucb", task())
    assert isinstance(agent, GPAgent)
    assert isinstance(alone, GPAgent)
    for t in range(10):
        shown = observation(t, arms[t - 1, 0], pay[t - 1, 0], arms[t])
        agent.predict(np.stack([shown, shown]), episode_start=[t == 0, t in (0, 6)])
        if t >= 6:
            alone.predict(shown, episode_start=[t == 6])
    mean, std = agent.posterior()
    np.testing.assert_array_equal(mean[1], alone.posterior().mean)
    np.testing.assert_array_equal(std[1], alone.posterior().std)
    assert np.abs(mean[0] - mean[1]).max() > 1e-6


@pytest.mark.parametrize("name", ["wgp-ts", "lin-ucb", "random"])
def test_a_copy_goes_on_alike(name: str) -> None:
    agent, (arms, pay) = make(name, task()), episode(5)
    for t in range(5):
        agent.observe(agent.act(observation(t, 0.0, 0.0, arms[t])), pay[t, 0])
    others = [copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))]
    for t in range(5, 20):
        shown = observation(t, 0.0, 0.0, arms[t])
        action = agent.act(shown)
        for one in (agent, *others):
            assert one is agent or one.act(shown) == action
            one.observe(action, pay[t, action])


@pytest.mark.parametrize("name", K_ARMED)
def test_agents_of_k_arms_refuse(name: str) -> None:
    owner = agent_class(name).__name__
    rule = f"^{owner} plays a fixed number of arms. The task has "
    with pytest.raises(ValueError, match=rule + "arms that are drawn anew at each step"):
        make(name, task())
    with pytest.raises(ValueError, match=rule + "a box"):
        make(name, task(contextual=False, continuous=True, kernel=SquaredExponential(0.2)))


def test_the_ends_of_the_scale() -> None:
    env = gymnasium.make_vec(ID, 4, vectorization_mode="vector_entry_point", **SMALL)
    regrets = {}
    for name in ("oracle", "random", "lin-ucb"):
        shown, info = env.reset(seed=1)
        agent = make(name, env)
        played = []
        for _ in range(STEPS):
            played.append(agent.act(shown))
            shown, reward, _, _, info = env.step(played[-1])
            agent.observe(played[-1], reward)
        regrets[name] = info["cumulative_regret"]
        assert len(np.unique(played)) == N
    np.testing.assert_array_equal(regrets["oracle"], np.zeros(4))
    assert regrets["lin-ucb"].mean() < 0.8 * regrets["random"].mean()


def test_before_arms_are_shown_the_posterior_speaks_of_the_stand_ins() -> None:
    agent, (arms, _) = make("igp-ucb", task()), episode(6)
    assert isinstance(agent, GPAgent)
    prior = CentredLinear().diagonal(task().domain)
    for _ in range(2):
        np.testing.assert_allclose(agent.posterior().std ** 2, prior, rtol=0, atol=1e-12)
        agent.act(observation(0, 0.0, 0.0, arms[0]))
        agent.reset(0)  # those shown were of another episode


def test_stand_ins_of_small_norm_do_not_make_the_determinant_small() -> None:
    near = replace(task(), domain=0.5 + 0.01 * task().domain)
    agent, corner = make("igp-ucb", near, gain="determinant", regularization=0.5), np.eye(N, D)
    assert isinstance(agent, GPAgent)
    agent.act(observation(0, 0.0, 0.0, corner))  # places on the edge are places too
    agent.observe(0, 1.0)
    assert agent.width_gain() == pytest.approx(D / 2 * math.log(1 + 1 / (0.5 * D)))  # L^2 = 1


@pytest.mark.parametrize("batch", [None, 3])
def test_without_an_environment_the_arms_are_shown_by_hand(batch: int | None) -> None:
    rng, lead = np.random.default_rng(0), () if batch is None else (batch,)
    bound = 1.0 if batch is None else np.ones(batch)
    problem = BanditProblem(CentredLinear(), np.zeros((6, 3)), 99, 0.1, bound, contextual=True)
    agent = make("lin-ucb", problem)
    agent.reset(0)
    regret = []
    for _ in range(60):
        x = rng.uniform(-0.5, 0.5, (*lead, 6, 3))
        shown = observation_of((x + 1) / 2)
        assert shown.shape == (*lead, 3 + 3 + 18)
        action = agent.act(shown)
        paid = x @ np.array([1.0, 0.0, 0.0])
        reward = paid[action] if batch is None else paid[np.arange(3), action]
        agent.observe(action, reward)
        regret.append(float(np.mean(paid.max(axis=-1) - reward)))
    assert np.mean(regret[-20:]) < 0.25 * np.mean(regret[:10])


LATE = ("adaptive-wgp-ucb", "d-lin-ucb", "tv-gp-ucb")


@pytest.mark.parametrize("name", LATE)
def test_late_feedback_is_booked_on_the_arms_that_it_names(name: str) -> None:
    places, pay = episode(3)
    prompt, late = make(name, task()), make(name, task())
    for t in range(20):
        chosen = prompt.act(observation_of(places[t]))
        prompt.observe(chosen, pay[t, chosen])
    late.act(observation_of(places[0]))
    for t in range(20):  # the same plays, each told when the next arms are shown already
        late.act(observation_of(places[t + 1]))
        told = int(np.random.default_rng(t).integers(N))
        late.observe(told, pay[t, told], arms=places[t])
    again = make(name, task())
    for t in range(20):
        again.act(observation_of(places[t]))
        told = int(np.random.default_rng(t).integers(N))
        again.observe(told, pay[t, told])
    again.act(observation_of(places[20]))  # as many choices, hence as many draws
    for agent in (late, again):
        agent.act(observation_of(places[21]))
    posteriors = [agent.posterior() for agent in (late, again)]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(*posteriors)


def test_feedback_that_may_be_about_other_arms_is_refused() -> None:
    places, _ = episode(4)
    agent = make("d-lin-ucb", task())
    assert isinstance(agent, GPAgent)
    agent.act(observation_of(places[0]))
    agent.act(observation_of(places[1]))
    before = copy.deepcopy(agent)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"say which ones .* observe\(action, reward, arms="):
            agent.observe(2, 1.0)
    np.testing.assert_array_equal(agent.posterior(), before.posterior())
    agent.observe(2, 1.0, arms=places[0])
    with pytest.raises(RuntimeError, match="say which ones"):  # one is still to come, or lost
        agent.observe(2, 1.0)
    agent.observe(2, 1.0, arms=places[1])  # now the last ones are meant: all is settled
    agent.observe(3, 0.5)  # somebody else's play of the same arms
    agent.act(observation_of(places[2]))
    agent.observe(2, 1.0)
    agent.act(observation_of(places[3]))
    agent.act(observation_of(places[4]))
    agent.reset(0)
    agent.act(observation_of(places[5]))
    agent.observe(0, 1.0)


def test_the_same_arms_shown_again_leave_no_doubt() -> None:
    places, _ = episode(4)
    agent = make("d-lin-ucb", task())
    agent.act(observation_of(places[0]))
    agent.act(observation_of(places[0]))  # a call that was made again
    agent.observe(2, 1.0)
    agent.act(observation_of(places[1]))
    first = agent.arms
    agent.act(observation_of(places[2]))
    agent.observe(2, 1.0, arms=first)  # as the agent itself keeps them


def test_named_arms_that_do_not_fit() -> None:
    agent, places = make("d-lin-ucb", task()), episode(4)[0]
    wrong: list[Any] = [places[0][:3], places[0] + 1.0, np.full((N, D), math.nan), "arms", places]
    for arms in wrong:
        with pytest.raises(
            ValueError, match=rf"'arms' .* in \[0, 1\]\^{D}, in an array \((1, )?{N}, {D}"
        ):
            agent.observe(0, 1.0, arms=arms)
    stay = wgp_agents.make("igp-ucb", task(kernel=SquaredExponential(0.2), contextual=False))
    stay.reset(0)
    with pytest.raises(ValueError, match="must be left out where arms stay the same"):
        stay.observe(0, 1.0, arms=places[0])
