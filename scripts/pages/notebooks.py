"""Run the notebooks of docs/notebooks, and write each one's page: text, code, output, pictures.

    python -m scripts.pages.notebooks

A notebook is a script with cells, as editors know them: "# %%" begins a cell of code,
"# %% [markdown]" one of text in comments. A picture that a cell saves is shown beneath it.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
CELL = re.compile(r"^# %%( \[markdown\])?\n", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A cell: its source, and whether that is text."""

    source: str
    is_text: bool


def cells(script: Path) -> list[Cell]:
    """Return the cells of a notebook."""
    _, *parts = CELL.split(script.read_text("utf-8"))
    return [
        Cell(_uncommented(source) if mark else source.strip(), bool(mark))
        for mark, source in zip(parts[::2], parts[1::2], strict=True)
    ]


def _uncommented(source: str) -> str:
    """Return the text that stands in comments."""
    return re.sub(r"^# ?", "", source.strip(), flags=re.MULTILINE)


def page(script: Path, folder: Path) -> str:
    """Return the page of a notebook, which is run in a folder.

    Args:
        script: The notebook.
        folder: Where its pictures are written.
    """
    told = f"*A notebook: `docs/notebooks/{script.name}` in the repository, with what it printed.*"
    first, *rest = _shown(script, folder)
    return "\n\n".join([first, told, *rest]) + "\n"


def _shown(script: Path, folder: Path) -> Iterator[str]:
    """Yield what each cell shows; cells of code are run."""
    names: dict[str, object] = {"__name__": script.stem}
    for cell in cells(script):
        if cell.is_text:
            yield cell.source
            continue
        yield f"```python\n{cell.source}\n```"
        printed = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
            exec(compile(cell.source, script.name, "exec"), names)
        if printed.getvalue():
            yield f"```text\n{printed.getvalue().rstrip()}\n```"
        for picture in re.findall(r'savefig\("([^"]+)"', cell.source):
            yield f"![{_title(script)}]({picture})"


def _title(script: Path) -> str:
    """Return the title of a notebook."""
    return cells(script)[0].source.splitlines()[0].lstrip("# ")


def main() -> None:
    """Write the pages of all notebooks, and their pictures."""
    import matplotlib as mpl

    mpl.use("agg")
    for script in sorted(FOLDER.glob("*.py")):
        with tempfile.TemporaryDirectory() as folder:
            text = page(script, Path(folder))
            for picture in Path(folder).glob("*.png"):
                (FOLDER / picture.name).write_bytes(picture.read_bytes())
        script.with_suffix(".md").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
