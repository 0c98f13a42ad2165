"""Which of the sensors in the plane reads the largest value now.

References:
    [BSC16]: see `wgp_gym.envs.markov`.
    [SKKS10] Srinivas, Krause, Kakade, Seeger. Gaussian Process Optimization in the Bandit Setting:
        No Regret and Experimental Design. ICML 2010, Section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Unpack, cast

import numpy as np

from wgp_gym.datasets import read_table
from wgp_gym.datasets.places import read_places
from wgp_gym.envs.episode import Episode
from wgp_gym.envs.laws import Drawable
from wgp_gym.envs.noise import NoiseParameters, make_noise
from wgp_gym.envs.rounding import check_rounding
from wgp_gym.envs.sensor_field import FieldParameters, SensorField
from wgp_gym.envs.table import REMEDY, check_columns, empirical_kernel, nugget_for, with_nugget
from wgp_gym.envs.task import Task
from wgp_gym.kernels import Categorical, Empirical, Kernel, Sum, make_kernel
from wgp_gym.rkhs import interpolants
from wgp_gym.schedules import knot_per_step
from wgp_gym.types import Array
from wgp_gym.validation import check_choice, check_int, check_size, check_unused, reject

__all__ = ["SensorsTask"]

OWNER = "SensorsTask"
KERNELS = ("empirical", "se", "matern")
USUAL = {"num_sensors": 46, "horizon": 288, "training_steps": 720}
LEAST_TRAINING = 3


class SensorsParameters(FieldParameters, NoiseParameters, total=False):
    """The parameters of the drawn readings, and of the noise."""


class SensorsTask(Task):
    """f_t(i) is what sensor i reads at step t; the kernel is the covariance of earlier readings.

    This is the task of [SKKS10] and [BSC16], who play the temperatures of 46 sensors in a building
    with the empirical covariance of a training period as the kernel. Their data cannot be shipped
    here. Bare, a `SensorField` draws readings of that kind: its training period, which makes the
    kernel, is drawn once, and each episode is another time of the same sensors. With `table` the
    readings are yours: the first rows are the training period, and the others the one episode,
    the same every time but for the noise.

    Readings are taken less the mean of all of the training period, in units of the largest
    deviation that a sensor has in it, so that kernel and readings are scaled alike.

    Args:
        table: A CSV file as `WGPBandit-Table-v0` takes it, times in the first column and a column
            a sensor; None: readings are drawn.
        places: A CSV file of one row a sensor: its name, x and y. Default: drawn sensors stand
            where `SensorField` draws them, those of a table nowhere.
        header: Whether the table's first row names the sensors.
        kernel: "empirical": the covariance matrix of the training period over its largest entry;
            "se" or "matern", on the places, which arms then stand at.
        lengthscale: The length l of "se" and "matern" in the plane, whose longer side is 1 for
            places of a file, in [1e-9, 1e9].
        nu: The smoothness of "matern".
        nugget: nu in [0, 1e6]: the kernel becomes (K + nu I) / (1 + nu). Default as `TableTask`
            has it.
        training_steps: The length of the training period, at least 3. Default: 720, or half of the
            table's rows.
        horizon: The number of steps T. Default: 288, or all other rows of the table.
        noise_std: The standard deviation of the Gaussian noise, in [0, 1e30], in units of the
            reward.
        norm_bound: The largest RKHS norm B to give each episode, 0 or in [1e-100, 1e30]; None:
            as drawn.
        variation_budget: The variation B_T to give each episode, likewise; None: as drawn.
        **model: Without a table, `num_sensors`, `field_lengthscale`, `correlation_time`, `period`,
            `amplitude`, `exposure_spread`, `offset_std`, `sensors_seed`: see `SensorField`.
            And `noise`, another law than the Gaussian, with its parameters: see `make_noise`.

    In an environment's arguments `noise_std` may be a law, drawn anew for each episode: see
    `RandomTask`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a file or a parameter is faulty, an episode is too large to hold, or a
            budget cannot be met; see `read_table` and `read_places`.
    """

    drawable: ClassVar[Mapping[str, Drawable]] = {"noise_std": "range"}

    def __init__(
        self,
        *,
        table: str | None = None,
        places: str | None = None,
        header: bool = True,
        kernel: Literal["empirical", "se", "matern"] = "empirical",
        lengthscale: float = 0.3,
        nu: float = 2.5,
        nugget: float | None = None,
        training_steps: int | None = None,
        horizon: int | None = None,
        noise_std: float = 0.1,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
        **model: Unpack[SensorsParameters],
    ) -> None:
        check_choice("kernel", kernel, OWNER, KERNELS)
        field, law = field_and_noise(model)
        self._field: SensorField | None = None
        readings: Array | None = None
        stand: Array | None
        if table is None:
            where = None if places is None else read_places(places)
            self._field = SensorField(None if where is None else where[1], **field)
            stand, count = self._field.places, len(self._field.places)
            names = [f"sensor {i}" for i in range(count)] if where is None else where[0]
            training, steps = drawn_sizes(count, training_steps, horizon)
            sample = self._field.readings(self._field.rng, training)
        else:
            check_unused(OWNER, "with a table of one's own", field)
            data = read_table(table, header=header, parameter="table")
            names, length = data.names, len(data.times)
            training, steps = table_sizes(length, training_steps, horizon)
            sample, readings = data.values[:training], data.values[training : training + steps]
            stand = None if places is None else read_places(places, names)[1]
        check_columns(sample, names, "the training period")
        covariance, self._unit = empirical_kernel(sample)
        self._zero = float(sample.mean())
        domain, made, self._matrix = (
            made_of_matrix(covariance, nugget)
            if kernel == "empirical"
            else made_of_places(make_kernel(kernel, lengthscale, nu), stand, nugget)
        )
        super().__init__(
            kernel=made,
            domain=domain,
            schedule=knot_per_step(steps),
            noise=make_noise("gaussian", noise_std, OWNER, **law),
            norm_bound=norm_bound,
            variation_budget=variation_budget,
            arm_names=names if kernel == "empirical" else None,
        )
        self._episode = None if readings is None else self._scaled(readings)
        if self._episode is not None:
            check_rounding(self._episode.values, OWNER, REMEDY)

    @property
    def kept_numbers(self) -> int:
        """How many numbers an environment keeps of an episode; of a table the noise alone."""
        return super().kept_numbers if self._field is not None else self.horizon

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the readings of one episode; of a table there is one, and nothing to draw."""
        if self._field is None:
            assert self._episode is not None
            return self._episode
        return self._scaled(self._field.readings(rng, self.horizon))

    def _scaled(self, readings: Array) -> Episode:
        """Return the episode of readings `(T, n)`."""
        return self.episode(interpolants((readings - self._zero) / self._unit, self._matrix))


def field_and_noise(given: SensorsParameters) -> tuple[FieldParameters, NoiseParameters]:
    """Return the parameters of the readings, and those of the noise."""
    names = NoiseParameters.__annotations__
    law = {name: value for name, value in given.items() if name in names}
    field = {name: value for name, value in given.items() if name not in names}
    return cast(FieldParameters, field), cast(NoiseParameters, law)


def drawn_sizes(count: int, training_steps: int | None, horizon: int | None) -> tuple[int, int]:
    """Return the lengths of the training period and of an episode that are drawn."""
    sizes = {"training_steps": training_steps, "horizon": horizon}
    least = {"training_steps": LEAST_TRAINING, "horizon": 1}
    found = []
    for name, value in sizes.items():
        steps = USUAL[name] if value is None else check_int(name, value, OWNER, least[name])
        check_size(OWNER, {"num_sensors": count, name: steps}, USUAL)
        found.append(steps)
    return found[0], found[1]


def table_sizes(rows: int, training_steps: int | None, horizon: int | None) -> tuple[int, int]:
    """Return the lengths of the training period and of the episode of a table with so many rows."""
    if rows <= LEAST_TRAINING:
        reject("table", OWNER, f"of at least {LEAST_TRAINING + 1} rows", rows)
    training = max(rows // 2, LEAST_TRAINING)
    if training_steps is not None:
        training = check_int("training_steps", training_steps, OWNER, LEAST_TRAINING, rows - 1)
    rest = rows - training
    steps = rest if horizon is None else check_int("horizon", horizon, OWNER, 1, rest)
    return training, steps


def made_of_matrix(covariance: Array, nugget: float | None) -> tuple[Array, Kernel, Array]:
    """Return the domain, the kernel and its matrix, of sensors that stand nowhere."""
    kernel = Empirical(with_nugget(covariance, nugget, OWNER))
    return np.linspace(0.0, 1.0, len(covariance))[:, None], kernel, kernel.matrix


def made_of_places(
    kernel: Kernel, places: Array | None, nugget: float | None
) -> tuple[Array, Kernel, Array]:
    """Return the same for sensors in the plane: of places, 1 where they are one is the nugget."""
    if places is None:
        reject("places", OWNER, "a CSV file of name, x and y for a kernel of places", None)
    plain = kernel(places, places)
    nu = nugget_for(plain, nugget, OWNER)
    made = Sum((kernel, Categorical(0.0)), (1 / (1 + nu), nu / (1 + nu)))
    return places, made if nu > 0 else kernel, (plain + nu * np.eye(len(plain))) / (1 + nu)
