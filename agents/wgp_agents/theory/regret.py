"""The dynamic regret bound of [Deng22] Theorem 4 with explicit constants, term by term.

Two sets of constants: "paper" evaluates the end of the paper's proof as printed, "mended" a
bound that holds. In the notation of `wgp_agents.gp.surrogates.weighted`, with m features of error
eps, S = 1 / (1 - eta) and sigma-breve^2 = lambda phi^T V^{-1} phi <= 1 + eps =: u, the mended chain
is:

1. det V_t >= eta^m det V_{t-1} (1 + sigma-breve_{t-1}^2(x_t) / (eta lambda)), so over n steps the
   logarithms add up to at most 2 gain + m n log(1 / eta).
2. v / log(1 + v / (eta lambda)) increases in v, so sigma-breve^2 is at most
   A log(1 + sigma-breve^2 / (eta lambda)), A = u / log(1 + u / (eta lambda)).
   Deviation: the paper has 2 lambda for A, from x <= 2 log(1 + x), which fails for x > 2.513,
   that is where lambda < 0.398.
3. Cauchy-Schwarz: n steps add up to at most sqrt(n A (2 gain + m n log(1 / eta))).
4. sigma-tilde^2 is the minimum over a of v^T G v + lambda |a|^2, v = (1, -W a), G the Gram matrix
   of x and the plays. Features change v^T G v by at most eps |v|_1^2 <= eps (1 + sqrt(S) |a|)^2,
   and the minimiser has |a| <= min((1 + eps) sqrt(S) / lambda, sqrt(1 + eps) / (2 sqrt(lambda))).
   So |sigma-tilde - sigma-breve| <= sqrt(eps) (1 + sqrt(S) |a|).
   Deviation: the paper has sqrt(eps) S: its proof puts a lambda into the norms of k~ and of
   K~ - K-breve that they do not have, which then cancels that of lambda_t.
5. The drift up to step t is weighed by the steps t - c ... t - 1, which are c; each change of f
   falls into at most c such windows. Deviation: Lemma 18, on a window, counts t as well,
   which makes c + 1 terms, and takes the last window where it needs the largest; the gain here
   must therefore bound that of every t <= T.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wgp_gym.validation import check_choice, check_float, check_int, reject

__all__ = ["RegretBound", "deviation_error_bound", "deviation_sum_bound", "regret_bound"]


SMALLEST_PRODUCT = 1e-150  # its square, and 1 over it, are numbers


class RegretBound(NamedTuple):
    """The terms of [Deng22] Theorem 4, in its order.

    Attributes:
        exploration: 2 beta_T times the sum of the approximate standard deviations.
        drift: What the changes of f within the window cost.
        forgotten: What is older than the window: 4 B eta^c T / (lambda (1 - eta)).
        drift_error: The features' error within `drift`.
        exploration_error: The features' error within `exploration`.
    """

    exploration: float
    drift: float
    forgotten: float
    drift_error: float
    exploration_error: float

    @property
    def total(self) -> float:
        """The bound on the dynamic regret R_T."""
        return math.fsum(self)


def deviation_sum_bound(
    horizon: int,
    discount: float,
    regularization: float,
    gain: float,
    num_features: int,
    *,
    feature_error: float = 0.0,
    constants: str = "mended",
) -> float:
    """Return a bound on the sum over t <= T of sigma-breve_{t-1}(x_t), [Deng22] Lemma 16.

    Args:
        horizon: T.
        discount: eta in (0, 1).
        regularization: lambda > 0.
        gain: gamma-breve_T >= 0 of the plays.
        num_features: The number of features. The paper's maps have 2 m of them, for its m.
        feature_error: eps >= 0, so that |phi-breve(x)|^2 <= 1 + eps. Not in the paper's form.
        constants: "mended", or "paper": as printed, which is no bound for lambda < 0.398.

    Raises:
        ValueError: If a parameter is out of its range.
    """
    check_choice("constants", constants, "deviation_sum_bound", ("mended", "paper"))
    check_common("deviation_sum_bound", discount, regularization, feature_error)
    check_plays("deviation_sum_bound", horizon, gain, num_features)
    u, scaled = 1 + feature_error, discount * regularization
    factor = 2 * regularization if constants == "paper" else u / math.log1p(u / scaled)
    logs = 2 * gain - num_features * horizon * math.log(discount)
    return math.sqrt(horizon * factor * logs)


def deviation_error_bound(
    feature_error: float, discount: float, regularization: float, *, constants: str = "mended"
) -> float:
    """Return a bound on |sigma-tilde(x) - sigma-breve(x)| at every t, [Deng22] Lemma 15.

    Args:
        feature_error: eps >= 0, the largest |k(x, y) - phi-breve(x)^T phi-breve(y)|.
        discount: eta in (0, 1).
        regularization: lambda > 0.
        constants: "mended" (step 4 above), or "paper": sqrt(eps) / (1 - eta), the order of
            magnitude as the proof of Theorem 4 uses it, which is no bound for small lambda.

    Raises:
        ValueError: If a parameter is out of its range.
    """
    check_choice("constants", constants, "deviation_error_bound", ("mended", "paper"))
    check_common("deviation_error_bound", discount, regularization, feature_error)
    if constants == "paper":
        return math.sqrt(feature_error) / (1 - discount)
    u, S = 1 + feature_error, 1 / (1 - discount)
    size = min(u * math.sqrt(S) / regularization, math.sqrt(u / regularization) / 2)
    return math.sqrt(feature_error) * (1 + math.sqrt(S) * size)


def regret_bound(
    *,
    horizon: int,
    discount: float,
    norm_bound: float,
    variation_budget: float,
    regularization: float,
    width: float,
    gain: float,
    num_features: int,
    feature_error: float,
    window: int | None = None,
    constants: str = "mended",
) -> RegretBound:
    """Return the bound on the dynamic regret of WGP-UCB, [Deng22] Theorem 4 and Appendix C.5.

    Args:
        horizon: T.
        discount: eta in (0, 1).
        norm_bound: B >= 0.
        variation_budget: B_T >= 0.
        regularization: lambda > 0.
        width: beta_T >= 0, the largest confidence width. The bound holds with the probability
            with which all T of the confidence bounds do.
        gain: gamma-breve, a bound on the single-weighted gain of the features at every t <= T.
        num_features: The number of features. The paper's maps have 2 m of them, for its m.
        feature_error: eps >= 0, the largest error of the features' kernel.
        window: c >= 1. Default: ceil(log T / (1 - eta)), as in [Deng22] Corollary 5.
        constants: "mended", or "paper" for the right-hand side as printed.

    Raises:
        ValueError: If a parameter is out of its range.
    """
    owner, lam, eta = "regret_bound", regularization, discount
    check_choice("constants", constants, owner, ("mended", "paper"))
    check_common(owner, eta, lam, feature_error)
    check_plays(owner, horizon, gain, num_features)
    check_float("norm_bound", norm_bound, owner, 0)
    check_float("variation_budget", variation_budget, owner, 0)
    check_float("width", width, owner, 0)
    if window is None:
        window = max(math.ceil(math.log(horizon) / (1 - eta)), 1)
    c = check_int("window", window, owner, 1)
    error = deviation_error_bound(feature_error, eta, lam, constants=constants)
    partial, whole = (
        deviation_sum_bound(
            n, eta, lam, gain, num_features, feature_error=feature_error, constants=constants
        )
        for n in (c, horizon)
    )
    # The paper's factor absorbs eta^{-1/2}: eta^{-1} sigma^2 <= 2 lambda log(1 + that / lambda).
    stretch = 1.0 if constants == "paper" else eta**-0.5
    return RegretBound(
        exploration=2 * width * whole,
        drift=2 / lam * c * variation_budget * stretch * partial,
        forgotten=4 * norm_bound * eta**c * horizon / (lam * (1 - eta)),
        drift_error=2 / lam * c * variation_budget * eta**-0.5 * c * error,
        exploration_error=2 * width * horizon * error,
    )


def check_common(owner: str, discount: float, regularization: float, error: float) -> None:
    """Check the parameters of every bound."""
    check_float("discount", discount, owner, 0, 1, closed="neither")
    check_float("regularization", regularization, owner, 0, closed="neither")
    if discount * regularization < SMALLEST_PRODUCT:
        rule = f"such that discount * regularization is at least {SMALLEST_PRODUCT:g}"
        reject("regularization", owner, rule, regularization)
    check_float("feature_error", error, owner, 0)


def check_plays(owner: str, horizon: int, gain: float, num_features: int) -> None:
    """Check what is known of the plays."""
    check_int("horizon", horizon, owner, 1)
    check_float("gain", gain, owner, 0)
    check_int("num_features", num_features, owner, 1)
