"""All pictures of an experiment as files, for papers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from wgp_agents.benchmark.figures.curves import regret_around_changes, regret_curves
from wgp_agents.benchmark.figures.grid import is_number, values
from wgp_agents.benchmark.figures.scaling import growth
from wgp_agents.benchmark.figures.spread import final_regret, performance_profile
from wgp_agents.benchmark.figures.tuning import sensitivity
from wgp_agents.benchmark.folder import slug
from wgp_agents.benchmark.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ENDINGS", "write_figures"]

ENDINGS = ("pdf", "svg")


def write_figures(results: Results, folder: Path) -> None:
    """Write every picture that the experiment has something for, as PDF and as SVG.

    Args:
        results: The results.
        folder: Where the files go; it is made if need be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, axes in drawn(results):
        figure = axes.get_figure(root=True)
        assert figure is not None
        for ending in ENDINGS:
            figure.savefig(folder / f"{slug(name)}.{ending}", bbox_inches="tight")


def drawn(results: Results) -> Iterator[tuple[str, Axes]]:
    """Yield the name of each picture and its axes."""
    for task in results.tasks:
        yield f"regret-{task}", regret_curves(results, task)
        yield f"per-step-{task}", regret_around_changes(results, task)
        yield f"final-{task}", final_regret(results, task)
    yield "profile", performance_profile(results)
    tasks = [results.task(name) for name in results.tasks]
    for entry in dict.fromkeys(task.seed_name for task in tasks):
        of_entry = [task for task in tasks if task.seed_name == entry]
        varied = list(dict.fromkeys(key for task in of_entry for key in task.varied))
        numbers = [value for key in varied for value in values(of_entry, key) if is_number(value)]
        if len(varied) == 1 and len([number for number in numbers if number > 0]) > 1:
            yield f"growth-{entry}-{varied[0]}", growth(results, varied[0], entry=entry)
    agents = results.experiment.agents
    for name in dict.fromkeys(agent.name for agent in agents):
        grids = {tuple(agent.varied) for agent in agents if agent.name == name and agent.varied}
        for task, grid in itertools.product(results.tasks, sorted(grids)):
            if len(grid) <= 2:
                axes = sensitivity(results, task, name, grid)
                yield f"sensitivity-{name}-{'-'.join(grid)}-{task}", axes
