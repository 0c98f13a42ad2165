"""ET-GP-UCB: starts anew once an observation does not fit what it believes."""

from __future__ import annotations

from typing import Any, Unpack

from wgp_agents.algorithms.adaptive.event_trigger import EventTrigger
from wgp_agents.core.access import problem_reader
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.bayes_width import BayesParameters, BoxWidth, bayes_parameters, bayes_width
from wgp_agents.gp.surrogates.weighted import RestartSurrogate
from wgp_agents.parameters import per_learner

__all__ = ["ETGPUCB"]


class ETGPUCB(GPAgent):
    """Event-triggered GP-UCB: all data since the last event, equally weighted.

    An event is a reward y of x with |y - mean(x)| > rho_t^{1/2} std(x) + w_t. It makes the agent
    forget all but that reward, and puts its clock t back to 1: see `EventTrigger`. No rate of
    change is needed; while nothing changes there is an event with probability at most
    `alarm_delta`.

    Source: Brunzema, von Rohr, Solowjow, Trimpe. Event-Triggered Time-Varying Bayesian
    Optimization. TMLR 2025, algorithm ET-GP-UCB.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        alarm_delta: delta_B, the chance of an event in (0, 1) while nothing changes, scalar or
            `(B,)`.
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

    def __init__(
        self,
        env: Any,
        *,
        alarm_delta: Any = 0.1,
        delta: Any = 0.1,
        confidence_width: Any = "heuristic",
        **common: Unpack[BayesParameters],
    ) -> None:
        parameters = bayes_parameters("ETGPUCB", common)
        problem = problem_reader(env)()
        self.alarm_delta = per_learner(
            "ETGPUCB", "alarm_delta", alarm_delta, problem.batch_size or 1, 0.0, 1.0, "neither"
        )
        trigger = EventTrigger(self.alarm_delta)
        self.resets = trigger.resets
        width = bayes_width("ETGPUCB", problem, confidence_width, delta, BoxWidth)
        super().__init__(
            env,
            surrogate=RestartSurrogate,
            restart_rule=trigger,
            delta=delta,
            confidence_width=width,
            **parameters,
        )
