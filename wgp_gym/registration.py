"""The one table of environment ids, and how an id is registered."""

from __future__ import annotations

from dataclasses import dataclass, field

import gymnasium

from wgp_gym.types import Json

__all__ = ["ENVIRONMENTS", "EnvironmentEntry", "register", "register_task"]


@dataclass(frozen=True)
class EnvironmentEntry:
    """One environment id.

    Attributes:
        id: The id that `gymnasium.make` takes.
        summary: One line that says what it is.
        task: The task's class, or a function that returns the task, as "module:name".
        kwargs: The arguments of the task that make it this environment.
    """

    id: str
    summary: str
    task: str
    kwargs: dict[str, Json] = field(default_factory=dict)


SYNTHETIC = "wgp_gym.envs.synthetic:SyntheticTask"
MARKOV = "wgp_gym.envs.markov:MarkovTask"
STOCK = "wgp_gym.envs.table:stock_task"
TABLE = "wgp_gym.envs.table:table_task"
LINEAR = "wgp_gym.envs.linear:LinearTask"
ARMS = "wgp_gym.envs.arms:ArmsTask"
PRICING = "wgp_gym.envs.pricing:PricingTask"
BEAM = "wgp_gym.envs.beam:BeamTask"
SENSORS = "wgp_gym.envs.sensors:SensorsTask"
LOWER_BOUND = "wgp_gym.envs.lower_bound:LowerBoundTask"
NEWS = "wgp_gym.envs.news:NewsTask"
KNOBS = "wgp_gym.envs.knobs:KnobsTask"

ENVIRONMENTS = (
    EnvironmentEntry(
        "WGPBandit-Abrupt-v0",
        "RKHS functions that jump at 0.2 T and 0.4 T",
        SYNTHETIC,
        {"schedule": "abrupt"},
    ),
    EnvironmentEntry(
        "WGPBandit-Slow-v0",
        "RKHS functions that move along two straight lines",
        SYNTHETIC,
        {"schedule": "piecewise_linear"},
    ),
    EnvironmentEntry(
        "WGPBandit-Stationary-v0",
        "one RKHS function that never changes",
        SYNTHETIC,
        {"schedule": "constant"},
    ),
    EnvironmentEntry(
        "WGPBandit-Recurring-v0",
        "two RKHS functions that take turns",
        SYNTHETIC,
        {"schedule": "recurring"},
    ),
    EnvironmentEntry(
        "WGPBandit-Hidden-v0",
        "an RKHS function that changes where nobody plays",
        SYNTHETIC,
        {"schedule": "hidden"},
    ),
    EnvironmentEntry(
        "WGPBandit-Markov-v0",
        "draws of a Gaussian process that drift a little at every step",
        MARKOV,
    ),
    EnvironmentEntry(
        "WGPBandit-Stock-v0", "which of 29 stocks to hold today, on real prices", STOCK
    ),
    EnvironmentEntry("WGPBandit-Table-v0", "any CSV table of times x arms", TABLE),
    EnvironmentEntry(
        "WGPBandit-Parking-v0",
        "which of 16 car parks has the largest free share now",
        TABLE,
        {"table": "parking", "reward": "complement"},
    ),
    EnvironmentEntry(
        "WGPBandit-LinearAbrupt-v0",
        "linear functions that jump at T/6, T/3 and T/2",
        LINEAR,
        {"schedule": "abrupt"},
    ),
    EnvironmentEntry(
        "WGPBandit-LinearSlow-v0",
        "linear functions that turn for T/2 steps, then rest",
        LINEAR,
        {"schedule": "rotation"},
    ),
    EnvironmentEntry(
        "WGPBandit-LinearContextual-v0",
        "linear functions that jump, new arms at each step",
        LINEAR,
        {"schedule": "abrupt", "contextual": True},
    ),
    EnvironmentEntry(
        "WGPBandit-ArmsAbrupt-v0",
        "independent arms that pay 0 or 1, with jumping means",
        ARMS,
        {"schedule": "abrupt"},
    ),
    EnvironmentEntry(
        "WGPBandit-ArmsDrift-v0",
        "independent arms that pay 0 or 1, with means in waves",
        ARMS,
        {"schedule": "sinusoidal"},
    ),
    EnvironmentEntry(
        "WGPBandit-Pricing-v0",
        "which of 50 prices brings the most, with seasons, trends and shocks",
        PRICING,
    ),
    EnvironmentEntry(
        "WGPBandit-Beam-v0",
        "which of 64 beams of an antenna array reaches a user who walks and is hidden at times",
        BEAM,
    ),
    EnvironmentEntry(
        "WGPBandit-Sensors-v0",
        "which of 46 sensors reads the largest value now, by a day's cycle and a drifting field",
        SENSORS,
    ),
    EnvironmentEntry(
        "WGPBandit-LowerBound-v0",
        "a needle that moves as often as it could be found: the hard case of theory",
        LOWER_BOUND,
    ),
    EnvironmentEntry(
        "WGPBandit-News-v0", "which of 30 headlines to show: they come, fade and go", NEWS
    ),
    EnvironmentEntry(
        "WGPBandit-Knobs-v0", "a machine with continuous knobs whose best setting moves", KNOBS
    ),
)


def register_task(id: str, task: str, **kwargs: Json) -> None:
    """Register an environment of a task with Gymnasium, for `make` and for `make_vec`.

    Args:
        id: The new id, such as "MyBandit-v0".
        task: The task's class, or a function that returns the task, as "module:name".
        kwargs: Arguments of the task, as JSON values.
    """
    gymnasium.register(
        id=id,
        entry_point="wgp_gym.envs:BanditEnv",
        vector_entry_point="wgp_gym.envs:BanditVectorEnv",
        kwargs={"task": task, **kwargs},
    )


def register() -> None:
    """Register every id of `ENVIRONMENTS` with Gymnasium; a second call changes nothing."""
    for entry in ENVIRONMENTS:
        if entry.id not in gymnasium.registry:
            register_task(entry.id, entry.task, **entry.kwargs)
