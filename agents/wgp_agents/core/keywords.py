"""The parameters that a function or a class takes by name."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable

__all__ = ["keywords"]


def keywords(made: Callable[..., object]) -> list[str]:
    """Return the parameters with a default, or by keyword alone, of a function or constructor.

    Those that it unpacks from a TypedDict are among them; of a class that hands all others
    (`**kwargs`) to its base, the base's.
    """
    return [*found_keywords(made)]


@functools.lru_cache(256)  # an agent is made anew for each task, and annotations are slow to read
def found_keywords(made: Callable[..., object]) -> tuple[str, ...]:
    """Return what `keywords` does."""
    built = [made]
    if inspect.isclass(made):
        built = [vars(one)["__init__"] for one in made.__mro__ if "__init__" in vars(one)]
    found: list[str] = []
    for function in built:
        open_ended = False
        for name, one in inspect.signature(function).parameters.items():
            positional = one.kind is one.POSITIONAL_OR_KEYWORD and one.default is not one.empty
            if one.kind is one.KEYWORD_ONLY or positional:
                found.append(name)
            elif one.kind is one.VAR_KEYWORD:
                shared = typing.get_type_hints(function).get(name)
                open_ended = typing.get_origin(shared) is not typing.Unpack
                found += [] if open_ended else typing.get_type_hints(*typing.get_args(shared))
        if not open_ended:
            break
    return tuple(dict.fromkeys(found))
