"""`evaluate`: agents and models play the episodes of the seeds asked for, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import (
    DtypeObservation,
    FlattenObservation,
    FrameStackObservation,
    NormalizeObservation,
)
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import wgp_agents
import wgp_gym
from wgp_agents import WGPUCB
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.evaluation import Evaluation
from wgp_gym.wrappers import (
    HistoryObservation,
    RegretReward,
    SeededEpisodes,
    VectorHistoryObservation,
)

TASK, STEPS = "WGPBandit-Abrupt-v0", 12
SEEDS = [7, 3, 1000]
OURS = {
    "entry_point": "wgp_gym.envs:BanditEnv",
    "vector_entry_point": "wgp_gym.envs:BanditVectorEnv",
    "kwargs": gymnasium.spec(TASK).kwargs,
}


def single(**parameters: Any) -> Any:
    return gymnasium.make(TASK, **({"horizon": STEPS} | parameters))


class Recorded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps the optimum and the noise of each step."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.steps: list[tuple[float, float]] = []

    def step(self, action: Any) -> Any:
        found = self.env.step(action)
        info = found[-1]
        self.steps.append((info["optimal_reward"], float(found[1]) - info["expected_reward"]))
        return found


class Constant:
    """A model that plays one arm."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:  # fmt: skip
        state = np.zeros(len(observation), int) if state is None else state
        assert episode_start.all() == (not state.any())  # as a recurrent model needs it
        assert deterministic
        return np.full(len(observation), 42), state + 1


def by_hand(name: str, seed: int, **parameters: Any) -> tuple[float, float]:
    env = single()
    played = rollout(wgp_agents.make(name, env, **parameters), env, seed=seed)
    return float(played["cumulative_regret"][0, -1]), float(played["reward"][0].sum())


def check(found: Evaluation, expected: list[tuple[float, float]]) -> None:
    assert found.seeds == tuple(SEEDS)
    regrets, returns = np.transpose(expected)
    np.testing.assert_array_equal(found.regrets, regrets)
    np.testing.assert_allclose(found.returns, returns, rtol=1e-12)


def test_every_kind_of_player_and_environment() -> None:
    expected = [by_hand("wgp-ucb", seed) for seed in SEEDS]
    check(wgp_agents.evaluate("wgp-ucb", TASK, SEEDS, horizon=STEPS), expected)
    check(wgp_agents.evaluate(WGPUCB, single(), SEEDS), expected)
    check(wgp_agents.evaluate(lambda env: WGPUCB(env), HistoryObservation(single(), 3), SEEDS),
          expected)  # fmt: skip
    for mode in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
        batch = make_vector(TASK, 2, horizon=STEPS, autoreset_mode=mode)  # the last seed twice
        check(wgp_agents.evaluate("wgp-ucb", batch, SEEDS), expected)


def test_an_id_with_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"import gymnasium\ngymnasium.register('Elsewhere-v0', **{OURS})\n"
    (tmp_path / "elsewhere_registers.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    name = "elsewhere_registers:Elsewhere-v0"
    found = wgp_agents.evaluate("igp-ucb", name, SEEDS, horizon=STEPS)
    same = wgp_agents.evaluate("igp-ucb", TASK, SEEDS, horizon=STEPS)
    np.testing.assert_array_equal(found.regrets, same.regrets)
    del gymnasium.registry["Elsewhere-v0"]


def test_models() -> None:
    expected = []
    for seed in SEEDS:
        env = single()
        env.reset(seed=seed)
        paid, info = 0.0, {}
        for _ in range(STEPS):
            _, reward, _, _, info = env.step(42)
            paid += reward
        expected.append((info["cumulative_regret"], paid))
    check(wgp_agents.evaluate(Constant(), TASK, SEEDS, horizon=STEPS), expected)
    check(wgp_agents.evaluate(Constant(), single(), SEEDS), expected)
    check(wgp_agents.evaluate(lambda env: Constant(), single(), SEEDS), expected)
    found = wgp_agents.evaluate(Constant(), RegretReward(single()), SEEDS)
    np.testing.assert_allclose(found.returns, -found.regrets, rtol=1e-12)
    assert found.mean_regret == np.mean(found.regrets)
    spread = np.sqrt(np.sum((found.returns - found.mean_return) ** 2) / 2 / 3)
    assert found.return_error == pytest.approx(spread)
    assert found.regret_error == pytest.approx(spread)
    assert np.isnan(wgp_agents.evaluate(Constant(), single(), [1]).regret_error)


def test_both_kinds_play_the_same_episodes() -> None:
    ppo = PPO("MlpPolicy", HistoryObservation(single(), 2), n_steps=4, batch_size=4, seed=0)
    records = []
    for player in ("random", "wgp-ucb", ppo, Constant()):
        env = Recorded(single())
        wgp_agents.evaluate(player, HistoryObservation(env, 2), SEEDS)
        records.append(np.array(env.steps))
    for record in records:
        np.testing.assert_array_equal(record[:, 0], records[0][:, 0])
        np.testing.assert_allclose(record[:, 1], records[0][:, 1], atol=1e-6)  # rewards round
    many = VectorHistoryObservation(make_vector(TASK, 3, horizon=STEPS), 2)
    batch, alone = (
        wgp_agents.evaluate(ppo, env, SEEDS) for env in (many, HistoryObservation(single(), 2))
    )
    np.testing.assert_allclose(batch.regrets, alone.regrets)


def test_an_agent_goes_by_the_bounds_of_the_episodes_that_it_plays() -> None:
    first = single(norm_bound=50.0)
    first.reset(seed=0)
    agent: Any = wgp_agents.make("wgp-ucb", first, variation_budget="known")
    agent.reset(4)
    agent.observe(3, 1.0)
    before = agent.posterior().mean
    expected = [by_hand("wgp-ucb", seed, variation_budget="known") for seed in SEEDS]
    check(wgp_agents.evaluate(agent, TASK, SEEDS, horizon=STEPS), expected)
    check(wgp_agents.evaluate(agent, single(), SEEDS), expected)
    np.testing.assert_array_equal(agent.posterior().mean, before)  # a copy has played
    agent.reset(4)
    assert agent.problem.norm_bound == 50.0
    batch = wgp_agents.make(
        "wgp-ucb", make_vector(TASK, 2, horizon=STEPS), variation_budget="known"
    )
    check(wgp_agents.evaluate(batch, TASK, SEEDS, horizon=STEPS), expected)
    with pytest.raises(ValueError, match=r"WGPUCB.bind must be one of the same task .* 'horizon'"):
        wgp_agents.evaluate(agent, TASK, SEEDS)


def test_one_environment_serves_again() -> None:
    """An agent is of a structure, and of the kernel and the noise that its model has."""
    drawn: Any = single(noise_std=[0.1, 1.0])
    drawn.reset(seed=1)
    agent: Any = wgp_agents.make("random", drawn)
    given: Any = wgp_agents.make("wgp-ucb", drawn, noise_scale=0.3)
    for player in (agent, given):
        first, again = (wgp_agents.evaluate(player, drawn, SEEDS) for _ in range(2))
        np.testing.assert_array_equal(first.regrets, again.regrets)
    wgp_agents.evaluate(agent, single(lengthscale=0.1), SEEDS)  # it has no model
    wgp_agents.evaluate(given, single(noise_std=0.5), SEEDS)
    with pytest.raises(ValueError, match=r"'kernel' .* as it was when WGPUCB was made"):
        wgp_agents.evaluate(given, single(lengthscale=0.1), SEEDS)


def test_agents_are_made_for_what_was_drawn() -> None:
    every: list[dict[str, Any]] = [{"noise_std": [0.05, 1.0]}, {"lengthscale": [0.1, 0.3]}]
    for laws in every:
        expected = []
        for seed in SEEDS:
            env = single(**laws)
            env.reset(seed=seed)
            played = rollout(wgp_agents.make("wgp-ucb", env), env, seed=seed)
            expected.append((played["cumulative_regret"][0, -1], played["reward"][0].sum()))
        check(wgp_agents.evaluate("wgp-ucb", TASK, SEEDS, horizon=STEPS, **laws), expected)
        check(wgp_agents.evaluate(lambda env: WGPUCB(env), single(**laws), SEEDS), expected)
        found = wgp_agents.evaluate(WGPUCB, TASK, SEEDS[:1], horizon=STEPS, **laws)
        assert found.regrets[0] == expected[0][0]


def test_more_episodes_than_one_batch_holds() -> None:
    found = wgp_agents.evaluate("random", TASK, range(101), horizon=2, points_per_dim=5)
    assert found.regrets.shape == found.returns.shape == (101,)
    alone = wgp_agents.evaluate("random", TASK, [100], horizon=2, points_per_dim=5)
    assert alone.regrets[0] == found.regrets[100]


@pytest.mark.parametrize(
    ("player", "env", "seeds", "match"),
    [
        ("wgp-ucb", TASK, [], "'seeds' parameter of evaluate must be a list or a range"),
        ("random", TASK, 3, "'seeds' parameter of evaluate must be a list or a range"),
        ("random", TASK, wgp_gym.seeds("test"), "'seeds' parameter .* of 1 to 100,000 ints"),
        ("wgp-ucb", TASK, [-1], "seed must be at least 0"),
        ("wgp-ucbb", TASK, [1], "wgp-ucb"),
        (3, TASK, [1], "'player' parameter of evaluate must be an agent's name"),
        (lambda _: 3, TASK, [1], "'player' parameter of evaluate must be an agent's name"),
        ("wgp-ucb", DummyVecEnv([single]), [1], "SeededEpisodes for the seeds"),
    ],
)
def test_refused(player: Any, env: Any, seeds: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        wgp_agents.evaluate(player, env, seeds)


def test_what_does_not_fit_a_model_or_an_environment() -> None:
    ppo: Any = PPO("MlpPolicy", HistoryObservation(single(), 2), n_steps=4, batch_size=4, seed=0)
    with pytest.raises(ValueError, match=r"shape \(7,\), as the model was trained on: .* \(4,\)"):
        wgp_agents.evaluate(ppo, TASK, SEEDS)
    with pytest.raises(ValueError, match=r"actions are of Discrete\(100\), as .* Discrete\(101\)"):
        wgp_agents.evaluate(ppo, HistoryObservation(single(points_per_dim=101), 2), SEEDS)
    fewer = VectorHistoryObservation(make_vector(TASK, 3, horizon=STEPS, points_per_dim=99), 2)
    with pytest.raises(ValueError, match=r"as the model was trained on: .* Discrete\(99\)"):
        wgp_agents.evaluate(ppo, fewer, SEEDS)
    # As many numbers, which mean something else.
    stack = FlattenObservation(FrameStackObservation(single(), 4))
    with pytest.raises(ValueError, match=r"observations are of Box.*wrappers of its training"):
        wgp_agents.evaluate(model_of(stack), HistoryObservation(single(), 5), SEEDS)
    with pytest.raises(ValueError, match=r"observations are of Box.*wrappers of its training"):
        wgp_agents.evaluate(model_of(NormalizeObservation(single())), TASK, SEEDS)
    with pytest.raises(ValueError, match="an id, to be made with horizon"):
        wgp_agents.evaluate("random", single(), SEEDS, horizon=3)
    cart = gymnasium.make("CartPole-v1")
    with pytest.raises(ValueError, match="whose info tells the regret"):
        wgp_agents.evaluate(lambda _: Constant0(), cart, [1])


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # as Gymnasium makes the spaces
def test_a_model_of_the_same_spaces_in_another_precision() -> None:
    def _precise() -> Any:
        return DtypeObservation(single(continuous=True), np.float64)

    model = model_of(single(continuous=True))
    expected = wgp_agents.evaluate(model, single(continuous=True), SEEDS).regrets
    np.testing.assert_allclose(wgp_agents.evaluate(model, _precise(), SEEDS).regrets, expected)
    precise = model_of(_precise())
    same = [
        wgp_agents.evaluate(precise, env, SEEDS) for env in (_precise(), single(continuous=True))
    ]
    np.testing.assert_allclose(same[0].regrets, same[1].regrets)


def model_of(env: Any) -> Any:
    return PPO("MlpPolicy", env, n_steps=4, batch_size=4, seed=0)


class Constant0(Constant):
    def predict(self, observation: Any, *more: Any) -> tuple[Any, Any]:
        return np.zeros(len(observation), int), None


def test_evaluate_policy_plays_the_seeds_asked_for() -> None:
    """stable-baselines3's own loop resets by itself; seed 7 has the optimum 2.2976 at its end."""
    optima, regrets = [], []

    def keep(local: dict[str, Any], _: dict[str, Any]) -> None:
        if local["done"]:
            optima.append(local["info"]["optimal_reward"])
            regrets.append(local["info"]["cumulative_regret"])

    env = Monitor(SeededEpisodes(single(), SEEDS))
    policy: Any = wgp_agents.make("wgp-ucb", env)
    policy.reset(SEEDS[0])
    evaluate_policy(policy, env, len(SEEDS), callback=keep)
    played = [rollout(wgp_agents.make("random", env), single(), seed=seed) for seed in SEEDS]
    assert optima == [one["optimal_reward"][0, -1] for one in played]
    assert optima[0] == pytest.approx(2.2976, abs=5e-5)
    found = wgp_agents.evaluate("wgp-ucb", TASK, SEEDS, horizon=STEPS)
    assert regrets[0] == found.regrets[0]  # of the same agent's seed
