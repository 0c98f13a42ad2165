"""What tells one function from another, where a state must be of an agent with the same ones.

| of | what is compared |
|---|---|
| a function of one's own | its qualified name, code, defaults, and what its closure holds |
| a method | its function, and the object that it is bound to |
| a partial | its function and arguments |
| a function of this package, of numpy, scipy or another of `FOREIGN` | its qualified name |
| an object that can be called | its class and attributes; of compiled code its class |

The code is compared within one minor version of Python: another compiles it otherwise. The module
is not, since that of a script has another name when it is imported; nor what a function reads from
its module. What a function has changed in its closure, or in the object that it is bound to, makes
it another one.
"""

from __future__ import annotations

from functools import partial
from importlib.util import MAGIC_NUMBER
from types import CellType, CodeType, FunctionType, MethodType
from typing import NamedTuple

__all__ = ["BYTECODE", "Code", "inside", "name_of"]

BYTECODE = float(int.from_bytes(MAGIC_NUMBER[:2], "little"))  # the version of what is compiled
OURS = "wgp_agents", "wgp_gym"


class Code(NamedTuple):
    """What a function does, in a text."""

    text: str


def name_of(value: object) -> str:
    """Return the qualified name of a function, or that of the class of anything else."""
    value = getattr(value, "py_func", value)  # of one that numba compiled
    for word in ("__qualname__", "__name__"):  # a ufunc has the latter
        if isinstance(name := getattr(value, word, None), str):
            return name
    return type(value).__qualname__


def inside(value: object, others: tuple[str, ...]) -> dict[object, object]:
    """Return what tells a function from others of its name, by name.

    Args:
        value: Anything; what is no function has nothing inside.
        others: The packages whose functions are known by their names.
    """
    value = getattr(value, "py_func", value)  # of one that numba compiled
    if isinstance(value, partial):
        return {"func": value.func, "args": value.args, "keywords": value.keywords}
    if isinstance(value, MethodType) and not is_of(type(value.__self__).__module__, others):
        return {"func": value.__func__, "self": value.__self__}
    if not isinstance(value, FunctionType) or is_of(value.__module__, others):
        return {}
    return {
        "code": Code(text_of(value.__code__, value.__doc__)),
        "defaults": value.__defaults__,
        "keywords": value.__kwdefaults__,
        "closure": tuple(held_by(cell) for cell in value.__closure__ or ()),
    }


def is_of(module: str | None, packages: tuple[str, ...]) -> bool:
    """Tell whether a module is one of these packages', or of this one's."""
    return (module or "").partition(".")[0] in (*packages, *OURS)


def held_by(cell: CellType) -> object:
    """Return what a closure's cell holds; None where it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def text_of(code: CodeType, doc: str | None = None) -> str:
    """Return what code does, whatever its file, its lines and its docstring."""
    constants = [constant(one) for one in code.co_consts if doc is None or one is not doc]
    return repr((code.co_code.hex(), code.co_names, constants))


def constant(value: object) -> str:
    """Return a constant in code as a text; a set has its items in one order."""
    if isinstance(value, CodeType):
        return text_of(value)
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)
