"""A film of one episode, for talks: what the agent believes, what is true, and what it costs."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from wgp_agents.benchmark.film.clip import record
from wgp_agents.benchmark.film.stage import DPI, Stage
from wgp_gym.validation import check_choice, check_int

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.animation import AbstractMovieWriter

__all__ = ["film"]

ENDINGS = (".gif", ".mp4")
BITRATE = 2_400  # kbit/s: flat colours stay clean


def film(
    path: str | Path,
    environment: str = "WGPBandit-Abrupt-v0",
    agent: str = "wgp-ucb",
    *,
    seed: int = 0,
    kwargs: Mapping[str, object] | None = None,
    parameters: Mapping[str, object] | None = None,
    every: int = 5,
    fps: int = 12,
    steps: int | None = None,
) -> Path:
    """Play an episode and film it.

    A frame shows a step t: the posterior before it as mean and confidence band, the true f_t with
    its optimum, the play with its reward, those before it fading, and the regret up to it. The
    file is there when it is complete: until then, a hidden one beside it is.

    Args:
        path: Where the film goes; ".gif", or ".mp4", which needs ffmpeg.
        environment: The environment's id; its arms have at most two coordinates.
        agent: The name of an agent with a posterior.
        seed: The seed of the environment and of the agent.
        kwargs: What the environment is made with.
        parameters: The agent's own parameters.
        every: Steps from one frame to the next, at least 1.
        fps: Frames in a second, at least 1.
        steps: The steps to film, at most T; default: all.

    Returns:
        The path.

    Raises:
        ValueError: If a parameter is not as said.
        RuntimeError: If there is no ffmpeg for an ".mp4".
    """
    path = Path(path)
    check_choice("ending of path", path.suffix.lower(), "film", ENDINGS)
    for name, number in (("every", every), ("fps", fps)):
        check_int(name, number, "film", 1)
    binary = ffmpeg() if path.suffix.lower() == ".mp4" else ""
    clip = record(environment, agent, seed, kwargs or {}, parameters or {}, every, steps)
    stage = Stage(clip)
    path.parent.mkdir(parents=True, exist_ok=True)
    writer, setting = camera(path, fps, binary)
    with replaced_at_end(path) as part, setting, writer.saving(stage.screen, str(part), DPI):
        for frame in range(len(clip.shown)):
            stage.show(frame)
            writer.grab_frame()
    return path


@contextmanager
def replaced_at_end(path: Path) -> Iterator[Path]:
    """Give a file to write to, of the same ending, that becomes `path` unless something fails."""
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def ffmpeg() -> str:
    """Return the path of ffmpeg: that of the system, or that of the package imageio-ffmpeg."""
    found = shutil.which("ffmpeg")
    if found:
        return found
    try:
        return str(importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe())
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            "An .mp4 needs ffmpeg. Install it for the system, or the package imageio-ffmpeg; "
            "or give the film the ending .gif."
        ) from error


def camera(
    path: Path, fps: int, binary: str
) -> tuple[AbstractMovieWriter, AbstractContextManager[object]]:
    """Return what writes the film, and the setting that it needs meanwhile."""
    import matplotlib
    from matplotlib.animation import FFMpegWriter, PillowWriter

    if path.suffix.lower() == ".gif":
        return PillowWriter(fps=fps), nullcontext()
    setting = matplotlib.rc_context({"animation.ffmpeg_path": binary})
    return FFMpegWriter(fps=fps, codec="h264", bitrate=BITRATE), setting
