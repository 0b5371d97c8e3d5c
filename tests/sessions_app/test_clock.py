"""The transcript clock: no write path escapes it, and nothing turns it back."""

import json
import uuid

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from sessions_app import clock
from sessions_app.models import BLOCK, Message, Session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session() -> Session:
    created = Session.objects.create(key=f"agent:main:web:dm:1:{uuid.uuid4()}")
    created.refresh_from_db()
    return created


def add(session: Session, text: str = "hi", **fields: object) -> Message:
    message = Message.objects.create(
        session=session,
        kind=fields.pop("kind", "user"),
        parts=[{"type": "text", "text": text}],
        **fields,
    )
    message.refresh_from_db()
    return message


def clock_of(session: Session) -> tuple[int, int, int, int]:
    return Session.objects.values_list(
        "revision", "removed_revision", "message_count", "next_block"
    ).get(pk=session.pk)


def raw(sql: str, *params: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def test_it_installs_every_trigger_and_no_ddl_twice() -> None:
    assert clock.differences(connection) == []
    assert clock.install(connection) == []


def test_it_ticks_and_numbers_on_insert(session: Session) -> None:
    first, second = add(session), add(session)
    assert (first.position, second.position) == (BLOCK + 1, 2 * BLOCK + 1)
    assert (first.revision, second.revision) == (1, 2)
    assert clock_of(session) == (2, 0, 2, 3)


def test_it_takes_a_bare_insert_of_three_columns(session: Session) -> None:
    value = session.pk.hex if connection.vendor == "sqlite" else session.pk
    raw(
        f"INSERT INTO {clock.MESSAGE} (session_id, kind, parts)"
        " VALUES (%s, 'user', '[]'), (%s, 'user', '[]')",
        value,
        value,
    )
    rows = list(Message.objects.filter(session=session).order_by("position"))
    assert [row.position for row in rows] == [BLOCK + 1, 2 * BLOCK + 1]
    assert all(row.revision > 0 for row in rows)
    revision, removed, count, next_block = clock_of(session)
    assert (removed, count, next_block) == (0, 2, 3)
    assert revision == max(row.revision for row in rows)


def test_it_ticks_on_bulk_create_and_counts_ignored_conflicts(session: Session) -> None:
    kept = add(session)
    Message.objects.bulk_create(
        [
            Message(session=session, kind="user", parts=[], position=kept.position),
            Message(session=session, kind="user", parts=[], position=5 * BLOCK + 1),
        ],
        ignore_conflicts=True,
    )
    assert clock_of(session)[2:] == (2, 6)


@pytest.mark.parametrize(
    ("change", "moves"),
    [
        ({"parts": [{"type": "text", "text": "other"}]}, True),
        ({"state": "hidden"}, True),
        ({"kind": "notice"}, True),
        ({"sent_parts": []}, True),
        ({"feedback": 1}, False),
        ({"finish": "stop"}, False),
        ({"parts": [{"type": "text", "text": "hi"}]}, False),
    ],
)
def test_it_moves_exactly_with_visible_fields(session: Session, change: dict, moves: bool) -> None:
    message = add(session)
    Message.objects.filter(pk=message.pk).update(**change)
    message.refresh_from_db()
    expected = 2 if moves else 1
    assert clock_of(session) == (expected, 0, 1, 2)
    assert message.revision == expected


def test_it_counts_a_move_of_position_as_a_removal(session: Session) -> None:
    message = add(session)
    Message.objects.filter(pk=message.pk).update(position=9 * BLOCK + 5)
    revision, removed, count, next_block = clock_of(session)
    assert 1 < removed <= revision
    assert (count, next_block) == (1, 10)
    message.refresh_from_db()
    assert removed <= message.revision <= revision


def test_it_moves_a_row_between_sessions(session: Session) -> None:
    other = Session.objects.create(key="agent:main:web:dm:1:other")
    for _ in range(5):
        add(session)
    row = add(session)
    Message.objects.filter(pk=row.pk).update(session=other)
    row.refresh_from_db()
    assert clock_of(session)[1:3] == (clock_of(session)[0], 5)
    assert clock_of(other)[2] == 1
    assert row.revision == clock_of(other)[0]


def test_it_raises_the_removal_only_to_the_rows_own_revision_when_inactive(
    session: Session,
) -> None:
    first, _ = add(session), add(session)
    Message.objects.filter(pk=first.pk).update(state="compacted")
    first.refresh_from_db()
    add(session)
    Message.objects.filter(pk=first.pk).delete()
    revision, removed, count, _ = clock_of(session)
    assert (revision, removed, count) == (5, first.revision, 2)


def test_it_raises_the_removal_when_an_active_row_is_deleted(session: Session) -> None:
    first = add(session)
    add(session)
    Message.objects.filter(pk=first.pk).delete()
    assert clock_of(session)[:3] == (3, 3, 1)


def test_it_survives_a_stale_save_of_both_models(session: Session) -> None:
    row = add(session)
    stale_row, stale_session = Message.objects.get(pk=row.pk), Session.objects.get(pk=session.pk)
    Message.objects.filter(pk=row.pk).update(parts=[1])
    Session.objects.filter(pk=session.pk).update(event_seq=7, run_generation=3)
    add(session)
    before = clock_of(session)
    stale_session.title = "stale"
    stale_session.save()
    assert clock_of(session) == before
    fresh = Session.objects.get(pk=session.pk)
    assert (fresh.title, fresh.event_seq, fresh.run_generation) == ("stale", 7, 3)
    assert fresh.incarnation == session.incarnation != 0
    stale_row.save()
    row.refresh_from_db()
    assert row.revision == clock_of(session)[0] == before[0] + 1


@pytest.mark.parametrize("revision", [0, 1000])
def test_it_refuses_a_row_revision_from_outside(session: Session, revision: int) -> None:
    row = add(session)
    add(session)
    row.refresh_from_db()
    before = row.revision
    Message.objects.filter(pk=row.pk).update(revision=revision)
    row.refresh_from_db()
    assert before <= row.revision <= clock_of(session)[0]


def test_it_starts_a_new_incarnation_when_a_session_is_restored(
    session: Session, tmp_path: object
) -> None:
    add(session)
    add(session)
    path = f"{tmp_path}/dump.json"
    call_command("dumpdata", "sessions_app", output=path)
    Session.objects.get(pk=session.pk).delete()
    call_command("loaddata", path, verbosity=0)
    restored = Session.objects.get(pk=session.pk)
    assert restored.incarnation not in (0, session.incarnation)
    assert restored.message_count == 2
    assert restored.revision >= 2
    assert restored.next_block == 3


def test_it_ticks_back_nothing_on_rollback(session: Session) -> None:
    add(session)
    before = clock_of(session)
    with pytest.raises(RuntimeError), transaction.atomic():
        add(session)
        raise RuntimeError
    assert clock_of(session) == before


def test_it_refuses_parts_that_are_no_json(session: Session) -> None:
    value = session.pk.hex if connection.vendor == "sqlite" else session.pk
    with pytest.raises(Exception, match=r"(?i)json"):
        raw(
            f"INSERT INTO {clock.MESSAGE} (session_id, kind, parts) VALUES (%s, 'user', 'x')", value
        )
    assert clock_of(session)[0] == 0


def test_it_keeps_odd_json_exactly(session: Session) -> None:
    odd = [{"text": "nul \x00 lone \ud800", "big": 1e22, "zero": -0.0, "b": 1, "a": 2}]
    row = Message.objects.create(session=session, kind="user", parts=odd)
    row.refresh_from_db()
    assert json.dumps(row.parts) == json.dumps(odd)


def test_it_ticks_on_truncate(session: Session) -> None:
    if connection.vendor != "postgresql":
        raw(f"DELETE FROM {clock.MESSAGE}")
    add(session)
    if connection.vendor == "postgresql":
        raw(f"TRUNCATE {clock.MESSAGE}")
    else:
        raw(f"DELETE FROM {clock.MESSAGE}")
    revision, removed, count, _ = clock_of(session)
    assert (removed, count) == (revision, 0)


def test_it_reinstalls_what_was_lost(session: Session) -> None:
    name = "hermes_message_insert" if connection.vendor == "sqlite" else "hermes_message_stamp"
    on = "" if connection.vendor == "sqlite" else f" ON {clock.MESSAGE}"
    raw(f"DROP TRIGGER {name}{on}")
    assert clock.differences(connection) == [name]
    call_command("migrate", verbosity=0)
    assert clock.differences(connection) == []
