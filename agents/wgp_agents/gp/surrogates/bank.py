"""The bank: many models of a drifting function, scored by how well they predict the rewards."""

from __future__ import annotations

import itertools

import numpy as np

from wgp_agents.core.state import check_counts
from wgp_agents.gp.action_sets import ActionSet, Plays, Points
from wgp_agents.gp.surrogates.base import Prediction, Surrogate
from wgp_agents.gp.surrogates.kernel_features import KernelFeatures
from wgp_agents.kernels.bank import (
    BankArrays,
    BankModels,
    BankRates,
    bank_elapse,
    bank_hallucinate,
    bank_posteriors,
    bank_update,
)
from wgp_agents.kernels.elapsed import drifted
from wgp_gym.types import Array, Indices, Mask

__all__ = ["RATES", "ModelBank"]

RATES = BankRates(
    recent=0.95,  # 20 steps, which tell one drift from another
    lasting=0.9995,
    weight=0.1,
    scale=0.99,
    signal=0.99,
    margin=10.0,
    restart_penalty=3.0,
    carry_over=0.05,
    recenter_at=5.0,
    clip_at=10.0,
    warmup=10,
)
OUTLIER = 20.0  # ranges of the other first rewards, beyond which one is an outlier
BONUS = 1.0  # nats, of a function without drift, and of the first kernel


class ModelBank(Surrogate):
    """Q models of each of B learners: all drifts eps, noise ratios lambda and kernels of a grid.

    Rewards are first counted from the first one. Model q takes the function for s g_t, with noise
    of variance lambda s^2, where g_t drifts by eps as in `DriftSurrogate` and s^2 is unknown. With
    the innovation nu_t = y_t - mean and its variance s^2 v_t, the predictive density of y_t is
    Student's t, its scale estimated from the past nu^2 / v, which fade by `rates.scale` a step. Its
    logarithm is the model's score, relative to the step's best model; `recent` fades by
    `rates.recent`, `lasting` by `rates.lasting`, and the model of the largest
    recent + weight * lasting is chosen. A function without drift and the first kernel get a bonus
    of one nat each. Scores begin once every model has a scale, at the third reward or later.

    A model restarts if its `recent` is more than a margin behind the best and it is older than the
    warm-up. It then gets the best `recent` less a penalty and the best `lasting`, and stands for a
    function that has just changed altogether. A model counts rewards from the (upper) median of the
    last ones, of the warm-up's number, once that is too many s away from where it counted from.

    The function's own scale s, which a confidence bound needs, is estimated apart: the mean of
    nu^2 / v, weighted by the share of the variance at the play that was still unknown. Repeated
    plays of one arm say much about the noise and nothing about the other arms. The estimate fades
    with what is learned: by `rates.signal` for a play of an arm never seen. A model that restarts
    keeps a share of it.

    Outliers are clipped. After the warm-up an innovation counts as a limited number of its standard
    deviations. The rewards of the warm-up are looked at together, since a scale estimated from so
    few may itself be an outlier: see `clip_outliers`. If one is moved, all are learned again.

    Args:
        action_set: What is chosen from.
        features: Its features, by kernel.
        drifts: eps of the models, each in [0, 1].
        noise_ratios: lambda of the models, each > 0.
        rates: How fast to forget, and the limits above.

    Attributes:
        models: The models, the first kernel's first. Of equals the first is chosen.
    """

    _constants = ("models", "_step")
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
        grid = itertools.product(range(len(features.rank)), drifts, noise_ratios)
        table, drift, noise = (np.array(column) for column in zip(*grid, strict=True))
        prior = BONUS * (drift == 0.0) + BONUS * (table == 0)
        self.models = BankModels(drift, noise, table.astype(np.int64), features.rank, prior)
        self.features, self._rates, self._rows = features, rates, np.arange(batch)
        self._step = self.models.drift[None]  # what each drifts by in one step
        m, shape = int(features.rank.max()), (batch, len(drift))
        self._early_features = np.zeros((rates.warmup, batch, len(features.rank), m))
        self._early_left = np.zeros((rates.warmup, batch, len(features.rank)))
        self._early_steps = np.zeros((rates.warmup, batch))  # to the next play
        self.kept = BankArrays(
            covariance=np.zeros((*shape, m, m)),
            weights=np.zeros((*shape, m)),
            square=np.zeros(shape),
            shape=np.zeros(batch),
            signal=np.zeros(shape),
            informed=np.zeros(shape),
            recent=np.zeros(shape),
            lasting=np.zeros(shape),
            age=np.zeros(shape, np.int64),
            chosen=np.zeros(batch, np.int64),
            zero=np.zeros(shape),
            latest=np.zeros((batch, rates.warmup)),
            seen=np.zeros(batch, np.int64),
        )

    def _check_state(self) -> None:
        check_counts(self, "chosen", self.kept.chosen, len(self.models.table) - 1)
        check_counts(self, "seen", self.kept.seen, 2**62)

    def restart(self, mask: Mask, forgetting: Array | None = None) -> None:
        """Forget all that the learners in `mask` `(B,)` know; `forgetting` is not used."""
        for array in self.kept:
            array[mask] = 0
        self.kept.covariance[mask] = np.eye(self.kept.covariance.shape[2])
        self.held[mask] = 0

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Learn from one play of every learner in `active`; scores count plays, drifts time."""
        features, left = self.features.embed(plays)
        self._observe(features, left, rewards, active, elapsed)
        self.held += active
        seen, warmup = self.kept.seen, self._rates.warmup
        early = np.flatnonzero(active & (seen <= warmup))
        if early.size:
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
    ) -> None:
        """Let the models learn; those for whom the same time goes by, together."""
        if elapsed is None:
            bank_update(features, left, rewards, active, self.models, self._rates, self.kept)
            return
        # Not one call with drifts by learner: with one more argument it takes 47 us, not 28.
        for steps in np.unique(elapsed[active]):
            mine = active & (elapsed == steps)
            models = self.models._replace(drift=drifted(self._step, np.array([steps]))[0])
            bank_update(features, left, rewards, mine, models, self._rates, self.kept)

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
    def age(self) -> Indices:
        """Steps since the chosen model was last restarted, `(B,)`."""
        ages: Indices = self.kept.age[self._rows, self.kept.chosen]
        return ages

    @property
    def zero(self) -> Array:
        """The reward that the chosen model counts from, `(B,)`."""
        zeros: Array = self.kept.zero[self._rows, self.kept.chosen]
        return zeros

    @property
    def scale(self) -> Array:
        """The function's scale s by the chosen model, `(B,)`; 0 where nothing is known."""
        at = self._rows, self.kept.chosen
        informed, signal = self.kept.informed[at], self.kept.signal[at]
        scale: Array = np.sqrt(signal / np.where(informed > 0, informed, 1.0))
        return scale

    def standardised(self, points: Points, learners: Indices | None = None) -> tuple[Array, Array]:
        """Return means less the zero, and variances in the unit s^2, of points, `(k, q)` each.

        `learners` are those who look at the points, `(k,)`; None: all.
        """
        kept = self.kept
        if learners is not None:  # of one a view: a search asks often, and P is large
            one = slice(int(learners[0]), int(learners[0]) + 1)
            rows = one if len(learners) == 1 else learners
            kept = BankArrays._make(array[rows] for array in kept)
        seen = self.features.see(points, self.models.table[kept.chosen])
        mean, variance = np.empty((2, len(kept.chosen), seen.features.shape[2]))
        bank_posteriors(seen.features, seen.which, seen.residual, self.models, kept, mean, variance)
        return mean, variance

    def predict(self, points: Points, learners: Indices | None = None) -> Prediction:
        """Return the chosen model's posterior at points, in the unit of the rewards."""
        rows = slice(None) if learners is None else learners
        mean, variance = self.standardised(points, learners)
        mean, variance = mean + self.zero[rows, None], self.scale[rows, None] ** 2 * variance
        return Prediction(mean, variance, variance)


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
