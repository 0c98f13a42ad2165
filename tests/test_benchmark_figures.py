"""What is drawn of an experiment's results, against numbers computed here."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from small_grid import GRID_TASK, RUNS, SMALL, played, played_grid

from wgp_agents.benchmark.figures import (
    final_regret,
    growth,
    performance_profile,
    plays,
    regret_around_changes,
    regret_curves,
    sensitivity,
)
from wgp_agents.benchmark.figures.styles import STYLES
from wgp_agents.benchmark.results import Results, load_results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Learners, random play and the oracle in a task with two changes and in a drifting one."""
    kwargs = {"horizon": 60, **SMALL}
    names = ("sw-gp-ucb", "wgp-ucb", "random", "oracle")
    ids = ("WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0")
    return played(
        tmp_path_factory.mktemp("results"),
        [{"id": one, "kwargs": kwargs} for one in ids],
        [{"name": name} for name in names],
    )


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return played_grid(tmp_path_factory.mktemp("grid"))


def line(ax: Axes, label: str) -> np.ndarray[Any, Any]:
    """Return the points of the line with a label, `(points, 2)`."""
    (found,) = [one for one in ax.lines if one.get_label() == label]
    return np.column_stack(found.get_data())


def vertices(drawn: Any) -> np.ndarray[Any, Any]:
    """Return the corners of a collection's polygons, `(points, 2)`."""
    return np.concatenate([path.vertices for path in drawn.get_paths()])


def legend(ax: Axes) -> list[str]:
    found = ax.get_legend()
    assert found is not None
    return [re.sub(r"\s", " ", text.get_text()) for text in found.get_texts()]


def test_curves_are_means_with_bands_and_lie_in_the_axes(results: Results) -> None:
    ax = regret_curves(results, "abrupt")
    tops = []
    for label in ("WGP-UCB", "SW-GP-UCB"):
        cumulative = np.cumsum(results.regret("abrupt", label), axis=1)
        np.testing.assert_allclose(line(ax, label)[:, 1], cumulative.mean(axis=0))
        np.testing.assert_array_equal(line(ax, label)[:, 0], np.arange(1, 61))
        tops.append((cumulative.mean(0) + 1.96 * cumulative.std(0, ddof=1) / RUNS**0.5).max())
    highest = max(vertices(band)[:, 1].max() for band in ax.collections)
    random = np.cumsum(results.regret("abrupt", "random"), axis=1)
    bound = random.mean(0) + 1.96 * random.std(0, ddof=1) / RUNS**0.5
    assert highest == pytest.approx(bound.max())
    assert ax.get_ylim() == pytest.approx((0, 1.1 * max(tops)))
    assert random.mean(0)[-1] > ax.get_ylim()[1]
    assert [text.get_text() for text in ax.texts] == [
        f"random ends at {random.mean(0)[-1]:,.{0 if random.mean(0)[-1] >= 100 else 2}f}"
    ]


def test_the_legend_goes_from_low_to_high_and_the_oracle_is_dotted(results: Results) -> None:
    ax = regret_curves(results, "slow")
    order = sorted(results.agents, key=lambda label: results.final_regret("slow", label).mean())
    assert legend(ax) == order
    assert order[0] == "oracle"
    (oracle,) = [one for one in ax.lines if one.get_label() == "oracle"]
    assert (oracle.get_color(), oracle.get_linestyle()) == ("#666666", ":")
    assert not np.any(oracle.get_ydata())
    assert len(ax.collections) == 3  # the oracle has no band


def test_random_play_alone_sets_the_scale_itself(results: Results) -> None:
    ax = regret_curves(results, "abrupt", agents=["random"])
    assert not ax.texts
    assert line(ax, "random")[-1, 1] < ax.get_ylim()[1]
    assert regret_curves(results, "abrupt", agents=["oracle"]).get_ylim() == (0, 1)


@pytest.mark.slow
def test_a_slope_of_zero_has_no_sign(tmp_path: Path) -> None:
    kwargs = {"horizon": 12, "noise_std": [0.1, 1.0], **SMALL}
    noisy = played(
        tmp_path, [{"id": "WGPBandit-Abrupt-v0", "kwargs": kwargs}], [{"name": "random"}]
    )
    assert legend(growth(noisy, "noise_std")) == ["random: 0.00 [0.00, 0.00]"]


@pytest.mark.slow
def test_a_single_run_has_no_band(tmp_path: Path) -> None:
    kwargs = {"horizon": 12, **SMALL}
    one = played(
        tmp_path,
        [{"id": "WGPBandit-Abrupt-v0", "kwargs": kwargs | {"horizon": [12, 24]}}],
        [{"name": "wgp-ucb", "parameters": {"discount": [0.9, 0.99, "default"]}}],
        runs=1,
    )
    task = "abrupt horizon=12"
    ax = regret_curves(one, task)
    assert len(ax.lines) == 3
    assert not ax.collections
    assert sensitivity(one, task, "wgp-ucb", "discount").lines
    assert legend(growth(one, "horizon", agents=["WGP-UCB discount=0.9"]))[0].count("[") == 0
    for figure in (ax, final_regret(one, task), performance_profile(one, bands=True)):
        figure.figure.draw_without_rendering()  # type: ignore[union-attr]


@pytest.mark.parametrize("window", [1, 7])
def test_regret_per_step_is_a_trailing_mean(results: Results, window: int) -> None:
    ax = regret_around_changes(results, "abrupt", window=window)
    mean = results.regret("abrupt", "WGP-UCB").mean(axis=0)
    expected = [mean[max(0, t - window + 1) : t + 1].mean() for t in range(60)]
    np.testing.assert_allclose(line(ax, "WGP-UCB")[:, 1], expected)
    dashed = [float(one.get_xdata()[0]) for one in ax.lines if len(one.get_xdata()) == 2]  # type: ignore[arg-type, index]
    assert dashed == results.changes("abrupt") == [12, 24]
    assert legend(ax)[-1] == "the function changes"
    drifting = regret_around_changes(results, "slow", window=window)
    assert len(drifting.lines) == len(results.agents)


def test_final_regrets_are_sorted_boxes(results: Results) -> None:
    ax = final_regret(results, "abrupt")
    finals = {a: results.final_regret("abrupt", a) for a in results.agents if a != "oracle"}
    order = sorted(finals, key=lambda label: finals[label].mean())
    assert [label.get_text() for label in ax.get_yticklabels()] == order
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the lowest stands at the top
    for row, label in enumerate(order):
        assert ax.lines[row].get_xdata() == [finals[label].mean()]
        box: Any = ax.patches[row]
        ends = (box.get_x(), box.get_x() + box.get_width())
        assert ends == pytest.approx(np.quantile(finals[label], [0.25, 0.75]))
        points = np.asarray(ax.collections[2 * row].get_offsets())
        np.testing.assert_allclose(np.sort(points[:, 0]), np.sort(finals[label]))
        assert np.all(np.abs(points[:, 1] - row) < 0.5)
    spread = np.concatenate(list(finals.values()))
    assert (ax.get_xscale() == "log") == (spread.max() > 30 * spread.min())
    close = final_regret(results, "abrupt", agents=["random", "oracle"])  # 0 has no logarithm
    assert close.get_xscale() == "linear"
    assert [label.get_text() for label in close.get_yticklabels()] == ["oracle", "random"]


def test_final_regrets_far_apart_are_on_a_logarithmic_axis(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = {"WGP-UCB": 1.0, "SW-GP-UCB": 31.5, "random": 12.0}
    monkeypatch.setattr(results, "final_regret", lambda task, label: far[label] + np.zeros(RUNS))
    assert final_regret(results, "abrupt").get_xscale() == "log"
    far["SW-GP-UCB"] = 29.5
    assert final_regret(results, "abrupt").get_xscale() == "linear"


@pytest.mark.parametrize("bands", [False, True])
def test_profiles_are_shares_of_runs_averaged_over_tasks(results: Results, bands: bool) -> None:
    ax = performance_profile(results, bands=bands)
    assert {one.get_label() for one in ax.lines} == {"WGP-UCB", "SW-GP-UCB", "random"}
    taus, shares = line(ax, "WGP-UCB").T
    relative = [
        results.final_regret(task, "WGP-UCB") / results.final_regret(task, "random").mean()
        for task in results.tasks
    ]
    for tau, share in list(zip(taus, shares, strict=True))[::50]:
        expected = np.mean([np.mean(one <= tau) for one in relative])
        assert share == pytest.approx(expected)
    assert shares[-1] == 1
    assert len(ax.collections) == (3 if bands else 0)
    if bands:
        k = int(np.argmin(np.abs(shares - 0.5)))
        p = np.array([np.mean(one <= taus[k]) for one in relative])
        error = np.sqrt(np.sum(p * (1 - p) / RUNS)) / 2
        order = [one.get_label() for one in ax.lines]
        edge = vertices(ax.collections[order.index("WGP-UCB")])
        there = edge[np.isclose(edge[:, 0], taus[k]), 1]
        assert there.max() == pytest.approx(min(shares[k] + 1.96 * error, 1))
        assert there.min() == pytest.approx(max(shares[k] - 1.96 * error, 0))


def test_profiles_without_random_play_compare_with_all_learners(grid: Results) -> None:
    without = load_results(grid.folder.path)
    without.random = lambda: None  # type: ignore[method-assign]
    ax = performance_profile(without, agents=["random"])
    assert "the learners' mean" in ax.get_xlabel()
    learners = [label for label in grid.agents if label != "oracle"]
    taus, shares = line(ax, "random").T
    k = int(np.argmin(np.abs(shares - 0.5)))
    expected = []
    for task in grid.tasks:
        usual = np.concatenate([grid.final_regret(task, label) for label in learners]).mean()
        expected.append(np.mean(grid.final_regret(task, "random") <= taus[k] * usual))
    assert shares[k] == pytest.approx(np.mean(expected))


def test_plays_stand_at_their_places_and_the_optimum_is_a_line(results: Results) -> None:
    ax = plays(results, "abrupt", "WGP-UCB", run=3)
    steps = {name: results.steps("abrupt", "WGP-UCB", name)[3] for name in ("action",)}
    x = np.linspace(0, 1, 15)
    points = np.asarray(ax.collections[0].get_offsets())
    np.testing.assert_allclose(points, np.column_stack([np.arange(1, 61), x[steps["action"]]]))
    best = results.steps("abrupt", "WGP-UCB", "optimal_action")[3]
    np.testing.assert_allclose(line(ax, "the optimum")[:, 1], x[best])
    assert legend(ax) == ["the function changes", "the optimum", "played by WGP-UCB"]


@pytest.mark.slow
def test_plays_in_a_box_and_of_arms_with_names(tmp_path: Path) -> None:
    abrupt = {"id": "WGPBandit-Abrupt-v0"}
    box = {"horizon": 8, "continuous": True, "change_points": [[]], **SMALL}
    flat = {"dim": 2, "points_per_dim": 3, "horizon": 8}
    tasks = [
        abrupt | {"kwargs": box, "name": "box"},
        abrupt | {"kwargs": flat, "name": "flat"},
        abrupt | {"kwargs": flat | {"continuous": True}, "name": "square"},
        {"id": "WGPBandit-Parking-v0"},
    ]
    found = played(tmp_path, tasks, [{"name": "random"}], runs=2)
    ax = plays(found, "box", "random")
    action = found.steps("box", "random", "action")
    np.testing.assert_allclose(np.asarray(ax.collections[0].get_offsets())[:, 1], action[0, :, 0])
    for task, ticks in (("flat", 0), ("parking", 16)):
        ax = plays(found, task, "random", run=1)
        action = found.steps(task, "random", "action")[1]
        np.testing.assert_array_equal(np.asarray(ax.collections[0].get_offsets())[:, 1], action)
        assert ax.get_ylabel() == "arm"
        names = [text.get_text() for text in ax.get_yticklabels()]
        assert not ticks or (len(names) == ticks and "NIA South" in names)
    with pytest.raises(ValueError, match=r"'task' parameter of plays .* single coordinate"):
        plays(found, "square", "random")


@pytest.mark.slow
def test_axes_that_are_given_are_used_and_their_figure_keeps_its_size(
    results: Results, grid: Results
) -> None:
    figure = Figure(figsize=(9, 9), layout="constrained")
    axes = list(figure.subplots(3, 3).flat)
    drawn = [
        regret_curves(results, "abrupt", ax=axes[0]),
        regret_around_changes(results, "abrupt", ax=axes[1]),
        final_regret(results, "abrupt", ax=axes[2]),
        performance_profile(results, ax=axes[3]),
        plays(results, "abrupt", "WGP-UCB", ax=axes[4]),
        sensitivity(grid, GRID_TASK, "sw-gp-ucb", "variation_budget", ax=axes[5]),
        sensitivity(grid, GRID_TASK, "wgp-ucb", ["discount", "regularization"], ax=axes[6]),
        growth(grid, "horizon", ax=axes[7]),
    ]
    assert drawn == axes[:8]
    assert tuple(figure.get_size_inches()) == (9, 9)


@pytest.mark.slow
def test_figures_of_their_own_grow_with_the_legend_and_need_no_pyplot(
    grid: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # an import of it fails
    few = regret_curves(grid, GRID_TASK, agents=["random"])
    many = regret_curves(grid, GRID_TASK)
    heights = [ax.figure.get_size_inches()[1] for ax in (few, many)]  # type: ignore[union-attr]
    assert heights[1] > heights[0] + 0.5
    for ax in (few, many):
        figure: Any = ax.figure
        figure.draw_without_rendering()
        found = ax.get_legend()
        assert found is not None
        box, inside = found.get_window_extent(), figure.bbox
        assert box.y1 < ax.get_window_extent().y0  # below the axes
        assert box.x0 >= inside.x0
        assert box.x1 <= inside.x1
        assert box.y0 >= inside.y0


def test_only_the_agents_asked_for_are_drawn_and_look_as_among_all(results: Results) -> None:
    ax = regret_curves(results, "abrupt", agents=["WGP-UCB"])
    assert [one.get_label() for one in ax.lines] == ["WGP-UCB"]
    assert ax.lines[0].get_color() == STYLES["wgp-ucb"].colour


def test_bad_requests_are_told(results: Results, grid: Results) -> None:
    with pytest.raises(ValueError, match="'agents' parameter of regret_curves must be a list"):
        regret_curves(results, "abrupt", agents=[])
    with pytest.raises(ValueError, match="'agents' parameter of final_regret must be a list"):
        final_regret(results, "abrupt", agents="WGP-UCB")
    with pytest.raises(ValueError, match=r"'agent' parameter .*did you mean 'WGP-UCB'"):
        performance_profile(results, agents=["WGP-UCP"])
    with pytest.raises(ValueError, match="'bands' parameter of performance_profile"):
        performance_profile(results, bands=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'window' parameter of regret_around_changes"):
        regret_around_changes(results, "abrupt", window=0)
    for draw in (regret_curves, regret_around_changes, final_regret):
        with pytest.raises(ValueError, match="'task' parameter of the results must be one of"):
            draw(results, "nowhere")
    with pytest.raises(ValueError, match=r"'run' parameter of plays .* 0 to 4. Got 5"):
        plays(results, "abrupt", "WGP-UCB", run=RUNS)
    with pytest.raises(ValueError, match=r"'agents' parameter of growth .* references alone"):
        growth(grid, "horizon", agents=["oracle"])
