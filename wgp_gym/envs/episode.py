"""One drawn episode: the functions along their schedule, and all that a scorer needs to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from wgp_gym.arrays import blocks
from wgp_gym.envs.optimum import Search
from wgp_gym.kernels import Kernel
from wgp_gym.rkhs import Functions
from wgp_gym.schedules import Schedule, from_zero, with_zero
from wgp_gym.types import Actions, Array, Floats32, Indices, Mask
from wgp_gym.validation import reject

__all__ = [
    "BY_POSITION",
    "FIELDS",
    "NO_CENTRE",
    "Episode",
    "changing_episode",
    "linear_episode",
    "linear_rewards",
    "make_episode",
]

FIELDS = (
    "values",
    "coefficients",
    "optimal_reward",
    "optimal_action",
    "variation",
    "sup_variation",
)
BY_KNOT, BY_POSITION = (
    FIELDS[:2],
    FIELDS[2:],
)  # looked up at one position for all episodes of a batch
NO_CENTRE = int(np.iinfo(np.intp).min)  # -1 is a point of the domain
LOGISTIC_SLOPE = 0.25  # the steepest that 1 / (1 + e^{-z}) is


@dataclass(frozen=True, eq=False)
class Episode:
    """One drawn episode, by position of its schedule (U of them, see `wgp_gym.schedules`).

    Of a batch of B episodes every array has a leading axis, the centres where they are not shared,
    and the bound and the budget are arrays `(B,)`.

    Attributes:
        values: The knots' rewards on the domain, `(K, n)`.
        coefficients: The knots' coefficients over `centres`, `(K, M)`.
        centres: Indices of the expansion's centres in the domain, `(M,)`; of a batch
            `NO_CENTRE`, with coefficients 0, after those of an episode that has fewer than others.
        optimal_reward: max f, `(U,)`.
        optimal_action: Where it is: the arm's index `(U,)`, or a point of the box `(U, d)`, in
            single precision.
        variation: The RKHS variation spent up to each position, `(U,)`.
        sup_variation: The same in the sup norm on the domain, `(U,)`.
        norm_bound: The bound B on the norms.
        variation_budget: The whole variation B_T.
        arms: Where arms are drawn anew at each step, those of every step, `(T, n, d)`.
        knots: Where an episode has change times of its own, the knot that stands at each step,
            `(T,)`. What is told by position is then told by step. In a batch the knots of an
            episode that has fewer than others are followed by zeros.
        noise_scale: Where episodes have their own, what the task's noise and its R are times.
        kernels: Where episodes have their own, the kernel; of a batch B of them.
        parameters: Where functions are no expansions, but the task's `formula` evaluates them, its
            parameters at the knots, `(K, P)`; the coefficients are none.
        available: Where arms come and go, which are there at each step, `(T, n)`: the optimum is
            theirs.

    Of a `linear_episode` the coefficients are theta, and centres 0 .. d - 1 stand for the unit
    vectors, which are no points of the domain. Its values are link(theta^T phi) at every
    position, U rows; where arms are drawn anew they are theta once more, and nobody reads them.
    """

    values: Array
    coefficients: Array
    centres: NDArray[np.intp]
    optimal_reward: Array
    optimal_action: Actions
    variation: Array
    sup_variation: Array
    norm_bound: float | Array
    variation_budget: float | Array
    arms: Floats32 | None = None
    knots: Indices | None = None
    noise_scale: float | Array | None = None
    kernels: tuple[Kernel, ...] | None = None
    available: Mask | None = None
    parameters: Array | None = None

    def of_batch(self, i: int) -> Episode:
        """Return episode i of a batch."""
        rows = {name: getattr(self, name)[i] for name in FIELDS}
        centres = self.centres if self.centres.ndim == 1 else self.centres[i]
        known = centres != NO_CENTRE
        if not known.all():
            centres, rows["coefficients"] = centres[known], rows["coefficients"][:, known]
        knots = None if self.knots is None else self.knots[i]
        if knots is not None:
            for name in BY_KNOT:
                rows[name] = rows[name][: knots[-1] + 1]
        bound, budget = np.ravel(self.norm_bound)[i], np.ravel(self.variation_budget)[i]
        scale = self.noise_scale
        return Episode(
            **rows,
            centres=centres,
            norm_bound=float(bound),
            variation_budget=float(budget),
            arms=None if self.arms is None else self.arms[i],
            knots=knots,
            noise_scale=None if scale is None else float(np.ravel(scale)[i]),
            kernels=None if self.kernels is None else self.kernels[i : i + 1],
            available=None if self.available is None else self.available[i],
            parameters=None if self.parameters is None else self.parameters[i],
        )


def make_episode(
    schedule: Schedule,
    functions: Functions,
    search: Search,
    norm_bound: float | None = None,
    available: Mask | None = None,
) -> Episode:
    """Work out what a scorer needs to know.

    Args:
        schedule: How f_t moves between the functions.
        functions: The knots.
        search: How to find a function's maximum on the decision set.
        norm_bound: The bound B where one was asked for; otherwise the largest norm in it.
        available: Where arms come and go, which are there at each step, `(T, n)`; the schedule's
            positions then are the steps.

    Raises:
        ValueError: If no arm is there at a step, or one that is not pays more than all that are.
    """
    differences = functions.differences()
    increments = schedule.increments(differences)
    moved = sup_increments(schedule, differences, search)
    if available is None:
        optimum = search.along(schedule, functions)
    else:
        optimum = best_available(schedule.along(functions).values, available)
    drawn = scored(schedule, functions, optimum, increments, moved, norm_bound)
    return replace(drawn, available=available)


def scored(
    schedule: Schedule,
    functions: Functions,
    optimum: tuple[Array, Actions],
    increments: Array,
    moved: Array,
    norm_bound: float | None,
) -> Episode:
    """Return the episode of functions with this optimum and these changes, in both norms."""
    variation = np.cumsum(increments, axis=-1)
    return Episode(
        values=functions.values,
        coefficients=functions.coefficients,
        centres=functions.centres,
        optimal_reward=optimum[0],
        optimal_action=optimum[1],
        variation=variation,
        sup_variation=np.cumsum(moved, axis=-1),
        norm_bound=largest_norm(schedule, functions, norm_bound),
        variation_budget=number(variation[..., -1]),
    )


def largest_norm(
    schedule: Schedule, functions: Functions, norm_bound: float | None
) -> float | Array:
    """Return B: what was asked for, or else the largest norm; of a batch `(B,)`."""
    if norm_bound is None:
        return number(schedule.largest_norm(functions))
    return number(np.full(functions.values.shape[:-2], norm_bound))


def number(value: Array) -> float | Array:
    """Return a single number as a float, and an array of a batch as it is."""
    return value if value.ndim else float(value)


def linear_episode(
    schedule: Schedule,
    functions: Functions,
    features: Array,
    norm_bound: float | None = None,
    link: str = "identity",
) -> Episode:
    """Work out what a scorer needs to know of functions f = theta^T phi on arms that stay.

    Args:
        schedule: How f_t moves; each of its positions is a knot, or a step.
        functions: `linear_functions` of the vectors theta.
        features: phi of the arms, `(n, d)`.
        norm_bound: The bound B where one was asked for.
        link: What the expected reward is of the function.

    Raises:
        ValueError: If a position is between two knots, or there are others than the first ones.
    """
    if not schedule.rests or schedule.left[0]:
        rule = "one whose positions are its knots, as piecewise_constant and knot_per_step have it"
        reject("schedule", "linear_episode", rule, schedule)
    rewards = linear_rewards(functions.coefficients.take(schedule.left, -2), features, link)
    increments = schedule.increments(functions.differences())
    moved = from_zero(np.abs(np.diff(rewards, axis=-2)).max(axis=-1))
    drawn = scored(schedule, functions, best_of(rewards), increments, moved, norm_bound)
    return replace(drawn, values=rewards)


def changing_episode(
    schedule: Schedule,
    functions: Functions,
    features: Callable[[Array], Array],
    arms: Floats32,
    norm_bound: float | None = None,
    link: str = "identity",
) -> Episode:
    """Work out the same for arms that are drawn anew at each step.

    Args:
        schedule: How f_t moves; its positions are the steps.
        functions: `linear_functions` of the vectors theta.
        features: The map phi.
        arms: The arms of every step, `(T, n, d)`.
        norm_bound: The bound B where one was asked for.
        link: What the expected reward is of the function.
    """
    if schedule.weight.any():
        theta = schedule.along(functions).coefficients
    else:
        theta = functions.coefficients.take(schedule.left, -2)
    top, best = np.empty(theta.shape[:-1]), np.empty(theta.shape[:-1], np.int64)
    for steps in blocks(0, theta.shape[-2], arms.size // theta.shape[-2]):
        phi = features(arms[..., steps, :, :].astype(float))
        rewards = linear_rewards(theta[..., steps, :], phi, link)
        top[..., steps], best[..., steps] = best_of(rewards)
    increments = schedule.increments(functions.differences())
    # An upper bound of the change in the sup norm, since k(x, x) <= 1.
    moved = increments * (1.0 if link == "identity" else LOGISTIC_SLOPE)
    drawn = scored(schedule, functions, (top, best), increments, moved, norm_bound)
    return replace(drawn, arms=arms)


def best_of(rewards: Array) -> tuple[Array, Indices]:
    """Return the largest of each row, and where the first of equals stands."""
    best = rewards.argmax(axis=-1)
    return np.take_along_axis(rewards, best[..., None], -1)[..., 0], best


def best_available(rewards: Array, available: Mask) -> tuple[Array, Indices]:
    """Return the largest of each row that is there, and where the first of equals stands."""
    if not available.any(axis=-1).all():
        reject("available", "an episode", "True for at least one arm at each step", available)
    top, best = best_of(np.where(available, rewards, -np.inf))
    if (rewards > top[..., None]).any():
        rule = "True for an arm that pays more than all others"
        reject("available", "an episode", rule, available)
    return top, best


def linear_rewards(theta: Array, features: Array, link: str) -> Array:
    """Return link(theta^T phi) for vectors `(..., d)` and features `(..., n, d)`, `(..., n)`.

    Args:
        theta: The vectors.
        features: The arms' features phi.
        link: "identity" or "logistic".
    """
    total: Array = np.zeros(np.broadcast_shapes((*theta.shape[:-1], 1), features.shape[:-1]))
    for axis in range(theta.shape[-1]):
        total += features[..., axis] * theta[..., axis, None]
    return np.asarray(scipy.special.expit(total)) if link == "logistic" else total


def sup_increments(schedule: Schedule, differences: Functions, search: Search) -> Array:
    """Return max_x |f_u(x) - f_{u-1}(x)| of every step, `(U,)`; 0 first. D_k are `differences`."""
    base, near, far = schedule.steps
    steps = np.abs(near) * with_zero(search.sup_norms(differences)).take(base, -1)
    for u in np.flatnonzero(far):  # a step across a knot: rare
        here, there = differences[base[u : u + 1]], differences[base[u : u + 1] + 1]
        moved = here.affine(there, near[u] + far[u], near[u])
        steps[..., u] = search.sup_norms(moved)[..., 0]
    return from_zero(steps)
