"""Goals beside figures, as one table."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


@dataclass(frozen=True)
class Row:
    """One goal and what was measured. `held` None: nothing to compare, or not measured."""

    what: str
    goal: str
    measured: str
    held: bool | None = None
    note: str = ""


def at_most(what: str, limit: float, value: float, unit: str, note: str = "") -> Row:
    return Row(what, f"<= {limit:g}{unit}", f"{value:.3g}{unit}", value <= limit, note)


def at_least(what: str, limit: float, value: float, unit: str = "", note: str = "") -> Row:
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return Row(what, f">= {limit:,g}{unit}", f"{shown}{unit}", value >= limit, note)


def skipped(what: str, why: str) -> Row:
    return Row(what, "", "not measured", None, why)


def render(rows: Sequence[Row]) -> str:
    """The table; what falls short is marked."""
    marks = {True: "held", False: "SHORT", None: "-"}
    lines = [("what", "goal", "measured", "", "")]
    lines += [(row.what, row.goal, row.measured, marks[row.held], row.note) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    lines.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2], "-" * widths[3], ""))
    return "\n".join(
        "  ".join(
            text.ljust(width) for text, width in zip(line, [*widths, 0], strict=True)
        ).rstrip()
        for line in lines
    )
