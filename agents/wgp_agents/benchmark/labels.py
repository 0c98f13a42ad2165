"""Labels: one line each, since they stand in tables, file names, pictures and messages."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Mapping
from typing import Any

from wgp_agents.benchmark.limits import LONGEST_LABEL
from wgp_gym.validation import reject

__all__ = ["check_line", "check_paragraph", "filled"]

NOT_IN_LINES = {"Cc", "Cs", "Zl", "Zp"}  # controls, halves of surrogate pairs, breaks of lines
BYTE_ORDER_MARK = "\ufeff"
# A format of Python's, of at most 99 places: "5", ".3f", ">10", "+.2e".
FORMAT = re.compile(r"(.?[<>=^])?[-+ ]?#?0?\d{0,2}[,_]?(\.\d{1,2})?[a-zA-Z%]?")


def check_line(name: str, text: object, owner: str) -> str:
    """Return a text if it is one line that can be shown.

    Raises:
        ValueError: If it is none, is blank, holds anything that ends a line, other control
            characters, lone surrogates or a byte order mark, or is too long.
    """
    if not isinstance(text, str) or not text.strip() or not all(map(stays_in_line, text)):
        reject(name, owner, "a text of one line, without control characters", text)
    if len(text) > LONGEST_LABEL:
        reject(name, owner, f"a text of at most {LONGEST_LABEL} characters", text)
    return text


def check_paragraph(name: str, text: object, owner: str) -> str:
    """Return a text if it can be shown; it may have several lines.

    Raises:
        ValueError: If it is none, or holds other control characters or the like.
    """
    if not isinstance(text, str) or not all(map(stays_in_line, re.sub(r"[\t\n]", "", text))):
        reject(name, owner, "a text, without control characters", text)
    return text


def stays_in_line(sign: str) -> bool:
    """Tell whether a character may stand in a line."""
    return sign != BYTE_ORDER_MARK and unicodedata.category(sign) not in NOT_IN_LINES


def filled(template: str, values: Mapping[str, Any]) -> str:
    """Return a label with values in the place of `{name}`, `{name:.2f}` and the like.

    Nothing but the values themselves can be reached, and no format is wider than 99 places.

    Raises:
        ValueError: If a name is not among the values, or a format is none for its value.
    """
    parts = []
    for literal, name, form, conversion in string.Formatter().parse(template):
        parts.append(literal)
        if name is None:
            continue
        if name not in values or not FORMAT.fullmatch(form or ""):
            raise ValueError(f"There is no {{{name}}}, or no format {form!r}.")
        value = string.Formatter().convert_field(values[name], conversion)
        try:
            parts.append(format(value, form or ""))
        except (TypeError, OverflowError) as error:
            raise ValueError(str(error)) from error
    return "".join(parts)
