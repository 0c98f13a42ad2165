"""The pages of the API, from what is public: `__all__` of modules, and the table of agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wgp_agents import live
from wgp_agents.registry import AGENTS, AgentEntry, agent_class
from wgp_gym.registration import ENVIRONMENTS

__all__ = ["pages"]

TASKS = dict.fromkeys(entry.task.partition(":")[0] for entry in ENVIRONMENTS)
"""The modules of the tasks that ids are made of, in the order of the table."""

MODULES = {
    "environments": (
        "Environments",
        "What `import wgp_gym` brings, what environments and tasks are made of, and wrappers.",
        (
            "wgp_gym.registration",
            "wgp_gym.seed_ranges",
            "wgp_gym.problem",
            "wgp_gym.envs.single",
            "wgp_gym.envs.vector",
            "wgp_gym.envs.task",
            "wgp_gym.envs.random_task",
            *TASKS,
            "wgp_gym.wrappers.history",
            "wgp_gym.wrappers.one_hot",
            "wgp_gym.wrappers.changes",
            "wgp_gym.wrappers.regret",
            "wgp_gym.wrappers.episodes",
        ),
    ),
    "functions": (
        "Kernels and functions",
        "Kernels and their features, functions of an RKHS, and how they move with t.",
        (
            "wgp_gym.kernels",
            "wgp_gym.kernel_algebra",
            "wgp_gym.features",
            "wgp_gym.fourier",
            "wgp_gym.rkhs",
            "wgp_gym.schedules",
        ),
    ),
    "agents": (
        "Agents, common",
        "The contract that every agent keeps, how agents are made, compared and checked.",
        (
            "wgp_agents.base",
            "wgp_agents.registry",
            "wgp_agents.evaluation",
            "wgp_agents.core.checkpoint",
            "wgp_agents.core.observation",
            "wgp_agents.testing",
        ),
    ),
    "parts": (
        "Parts of agents",
        "What Gaussian-process agents are composed of, each replaceable by a part of your own.",
        (
            "wgp_agents.gp.agent",
            "wgp_agents.gp.action_sets",
            "wgp_agents.gp.surrogates.base",
            "wgp_agents.gp.surrogates.weighted",
            "wgp_agents.gp.surrogates.drift",
            "wgp_agents.gp.acquisition",
            "wgp_agents.gp.confidence",
            "wgp_agents.gp.width",
            "wgp_agents.gp.restart_rule",
            "wgp_agents.gp.tuning",
            "wgp_agents.arms.index",
            "wgp_agents.arms.statistics",
            "wgp_agents.detectors.detector",
        ),
    ),
    "benchmark": (
        "Benchmark",
        "Rollouts, experiments, results, statistics and pictures.",
        (
            "wgp_agents.benchmark.rollout",
            "wgp_agents.benchmark.experiment",
            "wgp_agents.benchmark.declaration",
            "wgp_agents.benchmark.run",
            "wgp_agents.benchmark.results",
            "wgp_agents.benchmark.statistics",
            "wgp_agents.benchmark.report.summarise",
            "wgp_agents.benchmark.report.summary",
            "wgp_agents.benchmark.figures",
            "wgp_agents.benchmark.film.film",
        ),
    ),
    "theory": (
        "Theory",
        "The statements of the paper as functions ([what was checked](../theory.md)).",
        (
            "wgp_agents.theory.regression",
            "wgp_agents.theory.surrogate",
            "wgp_agents.theory.regret",
            "wgp_agents.theory.decay",
            "wgp_agents.gp.gain",
            "wgp_agents.gp.spectrum",
        ),
    ),
}
"""For each page its title, what it holds, and the modules whose public names it has."""

FAMILIES = {
    "kernelized": "Gaussian processes and their memories.",
    "adaptive": "Gaussian processes that need no variation budget.",
    "linear": "Rewards linear in the features, or logistic.",
    "arms": "K arms that have nothing to do with each other.",
    "learned": "What was trained before, or trains a network while it plays.",
    "references": "What reads the truth: reference lines, no competitors.",
}
"""For each family of `wgp_agents.algorithms` what it is."""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page of the API."""
    told = []
    for name, (title, text, modules) in MODULES.items():
        told.append((name, title, text))
        yield _page(name, title, text, modules, full_path=True)
    for family, text in FAMILIES.items():
        title = f"Agents, {'K arms' if family == 'arms' else family}"
        told.append((family, title, text))
        entries = _entries(family)
        names = "| name | class | what it is |\n|---|---|---|\n" + "".join(map(_row, entries))
        yield _page(family, title, f"{text}\n\n{names}", dict.fromkeys(map(_place, entries)))
    text = "Ask and tell on a running system ([the page about it](../live.md))."
    told.append(("live", "Live", text))
    homes = [f"{live.__name__}.{home}.{name}" for name, home in live.HOMES.items()]
    yield _page("live", "Live", text, [*homes, f"{live.__name__}.report.Report"])
    head = "# API\n\nFrom the docstrings. What is not here is not public, and may change.\n\n"
    lines = (f"- [{title}]({name}.md): {text}\n" for name, title, text in told)
    yield "api/index.md", head + "".join(lines)


def _entries(family: str) -> list[AgentEntry]:
    """Return the agents of a family, in the table's order."""
    home = f"wgp_agents.algorithms.{family}."
    return [entry for entry in AGENTS.values() if entry.entry_point.startswith(home)]


def _place(entry: AgentEntry) -> str:
    """Return where an agent's class is written."""
    made = agent_class(entry.name)
    return f"{made.__module__}.{made.__qualname__}"


def _row(entry: AgentEntry) -> str:
    """Return the row of an agent in its page's table, with a link to its class."""
    place = _place(entry)
    return f"| `{entry.name}` | [{place.rpartition('.')[2]}][{place}] | {entry.summary} |\n"


def _page(
    name: str, title: str, text: str, objects: Iterable[str], full_path: bool = False
) -> tuple[str, str]:
    """Return the path and the text of one page, which asks mkdocstrings for its objects."""
    options = f"    options: {{ show_root_full_path: {str(full_path).lower()} }}\n"
    asked = "\n".join(f"::: {one}\n{options}" for one in objects)
    return f"api/{name}.md", f"# {title}\n\n{text}\n\n{asked}"
