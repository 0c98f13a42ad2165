"""What sensors in the plane read: a daily cycle, offsets, and a smooth field that drifts.

References:
    [BSC16]: see `wgp_gym.envs.markov`, whose drift the field has.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TypedDict

import numpy as np

from wgp_gym.features import exact_features
from wgp_gym.kernels import SquaredExponential
from wgp_gym.types import Array
from wgp_gym.validation import check_float, check_int, reject

__all__ = ["FieldParameters", "SensorField"]

OWNER = "SensorsTask"
MAX_SENSORS = 2_000  # whose kernel matrix is factorised, as of tables
USUAL_SENSORS = 46
TRUNCATION = 1e-10  # of the field's variance, that its features leave out


class FieldParameters(TypedDict, total=False):
    """The parameters of a `SensorField`, but for its places."""

    num_sensors: int | None
    field_lengthscale: float
    correlation_time: float
    period: float
    amplitude: float
    exposure_spread: float
    offset_std: float
    sensors_seed: int


class SensorField:
    """n sensors where they hang, and what they read.

    Sensor i reads e_i c_t + o_i + g_t(x_i). The cycle c_t = amplitude sin(2 pi t / period + phase)
    begins anywhere, uniformly. The field is stationary: normal with variance 1 and the SE
    correlation in space; g_{t+1} = r g_t + (1 - r^2)^{1/2} h_{t+1} with fresh draws h, r =
    exp(-1 / correlation_time): an Ornstein-Uhlenbeck process at whole steps.

    The places x_i, uniform in [0, 1]^2, the exposures e_i, the exponential of `exposure_spread`
    times a draw of the same kernel, and the normal offsets o_i belong to the sensors: they are
    drawn once, from `sensors_seed`.

    Args:
        places: x_i, `(n, 2)`; None: they are drawn.
        num_sensors: n in [2, 2000]; default: as many as there are places, or 46.
        field_lengthscale: The length of the field in the plane, in [0.01, 1e3].
        correlation_time: Steps until the field's correlation has fallen to 1 / e, in [0.1, 1e9].
        period: The steps of a day, in [2, 1e9].
        amplitude: Of the cycle, in units of the field's deviation, in [0, 1e3].
        exposure_spread: The deviation of an exposure's logarithm, in [0, 3].
        offset_std: The deviation of an offset, in [0, 1e3].
        sensors_seed: Of what is drawn once, at least 0.

    Attributes:
        places: x_i, `(n, 2)`.
        rng: The generator that drew the sensors, for their training period.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        places: Array | None = None,
        *,
        num_sensors: int | None = None,
        field_lengthscale: float = 0.3,
        correlation_time: float = 72.0,
        period: float = 144.0,
        amplitude: float = 1.0,
        exposure_spread: float = 0.5,
        offset_std: float = 0.3,
        sensors_seed: int = 0,
    ) -> None:
        usual = USUAL_SENSORS if places is None else len(places)
        given = usual if num_sensors is None else num_sensors
        count = check_int("num_sensors", given, OWNER, 2, MAX_SENSORS)
        if places is not None and count != len(places):
            reject("num_sensors", OWNER, f"None or {len(places)}, the number of places", given)
        length = check_float("field_lengthscale", field_lengthscale, OWNER, 0.01, 1e3)
        time = check_float("correlation_time", correlation_time, OWNER, 0.1, 1e9)
        self._period = check_float("period", period, OWNER, 2, 1e9)
        self._amplitude = check_float("amplitude", amplitude, OWNER, 0, 1e3)
        spread = check_float("exposure_spread", exposure_spread, OWNER, 0, 3)
        offset = check_float("offset_std", offset_std, OWNER, 0, 1e3)
        self.rng = np.random.default_rng(check_int("sensors_seed", sensors_seed, OWNER, 0))
        drawn = self.rng.random((count, 2))
        self.places = drawn if places is None else places
        kernel = SquaredExponential(length)
        self._phi = exact_features(kernel, self.places, TRUNCATION, count).table
        self._exposure = np.exp(spread * (self._phi @ self._normals(self.rng, 1)[0]))
        self._offsets = offset * self.rng.standard_normal(count)
        self._keep, self._renew = math.exp(-1 / time), math.sqrt(-math.expm1(-2 / time))

    def _normals(self, rng: np.random.Generator, steps: int) -> Array:
        """Draw the coefficients of as many draws of the kernel, `(steps, m)`."""
        return rng.standard_normal((steps, self._phi.shape[1]))

    def readings(self, rng: np.random.Generator, steps: int) -> Array:
        """Draw what the sensors read at so many steps, `(steps, n)`."""
        phase = 2 * math.pi * rng.random()
        cycle = self._amplitude * np.sin(2 * math.pi * np.arange(steps) / self._period + phase)
        z = self._normals(rng, steps)
        for last, now in pairwise(z):
            now *= self._renew
            now += self._keep * last
        found: Array = cycle[:, None] * self._exposure + self._offsets + z @ self._phi.T
        return found
