"""The part of an experiment's grid that a picture shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from wgp_agents.benchmark.declaration import DEFAULT
from wgp_agents.benchmark.experiment import AgentSpec, TaskSpec
from wgp_gym.kernels import Array
from wgp_gym.validation import check_choice, reject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["is_log", "is_number", "narrowed", "ordered", "tick_at", "values"]

Spec = TypeVar("Spec", AgentSpec, TaskSpec)

LOG_FROM = 20.0  # a parameter's range, beyond which its axis is logarithmic


def narrowed(
    specs: Sequence[Spec], names: Sequence[str], fixed: Mapping[str, Any], what: str, owner: str
) -> list[Spec]:
    """Return the variants that differ in `names` alone, the others of their grid being fixed.

    Raises:
        ValueError: If no variants differ in `names`, or more than one value of another remains.
    """
    known = dict.fromkeys(key for spec in specs for key in spec.varied)
    for key in names:
        check_choice(what, key, owner, known)
    for key in fixed:
        check_choice("fixed", key, owner, [one for one in known if one not in names])
    grid = [spec for spec in specs if set(names) | set(fixed) <= set(spec.varied)]
    found = [spec for spec in grid if all(spec.varied[key] == fixed[key] for key in fixed)]
    if not found:
        offered = {key: list(values(grid, key)) for key in [*names, *fixed]}
        reject("fixed", owner, f"of the values {offered}", dict(fixed))
    rest = [key for key in known if key not in names and len(values(found, key)) > 1]
    if rest:
        rule = "a value for " + " and ".join(f"{key!r} {values(found, key)}" for key in rest)
        reject("fixed", owner, rule, dict(fixed))
    return found


def values(specs: Sequence[AgentSpec] | Sequence[TaskSpec], key: str) -> list[Any]:
    """Return the different values of a parameter that varies, as they come first."""
    found: list[Any] = []
    for spec in specs:
        if key in spec.varied and spec.varied[key] not in found:
            found.append(spec.varied[key])
    return found


def is_number(value: Any) -> bool:
    """Tell whether a value has its place on an axis."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def ordered(keys: Sequence[Any]) -> list[Any]:
    """Return numbers in order, then other values as they come, "default" last."""
    numbers = sorted(key for key in keys if is_number(key))
    words = [key for key in keys if not is_number(key) and key != DEFAULT]
    return numbers + words + [key for key in keys if key == DEFAULT]


def is_log(keys: Array) -> bool:
    """Tell whether a parameter's values are better spaced by their logarithms."""
    return bool(keys.min() > 0 and keys.max() > LOG_FROM * keys.min())


def tick_at(ax: Axes, keys: Sequence[Any]) -> None:
    """Put ticks at the values of a grid and nowhere else."""
    from matplotlib.ticker import NullLocator

    ax.set_xticks(keys, [f"{key:g}" for key in keys])
    ax.xaxis.set_minor_locator(NullLocator())
