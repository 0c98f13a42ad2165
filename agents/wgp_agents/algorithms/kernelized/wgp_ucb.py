"""WGP-UCB: upper confidence bounds from weights that favour recent data."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.agent import GPAgent, TunedParameters, tuned
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, check_choice, reject

__all__ = ["WGPUCB"]

WIDTHS = ("standard", "tight")
MOST_FALL = 1e4  # of a weight to a later one: features are right to 1e-8 lambda / w
Weights = ArrayLike | Callable[[int], float]


class WGPUCB(GPAgent):
    """Weighted Gaussian Process UCB, [Deng22] Algorithm 1.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        discount: eta in (0, 1] of the weights w_t = eta^{-t}. Default: 1 - eta =
            gamma^{-1/4} (B_T / T)^{1/2}, Corollary 5.
        weights: The weights themselves in place of a discount, positive, one for each of T steps,
            `(T,)`, or a function of the step t = 1, 2, ... They may fall, none by more than a
            factor of 10,000 from any before it: beyond it little is left of double precision.
            After step T they go on as they last rose, or stay where they fell.
        width: "standard": the bound uses sigma~, Eq. (4); "tight": sigma-acute of Theorem 2. The
            guarantee is sigma-acute's, for any weights; sigma~ has it as long as no weight exceeds
            w_t, since it is not smaller then (Lemma 13). Where weights fall, "standard" has none.
            The paper sets sigma-acute aside as impractical.
        **common: See `GPAgent`; `variation_budget` and `information_gain` of the default: see
            `Forgetting`.

    Raises:
        ValueError: If a parameter is out of its range, or two of them exclude each other.
    """

    def __init__(
        self,
        env: EnvLike,
        *,
        discount: ArrayLike | None = None,
        weights: Weights | None = None,
        width: Literal["standard", "tight"] = "standard",
        **common: Unpack[TunedParameters],
    ) -> None:
        owner = type(self).__name__
        tight = check_choice("width", width, owner, WIDTHS) == "tight"
        ratios = None
        if weights is not None:
            if discount is not None:
                reject("discount", owner, "None where weights are given", discount)
            if common.get("gain") == "greedy":
                reject("gain", owner, "'realised' or 'bound' where weights are given", "greedy")
            horizon = problem_reader(env)().known_horizon(owner, "discount")
            ratios = step_discounts(weights, horizon, owner)
            discount = 1.0
        surrogate = partial(DiscountSurrogate, ratios=ratios, tight=tight)
        super().__init__(env, surrogate=surrogate, **tuned("discount", discount, common))


def step_discounts(weights: Weights, horizon: int, owner: str) -> Array:
    """Return w_{t-1} / w_t for t = 1 ... T, and beyond, `(T + 1,)`; the first, of no effect, is 1.

    Beyond T the last one goes on, or 1 where weights fell last.
    """
    rule = f"positive and finite, none above {MOST_FALL:g} times a later one, one for each of"
    rule = f"{rule} {horizon} steps"
    if callable(weights):
        try:
            weights = [weights(t) for t in range(1, horizon + 1)]
        except OverflowError as error:
            reject("weights", owner, f"{rule} (for eta^-t there is 'discount')", str(error))
    w = as_floats("weights", weights, owner, rule)
    if w.shape != (horizon,):
        reject("weights", owner, rule, f"an array {w.shape}")
    wrong = np.flatnonzero(~((w > 0) & (w < math.inf)))
    if not wrong.size:
        wrong = np.flatnonzero(np.maximum.accumulate(w) / MOST_FALL > w)
    if wrong.size:
        reject("weights", owner, rule, f"{w[wrong[0]]} at step {wrong[0] + 1}")
    ratios = np.append(1.0, w[:-1] / w[1:])
    return np.append(ratios, min(ratios[-1], 1.0))
