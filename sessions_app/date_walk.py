"""Links from years to months to days of an admin list, made from its first and last date alone.

Django's own date hierarchy reads every row to find the periods that hold one.
"""

from calendar import monthrange
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from django.contrib.admin.views.main import ChangeList
from django.db.models import Model
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

SHOWN_YEARS: Final = 20


@dataclass(frozen=True, slots=True)
class Step:
    """`link` is empty for the period that is shown."""

    title: str
    link: str


@dataclass(frozen=True, slots=True)
class DateWalk:
    back: Step | None
    choices: list[Step]


def _bounds(model: type[Model], field: str) -> tuple[date, date] | None:
    """The first and the last date, by two reads of the field's index."""
    moments = model._default_manager.order_by(field).values_list(field, flat=True)
    first, last = moments.first(), moments.last()
    if first is None or last is None:
        return None
    return timezone.localdate(first), timezone.localdate(last)


def _month_title(day: date) -> str:
    return date_format(day, "YEAR_MONTH_FORMAT")


def _day_title(day: date) -> str:
    return date_format(day, "MONTH_DAY_FORMAT")


def walk_dates(changelist: ChangeList) -> DateWalk | None:
    """The periods below the chosen one that lie within the list's dates; None: it has no rows."""
    field = str(changelist.date_hierarchy)
    bounds = _bounds(changelist.model, field)
    if bounds is None:
        return None
    first, last = bounds
    names = [f"{field}__{unit}" for unit in ("year", "month", "day")]
    chosen: list[int] = []
    for name in names:
        if name not in changelist.params:
            break
        chosen.append(int(changelist.params[name]))

    def link(*numbers: int) -> str:
        lookups: dict[str, Any] = dict(zip(names, numbers, strict=False))
        return changelist.get_query_string(lookups, [f"{field}__"])

    def within(days: Iterable[date]) -> list[date]:
        return [day for day in days if first <= day <= last]

    match chosen:
        case [year, month, day]:
            back = Step(_month_title(date(year, month, 1)), link(year, month))
            return DateWalk(back, [Step(_day_title(date(year, month, day)), "")])
        case [year, month]:
            days = [date(year, month, n + 1) for n in range(monthrange(year, month)[1])]
            steps = [Step(_day_title(day), link(year, month, day.day)) for day in within(days)]
            return DateWalk(Step(str(year), link(year)), steps)
        case [year]:
            months = [
                date(year, n, 1)
                for n in range(1, 13)
                if (first.year, first.month) <= (year, n) <= (last.year, last.month)
            ]
            steps = [Step(_month_title(month), link(year, month.month)) for month in months]
            return DateWalk(Step(gettext("All dates"), link()), steps)
    years = range(max(first.year, last.year - SHOWN_YEARS + 1), last.year + 1)
    return DateWalk(None, [Step(str(year), link(year)) for year in years])
