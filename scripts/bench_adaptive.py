"""What Adaptive WGP-UCB earns, costs and believes: the table and pictures of docs/adaptive.md.

Usage: python scripts/bench_adaptive.py table [DIR ...] | zero DIR | memory | long
           [--runs N] [--out FILE]

table: from the results of `wgp-gym run benchmarks/adaptive.toml` in DIR, or of the files
adaptive-held-out*.toml in several: the regret of every agent in every task, of the best fixed
discount and the best constant width in hindsight, with standard errors; what the adaptive agent has
over these; and the picture FILE, if one is named (docs/adaptive.png). In the table "=" marks an
agent that is not clearly above the adaptive one (paired, 95 % for all of a task together), and "<"
one that is clearly below.

zero: from the same results, and from the same runs of all fixed discounts with rewards counted from
the first one, as the adaptive agent counts them: what it is worth to know that functions average
to zero. Some twenty minutes on one core.

memory: the memory that it chose around the changes of the abrupt task: docs/adaptive-memory.png.

long: T = 100,000 with 50 changes: seconds per step by fifths of the run, and how many steps it
takes after each change until the regret per step is below a tenth of what a lack of adaptation
costs: that of the first ten steps after the change.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import VectorRewardWrapper
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import gmean
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import wgp_gym  # noqa: F401 (registers the environments)
from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_agents.benchmark.experiment import Unit
from wgp_agents.benchmark.layout import seeds_of
from wgp_agents.benchmark.play import prepare
from wgp_agents.benchmark.results import Results, load_results
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.benchmark.statistics import (
    adaptation_times,
    estimate,
    mean_interval,
    paired_comparisons,
)
from wgp_gym.types import Array

ABRUPT = "WGPBandit-Abrupt-v0"
ADAPTIVE = "Adaptive WGP-UCB"
FIXED, CONSTANT = "fixed ", "IGP-UCB, width "  # how the labels of the two grids begin
MEDIAN = "its median"
BEST_FIXED = "best fixed discount"
BEST_BOTH = "best fixed discount and width"
BEST_CONSTANT = "best IGP-UCB"
COUNTED = "best fixed discount, counted from the first"
COUNTED_BOTH = "best discount and width, counted so"
# The widths nearest to the functions' own scale, by what the names of tasks begin with.
ONE_STD = dict.fromkeys(("stock", "parking", "Markov", "linear"), "width 1.0")
ONE_STD |= dict.fromkeys(("arms", "one arm"), "width 0.3") | {"clicks": "width 0.03"}
ONE_STD_ELSE = "width 3.0"
STILL = "stationary"  # tasks in which nothing drifts
LEARNERS, SEED = 100, 7_070_707
COLOURS = (
    *("#D55E00", "#0072B2", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#882255", "#332288"),
    *("#117733", "#999933", "#AA4499", "#44AA99", "#777777", "#BBBBBB", "#000000"),
    *("#6699CC", "#661100", "#DDCC77", "#AA4466"),
)
MARKERS = "*osD^v<>PXphdx|+1234"
HORIZON, CHANGES, WINDOW = 100_000, 50, 10


class FromFirst(VectorRewardWrapper[Any, Any, Any]):
    """Pays each learner's rewards less its first one."""

    def reset(self, **how: Any) -> Any:
        """Begin anew."""
        self._first: Array | None = None
        return super().reset(**how)

    def rewards(self, reward: Any) -> Any:
        """Return what is paid, `(B,)`."""
        if self._first is None:
            self._first = reward.copy()
        return reward - self._first


def own_width(task: str) -> str:
    """Return how the labels of the fixed discounts of a task's own width end."""
    found = [width for start, width in ONE_STD.items() if task.startswith(start)]
    return found[0] if found else ONE_STD_ELSE


def chosen(results: Results, task: str) -> dict[str, str]:
    """Return the labels of the grids' best agents in a task, by the names that they go under."""
    means = {label: results.final_regret(task, label).mean() for label in results.agents}
    grids = {
        BEST_FIXED: (FIXED, own_width(task)),
        BEST_BOTH: (FIXED, ""),
        BEST_CONSTANT: (CONSTANT, ""),
    }
    found = {}
    for name, (start, end) in grids.items():
        labels = [label for label in means if label.startswith(start) and label.endswith(end)]
        found[name] = min(labels, key=means.__getitem__)
    return found


def hindsight(results: Results, task: str) -> dict[str, Array]:
    """Return the final regrets `(runs,)` by agent, the grids' best under names of their own."""
    kept = {k: k for k in results.agents if not k.startswith((FIXED, CONSTANT))}
    labels = kept | chosen(results, task)
    return {name: results.final_regret(task, label) for name, label in labels.items()}


def print_table(folders: list[Path], out: Path | None) -> None:
    """Print the table in Markdown, a column for each task, and draw the picture if one is named."""
    played = [(results, task) for results in map(load_results, folders) for task in results.tasks]
    regrets = {task: hindsight(results, task) for results, task in played}
    columns = {task: column(found) for task, found in regrets.items()}
    print("| |", " | ".join(map(short, regrets)), "|")
    print("|---|" + "---:|" * len(regrets))
    for agent in rows_of(columns):
        print("|", agent, "|", " | ".join(cells.get(agent, "") for cells in columns.values()), "|")
    brief(regrets, columns)
    verdicts(regrets, columns, {task: chosen(results, task)[BEST_BOTH] for results, task in played})
    for name in (BEST_FIXED, BEST_BOTH, BEST_CONSTANT):
        over = {task: ratio(found, name) for task, found in regrets.items()}
        print(f"\nover {name}:", ", ".join(f"{short(t)} {x:.2f}" for t, x in over.items()))
        moving = [x for task, x in over.items() if not task.startswith(STILL)]
        print(
            f"geometric mean {gmean([*over.values()]):.2f}, of drifting tasks {gmean(moving):.2f}"
        )
    if out is not None:
        draw(regrets, out)


def rows_of(columns: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Return the agents of all tasks, in the order of the first, those in hindsight last."""
    agents = dict.fromkeys(agent for cells in columns.values() for agent in cells)
    last = [name for name in (BEST_FIXED, BEST_BOTH, BEST_CONSTANT) if name in agents]
    return [agent for agent in agents if agent not in last] + last


def ratio(regrets: dict[str, Array], name: str) -> float:
    """Return the adaptive agent's mean regret in a task over that of another agent."""
    return float(np.mean(regrets[ADAPTIVE]) / np.mean(regrets[name]))


def verdicts(
    regrets: dict[str, dict[str, Array]],
    columns: dict[str, dict[str, str]],
    winners: dict[str, str],
) -> None:
    """Print a row for each task: what the adaptive agent has over the best, and who beats it."""
    print(f"\n| task | mean | median | worst / median | over {BEST_BOTH} | clearly better |")
    print("|---|---:|---:|---:|---|---|")
    for task, found in regrets.items():
        print("|", short(task), "|", verdict(found, columns[task], winners[task]), "|")


def verdict(regrets: dict[str, Array], cells: dict[str, str], winner: str) -> str:
    """Return the cells of a task's row in the table of `verdicts`."""
    own = regrets[ADAPTIVE]
    median = np.median(own)
    rivals = [k for k in regrets if k not in (BEST_FIXED, BEST_BOTH, BEST_CONSTANT)]
    better = [f"{k} {cells[k]}" for k in rivals if cells[k].endswith("<")]
    shown = (
        mean_and_error(own),
        f"{median:.0f}",
        f"{own.max() / median:.1f}",
        f"{ratio(regrets, BEST_BOTH):.2f} ({winner})",
        ", ".join(better) or "none",
    )
    return " | ".join(shown)


def brief(regrets: dict[str, dict[str, Array]], columns: dict[str, dict[str, str]]) -> None:
    """Print a row for each task: the adaptive agent, those in hindsight, and the best rival."""
    shown = (ADAPTIVE, BEST_FIXED, BEST_CONSTANT, "WGP-UCB")
    print("\n| task |", " | ".join(shown), "| best rival |")
    print("|---|" + "---:|" * len(shown) + "---|")
    for task, found in regrets.items():
        cells = columns[task]
        means = {k: v.mean() for k, v in found.items() if k not in (*shown, BEST_BOTH, "random")}
        best = min(means, key=means.__getitem__)
        numbers = " | ".join(cells[agent] for agent in shown)
        print("|", short(task), "|", numbers, "|", best, cells[best], "|")


def short(task: str) -> str:
    """Return a task's name as the table has it."""
    return task.replace("horizon=", "T ").replace("noise_std=", "noise ")


def column(regrets: dict[str, Array]) -> dict[str, str]:
    """Return the means of a task with their standard errors, by agent.

    They are marked where they are not clearly above ADAPTIVE's, which has a cell of its own for
    the median. The intervals of all agents of a task hold together with 95 %.
    """
    pairs = [(ADAPTIVE, other) for other in regrets if other != ADAPTIVE]
    better = {d.second: d.better for d in paired_comparisons(regrets, pairs=pairs)}
    marks = {ADAPTIVE: "", None: " ="}
    first = {
        ADAPTIVE: mean_and_error(regrets[ADAPTIVE], bold=True),
        MEDIAN: f"{np.median(regrets[ADAPTIVE]):.0f}",
    }
    return first | {
        agent: mean_and_error(values) + marks.get(better[agent], " <")
        for agent, values in regrets.items()
        if agent != ADAPTIVE
    }


def mean_and_error(regrets: Array, bold: bool = False) -> str:
    """Return the mean of `(runs,)` regrets and, in brackets, its standard error to two digits."""
    found = estimate(regrets)
    mean, error = f"{found.mean:.0f}", found.standard_error
    digits = f"{error:.2g}" if error < 99.5 else f"{error:.0f}"  # not 1.2e+02
    return f"**{mean}** ({digits})" if bold else f"{mean} ({digits})"


def draw(regrets: dict[str, dict[str, Array]], out: Path) -> None:
    """Draw each agent's mean regret in each task, over that of the best fixed discount."""
    figure = Figure(figsize=(10, 0.5 * len(regrets) + 1.6), layout="constrained")
    ax = figure.add_subplot()
    agents = [k for k in rows_of(regrets) if k not in (BEST_FIXED, BEST_CONSTANT)]
    colours = dict(zip(agents, COLOURS, strict=False)) | {ADAPTIVE: "#D55E00"}
    named: set[str] = set()
    for place, found in enumerate(regrets.values()):
        unit = found[BEST_FIXED].mean()
        ratios = {agent: found[agent].mean() / unit for agent in agents if agent in found}
        ends = [min(ratios.values()), max(ratios.values())]
        ax.plot(ends, [place, place], color="#DDDDDD", zorder=0)
        for agent, x in ratios.items():
            first = agent == ADAPTIVE
            marker, size = ("*", 15) if first else (MARKERS[agents.index(agent)], 6)
            ax.plot(
                x,
                place,
                marker,
                color=colours[agent],
                markersize=size,
                label=agent if agent not in named else None,
                zorder=3 if first else 2,
            )
            named.add(agent)
    ax.axvline(1.0, color="#666666", linewidth=1)
    ax.set_xscale("log")
    ax.set_yticks(range(len(regrets)), [short(task) for task in regrets])
    ax.invert_yaxis()
    ax.set_xlabel(f"mean regret, over that of the {BEST_FIXED} in hindsight")
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(out, dpi=90)


def counted_from_first(unit: Unit) -> NDArray[Any]:
    """Return the final regrets `(runs,)` of a unit played with rewards counted from the first."""
    env, agent = prepare(unit, len(unit.runs))
    return rollout(agent, FromFirst(env), *seeds_of(unit))["cumulative_regret"][:, -1]


def zero(folder: Path) -> None:
    """Print what the fixed discounts earn where nobody tells them the zero of the rewards."""
    results = load_results(folder)
    experiment = results.experiment
    fixed = [agent for agent in experiment.agents if agent.label.startswith(FIXED)]
    shown = (ADAPTIVE, COUNTED, COUNTED_BOTH, BEST_FIXED, BEST_BOTH)
    print("| |", " | ".join(shown), "|\n|---|" + "---:|" * len(shown))
    for task in experiment.tasks:
        counted = {}
        for spec in tqdm(fixed, desc=task.name, leave=False):
            parts = [counted_from_first(unit) for unit in experiment.cell(task, spec)]
            counted[spec.label] = np.concatenate(parts)
        told = hindsight(results, task.name)
        own = {k: v for k, v in counted.items() if k.endswith(own_width(task.name))}
        found = {k: told[k] for k in (ADAPTIVE, BEST_FIXED, BEST_BOTH)}
        found[COUNTED] = min(own.values(), key=np.mean)
        found[COUNTED_BOTH] = min(counted.values(), key=np.mean)
        cells = column(found)
        print("|", short(task.name), "|", " | ".join(cells[k] for k in shown), "|", flush=True)


def memory(runs: int, out: Path) -> None:
    """Draw the memory and the drift that it chose, over the abrupt task."""
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    for panels, noise in zip(figure.subplots(2, 2, sharex=True).T, (0.1, 1.0), strict=True):
        env = make_vector(ABRUPT, runs, noise_std=noise)
        memories, regrets, changed = played(env, AdaptiveWGPUCB(env), SEED)
        steps = np.arange(1, len(memories) + 1)
        for ax, values in zip(panels, (memories, regrets), strict=True):
            low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=1)
            ax.fill_between(steps, low, high, color="#D55E00", alpha=0.25, linewidth=0)
            ax.plot(steps, middle, color="#D55E00")
            for change in steps[changed]:
                ax.axvline(change, color="#666666", linewidth=1, linestyle="--")
            ax.spines[["top", "right"]].set_visible(False)
        panels[0].set(yscale="log", title=f"noise {noise:g}", ylabel="memory, steps")
        panels[1].set(xlabel="step", ylabel="regret of the step", ylim=(0, None))
    figure.savefig(out, dpi=90)


def played(env: Any, agent: AdaptiveWGPUCB, seed: int) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return the memory believed in and the regret at each step, `(T, B)`, and where f changed."""
    observation, _ = env.reset(seed=seed)
    agent.reset(seed)
    memories, regrets, changed = [], [], []
    for _ in range(agent.problem.known_horizon("a benchmark")):
        actions = agent.act(observation)
        observation, rewards, _, _, info = env.step(actions)
        agent.observe(actions, rewards)
        memories.append(agent.belief().memory)
        regrets.append(info["regret"])
        changed.append(info["changed"][0])
    return np.array(memories), np.array(regrets), np.array(changed)


def long(runs: int) -> None:
    """Play a long run with many changes, and print what it costs and how soon it adapts."""
    changes = np.linspace(0, HORIZON, CHANGES + 2)[1:-1].astype(int)
    env = make_vector(ABRUPT, runs, horizon=HORIZON, change_points=changes.tolist())
    agent = AdaptiveWGPUCB(env)
    observation, _ = env.reset(seed=SEED)
    agent.reset(SEED)
    regret, seconds = np.zeros((HORIZON, runs)), np.zeros(HORIZON)
    for t in range(HORIZON):
        start = time.perf_counter()
        actions = agent.act(observation)
        seconds[t] = time.perf_counter() - start
        observation, rewards, _, _, info = env.step(actions)
        start = time.perf_counter()
        agent.observe(actions, rewards)
        seconds[t] += time.perf_counter() - start
        regret[t] = info["regret"]
    fifths = [1e6 * np.median(part) for part in np.split(seconds, 5)]
    print("microseconds per step, median of each fifth:", ", ".join(f"{x:.0f}" for x in fifths))
    # A change point is the first step, counted from 1, that meets the new function.
    unadapted = np.array([regret[c - 1 : c - 1 + WINDOW].mean() for c in changes])
    times = adaptation_times(regret.T, changes, threshold=0.1 * unadapted, window=WINDOW)
    print("steps to adapt, median by change:", *np.median(times, axis=0).astype(int))
    print(
        f"over all changes and runs: median {np.median(times):.0f}, "
        f"90 % within {np.quantile(times, 0.9):.0f}, never {np.isinf(times).mean():.3f}"
    )
    value, low, high = mean_interval(regret.sum(axis=0))
    print(f"regret of the whole run {value:.0f} [{low:.0f}, {high:.0f}]")


def main() -> None:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("table", "zero", "memory", "long"))
    parser.add_argument("folders", type=Path, nargs="*", default=[Path("results/adaptive")])
    parser.add_argument("--runs", type=int)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with threadpool_limits(limits=1):
        if options.what == "table":
            print_table(options.folders, options.out)
        elif options.what == "zero":
            zero(options.folders[0])
        elif options.what == "memory":
            memory(options.runs or LEARNERS, options.out or Path("docs/adaptive-memory.png"))
        else:
            long(options.runs or 10)


if __name__ == "__main__":
    main()
