"""The colours of the agents on light and on dark paper.

An agent keeps its hue. Where its colour would vanish on the paper, it is mixed with black or with
white until its contrast suffices for a line.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["PAPER_DARK", "PAPER_LIGHT", "agent_rules", "contrast", "readable"]

Colour = tuple[float, float, float]

PAPER_LIGHT = "#fdfdfc"
PAPER_DARK = "#14171a"
# Yellow on white may stay lighter than a text: a line is wide, and darker it would turn olive.
LEAST_LIGHT = 2.2
LEAST_DARK = 4.0


def agent_rules(colours: Sequence[str]) -> str:
    """Return style rules, `.a0 {color: ...}` and so on, for light and for dark paper."""
    rules = []
    for k, colour in enumerate(colours):
        light = readable(colour, PAPER_LIGHT, LEAST_LIGHT)
        dark = readable(colour, PAPER_DARK, LEAST_DARK)
        rules.append(f".a{k} {{ color: light-dark({light}, {dark}); }}")
    return "\n".join(rules)


def readable(colour: str, paper: str, least: float) -> str:
    """Return `colour`, "#rrggbb", moved away from `paper` until their contrast is at least `least`.

    It is the first of 51 even mixtures with black (on light paper) or white (on dark paper) that
    has this contrast ratio, which is in [1, 21).
    """
    target = (0.0, 0.0, 0.0) if _luminance(_parse(paper)) > 0.18 else (1.0, 1.0, 1.0)
    start = _parse(colour)
    for step in range(51):
        share = step / 50
        mixed = tuple((1 - share) * a + share * b for a, b in zip(start, target, strict=True))
        text = "#" + "".join(f"{round(255 * value):02x}" for value in mixed)
        if contrast(text, paper) >= least:
            return text
    return text


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours "#rrggbb", in [1, 21] (WCAG 2.2)."""
    low, high = sorted((_luminance(_parse(one)), _luminance(_parse(other))))
    return (high + 0.05) / (low + 0.05)


def _parse(colour: str) -> Colour:
    """Red, green and blue in [0, 1]."""
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue


def _luminance(colour: Colour) -> float:
    """The relative luminance of an sRGB colour, in [0, 1] (WCAG 2.2)."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
