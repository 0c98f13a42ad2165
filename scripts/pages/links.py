"""Links that work on GitHub and in the site.

Pages are written for GitHub, with links relative to their file in the repository. In the site some
files stand elsewhere (`PAGES`), and most of the repository does not stand at all: a link there
becomes its text, and the path where a reader of the repository finds it.
"""

from __future__ import annotations

import posixpath
import re

__all__ = ["PAGES", "rewritten", "source_of"]

PAGES = {
    "README.md": "index.md",
    "agents/README.md": "extending.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "wgp_gym/datasets/README.md": "datasets.md",
}
"""The pages whose files are not in docs/: path in the repository, and in the site."""

LINK = re.compile(r"(?P<text>!?\[(?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*\])\((?P<target>[^()\s]+)\)")
FENCED = re.compile(r"^ *(```|~~~).*?^ *\1\s*?$", re.DOTALL | re.MULTILINE)


def source_of(page: str) -> str:
    """Return the path in the repository of a page of the site."""
    elsewhere = {made: source for source, made in PAGES.items()}
    return elsewhere.get(page, f"docs/{page}")


def rewritten(markdown: str, page: str) -> str:
    """Return a page's text with links that work in the site.

    Args:
        markdown: The text, with links that work in the repository.
        page: The page's path in the site.
    """
    parts, end = [], 0
    for code in FENCED.finditer(markdown):  # what looks like a link there is code
        parts += [_in_prose(markdown[end : code.start()], page), code.group()]
        end = code.end()
    return "".join([*parts, _in_prose(markdown[end:], page)])


def _in_prose(text: str, page: str) -> str:
    """Return a text without fences with its links rewritten."""
    return LINK.sub(lambda link: _link(link["text"], link["target"], page), text)


def _link(text: str, target: str, page: str) -> str:
    """Return one link as the site has it."""
    path, mark, anchor = target.partition("#")
    if not path or "://" in target or target.startswith("mailto:"):
        return f"{text}({target})"
    folder = posixpath.dirname(source_of(page))
    place = posixpath.normpath(posixpath.join(folder, path))
    if place in PAGES:
        made = PAGES[place]
    elif place.startswith("docs/"):
        made = place.removeprefix("docs/")
    else:
        said = text.strip("[]")
        return f"`{place}`" if posixpath.basename(place) in said else f"{said} (`{place}`)"
    return f"{text}({posixpath.relpath(made, posixpath.dirname(page) or '.')}{mark}{anchor})"
