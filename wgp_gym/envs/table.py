"""Tasks on tables of times x arms: stock prices, car parks, and any CSV file.

The kernel of a table without coordinates is the empirical covariance of its columns, as
[Deng22] Section 7 takes it for stocks.
"""

from __future__ import annotations

from typing import Literal, Unpack

import numpy as np

from wgp_gym.arrays import frozen
from wgp_gym.datasets import read_table
from wgp_gym.datasets.table import constant
from wgp_gym.envs.episode import Episode
from wgp_gym.envs.noise import LARGEST, SMALLEST, NoiseParameters, make_noise
from wgp_gym.envs.rounding import check_rounding
from wgp_gym.envs.task import Task
from wgp_gym.kernels import Empirical, make_kernel
from wgp_gym.rkhs import interpolants
from wgp_gym.schedules import knot_per_step
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, check_choice, check_float, check_int, reject, shown

__all__ = ["TableTask", "stock_task", "table_task"]

KERNELS = ("empirical", "se", "matern", "linear")
STOCK_REWARDS = ("standardised_price", "price", "return")
SAFE_EIGENVALUE = 1e-6  # below it, the norms of a table's rows explode
SINGULAR = 1e-12
DEFAULT_NUGGET, LARGEST_NUGGET = 0.01, 1e6
REMEDY = (
    "Subtract a constant from the table's values, multiply them if they are tiny, take prices "
    "as 'standardised_price', or ask for a larger variation_budget."
)


class TableParameters(NoiseParameters, total=False):
    """The parameters that tasks made of tables share. See `TableTask`."""

    nugget: float | None
    horizon: int | None
    noise_std: float
    norm_bound: float | None
    variation_budget: float | None


class TableTask(Task):
    """f_t is row t of a table of rewards; the episode is the same every time but for the noise.

    Rewards are rounded to single precision, which must not take more than a thousandth of a
    row's differences: subtract a constant from values that are large beside their differences.

    Args:
        rewards: The rewards, `(T, n)`.
        matrix: The kernel matrix of the arms, `(n, n)`, diagonal at most 1.
        nugget: nu in [0, 1e6]: the kernel becomes (K + nu I) / (1 + nu). Default 0 where the
            smallest eigenvalue of K is above 1e-6, else 0.01: rows need not lie in K's RKHS
            (Deviation: [Deng22] takes the covariance as it is).
        arm_names: The arms' names.
        horizon: The number of steps, at most T; default T.
        noise_std: The standard deviation of the noise, in [0, 1e30], in units of the reward.
        norm_bound: The largest RKHS norm B to rescale to, 0 or in [1e-100, 1e30]; None: as it is.
        variation_budget: The variation B_T to rescale to, likewise; None: as it is.
        **noise: `noise`, another law than the Gaussian, and its parameters: see `make_noise`.

    Raises:
        ValueError: If a parameter is out of its range, or rounding takes too much of a row.
    """

    def __init__(
        self,
        rewards: Array,
        matrix: Array,
        *,
        nugget: float | None = None,
        arm_names: list[str] | None = None,
        horizon: int | None = None,
        noise_std: float = 0.1,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
        **noise: Unpack[NoiseParameters],
    ) -> None:
        rewards = checked_rewards(rewards)
        length, arms = rewards.shape
        steps = length if horizon is None else check_int("horizon", horizon, "TableTask", 1, length)
        kernel = Empirical(with_nugget(matrix, nugget))
        super().__init__(
            kernel=kernel,
            domain=np.linspace(0.0, 1.0, arms)[:, None],
            schedule=knot_per_step(steps),
            noise=make_noise("gaussian", noise_std, "TableTask", **noise),
            norm_bound=norm_bound,
            variation_budget=variation_budget,
            arm_names=arm_names,
        )
        functions = interpolants(rewards[:steps], kernel.matrix)
        self._episode = self.episode(functions)
        check_rounding(self._episode.values, "TableTask", REMEDY)

    @property
    def kept_numbers(self) -> int:
        """How many numbers an environment keeps of an episode: the noise, the rest is shared."""
        return self.horizon

    def draw(self, rng: np.random.Generator) -> Episode:
        """Return the table's one episode: there is nothing to draw but the noise."""
        del rng
        return self._episode


def checked_rewards(given: object) -> Array:
    """Return rewards as an array `(T, n)` that cannot be written to; else raise ValueError."""
    rule = f"an array (T, n) of numbers of at most {LARGEST:g}"
    rewards = as_floats("rewards", given, "TableTask", rule)
    if rewards.ndim != 2 or not rewards.size or not (np.abs(rewards) <= LARGEST).all():
        reject("rewards", "TableTask", rule, given)
    if 0 < np.abs(rewards).max() < SMALLEST:
        reject("rewards", "TableTask", f"0 everywhere, or somewhere at least {SMALLEST:g}", given)
    return frozen(rewards)


def with_nugget(matrix: Array, nugget: float | None, owner: str = "TableTask") -> Array:
    """Return (K + nu I) / (1 + nu); else raise ValueError."""
    found = nugget_for(matrix, nugget, owner)
    shifted: Array = (matrix + found * np.eye(len(matrix))) / (1 + found)
    return shifted


def nugget_for(matrix: Array, nugget: float | None, owner: str) -> float:
    """Return nu, as `TableTask` has it, for a kernel matrix; else raise ValueError."""
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if nugget is None:
        nugget = 0.0 if smallest > SAFE_EIGENVALUE else DEFAULT_NUGGET
    nugget = check_float("nugget", nugget, owner, 0, LARGEST_NUGGET)
    if nugget + smallest < SINGULAR:
        rule = f"above 0 for a singular kernel matrix, at least {SINGULAR - smallest:g} here"
        reject("nugget", owner, rule, nugget)
    return nugget


def empirical_kernel(sample: Array) -> tuple[Array, float]:
    """Return the covariance matrix of the columns over its largest variance, and its root.

    Args:
        sample: Observations of the arms, `(N, n)`, one a row.
    """
    centred = sample - sample.mean(axis=0)
    covariance = centred.T @ centred / len(sample)
    largest = covariance.diagonal().max()
    matrix = covariance / largest
    return (matrix + matrix.T) / 2, float(np.sqrt(largest))


def check_columns(sample: Array, names: list[str], where: str) -> None:
    """Check that no column of `sample` `(N, n)` is constant, but for rounding."""
    flat = np.flatnonzero(constant(sample))
    if flat.size:
        raise ValueError(f"Column {shown(names[flat[0]])} is constant over {where}.")


def stock_task(
    *,
    prices: str = "dow29",
    header: bool = True,
    reward: Literal["standardised_price", "price", "return"] = "standardised_price",
    kernel_days: int | None = None,
    **parameters: Unpack[TableParameters],
) -> TableTask:
    """Make the stock task of [Deng22] Section 7: which stock to hold today.

    Kernel and rewards are scaled alike, so that the largest k(x, x) is 1 whatever the unit. With
    standardised prices the kernel is the correlation matrix of the prices.

    Deviation: [Deng22] has the closing price as f_t and the prices' covariance as the kernel, which
    is reward="price"; the default standardises both, and docs/fidelity.md has what that changes.
    Its day trade (bought at the opening, sold at the close) is no reward here: a table of prices
    has one price a day. Put a table of (close - open) / open, times a constant, to `table_task`.

    Note: without `kernel_days`, mean, scale and kernel come from the whole table, as the
    source of the task has it. That looks ahead: a learner could not have known them on day 1.

    Args:
        prices: "dow29" (embedded), or a CSV file: dates in the first column, then one column
            per stock.
        header: Whether the file's first row names the stocks.
        reward: "standardised_price": each stock's price less its mean, over its standard
            deviation; "price"; or "return": the price over the last day's, less 1, which leaves
            one day fewer to play.
        kernel_days: Estimate kernel and scaling on the first so many days only, and start the
            episode after them. Prices that wander far from those days have large norms under
            that kernel, and B, and with it beta, grows with them.
        **parameters: `horizon`, `noise_std`, `noise`, `nugget`, `norm_bound`,
            `variation_budget`: see `TableTask`.

    Raises:
        ValueError: If the table or a parameter is faulty; see `read_table` and `TableTask`.
    """
    check_choice("reward", reward, "the stock task", STOCK_REWARDS)
    table = read_table(prices, header=header, positive=True, parameter="prices")
    rewards = np.diff(table.values, axis=0) / table.values[:-1]
    if reward != "return":
        rewards = table.values
    known = len(rewards)
    if kernel_days is not None:
        kernel_days = check_int("kernel_days", kernel_days, "the stock task", 3, len(table.times))
        known = kernel_days - (reward == "return")
        if known >= len(rewards):
            rule = f"below {len(table.times)}, so that days are left to play"
            reject("kernel_days", "the stock task", rule, kernel_days)
    sample = rewards[:known]
    check_columns(sample, table.names, "the days that the kernel is made of")
    if reward == "standardised_price":
        rewards = (rewards - sample.mean(axis=0)) / sample.std(axis=0)
    matrix, scale = empirical_kernel(rewards[:known])
    played = rewards if kernel_days is None else rewards[known:]
    return TableTask(played / scale, matrix, arm_names=table.names, **parameters)


def table_task(
    *,
    table: str = "parking",
    header: bool = True,
    reward: Literal["value", "complement"] = "value",
    kernel: Literal["empirical", "se", "matern", "linear"] = "empirical",
    lengthscale: float = 0.2,
    nu: float = 2.5,
    **parameters: Unpack[TableParameters],
) -> TableTask:
    """Make a task of any table: at step t arm i pays the cell in row t and column i.

    The empirical kernel is the covariance matrix of the columns over its largest entry; the
    rewards keep the table's unit.

    Args:
        table: "parking", "dow29" (embedded), or a CSV file: times in the first column, then
            one column per arm.
        header: Whether the file's first row names the arms.
        reward: "value": the cell; "complement": 1 less the cell, as the free share of a car
            park is of its occupancy.
        kernel: "empirical", or "se", "matern", "linear" on the arms' places i / (n - 1).
        lengthscale: The length l of "se" and "matern", in [1e-9, 1e9].
        nu: The smoothness of "matern".
        **parameters: `horizon`, `noise_std`, `noise`, `nugget`, `norm_bound`,
            `variation_budget`: see `TableTask`.

    Raises:
        ValueError: If the table or a parameter is faulty; see `read_table` and `TableTask`.
    """
    check_choice("reward", reward, "the table task", ("value", "complement"))
    check_choice("kernel", kernel, "the table task", KERNELS)
    data = read_table(table, header=header, parameter="table")
    rewards = data.values if reward == "value" else 1 - data.values
    check_columns(rewards, data.names, "all rows, but for rounding")
    made = make_kernel("se" if kernel == "empirical" else kernel, lengthscale, nu)
    if kernel == "empirical":
        matrix = empirical_kernel(rewards)[0]
    else:
        places = np.linspace(0.0, 1.0, len(data.names))[:, None]
        matrix = made(places, places)
    return TableTask(rewards, matrix, arm_names=data.names, **parameters)
