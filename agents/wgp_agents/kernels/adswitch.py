"""The tests of AdSwitch, on intervals that end now and begin where two buckets of steps meet.

Notation, for one learner: n_s(k) and m_s(k) are the number and the mean of the rewards of arm k
since step s of the episode; r(n) = (c log(T) / n)^{1/2}.

The steps of an episode stand in buckets, each with the plays and sums of all arms. Neighbours
become one as soon as both together hold at most 1 / M of the steps after them, as in the
likelihood-ratio test of `wgp_agents.kernels.detectors`: a step costs O(K M log(t / M)). Nothing is
ever subtracted from a sum.

Condition (3) of [AGO19] compares each [s, t] with each [s1, s2] before. That is whether the largest
m - r of all intervals so far exceeds the smallest m + r of those that end now, or the other way
round: two numbers of each arm are enough. As all tests are of plays that have come, only those of
the arm just played can change, but for (1), which compares arms.

The obligations (d, n, s) of [AGO19] ask for plays of an arm until n_s(k) >= n; so one number, the
plays that must have been reached, is enough, and of those that are added at one step only that of
the smallest d counts.

References:
    [AGO19] Auer, Gajane, Ortner. Adaptively Tracking the Best Bandit Arm with an Unknown Number of
        Distribution Changes. COLT 2019.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wgp_agents.kernels.jit import compiled, subroutine
from wgp_gym.types import Array, Indices, Mask

__all__ = ["SwitchNumbers", "SwitchState", "begin_all", "oblige", "switch"]

FINEST = 60  # d = 2^-i of a check: smaller ones have no chance


class SwitchNumbers(NamedTuple):
    """The learners' parameters, `(B,)` each.

    Attributes:
        eviction: C_1 log(T), times the square of the noise's scale.
        detection: c log(T), likewise.
        gap_divisor: The smallest d is at least Delta~ / gap_divisor.
        chance: (K T log(T))^{-1/2}.
    """

    eviction: Array
    detection: Array
    gap_divisor: Array
    chance: Array


class SwitchState(NamedTuple):
    """What the learners keep of the episode at hand.

    Attributes:
        size: Buckets in use, `(B,)`.
        steps: Steps of each bucket, the oldest first, `(B, room)`.
        counts: Plays of each arm in each bucket, `(B, room, K)`.
        sums: Their rewards, likewise.
        good: Which arms are in GOOD, `(B, K)`.
        plays: Plays of each arm, `(B, K)`.
        target: How many it must have before its checks are done, `(B, K)`.
        mean: Of evicted arms, the mean mu~ at eviction, `(B, K)`.
        gap: The gap Delta~ to the best arm then, `(B, K)`.
        lower: The largest m - r of all intervals so far, `(B, K)`.
        upper: The smallest m + r.
        episode: l, `(B,)`.
    """

    size: Indices
    steps: Indices
    counts: Indices
    sums: Array
    good: Mask
    plays: Indices
    target: Array
    mean: Array
    gap: Array
    lower: Array
    upper: Array
    episode: Indices


@subroutine
def begin(state: SwitchState, b: int) -> None:
    """Begin an episode of a learner: all arms are good, and nothing is known."""
    state.size[b] = 0
    for k in range(state.good.shape[1]):
        state.good[b, k] = True
        state.plays[b, k] = 0
        state.target[b, k] = state.mean[b, k] = state.gap[b, k] = 0.0
        state.lower[b, k], state.upper[b, k] = -math.inf, math.inf


@subroutine
def append(
    steps: Indices,
    counts: Indices,
    sums: Array,
    size: int,
    resolution: int,
    arm: int,
    reward: float,
) -> int:
    """Add a step as a bucket, join neighbours, the oldest first; return how many are left."""
    num_arms = counts.shape[1]
    steps[size] = 1
    for k in range(num_arms):
        counts[size, k], sums[size, k] = 0, 0.0
    counts[size, arm], sums[size, arm] = 1, reward
    after, kept = 0, 0
    for j in range(1, size + 1):
        after += steps[j]
    for j in range(1, size + 1):
        after -= steps[j]
        both = steps[kept] + steps[j]
        joined = both * resolution <= after
        if not joined:
            kept += 1
        if joined or kept != j:
            steps[kept] = both if joined else steps[j]
            for k in range(num_arms):
                counts[kept, k] = counts[kept, k] * joined + counts[j, k]
                sums[kept, k] = (sums[kept, k] if joined else 0.0) + sums[j, k]
    return kept + 1


@subroutine
def evict(
    good: Mask, n: Indices, m: Array, eviction: float, leaves: Mask, mean: Array, gap: Array
) -> None:
    """Mark the good arms that condition (1) of [AGO19] evicts, with mu~ and Delta~ as in (2).

    m(j) - m(k) > (C_1 log(T) / (n(k) - 1))^{1/2} for a good j; min(n(k) - 1, n(j)) where arms were
    not played in turn. Then the arm of the largest mean may have few plays, and others condemn k.
    """
    best = -1  # the good arm of the largest mean
    for k in range(len(good)):
        if good[k] and n[k] > 0 and (best < 0 or m[k] > m[best]):
            best = k
    for k in range(len(good)):
        if good[k] and n[k] > 1:
            distance, count = m[best] - m[k], n[k] - 1
            condemned = distance * distance * min(count, n[best]) > eviction
            if not condemned and n[best] < count:
                distance = 0.0
                for j in range(len(good)):
                    if good[j] and n[j] > 0 and m[j] - m[k] > distance:
                        apart = m[j] - m[k]
                        if apart * apart * min(count, n[j]) > eviction:
                            distance, condemned = apart, True
            if condemned:
                leaves[k], mean[k], gap[k] = True, m[k], distance


@compiled
def begin_all(mask: Mask, state: SwitchState) -> None:
    """Begin an episode of every learner in `mask` `(B,)`."""
    for b in range(len(mask)):
        if mask[b]:
            begin(state, b)


@compiled
def switch(
    arms: Indices,
    rewards: Array,
    active: Mask,
    numbers: SwitchNumbers,
    resolution: int,
    state: SwitchState,
) -> None:
    """Take in one play of every learner in `active`, look for a change, evict arms.

    Args:
        arms: The arms played, `(B,)`.
        rewards: Their rewards, in units of the range, `(B,)`.
        active: Who played, `(B,)`.
        numbers: The learners' parameters.
        resolution: M.
        state: What they keep, with room for one more bucket.
    """
    num_arms = state.good.shape[1]
    n, total, m = np.zeros(num_arms, np.int64), np.zeros(num_arms), np.zeros(num_arms)
    leaves = np.zeros(num_arms, np.bool_)
    for b in range(len(arms)):
        if not active[b]:
            continue
        arm, good = arms[b], state.good[b]
        steps, counts, sums = state.steps[b], state.counts[b], state.sums[b]
        size = append(steps, counts, sums, state.size[b], resolution, arm, rewards[b])
        state.size[b] = size
        state.plays[b, arm] += 1
        for k in range(num_arms):
            n[k], total[k], leaves[k] = 0, 0.0, False
        lower, upper, changed = -math.inf, math.inf, False
        for j in range(size - 1, -1, -1):  # [s, t], s further and further back
            for k in range(num_arms):
                if counts[j, k] > 0:
                    n[k] += counts[j, k]
                    total[k] += sums[j, k]
                    m[k] = total[k] / n[k]
            own, r = m[arm], math.sqrt(numbers.detection[b] / n[arm])
            if good[arm]:
                lower, upper = max(lower, own - r), min(upper, own + r)
                evict(good, n, m, numbers.eviction[b], leaves, state.mean[b], state.gap[b])
            else:  # (4): |m - mu~| > Delta~ / 4 + r
                changed |= abs(own - state.mean[b, arm]) > state.gap[b, arm] / 4 + r
        if good[arm]:  # (3): |m of one interval - m of the other| > r of one + r of the other
            state.lower[b, arm] = max(state.lower[b, arm], lower)
            state.upper[b, arm] = min(state.upper[b, arm], upper)
            changed = state.lower[b, arm] > upper or lower > state.upper[b, arm]
        left = 0
        for k in range(num_arms):
            good[k] &= not leaves[k]
            left += good[k]
        if changed or left == 0:  # the second is a safeguard: a best arm is not evicted
            state.episode[b] += 1
            begin(state, b)


@compiled
def oblige(draws: Array, due: Mask, numbers: SwitchNumbers, state: SwitchState) -> None:
    """Add checks of the bad arms of every learner in `due`, before a choice.

    For i = 1 and each i with d = 2^-i >= Delta~ / gap_divisor, the arm is due until it has floor(c
    log(T) / d^2) more plays, with probability d (l / (K T log T))^{1/2}. The largest i that is
    drawn is found from one uniform number.

    Args:
        draws: Uniform numbers, `(B, K)`.
        due: Who chooses at a new step, `(B,)`.
        numbers: The learners' parameters.
        state: What they keep; `target` changes.
    """
    for b in range(len(due)):
        if not due[b]:
            continue
        rate = numbers.chance[b] * math.sqrt(state.episode[b])
        for k in range(draws.shape[1]):
            if state.good[b, k]:
                continue
            i = math.floor(math.log2(numbers.gap_divisor[b] / state.gap[b, k]))
            u, i = draws[b, k], max(min(i, FINEST), 1)
            while i >= 1:
                p = min(2.0**-i * rate, 0.5)
                if u < p:
                    needed = math.floor(4.0**i * numbers.detection[b])
                    state.target[b, k] = max(state.target[b, k], state.plays[b, k] + needed)
                    break
                u = (u - p) / (1.0 - p)  # uniform again, given that it was not drawn
                i -= 1
