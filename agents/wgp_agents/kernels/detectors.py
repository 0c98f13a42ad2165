"""Tests of many streams of numbers for a change of their mean, at one new value of each.

Streams are rows: arrays are `(S,)` or `(S, room)`; loops change only the streams in `active`.

References:
    [BKMS22] Besson, Kaufmann, Maillard, Seznec. Efficient Change-Point Detection for Tackling
    Piecewise-Stationary Bandits. JMLR 23, 2022. Its first version is Besson and Kaufmann, 2019.
    [Cao19] Cao, Wen, Kveton, Xie. Nearly Optimal Adaptive Procedure with Change Detection for
    Piecewise-Stationary Bandit. AISTATS 2019, Algorithm 1.
    [KK21] Kaufmann, Koolen. Mixture Martingales Revisited with Applications to Sequential Tests
    and Confidence Intervals. JMLR 22, 2021.
    [Liu18] Liu, Lee, Shroff. A Change-Detection Based Framework for Piecewise-Stationary
    Multi-Armed Bandit Problem. AAAI 2018, Algorithm 2, and its Page-Hinkley test.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.jit import compiled, subroutine
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "cusum",
    "glr_statistics",
    "glr_thresholds",
    "inverse_h",
    "page_hinkley",
    "proven_threshold",
    "simple_threshold",
    "two_windows",
]

LOG_RATIO = math.log(1.5)
# h^{-1}(1 / ln(3 / 2)), where the other branch of h~ begins, as printed. It could at h(1 / ln(3 /
# 2)) = 1.56: h~ is the smallest z (x - ln ln z) over z <= 3 / 2, so it is larger in between.
BRANCH = 3.8017702851374455
LOG_2_ZETA_2 = math.log(math.pi**2 / 3)
STEPS = 50  # of Newton's method, which needs about 5
# What differs from a threshold by no more than this share of it meets it: a sum that does so in
# exact arithmetic is off by rounding, some 1e-16 of it for each value. The thresholds of the
# likelihood ratio are logarithms, which statistics do not meet; they need none.
SLACK = 1e-9


@subroutine
def walk(i: int, step: float, drift: Array, threshold: Array, up: Array, down: Array) -> bool:
    """Move the two walks of stream i by `step` = y - u; return whether one reaches h.

    g+ = max(0, g+ + y - u - epsilon), g- = max(0, g- + u - y - epsilon).
    """
    up[i] = max(0.0, up[i] + step - drift[i])
    down[i] = max(0.0, down[i] - step - drift[i])
    reached: bool = max(up[i], down[i]) >= threshold[i] * (1.0 - SLACK)
    return reached


@compiled
def cusum(
    values: Array,
    active: Mask,
    samples: Indices,
    drift: Array,
    threshold: Array,
    count: Indices,
    mean: Array,
    up: Array,
    down: Array,
    alarms: Mask,
) -> None:
    """Move the two walks of every active stream: the two-sided CUSUM of [Liu18].

    `samples` is M, `drift` epsilon, `threshold` h, `mean` u, `up` g+ and `down` g-; `count` is how
    many values there were. `alarms` are filled in. A walk that meets h up to `SLACK` reaches it.
    """
    for i in range(len(values)):
        if not active[i]:
            continue
        count[i] += 1
        if count[i] <= samples[i]:  # u is the mean of the first M
            mean[i] += (values[i] - mean[i]) / count[i]
            continue
        alarms[i] = walk(i, values[i] - mean[i], drift, threshold, up, down)


@compiled
def page_hinkley(
    values: Array,
    active: Mask,
    drift: Array,
    threshold: Array,
    count: Indices,
    mean: Array,
    up: Array,
    down: Array,
    alarms: Mask,
) -> None:
    """Move the two walks of every active stream: the Page-Hinkley test of [Liu18].

    As `cusum`, with the mean of all values so far, the new one among them, in the place of u.
    """
    for i in range(len(values)):
        if not active[i]:
            continue
        count[i] += 1
        mean[i] += (values[i] - mean[i]) / count[i]
        alarms[i] = walk(i, values[i] - mean[i], drift, threshold, up, down)


@compiled
def two_windows(
    values: Array,
    active: Mask,
    half: Indices,
    threshold: Array,
    count: Indices,
    newer: Array,
    block: Array,
    sums: Array,
    alarms: Mask,
) -> None:
    """Compare the sums of the two halves of every active stream's last w values: [Cao19].

    Nothing is ever subtracted from a sum, so that a huge value leaves no rounding behind. Values
    come in blocks of w / 2. The sum of the last w / 2 is that of the block at hand, `newer`, and
    of the end of the block before. When a block is full it is read once from its end, and each
    value makes way for the sum of those after it. The older half's sum is that of w / 2 steps ago.

    `half` is w / 2, `threshold` b, and `count` how many values there were. `block` holds what is
    left of the block before, and values of that at hand, `sums` the sums of the last w / 2 values
    at each of the last w / 2 steps: both `(S, w / 2)`. `alarms` are filled in. A difference that
    meets b up to `SLACK` does not exceed it.
    """
    for i in range(len(values)):
        if not active[i]:
            continue
        place = count[i] % half[i]
        if place == 0:  # a block is full: sums of what follows, in the place of its values
            newer[i] = rest = 0.0
            for j in range(half[i] - 1, -1, -1):
                block[i, j], rest = rest, rest + block[i, j]
        newer[i] += values[i]
        total = block[i, place] + newer[i]
        difference = total - sums[i, place]
        block[i, place], sums[i, place] = values[i], total
        count[i] += 1
        # A stream's first w / 2 sums hold what was there before it: they are compared with none.
        above = abs(difference) > threshold[i] * (1.0 + SLACK)
        alarms[i] = count[i] >= 2 * half[i] and above


@compiled
def entropy(p: float) -> float:
    """Return -p ln p - (1 - p) ln(1 - p)."""
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return -p * math.log(p) - (1.0 - p) * math.log1p(-p)


@compiled
def split_statistic(
    s: int, before: float, n: int, total: float, bernoulli: bool, sigma: float
) -> float:
    """Return s d(mean of s, mean of n) + (n - s) d(mean of the rest, mean of n): [BKMS22].

    For kl the two add up to n H(mean) - s H(mean of s) - (n - s) H(mean of the rest), H the
    entropy; for Gaussian laws to s (n - s) / n (mean of s - mean of the rest)^2 / (2 sigma^2).
    """
    r = n - s
    first, rest = before / s, (total - before) / r
    if bernoulli:
        return n * entropy(total / n) - s * entropy(first) - r * entropy(rest)
    gap = (first - rest) / sigma
    return s / n * r * gap * gap / 2.0


@compiled
def merge(size: int, counts: Indices, sums: Array, n: int, resolution: int) -> int:
    """Join neighbouring buckets, the oldest first; return how many are left.

    Two become one where together they hold at most 1 / M of the values after them.
    """
    kept, after = 0, n - counts[0]
    for j in range(1, size):
        after -= counts[j]
        both = counts[kept] + counts[j]
        if both * resolution <= after:
            counts[kept] = both
            sums[kept] += sums[j]
        else:
            kept += 1
            counts[kept], sums[kept] = counts[j], sums[j]
    return kept + 1


@compiled
def glr_statistics(
    values: Array,
    active: Mask,
    bernoulli: Mask,
    sigma: Array,
    resolution: int,
    size: Indices,
    counts: Indices,
    sums: Array,
    length: Indices,
) -> Array:
    """Add a value to every active stream; return its largest statistic `(S,)`, 0 elsewhere.

    d is kl where `bernoulli`, of values cut off at 0 and 1; else Gaussian, of `sigma`. A stream has
    `size` buckets, the oldest first, of `counts` values that add up to `sums`, both `(S, room)`;
    `length`, n, is filled in. `resolution` is M.
    """
    largest = np.zeros(len(values))
    for i in range(len(values)):
        if not active[i]:
            continue
        # The new value is a bucket of its own.
        value = min(max(values[i], 0.0), 1.0) if bernoulli[i] else values[i]
        counts[i, size[i]], sums[i, size[i]] = 1, value
        size[i] += 1
        n, total = 0, 0.0
        for j in range(size[i]):
            n += counts[i, j]
            total += sums[i, j]
        length[i] = n
        size[i] = merge(size[i], counts[i], sums[i], n, resolution)
        # Split where two buckets meet: s values before, n - s after.
        s, before = 0, 0.0
        for j in range(size[i] - 1):
            s += counts[i, j]
            before += sums[i, j]
            found = split_statistic(s, before, n, total, bernoulli[i], sigma[i])
            largest[i] = max(largest[i], found)
    return largest


@compiled
def inverse_h(x: float) -> float:
    """Return u >= 1 with h(u) = u - ln u = x >= 1, by Newton's method, from above.

    The start is above the root: with z = (2 x - 2)^{1/2}, ln(1 + z + z^2 / 2) <= z.
    """
    u = x + math.sqrt(2.0 * max(x - 1.0, 0.0))
    for _ in range(STEPS):
        if u <= 1.0:
            return 1.0
        step = (u - math.log(u) - x) * u / (u - 1.0)
        if step <= 1e-14 * u:
            break
        u -= step
    return u


@compiled
def time_uniform(x: float) -> float:
    """Return the function T(x) of [BKMS22], from [KK21]; about x + 4 ln(1 + x + (2 x)^{1/2}).

    T(x) = 2 h~((h^{-1}(1 + x) + ln(2 zeta(2))) / 2), where h~(y) = e^{1 / h^{-1}(y)} h^{-1}(y)
    from a point on, and (3 / 2) (y - ln ln(3 / 2)) below.
    """
    half = (inverse_h(1.0 + x) + LOG_2_ZETA_2) / 2.0
    if half >= BRANCH:
        u = inverse_h(half)
        return 2.0 * math.exp(1.0 / u) * u
    return 3.0 * (half - math.log(LOG_RATIO))


@compiled
def proven_threshold(n: int, delta: float) -> float:
    """Return beta(n, delta) = 2 T(ln(3 n^{3/2} / delta) / 2) + 6 ln(1 + ln n) of [BKMS22]."""
    return 2.0 * time_uniform(simple_threshold(n, delta) / 2.0) + 6.0 * math.log(1.0 + math.log(n))


@compiled
def simple_threshold(n: int, delta: float) -> float:
    """Return beta(n, delta) = ln(3 n^{3/2} / delta), the leading term of the proven one."""
    return math.log(3.0 / delta) + 1.5 * math.log(n)


@compiled
def glr_thresholds(counts: Indices, delta: Array, proven: bool, active: Mask) -> Array:
    """Return beta(n, delta) of every stream, `(S,)`; infinity where not active or n < 2."""
    levels = np.full(len(counts), math.inf)
    for i in range(len(counts)):
        if active[i] and counts[i] > 1:
            n = counts[i]
            levels[i] = proven_threshold(n, delta[i]) if proven else simple_threshold(n, delta[i])
    return levels
