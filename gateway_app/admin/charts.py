"""The board's charts as shapes for an SVG: measured here, drawn by a template, without script."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.formats import date_format, number_format
from django.utils.translation import gettext, ngettext

from gateway_app.admin import cells
from gateway_app.selectors.board import DayTokens, HourTimes

WIDTH: Final = 480
HEIGHT: Final = 150
LEFT: Final = 56
"""Room for the scale's longest text, `500 ms`, in any font."""
BOTTOM: Final = 22
TOP: Final = 8
RIGHT: Final = 34
EDGE: Final = 6
"""Room beside the last bar for its label, which is wider."""
LABEL_HEIGHT: Final = 12


@dataclass(frozen=True, slots=True)
class Rect:
    css: str
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True, slots=True)
class Label:
    x: str
    y: str
    text: str
    css: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    css: str
    points: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Shapes in a box of WIDTH x HEIGHT; `sentence` says the same to those who do not see it."""

    sentence: str
    rows: Sequence[Sequence[str]]
    head: Sequence[str]
    grid: Sequence[Label]
    labels: Sequence[Label]
    bars: Sequence[Rect] = ()
    lines: Sequence[Line] = ()
    empty: bool = False
    left: int = LEFT


def _top(value: float) -> float:
    """A round number that is not below the value: 1, 2 or 5 with zeros."""
    if value <= 0:
        return 1
    size: float = 10 ** math.floor(math.log10(value))
    return next(step * size for step in (1, 2, 5, 10) if step * size >= value)


def _y(value: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)


def _grid(top: float, texts: Sequence[str]) -> list[Label]:
    values = (0, top / 2, top)
    return [
        Label(str(LEFT - 6), f"{_y(value, top):.1f}", text)
        for value, text in zip(values, texts, strict=True)
    ]


def tokens_chart(days: Sequence[DayTokens]) -> Chart:
    """Tokens a day, stacked: from the cache, new, written."""
    top = _top(max((day.cached + day.new + day.output for day in days), default=0))
    step = (WIDTH - LEFT - EDGE) / len(days)
    bars, labels = [], []
    for number, day in enumerate(days):
        x, stacked = LEFT + number * step + step * 0.12, 0
        for css, count in (("cached", day.cached), ("new", day.new), ("output", day.output)):
            if count:
                upper = _y(stacked + count, top)
                height = _y(stacked, top) - upper
                bars.append(
                    Rect(css, f"{x:.1f}", f"{upper:.1f}", f"{step * 0.76:.1f}", f"{height:.1f}")
                )
                stacked += count
        if number % 3 == len(days) % 3 - 1 or number == len(days) - 1:
            middle = f"{x + step * 0.38:.1f}"
            labels.append(Label(middle, str(HEIGHT - 6), date_format(day.day, _day())))
    cached, read = sum(day.cached for day in days), sum(day.cached + day.new for day in days)
    percent = cells.cached_percent(read, cached)
    written = sum(day.output for day in days)
    told = {
        "read": cells.count(read),
        "written": cells.count(written),
        "days": len(days),
        "percent": percent,
    }
    sentence = gettext("%(read)s tokens in and %(written)s out in %(days)s days")
    if percent is not None:
        sentence = gettext(
            "%(read)s tokens in and %(written)s out in %(days)s days, %(percent)s %% of the input"
            " from the cache"
        )
    return Chart(
        sentence=sentence % told,
        head=(gettext("Day"), gettext("From cache"), gettext("New input"), gettext("Output"),
              gettext("Turns")),
        rows=[
            (date_format(day.day, _day()),
             *map(cells.count, (day.cached, day.new, day.output, day.turns)))
            for day in days
        ],
        grid=_grid(top, ("0", cells.short_count(int(top / 2)), cells.short_count(int(top)))),
        labels=labels,
        bars=bars,
        empty=not (read or written),
    )  # fmt: skip


def _day() -> str:
    # translators: a date as Django's date filter writes it
    return gettext("j M")


def _time(ms: int | None) -> str:
    return "" if ms is None else cells.time_text(ms)


def _scale(seconds: float) -> str:
    if seconds < 1:
        return f"{number_format(f'{seconds * 1000:g}')} ms"
    return f"{number_format(f'{seconds:g}')} s"


def _path(values: Sequence[int | None], top: float) -> list[str]:
    """Polylines through the values that are known, one for each stretch without a gap."""
    step = (WIDTH - LEFT - RIGHT) / max(1, len(values) - 1)
    stretches: list[list[str]] = [[]]
    for number, value in enumerate(values):
        if value is None:
            stretches.append([])
        else:
            stretches[-1].append(f"{LEFT + number * step:.1f},{_y(value / 1000, top):.1f}")
    # a lone hour is drawn as a short stroke, or it would not be seen
    return [
        " ".join(points if len(points) > 1 else [points[0], _beside(points[0])])
        for points in stretches
        if points
    ]


def _beside(point: str) -> str:
    x, _, y = point.partition(",")
    return f"{float(x) + 3:.1f},{y}"


def times_chart(hours: Sequence[HourTimes]) -> Chart:
    """Time to the first word by hour: the half that is fastest, and all but one in twenty."""
    p50, p95 = [hour.p50_ms for hour in hours], [hour.p95_ms for hour in hours]
    top = _top(max((value for value in p95 if value is not None), default=0) / 1000)
    lines = [Line("p95", points) for points in _path(p95, top)]
    lines += [Line("p50", points) for points in _path(p50, top)]
    step = (WIDTH - LEFT - RIGHT) / max(1, len(hours) - 1)
    labels = [
        Label(f"{LEFT + number * step:.1f}", str(HEIGHT - 6), date_format(hour.hour, "H:i"))
        for number, hour in enumerate(hours)
        if number % 6 == 0
    ]
    labels += _names(p50[-1], p95[-1], top)
    return Chart(
        sentence=_times_sentence(hours),
        head=(gettext("Hour"), gettext("Half within"), gettext("95 %% within") % (),
              gettext("Turns")),
        rows=[
            (date_format(hour.hour, f"{_day()}, H:i"), _time(hour.p50_ms), _time(hour.p95_ms),
             str(hour.turns))
            for hour in hours
        ],
        grid=_grid(top, ("0", _scale(top / 2), _scale(top))),
        labels=labels,
        lines=lines,
        empty=not lines,
    )  # fmt: skip


def _names(p50: int | None, p95: int | None, top: float) -> list[Label]:
    """The lines' names beside their ends, the upper one moved up where they would overlap."""
    if p50 is None or p95 is None:
        return []
    lower, upper = _y(p50 / 1000, top), _y(p95 / 1000, top)
    upper = min(upper, lower - LABEL_HEIGHT)
    x = str(WIDTH - RIGHT + 6)
    return [
        Label(x, f"{y + 4:.1f}", name, f"h-chart-name h-chart-{name}")
        for name, y in (("p50", lower), ("p95", upper))
    ]


def _times_sentence(hours: Sequence[HourTimes]) -> str:
    told = [hour for hour in hours if hour.turns]
    if not told:
        return gettext("No turn in the last 24 hours told its time to the first word")
    last = told[-1]
    sentence = ngettext(
        "From %(at)s: half within %(half)s, 95 %% within %(most)s, %(count)d turn",
        "From %(at)s: half within %(half)s, 95 %% within %(most)s, %(count)d turns",
        last.turns,
    )
    return sentence % {
        "at": date_format(last.hour, "H:i"),
        "half": _time(last.p50_ms),
        "most": _time(last.p95_ms),
        "count": last.turns,
    }
