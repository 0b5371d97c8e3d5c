"""A conversation as a file: everything its people see, read at one moment, in constant memory.

JSONL: a line for the session, one for each turn that ended, one for each row. It holds nothing that
only staff or the model see, and nothing of this installation but ids, which an import replaces.
Markdown: the same rows for people to read.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Final, TypedDict
from uuid import UUID

import msgspec
from django.db import connections, transaction
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from django.utils.text import slugify

from gateway_app.models import Turn
from gateway_app.selectors.markdown import markdown_head, markdown_row
from gateway_app.selectors.sessions import own_session
from gateway_app.shapes import Shape, outcome_shape, timestamp, without_none
from sessions_app import database as db
from sessions_app.models import Message, Session
from sessions_app.selectors import visible_to_person

FORMAT: Final = "hermes.session"
VERSION: Final = 1
_AT_ONCE: Final = 100
_TITLE_LENGTH: Final = 60

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class _PartsText(TypedDict):
        parts_text: str

    # JSON as the text it is stored as: a raw writer's may be beyond Python's parser
    StoredRow = WithAnnotations[Message, _PartsText]
else:
    StoredRow = Message


@dataclass(frozen=True, slots=True)
class Export:
    """A file that was written and stands at its beginning; it is gone when it is closed."""

    file: IO[bytes]
    name: str
    content_type: str
    size_bytes: int


def export_own_session(*, user_id: int, session_id: UUID, form: str) -> Export:
    """The user's session as a file of `form`, a key of FORMS. Raises SessionNotFound."""
    return export_session(session=own_session(user_id, session_id), form=form)


def export_session(*, session: Session, form: str) -> Export:
    """The session as a file of `form`. Whether the caller may read it is the caller's to check."""
    write, suffix, content_type = FORMS[form]
    file = TemporaryFile()  # noqa: SIM115  the caller closes it
    try:
        with one_moment() as alias:
            for line in write(Session.objects.using(alias).get(pk=session.pk), alias):
                file.write(line)
        size_bytes = file.tell()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return Export(file, f"{_stem(session)}.{suffix}", content_type, size_bytes)


def _stem(session: Session) -> str:
    """A file's name without its suffix: letters of ASCII, digits and dashes, whatever the title."""
    words = slugify(session.title)[:_TITLE_LENGTH].strip("-_")
    return f"{words or 'conversation'}-{str(session.pk)[-8:]}"


@contextmanager
def one_moment() -> Iterator[str]:
    """One read transaction; its alias. On SQLite one that keeps no writer waiting."""
    alias = "reader" if db.is_sqlite() else "default"
    with transaction.atomic(using=alias):
        if not db.is_sqlite() and not connections[alias].savepoint_ids:
            with connections[alias].cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield alias


def _rows(session: Session, alias: str) -> Iterator[StoredRow]:
    """Rows that a person sees, in people's order."""
    rows: QuerySet[StoredRow] = (
        Message.objects.using(alias)
        .filter(visible_to_person(), session_id=session.pk)
        .select_related("author")
        .annotate(parts_text=Cast("parts", TextField()))
        .defer("parts", "sent_parts")
        .order_by("position", "pk")
    )
    return rows.iterator(chunk_size=_AT_ONCE)


# --- JSONL ---


def _jsonl(session: Session, alias: str) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    yield encode(_session_line(session)) + b"\n"
    turns = (
        Turn.objects.using(alias)
        .filter(session_id=session.pk, block__isnull=False, finished_at__isnull=False)
        .defer("content")
        .order_by("block", "pk")
    )
    for turn in turns.iterator(chunk_size=_AT_ONCE):
        yield encode(_turn_line(turn)) + b"\n"
    unseen = _unseen_parents(session, alias)
    for row in _rows(session, alias):
        yield encode(_row_line(row, unseen)) + b"\n"


def _unseen_parents(session: Session, alias: str) -> dict[UUID, UUID | None]:
    """The parent of each row that is not exported: there are few of them."""
    unseen = Message.objects.using(alias).filter(session_id=session.pk).exclude(visible_to_person())
    return dict(unseen.values_list("pk", "parent_id"))


def _session_line(session: Session) -> Shape:
    return {
        "type": "session",
        "format": FORMAT,
        "version": VERSION,
        "title": session.title,
        "agent": session.agent,
        "model": session.model,
        "pinned": session.pinned,
        "archived": session.archived,
        "createdAt": timestamp(session.created_at),
    }


def _turn_line(turn: Turn) -> Shape:
    where = {"type": "turn", "id": str(turn.pk), "block": turn.block}
    ended = {
        "finish": turn.finish or None,
        "createdAt": timestamp(turn.created_at),
        "finishedAt": timestamp(turn.finished_at),
    }
    return where | outcome_shape(turn) | without_none(ended)


def _row_line(row: StoredRow, unseen: dict[UUID, UUID | None]) -> Shape:
    parent, met = row.parent_id, 0
    while parent in unseen and met <= len(unseen):  # a raw writer may have made a circle
        parent, met = unseen[parent], met + 1
    return without_none(
        {
            "type": "message",
            "id": str(row.pk),
            "position": row.position,
            "kind": row.kind,
            "state": row.state,
            "parts": _one_line(row.parts_text),
            "parentId": None if parent in unseen else parent and str(parent),
            "turnId": row.turn_id and str(row.turn_id),
            "author": row.author.get_username() if row.author else None,
            "finish": row.finish or None,
            "feedback": row.feedback,
            "createdAt": timestamp(row.created_at),
        }
    )


def _one_line(parts: str) -> msgspec.Raw:
    """Stored JSON as it stands: line breaks, which a raw writer may have made, are only space."""
    return msgspec.Raw(re.sub(r"[\r\n]", " ", parts).encode("utf-8", "surrogatepass"))


# --- Markdown ---


def _markdown(session: Session, alias: str) -> Iterator[bytes]:
    yield markdown_head(session).encode("utf-8", "replace")
    for row in _rows(session, alias):
        yield markdown_row(row, row.parts_text).encode("utf-8", "replace")


Writer = Callable[[Session, str], Iterator[bytes]]

FORMS: Final[dict[str, tuple[Writer, str, str]]] = {
    "jsonl": (_jsonl, "jsonl", "application/x-ndjson"),
    "markdown": (_markdown, "md", "text/markdown; charset=utf-8"),
}
"""Name of a format: (what writes it, the file's suffix, its content type)."""
