"""The surrogates of weighted data: since a restart, in a window, or with a discount.

Notation, for one learner, with phi(x) `(m,)` the features of a point:

| symbol | code | meaning |
|---|---|---|
| w_s / w_t | `discount ** (t - s)` | the weight of step s at time t |
| A, b | `gram`, `target` | sum of w phi phi^T `(m, m)`, sum of w y phi `(m,)` |
| V | | A + lambda I |
| mu~, sigma~^2 | `mean`, `variance` | phi^T V^{-1} b, lambda phi^T V^{-1} phi: Eq. (3), (4) |
| A2 | `double_gram` | sum of w^2 phi phi^T |
| gamma-bar | `gain` | 1/2 log det(I + A2 / lambda), the realised double-weighted gain |
| sigma-acute^2 | `tight` | lambda phi^T V^{-1} (A2 + lambda I) V^{-1} phi: Theorem 2 |

Deviation: [Deng22] has weights eta^{-t} and the regularization lambda eta^{-t}. Dividing both by
eta^{-t} leaves Eq. (3)-(4) as they are, and nothing overflows.

The regularizer belongs to the last play: lambda_t of Eq. (3)-(4) after t of them. The display
above these equations sums over s <= t - 1 with lambda_t, which would be lambda / eta here; the
algorithm and the proofs have lambda_{t-1} there (docs/fidelity.md).
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.core.state import check_counts, check_rooms
from wgp_agents.gp.action_sets import ActionSet, FixedArms, Plays
from wgp_agents.gp.surrogates.kernel_form import discounted_posterior
from wgp_agents.gp.surrogates.lazy import WeightedSurrogate
from wgp_agents.gp.surrogates.posteriors import unweighted_posterior
from wgp_agents.kernels.elapsed import count, faded, find_expired
from wgp_gym.types import Array, Mask

__all__ = ["DiscountSurrogate", "RestartSurrogate", "WindowSurrogate"]

LONGEST = 2.0**53


class RestartSurrogate(WeightedSurrogate):
    """The posterior of all data since the last restart, with a restart every `period` steps.

    A period begins with the first play that it holds; one of infinity keeps everything.
    """

    def __init__(self, action_set: ActionSet) -> None:
        super().__init__(action_set, unweighted_posterior(action_set))
        self.period = np.full(len(self.held), math.inf)
        self._endless = True  # whether nobody's period ends
        self._clock = np.zeros(len(self.held))  # steps since the period began

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is the restart period, in steps or infinity."""
        self.period[mask] = forgetting[mask]
        self._endless = bool((self.period == math.inf).all())
        self._clear(mask)

    def _clear(self, mask: Mask) -> None:
        super()._clear(mask)
        self._clock[mask] = 0.0

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Learn from one play, and restart the learners whose period is over."""
        self._changed()
        self._posterior.change(1.0, plays, rewards, active)
        count(active, self.held)
        if not self._endless:
            self._go_on(active if elapsed is None else np.where(active, elapsed, 0.0))

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let periods go on, and restart the learners whose period is over."""
        if not self._endless:
            self._go_on(np.where(active & (self.held > 0), steps, 0.0))

    def _go_on(self, steps: Array | Mask) -> None:
        """Let periods go on by `(B,)` steps."""
        self._clock += steps
        if (full := self._clock >= self.period).any():
            self._clear(full)


class WindowSurrogate(WeightedSurrogate):
    """The posterior of the plays of the last `window` steps; a window of infinity keeps everything.

    A play drops out as soon as `window` steps have gone by since it. With one step a play these
    are the last `window` plays.
    """

    time_comes_first = True
    _stores = ("_actions", "_rewards", "_times")

    def __init__(self, action_set: ActionSet) -> None:
        super().__init__(action_set, unweighted_posterior(action_set))
        batch = len(self.held)
        self._rows, self._recall = np.arange(batch), action_set.recall
        self._window, self._bounded = np.full(batch, math.inf), np.zeros(batch, bool)
        # Rings of the plays held: the k-th of all is at the place k modulo their length.
        self._seen, self._clock = np.zeros(batch, np.int64), np.zeros(batch)
        arms = isinstance(action_set, FixedArms)
        shape = () if arms else (action_set.candidates.places.shape[-1],)
        self._actions = np.zeros((batch, 1, *shape), np.int64 if arms else np.float64)
        self._rewards, self._times = np.zeros((2, batch, 1))

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is the window, in steps or infinity."""
        # A window beyond int64 is never full.
        self._window[mask] = np.where(forgetting < LONGEST, forgetting, math.inf)[mask]
        self._bounded = np.isfinite(self._window)
        self._seen[mask], self._clock[mask] = 0, 0.0
        self._clear(mask)

    def _check_state(self) -> None:
        check_rooms(self, self._actions, self._rewards, self._times)
        check_counts(self, "held", self.held[self._bounded], self._times.shape[1])
        if self._actions.dtype == np.int64:
            check_counts(self, "actions", self._actions, len(self.basis.prior) - 1)

    def _make_room(self, size: int) -> None:
        """Double the rings until they hold `size` plays, each at its place."""
        room = self._times.shape[1]
        if size <= room:
            return
        numbers = (self._seen - self.held)[:, None] + np.arange(room)
        old, new = (self._rows[:, None], numbers % room), max(size, 2 * room)
        for name in self._stores:
            ring = getattr(self, name)
            grown = np.zeros((len(ring), new, *ring.shape[2:]), ring.dtype)
            grown[self._rows[:, None], numbers % new] = ring[old]
            setattr(self, name, grown)

    def _drop(self, active: Mask) -> bool:
        """Drop the plays that are too old; return whether there were any."""
        dropped, places, late = False, np.zeros_like(self.held), np.zeros_like(active)
        ages = self._window, self._clock, self._seen, self.held, self._times
        while find_expired(active, *ages, places, late):
            plays = self._recall(self._actions[self._rows, places])
            self._posterior.change(-1.0, plays, self._rewards[self._rows, places], late)
            self.held -= late
            dropped = True
        return dropped

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Drop what is too old, and learn from one play."""
        self._changed()
        self._clock += active if elapsed is None else np.where(active, elapsed, 0.0)
        self._drop(active)
        self._posterior.change(1.0, plays, rewards, active)
        kept = active & self._bounded
        if kept.any():
            self._make_room(int(self.held[kept].max()) + 1)
            place = kept, (self._seen % self._times.shape[1])[kept]
            self._actions[place], self._rewards[place] = plays.actions[kept], rewards[kept]
            self._times[place] = self._clock[kept]
        self._seen += active
        count(active, self.held)

    def elapse(self, steps: Array, active: Mask) -> None:
        """Drop what then is too old."""
        self._changed()
        self._clock += np.where(active, steps, 0.0)
        if self._drop(active):
            self._posterior.refresh(active)


class DiscountSurrogate(WeightedSurrogate):
    """The posterior of all data, with weights that fade by the discount eta at every step.

    V_t = eta V_{t-1} + phi phi^T + lambda (1 - eta) I is a full-rank change, so V is factorised at
    each step: O(m^3 + m^2 n), whatever t is.

    Args:
        action_set: What is chosen from.
        ratios: A discount for each step in place of one for all, `(L,)`. They are of plays, so that
            such a surrogate does not take `elapsed`.
        tight: Whether the bound uses sigma-acute of [Deng22] Theorem 2, not sigma~.
    """

    nothing_forgotten = 1.0
    _constants = ("takes_elapsed",)
    time_comes_first = True

    def __init__(
        self, action_set: ActionSet, *, ratios: Array | None = None, tight: bool = False
    ) -> None:
        rises = ratios is not None and bool((ratios > 1.0).any())
        self._weighted = discounted_posterior(action_set, tight=tight, rises=rises)
        super().__init__(action_set, self._weighted)
        self._rows = np.arange(len(self.held))
        self._given = ratios is not None
        self.takes_elapsed = ratios is None
        if ratios is not None:
            self.ratios = np.tile(ratios, (len(self.held), 1))

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is the discount eta in (0, 1], if no ratios are given."""
        if not self._given:
            self.ratios[mask, 0] = forgetting[mask]
        self._clear(mask)

    def retune(self, mask: Mask, forgetting: Array) -> None:
        """Go on with another discount, and with all that is held."""
        self.ratios[mask, 0] = forgetting[mask]

    def _discounts(self) -> Array:
        """Return the discount of the next step, `(B,)`."""
        if not self._given:
            return self.ratios[:, 0]
        step = np.minimum(self.held, self.ratios.shape[1] - 1)
        ratios: Array = self.ratios[self._rows, step]
        return ratios

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Discount the past by eta^elapsed, and learn from one play."""
        self._changed()
        discount = self._discounts()
        if elapsed is not None:
            discount = faded(discount[:, None], elapsed)[:, 0]
        self._weighted.change(1.0, plays, rewards, active, discount)
        count(active, self.held)

    def elapse(self, steps: Array, active: Mask) -> None:
        """Discount the past by eta^steps."""
        self._changed()
        self._weighted.fade(faded(self.ratios[:, :1], steps)[:, 0], active)

    def hallucinate(self, plays: Plays, active: Mask) -> None:
        """Count a play, undiscounted; given weights are of the plays that were paid."""
        if not self._given:
            super().hallucinate(plays, active)
            return
        self._weighted.change(1.0, plays, self.predict_plays(plays)[0], active)
        self._changed()
