"""The commands that run an experiment and report on it; the paper's figure is one of them."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from wgp_agents.cli.arguments import UNEXPECTED
from wgp_agents.cli.terminal import drawn, refused, say

if TYPE_CHECKING:
    from wgp_agents.benchmark.experiment import Experiment, Unit
    from wgp_agents.benchmark.files import JSON
    from wgp_agents.benchmark.parallel import Workers
    from wgp_agents.benchmark.results import Results

__all__ = ["report", "reproduce", "run"]

RESULTS = Path("results")
FORMATS = ("html", "md", "figures")
USUAL = ("html", "md")
OF_REPORT = ("scipy.stats", "wgp_agents.benchmark.report.page")  # what they need, slow to import
OF_RUNS = "wgp_agents.benchmark.play", "wgp_agents.gp.agent"


def run(options: argparse.Namespace) -> int:
    """Run an experiment and report on it, or say what it would do; return the exit code."""
    from wgp_agents.benchmark.declaration import declare
    from wgp_agents.benchmark.parallel import LostWorker, Workers
    from wgp_agents.benchmark.plan import check, plan

    out = options.out or RESULTS / Path(options.experiment or "comparison").stem
    failed: list[Unit] = []
    try:
        experiment = declare(overridden(declaration(options), options))
        workers = Workers(options.jobs, options.backend, options.address).checked()
        if options.dry_run:
            check(experiment)
            say(plan(experiment, options.jobs))
            return 0
        with made_ready(workers):
            check(experiment)
            from wgp_agents.benchmark.results import load_results
            from wgp_agents.benchmark.run import run as play  # slow to import
        if not options.no_report:
            import_meanwhile(OF_REPORT, workers)
        failed = play(experiment, out, workers, extend=options.extend)
        if not options.no_report:
            write_report(load_results(out, partial=bool(failed)), USUAL)
    except (ValueError, OSError, ImportError, LostWorker) as error:
        code = refused("run", error)
        return ended(failed, out) or code
    say(f"\nWritten to {out}. To read it in Python: load_results({str(out)!r})")
    code = 0 if options.no_report else renew_figures("run", out, failed)
    return ended(failed, out) or code


def declaration(options: argparse.Namespace) -> dict[str, JSON]:
    """Return what is to be played, from a file or from flags."""
    from wgp_agents.benchmark.declaration import from_flags, read_declaration, shipped

    if options.experiment is not None:
        if options.env or options.agent:
            raise ValueError("Give either an experiment's file or --env and --agent, not both.")
        return read_declaration(options.experiment)
    if not (options.env and options.agent):
        known = ", ".join(shipped())
        raise ValueError(f"Give an experiment's file, or one of {known}; or --env and --agent.")
    return from_flags(options.env, options.agent)


def overridden(values: dict[str, JSON], options: argparse.Namespace) -> dict[str, JSON]:
    """Return a declaration with the numbers that flags give in the place of its own."""
    given = {name: getattr(options, name) for name in ("seeds", "root_seed", "horizon")}
    values = values | {name: value for name, value in given.items() if value is not None}
    entries = values.get("environment")
    if options.horizon is not None and isinstance(entries, list):
        # A file's own horizons, grids of them too, give way.
        values["environment"] = [without_horizon(entry) for entry in entries]
    return values


def without_horizon(entry: JSON) -> JSON:
    """Return an [[environment]] without a horizon of its own."""
    if isinstance(entry, dict) and isinstance(kwargs := entry.get("kwargs"), dict):
        return {**entry, "kwargs": {key: kwargs[key] for key in kwargs if key != "horizon"}}
    return entry


def import_meanwhile(modules: tuple[str, ...], workers: Workers) -> None:
    """Import what a command needs last while other processes play, if there are any.

    Not where another backend may fork: a lock that this thread holds would stay locked there.
    """

    def _import() -> None:
        with suppress(Exception):  # which is met again where it is needed
            import_all(modules)

    if workers.beside:
        Thread(target=_import).start()


@contextmanager
def made_ready(workers: Workers) -> Iterator[None]:
    """Let other processes start and import what they play with, while this one goes on."""
    from wgp_agents.benchmark.parallel import begun

    with begun(import_all, [OF_RUNS] * workers.jobs * workers.beside, workers) as done:
        try:
            yield
        finally:
            list(done)  # joblib may fall over itself where processes end while they start


def import_all(modules: tuple[str, ...]) -> None:
    """Import modules."""
    for name in modules:
        import_module(name)


def ended(failed: list[Unit], out: Path) -> int:
    """Say whether units failed; return the exit code."""
    if not failed:
        return 0
    say(
        f"{len(failed)} units failed: see {out / 'log.txt'}. Once what is said there is mended, "
        "the same command plays them again."
    )
    return UNEXPECTED


def write_report(results: Results, formats: tuple[str, ...], *, into: Path | None = None) -> None:
    """Write tables and page, and print the main table."""
    from wgp_agents.benchmark.folder import REPORT_LOCK, ResultsFolder
    from wgp_agents.benchmark.report import markdown
    from wgp_agents.benchmark.report.page import write_page
    from wgp_agents.benchmark.report.summarise import summarise
    from wgp_agents.benchmark.report.tables import write_tables
    from wgp_agents.benchmark.report.text import findings, left_out

    summary, out = summarise(results), results.folder.path
    with ResultsFolder.locked(out, REPORT_LOCK):
        write_tables(summary, out)
        if "html" in formats:
            write_page(summary, out / "report.html")
        if "md" in formats:
            markdown.write_markdown(summary, out / "report.md")
    say(f"\n{markdown.regret_table(summary)}\n")
    for text in [*left_out(summary), *findings(summary)]:
        say(text)
    if into is not None:
        markdown.fill_in(into, "results", markdown.markdown(summary))


def report(options: argparse.Namespace) -> int:
    """Report on what a folder holds; return the exit code."""
    from wgp_agents.benchmark.figures import write_figures
    from wgp_agents.benchmark.results import load_results

    formats = tuple(options.format or USUAL)
    try:
        results = load_results(options.folder, partial=options.partial)
        if "figures" in formats:
            results.want_means()
        write_report(results, formats, into=options.into)
    except (ValueError, OSError, ImportError) as error:
        return refused("report", error)
    say(f"\nWritten to {options.folder}.")
    if "figures" not in formats:
        return 0
    return drawn("report", lambda: write_figures(results, options.folder / "figures"))


def renew_figures(command: str, out: Path, failed: list[Unit]) -> int:
    """Draw anew what `report --format figures` has drawn before, if it has; return the exit code.

    Older pictures beside new tables would mislead.
    """
    from wgp_agents.benchmark.figures import write_figures
    from wgp_agents.benchmark.results import load_results

    figures = out / "figures"
    if not figures.is_dir():
        return 0
    return drawn(command, lambda: write_figures(load_results(out, partial=bool(failed)), figures))


def reproduce(options: argparse.Namespace) -> int:
    """Play Figure 1, print its table, and write its files; return the exit code."""
    from wgp_agents.benchmark.parallel import LostWorker, Workers, begun
    from wgp_agents.benchmark.results import load_results

    with ExitStack() as stack:
        try:
            workers = Workers(options.jobs)
            with made_ready(workers):
                experiment = figure1_of(options)
                from wgp_agents.benchmark.run import run as play
            import_meanwhile(OF_REPORT, workers)
            failed = play(experiment, options.out, workers, extend=options.extend)
            results = load_results(options.out, partial=bool(failed))
            figure = stack.enter_context(begun(pictures_of, [results], workers))
            write_report(results, USUAL)
        except (ValueError, OSError, LostWorker) as error:
            return refused("reproduce", error)
        say(f"\nWritten to {options.out}: report.html and the tables.")
        pictures = [options.out / f"figure1.{ending}" for ending in ("png", "pdf")]
        code = drawn("reproduce", lambda: keep(*next(figure), options.out), *pictures)
    code = renew_figures("reproduce", options.out, failed) or code
    return ended(failed, options.out) or code


def figure1_of(options: argparse.Namespace) -> Experiment:
    """Return the experiment of Figure 1 with the numbers that flags give, once it is checked."""
    from wgp_agents.benchmark.declaration import declare, read_declaration
    from wgp_agents.benchmark.plan import check

    experiment = declare(overridden(read_declaration("figure1"), options))
    check(experiment)
    return experiment


def pictures_of(results: Results) -> tuple[dict[str, bytes], list[Warning | str]]:
    """Return the files of Figure 1, by name, and what was warned of while it was drawn."""
    from wgp_agents.benchmark.figures import figure1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        return figure1.pictures(results), [one.message for one in caught]


def keep(pictures: dict[str, bytes], said: list[Warning | str], out: Path) -> None:
    """Write pictures that another process may have drawn, and warn as it did."""
    from wgp_agents.benchmark.files import write_whole

    for text in said:
        warnings.warn(text, stacklevel=1)
    for name, data in pictures.items():
        write_whole(out / name, data)
