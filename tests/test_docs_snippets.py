"""What the pages tell a reader to run can be run: each page's Python in a process of its own.

The pages of docs/start are followed from top to bottom, with the commands of `wgp-gym`; of other
pages these are parsed. Python that is not to be run by itself has the language "py".
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from scripts.pages.links import PAGES
from wgp_agents.cli import main, parser

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^( *)```(python|sh|bash)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
READ = {"docs/experiments.md": ("noise", "sensitivity"), "docs/agents.md": ("gp", "linear", "arms")}
"""The experiments whose results a page reads."""

QUICK = ("README.md", "docs/learned.md")


def written() -> list[str]:
    """Return the pages of the site that are written by hand, but for the notebooks'."""
    pages = sorted(ROOT.glob("docs/**/*.md"))
    own = [str(page.relative_to(ROOT)) for page in pages if page.parent.name != "notebooks"]
    return [*PAGES, *own]


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the language and the text of each block of code of a page."""
    text = (ROOT / page).read_text("utf-8")
    return [(language, textwrap.dedent(code)) for _, language, code in BLOCK.findall(text)]


def commands(code: str) -> list[str]:
    """Return the commands of `wgp-gym` in a block for a shell."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip().startswith("wgp-gym ")]


def words(command: str) -> list[str]:
    """Return the words of a command after `wgp-gym`."""
    return shlex.split(command, comments=True)[1:]


def script(page: str) -> str:
    """Return a page's Python in one, on docs/start with the quick commands in their places."""
    parts = []
    for language, code in blocks(page):
        if language == "python":
            parts.append(code)
        elif page.startswith("docs/start/"):
            quick = [words(one) for one in commands(code) if words(one)[0] != "train"]
            parts += [
                f"import wgp_agents.cli\nassert wgp_agents.cli.main({one}) == 0" for one in quick
            ]
    return "\n".join(parts)


def as_a_checkout(page: str, folder: Path) -> None:
    """Put into a folder what a page reads: tables, and results of three runs of twenty steps."""
    (folder / "docs").mkdir()
    (folder / "wgp_gym").mkdir()
    (folder / "wgp_gym" / "datasets").symlink_to(ROOT / "wgp_gym" / "datasets")
    for name in READ.get(page, ()):
        text = (ROOT / "benchmarks" / f"{name}.toml").read_text("utf-8")
        file = folder / f"{name}.toml"
        file.write_text(f"horizon = 20\n{text.replace('seeds = 100', 'seeds = 3')}", "utf-8")
        out = str(folder / "results" / name)
        assert main(["run", str(file), "--out", out, "--jobs", "1"]) == 0


def marked(pages: list[str]) -> list[object]:
    """Return pages as parameters, those that take long marked."""
    return [pytest.param(one, marks=[pytest.mark.slow] * (one not in QUICK)) for one in pages]


WITH_PYTHON = [
    page for page in written() if any(language == "python" for language, _ in blocks(page))
]


@pytest.mark.parametrize("page", marked(WITH_PYTHON))
def test_the_python_of_a_page_runs(page: str, tmp_path: Path) -> None:
    as_a_checkout(page, tmp_path)
    # In a module of its own, so that what it defines can be pickled.
    (tmp_path / "the_page.py").write_text(script(page), "utf-8")
    path = os.pathsep.join([str(ROOT), str(ROOT / "agents")])
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-W",
            "ignore::DeprecationWarning",
            "-c",
            "import the_page",
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_command_of_the_pages_is_understood() -> None:
    found = [
        command
        for page in written()
        for language, code in blocks(page)
        if language != "python"
        for command in commands(code)
    ]
    assert len(found) > 12
    for command in found:
        parser().parse_args(words(command))  # else it ends the process


def test_every_target_of_make_in_the_pages_is_there() -> None:
    there = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    told = {
        target
        for page in written()
        for language, code in blocks(page)
        if language != "python"
        for target in re.findall(r"^make ([a-z-]+)", code, re.MULTILINE)
    }
    assert {"reproduce", "test"} <= told <= there
