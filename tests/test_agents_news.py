"""Agents where arms come and go: whoever takes a mask is shown it, wherever it is played."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import LEARNERS, fits, specimen
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import wgp_agents
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.evaluation import act
from wgp_gym.envs import BanditEnv, NewsTask, SyntheticTask, Task
from wgp_gym.envs.episode import Episode
from wgp_gym.kernels import Empirical, Linear
from wgp_gym.rkhs import linear_functions
from wgp_gym.schedules import piecewise_constant
from wgp_gym.types import Array, Mask
from wgp_gym.wrappers import SeededEpisodes

NAME = "WGPBandit-News-v0"
HORIZON = 40
MASKED = [n for n in LEARNERS if specimen(n).takes_allowed and fits(n, NAME)]


def shown_absent(env: Any, actions: NDArray[np.int64]) -> int:
    """Return how many of the actions `(B, T)` are headlines that were not there."""
    absent = 0
    for own, drawn in zip(actions, env.unwrapped.dynamics.episodes, strict=True):
        assert drawn.available is not None
        absent += int((~drawn.available[np.arange(len(own)), own]).sum())
    return absent


@pytest.mark.parametrize("name", MASKED)
def test_a_masked_agent_never_shows_an_absent_headline(name: str) -> None:
    env = make_vector(NAME, 3, horizon=HORIZON)
    played = rollout(wgp_agents.make(name, env), env, seed=4)
    assert shown_absent(env, played["action"]) == 0


@pytest.mark.parametrize("wrapped", ["single", "SameStep", "sync"])
def test_the_mask_is_found_however_it_is_played(wrapped: str) -> None:
    """The regret of an agent that is shown the mask by hand, in the same episode."""
    env: Any
    if wrapped == "single":
        env = gymnasium.make(NAME, horizon=HORIZON)
    elif wrapped == "sync":
        env = gymnasium.make_vec(NAME, 1, vectorization_mode="sync", horizon=HORIZON)
    else:
        env = make_vector(NAME, 1, horizon=HORIZON, autoreset_mode=wrapped)
    agent = wgp_agents.make("ucb1", env)
    found = rollout(agent, env, seed=2)["cumulative_regret"][0]
    bare = BanditEnv(NewsTask(horizon=HORIZON))
    by_hand = wgp_agents.make("ucb1", bare)
    observation, _ = bare.reset(seed=2)
    by_hand.reset(2)
    for t in range(HORIZON):
        action = by_hand.act(observation, allowed=bare.available())
        observation, reward, _, _, info = bare.step(action)
        by_hand.observe(action, reward)
        assert found[t] == info["cumulative_regret"]


def test_evaluate_shows_the_mask() -> None:
    """Thirty arms in turn take ucb1 thirty steps; of these the empty ones are left out."""
    found = wgp_agents.evaluate("ucb1", NAME, range(3), horizon=HORIZON)
    env = make_vector(NAME, 3, horizon=HORIZON)
    expected = rollout(wgp_agents.make("ucb1", env), env, seed=0)["cumulative_regret"][:, -1]
    np.testing.assert_array_equal(found.regrets, expected)


def test_evaluate_shows_the_mask_to_models_that_take_it() -> None:
    """As sb3-contrib's own evaluation does."""
    model = MaskablePPO("MlpPolicy", gymnasium.make(NAME, horizon=HORIZON), n_steps=64, seed=0)
    env = SeededEpisodes(gymnasium.make(NAME, horizon=HORIZON), range(3))
    expected: list[float] = []

    def keep(local: dict[str, Any], _: Any) -> None:
        if local["done"]:
            expected.append(local["info"]["cumulative_regret"])

    evaluate_policy(model, Monitor(env), n_eval_episodes=3, callback=keep)
    for played in (env, make_vector(NAME, 3, horizon=HORIZON)):
        found = wgp_agents.evaluate(model, played, range(3))
        np.testing.assert_array_equal(found.regrets, expected)


def test_who_keeps_to_no_mask_plays_all_the_same() -> None:
    env = make_vector(NAME, 3, horizon=HORIZON)
    agent = wgp_agents.make("exp3", env)
    agent.takes_allowed = False  # as an agent of somebody's own may be
    played = rollout(agent, env, seed=4)
    assert shown_absent(env, played["action"]) > 10
    oracle = rollout(wgp_agents.make("oracle", env), env, seed=4)
    assert not oracle["regret"].any()


def test_the_best_discount_in_hindsight_keeps_to_the_mask() -> None:
    env = make_vector(NAME, 2, horizon=HORIZON)
    agent = wgp_agents.make("oracle-discount", env, discounts=[0.9, 1.0])
    played = rollout(agent, env, seed=4)
    assert shown_absent(env, played["action"]) == 0


def test_the_mask_pays() -> None:
    """Of the same ten episodes: 117 with the mask, 165 without it."""
    env = make_vector(NAME, 10, horizon=500)
    regrets = []
    for sees in (True, False):
        agent = wgp_agents.make("ucb1", env)
        agent.takes_allowed = sees
        regrets.append(rollout(agent, env, seed=0)["cumulative_regret"][:, -1].mean())
    assert regrets[0] < 0.8 * regrets[1]


class Shifts(Task):
    """Three workers at -1, 0 and -2 a step; the second has -3 from step 3 on, and then leaves."""

    def __init__(self, there: Mask) -> None:
        super().__init__(
            kernel=Empirical(np.eye(3)),
            domain=np.linspace(0, 1, 3)[:, None],
            schedule=piecewise_constant(6, [3]),
            masked=True,
        )
        self.there = there

    def draw(self, rng: np.random.Generator) -> Episode:
        rewards: Array = np.array([[-1.0, 0.0, -2.0], [-1.0, -3.0, -2.0]])
        return self.episode(linear_functions(rewards), available=self.there)


def test_the_optimum_of_any_task_is_over_the_arms_that_are_there() -> None:
    """By hand, with negative rewards and a schedule of two functions for six steps."""
    there = np.ones((6, 3), bool)
    there[3:, 1] = there[0, 0] = False
    env = BanditEnv(Shifts(there))
    env.reset(seed=0)
    seen = []
    for _ in range(6):
        mask = env.available()
        info = env.step(2)[4]
        seen.append((info["optimal_action"], info["optimal_reward"], info["regret"], mask.sum()))
    first, second = (1, 0.0, 2.0), (0, -1.0, 1.0)
    assert seen == [(*first, 2), (*first, 3), (*second, 3), *[(*second, 2)] * 3]
    assert info["variation"] == 3.0


def test_masks_that_cannot_be() -> None:
    there = np.ones((6, 3), bool)
    there[0, 1] = False  # who would pay more than both others
    with pytest.raises(ValueError, match="'available' parameter of an episode must be True for an"):
        BanditEnv(Shifts(there)).reset(seed=0)
    with pytest.raises(ValueError, match=r"'available' .* at least one arm at each step"):
        BanditEnv(Shifts(np.zeros((6, 3), bool))).reset(seed=0)
    for wrong in (np.ones((5, 3), bool), np.ones((6, 3), np.int8), None):
        rule = r"'available' parameter of Shifts.episode must be an array \(6, 3\) of bools"
        with pytest.raises(ValueError, match=rule):
            BanditEnv(Shifts(wrong)).reset(seed=0)  # type: ignore[arg-type]
    plain = SyntheticTask("constant", horizon=6, points_per_dim=3)
    functions = linear_functions(np.ones((1, 3)))
    with pytest.raises(ValueError, match=r"'available' .* must be None where all arms stay"):
        plain.episode(functions, available=np.ones((6, 3), bool))


class Wrong(Task):
    """A box, or arms that are drawn anew, that come and go."""

    def __init__(self, *, continuous: bool = False, contextual: bool = False) -> None:
        super().__init__(
            kernel=Linear(),
            domain=np.linspace(0, 1, 3)[:, None],
            schedule=piecewise_constant(6, []),
            continuous=continuous,
            contextual=contextual,
            masked=True,
        )

    def draw(self, rng: np.random.Generator) -> Episode:
        raise NotImplementedError


def test_what_cannot_be_masked() -> None:
    rule = "The 'masked' parameter of Wrong must be False on a box, or where arms are drawn anew"
    with pytest.raises(ValueError, match=rule):
        Wrong(continuous=True)
    with pytest.raises(ValueError, match=rule):
        Wrong(contextual=True)


def test_a_mask_of_ints_is_one_of_truths() -> None:
    env = BanditEnv(NewsTask(horizon=9))
    observation, info = env.reset(seed=0)
    agent = wgp_agents.make("random", env)
    agent.reset(0)
    assert {act(agent, observation, info) for _ in range(200)} == set(
        np.flatnonzero(info["action_mask"]).tolist()
    )


def test_what_sb3_contrib_asks_for() -> None:
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
    from stable_baselines3.common.vec_env import DummyVecEnv

    envs = DummyVecEnv([lambda: gymnasium.make(NAME, horizon=9)] * 2)
    envs.seed(0)
    envs.reset()
    assert is_masking_supported(envs)
    masks = get_action_masks(envs)
    assert masks.shape == (2, 30)
    for i, mask in enumerate(masks):
        np.testing.assert_array_equal(mask, envs.reset_infos[i]["action_mask"])
