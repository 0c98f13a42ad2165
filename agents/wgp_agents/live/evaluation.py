"""What an agent would have earned on a log of decisions that something else has taken.

With f_t(a) the expected reward of arm a at row t of the log, and c_t the agent's choice there, the
methods are of two different agents:

- **Rejection** [Li11] plays the agent that learns *from its own plays*. A row is used where the
  agent chooses the arm that the log has; only then is it told the reward. The log's choice is a
  coin that knows nothing of the agent, so this is an agent that chooses at every row and is told
  each reward with probability 1 / K. In a world that stands still, these are its first `num_used`
  plays, just as if it had been live. In one that drifts, K times as much drift lies between two
  rewards: the estimate is of an agent that sees a K-th of them, which earns less than one that
  sees all.
- **IPS, SNIPS and doubly robust** take the agent that learns *from the log*, from each reward in
  its order, as one that is warm-started by it: what would it choose after the rows before? The
  estimate is of the mean of f_t(c_t) over the rows. This agent has seen more rewards than
  rejection's, of arms that the log explored for it. What it would have earned live from the first
  row on, learning from its own plays, is another question, to which only rejection has an answer:
  weights of whole histories grow exponentially with their length.

All are right however f_t moves and whatever the agent learns, if (1) the propensities are those
with which the choices were taken (a log of uniform choices needs none), (2) rewards do not depend
on earlier choices, and (3) whether a reward is missing does not depend on it.

Intervals are `estimate` +- q `standard_error`, q Student's quantile with `effective_size` - 1
degrees of freedom: nearly the normal one, but two rows do not look like a certainty. The terms of
an agent that learns depend on each other, and two things may be asked of the interval, by `lags`:

- With lags, it is of the *expected* value of the agent, over logs and its own draws: luck that
  lasts (a good arm found early, by chance) must be in it. The standard error is that of a mean of
  dependent terms, with Bartlett's weights up to a lag of L [Newey87]. It takes that luck for
  shorter than L terms; where the rewards themselves rise and fall, it is on the wide side.
- With `lags=0`, it is of the choices made *on this log*, the mean of f_t(c_t). Given all rows
  before, the term of a row has that mean, so the differences are a martingale, and its central
  limit theorem holds although the terms are dependent; the spread of f_t(c_t) makes it wider.

Both are approximate, and need many rows of which none outweighs the rest: look at `effective_size`,
and do not go by an interval where it is below some 30. With K arms about a K-th of a uniform log
can be used, so a year of daily prices says next to nothing of an agent with 40 of them.

References:
    [Li11] Li, Chu, Langford, Wang, "Unbiased offline evaluation of contextual-bandit-based news
        article recommendation algorithms", WSDM 2011.
    [Dudik11] Dudík, Langford, Li, "Doubly robust policy evaluation and learning", ICML 2011.
    [Dudik14] Dudík, Erhan, Langford, Li, "Doubly robust policy evaluation and optimization",
        Statistical Science 29(4), 2014; also for policies that change with their history.
    [Newey87] Newey, West, "A simple, positive semi-definite, heteroskedasticity and autocorrelation
        consistent covariance matrix", Econometrica 55(3), 1987.
    [Swaminathan15] Swaminathan, Joachims, "The self-normalized estimator for counterfactual
        learning", NeurIPS 2015.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from wgp_agents.live.decisions import Context, Decisions, Label, LogLike, read_decisions
from wgp_agents.live.estimators import doubly_robust_terms, ratio_terms, standard_error
from wgp_agents.live.player import Learner, Player, along_the_log, own_plays
from wgp_gym.types import Array, Indices, Mask
from wgp_gym.validation import check_choice, check_float, check_int, reject

__all__ = ["Method", "Replay", "replay"]

Method = Literal["rejection", "ips", "snips", "doubly-robust"]
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True)
class Replay:
    """What an agent would have earned for a decision, in the unit of the log's rewards.

    Attributes:
        method: The method; see `wgp_agents.live.evaluation` for what each is an estimate of.
        estimate: The mean reward.
        low: The lower end of its interval.
        high: The upper end.
        standard_error: The estimate's; infinite where one term tells nothing of it.
        logged: The mean reward that the log itself has earned, to compare with.
        num_rows: Rows with a reward.
        num_missing: Rows without one, left out.
        num_used: Rows on which the agent's choice is the log's (and that rejection accepted).
        effective_size: (sum w)^2 / sum w^2 of their weights w [Swaminathan15]: the number of
            equally weighted rows that would tell as much. 0 to `num_used`.
        largest_weight: The largest weight, before it was clipped.
        num_clipped: Rows whose weight was above `max_weight`.
    """

    method: Method
    estimate: float
    low: float
    high: float
    standard_error: float
    logged: float
    num_rows: int
    num_missing: int
    num_used: int
    effective_size: float
    largest_weight: float
    num_clipped: int


def replay(
    log: LogLike,
    make_agent: Callable[[], Learner],
    arms: Sequence[Label] | Callable[[Label], int],
    *,
    method: Method = "rejection",
    num_arms: int | None = None,
    features: Callable[[Context], ArrayLike] | None = None,
    timescale: float | str | timedelta | None = None,
    max_weight: float | None = None,
    model_discount: float = 0.99,
    lags: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    told_as: Callable[[float], float] = float,
    there: Mask | None = None,
) -> Replay:
    """Return what an agent would have earned on a log; see this module for what that means.

    Args:
        log: A DataFrame or the path of a CSV file, in the order of the decisions, with columns
            `arm`, `reward` (empty: it never came), and where there are any `propensity`, `time`,
            `allowed` and `context...`: see `read_decisions`.
        make_agent: Makes the agent.
        arms: The labels of the agent's arms in its order; or what gives a label's index.
        method: "rejection" for a log of uniform choices (others need `propensity`, and lose rows);
            "ips", inverse propensity weights; "snips", these divided by their sum, which does not
            mind where the rewards' zero is; "doubly-robust" [Dudik11], with a model of the rewards.
        num_arms: How many arms there are; needed where `arms` is a function.
        features: Where arms are shown anew at each decision, their places in [0, 1]^d `(K, d)`
            by the context.
        timescale: How long a step of the agent's world takes, in the unit of `time` (or "1 day"
            where that is a date): then time goes by for the agent as the log says. Default: one
            step with each reward that it is told.
        max_weight: Weights above it are set to it: less variance, and a bias towards 0 (of "ips")
            or towards the model (of "doubly-robust"). Default: none are.
        model_discount: How fast the model of "doubly-robust" forgets, in (0, 1]: it is each arm's
            mean of earlier rewards, with weights `model_discount` to the power of their age in
            rows, and one more reward of the mean over all arms. The first row only begins it.
        lags: How many terms apart (rows used of "rejection", else rows) luck may still last, at
            least 0; 0 asks for another interval: see above. Default: the root of their number.
        level: The probability with which the interval holds, in (0, 1).
        seed: Of the agent, and of the coins of rejection, at least 0.
        told_as: What the agent is told of a reward, where that is not the log's number.
        there: Which arms the agent has, `(K,)`. Default: all. The log's own choice may be of
            another: then the agent's is never the same.

    Raises:
        ValueError: If a parameter or the log is not as it should be, or no row can be used.
        ModuleNotFoundError: If pandas is not installed: the extra "tables" brings it.
    """
    owner = "replay"
    check_choice("method", method, owner, METHODS)
    check_float("level", level, owner, 0, 1, closed="neither")
    check_float("model_discount", model_discount, owner, 0, 1, closed="right")
    largest = math.inf
    if max_weight is not None:
        if method == "rejection":
            reject("max_weight", owner, "left out: rejection has no weights", max_weight)
        largest = check_float("max_weight", max_weight, owner, 0, closed="neither")
    if lags is not None:
        check_int("lags", lags, owner, 0)
    rows = read_decisions(log, arms, num_arms=num_arms, timescale=timescale)
    chances = _propensities(rows, method)
    if there is not None:  # after the chances of the log, which had the others, too
        rows = rows.among(there)
    player = Player(make_agent(), rows, features, seed, told_as)
    # Coins of their own: the log, if simulated, may come from `default_rng(seed)`.
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    if method == "rejection":
        weights = own_plays(player, rows, chances, rng).astype(float)
        choices = rows.arms  # of the rows that count
    else:
        choices = along_the_log(player, rows)
        weights = (choices == rows.arms) / chances
    used = int(np.count_nonzero(weights))
    if not used:
        raise ValueError("The agent's choice is the log's in no row: there is nothing to go by.")
    kept = np.minimum(weights, largest)
    terms = _terms(method, rows, choices, kept, model_discount)
    estimate = float(terms.mean())
    size = float(kept.sum() ** 2 / (kept**2).sum())
    error = standard_error(terms, lags) if used > 1 else math.inf
    reach = error * float(stats.t.ppf(0.5 + level / 2, size - 1.0)) if used > 1 else math.inf
    return Replay(
        method,
        estimate,
        low=estimate - reach,
        high=estimate + reach,
        standard_error=error,
        logged=float(rows.rewards.mean()),
        num_rows=len(rows),
        num_missing=rows.num_missing,
        num_used=used,
        effective_size=size,
        largest_weight=float(weights.max()),
        num_clipped=int((weights > largest).sum()),
    )


def _terms(
    method: Method, rows: Decisions, choices: Indices, weights: Array, discount: float
) -> Array:
    """Return what a method takes the mean of."""
    if method == "rejection":
        return rows.rewards[weights > 0]
    if method == "ips":
        return weights * rows.rewards
    if method == "snips":
        return ratio_terms(rows.rewards, weights)
    return doubly_robust_terms(rows, choices, weights, discount)


def _propensities(rows: Decisions, method: Method) -> Array:
    """Return the probabilities of the log's choices, `(n,)`; rejection takes them for uniform."""
    if rows.propensities is not None:
        return rows.propensities
    if method != "rejection":
        reject("log", "replay", f"a table with a column 'propensity' for {method!r}", "none")
    if rows.allowed is not None:
        uniform: Array = 1.0 / rows.allowed.sum(axis=1)
        return uniform
    return np.full(len(rows), 1.0 / rows.num_arms)
