"""Films: their frames, what these show, and what is told where there is none to be had."""

from __future__ import annotations

import dataclasses
import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from PIL import Image

import wgp_agents
from wgp_agents.benchmark.film.clip import Clip, record
from wgp_agents.benchmark.film.film import ffmpeg, film
from wgp_agents.benchmark.film.panels import Arms, Line, Map, Strip
from wgp_agents.benchmark.film.stage import Stage

ABRUPT = "WGPBandit-Abrupt-v0"
SHORT: dict[str, Any] = {"horizon": 60, "points_per_dim": 20}
SQUARE: dict[str, Any] = {"dim": 2, "points_per_dim": 7, "horizon": 60}


@pytest.fixture(scope="module")
def clip() -> Clip:
    return record(ABRUPT, "wgp-ucb", 4, SHORT, {"discount": 0.9}, 7, None)


def test_a_clip_is_the_episode(clip: Clip) -> None:
    env: Any = gymnasium.make(ABRUPT, **SHORT)
    observation, _ = env.reset(seed=4)
    agent: Any = wgp_agents.make("wgp-ucb", env, discount=0.9)
    agent.reset(4)
    np.testing.assert_array_equal(clip.shown, [0, 7, 14, 21, 28, 35, 42, 49, 56, 59])
    frames = iter(range(len(clip.shown)))
    for t in range(60):
        if t in clip.shown:
            frame, interval = next(frames), agent.confidence_interval()
            np.testing.assert_array_equal(clip.mean[frame], agent.posterior().mean)
            np.testing.assert_array_equal(clip.low[frame], interval.lower)
            np.testing.assert_array_equal(clip.high[frame], interval.upper)
            truth = env.unwrapped.expected_rewards()
            np.testing.assert_array_equal(clip.truth[frame], truth)
            assert clip.best[frame] == clip.domain[truth.argmax()]
        action = agent.act(observation)
        observation, reward, _, _, info = env.step(action)
        agent.observe(action, reward)
        assert (clip.played[t], clip.paid[t]) == (clip.domain[action], reward)
        assert clip.regret[t] == info["cumulative_regret"]
    assert clip.changes == [12, 24]


def test_the_line_shows_the_posterior_the_truth_and_the_plays(clip: Clip) -> None:
    stage = Stage(clip)
    line, strip = stage.panels
    assert isinstance(line, Line)
    assert isinstance(strip, Strip)
    limits = line.marks.mean.axes.get_ylim()  # type: ignore[union-attr]
    for frame in (0, 6, 9, 3):
        stage.show(frame)
        t = clip.shown[frame]
        np.testing.assert_array_equal(line.marks.mean.get_ydata(), clip.mean[frame])
        np.testing.assert_array_equal(line.marks.truth.get_ydata(), clip.truth[frame])
        edge = np.asarray(line.band.get_paths()[0].vertices)
        n = len(clip.domain)
        np.testing.assert_array_equal(edge[:n, 1], clip.low[frame])
        np.testing.assert_array_equal(edge[2 * n - 1 : n - 1 : -1, 1], clip.high[frame])
        last = max(t - 30, 0)
        offsets = np.asarray(line.marks.past.get_offsets())
        np.testing.assert_array_equal(offsets[:, 0], clip.played[last:t, 0])
        np.testing.assert_array_equal(offsets[:, 1], clip.paid[last:t])
        opacity = np.asarray(line.marks.past.get_facecolor())[:, 3]
        assert np.all(np.diff(opacity) > 0)
        assert line.marks.last.get_data() == ([clip.played[t, 0]], [clip.paid[t]])
        assert line.marks.best.get_ydata() == [clip.truth[frame].max()]
        np.testing.assert_array_equal(strip.line.get_ydata(), np.append(0, clip.regret[: t + 1]))
        assert line.marks.mean.axes.get_ylim() == limits  # type: ignore[union-attr]
        assert stage._step.get_text() == f"step {t + 1}"
    inside = np.concatenate([clip.truth.ravel(), clip.mean.ravel(), clip.paid])
    assert limits[0] < inside.min() < inside.max() < limits[1]
    dashed = [one for one in strip.line.axes.lines if one.get_linestyle() == "--"]  # type: ignore[union-attr]
    assert len(dashed) == 2


def test_a_frame_depends_on_nothing_shown_before(clip: Clip) -> None:
    stage, other = Stage(clip), Stage(clip)
    for frame in (9, 2, 5):
        stage.show(frame)
    other.show(5)
    assert np.array_equal(stage._pixels(), other._pixels())
    other.show(6)
    assert not np.array_equal(stage._pixels(), other._pixels())


def test_arms_with_names_stand_side_by_side() -> None:
    clip = record("WGPBandit-Parking-v0", "sw-gp-ucb", 0, {}, {}, 4, 20)
    stage = Stage(clip)
    arms = stage.panels[0]
    assert isinstance(arms, Arms)
    stage.show(3)
    np.testing.assert_array_equal(arms.marks.mean.get_data(), [np.arange(16), clip.mean[3]])
    for arm, bar in enumerate(arms.bars.get_segments()):
        assert np.array_equal(bar, [[arm, clip.low[3, arm]], [arm, clip.high[3, arm]]])
    ax: Any = arms.marks.mean.axes
    assert [tick.get_text() for tick in ax.get_xticklabels()] == clip.names
    assert clip.changes == []  # it drifts


@pytest.mark.parametrize("continuous", [False, True])
def test_two_coordinates_make_maps_with_the_first_to_the_right(continuous: bool) -> None:
    clip = record(ABRUPT, "wgp-ucb", 1, SQUARE | {"continuous": continuous}, {}, 5, 16)
    stage = Stage(clip)
    maps = stage.panels[0]
    assert isinstance(maps, Map)
    stage.show(2)
    drawn = np.asarray(maps.maps[1].get_array())
    for (x, y), value in zip(clip.domain, clip.truth[2], strict=True):
        assert drawn[round(6 * y), round(6 * x)] == value
    assert maps.maps[0].get_clim() == maps.maps[1].get_clim()
    for mark in maps.last:
        np.testing.assert_array_equal(np.ravel(np.asarray(mark.get_data(), float)), clip.played[10])
    np.testing.assert_array_equal(np.ravel(np.asarray(maps.best.get_data(), float)), clip.best[2])


def test_a_gif_has_its_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # an import of it fails
    given = tmp_path / "new" / "film.GIF"
    path = film(given, kwargs=SHORT, every=10, fps=5, steps=25)
    assert path == given
    with Image.open(path) as picture:
        assert (picture.format, picture.size) == ("GIF", (960, 600))
        assert picture.n_frames == 4  # steps 1, 11, 21, 25
        assert picture.info["duration"] == 200
    assert 5_000 < path.stat().st_size < 500_000


@pytest.mark.slow
@pytest.mark.parametrize("square", [False, True])
def test_where_all_is_zero_there_is_room_around_it(square: bool) -> None:
    flat = (SQUARE if square else SHORT) | {"norm_bound": 0.0, "noise_std": 0.0}
    clip = record(ABRUPT, "wgp-ucb", 0, flat, {}, 5, 10)
    low, high = clip.limits()
    assert low < 0 < high
    Stage(clip).show(1)  # a warning would fail here
    bare = dataclasses.replace(clip, low=0 * clip.low, high=0 * clip.high)
    assert bare.limits()[0] < 0 < bare.limits()[1]
    high_up = {name: getattr(clip, name) + 1e9 for name in ("truth", "mean", "paid")}
    at = dataclasses.replace(clip, **high_up, low=high_up["mean"], high=high_up["mean"]).limits()
    assert at[0] < 1e9 < at[1]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["gif", "mp4"])
def test_a_film_is_written_whole_or_not_at_all(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if ending == "mp4":
        try:
            ffmpeg()
        except RuntimeError:
            pytest.skip("no ffmpeg here")
    path, show = tmp_path / f"film.{ending}", Stage.show
    film(path, kwargs=SHORT, every=10, steps=21)
    whole = path.read_bytes()
    seen = []

    def _break(stage: Stage, frame: int) -> None:
        seen.append(sorted(one.suffix for one in tmp_path.iterdir()))
        if frame == 2:
            raise OSError("the disk is full")
        show(stage, frame)

    monkeypatch.setattr(Stage, "show", _break)
    with pytest.raises(OSError, match="the disk is full"):
        film(path, kwargs=SHORT, every=10, steps=21, seed=1)
    assert len(seen) == 3
    assert [one.name for one in tmp_path.iterdir()] == [f"film.{ending}"]
    assert path.read_bytes() == whole


def test_an_mp4_is_one(tmp_path: Path) -> None:
    try:
        ffmpeg()
    except RuntimeError:
        pytest.skip("no ffmpeg here")
    path = film(tmp_path / "film.mp4", agent="r-gp-ucb", kwargs=SHORT, every=10, steps=30)
    assert path.read_bytes()[4:8] == b"ftyp"
    assert 3_000 < path.stat().st_size < 500_000
    seen = subprocess.run([ffmpeg(), "-i", path], capture_output=True, text=True, check=False)
    assert "960x600" in seen.stderr
    assert "12 fps" in seen.stderr


def test_without_ffmpeg_both_remedies_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)

    def _missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", _missing)
    with pytest.raises(RuntimeError, match=r"for the system, or the package imageio-ffmpeg.*\.gif"):
        film(tmp_path / "film.mp4")
    monkeypatch.setattr(shutil, "which", lambda name: f"/somewhere/{name}")
    assert ffmpeg() == "/somewhere/ffmpeg"


def test_bad_requests_are_told(tmp_path: Path) -> None:
    path = tmp_path / "film.gif"
    with pytest.raises(ValueError, match=r"'ending of path' parameter of film .*'\.gif', '\.mp4'"):
        film(tmp_path / "film.avi")
    with pytest.raises(ValueError, match=r"'agent' parameter of film must be .* with a posterior"):
        film(path, agent="random")
    with pytest.raises(ValueError, match="of film must be the name of an agent"):
        film(path, agent="wgp")
    with pytest.raises(ValueError, match="'environment' parameter of film must be one of"):
        film(path, "WGPBandit-Abrupt-v9")
    with pytest.raises(ValueError, match=r"'environment' .* on a square grid.* 3 dimensions"):
        film(path, kwargs={"dim": 3, "points_per_dim": 3})
    for name in ("every", "fps"):
        with pytest.raises(ValueError, match=f"'{name}' parameter of film must be an int of at"):
            film(path, **{name: 0})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'steps' parameter of film must be an int in \[1, 60\]"):
        film(path, kwargs=SHORT, steps=61)
    assert not path.exists()


def test_names_of_arms_are_no_formulas(tmp_path: Path) -> None:
    rows = ["t,$\\frac$,B$,C", *(f"{t},{t},{2 * t},{-t}" for t in range(5))]
    (tmp_path / "table.csv").write_text("\n".join(rows))
    kwargs = {"table": str(tmp_path / "table.csv")}
    path = film(tmp_path / "x.gif", "WGPBandit-Table-v0", kwargs=kwargs, steps=2)
    assert path.read_bytes().startswith(b"GIF")
