"""The part of an experiment's grid that a picture shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard, TypeVar

from wgp_agents.benchmark.declaration import DEFAULT
from wgp_agents.benchmark.experiment import AgentSpec, TaskSpec
from wgp_agents.benchmark.files import JSON
from wgp_gym.validation import check_choice, reject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Spec = TypeVar("Spec", AgentSpec, TaskSpec)
Key = int | float | str
"""A parameter's value, as a key: variants differ in it. A list is a text."""

LOG_FROM = 20.0  # a parameter's range, beyond which its axis is logarithmic


def narrowed(
    specs: Sequence[Spec], names: Sequence[str], fixed: Mapping[str, object], what: str, owner: str
) -> list[Spec]:
    """Return the variants that differ in `names` alone, the others of their grid being fixed.

    A parameter that a variant does not mention is "default". Of several that are made alike,
    and so play alike, the first stays.
    """
    known = differing(specs)
    for key in names:
        check_choice(what, key, owner, known)
    for key in fixed:
        check_choice("fixed", key, owner, [one for one in known if one not in names])
    wanted = {key: plain(value) for key, value in fixed.items()}
    found = [spec for spec in specs if wanted.items() <= settings(spec, wanted).items()]
    if not found:
        offered = {key: values(specs, key) for key in [*names, *fixed]}
        reject("fixed", owner, f"of the values {offered}", dict(fixed))
    rest = [key for key in known if key not in names and len(values(found, key)) > 1]
    if rest:
        rule = "a value for " + " and ".join(f"{key!r} {values(found, key)}" for key in rest)
        reject("fixed", owner, rule, dict(fixed))
    distinct: dict[tuple[Key, ...], Spec] = {}
    for spec in found:
        distinct.setdefault(tuple(settings(spec, names).values()), spec)
    return list(distinct.values())


def differing(specs: Sequence[AgentSpec] | Sequence[TaskSpec]) -> list[str]:
    """Return the parameters that an entry lists several values of, or that variants differ in."""
    listed = dict.fromkeys(key for spec in specs for key in spec.varied)
    mentioned = dict.fromkeys(key for spec in specs for key in all_settings(spec))
    return [
        *listed,
        *(key for key in mentioned if len(values(specs, key)) > 1 and key not in listed),
    ]


def others(
    specs: Sequence[AgentSpec] | Sequence[TaskSpec], names: Sequence[str]
) -> list[dict[str, Key]]:
    """Return the combinations of what the variants differ in beside `names`, each once."""
    rest = [key for key in differing(specs) if key not in names and len(values(specs, key)) > 1]
    found: list[dict[str, Key]] = []
    for spec in specs:
        if (combination := settings(spec, rest)) not in found:
            found.append(combination)
    return found


def values(specs: Sequence[AgentSpec] | Sequence[TaskSpec], key: str) -> list[Key]:
    """Return the different values of a parameter, as they come first."""
    return list(dict.fromkeys(settings(spec, [key])[key] for spec in specs))


def settings(spec: AgentSpec | TaskSpec, names: Iterable[str]) -> dict[str, Key]:
    """Return a variant's values of some parameters, "default" where it does not mention one."""
    given = all_settings(spec)
    return {key: plain(given.get(key, DEFAULT)) for key in names}


def all_settings(spec: AgentSpec | TaskSpec) -> dict[str, JSON]:
    """Return all that tells a variant from others; of a task also the environment's "id"."""
    return spec.settings if isinstance(spec, AgentSpec) else {"id": spec.id, **spec.settings}


def plain(value: object) -> Key:
    """Return a number or a text as it is, and a list as a text, so that values can be keys."""
    return value if isinstance(value, (int, float, str)) else str(value)


def fixed_words(fixed: Mapping[str, object]) -> str:
    """Return the values that are fixed, for a title; nothing where none are."""
    return f" ({', '.join(f'{key} = {value}' for key, value in fixed.items())})" if fixed else ""


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether a value has its place on an axis: infinity has none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)


def ordered(keys: Sequence[Key]) -> list[Key]:
    """Return numbers in order, then other values as they come, "default" last."""
    numbers = sorted(key for key in keys if is_number(key))
    words = [key for key in keys if not is_number(key) and key != DEFAULT]
    return numbers + words + [key for key in keys if key == DEFAULT]


def tick_at(ax: Axes, keys: Sequence[float]) -> None:
    """Put ticks at the values of a grid and nowhere else."""
    from matplotlib.ticker import NullLocator

    ax.set_xticks(keys, [f"{key:g}" for key in keys])
    ax.xaxis.set_minor_locator(NullLocator())
