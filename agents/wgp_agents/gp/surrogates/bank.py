"""The bank: many models of a drifting function, believed as far as they predict the rewards."""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np

from wgp_agents.core.state import check_counts
from wgp_agents.gp.action_sets import ActionSet, Plays, Points
from wgp_agents.gp.surrogates.base import Prediction, Surrogate
from wgp_agents.gp.surrogates.kernel_features import KernelFeatures, Seen
from wgp_agents.kernels.bank import (
    bank_bounds,
    bank_elapse,
    bank_hallucinate,
    bank_means,
    bank_posteriors,
    bank_restart,
    bank_update,
)
from wgp_agents.kernels.bank_arrays import BankArrays, BankModels, BankRates
from wgp_agents.kernels.elapsed import drifted
from wgp_gym.threads import over_learners, over_parts
from wgp_gym.types import Array, Indices, Mask

__all__ = ["RATES", "ModelBank"]

RATES = BankRates(
    strategy=0.998,  # 500 steps, which tell one drift and its restarts from another
    recent=0.95,  # 20 steps
    lasting=0.9995,
    lasting_weight=0.1,
    scale=0.998,
    signal=0.99,
    margin=10.0,
    restart_penalty=3.0,
    carry_over=0.05,
    recenter_at=5.0,
    clip_at=10.0,
    warmup=10,
)
CUT = 0.03  # of the variance of noise or function: what features may leave out of k(x, x)
OUTLIER = 20.0  # ranges of the other first rewards, beyond which one is an outlier
BONUS = 1.0  # nats, of a function without drift, and of the first kernel


class ModelBank(Surrogate):
    """Q models of each of B learners: drifts eps, noise ratios lambda and kernels of a grid.

    Rewards are first counted from the first one. Model q takes the function for s g_t, with noise
    of variance lambda s^2, where g_t drifts by eps as in `DriftSurrogate` and s^2 is unknown. With
    the innovation nu_t = y_t - mean and its variance s^2 v_t, the predictive density p_q of y_t is
    Student's t, its scale estimated from the past nu^2 / v, which fade by `rates.scale` a step.

    Scores are sums of log p_q. Each pair of a lengthscale and a noise ratio is a block of models.
    A block holds each drift twice: judged among the models of its block alone, and among those of
    all blocks, its pool. Each block's own models are an evidence class c, and the pool is one more.

    1. Weights in a class: w_q ~ exp(R_q + M_q + prior_q). A function without drift and the first
       kernel have a prior of one nat each.
    2. Evidence of a class: E_c <- E_c + log sum over q in c of w_q p_q. It never fades.
    3. Regime score R_q <- R_q + log p_q; strategy score M_q <- fade M_q + log p_q, by
       `rates.strategy`. Both are then taken relative to the best of the class.
    4. A model that is older than the warm-up and whose R_q is more than `rates.margin` behind
       restarts, `rates.restart_penalty` behind. It stands for a function that has just changed
       altogether. Its M_q stays: it scores the drift together with its restarts.
    5. By evidence the best model is that of the largest E_c + R_q + M_q + prior_q; by the last
       steps that of the largest F_q + b L_q + prior_q, where F and L are sums of log p_q that fade
       by `rates.recent` and `rates.lasting`, b = `rates.lasting_weight`. A model that restarts has
       the best L, and the penalty on the best F.
    6. Chosen is the second if D > 0, the sum of what the second's log p_q was ahead by at each
       step, fading by `rates.strategy`; else the first.

    Scores begin once every model has a scale, at the third reward or later. A model that restarts
    counts rewards from the (upper) median of the last ones, of the warm-up's number, if that is too
    many s away from where it counted from.

    The function's own scale s, which a confidence bound needs, is estimated apart: the mean of
    nu^2 / v, weighted by the share of the variance at the play that was still unknown. Repeated
    plays of one arm say much about the noise and nothing about the other arms. The estimate fades
    with what is learned: by `rates.signal` for a play of an arm never seen. A model that restarts
    keeps a share of it.

    Outliers are clipped. After the warm-up an innovation counts as a limited number of its standard
    deviations. The rewards of the warm-up are looked at together, since a scale estimated from so
    few may itself be an outlier: see `clip_outliers`. If one is moved, all are learned again.

    A block has the fewest leading features that leave at most `CUT` of lambda, and of the largest
    k(x, x), out of k(x, x) at every arm: where there is more noise, fewer tell of anything. What
    they leave out counts as noise of each play, and is part of the variance, but not of that of a
    bound.

    Args:
        action_set: What is chosen from.
        features: Its features, by kernel.
        drifts: eps of the models, each in [0, 1].
        noise_ratios: lambda of the models, each > 0.
        rates: How fast to forget, and the limits above.

    Attributes:
        models: The models, the first kernel's blocks first. Of equals the first is chosen.
    """

    _constants: ClassVar[tuple[str, ...]] = ("models", "_step", "_rates", "_work")
    takes_elapsed = True

    def __init__(
        self,
        action_set: ActionSet,
        features: KernelFeatures,
        drifts: tuple[float, ...],
        noise_ratios: tuple[float, ...],
        rates: BankRates = RATES,
    ) -> None:
        super().__init__(action_set)
        batch = len(self.held)
        self.models = models = models_of(features, drifts, noise_ratios)
        self.features, self._rates, self._rows = features, rates, np.arange(batch)
        self._step = models.drift[None]  # what each drifts by in one step
        self._work = 8.0 * len(models.drift) * float((models.rank**2).sum())  # of a play
        m, shape = int(features.rank.max()), (batch, len(models.prior))
        self._early_features = np.zeros((rates.warmup, batch, len(features.rank), m))
        self._early_left = np.zeros((rates.warmup, batch, len(features.rank)))
        self._early_steps = np.zeros((rates.warmup, batch))  # to the next play
        self.kept = BankArrays(
            covariance=np.zeros((batch, models.covariance_start[-1])),
            weights=np.zeros((batch, models.weights_start[-1])),
            square=np.zeros(shape),
            shape=np.zeros(batch),
            signal=np.zeros(shape),
            informed=np.zeros(shape),
            regime=np.zeros(shape),
            strategy=np.zeros(shape),
            evidence=np.zeros((batch, 1 + models.evidence_class.max())),
            recent=np.zeros(shape),
            lasting=np.zeros(shape),
            picked=np.zeros((batch, 2), np.int64),
            lead=np.zeros(batch),
            age=np.zeros(shape, np.int64),
            chosen=np.zeros(batch, np.int64),
            zero=np.zeros(shape),
            latest=np.zeros((batch, rates.warmup)),
            seen=np.zeros(batch, np.int64),
        )

    def _check_state(self) -> None:
        check_counts(self, "chosen", self.kept.chosen, len(self.models.prior) - 1)
        check_counts(self, "picked", self.kept.picked, len(self.models.prior) - 1)
        check_counts(self, "seen", self.kept.seen, 2**62)
        check_counts(self, "age", self.kept.age, 2**62)

    def restart(self, mask: Mask, forgetting: Array | None = None) -> None:
        """Forget all that the learners in `mask` `(B,)` know; `forgetting` is not used."""
        bank_restart(mask, self.models, self.kept)
        self.held[mask] = 0

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Learn from one play of every learner in `active`; scores count plays, drifts time."""
        features, left = self.features.embed(plays)
        early = self._observe(features, left, rewards, active, elapsed)
        self.held += active
        if early:
            self._keep_early(features, left, active, elapsed)

    def _keep_early(
        self, features: Array, left: Array, active: Mask, elapsed: Array | None
    ) -> None:
        """Take note of plays within the warm-up, and look at their rewards at its end."""
        seen, warmup = self.kept.seen, self._rates.warmup
        early = np.flatnonzero(active & (seen <= warmup))
        at = seen[early] - 1, early
        self._early_features[at], self._early_left[at] = features[early], left[early]
        self._early_steps[at] = 1.0 if elapsed is None else elapsed[early]
        grown = early[seen[early] == warmup]
        if grown.size:
            self._look_back(grown)

    def _look_back(self, learners: Indices) -> None:
        """Let learners with an outlier among their first rewards learn from these again."""
        rewards = self.kept.latest.copy()
        rewards[learners] = clip_outliers(rewards[learners])
        again = (rewards != self.kept.latest).any(axis=1)
        if again.any():
            held = self.held.copy()
            self.restart(again)
            self.held[:] = held
            early = self._early_features, self._early_left, rewards.T, self._early_steps
            for features, left, paid, steps in zip(*early, strict=True):
                self._observe(features, left, paid, again, steps)

    def _observe(
        self, features: Array, left: Array, rewards: Array, active: Mask, elapsed: Array | None
    ) -> bool:
        """Let the models learn; return whether a learner of `active` is within its warm-up."""
        if elapsed is None:
            return self._step_all(features, left, rewards, active, self.models)
        # Those for whom the same time goes by together: not one call with drifts by learner, as
        # one more argument makes every step slower.
        early = False
        for steps in np.unique(elapsed[active]):
            mine = active & (elapsed == steps)
            models = self.models._replace(drift=drifted(self._step, np.array([steps]))[0])
            early |= self._step_all(features, left, rewards, mine, models)
        return early

    def _step_all(
        self, features: Array, left: Array, rewards: Array, active: Mask, models: BankModels
    ) -> bool:
        """Take in one play of each learner in `active`; return as `_observe` does."""

        def _update(mine: Mask) -> bool:
            return bank_update(features, left, rewards, mine, models, self._rates, self.kept)

        return any(over_learners(_update, active, self._work))

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let all models drift."""
        seen, warmup = self.kept.seen, self._rates.warmup
        bank_elapse(active, drifted(self._step, steps), self.models, self.kept)
        early = np.flatnonzero(active & (seen > 0) & (seen <= warmup))
        self._early_steps[seen[early] - 1, early] += steps[early]

    def hallucinate(self, plays: Plays, active: Mask) -> None:
        """Count a play in the variances of the chosen model, by which the next choice is made."""
        features, left = self.features.embed(plays)
        bank_hallucinate(features, left, active, self.models, self.kept)

    @property
    def rates(self) -> BankRates:
        """How fast it forgets."""
        return self._rates

    @property
    def chosen(self) -> Indices:
        """The chosen model of each learner, `(B,)`."""
        return self.kept.chosen.copy()

    @property
    def block(self) -> Indices:
        """The block of the chosen model, `(B,)`."""
        blocks: Indices = self.kept.chosen // len(self.models.drift)
        return blocks

    @property
    def drift(self) -> Array:
        """The chosen model's eps, `(B,)`."""
        drifts: Array = self.models.drift[self.kept.chosen % len(self.models.drift)]
        return drifts

    def _of_chosen(self, values: Array) -> Array:
        """Return the chosen model's number of `(B, Q)`, `(B,)`."""
        found: Array = values[self._rows, self.kept.chosen]
        return found

    @property
    def age(self) -> Indices:
        """Steps since the chosen model was last restarted, `(B,)`."""
        ages: Indices = self.kept.age[self._rows, self.kept.chosen]
        return ages

    @property
    def zero(self) -> Array:
        """The reward that the chosen model counts from, `(B,)`."""
        return self._of_chosen(self.kept.zero)

    @property
    def informed(self) -> Array:
        """By how many plays the chosen model's scale of the function was learned, `(B,)`."""
        return self._of_chosen(self.kept.informed)

    @property
    def scale(self) -> Array:
        """The function's scale s by the chosen model, `(B,)`; 0 where nothing is known."""
        informed, signal = self.informed, self._of_chosen(self.kept.signal)
        scale: Array = np.sqrt(signal / np.where(informed > 0, informed, 1.0))
        return scale

    def _see(self, points: Points, learners: Indices) -> Seen:
        """Return the features of points by the chosen models of those who look, `(q,)`."""
        chosen = self.kept.chosen[learners]
        return self.features.see(points, self.models.table[chosen // len(self.models.drift)])

    def standardised(self, points: Points, learners: Indices | None = None) -> Prediction:
        """Return means less the zero, and variances in the unit s^2, of points, `(k, q)` each.

        `learners` are those who look at the points, `(k,)`; None: all. The variances of a bound are
        without what a block's features leave out, which no play tells more of, and which would be
        explored without end.
        """
        rows = self._rows if learners is None else learners
        phi, which, residual = self._see(points, rows)
        found = Prediction(*np.empty((3, len(rows), phi.shape[2])))
        bank_posteriors(phi, which, residual, rows, self.models, self.kept, *found)
        return found

    def predict(self, points: Points, learners: Indices | None = None) -> Prediction:
        """Return the chosen model's posterior at points, in the unit of the rewards."""
        rows = slice(None) if learners is None else learners
        mean, variance, bound_variance = self.standardised(points, learners)
        square = self.scale[rows, None] ** 2
        return Prediction(mean + self.zero[rows, None], square * variance, square * bound_variance)

    def means(self, points: Points) -> Array:
        """Return the means of `predict` alone, `(B, q)`."""
        phi, which, _ = self._see(points, self._rows)
        mean = np.empty((len(which), phi.shape[2]))
        bank_means(phi, which, self.models, self.kept, mean)
        mean += self.zero[:, None]
        return mean

    def bounds(self, points: Points, width: Array, learners: Indices | None = None) -> Array:
        """Return the upper bounds of points in the function's own unit, `(k, q)`.

        A bound is mean / s + width (1 + 1 / n)^{1/2} std, with s^2 std^2 the variance of a bound,
        and n the number of plays from which s was learned. While no s is known, the mean counts as
        0, and after the warm-up std, too.

        Args:
            points: The points.
            width: By model of a block, `(K,)`.
            learners: Who looks at them, `(k,)`; None: all.
        """
        rows = self._rows if learners is None else learners
        phi, which, residual = self._see(points, rows)
        bounds, early = np.empty((len(rows), phi.shape[2])), self._rates.warmup
        m, n = phi.shape[1:]

        def _fill(part: slice[int, int, None]) -> None:
            who, mine = rows[part], bounds[part]
            bank_bounds(phi, which[part], residual, who, width, early, self.models, self.kept, mine)

        over_parts(_fill, len(rows), m * m * n / 2.0)
        return bounds

    def leading_bounds(self, points: Points, width: Array, allowed: Mask | None = None) -> Array:
        """Return `bounds`, `(B, q)`, of which each learner's best and all that tie are right.

        Others may be too large, and do not reach these.

        Args:
            points: The points.
            width: By model of a block, `(K,)`.
            allowed: What may be chosen, `(B, q)`; None: everything.
        """
        return self.bounds(points, width)


def models_of(
    features: KernelFeatures, drifts: tuple[float, ...], noise_ratios: tuple[float, ...]
) -> BankModels:
    """Return the models of a bank: a block for each kernel and noise ratio."""
    grid = itertools.product(range(len(features.rank)), noise_ratios)
    table, noise = (np.array(column) for column in zip(*grid, strict=True))
    blocks, each = len(noise), len(drifts)
    # With one block its own class and the pool were the same.
    drift = np.tile(drifts, 1 if blocks == 1 else 2)
    pooled = np.arange(len(drift)) >= each
    rank = features.leading(table, noise, CUT)
    sizes = len(drift) * np.array([rank * (rank + 1) // 2, rank])
    starts = np.column_stack([[0, 0], np.cumsum(sizes, axis=1)])
    return BankModels(
        drift=drift,
        noise=noise,
        table=table,
        rank=rank,
        prior=(BONUS * (drift == 0.0) + BONUS * (table == 0)[:, None]).ravel(),
        evidence_class=np.where(pooled, blocks, np.arange(blocks)[:, None]).ravel(),
        covariance_start=starts[0],
        weights_start=starts[1],
    )


def clip_outliers(rewards: Array) -> Array:
    """Move outliers among rewards `(k, n)` to within one range of the rest of them.

    The rest are the n - 2 that lie closest together. An outlier is further than `OUTLIER` times
    their range from them.
    """
    order, rows = np.sort(rewards, axis=1), np.arange(len(rewards))
    closest = (order[:, -3:] - order[:, :3]).argmin(axis=1)
    low, high = order[rows, closest, None], order[rows, closest - 3, None]
    reach = high - low
    far = (reach > 0) & ((rewards > high + OUTLIER * reach) | (rewards < low - OUTLIER * reach))
    return np.where(far, np.clip(rewards, low - reach, high + reach), rewards)
