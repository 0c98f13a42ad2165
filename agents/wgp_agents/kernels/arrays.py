"""The arrays that the compiled loops change in place, B learners each."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from wgp_gym.types import Array

__all__ = [
    "BankArrays",
    "BankModels",
    "BankRates",
    "DiscountArrays",
    "DriftArrays",
    "PosteriorArrays",
    "RankOneArrays",
]


class PosteriorArrays(Protocol):
    """What every memory keeps, whatever else."""

    @property
    def mean(self) -> Array:
        """Posterior means, `(B, n)`."""

    @property
    def variance(self) -> Array:
        """Posterior variances, `(B, n)`."""

    @property
    def gain(self) -> Array:
        """Information gains, `(B,)`."""


class RankOneArrays(NamedTuple):
    """What is kept of unweighted data.

    Attributes:
        inverse: V^{-1}, `(B, m, m)`.
        mean: Posterior means, `(B, n)`.
        variance: Posterior variances, `(B, n)`.
        gain: Information gains, `(B,)`.
        counts: The plays of each arm, `(B, n)`.
        sums: The rewards of each arm, added up, `(B, n)`.
        lost: What rounding has taken from the sums, `(B, n)`.
        age: Rank-one changes since the inverse was last computed anew, `(B,)`.
    """

    inverse: Array
    mean: Array
    variance: Array
    gain: Array
    counts: NDArray[np.int64]
    sums: Array
    lost: Array
    age: NDArray[np.int64]


class DiscountArrays(NamedTuple):
    """What is kept of discounted data.

    Attributes:
        gram: A, `(B, m, m)`.
        target: b, `(B, m)`.
        lost: What rounding has taken from it where nothing fades, `(B, m)`.
        double_gram: A2, `(B, m, m)`.
        mean: Posterior means, `(B, n)`.
        variance: Posterior variances, `(B, n)`.
        gain: Double-weighted information gains, `(B,)`.
        tight: Variances of [Deng22] Theorem 2 of all arms, `(B, n)`; `(B, 0)` if not wanted.
    """

    gram: Array
    target: Array
    lost: Array
    double_gram: Array
    mean: Array
    variance: Array
    gain: Array
    tight: Array


class DriftArrays(NamedTuple):
    """What is kept of B learners, each with up to J filters.

    Attributes:
        covariance: P, `(B, J, m, m)`, symmetric bit for bit.
        weights: theta, `(B, J, m)`.
        eps: The drift of each filter, `(B, J)`.
        score: The innovations' log-likelihood up to a constant that is the same for all filters,
            `(B, J)`.
        gains: The information gain of each filter, `(B, J)`.
        filters: How many filters each learner has, `(B,)`.
        start: The filter that speaks while all score alike, `(B,)`.
        chosen: The filter that speaks, `(B,)`.
        age: Steps since the table of all arms was last computed anew, `(B,)`.
        mean: Posterior means, `(B, n)`.
        variance: Posterior variances, `(B, n)`.
        gain: The information gain of the filter that speaks, `(B,)`.
    """

    covariance: Array
    weights: Array
    eps: Array
    score: Array
    gains: Array
    filters: NDArray[np.int64]
    start: NDArray[np.int64]
    chosen: NDArray[np.int64]
    age: NDArray[np.int64]
    mean: Array
    variance: Array
    gain: Array


class BankModels(NamedTuple):
    """The models of a bank: Q of them, the same for all learners.

    Attributes:
        drift: eps of each, `(Q,)`.
        noise: lambda of each: the variance of the noise, that of the function being 1, `(Q,)`.
        table: Which features each has, `(Q,)`.
        rank: How many there are in each table, `(G,)`.
        prior: What each is ahead by throughout, `(Q,)`.
    """

    drift: Array
    noise: Array
    table: NDArray[np.int64]
    rank: NDArray[np.int64]
    prior: Array


class BankRates(NamedTuple):
    """How fast a bank forgets what it knows of its models, and what it does not believe.

    See `ModelBank`. `youth`, in steps: models so young are not restarted, and a learner so young
    cuts no surprise, but looks at its rewards again at the end; also the span of the median.
    """

    recent: float
    lasting: float
    scale: float
    signal: float
    weight: float
    margin: float
    handicap: float
    carried: float
    far: float
    most: float
    youth: int


class BankArrays(NamedTuple):
    """What is kept of B learners, each with Q models.

    Attributes:
        covariance: P of the weights, in the unit of the function's variance, `(B, Q, m, m)`.
        weights: theta, in the unit of rewards, `(B, Q, m)`.
        square: Half the sum of squared standardised surprises, fading, `(B, Q)`.
        shape: Half their number, fading, `(B,)`.
        signal: The sum of those squares by how much each play could say of the function, `(B, Q)`.
        informed: What those shares add up to, `(B, Q)`.
        recent: The score of the last steps, `(B, Q)`.
        lasting: The score of all steps, `(B, Q)`.
        age: Steps since each model was last restarted, `(B, Q)`.
        chosen: The model that is played, `(B,)`.
        zero: Where each model counts rewards from, `(B, Q)`.
        latest: The last rewards, that of step t at t mod `youth`, `(B, youth)`.
        seen: Observations so far, `(B,)`.
    """

    covariance: Array
    weights: Array
    square: Array
    shape: Array
    signal: Array
    informed: Array
    recent: Array
    lasting: Array
    age: NDArray[np.int64]
    chosen: NDArray[np.int64]
    zero: Array
    latest: Array
    seen: NDArray[np.int64]
