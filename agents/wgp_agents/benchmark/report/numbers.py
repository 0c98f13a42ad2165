"""Numbers as people read them."""

from __future__ import annotations

import math

from wgp_agents.benchmark.statistics import Interval

__all__ = ["decimals_for", "finite", "for_page", "number", "with_interval"]


def with_interval(found: Interval | None, decimals: int | None = None) -> str:
    """Return a value with its interval, as "254 (240 to 268)", or alone where that is undefined.

    All three have the same decimals, by default those that show three digits of the largest.
    Where there is no value, the text is empty.
    """
    if found is None:
        return ""
    value, low, high = found
    ends = math.isfinite(low) and math.isfinite(high)
    if decimals is None:
        decimals = decimals_for(max(map(abs, (value, low, high))) if ends else abs(value))
    text = number(value, decimals)
    return f"{text} ({number(low, decimals)} to {number(high, decimals)})" if ends else text


def decimals_for(largest: float) -> int:
    """Return how many decimals show three digits of a number, none of 100 or more."""
    if largest == 0 or not math.isfinite(largest):
        return 2
    return max(2 - math.floor(math.log10(largest)), 0)


def number(value: float, decimals: int) -> str:
    """Return a number with so many decimals, zero without a sign."""
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def finite(value: float | None) -> float | None:
    """Return a number, or None for what JSON cannot hold."""
    return None if value is None or not math.isfinite(value) else value


def for_page(value: float, decimals: int) -> str:
    """Return a number with a true minus, and thin spaces between thousands (from five digits)."""
    text = number(value, decimals)
    if abs(value) >= 10_000:
        text = f"{value:,.{decimals}f}".replace(",", "\u202f")
    return text.replace("-", "\N{MINUS SIGN}")
