"""Bands: how far an agent's mean may be from the function, in the unit of the rewards.

A band is mean -+ 1.96 std. Its mean is that of the agent's posterior; its std is the root of the
squared error that the models of a bank expect of that mean: those of `ModelBank`, each weighted by
the exponential of its score times `TEMPER`, as in Bayesian model averaging with a tempered
likelihood. So it has what the models differ by, what each is unsure of, and the uncertainty of its
scale: Student's t, of as many degrees of freedom as the scale was learned from, widens a variance
until 1.96 std is its 97.5 % quantile.

An agent that has a bank hands it over: `squared_errors`. Of any other the last plays are kept, and
a small bank learns from them whenever bands are asked for: `PlayRecord`. It is told no noise, no
norm and no unit, so that the bands hold where the agent's own numbers do not; and it does not have
the agent's model, so that they say how wrong that model has become.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from wgp_agents.core.state import check_counts
from wgp_agents.gp.action_sets import ActionSet, Plays, Points
from wgp_agents.gp.box import make_action_set
from wgp_agents.gp.model import Posterior
from wgp_agents.gp.surrogates.bank import ModelBank, clip_outliers
from wgp_agents.gp.surrogates.kernel_features import kernel_features
from wgp_agents.kernels.bands import bank_squares, replayed_squares
from wgp_agents.kernels.play_record import PLAYS, PlayArrays, put_away
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array, Indices, Mask

__all__ = ["PlayRecord", "band_of", "squared_errors"]

TAIL, NORMAL = 0.975, 1.959963984540054  # a quantile, and that of the normal distribution
DRIFTS = (0.0, 0.003, 0.01, 0.03, 0.1)
NOISE_RATIOS = (1e-3, 1e-2, 0.1, 1.0)
BLOCK = 32  # plays that are put away at once
AT_ONCE = 64  # learners whose plays have their features at the same time


def band_of(mean: Array, square: Array, batched: bool) -> Posterior:
    """Return the bands of B learners, `(B, n)`, or the only one's, `(n,)`, from squared errors."""
    std = np.sqrt(square)
    return Posterior(mean, std) if batched else Posterior(mean[0], std[0])


def tail_factors(halves: Array) -> Array:
    """Return the squared ratios of Student's 97.5 % quantile to the normal one.

    Args:
        halves: Half the degrees of freedom, `(B,)`; the ratio of 0 is never used, and 1.
    """
    freedom = np.where(halves > 0.0, 2.0 * halves, math.inf)
    ratios: Array = scipy.special.stdtrit(np.minimum(freedom, 1e6), TAIL) / NORMAL
    return ratios**2


def squared_errors(
    bank: ModelBank, points: Points, mean: Array, some: Indices | None = None
) -> Array:
    """Return what the models of a bank expect of (f - mean)^2 at points, `(B, q)`.

    It is infinite where no unit of the rewards is known: before the second reward, and while all
    were equal.

    Args:
        bank: The bank.
        points: The points.
        mean: The means, `(B, q)`.
        some: Which of the points are meant, `(q,)`; None: all.
    """
    square, factor = np.zeros_like(mean), tail_factors(bank.kept.shape)
    for g in range(len(bank.features.rank)):
        seen = bank.features.see(points, np.full(len(mean), g))
        phi, left = seen.features, seen.residual
        if some is not None:
            phi, left = np.take(phi, some, axis=2), np.take(left, some, axis=1)
        of_points = phi, seen.which, left
        bank_squares(g, *of_points, factor, bank.models, bank.kept, mean, square)
    return square


class PlayRecord:
    """Plays of each learner, from which a small bank tells how wrong a mean may be.

    The last 128 are kept, and of older ones the last of each arm (of arms 128 apart, of one of
    them; where arms are drawn anew, the 128 before). Whenever it is asked, the bank, of five drifts
    and four noise ratios, learns from them in their order, and lets the time between them go by:
    O(K Q m^2) with K = 256 plays and Q = 40 models, whatever t is.

    Args:
        problem: The problem; on a box its grid stands for all points.
        time_comes_first: Whether the time of a play goes by before it: see `Surrogate`.
    """

    _constants = (
        *("_first", "_problem", "_bank", "_action_set"),
        *("_actions", "_rewards", "_active", "_steps"),
    )

    def __init__(self, problem: BanditProblem, *, time_comes_first: bool = False) -> None:
        self._first = time_comes_first
        batch, dim = problem.batch_size or 1, problem.domain.shape[1]
        self._problem, size = problem, (batch, 2 * PLAYS)
        self.kept = PlayArrays(
            arm=np.zeros(size, np.int64),
            place=np.zeros((*size, dim if problem.contextual else 0)),
            reward=np.zeros(size),
            time=np.full(size, -1),
            clock=np.zeros(size),
            seen=np.zeros(batch, np.int64),
        )
        self._clock = np.zeros(batch)  # the steps of the world that have gone by
        # The last plays, not put away yet, in the form of `Agent._learn`.
        self._count, rows = 0, (BLOCK, batch)
        arms = not (problem.contextual or problem.continuous)
        self._actions: Actions = np.zeros(rows, np.int64) if arms else np.zeros((*rows, dim))
        self._rewards, self._steps = np.zeros(rows), np.ones(rows)
        self._active = np.zeros(rows, bool)
        self._bank: ModelBank | None = None
        self._action_set: ActionSet | None = None

    def __getstate__(self) -> dict[str, object]:
        """Return all, with every play put away."""
        self._put_away()
        return vars(self)

    def _check_state(self) -> None:
        check_counts(self, "seen", self.kept.seen, 2**62)
        check_counts(self, "time", self.kept.time + 1, 2**62)
        most = 2**62 if self._problem.contextual else len(self._problem.domain) - 1
        check_counts(self, "arm", self.kept.arm, most)
        check_counts(self, "count", np.array([self._count]), 0)

    def clear(self, mask: Mask) -> None:
        """Forget the plays of the learners in `mask` `(B,)`."""
        self._put_away()
        for array in self.kept:
            array[mask] = 0
        self.kept.time[mask] = -1
        self._clock[mask] = 0.0

    def add(
        self, actions: Actions, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Take note of one play of every learner in `active`, in the form of `Agent._learn`.

        `elapsed` are the steps that go by with it, `(B,)`; None: one.
        """
        k = self._count
        self._actions[k], self._rewards[k], self._active[k] = actions, rewards, active
        if elapsed is not None:
            self._steps[k] = elapsed
        self._count = k + 1
        if k + 1 == BLOCK:
            self._put_away()

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let `steps` `(B,)` go by for the learners in `active`."""
        self._put_away()
        self._clock += active * steps

    def seen(self) -> Indices:
        """Return how many plays of each learner there were, `(B,)`."""
        self._put_away()
        return self.kept.seen

    def _put_away(self) -> None:
        """Write the last plays into the arrays."""
        count, actions = self._count, self._actions
        if not count:
            return
        arms: Indices = actions
        places: Array = np.zeros((BLOCK, len(self._clock), 0))
        if self._problem.contextual:
            arms, places = np.zeros(self._rewards.shape, np.int64), actions
        elif self._problem.continuous:
            points = actions.reshape(-1, actions.shape[2])
            arms = self._tools()[1].embed(points).actions.reshape(self._rewards.shape)
        feedback = self._rewards, self._active, self._steps
        put_away(count, arms, places, *feedback, self._first, self._clock, self.kept)
        self._count, self._steps[:count] = 0, 1.0

    def squared_errors(self, mean: Array, arms: Array | None) -> Array:
        """Return what the bank expects of (f - mean)^2, `(B, n)`; see the function of this name.

        Args:
            mean: The means on the domain, or of `arms`, `(B, n)`.
            arms: Where arms are drawn anew at each step, those last shown, `(B, n, d)`.
        """
        self._put_away()
        bank, action_set = self._tools()
        kept, first = in_order(self.kept)
        clock = np.column_stack([kept.clock, self._clock])
        # Half the degrees of freedom after so many plays that tell of scales.
        fade, told = bank.rates.scale, plays_from_a_change(kept.reward, first)
        factor, square = tail_factors((1 - fade**told) / (1 - fade) / 2), np.empty_like(mean)
        trim_first(kept.reward, first, bank.rates.warmup)
        action_set.show(arms)
        seen = bank.features.see(action_set.candidates, np.zeros(len(mean), np.int64))
        for start in range(0, len(mean), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            features, left = self._features(kept.arm[part], kept.place[part])
            plays = features, left, kept.reward[part], kept.time[part], clock[part]
            of_points = seen.features, seen.which[part], seen.residual, factor[part]
            room = bank.models, bank.rates, bank.kept
            replayed_squares(*plays, *of_points, *room, mean[part], square[part])
        return square

    def bands(self, mean: Array, arms: Array | None, batched: bool) -> Posterior:
        """Return the bands around means, as `band_of`; see `squared_errors`."""
        return band_of(mean, self.squared_errors(mean, arms), batched)

    def _features(self, arm: Indices, place: Array) -> tuple[Array, Array]:
        """Return the features of plays, `(b, 2 W, 1, m)`, and what they leave out."""
        bank, action_set = self._tools()
        if self._problem.contextual:
            places = place.reshape(-1, place.shape[2])
            none = np.zeros((len(places), 0))  # the bank has features of its own
            plays = Plays(places, none, np.zeros(len(places)))
        else:
            plays = action_set.recall(arm.reshape(-1))
        features, left = bank.features.embed(plays)
        shape = arm.shape
        return features.reshape(*shape, *features.shape[1:]), left.reshape(*shape, left.shape[1])

    def _tools(self) -> tuple[ModelBank, ActionSet]:
        """Return the bank, of one learner, and the action set with which it sees the plays."""
        if self._bank is None or self._action_set is None:
            problem, kernel = self._problem, self._problem.kernel
            alone, all_ = (
                make_action_set(kernel, problem, np.ones(count), grid=True, max_features=1)
                for count in (1, len(self.kept.seen))
            )
            features = kernel_features(problem, [kernel])
            self._bank = ModelBank(alone, features, DRIFTS, NOISE_RATIOS)
            self._action_set = all_
        return self._bank, self._action_set


def in_order(kept: PlayArrays) -> tuple[PlayArrays, Indices]:
    """Return the plays of each learner in the order of time, and where they begin, `(B,)`."""
    order: Indices = np.argsort(kept.time, axis=1, kind="stable")
    at = np.arange(len(order))[:, None], order
    found = kept._replace(
        arm=kept.arm[at],
        place=kept.place[at],
        reward=kept.reward[at],
        time=kept.time[at],
        clock=kept.clock[at],
    )
    return found, (kept.time < 0).sum(axis=1)


def plays_from_a_change(rewards: Array, first: Indices) -> Indices:
    """Return how many plays are left from the first reward that differs from the first, `(B,)`.

    Args:
        rewards: In the order of time, `(B, K)`.
        first: Where each learner's begin, `(B,)`.
    """
    count, rows = rewards.shape[1], np.arange(len(rewards))
    differs = rewards != rewards[rows, np.minimum(first, count - 1)][:, None]
    differs &= np.arange(count) >= first[:, None]
    found: Indices = np.where(differs.any(axis=1), count - differs.argmax(axis=1), 0)
    return found


def trim_first(rewards: Array, first: Indices, warmup: int) -> None:
    """Move outliers among the first rewards of each learner, as `ModelBank` does.

    Args:
        rewards: In the order of time, `(b, K)`; they are changed.
        first: Where each learner's begin, `(b,)`.
        warmup: How many are looked at together.
    """
    rows = np.flatnonzero(first + warmup <= rewards.shape[1])
    at = rows[:, None], first[rows, None] + np.arange(warmup)
    rewards[at] = clip_outliers(rewards[at])
