"""The surrogate of ageing observations: the noise variance of each grows with every step.

An observation that is k steps old counts as if its noise variance were lambda + k sigma_w^2, so its
weight is w_k = 1 / (1 + k sigma_w^2 / lambda): weights fall as a hyperbola, not geometrically. That
has no recursion of fixed size, but sums of exponentials have.

References:
    [BM05] Beylkin, Monzon. On Approximation of Functions by Exponential Sums. Applied and
        Computational Harmonic Analysis 19, 2005.
    [GW69] Golub, Welsch. Calculation of Gauss Quadrature Rules. Mathematics of Computation 23,
        1969.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.core.state import check_counts
from wgp_agents.gp.action_sets import ActionSet, Plays
from wgp_agents.gp.surrogates.lazy import WeightedSurrogate
from wgp_agents.gp.surrogates.posteriors import GramPosterior
from wgp_agents.kernels.ageing import AgeingArrays, ageing_update
from wgp_agents.kernels.elapsed import faded
from wgp_gym.types import Array, Mask

__all__ = ["LONGEST_AGE", "AgeingSurrogate", "ageing_sum"]

LONGEST_AGE = 1_000_000  # up to which weights are exact where T is unknown

STEP = 0.46  # of tau; its error is 2 |Gamma(1 + 2 pi i / h)| = 9e-9
SMALL = 1e-10  # the part of 1 / x that is left out below the first exponent
LARGE = 1e-9  # exp(-s x) of the largest exponent at the smallest x
FLAT = 6.0  # exponents with s x at most this for all x are merged
MERGED = 6  # Gauss nodes that replace them


class AgeingSurrogate(WeightedSurrogate):
    """The posterior of all data, with noise variances that grow by sigma_w^2 a step.

    It is that of the next step, when the last observation is one step old. w_k, to a relative error
    of 1e-8, is the sum of a_j z_j^(k - 1) of `ageing_sum`, so A = sum of w phi phi^T is the sum of
    a_j A_j with A_j that fade by z_j a step, and so is b. The rest is as in
    `wgp_agents.gp.surrogates.weighted`: V = A + lambda I, and the gain is
    1/2 log det(I + A / lambda). A step costs O(J m^2 + m^3 + m^2 n), and a learner J m^2 / 2
    numbers, with J about 9 + 2.2 log T.

    The weights belong to a model, those of `DiscountSurrogate` to a loss: the posterior has the
    covariance lambda V^{-1}, and its gain no double weights.

    Deviation: on a box, what the features leave out is added to the noise of a fresh play and ages
    with it: see `wgp_agents.gp.box.Box`.

    Args:
        action_set: What is chosen from.
        injection: sigma_w^2 >= 0 of every learner, `(B,)`.
        horizon: T >= 1, the age up to which weights are exact.

    Attributes:
        bank: The sums that make up A and b.
    """

    _constants = ("takes_elapsed",)
    time_comes_first = True
    nothing_forgotten = 0.0

    def __init__(self, action_set: ActionSet, *, injection: Array, horizon: int) -> None:
        posterior = GramPosterior(action_set)
        # The gain has no double weights: A2 is A itself.
        posterior.arrays = posterior.arrays._replace(double_gram=posterior.arrays.gram)
        super().__init__(action_set, posterior)
        self._gram = posterior
        ratios = injection / self.basis.regularization
        self.bank = make_bank(ratios, horizon, len(self.basis.phi))
        # Beyond that age weights fall too fast, and a play may be of any age where time goes by.
        self.takes_elapsed = horizon >= LONGEST_AGE

    def _check_state(self) -> None:
        check_counts(self, "terms", self.bank.terms, self.bank.grams.shape[1])

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is not used."""
        self.bank.grams[mask] = self.bank.targets[mask] = 0.0
        self._clear(mask)

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Let the past age by the steps that go by, and learn from one play."""
        features, rewards = self._gram.scaled(plays, rewards)
        self._age(features, rewards, active, elapsed)
        self.held += active

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let the past age."""
        nothing = np.zeros((len(active), len(self.basis.phi)))
        self._age(nothing, np.zeros(len(active)), active, steps)

    def _age(self, features: Array, rewards: Array, active: Mask, elapsed: Array | None) -> None:
        """Let the sums fade by z_j^elapsed, and add a play."""
        self._changed()
        bank = self.bank
        if elapsed is not None:
            bank = bank._replace(decays=faded(bank.decays, elapsed))
        ageing_update(features, rewards, active, self.basis.rank, bank, self._gram.arrays)
        # A young play's weight falls most: w_k is log-convex, as a sum of exponentials.
        weights = np.cumsum([bank.coefficients, bank.coefficients * bank.decays], axis=2)[:, :, -1]
        self._gram.age(weights[1] / weights[0], active)
        self._gram.refresh(active)


def make_bank(ratios: Array, horizon: int, features: int) -> AgeingArrays:
    """Return an empty bank of sums, for sigma_w^2 / lambda `(B,)`, T and m features."""
    sums = {ratio: ageing_sum(ratio, horizon) for ratio in set(ratios.tolist())}
    found = [sums[ratio] for ratio in ratios.tolist()]
    terms = np.array([len(a) for a, _ in found])
    batch, most = len(terms), int(terms.max())
    bank = AgeingArrays(
        terms=terms,
        coefficients=np.zeros((batch, most)),
        decays=np.zeros((batch, most)),
        grams=np.zeros((batch, most, features * (features + 1) // 2)),
        targets=np.zeros((batch, most, features)),
    )
    for i, (a, z) in enumerate(found):
        bank.coefficients[i, : terms[i]], bank.decays[i, : terms[i]] = a, z
    return bank


def ageing_sum(ratio: float, horizon: int) -> tuple[Array, Array]:
    """Return a and z `(J,)` with sum of a_j z_j^(k - 1) = 1 / (1 + k ratio) for k = 1, 2, ..., T.

    1 / x is the integral of exp(-s x) over s > 0. With s = exp(tau) the integrand is smooth and
    small at both ends, so the trapezoid rule in tau converges fast: [BM05]. The exponents that are
    small at all x of interest act together as a polynomial, so a few Gauss nodes replace them:
    [GW69].

    The relative error is at most 1e-8. x = 1 + k ratio grows by a factor below T for any ratio, so
    J is at most 23 for T = 500, 29 for T = 10,000 and 39 for T = 1,000,000: about 9 + 2.2 log T.
    Beyond T the sum falls faster than the hyperbola.

    Args:
        ratio: At least 0; 0 gives one constant term.
        horizon: T >= 1.
    """
    if ratio == 0.0:
        return np.ones(1), np.ones(1)
    nearest, farthest = 1.0 + ratio, 1.0 + horizon * ratio
    first = math.floor(math.log(SMALL / farthest) / STEP)
    last = math.floor(math.log(-math.log(LARGE) / nearest) / STEP)
    exponents = np.exp(STEP * np.arange(first, last + 1))
    weights = STEP * exponents
    flat = exponents <= FLAT / farthest
    nodes, merged = gauss_rule(exponents[flat], weights[flat], MERGED)
    s, w = np.append(nodes, exponents[~flat]), np.append(merged, weights[~flat])
    return w * np.exp(-s * nearest), np.exp(-s * ratio)


def gauss_rule(points: Array, weights: Array, size: int) -> tuple[Array, Array]:
    """Return nodes and weights `(size,)` with the first 2 size moments of weighted points.

    It is the Lanczos process on the diagonal matrix of the points, with full reorthogonalisation,
    and the eigenvalues of the tridiagonal matrix that results.

    Args:
        points: Positive, increasing, more than `size` of them, `(q,)`.
        weights: Positive, `(q,)`.
        size: The number of nodes.
    """
    total, scale = weights.sum(), points[-1]
    x, vector = points / scale, np.sqrt(weights / total)
    basis: list[Array] = []
    diagonal, beside = np.zeros(size), np.zeros(size)
    for i in range(size):
        basis.append(vector)
        rest = x * vector
        diagonal[i] = vector @ rest
        for known in (*basis, *basis):  # twice, against rounding errors
            rest = rest - (known @ rest) * known
        beside[i] = np.linalg.norm(rest)
        vector = rest / beside[i]
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside[:-1], -1))
    return scale * values, total * vectors[0] ** 2
