"""The hooks of MkDocs: pages that are not files of docs/, and links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import ziamath
from mkdocs.structure.files import File

from scripts.pages import api
from scripts.pages.links import PAGES, rewritten

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
FONT = "STIXTwoMath-Regular.ttf"  # of equations; ziamath brings it


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand elsewhere in the repository, and those of the API."""
    elsewhere = ((made, (ROOT / source).read_text("utf-8")) for source, made in PAGES.items())
    for path, text in (*elsewhere, *api.pages()):
        files.append(File.generated(config, path, content=text))
    font = Path(str(ziamath.__file__)).parent / "fonts" / FONT
    files.append(File.generated(config, f"assets/{FONT}", abs_src_path=str(font)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into links of the site; the first page needs no menu."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]
    return rewritten(markdown, page.file.src_uri)
