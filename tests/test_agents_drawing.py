"""How a trained policy is shown its plays, and how its actions are drawn."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
import sb3_contrib
import stable_baselines3
import torch
from gymnasium import spaces
from scipy import stats
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

import wgp_agents
from wgp_agents.algorithms.learned.sb3 import SB3Agent
from wgp_agents.algorithms.learned.sb3.embedding import PlayEmbedding
from wgp_agents.algorithms.learned.sb3.policy import draw_actions, inverse
from wgp_agents.benchmark.rollout import rollout
from wgp_agents.testing import check_agent
from wgp_gym.wrappers import HistoryObservation

TASK = "WGPBandit-Abrupt-v0"


def model(algo: str, length: int = 2, **kwargs: Any) -> Any:
    """Return an untrained model on the task, whose policy is far from uniform."""
    env = HistoryObservation(gymnasium.make(TASK, **kwargs), length)
    made: Any
    if algo == "ppo":
        made = stable_baselines3.PPO("MlpPolicy", env, seed=0, device="cpu")
    else:
        small = {"lstm_hidden_size": 8}
        made = sb3_contrib.RecurrentPPO("MlpLstmPolicy", env, seed=0, policy_kwargs=small)
    with torch.no_grad():
        made.policy.action_net.weight.mul_(300)
        made.policy.action_net.bias.normal_(generator=torch.Generator().manual_seed(0))
    return made


@pytest.fixture(autouse=True)
def torch_goes_on_as_if_no_model_had_been_made() -> Any:
    """Set the global generator back: making a model seeds it."""
    state = torch.get_rng_state()
    yield
    torch.set_rng_state(state)


@pytest.mark.parametrize("dim", [1, 2])
def test_the_embedding_is_cosines_alone_and_times_the_reward(dim: int) -> None:
    rng = np.random.default_rng(0)
    plays = rng.random((3, 4, 2 + dim)).astype(np.float32)
    plays[:, :, 0], plays[0, 2:] = 1.0, 0.0  # the first row has seen two plays
    rows = np.concatenate([rng.random((3, 1)), plays.reshape(3, -1)], axis=1).astype(np.float32)
    space = spaces.Box(-10, 10, (rows.shape[1],))
    embedding = PlayEmbedding(space, dim=dim, frequencies=5)
    found = embedding(torch.as_tensor(rows)).numpy()
    assert found.shape == (3, embedding.features_dim)
    for row in range(3):
        expected = [rows[row, 0]]
        for there, *place, reward in plays[row].tolist():
            waves = [np.cos(np.pi * j * x) * there for x in place for j in range(5)]
            expected += waves + [wave * reward for wave in waves]
        np.testing.assert_allclose(found[row], expected, atol=2e-6)


@pytest.mark.slow
def test_arms_are_drawn_as_often_as_the_policy_says() -> None:
    made = model("ppo", points_per_dim=4)
    row = np.array([[0.1, 1, 0.3, 0.8, 1, 0.9, -1.0]], np.float32)
    with torch.no_grad():
        law = made.policy.get_distribution(torch.as_tensor(row)).distribution
        chances = law.probs[0].double().numpy()
    assert chances.max() < 0.9
    n = 20_000
    u = np.random.default_rng(0).random((n, 1))
    arms, state = draw_actions(made, np.repeat(row, n, axis=0), None, np.zeros(n, bool), u)
    assert state is None
    counts = np.bincount(arms, minlength=4)
    assert stats.chisquare(counts, chances / chances.sum() * n).pvalue > 1e-3
    never = torch.distributions.Categorical(probs=torch.tensor([[0.0, 0.5, 0.5]]))
    assert inverse(never, torch.zeros((1, 1), dtype=torch.float64))[0] == 1
    ends = draw_actions(made, row, None, np.zeros(1, bool), np.array([[np.nextafter(1, 0)]]))[0]
    assert ends[0] == 3


def test_points_are_drawn_from_the_policys_gaussian_and_stay_in_the_box() -> None:
    made: Any = stable_baselines3.PPO(
        "MlpPolicy", HistoryObservation(gymnasium.make(TASK, continuous=True, dim=2), 1), seed=0
    )
    row, n = np.zeros((1, 5), np.float32), 4000
    u = np.random.default_rng(0).random((n, 2))
    points, _ = draw_actions(made, np.repeat(row, n, axis=0), None, np.zeros(n, bool), u)
    with torch.no_grad():
        law = made.policy.get_distribution(torch.as_tensor(row)).distribution
    expected = stats.norm(law.loc.numpy(), law.scale.numpy()).ppf(u).clip(0, 1)
    np.testing.assert_allclose(points, expected, atol=1e-5)
    env = gymnasium.make_vec(
        TASK, 2, vectorization_mode="vector_entry_point", continuous=True, dim=2
    )
    agent = SB3Agent(env, algo="ppo", model=made, deterministic=False)
    env.reset(seed=0)
    agent.reset(0)
    for _ in range(3):
        actions = agent.act()
        assert actions.shape == (2, 2)
        assert actions.dtype == np.float32
        agent.observe(actions, env.step(actions)[1])


def test_a_recurrent_policy_goes_the_way_of_its_own_predict() -> None:
    made = model("recurrent-ppo", 1, points_per_dim=4)
    rng = np.random.default_rng(0)
    state: Any = None
    ours: Any = None
    for t in range(4):
        rows = np.column_stack([rng.random((3, 1)), np.ones((3, 1)), rng.random((3, 2))])
        starts = np.array([t == 0, t in (0, 2), t == 0])
        rows = rows.astype(np.float32)
        _, state = made.predict(rows, state=state, episode_start=starts, deterministic=True)
        _, ours = draw_actions(made, rows, ours, starts, np.full((3, 1), 0.5))
        np.testing.assert_allclose(np.array(ours), np.array(state), atol=1e-7)


@pytest.mark.parametrize("algo", ["ppo", "recurrent-ppo"])
def test_draws_are_the_agents_own(algo: str) -> None:
    made = model(algo, 1 if algo == "recurrent-ppo" else 2)
    env = gymnasium.make_vec(TASK, 3, vectorization_mode="vector_entry_point", horizon=9)
    before = torch.get_rng_state()

    def plays(source: Any, seed: int) -> list[Any]:
        agent = SB3Agent(source, algo=algo, model=made, deterministic=False)
        source.reset(seed=seed)
        agent.reset(seed)
        actions = []
        for _ in range(9):
            actions.append(agent.act())
            agent.observe(actions[-1], source.step(actions[-1])[1])
        return actions

    together = np.array(plays(env, 5))
    np.testing.assert_array_equal(plays(env, 5), together)
    assert (np.array(plays(env, 6)) != together).any()
    alone = [plays(gymnasium.make(TASK, horizon=9), 5 + i) for i in range(3)]
    np.testing.assert_array_equal(np.transpose(alone), together)
    assert torch.equal(torch.get_rng_state(), before)


def single() -> gymnasium.Env[Any, Any]:
    return gymnasium.make(TASK, horizon=12)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", ["bare", "Monitor", "DummyVecEnv", "SubprocVecEnv"])
@pytest.mark.parametrize("algo", ["ppo", "recurrent-ppo"])
def test_stable_baselines3_evaluates_it_as_our_rollout_does(algo: str, wrap: str) -> None:
    made = model(algo, 1 if algo == "recurrent-ppo" else 2)
    made_by: dict[str, Callable[[], Any]] = {
        "bare": single,
        "Monitor": lambda: Monitor(single()),
        "DummyVecEnv": lambda: DummyVecEnv([single]),
        "SubprocVecEnv": lambda: SubprocVecEnv([single]),
    }
    env = made_by[wrap]()
    if wrap in ("bare", "Monitor"):
        env.reset(seed=7)
    else:
        env.seed(7)
        env.reset()
    agent = SB3Agent(env, algo=algo, model=made, deterministic=False)
    agent.reset(3)
    found, lengths = evaluate_policy(
        agent, env, n_eval_episodes=3, return_episode_rewards=True, warn=False
    )
    env.close()
    plain = single()
    plain.reset(seed=7)
    ours = SB3Agent(plain, algo=algo, model=made, deterministic=False)
    played = [rollout(ours, plain, None, None if k else 3)["reward"].sum() for k in range(3)]
    assert lengths == [12, 12, 12]
    np.testing.assert_allclose(found, played, atol=1e-5)  # a Monitor rounds to six digits


@pytest.mark.parametrize("algo", ["ppo", "recurrent-ppo"])
def test_a_learner_does_not_notice_that_others_start_anew(algo: str) -> None:
    made = model(algo, 1 if algo == "recurrent-ppo" else 4)
    env = DummyVecEnv([single] * 3)
    env.seed(7)
    env.reset()
    agent = SB3Agent(env, algo=algo, model=made, deterministic=False)
    agent.reset(3)
    steps: list[Any] = []

    def keep(local: dict[str, Any], _: Any) -> None:
        if not steps or steps[-1] is not local["actions"]:
            steps.append(local["actions"])

    # Four episodes go to the three as 1, 1 and 2; the first two then start anew at every step.
    evaluate_policy(agent, env, 4, callback=keep, warn=False)
    plain = single()
    plain.reset(seed=9)
    alone = SB3Agent(plain, algo=algo, model=made, deterministic=False)
    played = [rollout(alone, plain, None, None if k else 5)["action"][0] for k in range(2)]
    np.testing.assert_array_equal(np.array(steps)[:24, 2], np.concatenate(played))


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_recurrent_policy_remembers_plays_that_it_was_only_shown(deterministic: bool) -> None:
    made = model("recurrent-ppo", 1)

    def agent() -> Any:
        env = gymnasium.make(TASK)
        env.reset(seed=0)
        found = SB3Agent(env, algo="recurrent-ppo", model=made, deterministic=deterministic)
        found.reset(0)
        return found

    one, other = agent(), agent()
    for arm, reward in ((3, 1.0), (90, -2.0), (41, 0.5)):
        one.act()  # the other is not asked: what is remembered does not depend on draws
        one.observe(arm, reward)
        other.observe(arm, reward)
        np.testing.assert_array_equal(np.array(one.state), np.array(other.state))
    if deterministic:
        assert one.act() == one.act() == other.act()


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    env = gymnasium.make(TASK)

    def _missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", _missing)
    with pytest.raises(ModuleNotFoundError) as caught:
        wgp_agents.make("ppo", env)
    assert "agent 'ppo' needs the extra 'rl'" in str(caught.value)
    assert "Install wgp-gym[rl]" in str(caught.value)


def test_what_is_shown_is_clipped_as_in_the_observation() -> None:
    made = model("ppo", 2)
    agents = [SB3Agent(gymnasium.make(TASK), algo="ppo", model=made) for _ in range(2)]
    told, seeing = agents
    told.reset(0)
    seeing.predict(np.zeros(4, np.float32))
    told.observe(50, -1e39)
    assert told.rows[0, 3] == np.float32(-1e12)
    told.reset(0)
    told.observe(50, 1e39)
    place = float(told.problem.domain[50, 0])
    seeing.predict(np.array([1 / 500, 1, place, 1e12], np.float32))
    np.testing.assert_array_equal(told.rows, seeing.rows)


@pytest.mark.slow
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_recurrent_policy_keeps_the_contract(deterministic: bool) -> None:
    made = model("recurrent-ppo", 1)
    check_agent("recurrent-ppo", parameters={"model": made, "deterministic": deterministic})


def test_each_act_draws_anew() -> None:
    env = gymnasium.make(TASK)
    env.reset(seed=0)
    agent = wgp_agents.make("ppo", env)
    agent.reset(0)
    assert len({agent.act() for _ in range(20)}) > 1
