"""Which direction a base station's beam is to have: a user walks, and is hidden now and then.

References:
    [Gil60] Gilbert. Capacity of a Burst-Noise Channel. Bell System Technical Journal 1960: the
        Markov chain with two states.
    [Has18] Hashemi, Sabharwal, Koksal, Shroff. Efficient Beam Alignment in Millimeter Wave Systems
        Using Contextual Bandits. INFOCOM 2018.
    [JM96] Johnson, Maltz. Dynamic Source Routing in Ad Hoc Wireless Networks. 1996: random
        waypoints.
    [VT02]: see `wgp_gym.beam_kernel`.
    [Wu19] Wu, Cheng, Zhang, Yang, Zhuang, Shen. Fast mmWave Beam Alignment via Correlated Bandit
        Learning. IEEE Transactions on Wireless Communications 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Unpack

import numpy as np

from wgp_gym.beam_kernel import MAX_ANTENNAS, BeamKernel, periodic_sinc
from wgp_gym.envs.episode import Episode
from wgp_gym.envs.laws import Drawable
from wgp_gym.envs.noise import NoiseParameters, make_noise
from wgp_gym.envs.task import Task
from wgp_gym.rkhs import Functions
from wgp_gym.schedules import knot_per_step
from wgp_gym.types import Array, Mask
from wgp_gym.validation import (
    check_bool,
    check_float,
    check_int,
    check_size,
    reject,
)

__all__ = ["BeamTask"]

OWNER = "BeamTask"
USUAL = {"num_beams": 64, "horizon": 500}
MAX_CLIMBS = 5_000_000  # antennas x beams x steps of a box, whose optima are found in half a minute
MAX_BEAMS = 4_000
LEGS = 64  # of a walk that are drawn first


class BeamTask(Task):
    """f_t(x) = N sum over paths p of g_p |a(v)^H a(u_p)|^2: the power that a beam at v receives.

    A base station at the origin looks along the first axis, with a uniform linear array of N
    antennas half a wavelength apart ([VT02]); u is the sine of the angle from that axis. The n
    beams are those of a DFT codebook, v_i = -1 + 2 i / n; beam i stands at x = i / (n - 1). With
    n >= 2 N - 1 of them every function of the kernel's RKHS, `BeamKernel`, is exactly a sum over
    them, and so is f_t, wherever u_p are: norms and B_T are exact, and so is f_t between the beams.
    The powers of paths add, as they do on average over their phases. [Wu19] and [Has18] make
    bandits of beam alignment; that the channel moves as follows, and all ranges, are ours.

    An episode: the user walks in the rectangle [near, far] x [-width / 2, width / 2], straight from
    one uniform point to the next ([JM96]). The first path is the line of sight, with the power
    (near / distance)^path_loss, from which `blockage_db` are taken while it is blocked: a Markov
    chain with two states ([Gil60]), begun where it is in the long run. Each of the others goes
    by a reflector, uniform in [near, far] x [-width, width], from where its power comes whatever
    the user does; it falls with the way by the reflector, and by a loss of its own, uniform
    between half of `reflection_db` and 1.5 times it.

    Args:
        antennas: The number N of antennas, in [2, 1000].
        num_beams: The number n of beams, in [2 N - 1, 4000].
        num_paths: How many paths there are, in [1, 100].
        near: The least distance to the user, in [1, 1e6], in metres.
        far: The other end of the rectangle, in metres, at least 1.01 times `near`, at most 1e6.
        width: Its width, in [0.01, 1e6], in metres.
        speed: How far the user walks in a step, in [0, far - near], in metres.
        path_loss: The exponent of the power's decay with distance, in [0, 6]; 2 in free space.
        block_rate: The probability that a clear line of sight is blocked at the next step, in
            [0, 1].
        clear_rate: That a blocked one is clear again at the next step, in [0, 1].
        blockage_db: What a blockage takes, in [0, 100], in dB.
        reflection_db: What a reflection takes, in [0, 100], in dB.
        horizon: The number of steps T.
        noise_std: The standard deviation of the Gaussian noise, in [0, 1e30], in units of the
            reward: 1 is what a single antenna receives from a user at distance `near`.
        norm_bound: The largest RKHS norm B to give each episode, 0 or in [1e-100, 1e30]; None:
            as drawn.
        variation_budget: The variation B_T to give each episode, likewise; None: as drawn. One
            above that of the drawn channel may carry powers below 0.
        continuous: Whether a beam may have any direction in [-1, 1 - 2 / n]. A reset takes
            longer then, and the more the more antennas there are.
        **noise: `noise`, another law than the Gaussian, and its parameters: see `make_noise`.

    In an environment's arguments `noise_std` may be a law, drawn anew for each episode: see
    `RandomTask`.

    Raises:
        ValueError: If a parameter is out of its range, an episode is too large to hold, or a
            budget cannot be met.
    """

    drawable: ClassVar[Mapping[str, Drawable]] = {"noise_std": "range"}

    def __init__(
        self,
        *,
        antennas: int = 16,
        num_beams: int = 64,
        num_paths: int = 3,
        near: float = 20.0,
        far: float = 100.0,
        width: float = 80.0,
        speed: float = 0.1,
        path_loss: float = 2.0,
        block_rate: float = 0.01,
        clear_rate: float = 0.05,
        blockage_db: float = 20.0,
        reflection_db: float = 10.0,
        horizon: int = 500,
        noise_std: float = 0.1,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
        continuous: bool = False,
        **noise: Unpack[NoiseParameters],
    ) -> None:
        self._antennas = check_int("antennas", antennas, OWNER, 2, MAX_ANTENNAS)
        beams = check_int("num_beams", num_beams, OWNER, 2 * self._antennas - 1, MAX_BEAMS)
        self._num_paths = check_int("num_paths", num_paths, OWNER, 1, 100)
        horizon = check_int("horizon", horizon, OWNER, 1)
        sizes = {"num_beams": beams, "horizon": horizon}
        check_size(OWNER, sizes, USUAL)
        climbs = self._antennas * beams * horizon
        if check_bool("continuous", continuous, OWNER) and climbs > MAX_CLIMBS:
            rule = f"False where antennas x num_beams x horizon is above {MAX_CLIMBS:,}"
            reject("continuous", OWNER, rule, continuous)
        self._near = check_float("near", near, OWNER, 1, 1e6 / 1.01)
        self._far = check_float("far", far, OWNER, 1.01 * self._near, 1e6)
        self._width = check_float("width", width, OWNER, 0.01, 1e6)
        self._speed = check_float("speed", speed, OWNER, 0, self._far - self._near)
        self._path_loss = check_float("path_loss", path_loss, OWNER, 0, 6)
        self._block_rate = check_float("block_rate", block_rate, OWNER, 0, 1)
        self._clear_rate = check_float("clear_rate", clear_rate, OWNER, 0, 1)
        self._blockage = gain(check_float("blockage_db", blockage_db, OWNER, 0, 100))
        self._reflection_db = check_float("reflection_db", reflection_db, OWNER, 0, 100)
        super().__init__(
            kernel=BeamKernel(self._antennas, 2 * (beams - 1) / beams),
            domain=np.linspace(0.0, 1.0, beams)[:, None],
            schedule=knot_per_step(horizon),
            noise=make_noise("gaussian", noise_std, OWNER, **noise),
            norm_bound=norm_bound,
            variation_budget=variation_budget,
            continuous=continuous,
        )

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the channel of one episode."""
        return self.episode(self._functions(self._channel(rng)))

    def _channel(self, rng: np.random.Generator) -> list[tuple[Array, Array]]:
        """Return u_p, `(T,)` or `(1,)` where it stays, and g_p, `(T,)`, of every path.

        Walk, blockages and reflections have streams of their own.
        """
        walk, blocking, reflecting = rng.spawn(3)
        user = self._walk(walk)
        distance = np.hypot(*user.T)
        power = (self._near / distance) ** self._path_loss
        power[self._blocked(blocking)] *= self._blockage
        paths = [(user[:, 1] / distance, power)]
        for _ in range(self._num_paths - 1):
            reflector = self._points(reflecting, 1, 2 * self._width)[0]
            first = np.hypot(*reflector)
            way = first + np.hypot(*(user - reflector).T)
            loss = gain(self._reflection_db * reflecting.uniform(0.5, 1.5))
            paths.append((reflector[1:] / first, loss * (self._near / way) ** self._path_loss))
        return paths

    def _points(self, rng: np.random.Generator, count: int, width: float) -> Array:
        """Draw points of the rectangle, `(count, 2)`."""
        low, high = (self._near, -width / 2), (self._far, width / 2)
        return rng.uniform(low, high, (count, 2))

    def _walk(self, rng: np.random.Generator) -> Array:
        """Return where the user is at each step, `(T, 2)`."""
        goals, walked = self._points(rng, 1, self._width), np.zeros(1)
        way = self._speed * np.arange(self.horizon)
        while walked[-1] < way[-1]:
            more = self._points(rng, max(len(goals), LEGS), self._width)
            goals = np.concatenate([goals, more])
            legs = np.hypot(*np.diff(goals, axis=0).T)
            walked = np.concatenate([[0.0], np.cumsum(legs)])
        return np.stack([np.interp(way, walked, axis) for axis in goals.T], axis=1)

    def _blocked(self, rng: np.random.Generator) -> Mask:
        """Return whether the line of sight is blocked at each step, `(T,)`."""
        to, back = self._block_rate, self._clear_rate
        uniform = rng.random(self.horizon).tolist()
        state = uniform[0] * (to + back) < to
        blocked = [state]
        for u in uniform[1:]:
            state = u >= back if state else u < to
            blocked.append(state)
        return np.array(blocked)

    def _functions(self, paths: list[tuple[Array, Array]]) -> Functions:
        """Return f_1 .. f_T as expansions over the beams.

        With M = 2 N - 1 <= n the pattern at u is the sum over beams j of D(v_j - u) k(., v_j), by
        the sampling theorem, with Dirichlet's kernel D(d) = sin(pi M d / 2) / (n sin(pi d / 2)).
        """
        N, n = self._antennas, len(self.domain)
        count = 2 * N - 1
        beams = -1 + 2 * np.arange(n) / n
        values, coefficients = np.zeros((2, self.horizon, n))
        for u, g in paths:
            apart = beams - u[:, None]
            values += N * g[:, None] * periodic_sinc(apart, N) ** 2
            coefficients += N * g[:, None] * periodic_sinc(apart, count) * count / n
        return Functions(np.arange(n), coefficients, values)


def gain(decibels: float) -> float:
    """Return by how much a loss of so many decibels multiplies a power."""
    return float(10 ** (-decibels / 10))
