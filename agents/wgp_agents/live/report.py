"""The report of a live bandit: a table, data, a page, a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from wgp_agents.benchmark.files import write_whole
from wgp_agents.live.facts import Facts
from wgp_agents.live.words import arm_columns, arms_to_show, key_facts, one_line

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Report"]


@dataclass(frozen=True)
class Report(Facts):
    """What is known of a live bandit, and the forms in which it can be had."""

    def __str__(self) -> str:
        return self.table()

    def table(self) -> str:
        """Return everything but the history as text, the arms in aligned columns.

        Of more than forty arms it has the best twenty and those that were played most; `to_frame`
        and the page have all.
        """
        heading = f"{one_line(self.name)}: {one_line(self.agent)}"
        facts = key_facts(self)
        width = max(len(term) for term, _ in facts)
        lines = [heading, *(f"{term:<{width}}  {text}" for term, text in facts), ""]
        columns, rows = arm_columns(self), arms_to_show(self)
        cells = [[column.title, *(column.texts[row] for row in rows)] for column in columns]
        widths = [max(map(len, column)) for column in cells]
        for row in zip(*cells, strict=True):
            parts = [
                f"{text:>{width}}" if column.numeric else f"{text:<{width}}"
                for text, width, column in zip(row, widths, columns, strict=True)
            ]
            lines.append("  ".join(parts).rstrip())
        if left := len(self.arms) - len(rows):
            lines.append(f"and {left} more arms: see to_frame() or to_html()")
        return "\n".join(lines)

    def to_json(self) -> str:
        """Return everything as a text in JSON; `Report.from_dict(json.loads(text))` is this one."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def to_frame(self) -> pandas.DataFrame:
        """Return the arms as a DataFrame, a row for each; dates are timestamps in UTC.

        Raises:
            ModuleNotFoundError: If pandas is not installed: the extra "tables" brings it.
        """
        import pandas

        columns = {one.name: list(one.values) for one in arm_columns(self)}
        frame = pandas.DataFrame(columns | {"there": [arm.there for arm in self.arms]})
        if self.clock == "dates":
            frame["last_time"] = pandas.to_datetime(frame["last_time"], unit="s", utc=True)
        return frame

    def html(self) -> str:
        """Return the page as text: see `to_html`."""
        from wgp_agents.live.page import page

        return page(self)

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write one page that opens from disk and asks nothing of a network.

        Raises:
            OSError: If the file cannot be written.
        """
        write_whole(Path(path), self.html().encode())

    def plot(self, axes: Sequence[Axes] | None = None) -> Figure:
        """Draw rewards over time, the arms' bands now, and memory over time.

        Args:
            axes: Where to draw the three, in this order. Default: those of a new figure.

        Raises:
            ValueError: If there are not three.
        """
        from wgp_agents.live.plot import figure

        return figure(self, axes)
