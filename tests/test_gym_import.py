"""What is imported when, and who may import whom: the arrows of the design."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "stable_baselines3", "matplotlib", "numba", "sklearn", "joblib", "wgp_agents")

# The house, lower floors first: a module imports from its own floor and from those below it.
FLOORS = [
    ["wgp_gym"],
    ["wgp_agents.core", "wgp_agents.kernels"],
    ["wgp_agents"],  # the contract, the registry and parameters
    ["wgp_agents.gp", "wgp_agents.arms", "wgp_agents.detectors"],
    ["wgp_agents.algorithms"],
    ["wgp_agents.benchmark"],
    ["wgp_agents.theory", "wgp_agents.training", "wgp_agents.live"],
    ["wgp_agents.cli"],
    ["scripts.speed", "scripts.pages"],  # the groups of bench_speed.py; what the site needs
    ["scripts"],
]
LEARNERS = 4  # the floor of the algorithms: up to it few other distributions are needed
LAYERS = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
THIRD_PARTIES = {
    "wgp_gym": {"numpy", "scipy", "gymnasium", "matplotlib"},
    "wgp_agents": {
        "numpy",
        "scipy",
        "gymnasium",
        "numba",
        "torch",
        "stable_baselines3",
        "sb3_contrib",
        "threadpoolctl",
        "tqdm",
    },
}
ONLY_WHEN_CALLED = {
    "matplotlib",
    "torch",
    "stable_baselines3",
    "sb3_contrib",
    "jinja2",
    "plotly",
    "sqlalchemy",
}


def modules() -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of every module of the tree but the tests."""
    for top in (ROOT / "wgp_gym", ROOT / "agents" / "wgp_agents", ROOT / "scripts"):
        for path in sorted(top.rglob("*.py")):
            parts = path.relative_to(top.parent).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__"), path


MODULES = dict(modules())
RL_ADAPTERS = {  # modules that may import torch when they are imported themselves
    name
    for name in MODULES
    if name.startswith(("wgp_agents.algorithms.learned.sb3", "wgp_agents.training"))
}

DATABASES = {  # modules that `live.storage` imports with the first database
    f"wgp_agents.live.{name}" for name in ("database", "database_session", "engines", "tables")
}


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def imported_by(node: ast.AST, name: str, is_package: bool) -> list[str]:
    """Return the full names that an import statement mentions."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            above = name.split(".")
            above = above[: len(above) - node.level + is_package]
            base = ".".join([*above, *filter(None, [node.module])])
        return [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return []


def imports(name: str, *, at_import_time: bool) -> Iterator[str]:
    """Yield what a module imports: anywhere, or only when it is imported itself."""
    path = MODULES[name]
    waiting: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    while waiting:
        node = waiting.pop()
        if at_import_time:
            function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            if function or is_type_checking(node):
                continue
        yield from imported_by(node, name, path.name == "__init__.py")
        waiting.extend(ast.iter_child_nodes(node))


def room(name: str) -> str | None:
    """Return the room that a module belongs to; None for another distribution's."""
    found = [own for own in LAYERS if f"{name}.".startswith(f"{own}.")]
    return max(found, key=len, default=None)


def layer(name: str) -> int | None:
    """Return the floor that a module belongs to; None for another distribution's."""
    own = room(name)
    return None if own is None else LAYERS[own]


def test_the_tree_is_found() -> None:
    assert {"wgp_gym", "wgp_gym.envs.dynamics", "wgp_agents.gp.surrogates.weighted"} <= set(MODULES)
    assert layer("wgp_agents.benchmark.rollout") == 5
    assert layer("wgp_agents.clinic") == layer("wgp_agents.base") == 2
    assert (layer("wgp_gymnastics"), layer("numpy.random")) == (None, None)
    assert "wgp_gym.kernels.Kernel" in set(imports("wgp_gym.rkhs", at_import_time=True))


def against_the_arrows(name: str) -> Iterator[str]:
    """Yield what a module imports that it may not."""
    own = layer(name)
    assert own is not None, name
    for target in imports(name, at_import_time=False):
        other = layer(target) if target in MODULES else None
        upwards = other is not None and other > own
        sideways = room(name) == "scripts" == room(target)
        if upwards or sideways or f"{target}.".startswith(("tests.", "conftest.")):
            yield f"{name} imports {target}"


def test_arrows_point_down() -> None:
    assert [fault for name in MODULES for fault in against_the_arrows(name)] == []


def test_no_module_imports_itself_through_others() -> None:
    graph = {
        name: set(imports(name, at_import_time=False)) & MODULES.keys() - {name} for name in MODULES
    }
    while leaves := [name for name, targets in graph.items() if not targets & graph.keys()]:
        for name in leaves:
            del graph[name]
    while roots := graph.keys() - set().union(*graph.values()):  # above a circle, not in one
        for name in roots:
            del graph[name]
    assert sorted(graph) == []


def foreign(name: str) -> Iterator[str]:
    """Yield the distributions that a module imports and may not, or may not yet."""
    own, floor = room(name), layer(name) or 0
    if floor <= LEARNERS:
        tops = {target.split(".")[0] for target in imports(name, at_import_time=False)}
        third = THIRD_PARTIES["wgp_agents" if floor else "wgp_gym"]
        known = {*sys.stdlib_module_names, "wgp_gym", "wgp_agents"} | third
        yield from (f"{name} imports {top}" for top in tops - known)
    at_once = {target.split(".")[0] for target in imports(name, at_import_time=True)}
    if name not in RL_ADAPTERS | DATABASES and own != "scripts":
        yield from (f"{name} imports {top} at once" for top in at_once & ONLY_WHEN_CALLED)


def test_third_parties() -> None:
    assert [fault for name in MODULES for fault in foreign(name)] == []


def test_imports_against_the_rules_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("import torch, requests\nfrom wgp_agents.cli import main\n", encoding="utf-8")
    monkeypatch.setitem(MODULES, "wgp_agents.wrong", path)
    assert [*against_the_arrows("wgp_agents.wrong")] == ["wgp_agents.wrong imports wgp_agents.cli"]
    found = {
        fault.removeprefix("wgp_agents.wrong imports ") for fault in foreign("wgp_agents.wrong")
    }
    assert found == {"torch at once", "requests"}


def run(program: str) -> str:
    """Run a program in a fresh interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


def test_import_is_light() -> None:
    loaded = run("import sys, wgp_gym; print(*sys.modules)").split()
    assert "wgp_gym" in loaded
    assert not set(loaded) & {*HEAVY, "scipy"}


def test_playing_is_light() -> None:
    program = (
        "import sys, gymnasium\n"
        "from wgp_gym.registration import ENVIRONMENTS\n"
        "for entry in ENVIRONMENTS:\n"
        "    env = gymnasium.make(entry.id)\n"
        "    env.reset(seed=0); env.step(env.action_space.sample())\n"
        "print(*sys.modules)\n"
    )
    assert not set(run(program).split()) & set(HEAVY)


def test_import_costs_little_more_than_gymnasium() -> None:
    """At most 0.2 s above `import gymnasium`: the best of three, since other work may disturb."""
    program = (
        "import time, gymnasium\n"
        "start = time.perf_counter(); import wgp_gym; print(time.perf_counter() - start)\n"
    )
    assert min(float(run(program)) for _ in range(3)) < 0.2


def test_types_are_shipped() -> None:
    assert (ROOT / "wgp_gym" / "py.typed").is_file()
    assert (ROOT / "agents" / "wgp_agents" / "py.typed").is_file()
