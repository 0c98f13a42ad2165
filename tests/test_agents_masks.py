"""`act(allowed=)`, `observe(active=)`, `reset(learners=)`: each learner as if it were alone."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import field, fits
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.base import Agent
from wgp_agents.registry import agent_class
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Mask

ARMS, STEPS, SEED, BATCH = 7, 12, 4, 3
SIZE = {"Abrupt": "points_per_dim", "LinearAbrupt": "num_arms", "ArmsAbrupt": "num_arms"}
CHANGING = "WGPBandit-LinearContextual-v0"

CASES = [(name, "fixed") for name in wgp_agents.names()]
CASES += [(name, "changing") for name in wgp_agents.names() if fits(name, CHANGING)]
MASKED = [(name, kind) for name, kind in CASES if agent_class(name).takes_allowed]
BOXES = [(name, "box") for name in ("wgp-ucb", "gp-ts", "pe-gp-ucb", "master", "random", "oracle")]


def make_env(name: str, kind: str, batch: int | None) -> Any:
    env_id = CHANGING if kind == "changing" else field(name)
    size = SIZE.get(env_id.removeprefix("WGPBandit-").removesuffix("-v0"), "num_arms")
    parameters: dict[str, Any] = {"horizon": 60, size: ARMS, "continuous": True}
    if kind != "box":
        del parameters["continuous"]
    if batch is None:
        return gymnasium.make(env_id, **parameters)
    mode = "vector_entry_point"
    return gymnasium.make_vec(env_id, num_envs=batch, vectorization_mode=mode, **parameters)


class Game:
    """An agent, its environment, and the observation at hand."""

    def __init__(self, name: str, kind: str, batch: int | None, seed: int = SEED) -> None:
        self.env = make_env(name, kind, batch)
        self.observation, _ = self.env.reset(seed=seed)
        self.agent = wgp_agents.make(name, self.env)
        self.agent.reset(seed + 10)

    def act(self, allowed: Any = None) -> NDArray[Any]:
        return np.asarray(self.agent.act(self.observation, allowed=allowed))

    def pay(self, action: Any) -> Any:
        """Let the environment take a step; return the reward."""
        self.observation, reward, *_ = self.env.step(action)
        return reward

    def tell(self, action: Any, reward: Any, active: Any = None) -> None:
        """Tell the agent, and of which arms, since it may have been shown some since."""
        arms = {} if self.agent.arms is None else {"arms": self.agent.arms}
        self.agent.observe(action, reward, active=active, **arms)


def said(agent: Agent) -> list[NDArray[Any]]:
    """Return what an agent says of the function, `(B, n)` each."""
    posterior = agent.posterior() if hasattr(agent, "posterior") else ()
    return [np.atleast_2d(part) for part in posterior]


def masks() -> NDArray[np.bool_]:
    """Return which arms are there at each step, `(T, B, n)`; at two steps only one for each."""
    found = np.random.default_rng(1).random((STEPS, BATCH, ARMS)) < 0.5
    found[:, np.arange(BATCH), [2, 6, 0]] = True
    found[[5, 9]] = np.eye(ARMS)[[5, 1, 3]], np.eye(ARMS)[[6, 6, 2]]
    return found


@pytest.mark.parametrize(("name", "kind"), MASKED)
def test_an_arm_that_is_not_there_is_not_played(name: str, kind: str) -> None:
    many, one = Game(name, kind, BATCH), Game(name, kind, None, SEED + 1)
    for t, there in enumerate(masks()):
        played = many.act(there)
        assert there[np.arange(BATCH), played].all(), t
        assert one.act(there[1]) == played[1], t
        many.tell(played, many.pay(played))
        one.tell(int(played[1]), one.pay(int(played[1])))
    for ours, theirs in zip(said(many.agent), said(one.agent), strict=True):
        np.testing.assert_array_equal(ours[1], theirs[0])


@pytest.mark.parametrize(("name", "kind"), MASKED)
def test_where_all_arms_are_there_a_mask_changes_nothing(name: str, kind: str) -> None:
    games = [Game(name, kind, BATCH) for _ in range(3)]
    given = [None, np.ones(ARMS, bool), np.ones((BATCH, ARMS), int)]
    for t in range(STEPS):
        actions = [game.act(allowed) for game, allowed in zip(games, given, strict=True)]
        for game, action in zip(games, actions, strict=True):
            np.testing.assert_array_equal(action, actions[0], str(t))
            game.tell(action, game.pay(action))
    for game in games[1:]:
        for ours, theirs in zip(said(games[0].agent), said(game.agent), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", [n for n in wgp_agents.names() if (n, "fixed") not in MASKED])
def test_who_does_not_keep_to_a_mask_takes_none(name: str) -> None:
    game = Game(name, "fixed", None)
    rule = f"must be left out: {type(game.agent).__name__} does not keep to a mask. Got"
    with pytest.raises(ValueError, match=f"'allowed' parameter of act {rule}"):
        game.act(np.ones(ARMS, bool))
    game.act()


@pytest.mark.parametrize("batch", [None, BATCH])
@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(ARMS, bool),
        np.ones(ARMS + 1, bool),
        np.ones((2, ARMS), bool),
        np.ones((BATCH, ARMS)) * [[1], [0], [1]],
        np.full(ARMS, 0.5),
        np.full(ARMS, np.nan),
        ["yes"] * ARMS,
        True,
    ],
    ids=["none", "long", "two rows", "none of one", "halves", "nan", "words", "a number"],
)
def test_masks_that_are_refused(wrong: Any, batch: int | None) -> None:
    game = Game("wgp-ucb", "fixed", batch)
    rule = r"must be True for at least one arm of each learner, in an array \(7,\) or \([13], 7\)"
    twin = copy.deepcopy(game.agent)
    with pytest.raises(ValueError, match=f"'allowed' parameter of act {rule}"):
        game.act(wrong)
    np.testing.assert_array_equal(game.act(), twin.act(game.observation))


@pytest.mark.parametrize("name", ["wgp-ucb", "master", "pe-gp-ucb"])
def test_a_box_has_no_arms(name: str) -> None:
    game = Game(name, "box", None)
    with pytest.raises(ValueError, match="'allowed' parameter of act must be left out: a box has"):
        game.act(np.ones(ARMS, bool))


def part(values: Any, active: Mask) -> list[Any]:
    """Return what is told of the active learners, and nonsense of the others."""
    nonsense = [None, float("nan"), "?"]
    told = zip(values, active, nonsense, strict=True)
    return [value if learns else other for value, learns, other in told]


@pytest.mark.parametrize(("name", "kind"), CASES + BOXES)
def test_who_has_nothing_to_learn_is_as_if_nobody_had_spoken(name: str, kind: str) -> None:
    many, one = Game(name, kind, BATCH), Game(name, kind, None, SEED + 1)
    active = np.random.default_rng(2).random((STEPS, BATCH)) < 0.6
    active[3], active[7] = [True, False, True], False
    for t, learns in enumerate(active):
        played, lone = many.act(), one.act()
        np.testing.assert_array_equal(lone, played[1], str(t))
        before = said(many.agent)
        many.tell(part(played, learns), part(many.pay(played), learns), learns)
        for new, old in zip(said(many.agent), before, strict=True):
            np.testing.assert_array_equal(new[~learns], old[~learns])
        paid = one.pay(lone if kind == "box" else int(lone))
        if learns[1]:
            one.tell(lone if kind == "box" else int(lone), paid)
    for ours, theirs in zip(said(many.agent), said(one.agent), strict=True):
        np.testing.assert_array_equal(ours[1], theirs[0])


@pytest.mark.parametrize(("name", "kind"), CASES + BOXES)
def test_who_starts_anew_is_the_learner_of_that_seed(name: str, kind: str) -> None:
    many, on, one = (
        Game(name, kind, BATCH),
        Game(name, kind, BATCH),
        Game(name, kind, None, SEED + 1),
    )
    anew, others = np.array([False, True, False]), np.array([True, False, True])
    for t in range(STEPS):
        if t == STEPS // 2:
            many.agent.reset(50, learners=anew)
            one.agent.reset(51)
        played, went_on = many.act(), on.act()
        paid = many.pay(played)
        on.env.step(played)
        np.testing.assert_array_equal(played[others], went_on[others], str(t))
        lone = played[1] if kind == "box" else int(played[1])
        if t >= STEPS // 2:
            np.testing.assert_array_equal(one.act(), lone, str(t))
        one.pay(lone)
        many.tell(played, paid)
        on.observation = many.observation
        on.tell(played, paid, None if t < STEPS // 2 else others)
        if t >= STEPS // 2:
            one.tell(lone, float(paid[1]))
    for new, old, fresh in zip(said(many.agent), said(on.agent), said(one.agent), strict=True):
        np.testing.assert_array_equal(new[others], old[others])
        np.testing.assert_array_equal(new[1], fresh[0])


@pytest.mark.parametrize("wrong", [[True, False], [0, 2, 1], "some", [None, 1, 1]], ids=str)
def test_learners_that_are_not_there(wrong: Any) -> None:
    game = Game("wgp-ucb", "fixed", BATCH)
    rule = r"must be True or False, in an array \(3,\)"
    with pytest.raises(ValueError, match=f"'active' parameter of observe {rule}"):
        game.agent.observe([0, 1, 2], [0.0, 1.0, 2.0], active=wrong)
    with pytest.raises(ValueError, match=f"'learners' parameter of reset {rule}"):
        game.agent.reset(learners=wrong)
    assert not said(game.agent)[0].any()


def test_what_active_learners_are_told_is_checked() -> None:
    game = Game("wgp-ucb", "fixed", BATCH)
    with pytest.raises(ValueError, match="'reward' parameter of observe must be finite numbers"):
        game.agent.observe([0, 1, 2], [0.0, np.nan, np.nan], active=[True, True, False])
    with pytest.raises(ValueError, match="'action' parameter of observe must be an int in"):
        game.agent.observe([0, ARMS, 2], [0.0, 1.0, 2.0], active=[False, True, False])
    game.agent.observe("nothing", None, active=False)
    assert not said(game.agent)[0].any()


def test_before_the_first_reset_all_must_start() -> None:
    each, domain = np.ones(2), np.linspace(0.0, 1.0, ARMS)[:, None]
    problem = BanditProblem(SquaredExponential(0.2), domain, 9, 0.1, each, each)
    agent = wgp_agents.make("wgp-ucb", problem)
    with pytest.raises(RuntimeError, match=r"Reset all learners first, by WGPUCB\.reset\(\)"):
        agent.reset(0, learners=[True, False])
    agent.reset(0, learners=[True, True])
    assert agent.act() is not None
