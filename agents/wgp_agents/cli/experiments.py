"""The commands that run an experiment and report on it; the paper's figure is one of them."""

from __future__ import annotations

import argparse
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from wgp_agents.cli.arguments import UNEXPECTED
from wgp_agents.cli.terminal import drawn, refused, say

if TYPE_CHECKING:
    from wgp_agents.benchmark.experiment import Unit
    from wgp_agents.benchmark.files import JSON
    from wgp_agents.benchmark.parallel import Workers
    from wgp_agents.benchmark.results import Results

__all__ = ["report", "reproduce", "run"]

RESULTS = Path("results")
FORMATS = ("html", "md", "figures")
USUAL = ("html", "md")
OF_REPORT = ("scipy.stats", "wgp_agents.benchmark.report.page")  # what they need, slow to import
OF_FIGURE = ("matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf")


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
        check(experiment)
        if options.dry_run:
            say(plan(experiment, options.jobs))
            return 0
        from wgp_agents.benchmark.run import run as play  # slow to import

        if not options.no_report:
            import_meanwhile(OF_REPORT, workers)
        failed = play(experiment, out, workers, extend=options.extend)
        if not options.no_report:
            write_report(out, USUAL, partial=bool(failed))
    except (ValueError, OSError, ImportError, LostWorker) as error:
        code = refused("run", error)
        return ended(failed, out) or code
    say(f"\nWritten to {out}. To read it in Python: load_results({str(out)!r})")
    return ended(failed, out)


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
            for name in modules:
                import_module(name)

    if workers.backend == "loky" and workers.jobs > 1:
        Thread(target=_import).start()


def ended(failed: list[Unit], out: Path) -> int:
    """Say whether units failed; return the exit code."""
    if not failed:
        return 0
    say(
        f"{len(failed)} units failed: see {out / 'log.txt'}. Once what is said there is mended, "
        "the same command plays them again."
    )
    return UNEXPECTED


def write_report(
    out: Path, formats: tuple[str, ...], *, partial: bool, into: Path | None = None
) -> Results:
    """Write tables and page, and print the main table; return the results."""
    from wgp_agents.benchmark.folder import REPORT_LOCK, ResultsFolder
    from wgp_agents.benchmark.report import markdown
    from wgp_agents.benchmark.report.page import write_page
    from wgp_agents.benchmark.report.summarise import summarise
    from wgp_agents.benchmark.report.tables import write_tables
    from wgp_agents.benchmark.report.text import findings, left_out
    from wgp_agents.benchmark.results import load_results

    results = load_results(out, partial=partial)
    summary = summarise(results)
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
    return results


def report(options: argparse.Namespace) -> int:
    """Report on what a folder holds; return the exit code."""
    from wgp_agents.benchmark.figures import write_figures

    formats = tuple(options.format or USUAL)
    try:
        results = write_report(options.folder, formats, partial=options.partial, into=options.into)
    except (ValueError, OSError, ImportError) as error:
        return refused("report", error)
    say(f"\nWritten to {options.folder}.")
    if "figures" not in formats:
        return 0
    return drawn("report", lambda: write_figures(results, options.folder / "figures"))


def reproduce(options: argparse.Namespace) -> int:
    """Play Figure 1, print its table, and write its files; return the exit code."""
    from wgp_agents.benchmark.declaration import declare, read_declaration
    from wgp_agents.benchmark.figures import figure1
    from wgp_agents.benchmark.parallel import LostWorker, Workers
    from wgp_agents.benchmark.plan import check
    from wgp_agents.benchmark.run import run as play

    try:
        experiment = declare(overridden(read_declaration("figure1"), options))
        check(experiment)
        workers = Workers(options.jobs)
        import_meanwhile((*OF_REPORT, *OF_FIGURE), workers)
        failed = play(experiment, options.out, workers, extend=options.extend)
        results = write_report(options.out, USUAL, partial=bool(failed))
    except (ValueError, OSError, LostWorker) as error:
        return refused("reproduce", error)
    say(f"\nWritten to {options.out}: report.html and the tables.")
    pictures = [options.out / f"figure1.{ending}" for ending in ("png", "pdf")]
    code = drawn("reproduce", lambda: figure1.draw(results, options.out), *pictures)
    return ended(failed, options.out) or code
