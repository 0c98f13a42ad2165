"""A module of a user's own, and what it imports: the files that its code stands in.

Imports are read off the text, so that neither what was imported before nor the order matters. What
is found is followed further, but for what is installed, the standard library and this package,
which follow from versions. Not found is what only runs show: `importlib.import_module`, code that
is made of texts, and files that a module opens.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

__all__ = ["OURS", "module_files"]

OURS = ("wgp_gym", "wgp_agents", "__main__")  # they follow from the version, or have no file
INSTALLED = ("site-packages", "dist-packages")
STANDARD = Path(sysconfig.get_path("stdlib"))
MOST = 10_000  # texts of modules whose imports are kept


def module_files(name: str) -> dict[str, Path]:
    """Return the files of a module and of all that it imports, by the modules' names, sorted.

    Args:
        name: The module, which need not be imported yet; nothing is imported.

    Raises:
        FileNotFoundError: If there is no such module, or it has no file.
    """
    found: dict[str, Path] = {}
    waiting, seen = [*parents(name)], {name, *parents(name)}
    while waiting:
        one = waiting.pop()
        spec = spec_of(one)
        if spec is None or not spec.origin or not Path(spec.origin).is_file():
            if one == name:
                raise FileNotFoundError(f"There is no file {name!r}.")
            continue
        path = Path(spec.origin)
        if one != name and is_installed(one, path):
            continue
        found[one] = path
        new = [other for other in imports_of(spec, path) if other not in seen]
        seen.update(new)
        waiting += new
    return dict(sorted(found.items()))


def parents(name: str) -> Iterator[str]:
    """Yield the packages that a module stands in, and the module."""
    parts = name.split(".")
    yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def spec_of(name: str) -> ModuleSpec | None:
    """Return where a module stands, without importing it or a package that it is in."""
    root, *rest = name.split(".")
    try:
        spec = find_spec(root)
    except (ImportError, ValueError):  # ValueError: of what has no spec, as __main__
        return None
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:  # no package
            return None
        # By its last name, so that Python looks for no parent among what was imported.
        below = PathFinder.find_spec(part, list(spec.submodule_search_locations))
        spec = below and renamed(below, f"{spec.name}.{part}")
    return spec


def renamed(spec: ModuleSpec, name: str) -> ModuleSpec:
    """Return where a module stands under its full name."""
    found = ModuleSpec(name, None, origin=spec.origin)
    folders = spec.submodule_search_locations
    found.submodule_search_locations = None if folders is None else list(folders)
    return found


def is_installed(name: str, path: Path) -> bool:
    """Tell whether a module follows from the versions of what is installed."""
    root = name.partition(".")[0]
    known = root in sys.stdlib_module_names or root in OURS
    return known or path.is_relative_to(STANDARD) or any(one in path.parts for one in INSTALLED)


def imports_of(spec: ModuleSpec, path: Path) -> list[str]:
    """Return what a module's text may import, with the packages that this is in."""
    if path.suffix != ".py":
        return []
    package = spec.name if spec.submodule_search_locations is not None else spec.parent or ""
    return [one for name in imported(path.read_bytes(), package) for one in parents(name)]


@lru_cache(MOST)
def imported(text: bytes, package: str) -> tuple[str, ...]:
    """Return the names in the imports of a text that stands in a package ("": in none)."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # who imports it is told
        return ()
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update((one.name, None) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            # What is taken from a package may be a module.
            inside = [f"{base}.{one.name}" for one in node.names if one.name != "*"]
            names.update(dict.fromkeys([base, *inside] if base else ()))
    return tuple(names)
