"""Upper bounds of variances that were computed at an earlier step, as weights fade since.

With V = A + lambda I, sigma^2(x) = lambda phi^T V^{-1} phi. A step is A <- eta A + (what is
learned), eta in [0, 1], so that with the old V

    V_new >= eta A + lambda I = eta V + (1 - eta) lambda I         (what is learned is >= 0)

in the order of matrices, which inversion turns round:

1. The right side is at least eta V, so V_new^{-1} <= V^{-1} / eta and
   sigma_new^2 <= sigma^2 / eta.
2. Inversion is operator convex, (eta V + (1 - eta) W)^{-1} <= eta V^{-1} + (1 - eta) W^{-1}. (In a
   basis in which V and W are both diagonal it is that of 1 / x.) With W = lambda I:
   sigma_new^2 <= eta sigma^2 + (1 - eta) phi^T phi.

What the features leave out of k(x, x), r, is part of the variances. Both bounds stay right with
sigma^2 + r for sigma^2, and k(x, x) = phi^T phi + r for phi^T phi. As they rise with sigma^2, they
hold of bounds too. Where the weight of the past grows, eta > 1, A_new >= A: as with eta = 1.

The smaller is the first where sigma^2 (1 + eta) < eta k(x, x).
"""

from __future__ import annotations

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Mask

__all__ = ["bound_conditions", "grow_bounds"]

ROUNDING = 1e-15  # times the condition number: by how much a computed variance may be off


@compiled
def bound_conditions(gram: Array, active: Mask, basis: Basis, condition: Array) -> None:
    """Fill in 1 + trace(A) / lambda, at least V's condition number, of active learners, `(B,)`."""
    for i in range(len(active)):
        if active[i]:
            condition[i] = 1.0
            for k in range(basis.rank[i]):
                condition[i] += gram[i, k, k] / basis.regularization[i]


@compiled
def grow_bounds(
    discount: Array, active: Mask, condition: Array, basis: Basis, variance: Array
) -> None:
    """Turn variances, or upper bounds of them, into upper bounds after a step.

    Args:
        discount: eta of each learner's step, `(B,)`.
        active: Who took one, `(B,)`.
        condition: How far rounding may take a variance, in units of it, `(B,)`.
        basis: The features.
        variance: What is changed, `(B, n)`.
    """
    prior = basis.prior
    for i in range(len(active)):
        if not active[i]:
            continue
        eta, row = min(discount[i], 1.0), variance[i]
        slack = 1.0 + ROUNDING * condition[i]
        for a in range(len(row)):
            old, most = slack * row[a], prior[a]
            if old * (1.0 + eta) < eta * most:
                row[a] = old / eta
            else:
                row[a] = min(eta * old + (1.0 - eta) * most, most)
