"""A user's environment and a user's agent, in a module of their own: three coins that swap."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.kernels import Empirical
from wgp_gym.problem import BanditProblem

MEANS = np.array([0.2, 0.5, 0.8])


class Coins(gymnasium.Env[NDArray[np.float32], Any]):
    """Three coins, whose chances of 1 are turned round once, in the middle."""

    def __init__(self, horizon: int = 40, bias: float = 0.0) -> None:
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Box(-1e12, 1e12, (4,), np.float32)
        self.horizon, self.bias, self.t = horizon, bias, 0
        places = np.linspace(0.0, 1.0, 3)[:, None]
        self.problem = BanditProblem(
            Empirical(np.eye(3)), places, horizon, 0.5, 1.0, 2.0, reward_range=(0.0, 1.0)
        )

    def expected_rewards(self) -> NDArray[np.float64]:
        means = MEANS if 2 * self.t < self.horizon else MEANS[::-1]
        return means * (1 - self.bias)

    def optimal_action(self) -> int:
        return int(self.expected_rewards().argmax())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.t, self.regret = 0, 0.0
        self.uniform = self.np_random.random(self.horizon)
        return np.zeros(4, np.float32), self._info(self.optimal_action(), False)

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        means = self.expected_rewards()
        changed = self.t > 0 and 2 * self.t >= self.horizon > 2 * (self.t - 1)
        info_of = self.optimal_action()
        reward = float(self.uniform[self.t] < means[action])
        self.regret += means.max() - means[action]
        self.t += 1
        shown = [self.t / self.horizon, 1.0, action / 2, reward]
        info = self._info(info_of, changed) | {
            "expected_reward": float(means[action]),
            "regret": float(means.max() - means[action]),
        }
        return np.array(shown, np.float32), reward, False, self.t == self.horizon, info

    def _info(self, best: int, changed: bool) -> dict[str, Any]:
        return {
            "t": self.t,
            "expected_reward": 0.0,
            "optimal_reward": 0.8 * (1 - self.bias),
            "optimal_action": best,
            "regret": 0.0,
            "cumulative_regret": float(self.regret),
            "variation": float(2 * self.t > self.horizon),
            "sup_variation": float(2 * self.t > self.horizon),
            "changed": changed,
        }


class Stubborn(wgp_agents.Agent):
    """Plays one arm, whatever happens; with `arm` -1 the last."""

    def __init__(self, env: EnvLike, *, arm: int = -1) -> None:
        super().__init__(env)
        self.arm = arm % len(self.problem.domain)

    def _restart(self, mask: NDArray[np.bool_]) -> None: ...

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        return np.full(self.num_learners, self.arm)

    def _learn(self, actions: Any, rewards: Any, active: Any) -> None: ...


if "Coins-v0" not in gymnasium.registry:
    gymnasium.register("Coins-v0", entry_point=f"{__name__}:Coins")
