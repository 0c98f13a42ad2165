"""What is imported when, and who may import whom: the arrows of the design."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "stable_baselines3", "matplotlib", "numba", "sklearn", "joblib", "wgp_agents")

# Lower layers first: a module imports from its own layer and from those below it.
LAYERS = [
    "wgp_gym",
    "wgp_agents",
    "wgp_agents.benchmark",
    "wgp_agents.sb3.training",  # plays and writes with the harness, as verify does
    "wgp_agents.sb3.comparison",
    "wgp_agents.verify",
    "wgp_agents.cli",
    "scripts",
]
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
ONLY_WHEN_CALLED = {"matplotlib", "torch", "stable_baselines3", "sb3_contrib"}


def modules() -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of every module of the tree but the tests."""
    for top in (ROOT / "wgp_gym", ROOT / "agents" / "wgp_agents", ROOT / "scripts"):
        for path in sorted(top.rglob("*.py")):
            parts = path.relative_to(top.parent).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__"), path


MODULES = dict(modules())
RL_ADAPTERS = {  # modules that may import torch when they are imported themselves
    name for name in MODULES if name.startswith("wgp_agents.sb3")
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


def layer(name: str) -> int | None:
    """Return the layer that a module belongs to; None for another distribution's."""
    found = [i for i, own in enumerate(LAYERS) if f"{name}.".startswith(f"{own}.")]
    return max(found, default=None)


def test_the_tree_is_found() -> None:
    assert {"wgp_gym", "wgp_gym.envs.dynamics", "wgp_agents.gp.memory"} <= set(MODULES)
    assert layer("wgp_agents.benchmark.rollout") == 2
    assert layer("wgp_agents.clinic") == layer("wgp_agents.gp.memory") == 1
    assert (layer("wgp_gymnastics"), layer("numpy.random")) == (None, None)
    assert "wgp_gym.kernels.Kernel" in set(imports("wgp_gym.rkhs", at_import_time=True))


@pytest.mark.parametrize("name", MODULES)
def test_arrows_point_down(name: str) -> None:
    own = layer(name)
    assert own is not None
    for target in imports(name, at_import_time=False):
        assert not f"{target}.".startswith(("tests.", "conftest.")), target
        other = layer(target)
        if other is not None and target in MODULES:
            assert other <= own, f"{name} imports {target}"
            assert not (LAYERS[own] == "scripts" == LAYERS[other]), f"{name} imports {target}"


@pytest.mark.parametrize("name", MODULES)
def test_third_parties(name: str) -> None:
    own = LAYERS[layer(name) or 0]
    if own in THIRD_PARTIES:
        tops = {target.split(".")[0] for target in imports(name, at_import_time=False)}
        foreign = tops - set(sys.stdlib_module_names) - {"wgp_gym", "wgp_agents"}
        assert foreign <= THIRD_PARTIES[own], name
    at_once = {target.split(".")[0] for target in imports(name, at_import_time=True)}
    if name not in RL_ADAPTERS and own != "scripts":
        assert not at_once & ONLY_WHEN_CALLED, name


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
        "    env.reset(seed=0); env.step(0)\n"
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
