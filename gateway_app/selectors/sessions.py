"""What a person's client is shown: list, history, snapshot. Ownership is checked here, once."""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, TypeVar
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Length

from gateway_app.event_store import fold_events, read_events, read_run_events
from gateway_app.models import ReadMark, Turn
from gateway_app.selectors.queue import OPEN, read_queue
from gateway_app.shapes import Shape, message_shape, session_shape, timestamp, turn_shapes
from sessions_app import database as db
from sessions_app.branches import read_branches
from sessions_app.errors import MessageInvalid, SessionNotFound
from sessions_app.models import Message, Session
from sessions_app.selectors import older_than, visible_to_person
from sessions_app.sentences import say

T = TypeVar("T")

Listed = tuple[int, Shape | None]
"""The owner of a session, and the session as it is listed; None: it was deleted."""

_FAILED: Final = frozenset({Turn.State.FAILED, Turn.State.INTERRUPTED})

PAGE_CHARACTERS: Final = 1_000_000
"""Text of one page of rows, unless a single row has more."""
_FIRST_YEAR: Final = 2


def own_session(user_id: int, session_id: UUID) -> Session:
    """The user's session. Raises SessionNotFound for a deleted or another person's one."""
    session = Session.objects.owned_by(user_id).filter(pk=session_id).first()
    if session is None:
        raise SessionNotFound
    return session


def listed(sessions: QuerySet[Session]) -> list[tuple[Session, Shape]]:
    """The sessions, each as its owner's lists show it, in one statement.

    The last turn that did not end well makes one `failed`; `unread` is a row that the owner may
    see, did not write, and has not seen.
    """
    return _shown(_annotated(sessions))


def own_listed(user_id: int, session_id: UUID) -> tuple[Session, Shape]:
    """The user's session, and as lists show it. Raises SessionNotFound as `own_session` does."""
    for session, shape in _listed_by_id([session_id]):
        if session.owner_id == user_id and session.deleted_at is None:
            return session, shape
    raise SessionNotFound


def read_listed(session_ids: Sequence[UUID]) -> dict[UUID, Listed]:
    """The sessions for their owners' lists: what is here goes to nobody else."""
    return {
        session.pk: (session.owner_id, None if session.deleted_at else shape)
        for session, shape in _listed_by_id(session_ids)
        if session.owner_id is not None
    }


def _listed_by_id(session_ids: Sequence[UUID]) -> list[tuple[Session, Shape]]:
    """As `listed`, of the sessions with these ids, whoever has them and deleted or not."""
    sql, first = _listed_statement(len(session_ids))
    return _shown(Session.objects.raw(sql, [*first, *map(db.db_uuid, session_ids)]))


@cache
def _listed_statement(count: int) -> tuple[str, tuple[Any, ...]]:
    """The statement of `listed` for so many ids, and its parameters before them.

    Every turn asks twice at least. To make this takes Django 2 ms, to carry it out 0.2.
    """
    sessions = Session.objects.filter(pk__in=[UUID(int=number) for number in range(count)])
    sql, params = _annotated(sessions).query.sql_with_params()
    return sql, params[: len(params) - count]


def _annotated(sessions: QuerySet[Session]) -> QuerySet[Any]:
    last = Turn.objects.filter(session_id=OuterRef("pk")).order_by("-created_at").values("state")
    seen = ReadMark.objects.filter(
        user_id=OuterRef("session__owner_id"), session_id=OuterRef("session_id")
    )
    news = Message.objects.filter(
        visible_to_person(),
        session_id=OuterRef("pk"),
        revision__gt=Coalesce(Subquery(seen.values("revision")[:1]), 0),
    ).exclude(kind="user", author_id=OuterRef("owner_id"))
    return sessions.annotate(last_turn=Subquery(last[:1]), news=Exists(news))


def _shown(found: Iterable[Any]) -> list[tuple[Session, Shape]]:
    return [
        (one, session_shape(one, failed=one.last_turn in _FAILED, unread=bool(one.news)))
        for one in found
    ]


def own_session_check(*, user_id: int, session_id: UUID) -> None:
    """Raises SessionNotFound unless the session is the user's."""
    if not Session.objects.owned_by(user_id).filter(pk=session_id).exists():
        raise SessionNotFound


def read_session(*, user_id: int, session_id: UUID) -> Shape:
    """The user's session, as clients see it."""
    return own_listed(user_id, session_id)[1]


def last_seq(*, user_id: int, session_id: UUID) -> int:
    """The last seq of the user's session."""
    return own_session(user_id, session_id).event_seq


@contextmanager
def one_snapshot() -> Iterator[None]:
    """Everything read inside is cut at one moment: one read transaction."""
    alias = db.alias()
    with transaction.atomic(using=alias):
        if db.connection().vendor == "postgresql":
            db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


def list_sessions(
    *,
    user_id: int,
    query: str | None,
    cursor: str | None,
    limit: int,
    archived: bool,
    pinned: bool | None = None,
) -> Shape:
    """A page of the user's sessions, newest activity first; `nextCursor` is null on the last."""
    # IN: of `NOT archived`, as Django writes False, SQLite makes no use in an index
    sessions = Session.objects.owned_by(user_id).filter(archived__in=[archived])
    if pinned is not None:
        sessions = sessions.filter(pinned=pinned)
    if query:
        sessions = sessions.filter(title__icontains=query.replace("\x00", ""))
    if cursor:
        sessions = sessions.filter(older_than("updated_at", *read_moment_cursor(cursor)))
    page = listed(sessions.order_by("-updated_at", "-pk")[: limit + 1])
    more = len(page) > limit
    page = page[:limit]
    last = page[-1][0] if page else None
    after = make_cursor(last.updated_at.isoformat(), str(last.pk)) if more and last else None
    return {"sessions": [shape for _, shape in page], "nextCursor": after}


def read_history(*, user_id: int, session_id: UUID, before: str | None, limit: int) -> Shape:
    """The page of rows before a cursor, oldest first, with the turns they belong to."""
    own_session(user_id, session_id)
    with one_snapshot():
        return _page(session_id, before, limit)


def read_snapshot(*, user_id: int, session_id: UUID, limit: int) -> Shape:
    """The session as it stands at one `seq`: rows, the running turn so far, the queue."""
    with one_snapshot():
        session, shape = own_listed(user_id, session_id)
        page = _page(session_id, None, limit)
        return {
            "sessionId": str(session_id),
            "seq": session.event_seq,
            "revision": session.revision,
            "session": shape,
            "messages": page["messages"],
            "turns": page["turns"],
            "before": page["before"],
            "hasMore": page["hasMore"],
            "running": _running(session_id),
            "queue": read_queue(session_id),
            "approvals": [],
        }


def can_replay(*, user_id: int, session_id: UUID, after: int) -> bool:
    """Whether the log still tells exactly what came after `after`.

    It does if it holds the event `after` itself (0: if it is complete).
    """
    session = own_session(user_id, session_id)
    if after > session.event_seq:
        return False
    if session.event_seq == 0:
        return True
    first = read_events(session_id, from_seq=max(after, 1), limit_rows=1)
    return bool(first) and first[0].seq == max(after, 1)


def _page(session_id: UUID, before: str | None, limit: int) -> Shape:
    rows = Message.objects.filter(visible_to_person(), session_id=session_id)
    if before:
        position, pk = _read_cursor(before, int)
        rows = rows.filter(Q(position__lt=position) | Q(position=position, pk__lt=pk))
    sizes = rows.order_by("-position", "-pk").values_list("pk", Length("parts"))[: limit + 1]
    wanted, more = _fitting(list(sizes), limit)
    page = list(Message.objects.filter(pk__in=wanted).order_by("position", "pk"))
    first = page[0] if page else None
    names = author_names([row.author_id for row in page if row.author_id is not None])
    turn_ids = {row.turn_id for row in page if row.turn_id is not None}
    turns = Turn.objects.filter(pk__in=turn_ids)
    branches = read_branches(session_id, page)
    return {
        "messages": [message_shape(row, names, branches.get(row.pk)) for row in page],
        "turns": turn_shapes(turns),
        "before": make_cursor(first.position, str(first.pk)) if more and first else None,
        "hasMore": more,
    }


def _fitting(sizes: Sequence[tuple[UUID, int]], limit: int) -> tuple[list[UUID], bool]:
    """The first rows that make a page: at most `limit`, at most PAGE_CHARACTERS, at least one."""
    wanted: list[UUID] = []
    total = 0
    for pk, size in sizes[:limit]:
        total += size
        if wanted and total > PAGE_CHARACTERS:
            break
        wanted.append(pk)
    return wanted, len(wanted) < len(sizes)


def read_unannounced(*, session_id: UUID, message_ids: Sequence[UUID]) -> list[Shape]:
    """Those rows that a person sees and that no run wrote: a run announces its own."""
    rows = Message.objects.filter(
        visible_to_person(), session_id=session_id, pk__in=message_ids, turn_id=None
    ).order_by("position", "pk")
    found = list(rows)
    names = author_names([row.author_id for row in found if row.author_id is not None])
    return [message_shape(row, names) for row in found]


def author_names(user_ids: Sequence[int]) -> dict[int, str]:
    if not user_ids:
        return {}
    users = get_user_model().objects.filter(pk__in=set(user_ids))
    return {user.pk: user.get_username() for user in users}


def _running(session_id: UUID) -> Shape | None:
    """The running turn and its run's events so far, folded."""
    turns = Turn.objects.filter(OPEN, session_id=session_id)
    turn = turns.values_list("pk", "generation", "started_at").first()
    if turn is None:
        return None
    pk, generation, started_at = turn
    logged = read_run_events(session_id, pk, generation)
    events = [json.loads(one.event) for one in fold_events(logged)]
    return {"turnId": str(pk), "startedAt": timestamp(started_at), "events": events}


def make_cursor(*values: object) -> str:
    """Where a page ended, as text that means nothing to anybody else."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode()


def _moment(text: Any) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or moment.year < _FIRST_YEAR:
        raise ValueError("A cursor's time has a zone, and a moment before it.")
    return moment.astimezone(UTC)


def read_moment_cursor(cursor: str) -> tuple[datetime, UUID]:
    """The (moment, id) of a cursor. Raises MessageInvalid for one that nobody was given."""
    return _read_cursor(cursor, _moment)


def _read_cursor(cursor: str, read: Callable[[Any], T]) -> tuple[T, UUID]:
    try:
        value, pk = json.loads(base64.urlsafe_b64decode(cursor))
        return read(value), UUID(pk)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as exc:
        raise MessageInvalid(say("This cursor is not one that this server gave out.")) from exc
