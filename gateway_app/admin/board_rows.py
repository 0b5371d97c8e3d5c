"""The rows of the live board, as they are shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy, ngettext

from gateway_app.admin import cells, words
from gateway_app.models import Turn
from gateway_app.selectors import board as reads
from gateway_app.selectors.verdicts import Shares

GROUPS: Final = {
    "running": gettext_lazy("Running"),
    "queued": gettext_lazy("Queued"),
    "waiting": gettext_lazy("Waiting"),
    "failed": gettext_lazy("Failed"),
}
_GROUP_OF: Final = {
    "running": "running",
    "queued": "queued",
    "waiting_approval": "waiting",
    "held": "waiting",
    "failed": "failed",
}


@dataclass(frozen=True, slots=True)
class TurnRow:
    """`title` is empty for staff who may not view sessions. `action` names its button."""

    id: UUID
    group: str
    state: SafeString
    title: str
    session_id: UUID
    person: str
    where: SafeString | str
    since: SafeString | str
    doing: SafeString | str
    action: str


@dataclass(frozen=True, slots=True)
class CacheRow:
    owner: str
    where: SafeString | str
    agents: str
    size: SafeString
    bar: SafeString | str
    shares: Shares
    why: str
    seen: SafeString | str
    evicting: bool
    evicted: str

    @property
    def warm(self) -> int:
        return self.shares.percent("reuse")

    @property
    def caught_up(self) -> int:
        return self.shares.percent("catch_up")

    @property
    def loaded(self) -> int:
        return self.shares.percent("reload")

    @property
    def rebuilt(self) -> int:
        return self.shares.percent("rebuild")


@dataclass(frozen=True, slots=True)
class Filter:
    name: str
    text: str
    count: int
    current: bool


def duration(since: datetime | None) -> SafeString | str:
    """How long ago, in one unit; it is rewritten at each renewal."""
    if since is None:
        return cells.NOTHING
    seconds = max(0, int((timezone.now() - since).total_seconds()))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return cells.value(f"{seconds // size} {unit}")
    return cells.value(f"{seconds} s")


def _doing(turn: Any) -> SafeString | str:
    """What a run does now, by the last event of its log."""
    if turn.stop_requested_at:
        return gettext("stopping")
    if turn.state == "waiting_approval":
        return gettext("asks for approval")
    event = reads.last_event(turn.last_flush)
    kind = str(event.get("type", ""))
    if kind.startswith("TOOL_CALL"):
        name = event.get("toolCallName")
        if isinstance(name, str):
            return format_html("{} {}", gettext("tool"), cells.code(name))
        return gettext("running a tool")
    if kind.startswith("TEXT_MESSAGE"):
        return gettext("writing")
    if kind.startswith("REASONING"):
        return gettext("thinking")
    return gettext("waiting for the first word")


def _row(turn: Turn, doing: SafeString | str, action: str, *, named: bool) -> TurnRow:
    ended = turn.finished_at if turn.state == "failed" else None
    return TurnRow(
        id=turn.pk,
        group=_GROUP_OF[turn.state],
        state=cells.mark(words.word_of(words.TURN_STATES, turn.state)),
        title=(turn.session.title or gettext("Untitled")) if named else "",
        session_id=turn.session_id,
        person=turn.author.get_username() if turn.author else cells.NOTHING,
        where=cells.owner(turn.lease_owner),
        since=duration(ended or turn.started_at or turn.created_at),
        doing=doing,
        action=action,
    )


def _places(waiting: Sequence[Turn]) -> list[str]:
    """Each waiting turn's place in the queue of its session."""
    counts: dict[UUID, int] = {}
    for turn in waiting:
        counts[turn.session_id] = counts.get(turn.session_id, 0) + 1
    seen: dict[UUID, int] = {}
    told = []
    for turn in waiting:
        place = seen[turn.session_id] = seen.get(turn.session_id, 0) + 1
        told.append(
            gettext("%(place)d of %(count)d") % {"place": place, "count": counts[turn.session_id]}
        )
    return told


def turn_rows(*, named: bool) -> list[TurnRow]:
    """Open turns, then those that wait, then those that failed: three statements."""
    rows = [_row(turn, _doing(turn), "stop", named=named) for turn in reads.read_open()]
    waiting = reads.read_waiting()
    for turn, place in zip(waiting, _places(waiting), strict=True):
        rows.append(_row(turn, cells.value(place), "remove", named=named))
    for turn in reads.read_failed():
        why = gettext(words.ERRORS.get(turn.error_code, turn.error_code))
        rows.append(_row(turn, why, "retry" if turn.retryable else "", named=named))
    return rows


def filters(rows: Sequence[TurnRow], shown: str) -> list[Filter]:
    """One for all and one for each group, with how many there are."""
    found = [Filter("", gettext("All"), len(rows), not shown)]
    for name, text in GROUPS.items():
        count = sum(row.group == name for row in rows)
        found.append(Filter(name, str(text), count, name == shown))
    return found


def _size(count: int) -> str:
    if count < 1024 * 1024:
        return f"{count / 1024:.0f} KiB"
    return f"{number_format(f'{count / 1024 / 1024:.1f}')} MiB"


def cache_rows(caches: Sequence[reads.CacheView]) -> list[CacheRow]:
    """Every living process, as it is shown."""
    rows = []
    for one in caches:
        presence, reasons = one.presence, one.reasons.most_common()
        why = ", ".join(
            f"{gettext(words.REASONS.get(name, name))} {count}" for name, count in reasons
        )
        evicted = ""
        if presence.evict_done and not one.evicting:
            dropped = presence.evicted
            evicted = ngettext("%d agent dropped", "%d agents dropped", dropped) % dropped
        rows.append(
            CacheRow(
                owner=presence.owner,
                where=cells.owner(presence.owner),
                agents=f"{presence.cached_agents} / {presence.cached_agents_limit}",
                size=cells.value(_size(presence.cached_bytes)),
                bar=cells.verdict_bar(one.shares),
                shares=one.shares,
                why=why,
                seen=duration(presence.seen_at),
                evicting=one.evicting,
                evicted=evicted,
            )
        )
    return rows
