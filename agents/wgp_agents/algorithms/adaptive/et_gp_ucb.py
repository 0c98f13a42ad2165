"""ET-GP-UCB: restarts once an observation does not fit its posterior."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.action_sets import Plays
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.bayes_width import BoxWidth, bayes_parameters, bayes_width
from wgp_agents.gp.confidence import GivenWidth
from wgp_agents.gp.model import ModelParameters
from wgp_agents.gp.restart_rule import RestartRule
from wgp_agents.gp.surrogates.base import Surrogate, forget_all
from wgp_agents.gp.surrogates.weighted import RestartSurrogate
from wgp_agents.parameters import per_learner
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask

__all__ = ["ETGPUCB", "EventTrigger"]


class ETGPUCB(GPAgent):
    """Event-triggered GP-UCB: all data since the last event, equally weighted.

    An event is a reward y of x with |y - mean(x)| > rho_t^{1/2} std(x) + w_t. The agent then
    forgets all but that reward and resets its clock t to 1: see `EventTrigger`. No rate of change
    is needed. While nothing changes there is an event with probability at most `alarm_delta`.

    Source: [BRST25] Brunzema, von Rohr, Solowjow, Trimpe. Event-Triggered Time-Varying Bayesian
    Optimization. TMLR 2025, algorithm ET-GP-UCB.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        alarm_delta: delta_B, the probability in (0, 1) of an event while nothing changes, scalar
            or `(B,)`.
        confidence_width: beta_t^{1/2}, the factor of the standard deviation, as in `TVRGPUCB`;
            "theory" on a box: `BoxWidth`. Its t goes on over the events.
        delta: The probability in (0, 1) with which the bound of "theory" may fail.
        **common: `regularization`, `noise_scale` and `features`, as in `GPUCB`. The noise variance
            in w_t is the model's, `regularization`.

    Attributes:
        resets: The events of this episode, `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    takes_elapsed = False

    def __init__(
        self,
        env: EnvLike,
        *,
        alarm_delta: ArrayLike = 0.1,
        delta: ArrayLike = 0.1,
        confidence_width: GivenWidth = "heuristic",
        **common: Unpack[ModelParameters],
    ) -> None:
        problem = problem_reader(env)()
        self.alarm_delta = per_learner(
            "ETGPUCB", "alarm_delta", alarm_delta, problem.batch_size or 1, 0.0, 1.0, "neither"
        )
        trigger = EventTrigger(self.alarm_delta)
        self.resets = trigger.resets
        width = bayes_width("ETGPUCB", problem, confidence_width, delta, BoxWidth)
        parameters = bayes_parameters("ETGPUCB", common, width, delta)
        super().__init__(env, surrogate=RestartSurrogate, restart_rule=trigger, **parameters)


class EventTrigger(RestartRule):
    """A rule that restarts a surrogate where |y - mean(x)| > rho_t^{1/2} std(x) + w_t: [BRST25].

    rho_t = 2 log(2 pi_t / delta), w_t^2 = 2 lambda log(2 pi_t / delta), pi_t = pi^2 t^2 / 6; mean
    and std are those before the play, t is 1 at the first test after a restart.

    False alarms: where the function is a fixed draw from the prior, and the noise Gaussian of
    variance lambda, |f - mean| > rho_t^{1/2} std and |noise| > w_t each have a probability of at
    most exp(-rho_t / 2) = delta / (2 pi_t), a Gaussian tail. Over both and all t that is delta,
    since the sum of 1 / pi_t is 1.

    Args:
        delta: The probability of a false alarm, in (0, 1), `(B,)`.

    Attributes:
        clock: t, `(B,)`.
        resets: The restarts of this episode, `(B,)`.
    """

    learns_by_acting = False

    def __init__(self, delta: Array) -> None:
        self._delta = delta
        self.clock = np.ones(len(delta), np.int64)
        self.resets = np.zeros(len(delta), np.int64)

    def restart(
        self, mask: Mask, problem: BanditProblem, norm_bound: Array | None, noise_scale: Array
    ) -> None:
        """Reset the clock."""
        self.clock[mask] = 1
        self.resets[mask] = 0

    def before_update(
        self, surrogate: Surrogate, plays: Plays, rewards: Array, active: Mask
    ) -> None:
        """Test the reward; where it does not fit, the surrogate keeps nothing but it."""
        mean, variance = surrogate.predict_plays(plays)
        rho = 2 * np.log(math.pi**2 * self.clock.astype(float) ** 2 / (3 * self._delta))
        bound = np.sqrt(rho) * (np.sqrt(variance) + np.sqrt(surrogate.basis.regularization))
        fired = active & (np.abs(rewards - mean) > bound)
        if fired.any():
            forget_all(surrogate, fired)
        self.clock[active] += 1
        self.clock[fired] = 1
        self.resets[fired] += 1
