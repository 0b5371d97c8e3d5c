"""After a purge nothing of a conversation's text is left, wherever it stood."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.utils import timezone

from gateway_app import housekeeping
from gateway_app.database_threads import DatabaseLanes
from gateway_app.event_store import fold_run, insert_events
from sessions_app.models import Message, Session
from tests.factories import MessageFactory, SessionFactory, SuperuserFactory, TurnFactory

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "yellow-bird-of-the-mine"
TEXTS = [CANARY, f"{CANARY} " * 40, f"{CANARY} " * 5000]


def talk(text: str) -> Session:
    """A conversation that has `text` wherever text may stand, and where it stood before."""
    session = SessionFactory(title=text[:200])
    turn = TurnFactory(
        session=session,
        content=[{"type": "text", "text": text}],
        error_message=text[:500],
        finished_at=timezone.now(),
    )
    for piece in (text, f"again {text}", f"more {text}" * 2):
        row = MessageFactory(session=session, turn_id=turn.pk, text=piece)
        sent = [{"type": "text", "text": f"sent {piece}"}]
        Message.objects.filter(pk=row.pk).update(sent_parts=sent)
        Message.objects.filter(pk=row.pk).update(parts=[{"type": "text", "text": piece[::-1]}])
    for seq in range(2, 40):
        event = f'{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{text}"}}'
        insert_events(session.pk, turn.pk, 1, seq, [event.encode()])
    fold_run(session.pk, turn.pk)
    return session


def delete(client: Client, session: Session) -> None:
    """By the admin, which notes it; so long ago that nobody may restore it."""
    path = f"/admin/sessions_app/session/{session.pk}/delete/"
    assert client.post(path, {"post": "yes"}).status_code == 302
    long_ago = timezone.now() - timedelta(days=400)
    assert Session.objects.filter(pk=session.pk).update(deleted_at=long_ago)


def purge() -> None:
    job = housekeeping.JOBS["purge"]
    while found := job.find():
        job.act(found)


def stored() -> Iterator[str]:
    """Every value of every table."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            yield from (f"{table}: {value}" for row in cursor for value in row)


async def emptied(wal: Path) -> None:
    """The server's own checkpoints have emptied the write-ahead log."""
    lanes = DatabaseLanes(readers=1, postgres=1)
    lanes.start(checkpoint=True)
    try:
        async with asyncio.timeout(60):
            while await asyncio.to_thread(lambda: wal.stat().st_size):
                pass
    finally:
        await asyncio.to_thread(lanes.close)


def test_it_leaves_nothing_of_a_purged_conversation(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.force_login(SuperuserFactory())
    gone = []
    for text in TEXTS * 3:
        gone.append(talk(text))
        talk("what somebody else wrote " * 20)
    for session in gone:
        delete(client, session)
    assert any(CANARY in value for value in stored())
    with caplog.at_level("INFO"):
        purge()
    assert not [value for value in stored() if CANARY in value or CANARY[::-1] in value]
    assert Session.objects.count() == len(gone)
    noted = set(LogEntry.objects.values_list("object_id", "object_repr"))
    assert noted == {(str(session.pk), str(session.pk)) for session in gone}
    receipts = [record for record in caplog.records if record.msg == "A session was purged"]
    assert {record.__dict__["session"] for record in receipts} == {str(one.pk) for one in gone}
    if connection.vendor == "sqlite":
        file = Path(connection.settings_dict["NAME"])
        wal = file.with_name(f"{file.name}-wal")
        asyncio.run(emptied(wal))
        for bytes_ in (file.read_bytes(), wal.read_bytes()):
            assert CANARY.encode() not in bytes_
            assert CANARY[::-1].encode() not in bytes_
