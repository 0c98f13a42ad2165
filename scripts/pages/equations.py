"""Equations as GitHub writes them, rendered to MathML when the site is built.

A block is a fence of the language "math"; within a line an equation is a dollar sign, a backtick,
LaTeX, a backtick and a dollar sign. Browsers draw MathML by themselves: no script is loaded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Extension
from markdown.inlinepatterns import InlineProcessor

if TYPE_CHECKING:
    from markdown import Markdown

__all__ = ["Equations", "fence"]

BEFORE_CODE = 195  # Python-Markdown reads backticks at 190


def fence(
    source: str,
    language: str,
    css_class: str,
    options: dict[str, str],
    md: Markdown,
    **others: object,
) -> str:
    """Return a block's MathML, as a fence of `pymdownx.superfences`."""
    return f'<div class="{css_class}">{convert(source.strip(), display="block")}</div>'


class _Inline(InlineProcessor):
    """An equation within a line."""

    def handleMatch(  # type: ignore[override]  # types-Markdown has the older form's
        self, m: re.Match[str], data: str
    ) -> tuple[Element | str | None, int | None, int | None]:
        """Return a place that holds the MathML, and where the equation begins and ends."""
        return self.md.htmlStash.store(convert(m.group(1))), m.start(0), m.end(0)


class Equations(Extension):
    """Equations within a line, for Python-Markdown."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Look for equations before code."""
        md.inlinePatterns.register(_Inline(r"\$`([^`]+)`\$", md), "equation", BEFORE_CODE)
