"""Reads of the transcript page: a fixed number of statements, whatever the page holds."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypedDict
from uuid import UUID

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from gateway_app.models import Turn
from sessions_app.models import BLOCK, Message, Session

PAGE_ROWS: Final = 200
PAGE_TURNS: Final = 2 * PAGE_ROWS

Cursor = tuple[int, UUID]
"""(position, id): the people's order."""


if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class _StoredParts(TypedDict):
        parts_text: str
        sent_text: str | None

    class _StoredContent(TypedDict):
        content_text: str | None

    # JSON as the text it is stored as: a raw writer's may be beyond Python's parser
    StoredMessage = WithAnnotations[Message, _StoredParts]
    StoredTurn = WithAnnotations[Turn, _StoredContent]
else:  # the alias takes its two arguments from the type checker alone
    StoredMessage, StoredTurn = Message, Turn


@dataclass(frozen=True, slots=True)
class RowPage:
    """Rows in order. `floor` is the block of the row before them; -1: they begin the transcript."""

    rows: list[StoredMessage]
    floor: int
    has_later: bool

    @property
    def has_earlier(self) -> bool:
        return self.floor >= 0


def parse_cursor(text: str) -> Cursor:
    """The cursor in `text`. Raises ValueError."""
    position_text, _, row_id = text.partition(".")
    position = int(position_text)
    if not 0 <= position < 2**63:
        raise ValueError("No row stands at this position.")
    return position, UUID(row_id)


def cursor_of(message: Message) -> str:
    return f"{message.position}.{message.pk}"


def _rows(session: Session) -> QuerySet[StoredMessage]:
    return (
        Message.objects.filter(session=session)
        .select_related("author")
        .defer("parts", "sent_parts")
        .annotate(parts_text=Cast("parts", TextField()), sent_text=Cast("sent_parts", TextField()))
    )


def read_rows_after(session: Session, cursor: Cursor) -> RowPage:
    """The PAGE_ROWS rows that follow the cursor's."""
    position, row_id = cursor
    beyond = Q(position__gte=position) & (Q(position__gt=position) | Q(pk__gt=row_id))
    found = list(_rows(session).filter(beyond).order_by("position", "pk")[: PAGE_ROWS + 1])
    floor = position // BLOCK if position else -1
    return RowPage(found[:PAGE_ROWS], floor, has_later=len(found) > PAGE_ROWS)


def read_rows_before(session: Session, cursor: Cursor | None) -> RowPage:
    """The PAGE_ROWS rows that stand before the cursor's; without one, the transcript's last."""
    rows = _rows(session)
    if cursor:
        position, row_id = cursor
        rows = rows.filter(
            Q(position__lte=position) & (Q(position__lt=position) | Q(pk__lt=row_id))
        )
    found = list(rows.order_by("-position", "-pk")[: PAGE_ROWS + 1])
    floor = found[PAGE_ROWS].position // BLOCK if len(found) > PAGE_ROWS else -1
    return RowPage(found[:PAGE_ROWS][::-1], floor, has_later=cursor is not None)


def read_turns(session: Session, page: RowPage) -> list[Turn]:
    """Turns whose rows are on the page and those that began among them and left no row."""
    begun = Q(block__gt=page.floor)
    if page.has_later and page.rows:
        begun &= Q(block__lte=page.rows[-1].position // BLOCK)
    ids = {row.turn_id for row in page.rows if row.turn_id}
    found = Turn.objects.filter(Q(pk__in=ids) | begun, session=session).defer("content")
    return list(found.order_by("block", "created_at")[:PAGE_TURNS])


def number_turns(session: Session, page: RowPage, turns: list[Turn]) -> dict[UUID, int]:
    """Each turn's number among the session's begun turns, from 1."""
    before = Turn.objects.filter(session=session, block__lte=page.floor).count()
    begun = [turn for turn in turns if turn.block is not None and turn.block > page.floor]
    numbers = {turn.pk: number for number, turn in enumerate(begun, start=before + 1)}
    return numbers | {turn.pk: before for turn in turns if turn.block == page.floor}


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A turn's last request: when its run began, and at which revision the transcript was sent."""

    block: int
    revision: int
    started_at: datetime


def read_sent_requests(session: Session, page: RowPage) -> list[SentRequest]:
    """The requests that sent the page's rows first, by block: those of its turns and one more."""
    if not page.rows:
        return []
    first, last = (row.position // BLOCK for row in (page.rows[0], page.rows[-1]))
    sent = Turn.objects.filter(
        session=session, sent_revision__isnull=False, started_at__isnull=False, block__gte=first
    ).order_by("block")
    found = []
    columns = sent.values_list("block", "sent_revision", "started_at")
    for block, revision, started_at in columns[: PAGE_TURNS + 1]:
        assert block is not None and revision is not None and started_at is not None
        found.append(SentRequest(block, revision, started_at))
        if block > last:
            break
    return found


def read_waiting(session: Session) -> list[StoredTurn]:
    """Accepted turns without rows, in the order in which they will run."""
    queue = Turn.objects.filter(session=session, state__in=["queued", "held"], block=None)
    texts = queue.select_related("author").defer("content")
    annotated = texts.annotate(content_text=Cast("content", TextField()))
    return list(annotated.order_by("-priority", "accepted_seq")[:PAGE_TURNS])
