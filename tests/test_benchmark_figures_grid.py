"""Pictures of grids, and all pictures as files, of whatever experiment may be declared."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from small_grid import GRID_TASK, RUNS, SMALL, played, played_grid

from wgp_agents.benchmark.figures import (
    files,
    final_regret,
    growth,
    performance_profile,
    regret_around_changes,
    regret_curves,
    sensitivity,
    write_figures,
)
from wgp_agents.benchmark.results import Results, load_results, relative_regrets
from wgp_agents.benchmark.statistics import loglog_slope, mean_interval, profile_shares

ABRUPT = "WGPBandit-Abrupt-v0"
DISCOUNTS = {"discount": [0.9, 0.99]}
THREE = {"width": ["standard", "tight"], "delta": [0.1, 0.2], **DISCOUNTS}


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return played_grid(tmp_path_factory.mktemp("grid"))


def legend(ax: Axes) -> list[str]:
    found = ax.get_legend()
    assert found is not None
    return [re.sub(r"\s", " ", text.get_text()) for text in found.get_texts()]


def test_one_parameter_is_a_line_with_intervals_and_the_default_a_level(grid: Results) -> None:
    ax = sensitivity(grid, GRID_TASK, "wgp-ucb", "discount", fixed={"regularization": 1.0})
    found = {
        value: mean_interval(
            grid.final_regret(GRID_TASK, f"WGP-UCB discount={value}, regularization=1.0")
        )
        for value in (0.7, 0.99, "default")
    }
    np.testing.assert_allclose(
        np.asarray(ax.lines[0].get_data(), float).T, [[v, found[v].value] for v in (0.7, 0.99)]
    )
    bars: Any = ax.containers[0].lines[2][0]  # type: ignore[attr-defined]
    for value, (low, high) in zip((0.7, 0.99), bars.get_segments(), strict=True):
        assert (low[1], high[1]) == pytest.approx((found[value].low, found[value].high))
    (level,) = [one for one in ax.lines if one.get_linestyle() == "--"]
    assert level.get_label() == legend(ax)[0] == "default, with its 95 % interval"
    assert level.get_ydata() == pytest.approx([found["default"].value] * 2)
    assert ax.get_xscale() == "linear"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.7", "0.99"]
    other = sensitivity(grid, GRID_TASK, "wgp-ucb", ["regularization"], fixed={"discount": 0.7})
    assert other.get_xscale() == "log"
    assert other.get_legend() is None


def test_words_stand_side_by_side(grid: Results) -> None:
    ax = sensitivity(grid, GRID_TASK, "sw-gp-ucb", "variation_budget")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["known", "unknown"]
    means = [
        grid.final_regret(GRID_TASK, f"SW-GP-UCB variation_budget={word}").mean()
        for word in ("known", "unknown")
    ]
    np.testing.assert_allclose(np.asarray(ax.lines[0].get_ydata(), float), means)
    assert ax.lines[0].get_linestyle() == "None"


def test_two_parameters_are_a_map_of_means(grid: Results) -> None:
    ax = sensitivity(grid, GRID_TASK, "wgp-ucb", ["discount", "regularization"])
    columns, rows = [0.7, 0.99, "default"], [0.01, 1.0]
    means = np.array(
        [
            [
                grid.final_regret(GRID_TASK, f"WGP-UCB discount={c}, regularization={r}").mean()
                for c in columns
            ]
            for r in rows
        ]
    )
    np.testing.assert_allclose(np.asarray(ax.images[0].get_array()), means)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [str(c) for c in columns]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [str(r) for r in rows]
    frame: Any = ax.patches[0]
    row, column = np.unravel_index(means.argmin(), means.shape)
    assert frame.get_xy() == (column - 0.5, row - 0.5)
    written = [f"{m:.0f}" if m >= 100 else f"{m:.3g}" for m in means.ravel()]
    assert [text.get_text() for text in ax.texts] == written


def test_growth_is_on_logarithmic_axes_with_slopes(grid: Results) -> None:
    ax = growth(grid, "horizon")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert len(ax.containers) == len(grid.agents) - 1  # not the oracle
    samples = [grid.final_regret(f"abrupt horizon={h}", "random") for h in (20, 40, 80)]
    slope = loglog_slope(np.array([20.0, 40.0, 80.0]), samples)
    entry = f"random: {slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
    assert entry in legend(ax)
    slopes = [float(text.split(": ")[1].split()[0]) for text in legend(ax)]
    assert slopes == sorted(slopes)
    written = entry.removeprefix("random: ").replace(" ", "\u00a0")  # in one line
    place = [one.get_label() for one in ax.containers].index(f"random: {written}")
    points = ax.containers[place].lines[0].get_data()  # type: ignore[attr-defined]
    np.testing.assert_allclose(points, [[20, 40, 80], [one.mean() for one in samples]])


def test_bad_grids_are_told(grid: Results, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'parameters' parameter of sensitivity must be one or"):
        sensitivity(grid, GRID_TASK, "wgp-ucb", ["discount", "discount"])
    with pytest.raises(ValueError, match="'name' parameter of sensitivity must be one of"):
        sensitivity(grid, GRID_TASK, "igp-ucb", "discount")
    with pytest.raises(ValueError, match=r"'parameters' .* must be one of 'discount', 'regul"):
        sensitivity(grid, GRID_TASK, "wgp-ucb", "delta")
    left_over = r"'fixed' parameter of sensitivity must be a value for 'regularization' \[0.01, 1.0"
    with pytest.raises(ValueError, match=left_over):
        sensitivity(grid, GRID_TASK, "wgp-ucb", "discount")
    with pytest.raises(ValueError, match=r"'fixed' .* of the values .*\[0.01, 1.0\]"):
        sensitivity(grid, GRID_TASK, "wgp-ucb", "discount", fixed={"regularization": 2.0})
    with pytest.raises(ValueError, match="'fixed' parameter of sensitivity must be one of 'regul"):
        sensitivity(grid, GRID_TASK, "wgp-ucb", "discount", fixed={"delta": 2.0})
    with pytest.raises(ValueError, match="'kwarg' parameter of growth must be one of"):
        growth(grid, "norm_bound")
    horizons = {"horizon": [6, 12], "norm_bound": [1.0, 2.0], **SMALL}
    words = {"horizon": 6, "kernel": ["se", "matern"], **SMALL}
    two = played(
        tmp_path,
        [
            {"id": "WGPBandit-Abrupt-v0", "kwargs": horizons},
            {"id": "WGPBandit-Slow-v0", "kwargs": horizons},
            {"id": "WGPBandit-Stationary-v0", "kwargs": words},
        ],
        [{"name": "random"}],
        runs=2,
    )
    with pytest.raises(ValueError, match="'entry' parameter of growth must be one of 'abrupt', 's"):
        growth(two, "horizon")
    with pytest.raises(ValueError, match="'entry' parameter of growth must be one of"):
        growth(two, "horizon", entry="stationary")
    with pytest.raises(ValueError, match=r"'fixed' parameter of growth .*'norm_bound' \[1.0, 2.0"):
        growth(two, "horizon", entry="slow")
    with pytest.raises(ValueError, match=r"'kwarg' .* at least two values that are .*matern"):
        growth(two, "kernel")
    assert growth(two, "horizon", entry="slow", fixed={"norm_bound": 1.0}).containers


def task(name: str = "abrupt", **kwargs: Any) -> dict[str, Any]:
    return {"id": ABRUPT, "name": name, "kwargs": {"horizon": 12, **SMALL, **kwargs}}


def wgp(label: str, **parameters: Any) -> dict[str, Any]:
    return {"name": "wgp-ucb", "label": label, "parameters": parameters}


def drawn(results: Results) -> dict[str, Axes]:
    """Return every picture that has a file, by its name; all are drawn to their end."""
    found = dict(files.drawn(results))
    for ax in found.values():
        ax.figure.draw_without_rendering()  # type: ignore[union-attr]
    return found


@pytest.mark.slow
def test_variants_that_differ_in_what_is_not_listed_are_told_apart(tmp_path: Path) -> None:
    players = [
        wgp("A {discount}", regularization=0.01, **DISCOUNTS),
        wgp("B {discount}", regularization=1.0, **DISCOUNTS),
    ]
    found = played(tmp_path, [task()], players)
    rule = r"'fixed' parameter of sensitivity .* for 'regularization' \[0.01, 1.0\]"
    with pytest.raises(ValueError, match=rule):
        sensitivity(found, "abrupt", "wgp-ucb", "discount")
    for letter, value in (("A", 0.01), ("B", 1.0)):
        fixed = {"regularization": value}
        ax = sensitivity(found, "abrupt", "wgp-ucb", "discount", fixed=fixed)
        means = [found.final_regret("abrupt", f"{letter} {d}").mean() for d in (0.9, 0.99)]
        np.testing.assert_allclose(np.asarray(ax.lines[0].get_ydata(), float), means)
        assert f"regularization = {value}" in ax.get_title()
    both = sensitivity(found, "abrupt", "wgp-ucb", ["discount", "regularization"])
    assert np.isfinite(np.asarray(both.images[0].get_array())).all()
    assert sum(name.startswith("sensitivity") for name in drawn(found)) == 2


@pytest.mark.slow
def test_a_parameter_that_is_not_mentioned_is_default(tmp_path: Path) -> None:
    grid = wgp("{discount} {regularization}", regularization=[0.01, 1.0], **DISCOUNTS)
    players = [wgp("plain"), wgp("again"), wgp("{discount}", **DISCOUNTS), grid]
    found = played(tmp_path, [task()], players)
    with pytest.raises(ValueError, match=r"'regularization' \['default', 0.01, 1.0\]"):
        sensitivity(found, "abrupt", "wgp-ucb", "discount")
    fixed = {"regularization": "default"}
    ax = sensitivity(found, "abrupt", "wgp-ucb", "discount", fixed=fixed)
    means = [found.final_regret("abrupt", label).mean() for label in ("0.9", "0.99", "plain")]
    np.testing.assert_allclose(np.asarray(ax.lines[0].get_ydata(), float), means[:2])
    (level,) = [one for one in ax.lines if one.get_linestyle() == "--"]
    assert level.get_ydata() == pytest.approx([means[2]] * 2)
    names = [name for name in drawn(found) if name.startswith("sensitivity")]
    assert names == [
        "sensitivity-wgp-ucb-discount-abrupt",
        "sensitivity-wgp-ucb-regularization-discount-abrupt",
    ]


@pytest.mark.slow
def test_tasks_that_differ_in_what_is_not_listed_are_told_apart(tmp_path: Path) -> None:
    tasks = [
        task("t", horizon=[6, 12], norm_bound=1.0),
        task("t", horizon=[8, 16], norm_bound=3.0),
        task("t", horizon=[7, 14], norm_bound=3.0) | {"id": "WGPBandit-Slow-v0"},
        task("other", horizon=9),
    ]
    found = played(tmp_path, tasks, [{"name": "random"}], runs=2)
    rule = r"for 'id' .*Abrupt-v0', .*Slow-v0'\] and 'norm_bound' \[1.0, 3.0\]"
    with pytest.raises(ValueError, match=rule):
        growth(found, "horizon")
    fixed = {"norm_bound": 3.0, "id": ABRUPT}
    ax = growth(found, "horizon", entry="t", fixed=fixed)
    points: Any = ax.containers[0]
    assert points.lines[0].get_xdata().tolist() == [8, 16]
    assert ax.get_title().startswith("t: growth with horizon (")
    shown = [name for name in drawn(found) if name.startswith("growth")]
    assert len(shown) == 3
    assert len(set(shown)) == 3


CASES: dict[str, tuple[list[Any], list[Any], int, set[str]]] = {
    "references alone": ([task(horizon=[6, 12])], [{"name": "oracle"}], 2, set()),
    "one agent, one run": (
        [task(horizon=[6, 12])],
        [wgp("{discount}", **DISCOUNTS)],
        1,
        {"profile", "growth", "sensitivity"},
    ),
    "one step": ([task(horizon=1)], [wgp("w"), {"name": "random"}], 2, {"profile"}),
    "three parameters": (
        [task()],
        [wgp("{discount} {width} {delta}", **THREE)],
        2,
        {"profile"},
    ),
    "words": (
        [task(kernel=["se", "matern"])],
        [wgp("{width}", width=["standard", "tight", "default"])],
        2,
        {"profile", "sensitivity"},
    ),
    "no regret": ([task(norm_bound=0.0)], [wgp("w"), {"name": "random"}], 2, set()),
    "no regret in some": (
        [task(norm_bound=[0.0, 1.0], horizon=[6, 12])],
        [wgp("w"), {"name": "random"}],
        2,
        {"profile", "growth"},
    ),
    "a square": ([task(dim=2, points_per_dim=3, continuous=True)], [wgp("w")], 2, {"profile"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_experiment_has_its_pictures(case: str, tmp_path: Path) -> None:
    tasks, players, runs, more = CASES[case]
    found = drawn(played(tmp_path, tasks, players, runs))
    kinds = {re.split("-(?!step)", name)[0] for name in found}
    assert kinds == {"regret", "per-step", "final"} | more


def test_tasks_without_regret_are_left_out_of_profiles(tmp_path: Path) -> None:
    players = [wgp("w"), {"name": "random"}, {"name": "oracle"}]
    found = played(tmp_path, [task(norm_bound=[0.0, 1.0])], players)
    with_regret = "abrupt norm_bound=1.0"
    shares = relative_regrets(found)
    assert list(shares) == found.agents
    chance = found.final_regret(with_regret, "random").mean()
    for label, tasks in shares.items():
        (only,) = tasks
        np.testing.assert_allclose(only, found.final_regret(with_regret, label) / chance)
    share, error = profile_shares(shares["w"], np.array([-1.0, np.median(shares["w"]), 99.0]))
    np.testing.assert_allclose(share, [0, 0.6, 1])
    np.testing.assert_allclose(error, [0, np.sqrt(0.6 * 0.4 / RUNS), 0])
    assert performance_profile(found, agents=["oracle"]).get_xlim() == (0, 1)


def test_without_any_regret_there_is_no_profile(tmp_path: Path) -> None:
    rule = "'results' parameter of performance_profile must be with a task in which random play"
    for name, bound, agent in (("zero", 0.0, "random"), ("oracle", 1.0, "oracle")):
        found = played(tmp_path / name, [task(norm_bound=bound)], [{"name": agent}], runs=2)
        with pytest.raises(ValueError, match=rule):
            performance_profile(found)


LABELS = ("_hidden", "$\\alpha$ $", 'a/b "\u03bb" {x}', "x" * 150)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Labels and names that mean something to matplotlib or to a file system."""
    names = [f"_${'long ' * 20}$ {sign}" for sign in ("a/b", 'a"b')]
    players = [wgp(label.replace("{", "{{").replace("}", "}}")) for label in LABELS]
    for k, player in enumerate(players):
        player["parameters"] = {"discount": 0.9 + 0.01 * k}
    folder = tmp_path_factory.mktemp("odd")
    return played(folder, [task(name, horizon=4) for name in names], players, runs=2)


@pytest.mark.slow
def test_labels_are_written_as_they_are(odd: Results) -> None:
    name = odd.tasks[0]
    for ax in (
        regret_curves(odd, name),
        regret_around_changes(odd, name),
        performance_profile(odd),
    ):
        shown = [text.replace(" ", "") for text in legend(ax)]
        expected = [label.replace(" ", "") for label in LABELS]
        assert sorted(label for label in shown if "changes" not in label) == sorted(expected)
        texts = ax.get_legend().get_texts()  # type: ignore[union-attr]
        assert not any(text.get_parse_math() for text in texts)
        assert max(len(row) for text in texts for row in text.get_text().split("\n")) < 50
    rows = final_regret(odd, name).get_yticklabels()
    assert {re.sub(r"\s", "", row.get_text()) for row in rows} == set(expected)
    assert not any(row.get_parse_math() for row in rows)
    assert not regret_curves(odd, name).title.get_parse_math()


@pytest.mark.slow
def test_every_picture_has_a_file_of_its_own(odd: Results, tmp_path: Path) -> None:
    write_figures(odd, tmp_path)
    names = [path.name for path in tmp_path.iterdir()]
    pictures = len(list(files.drawn(odd)))
    assert pictures == 3 * 2 + 1
    assert len({name.casefold() for name in names}) == 2 * pictures
    assert max(len(name.encode()) for name in names) < 255


@pytest.mark.slow
def test_the_same_results_give_the_same_bytes(
    grid: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def _few(results: Results) -> Iterator[tuple[str, Axes]]:
        yield "per-step", regret_around_changes(results, GRID_TASK, agents=["random", "oracle"])
        yield "final", final_regret(results, GRID_TASK)
        yield "map", sensitivity(results, GRID_TASK, "wgp-ucb", ["discount", "regularization"])

    monkeypatch.setattr(files, "drawn", _few)
    for folder, year in (("one", "1000000000"), ("two", "1500000000")):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", year)  # what matplotlib takes for the date
        write_figures(load_results(grid.folder.path), tmp_path / folder)
    for path in (tmp_path / "one").iterdir():
        first, second = path.read_bytes(), (tmp_path / "two" / path.name).read_bytes()
        assert first == second
        assert first.startswith(b"%PDF" if path.suffix == ".pdf" else b"<?xml")
    assert len(list((tmp_path / "two").iterdir())) == 6


def test_names_that_are_taken_get_numbers() -> None:
    taken: set[str] = set()
    found = [
        files.free_name(name, taken) for name in ("a b", "a/b", "A_b", "a_b-2", "\u00e9" * 300)
    ]
    assert found[:4] == ["a_b", "a_b-2", "A_b-3", "a_b-2-2"]
    assert found[4] == "\u00e9" * 100
    assert files.free_name("\u00e9" * 299, taken) == "\u00e9" * 100 + "-2"


@pytest.mark.slow
def test_many_agents_and_changes_take_no_time(tmp_path: Path) -> None:
    discounts = [round(0.5 + 0.01 * k, 2) for k in range(40)]
    often = task(horizon=100, change_points=[list(range(2, 100, 2))])
    players = [wgp("{discount}", discount=discounts)]
    found = played(tmp_path, [often], players, runs=2)
    pictures: list[Callable[..., Axes]] = [regret_curves, regret_around_changes, final_regret]
    for draw in pictures:
        start = time.process_time()
        ax = draw(found, "abrupt")
        ax.figure.draw_without_rendering()  # type: ignore[union-attr]
        assert time.process_time() - start < 2
    legends = [legend(draw(found, "abrupt")) for draw in pictures[:2]]
    assert all(len(set(texts) - {"the function changes"}) == 40 for texts in legends)
