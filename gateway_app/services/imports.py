"""An exported conversation becomes a new session of whoever imports it: whole, or not at all.

First every line is checked and nothing is written. Ids are new ones. Whom a file names as author is
not believed: a row of kind `user` is the importer's own, every other one has no author.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import IO, Any, Final
from uuid import UUID, uuid4

from django.db import transaction

from gateway_app import events
from gateway_app.config import gateway_config
from gateway_app.errors import ImportRefused
from gateway_app.event_store import LoggedEvents
from gateway_app.models import Agent, Turn
from gateway_app.selectors.sessions import own_listed
from gateway_app.services.agents import agent_slug
from gateway_app.services.queue import log_event
from gateway_app.services.sessions import clean_title, mark_seen
from gateway_app.shapes import Shape
from gateway_app.transfer_lines import AnyLine, MessageLine, SessionLine, TurnLine, read_line
from sessions_app import database as db
from sessions_app.imports import add_imported, begin_import, drop_import, finish_import
from sessions_app.keys import web_key
from sessions_app.models import Message, new_id
from sessions_app.sentences import say

_AT_ONCE: Final = 100
_LOW: Final = 2**32 - 1


@dataclass(slots=True)
class Import:
    """A file that was checked from its first line to its last. `ids`: new ones by those in it."""

    file: IO[bytes]
    head: SessionLine
    ids: dict[UUID, UUID] = field(default_factory=dict)
    _first_id: int = field(default_factory=lambda: new_id().int & ~_LOW)

    def add(self, old: UUID) -> None:
        """The next new id, above all before it: rows at one position keep their order."""
        self.ids[old] = UUID(int=self._first_id | len(self.ids))

    def lines(self) -> Iterator[AnyLine]:
        """The lines after the first, once more."""
        self.file.seek(0)
        return islice(_lines(self.file), 1, None)


def check_import(file: IO[bytes]) -> Import:
    """The file can be imported. Raises ImportRefused, which names the line that cannot."""
    file.seek(0)
    lines = enumerate(_lines(file), start=1)
    _, head = next(lines, (1, None))
    if not isinstance(head, SessionLine):
        raise ImportRefused(1, say("it is not the line of a session, with which an export begins."))
    found, position, active, rows = Import(file, head), 0, 0, False
    for number, line in lines:
        if isinstance(line, SessionLine) or (isinstance(line, TurnLine) and rows):
            raise ImportRefused(number, say("it stands after lines that it must stand before."))
        if line.id in found.ids:
            raise ImportRefused(number, say("%(id)s stands there twice.", id=str(line.id)))
        found.add(line.id)
        if isinstance(line, MessageLine):
            rows = True
            if line.position < position or (line.state == "active" and line.position <= active):
                raise ImportRefused(number, say("its position is not above those before it."))
            position = line.position
            active = position if line.state == "active" else active
    return found


def _lines(file: IO[bytes]) -> Iterator[AnyLine]:
    number, limit = 1, gateway_config().import_line_bytes
    while (line := read_line(file, number, limit)) is not None:
        yield line
        number += 1


def begin(found: Import, user_id: int) -> UUID:
    """The session's row, which no door leads to yet; its id."""
    head = found.head
    known = head.agent and Agent.objects.filter(slug=head.agent).exists()
    agent = head.agent if known else agent_slug(None)
    return begin_import(
        key=web_key(agent, user_id, uuid4()),
        owner_id=user_id,
        agent=agent,
        title=clean_title(head.title),
        model=head.model if all(head.model.partition(":")) else "",
        pinned=head.pinned,
        archived=head.archived,
        created_at=head.created_at,
    )


def batches(found: Import, session_id: UUID, user_id: int) -> Iterator[Callable[[], None]]:
    """Writes to be made one after another; each is short."""
    lines = found.lines()
    while batch := list(islice(lines, _AT_ONCE)):
        turns = [_turn(found, one, session_id) for one in batch if isinstance(one, TurnLine)]
        rows = [_row(found, one, session_id, user_id) for one in batch
                if isinstance(one, MessageLine)]  # fmt: skip

        def write(turns: list[Turn] = turns, rows: list[Message] = rows) -> None:
            with transaction.atomic(using=db.alias(), savepoint=False):
                Turn.objects.bulk_create(turns)
                add_imported(rows)

        yield write


def finish(session_id: UUID, user_id: int) -> tuple[Shape, LoggedEvents]:
    """The session is the user's, and has been seen by them.

    Its log begins with an event that makes whoever replays it read the transcript.
    """
    with transaction.atomic(using=db.alias(), savepoint=False):
        revision = finish_import(session_id)
        logged = log_event(session_id, events.rewritten(0, revision))
        mark_seen(user_id=user_id, session_id=session_id, revision=revision)
        return own_listed(user_id, session_id)[1], logged


def import_session(*, file: IO[bytes], user_id: int) -> Shape:
    """The file as a new session of the user's. Raises ImportRefused, and nothing is written."""
    found = check_import(file)
    session_id = begin(found, user_id)
    try:
        for write in batches(found, session_id, user_id):
            write()
    except BaseException:
        drop_import(session_id)
        raise
    return finish(session_id, user_id)[0]


def _turn(found: Import, line: TurnLine, session_id: UUID) -> Turn:
    """A turn that has ended. It has no author: nobody here has used what it took."""
    return Turn(
        id=found.ids[line.id],
        session_id=session_id,
        state=line.state,
        body_hash="",
        accepted_seq=0,
        created_at=line.created_at,
        started_at=line.created_at,
        finished_at=line.finished_at,
        block=line.block,
        runs=1,
        model=line.model,
        finish=line.finish,
        error_code=line.error.code if line.error else "",
        error_message=line.error.message if line.error else "",
        input_tokens=line.usage.input_tokens,
        cached_tokens=line.usage.cached_input_tokens,
        cache_write_tokens=line.usage.cache_write_input_tokens,
        output_tokens=line.usage.output_tokens,
        context_tokens=line.context_tokens,
        cost_usd=None if line.cost_usd is None else Decimal(f"{line.cost_usd:.8f}"),
        ttft_ms=line.ttft_ms,
        duration_ms=line.duration_ms,
        retry_of=line.retry_of and found.ids.get(line.retry_of),
        log_folded=True,
    )


def _row(found: Import, line: MessageLine, session_id: UUID, user_id: int) -> Message:
    parts: Any = line.parts  # the field takes JSON; the type checker's plugin knows it as text
    return Message(
        id=found.ids[line.id],
        session_id=session_id,
        position=line.position,
        kind=line.kind,
        state=line.state,
        parts=parts,
        parent_id=line.parent_id and found.ids.get(line.parent_id),
        turn_id=line.turn_id and found.ids.get(line.turn_id),
        author_id=user_id if line.kind == "user" and line.author is not None else None,
        finish=line.finish,
        feedback=line.feedback,
        created_at=line.created_at,
    )
