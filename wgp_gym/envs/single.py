"""The environment of one episode at a time."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium import spaces

from wgp_gym.envs.interface import (
    TaskPlayer,
    action_space,
    check_options,
    checked_actions,
    observation_space,
    with_horizon,
)
from wgp_gym.envs.rendering import RENDER_MODES, checked_mode, render, view
from wgp_gym.envs.task import Task
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Action, Array, Floats32, Info, Json, Mask
from wgp_gym.validation import seed_list

__all__ = ["BanditEnv"]

NUMBERS = (
    "expected_reward",
    "optimal_reward",
    "regret",
    "cumulative_regret",
    "variation",
    "sup_variation",
    "changed",
)


class BanditEnv(TaskPlayer, gymnasium.Env[Floats32, Action]):
    """A bandit whose reward function lies in an RKHS and drifts within a variation budget.

    ## Description
    At step t = 1 .. T an action x_t is played and y_t = f_t(x_t) + eps_t is paid. The noise
    eps_t is Gaussian, or such that y_t is 1 with probability f_t(x_t), else 0. The functions f_t
    have RKHS norms of at most B, and their RKHS distances ||f_{t+1} - f_t|| add up to the
    variation budget B_T ([Deng22] Section 2). A task with a logistic link has
    1 / (1 + e^{-f_t}) in the place of f_t in the reward, in the regret and in `info`, but not in
    B, B_T and `variation`.

    ## Action Space
    `Discrete(n)`: the points of the domain D, the arms of a table, or, where arms are drawn anew
    at each step (`problem.contextual`), the arms that the last observation shows. With
    `continuous=True` `Box(0, 1, (d,))`: any point of the box.

    ## Observation Space
    `Box(float32, (3 + d,))`: what a learner may know, and no more. Where arms are drawn anew at
    each step `(3 + d + n d,)`.

    | index | observation | min | max |
    |---|---|---|---|
    | 0 | t / T, steps played over horizon | 0 | 1 |
    | 1 | whether there is a last action | 0 | 1 |
    | 2 .. d + 1 | the last action's place in [0, 1]^d | 0 | 1 |
    | d + 2 | the last reward, clipped | -1e12 | 1e12 |
    | d + 3 .. d + 2 + n d | where drawn anew: the next action's arms, one after the other | 0 | 1 |

    After the end the arms are those of step T again.

    ## Reward and Regret
    The reward is y_t, rounded to single precision. The regret max_x f_t(x) - f_t(x_t) stands in
    `info`, for the scorer alone.

    ## Starting State
    Functions and noise are drawn at `reset`, whatever is played later.

    ## Episode Truncation
    After T steps. A bandit does not end: `terminated` is always False, and what a play is worth
    does not hang on how many are left. A learner that looks ahead (stable-baselines3) therefore
    adds the value of the last observation at T, as if it went on. T is `horizon`; to
    `gymnasium.make` itself `max_episode_steps` is a `TimeLimit`, which cuts the episode of T steps
    short and changes neither its functions nor what a learner is told.

    ## Info
    The same keys after `reset` and `step`: `t`, `expected_reward` f_t(x_t), `optimal_reward`,
    `optimal_action`, `regret`, `cumulative_regret`, `variation` (RKHS) and `sup_variation` spent
    up to f_t, `changed` (f_t differs from f_{t-1}). After `reset` the optimum is that of f_1 and
    the rest is 0 or False. Where arms come and go (`NewsTask`) there is `action_mask`, too: which
    arms are there for the next action, `(n,)` of int8, as `Discrete.sample(mask)` takes it. Any
    arm may be played; one that is not there pays what the task says.

    ## Arguments
    Those of the task: see `SyntheticTask`, `MarkovTask`, `stock_task`, `table_task`, `LinearTask`,
    `ArmsTask`, `PricingTask`, `BeamTask`, `SensorsTask`, `LowerBoundTask`, `NewsTask` and
    `KnobsTask`. `render_mode`: "rgb_array" or "ansi", a scorer's view of f_t, its optimum and the
    plays so far. Where rewards are not 0 or 1, `noise` is "gaussian", "student-t", "laplace",
    "heteroscedastic" or "outliers": see `wgp_gym.envs.noise.make_noise`.

    Where the task's class names them in `drawable`, arguments may be laws, drawn anew for each
    episode, from a stream of their own: `noise_std=[0.05, 1.0]`, `lengthscale=[0.05, 0.5]` and
    `eps=[0.001, 0.1]` log-uniform, `kernel=["se", "matern"]` uniform, `change_points="random"`
    with `change_rate`, the probability of a change at each step from the second on (a number, or
    [low, high]). An episode stays a function of (seed, k), and its numbers are those of the task
    that was drawn. `told="drawn"` (the default): `problem` says what was drawn; "law": only what
    is known of all episodes. See `RandomTask`. `continuous` tasks have one kernel.

    ## Version History
    v0: first version.

    Args:
        task: A `Task`, or the "module:name" of its class or of a function that returns it.
        render_mode: None, "rgb_array" or "ansi".
        **parameters: The arguments of what is named; `max_episode_steps` stands for `horizon`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 4}  # noqa: RUF012

    def __init__(
        self, task: str | Task, *, render_mode: str | None = None, **parameters: Json
    ) -> None:
        self.render_mode = checked_mode(render_mode, "BanditEnv")
        self._begin(task, with_horizon(task, parameters, "BanditEnv"), 1, render_mode)
        self.observation_space: spaces.Space[Floats32] = observation_space(self.task)
        self.action_space = action_space(self.task)

    @property
    def problem(self) -> BanditProblem:
        """What a learner may know of this episode; before the first reset, of the task."""
        return self.dynamics.single_problem

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[Floats32, Info]:
        """Draw the next episode.

        Args:
            seed: Starts the generator anew; None goes on with it.
            options: Parameters for this episode, in the place of those that the task was made
                with: the `drawable` ones of its class, as {"noise_std": 0.5, "change_points":
                [100]}. All else that the seed draws stays, the functions as long as there are as
                many changes. The next reset without options is as the task was made.

        Returns:
            The first observation, `(3 + d,)` or `(3 + d + n d,)`, and the info.

        Raises:
            ValueError: If the seed is no int of at least 0, a parameter is out of its range, or
                there is another option.
        """
        taken = self._taken(check_options(options, "BanditEnv.reset", self._settable))
        super().reset(seed=seed_list(seed, 1)[0])
        taken.reset([self.np_random])
        self.dynamics = taken  # last: what is refused leaves the episode as it was
        return self.dynamics.observation()[0], self._info()

    def step(self, action: Action) -> tuple[Floats32, float, bool, bool, Info]:
        """Play an action.

        Args:
            action: An arm's index, or a point of the box, `(d,)`.

        Returns:
            The observation, as `reset` returns it, the reward y_t, False, whether this was step
            T, and the info.

        Raises:
            ValueError: If the action is not in the action space.
            ResetNeeded: If the episode is over or was never begun.
        """
        self.dynamics.step(checked_actions(self.action_space, action)[None])
        dynamics = self.dynamics
        reward = float(dynamics.reward[0])
        return dynamics.observation()[0], reward, False, dynamics.over, self._info()

    def _info(self) -> Info:
        info = self.dynamics.info()
        for name in NUMBERS:
            info[name] = info[name].item()
        best = info["optimal_action"]
        info["optimal_action"] = best[0].copy() if self.task.continuous else best.item()
        if self.task.masked:
            info["action_mask"] = info["action_mask"][0].copy()
        return info

    def expected_rewards(self) -> Array:
        """Return, on the domain, the function that the next action meets, `(n,)`.

        Where arms are drawn anew at each step, it is on the arms that the observation shows.

        Raises:
            ResetNeeded: If there was no reset yet.
        """
        rewards: Array = self.dynamics.expected_rewards()[0]
        return rewards

    def optimal_action(self) -> Action:
        """Return where this function is largest: an arm's index, or a point `(d,)`."""
        best = self.dynamics.optimal_actions()[0]
        return best if self.task.continuous else int(best)

    def available(self) -> Mask:
        """Return which arms the next action may choose, `(n,)`: all, where none come and go.

        Raises:
            ResetNeeded: If there was no reset yet.
        """
        there: Mask = self.dynamics.available()[0]
        return there

    action_masks = available  # sb3-contrib's name for it

    def function_changes(self) -> bool:
        """Return whether the next action meets another function than the one before it.

        False before the first step and after the end.

        Raises:
            ResetNeeded: If there was no reset yet.
        """
        return bool(self.dynamics.function_changes()[0])

    def render(self) -> Any:  # a picture or a text, as the mode says
        """Return the picture, `(height, width, 3)` of uint8, or the text of this moment."""
        if self.render_mode is None:
            return None
        return render(view(self.dynamics, 0), self.render_mode)
