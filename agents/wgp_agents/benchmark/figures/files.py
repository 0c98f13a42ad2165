"""All pictures of an experiment as files, for papers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import wgp_agents.benchmark.figures.grid as grid
from wgp_agents.benchmark.experiment import AgentSpec
from wgp_agents.benchmark.figures.curves import regret_around_changes, regret_curves
from wgp_agents.benchmark.figures.scaling import by_size, growth
from wgp_agents.benchmark.figures.spread import final_regret, performance_profile
from wgp_agents.benchmark.figures.tuning import sensitivity
from wgp_agents.benchmark.results import Results, relative_regrets
from wgp_gym.drawing import import_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ENDINGS", "write_figures"]

# The files hold no date, so that the same results give the same bytes.
ENDINGS: dict[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
SALT = "wgp-gym"  # of the names inside an SVG, which else are random
LONGEST = 200  # bytes of a name; file systems take 255


def write_figures(results: Results, folder: Path) -> None:
    """Write every picture that the experiment has something for, as PDF and as SVG.

    An agent's grid has a picture where it is of one or two parameters; a run's `plays` have none.
    """
    import_matplotlib()
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    for name, axes in drawn(results):
        figure = axes.get_figure(root=True)
        assert figure is not None
        stem = free_name(name, taken)
        for ending, metadata in ENDINGS.items():
            with matplotlib.rc_context({"svg.hashsalt": SALT}):
                path = folder / f"{stem}.{ending}"
                figure.savefig(path, bbox_inches="tight", metadata=metadata)


def free_name(name: str, taken: set[str]) -> str:
    """Return the name of a file, with a number where it is taken; it is taken from then on.

    Letters' cases do not tell names apart, as on some file systems.
    """
    base = re.sub(r"[^\w.=+-]+", "_", name).encode()[:LONGEST].decode(errors="ignore")
    numbered = itertools.chain([base], (f"{base}-{k}" for k in itertools.count(2)))
    found = next(one for one in numbered if one.casefold() not in taken)
    taken.add(found.casefold())
    return found


def drawn(results: Results) -> Iterator[tuple[str, Axes]]:
    """Yield the name of each picture and its axes."""
    for task in results.tasks:
        yield f"regret-{task}", regret_curves(results, task)
        yield f"per-step-{task}", regret_around_changes(results, task)
        yield f"final-{task}", final_regret(results, task)
    if any(relative_regrets(results).values()):
        yield "profile", performance_profile(results)
    if not all(agent.reference for agent in results.experiment.agents):
        yield from growths(results)
    for name in dict.fromkeys(agent.name for agent in results.experiment.agents):
        yield from sensitivities(results, name)


def growths(results: Results) -> Iterator[tuple[str, Axes]]:
    """Yield a picture for each number that an entry's tasks differ in, and choice of the rest."""
    every = [results.task(name) for name in results.tasks]
    for entry in dict.fromkeys(task.seed_name for task in every):
        family = [task for task in every if task.seed_name == entry]
        for kwarg in grid.differing(family):
            for fixed in grid.others(family, [kwarg]):
                tasks = [task for task in family if grid.settings(task, fixed) == fixed]
                if len(by_size(tasks, kwarg)) > 1:
                    axes = growth(results, kwarg, fixed=fixed, entry=entry)
                    yield "-".join(["growth", entry, kwarg, *words(fixed)]), axes


def sensitivities(results: Results, name: str) -> Iterator[tuple[str, Axes]]:
    """Yield pictures of an agent's grids: one for each choice of what else tells them apart.

    Variants of different grids do not share a picture.
    """
    grids: dict[frozenset[str], list[AgentSpec]] = {}
    for agent in results.experiment.agents:
        if agent.name == name and len(agent.varied) in (1, 2):
            grids.setdefault(frozenset(agent.varied), []).append(agent)
    for members in grids.values():
        names, labels = list(members[0].varied), [agent.label for agent in members]
        for task, fixed in itertools.product(results.tasks, grid.others(members, names)):
            axes = sensitivity(results, task, name, names, fixed=fixed, agents=labels)
            yield "-".join(["sensitivity", name, *names, *words(fixed), task]), axes


def words(fixed: Mapping[str, grid.Key]) -> list[str]:
    """Return the values that are fixed, for the name of a file."""
    return [f"{key}={value}" for key, value in fixed.items()]
