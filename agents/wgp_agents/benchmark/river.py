"""Our agents as policies of river's `bandit.evaluate`; river itself is not imported."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Hashable
from functools import partial
from typing import Any, SupportsFloat

import gymnasium

from wgp_agents.base import Agent
from wgp_agents.core.units import Units
from wgp_agents.core.wrapped import read_wrappers
from wgp_agents.registry import make
from wgp_gym.envs.task import Task
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Action, Observation
from wgp_gym.validation import reject

__all__ = ["KeepRegret", "RiverPolicy"]


class RiverPolicy:
    """A learner with the methods that river asks of a bandit policy.

    river draws each episode in a copy of the environment that no policy is shown. So the learner
    knows what is known before the draw; B and B_T, where it needs them, must be given to the
    environment, or to the agent as `norm_bound` and `variation_budget`.

    Args:
        agent: A name as `wgp_agents.make` takes it, or a class of agents.
        env: The environment whose arms are played, or a `BanditProblem`.
        seed: The learner's seed, the same in every episode, as in river's own policies.
        **parameters: The agent's own parameters.

    Raises:
        ValueError: If it is not a single environment of `wgp_gym` with arms, or a wrapper plays
            other arms than those it is given.
        RuntimeError: If the agent needs B and is not told it.
        TypeError: If the agent needs the truth: there is no oracle in river.
    """

    def __init__(
        self,
        agent: str | Callable[..., Agent],
        env: gymnasium.Env[Observation, Action] | BanditProblem,
        seed: int | None = None,
        **parameters: object,
    ) -> None:
        task = getattr(env.unwrapped, "task", None) if isinstance(env, gymnasium.Env) else None
        problem = task.problem() if isinstance(task, Task) else env
        single = getattr(problem, "batch_size", None) is None
        if not isinstance(problem, BanditProblem) or problem.continuous or not single:
            reject("env", "RiverPolicy", "a single environment of wgp_gym with arms", env)
        if problem.contextual:  # river shows no policy what the arms are like now
            reject("env", "RiverPolicy", "one whose arms stay the same", env)
        self._again = partial(RiverPolicy, agent, problem, seed, **parameters)
        self.agent = (partial(make, agent) if isinstance(agent, str) else agent)(
            problem, **parameters
        )
        rewritten = read_wrappers(env, "RiverPolicy").rewards
        if rewritten and self.agent.takes_units:
            Units(type(self.agent).__name__, 1).changed(rewritten, problem, stacklevel=4)
        self.agent.reset(seed)
        self._size = len(problem.domain)
        self._arms: dict[Hashable, int] = {}  # by the names that `pull` gives them first
        self._n = 0  # what river's `evaluate_offline` returns

    def clone(self) -> RiverPolicy:
        """Return such a learner that has learned nothing: river plays one in each episode."""
        return self._again()

    def pull(self, arm_ids: Collection[Hashable]) -> Hashable:
        """Return the arm to play, one of `arm_ids`.

        Args:
            arm_ids: A name for each arm. The first call gives them in the domain's order; later
                ones name the same arms, in any order.

        Raises:
            ValueError: If there is not one for each arm, or other arms are named than before.
        """
        names = list(arm_ids)
        if not self._arms:
            self._arms = self._named(names)
        elif len(names) != self._size or set(names) != set(self._arms):
            reject("arm_ids", "RiverPolicy.pull", "the same arms as before", names)
        arm: int = self.agent.act()
        return list(self._arms)[arm]

    def _named(self, names: list[Hashable]) -> dict[Hashable, int]:
        """Return the number of each arm by its name."""
        numbers = {name: i for i, name in enumerate(names)}
        if len(names) != self._size or len(numbers) != self._size:
            reject("arm_ids", "RiverPolicy.pull", f"different names of {self._size} arms", names)
        return numbers

    def update(self, arm_id: Hashable, reward: float) -> None:
        """Learn what the arm of that name has paid, now or earlier.

        Raises:
            ValueError: If there is no such arm, or the reward is missing or not finite.
        """
        if arm_id not in self._arms:
            reject("arm_id", "RiverPolicy.update", "one of the arms that `pull` named", arm_id)
        self.agent.observe(self._arms[arm_id], reward)
        self._n += 1


class KeepRegret(gymnasium.Wrapper[Observation, Action, Observation, Action]):
    """Keeps the regrets of all finished episodes in `regrets`, also of those played in deep copies.

    river plays in copies and drops the infos. Its episodes stand there in turn, and within each
    the policies in their order.

    Args:
        env: An environment of `wgp_gym`.
    """

    def __init__(self, env: gymnasium.Env[Observation, Action]) -> None:
        super().__init__(env)
        self.regrets: list[float] = []

    def __deepcopy__(self, memo: dict[int, object]) -> KeepRegret:
        """Return a copy with a copied environment and the same list."""
        copied = KeepRegret(copy.deepcopy(self.env, memo))
        copied.regrets = self.regrets
        return copied

    def step(self, action: Action) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Play an action."""
        played = self.env.step(action)
        if played[3]:
            self.regrets.append(played[4]["cumulative_regret"])
        return played
