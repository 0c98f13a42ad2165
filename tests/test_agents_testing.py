"""`check_agent`: every agent of the table keeps the contract, and broken ones are found out."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
import own_bandit  # noqa: F401  (registers Coins-v0)
import pytest
from conftest import tasks_of
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.registry import AGENTS
from wgp_agents.testing import BrokenContract, check_agent
from wgp_gym.types import Array, Mask

SHORT: dict[str, Any] = {
    name: {"hidden": 8, "updates": 1} for name in ("neural-greedy", "neural-ucb", "neural-ts")
}


QUICK = ("wgp-ucb", "d-lin-ucb", "d-ts", "exp3-s", "random", "oracle-restart")
EVERY = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in wgp_agents.names()
]


@pytest.mark.parametrize("name", EVERY)
def test_every_agent_keeps_the_contract(name: str) -> None:
    check_agent(name, tasks_of(name)[0], parameters=SHORT.get(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wgp-ucb", "lin-ucb", "random", "oracle"])
def test_also_where_arms_are_drawn_anew(name: str) -> None:
    check_agent(name, "WGPBandit-LinearContextual-v0")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wgp-ucb", "random", "oracle"])
def test_also_on_a_box(name: str) -> None:
    check_agent(name, kwargs={"horizon": 48, "continuous": True})


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("ppo", marks=pytest.mark.slow), "dqn"])
def test_also_by_a_trained_policy(name: str) -> None:
    check_agent(name, kwargs={})


class Greedy(Agent):
    """Plays an arm at random, or with chance 1/2 the best so far: it keeps the contract."""

    takes_allowed = True

    def __init__(self, env: EnvLike, *, chance: float = 0.5) -> None:
        super().__init__(env)
        self.chance = chance
        self.sums = np.zeros((self.num_learners, len(self.problem.domain)))

    def _restart(self, mask: Mask) -> None:
        self.sums[mask] = 0.0

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        explores, drawn = uniform.draw() < self.chance, uniform.draw()
        allowed = np.ones(self.sums.shape, bool) if self.allowed is None else self.allowed
        rank = (drawn * allowed.sum(axis=1)).astype(int)
        anywhere = (allowed.cumsum(axis=1) > rank[:, None]).argmax(axis=1)
        best = np.where(allowed, self.sums, -np.inf).argmax(axis=1)
        chosen: NDArray[np.int64] = np.where(explores, anywhere, best)
        return chosen

    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        rows = np.flatnonzero(active)
        self.sums[rows, actions[rows]] += rewards[rows]


class Outside(Greedy):
    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        return super()._choose(uniform) + 100


class Floats(Greedy):
    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        return super()._choose(uniform).astype(float)


class Remembers(Greedy):
    def _restart(self, mask: Mask) -> None:
        """Forget nothing."""


class Together(Greedy):
    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        super()._learn(actions, np.full_like(rewards, rewards[active].mean()), active)


class Eager(Greedy):
    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        super()._learn(actions, rewards, np.ones_like(active))


class AllAtOnce(Greedy):
    def _restart(self, mask: Mask) -> None:
        self.sums[:] = 0.0


class Heedless(Greedy):
    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        self.allowed = None
        return super()._choose(uniform)


class Permissive(Greedy):
    takes_allowed = False

    def act(self, observation: Any = None, *, allowed: Any = None) -> Any:
        return super().act(observation)


class Unpicklable(Greedy):
    def __init__(self, env: EnvLike) -> None:
        super().__init__(env)
        self.rule = lambda x: x


class Unwritable(Greedy):
    def __init__(self, env: EnvLike) -> None:
        super().__init__(env)
        self.seen = {1, 2}


class Forgetful(Greedy):
    _constants = ("sums",)


class Shared:
    """An array that copies have in common."""

    def __init__(self) -> None:
        self.array = np.zeros(0)

    def __deepcopy__(self, memo: Any) -> Shared:
        return self


class Twins(Greedy):
    def __init__(self, env: EnvLike) -> None:
        self.kept = Shared()
        super().__init__(env)

    @property
    def sums(self) -> Array:
        return self.kept.array

    @sums.setter
    def sums(self, values: Array) -> None:
        self.kept.array = values


class Hasty(Greedy):
    def observe(self, action: Any, reward: Any, **others: Any) -> None:
        self.sums = np.roll(self.sums, 1, axis=1)
        super().observe(action, reward, **others)


class Accepting(Greedy):
    def observe(self, action: Any, reward: Any, **others: Any) -> None:
        super().observe(action, np.nan_to_num(np.array(reward, float)), **others)


class Global(Greedy):
    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        np.random.random()  # noqa: NPY002
        return super()._choose(uniform)


class Own(Greedy):
    """Draws from a generator of its own, which no seed reaches."""

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        return np.random.default_rng().integers(100, size=self.num_learners)


class Bare(Greedy):
    def predict(self, *given: Any, **named: Any) -> Any:
        return super().predict(*given, **named)[0]


class Quiet(Greedy):
    learns_by_acting = False

    def __init__(self, env: EnvLike) -> None:
        super().__init__(env)
        self.choices = np.zeros(self.num_learners)

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        self.choices += 1
        return super()._choose(uniform)


class Ageless(Greedy):
    def observe(self, action: Any, reward: Any, *, elapsed: Any = 1.0, **others: Any) -> None:
        super().observe(action, reward, **others)


class Steadfast(Greedy):
    learns_by_acting = False

    def reseed(self, seed: Any = None, *, learners: Any = None) -> None:
        pass


class Halves(Greedy):
    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        return super()._choose(uniform) + 0.5 * (self.num_learners == 1)


class Untimed(Greedy):
    takes_elapsed = True


class Timed(Greedy):
    """Plays the best discounted sum, and takes time: it keeps the contract."""

    takes_elapsed = True

    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        self._learn_elapsed(actions, rewards, active, np.ones_like(rewards))

    def _learn_elapsed(
        self, actions: NDArray[Any], rewards: Array, active: Mask, elapsed: Array
    ) -> None:
        self._elapse(elapsed, active)
        super()._learn(actions, rewards, active)

    def _elapse(self, steps: Array, active: Mask) -> None:
        self.sums[active] *= 0.9 ** steps[active, None]

    def bounds(self) -> Array | None:
        return self.sums.copy() if self.batched else self.sums[0].copy()


class Leaking(Timed):
    def _learn_elapsed(
        self, actions: NDArray[Any], rewards: Array, active: Mask, elapsed: Array
    ) -> None:
        if (elapsed != 1).any():
            self.sums = np.roll(self.sums, 1, axis=1)
        super()._learn_elapsed(actions, rewards, active, elapsed)


class Spreading(Timed):
    def _elapse(self, steps: Array, active: Mask) -> None:
        self.sums *= 0.9 ** steps[:, None]


class PlaysAreTime(Timed):
    def _learn_elapsed(
        self, actions: NDArray[Any], rewards: Array, active: Mask, elapsed: Array
    ) -> None:
        self.sums[active] *= 0.5
        Greedy._learn(self, actions, rewards, active)

    def _elapse(self, steps: Array, active: Mask) -> None: ...


class Hopeful(Greedy):
    def _hallucinate(self, actions: NDArray[Any], active: Mask) -> None:
        self.sums[np.arange(self.num_learners), actions] -= 5.0


class Certain(Greedy):
    def propensities(self) -> Array | None:
        return np.full(self.sums.shape if self.batched else 100, 0.9)


class ForOne(Greedy):
    def propensities(self) -> Array | None:
        return np.full(100, 0.01)


class Elsewhere(Greedy):
    def propensities(self) -> Array | None:
        found = np.zeros(self.sums.shape)
        found[:, 99] = 1.0
        return found if self.batched else found[0]


class Narrow(Greedy):
    def bounds(self) -> Array | None:
        return np.zeros(3)


class Unknown(Greedy):
    def bounds(self) -> Array | None:
        return np.full(self.sums.shape if self.batched else 100, np.nan)


class Deaf(Greedy):
    def predict(self, *given: Any, **named: Any) -> Any:
        return self.act(), None


BROKEN: list[tuple[type[Agent], str]] = [
    (Outside, "act returns 1.* The contract: with one environment an action is an int of at"),
    (Floats, r"act fails \(Floats\._choose must return the indices of arms, ints, an array \(1,\)"),
    (Halves, r"act fails .* The contract: with one environment an action is an int of at"),
    (Untimed, r"It says takes_elapsed = True, and has no _learn_elapsed\. The contract: an agent"),
    (Leaking, r"With others' time learner \d plays otherwise: .* and of no other\."),
    (Spreading, r"With others active learner \d plays otherwise: .* and no other\."),
    (PlaysAreTime, r"It takes elapsed and goes by the order of plays at one time\. The contract"),
    (Hopeful, r"After others' hallucinate learner \d plays otherwise: .* and no other\."),
    (Certain, r"propensities\(\) returns .* The contract: propensities\(\) returns None or the"),
    (ForOne, r"propensities\(\) returns .* an array \(3, 100\): they add up to 1"),
    (Elsewhere, r"propensities\(\) returns .* and that of the arm chosen is above 0\."),
    (Narrow, r"bounds\(\) returns .* The contract: bounds\(\) returns None or the upper bounds"),
    (Unknown, r"bounds\(\) returns .* an array \(100,\)\."),
    (Remembers, r"After reset\(seed\) it plays otherwise: .* and nothing learned is left\."),
    (Own, r"After reset\(seed\) it plays otherwise"),
    (Together, r"Learner \d of [23] plays otherwise than the single one: .* whatever B is\."),
    (Unpicklable, r"pickle fails \(.*\)\. The contract: pickle gives an agent that goes on"),
    (Unwritable, r"state_dict fails \(TypeError: agent\.seen must be made of"),
    (Forgetful, r"After state_dict it plays otherwise"),
    (Twins, r"A deepcopy of a deepcopy plays otherwise.* and apart from it\."),
    (Hasty, "After refusals it plays otherwise: .* and changes nothing"),
    (Accepting, r"observe takes the reward nan\. The contract: observe raises ValueError"),
    (Eager, r"With others active learner \d plays otherwise: .* and no other\."),
    (AllAtOnce, r"After others' reset learner \d plays otherwise: .* and no other\."),
    (Heedless, r"Arms .* are not allowed\. The contract: act\(allowed=mask\) plays only"),
    (Permissive, r"act takes a mask, and takes_allowed is False\. The contract: act\(allowed"),
    (Bare, r"predict returns .* The contract: predict\(observation, episode_start"),
    (Deaf, r"predict plays .* instead of .* at step \d+\. The contract: predict"),
    (Quiet, r"act changes agent\.choices\. The contract: act changes streams, arms and allowed"),
    (Ageless, r"It takes 0\.5 steps\. The contract: observe and elapse take numbers of at least 0"),
    (Steadfast, r"After reseed it plays otherwise: .* a function of the seed\."),
    (Global, r"It draws from, or seeds, a global random generator\. The contract: an agent"),
]


@pytest.mark.parametrize(
    ("broken", "message"), BROKEN, ids=lambda one: getattr(one, "__name__", "")
)
def test_a_broken_agent_is_found_out(broken: type[Agent], message: str) -> None:
    with pytest.raises(BrokenContract, match=f"^{broken.__name__}: (?s:.*){message}") as caught:
        check_agent(broken)
    assert len(str(caught.value)) < 400


@pytest.mark.slow
def test_agents_of_ones_own() -> None:
    check_agent(Greedy)
    check_agent(Greedy, parameters={"chance": 0.9})
    check_agent(Timed)
    check_agent(f"{__name__}:Greedy", "Coins-v0", kwargs={"horizon": 48})
    check_agent("own_bandit:Stubborn", "Coins-v0", kwargs={"horizon": 48})
    with pytest.raises(BrokenContract, match=re.escape("What is made is a dict.")):
        check_agent(lambda env: {})  # type: ignore[arg-type, return-value]
    assert "Greedy" not in AGENTS


def test_what_no_agent_may_choose_is_refused_where_it_plays() -> None:
    for broken in (Halves, Floats):
        agent = broken(gymnasium.make("WGPBandit-Abrupt-v0"))
        agent.reset(0)
        with pytest.raises(TypeError, match=f"^{broken.__name__}._choose must return the indices"):
            agent.act()
        with pytest.raises(TypeError, match=r"Got <an array of shape \(1,\), float64"):
            agent.predict(np.zeros(4, np.float32))


def test_an_agent_that_says_it_takes_time_must_say_how() -> None:
    agent = Untimed(gymnasium.make("WGPBandit-Abrupt-v0"))
    agent.reset(0)
    with pytest.raises(NotImplementedError, match=r"Untimed says .* must have the method _elapse"):
        agent.elapse(2.0)
    with pytest.raises(NotImplementedError, match="it must have the method _learn_elapsed, which"):
        agent.observe(0, 1.0, elapsed=2.0)


def test_an_episode_must_be_long_enough() -> None:
    rule = "'kwargs' parameter of check_agent must be such that an episode has at least 48 steps"
    with pytest.raises(ValueError, match=rule):
        check_agent(Greedy, kwargs={"horizon": 20})
