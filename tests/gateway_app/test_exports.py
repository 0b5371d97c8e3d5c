"""A conversation as a file: what its people see, nothing else, whatever stands in it."""

import json
import tracemalloc
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.utils.translation import override

from gateway_app.selectors.exports import FORMS, export_own_session, export_session
from sessions_app.errors import SessionNotFound
from sessions_app.models import BLOCK, Message, Session, new_id
from sessions_app.sentences import notice_part, say
from sessions_app.services import delete_session
from tests.factories import (
    MessageFactory,
    SessionFactory,
    StaffFactory,
    SuperuserFactory,
    TurnFactory,
    UserFactory,
)
from tests.statements import every_statement

pytestmark = pytest.mark.django_db(transaction=True)


def exported(session: Session, form: str = "jsonl") -> str:
    export = export_session(session=session, form=form)
    with export.file as file:
        text = file.read()
    assert len(text) == export.size_bytes
    return text.decode()


def lines(session: Session) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(session).splitlines()]


@pytest.fixture
def branched() -> Session:
    """Two branches, a stopped answer, an interrupted attempt, and rows for staff alone."""
    session = SessionFactory(title="Pillows & <b>feathers</b>")
    turn = TurnFactory(session=session, block=1)
    rows = {"session": session, "turn_id": turn.pk, "author": None}
    asked = MessageFactory(**rows | {"author": session.owner}, position=BLOCK + 1, text="Why?")
    old = MessageFactory(
        **rows, kind="assistant", position=BLOCK + 2, text="Old.", parent=asked, state="branched"
    )
    MessageFactory(**rows, kind="assistant", position=BLOCK + 3, text="Cut", state="superseded")
    meta = MessageFactory(**rows, kind="session_meta", position=BLOCK + 4, parent=old)
    MessageFactory(**rows, kind="note", position=BLOCK + 5, text="staff only")
    MessageFactory(session=session, position=BLOCK + 6, text="undone", state="hidden")
    MessageFactory(
        **rows, kind="assistant", position=2 * BLOCK + 1, text="New.", parent=meta, finish="stopped"
    )
    return session


def test_it_exports_the_rows_that_a_person_sees_with_branches_and_states(
    branched: Session,
) -> None:
    head, turn, *rows = lines(branched)
    assert (head["type"], head["format"], head["version"]) == ("session", "hermes.session", 1)
    assert head["title"] == branched.title
    assert (turn["type"], turn["state"]) == ("turn", "completed")
    assert turn["usage"] == {"inputTokens": 200, "cachedInputTokens": 150, "outputTokens": 20}
    texts = [(row["kind"], row["state"], row["parts"][0]["text"]) for row in rows]
    assert texts == [
        ("user", "active", "Why?"),
        ("assistant", "branched", "Old."),
        ("assistant", "superseded", "Cut"),
        ("assistant", "active", "New."),
    ]
    assert rows[0]["author"] == branched.owner.get_username()
    assert [row["turnId"] for row in rows] == [turn["id"]] * 4


def test_it_names_the_nearest_parent_that_is_in_the_file(branched: Session) -> None:
    asked, old, _, new = lines(branched)[2:]
    assert old["parentId"] == asked["id"]
    assert new["parentId"] == old["id"]


def test_it_ends_where_a_raw_writer_made_a_circle_of_parents(branched: Session) -> None:
    meta, note = Message.objects.filter(kind__in=["session_meta", "note"]).order_by("position")
    Message.objects.filter(pk=meta.pk).update(parent=note)
    Message.objects.filter(pk=note.pk).update(parent=meta)
    assert "parentId" not in lines(branched)[-1]


def test_it_writes_markdown_for_people(branched: Session) -> None:
    text = exported(branched, "markdown")
    assert text.startswith("# Pillows & \\<b\\>feathers\\</b\\>\n")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        f"## {branched.owner.get_username()}",
        "## Assistant (another branch)",
        "## Assistant (interrupted attempt)",
        "## Assistant (stopped)",
    ]
    for hidden in ("staff only", "undone", "session_meta"):
        assert hidden not in text


def test_it_writes_markdown_in_the_language_of_whoever_exports(branched: Session) -> None:
    who = say("The model provider")
    refusal = say("%(who)s sent an answer that cannot be read.", who=who)
    MessageFactory(session=branched, kind="notice", author=None, parts=[notice_part(refusal)])
    with override("de"):
        text = exported(branched, "markdown")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[1:] == [
        "## Assistent (anderer Zweig)",
        "## Assistent (abgebrochener Versuch)",
        "## Assistent (angehalten)",
        "## Hinweis",
    ]
    assert f"Agent `{branched.agent}`." in text
    assert refusal.translated() not in text
    with override("de"):
        assert refusal.translated() in text


def test_it_keeps_a_tool_result_in_its_block_whatever_it_holds() -> None:
    session = SessionFactory()
    call = {"type": "tool_call", "id": "1", "name": "read", "arguments": '{"path":"x"}'}
    result = {"type": "tool_result", "callId": "1", "content": "````\n# no heading\n````"}
    MessageFactory(session=session, kind="assistant", parts=[call])
    MessageFactory(session=session, kind="tool", parts=[result])
    text = exported(session, "markdown")
    assert 'Called `read`:\n\n```\n{"path":"x"}\n```' in text
    assert "`````\n````\n# no heading\n````\n`````" in text


@pytest.mark.parametrize(
    "parts",
    ['{"a":\r\n 1}', "[" * 995 + "]" * 995, '"\\ud800"', "[1e22,-0.0]", '[{"type":"text"}]'],
)
def test_it_survives_what_a_raw_writer_wrote(parts: str) -> None:
    session = SessionFactory()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sessions_app_message (session_id, kind, parts) VALUES (%s, 'user', %s)",
            [session.pk.hex if connection.vendor == "sqlite" else session.pk, parts],
        )
    export = export_session(session=session, form="jsonl")
    with export.file as file:
        _, row = file.read().splitlines()
    stored = parts.replace("\r", " ").replace("\n", " ").encode()
    assert b'"parts":' + stored in row
    assert exported(session, "markdown")


@pytest.mark.parametrize(
    ("title", "stem"),
    [
        ("../../etc/passwd", "etcpasswd"),
        ('a"b\r\nSet-Cookie: x', "ab-set-cookie-x"),
        ("Straße nach Süden", "strae-nach-suden"),
        ("日本語", "conversation"),
        ("x" * 200, "x" * 60),
    ],
)
def test_it_names_files_safely(title: str, stem: str) -> None:
    session = SessionFactory(title=title)
    export = export_session(session=session, form="jsonl")
    export.file.close()
    assert export.name == f"{stem}-{str(session.pk)[-8:]}.jsonl"


def test_it_exports_nobody_elses_session() -> None:
    session = SessionFactory()
    export_own_session(user_id=session.owner_id, session_id=session.pk, form="jsonl").file.close()
    for other in (UserFactory(), StaffFactory(), SuperuserFactory()):
        with pytest.raises(SessionNotFound):
            export_own_session(user_id=other.pk, session_id=session.pk, form="jsonl")
    with pytest.raises(SessionNotFound):
        export_own_session(user_id=session.owner_id, session_id=UUID(int=0), form="jsonl")
    delete_session(session_id=session.pk)
    with pytest.raises(SessionNotFound):
        export_own_session(user_id=session.owner_id, session_id=session.pk, form="jsonl")


@pytest.mark.parametrize("form", sorted(FORMS))
def test_it_takes_the_same_memory_however_long_the_conversation(form: str) -> None:
    session = SessionFactory()
    part = [{"type": "text", "text": "word " * 2000}]
    Message.objects.bulk_create(
        Message(id=new_id(), session=session, kind="user", position=place * BLOCK, parts=part)
        for place in range(1, 2001)
    )
    tracemalloc.start()
    try:
        export = export_session(session=session, form=form)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    export.file.close()
    assert export.size_bytes > 20_000_000
    assert peak < 5_000_000


@pytest.mark.parametrize("form", sorted(FORMS))
def test_it_reads_long_conversations_by_the_same_statements(form: str) -> None:
    counts = []
    for number in (3, 450):
        session = SessionFactory()
        Message.objects.bulk_create(
            Message(
                id=new_id(), session=session, kind="user", position=place * BLOCK + 1,
                author=session.owner, parts=[{"type": "text", "text": f"row {place}"}],
            )
            for place in range(1, number + 1)
        )  # fmt: skip
        with every_statement() as statements:
            text = exported(session, form)
        assert f"row {number}" in text
        counts.append(len(statements.found))
    assert counts[0] == counts[1] <= 4
