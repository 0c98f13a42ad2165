"""A bank of models of a drifting function, scored by how well they foretell the rewards."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.gp.surrogates.places import Places
from wgp_agents.kernels.arrays import BankArrays, BankModels, BankRates
from wgp_agents.kernels.drift import bank_posteriors, bank_update
from wgp_gym.types import Array, Mask

__all__ = ["RATES", "ModelBank"]

RATES = BankRates(
    recent=0.95,  # 20 steps: as long as it takes to tell one drift from another
    lasting=0.9995,
    weight=0.1,
    scale=0.99,
    signal=0.99,
    margin=10.0,
    handicap=3.0,
    carried=0.05,
    far=5.0,
    most=10.0,
    youth=10,
)
ODD = 20.0  # times the range of the others: none of the first rewards is believed further away
FAVOUR = 1.0  # nats, for a function that stays, and for the first kernel


class ModelBank:
    """B learners with Q models each: all drifts eps, noise ratios lambda and kernels.

    Rewards are counted from the first, at first. Model q holds the function for s g_t + noise of
    variance lambda s^2, where g_t drifts by eps as in `DriftSurrogate` and s^2 is unknown: with the
    surprise nu_t = y_t - mean and its variance s^2 v_t, the predictive density of y_t is
    Student's, its scale learned from the past nu^2 / v, which fade by `rates.scale` a step. Its
    logarithm is the model's score, relative to the step's best model; `recent` fades by
    `rates.recent`, `lasting` by `rates.lasting`, and the model of the largest
    recent + weight * lasting is chosen. A function that stays and the first kernel are each a nat
    ahead throughout. Nothing is scored before every model has a scale, from the third reward on
    at the earliest.

    A model that lags by more than `margin` in `recent`, and is older than `youth` steps, begins
    anew, `handicap` behind the best there and with the best `lasting`: it then stands for a
    function that has just changed altogether. If the (upper) median of the last `youth` rewards
    is further than `far` s from where it counted rewards from, it counts them from there.

    The function's own scale s, which a confidence bound needs, is learned apart: the mean of
    nu^2 / v, weighted by how much of the variance at the play was still unknown. Repeated plays
    of one arm say much about the noise and nothing about the other arms. It fades with what is
    learned: by `rates.signal` for a play of an arm never seen. A model that begins anew carries a
    share `rates.carried` of it on.

    Odd rewards are cut. After the first `youth` rewards a surprise counts as `most` of its
    standard deviations at most. Those first ones are looked at together, since a scale learned
    from so few may itself be odd: see `without_odd`. If one is moved, all are taken in again.

    Args:
        places: The arms.
        batch: B.
        drifts: eps of the models, each in [0, 1].
        noise_ratios: lambda of the models, each > 0.
        rates: How fast to forget.

    Attributes:
        models: The models, the first kernel's first. Of equals the first is chosen.
    """

    def __init__(
        self,
        places: Places,
        batch: int,
        drifts: tuple[float, ...],
        noise_ratios: tuple[float, ...],
        rates: BankRates = RATES,
    ) -> None:
        grid = itertools.product(range(len(places.rank)), drifts, noise_ratios)
        table, drift, noise = (np.array(column) for column in zip(*grid, strict=True))
        prior = FAVOUR * (drift == 0.0) + FAVOUR * (table == 0)
        self.models = BankModels(drift, noise, table.astype(np.int64), places.rank, prior)
        self._places, self._rates, self._rows = places, rates, np.arange(batch)
        m, shape = int(places.rank.max()), (batch, len(drift))
        self._early_features = np.zeros((rates.youth, batch, len(places.rank), m))
        self._early_left = np.zeros((rates.youth, batch, len(places.rank)))
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
            latest=np.zeros((batch, rates.youth)),
            seen=np.zeros(batch, np.int64),
        )

    def restart(self, mask: Mask) -> None:
        """Forget all that the learners in `mask` `(B,)` know."""
        for array in self.kept:
            array[mask] = 0
        self.kept.covariance[mask] = np.eye(self.kept.covariance.shape[2])

    def update(self, plays: NDArray[Any], rewards: Array, active: Mask) -> None:
        """Take in one observation of every learner in `active`: see `Places.embed`."""
        features, left = self._places.embed(plays)
        bank_update(features, left, rewards, active, self.models, self._rates, self.kept)
        seen, youth = self.kept.seen, self._rates.youth
        early = np.flatnonzero(active & (seen <= youth))
        if early.size:
            at = seen[early] - 1, early
            self._early_features[at], self._early_left[at] = features[early], left[early]
            grown = early[seen[early] == youth]
            if grown.size:
                self._look_back(grown)

    def _look_back(self, learners: NDArray[np.int64]) -> None:
        """Let those of the learners to whom an odd reward was paid take in all of theirs again."""
        rewards = self.kept.latest.copy()
        rewards[learners] = without_odd(rewards[learners])
        again = (rewards != self.kept.latest).any(axis=1)
        if again.any():
            self.restart(again)
            for features, left, paid in zip(
                self._early_features, self._early_left, rewards.T, strict=True
            ):
                bank_update(features, left, paid, again, self.models, self._rates, self.kept)

    @property
    def chosen(self) -> NDArray[np.int64]:
        """Each learner's model, `(B,)`."""
        return self.kept.chosen.copy()

    @property
    def age(self) -> NDArray[np.int64]:
        """Steps since that model was last restarted, `(B,)`."""
        ages: NDArray[np.int64] = self.kept.age[self._rows, self.kept.chosen]
        return ages

    @property
    def zero(self) -> Array:
        """Where that model counts rewards from, `(B,)`."""
        zeros: Array = self.kept.zero[self._rows, self.kept.chosen]
        return zeros

    @property
    def scale(self) -> Array:
        """The function's scale s by each learner's model, `(B,)`; 0 where nothing is known."""
        at = self._rows, self.kept.chosen
        informed, signal = self.kept.informed[at], self.kept.signal[at]
        scale: Array = np.sqrt(signal / np.where(informed > 0, informed, 1.0))
        return scale

    def posteriors(self) -> tuple[Array, Array]:
        """Return the arms' means less the zero, and variances in the unit s^2, `(B, n)` each."""
        places, chosen = self._places, self.kept.chosen
        mean, variance = np.empty((2, len(chosen), places.tables.shape[2]))
        which = places.tables_of(self.models.table[chosen])
        bank_posteriors(
            places.tables, which, places.residual, self.models, self.kept, mean, variance
        )
        return mean, variance


def without_odd(rewards: Array) -> Array:
    """Move those of `(k, n)` rewards that lie far from the rest to one range of the rest from it.

    The rest are the n - 2 that lie closest together, and far is more than `ODD` times their range.
    """
    order, rows = np.sort(rewards, axis=1), np.arange(len(rewards))
    closest = (order[:, -3:] - order[:, :3]).argmin(axis=1)
    low, high = order[rows, closest, None], order[rows, closest - 3, None]
    reach = high - low
    far = (reach > 0) & ((rewards > high + ODD * reach) | (rewards < low - ODD * reach))
    return np.where(far, np.clip(rewards, low - reach, high + reach), rewards)
