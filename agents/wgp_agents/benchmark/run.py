"""Running an experiment: what was done before is kept, what is done is written at once."""

from __future__ import annotations

import csv
import logging
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from tqdm import tqdm

from wgp_agents.benchmark.experiment import Experiment, Unit
from wgp_agents.benchmark.files import Damaged, other_versions
from wgp_agents.benchmark.folder import LOG as LOG_FILE
from wgp_agents.benchmark.folder import TIMINGS, ResultsFolder
from wgp_agents.benchmark.parallel import Workers, run_as_done
from wgp_agents.benchmark.pieces import Pieces
from wgp_agents.benchmark.play import Outcome, attempt

__all__ = ["run"]

LOG = logging.getLogger(__name__)
COLUMNS = ("task", "agent", "first_run", "runs", "seconds", "peak_memory_mib", "worker")


def run(
    experiment: Experiment, path: Path, workers: Workers, *, extend: bool = False
) -> list[Unit]:
    """Play what an experiment's folder lacks.

    Each unit is written as soon as it is done; whenever this ends before all are, a second call
    goes on where it stopped, and the files come out as if it had not.

    Args:
        experiment: What is played.
        path: The folder of its results.
        workers: Where it is played; any place gives the same results.
        extend: Whether the folder may hold a part of this experiment.

    Returns:
        The units that failed; the log says why.

    Raises:
        ValueError: If the folder holds anything else, links or what another process is writing,
            or an environment cannot be made.
        OSError: If a file that a parameter names is not there, or one cannot be written; what
            was written before stays.
        LostWorker: If a worker process was killed; likewise.
    """
    workers.checked()
    with (
        ResultsFolder.open_to_write(path, experiment, extend=extend) as folder,
        logged(path / LOG_FILE),
    ):
        mend(path / TIMINGS)
        units = folder.experiment.units()
        work = [unit for unit in units if not is_done(folder, unit)]
        LOG.info("%s: %d units, %d to play, %s", experiment.title, len(units), len(work), workers)
        changed = other_versions(folder.manifest.versions)
        if changed and len(work) < len(units):
            LOG.warning("other versions than those of the runs before: %s", ", ".join(changed))
        runs = sum(len(unit.runs) for unit in units)
        left = sum(len(unit.runs) for unit in work)
        bar = tqdm(total=runs, initial=runs - left, unit="run", desc="playing")
        failed = play_units(folder, work, workers, bar)
        LOG.info("done, %d of %d units failed", len(failed), len(work))
    return failed


def play_units(folder: ResultsFolder, work: list[Unit], workers: Workers, bar: tqdm) -> list[Unit]:
    """Play units, and write each as soon as it is done; return those that failed."""
    failed, done = [], 0
    play = partial(attempt, digests=folder.manifest.files)
    # A batch of every agent comes before a second of any: what an end leaves can be compared.
    work.sort(key=lambda unit: unit.runs.start)
    pieces = Pieces(work, workers)
    try:
        with bar, closing(run_as_done(play, pieces.work, workers)) as outcomes:
            for outcome in outcomes:
                if (whole := pieces.joined(outcome)) is not None:
                    done += 1
                    if not record(folder, whole):
                        failed.append(whole.unit)
                bar.update(len(outcome.unit.runs))
    except BaseException as error:
        LOG.info("ended early, by %r", error)
        text = f"Stopped after {done} of {len(work)} units: the same command plays the rest."
        tqdm.write(text, file=sys.stderr)
        raise
    return failed


def is_done(folder: ResultsFolder, unit: Unit) -> bool:
    """Tell whether a unit's file is there and whole."""
    try:
        folder.read(unit)
    except FileNotFoundError:
        return False
    except Damaged as error:
        LOG.warning("%s", error)
        return False
    return True


def record(folder: ResultsFolder, outcome: Outcome) -> bool:
    """Write what has become of a unit; tell whether it was played."""
    unit = outcome.unit
    what = f"{unit.agent.label} in {unit.task.name}, runs {unit.runs.start} to {unit.runs.stop - 1}"
    for text in outcome.warnings:
        LOG.warning("%s: %s", what, text)
    if outcome.arrays is None:
        LOG.error("%s failed:\n%s", what, outcome.error)
        return False
    try:
        folder.write(unit, outcome.arrays)
    except Damaged as error:
        LOG.error("%s failed: what was played %s", what, error)
        return False
    row = (
        unit.task.name,
        unit.agent.label,
        unit.runs.start,
        len(unit.runs),
        f"{outcome.seconds:.4f}",
        f"{outcome.peak_memory:.1f}",
        outcome.worker,
    )
    with (folder.path / TIMINGS).open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not file.tell():
            writer.writerow(COLUMNS)
        writer.writerow(row)
    return True


def mend(path: Path) -> None:
    """Take off the last line of a file if a kill has cut it short."""
    if path.exists():
        with path.open("r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """Write what is logged meanwhile to the end of a file, and warnings to the terminal too."""
    to_file, to_terminal = LogFile(path, encoding="utf-8"), BesideTheBar()
    to_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    to_terminal.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    to_terminal.setLevel(logging.WARNING)
    handlers: list[logging.Handler] = [to_file, to_terminal]
    level, LOG.propagate = LOG.level, False
    LOG.setLevel(logging.INFO)
    try:
        for handler in handlers:
            LOG.addHandler(handler)
        yield
    finally:
        for handler in handlers:
            LOG.removeHandler(handler)
        LOG.setLevel(level)
        LOG.propagate = True
        for handler in handlers:
            handler.close()  # may raise where the disk is full


class LogFile(logging.FileHandler):
    """Raises what keeps it from writing, as a full disk, where the standard one prints it."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Raise the error in hand."""
        del record
        raise


class BesideTheBar(logging.Handler):
    """Prints without breaking a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        tqdm.write(self.format(record), file=sys.stderr)
