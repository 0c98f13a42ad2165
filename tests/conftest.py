"""What the environment tests share: every registered id, its variants, and a way to make one."""

from collections.abc import Callable
from typing import Any

import gymnasium
import pytest

import wgp_gym  # noqa: F401  (registers the ids)
from wgp_gym.envs import BanditEnv, SyntheticTask
from wgp_gym.registration import ENVIRONMENTS

Variant = tuple[str, dict[str, Any]]

SYNTHETIC_VARIANTS: list[dict[str, Any]] = [
    {"continuous": True},
    {"dim": 2, "points_per_dim": 6},
    {"dim": 2, "points_per_dim": 6, "continuous": True},
]


def bare(name: str, **parameters: Any) -> BanditEnv:
    env = gymnasium.make(name, **parameters).unwrapped
    assert isinstance(env, BanditEnv)
    return env


def variants() -> list[Variant]:
    """List every id made bare, and those that take them with the variants above."""
    found: list[Variant] = []
    for entry in ENVIRONMENTS:
        found.append((entry.id, {}))
        if isinstance(bare(entry.id).task, SyntheticTask):
            found += [(entry.id, parameters) for parameters in SYNTHETIC_VARIANTS]
    return found


def readable(variant: Variant) -> str:
    name, parameters = variant
    words = [key if value is True else f"{key}{value}" for key, value in parameters.items()]
    return "-".join([name.removeprefix("WGPBandit-").removesuffix("-v0"), *words])


@pytest.fixture(params=variants(), ids=readable)
def variant(request: pytest.FixtureRequest) -> Variant:
    """An id and its parameters: every registered id, bare and in its variants."""
    chosen: Variant = request.param
    return chosen


@pytest.fixture(params=[entry.id for entry in ENVIRONMENTS])
def environment_id(request: pytest.FixtureRequest) -> str:
    """Every registered id."""
    return str(request.param)


@pytest.fixture
def make_env() -> Callable[..., BanditEnv]:
    """Make the environment of an id without Gymnasium's wrappers."""
    return bare
