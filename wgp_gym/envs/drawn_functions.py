"""Whether what a task draws is what it says: functions of its kernel, and arms of its box.

A scorer's numbers (norms, B_T, the optimum) follow from the functions' coefficients and from
their values on the domain. Where these are not of one kernel, all of them would be wrong.
"""

from __future__ import annotations

import numpy as np

from wgp_gym.kernels import Kernel
from wgp_gym.rkhs import Functions
from wgp_gym.types import Array, Floats32
from wgp_gym.validation import reject

__all__ = ["check_arms", "check_functions", "check_kernel", "check_range"]

MOST_POINTS = 8  # of the domain, at which functions are compared with their sums over the kernel
APART = 1e-3  # of the largest value: more than rounding, of coefficients that nearly cancel
ROUNDING = 1e-9  # by which values may leave their range


def check_functions(
    functions: Functions, knots: int, points: int, features: int | None, owner: str
) -> None:
    """Check that there is a finite function for each knot, on the domain.

    Args:
        functions: What was drawn, of an episode or a batch.
        knots: The number of knots.
        points: The number of points of the domain.
        features: Where arms are drawn anew, how many features the kernel has: functions then are
            `linear_functions` of these.
        owner: Who asks, for the message.

    Raises:
        ValueError: If there is not.
    """
    values, coefficients = functions.values, functions.coefficients
    if values.shape[-2] != knots:
        reject("functions", owner, f"one for each of the {knots} knots", values)
    if features is not None:
        rule = f"linear_functions of vectors of the kernel's {features} features"
        same = np.array_equal(values, coefficients, equal_nan=True)
        if values.shape[-1] != features or not same:
            reject("functions", owner, rule, values)
    elif values.shape[-1] != points:
        reject("functions", owner, f"given at the domain's {points} points", values)
    finite = np.isfinite(values)
    if not finite.all():
        reject("functions", owner, "finite on the domain", values[~finite].item(0))


def check_kernel(functions: Functions, kernel: Kernel, domain: Array, owner: str) -> None:
    """Check that functions on fixed arms are the sums over the task's kernel that they say.

    Raises:
        ValueError: If they are another kernel's, or their coefficients are lost in rounding, as
            those of interpolants are where the kernel's matrix is singular.
    """
    one = functions.of_episode(0) if functions.values.ndim == 3 else functions
    n = len(domain)
    at = np.unique(np.linspace(0, n - 1, MOST_POINTS).astype(np.intp))
    sums = one.coefficients @ kernel(domain[one.centres], domain[at])
    apart = np.abs(sums - one.values[:, at]).max()
    if not apart <= APART * np.abs(one.values).max():
        rule = f"sums over the task's kernel, whose values are {apart:.3g} elsewhere"
        reject("functions", owner, rule, one.values)


def check_range(rewards: Array, ends: tuple[float, float], owner: str) -> None:
    """Check that expected rewards are in the range that learners are told, but for rounding.

    Raises:
        ValueError: If one is not.
    """
    low, high = float(rewards.min()), float(rewards.max())
    slack = ROUNDING * max(abs(ends[0]), abs(ends[1]))
    if low < ends[0] - slack or high > ends[1] + slack:
        rule = f"such that expected rewards are in [{ends[0]:g}, {ends[1]:g}]"
        reject("functions", owner, rule, low if low < ends[0] - slack else high)


def check_arms(arms: Floats32 | None, shape: tuple[int, ...] | None, owner: str) -> None:
    """Check that the arms of every step are given where they are drawn anew, and only there.

    Args:
        arms: What was drawn.
        shape: The shape that they have; None where all arms stay.
        owner: Who asks, for the message.

    Raises:
        ValueError: If they are not, or one is not in the box.
    """
    if shape is None:
        if arms is not None:
            reject("arms", owner, "None where all arms stay", arms)
        return
    rule = f"those of every step, an array {shape} of numbers in [0, 1]"
    fits = isinstance(arms, np.ndarray) and arms.dtype.kind == "f" and arms.shape == shape
    if not fits or arms is None or not (arms.min() >= 0 and arms.max() <= 1):
        reject("arms", owner, rule, arms)
