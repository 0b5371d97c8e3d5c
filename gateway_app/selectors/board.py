"""What the live board shows: turns that need an eye, processes, and how the last days went.

A fixed number of statements, each bounded by an index and a limit.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from gateway_app.config import gateway_config
from gateway_app.models import Event, Presence, Turn
from gateway_app.selectors.queue import OPEN, WAITING
from gateway_app.selectors.verdicts import STANDING, Shares
from sessions_app.models import BLOCK, Message

SHOWN_TURNS: Final = 100
SHOWN_FAILED: Final = 20
DAY_TURNS: Final = 20_000
"""The newest turns of the last 24 hours that times are counted of, when the page opens."""
SHARE_TURNS: Final = 5_000
"""Those that shares are counted of, at every renewal."""
CHART_DAYS: Final = 14


def _live_turns() -> QuerySet[Turn]:
    turns = Turn.objects.filter(session__deleted_at__isnull=True)
    return turns.select_related("session", "author").defer("content")


def read_open() -> list[Any]:
    """Turns that run or wait for an approval, oldest first, each with its own last flush."""
    own = Event.objects.filter(session_id=OuterRef("session_id"), turn_id=OuterRef("pk"))
    last = own.order_by("-seq")  # what others wrote between, such as the queue, says nothing of it
    turns = _live_turns().filter(OPEN).annotate(last_flush=Subquery(last.values("body")[:1]))
    return list(turns.order_by("started_at")[:SHOWN_TURNS])


def read_waiting() -> list[Turn]:
    """Turns that wait to run or for an operator, in the order of each session's queue."""
    waiting = _live_turns().filter(WAITING)
    return list(waiting.order_by("session_id", "-priority", "accepted_seq")[:SHOWN_TURNS])


def retryable_turns() -> QuerySet[Turn]:
    """Failed turns that nothing followed: a retry puts aside all that stands after the question."""
    later = Q(block__gt=OuterRef("block"))
    waiting = Q(state__in=["queued", "held", "running", "waiting_approval"])
    turns = Turn.objects.filter(later | waiting, session_id=OuterRef("session_id"))
    rows = Message.objects.filter(
        session_id=OuterRef("session_id"),
        state="active",
        position__gte=(OuterRef("block") + 1) * BLOCK,
    )
    failed = Turn.objects.filter(
        state="failed", block__isnull=False, session__deleted_at__isnull=True
    )
    return failed.exclude(Exists(turns)).exclude(Exists(rows))


def read_failed() -> list[Any]:
    """Turns that failed within the last 24 hours, newest first, and whether each can be retried."""
    failed = _live_turns().filter(state="failed", created_at__gte=_yesterday())
    failed = failed.annotate(retryable=Exists(retryable_turns().filter(pk=OuterRef("pk"))))
    return list(failed.order_by("-created_at")[:SHOWN_FAILED])


def last_event(body: str | None) -> dict[str, Any]:
    """The last event of a flush as it stands in the log; empty if there is none to read."""
    try:
        event = json.loads(body or "[]")[-1][1]
    except (ValueError, LookupError, TypeError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


@dataclass(slots=True)
class CacheView:
    """One process: its row, and what the guard said of its turns in the last 24 hours."""

    presence: Presence
    shares: Shares = field(default_factory=Shares)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def baselines(self) -> dict[UUID, int]:
        return {UUID(one): number for one, number in json.loads(self.presence.baselines).items()}

    @property
    def evicting(self) -> bool:
        return self.presence.evict_asked > self.presence.evict_done


def read_present() -> list[Presence]:
    """Processes that told of themselves within a lease's time, by name."""
    since = timezone.now() - timedelta(seconds=gateway_config().lease_s)
    return list(Presence.objects.filter(seen_at__gte=since).order_by("owner"))


@dataclass(frozen=True, slots=True)
class Caches:
    """Every living process. `cut`: more turns ran in the last 24 hours than were counted."""

    processes: list[CacheView]
    cut: bool


def read_caches() -> Caches:
    """Every living process with the verdicts of its turns: two statements."""
    present = [CacheView(presence) for presence in read_present()]
    newest = _own_turns().filter(created_at__gte=_yesterday()).order_by("-created_at")
    told = list(newest.values_list("lease_owner", STANDING, "worst_reason", "reason")[:SHARE_TURNS])
    counted: dict[str, Counter[str]] = {}
    reasons: dict[str, Counter[str]] = {}
    for owner, standing, worst, reason in told:
        if standing:
            counted.setdefault(owner, Counter())[standing] += 1
        if standing == "rebuild":
            reasons.setdefault(owner, Counter())[worst or reason] += 1
    for one in present:
        one.shares = Shares(**counted.get(one.presence.owner, Counter()))
        one.reasons = reasons.get(one.presence.owner, Counter())
    return Caches(present, cut=len(told) == SHARE_TURNS)


def read_baselines(session_id: UUID) -> dict[str, int]:
    """At which revision each living process holds the session's agent, by the process's name."""
    found = {}
    for presence in read_present():
        number = json.loads(presence.baselines).get(session_id.hex)
        if number is not None:
            found[presence.owner] = number
    return found


@dataclass(frozen=True, slots=True)
class DayTokens:
    """The tokens of one day's turns. Input of unknown caching counts as new."""

    day: date
    cached: int
    new: int
    output: int
    turns: int


def read_days() -> list[DayTokens]:
    """The last CHART_DAYS days, oldest first, days without turns included: one statement."""
    today = timezone.localdate()
    first = today - timedelta(days=CHART_DAYS - 1)
    since = timezone.make_aware(datetime.combine(first, datetime.min.time()))
    days = _own_turns().filter(created_at__gte=since).annotate(day=TruncDate("created_at"))
    sums = days.values("day").annotate(
        input=Sum("input_tokens"), cached=Sum("cached_tokens"), output=Sum("output_tokens"),
        turns=Count("pk"),
    )  # fmt: skip
    found: dict[date, Any] = {row["day"]: row for row in sums.order_by("day")}
    shown = []
    for number in range(CHART_DAYS):
        day = first + timedelta(days=number)
        row: dict[str, Any] = found.get(day) or {}
        cached = row.get("cached") or 0
        new = max(0, (row.get("input") or 0) - cached)
        shown.append(DayTokens(day, cached, new, row.get("output") or 0, row.get("turns") or 0))
    return shown


@dataclass(frozen=True, slots=True)
class HourTimes:
    """Time to the first token of an hour's turns; None where none has told."""

    hour: datetime
    p50_ms: int | None
    p95_ms: int | None
    turns: int


def _percentile(ordered: list[int], share: float) -> int | None:
    """The smallest value that so large a share of them does not exceed."""
    if not ordered:
        return None
    return ordered[max(0, -int(-len(ordered) * share // 1) - 1)]


def read_hours() -> list[HourTimes]:
    """The last 24 hours, oldest first: one statement."""
    turns = _own_turns().filter(created_at__gte=_yesterday(), ttft_ms__isnull=False)
    told = turns.order_by("-created_at").values_list("created_at", "ttft_ms")[:DAY_TURNS]
    now = timezone.localtime().replace(minute=0, second=0, microsecond=0)
    by_hour: dict[datetime, list[int]] = {}
    for at, ttft in told:
        assert ttft is not None
        hour = timezone.localtime(at).replace(minute=0, second=0, microsecond=0)
        by_hour.setdefault(hour, []).append(ttft)
    hours = []
    for number in range(23, -1, -1):
        hour = now - timedelta(hours=number)
        ordered = sorted(by_hour.get(hour, []))
        p50, p95 = _percentile(ordered, 0.5), _percentile(ordered, 0.95)
        hours.append(HourTimes(hour, p50, p95, len(ordered)))
    return hours


def _own_turns() -> QuerySet[Turn]:
    """Turns that ran here. Imported ones have no message of a client."""
    return Turn.objects.filter(client_message_id__isnull=False)


def _yesterday() -> datetime:
    return timezone.now() - timedelta(hours=24)
