"""The list of sessions: what each line says, what it can be narrowed to, restoring."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.utils import timezone

from gateway_app.models import Event, Turn
from gateway_app.selectors.session_lines import snippet_of
from gateway_app.templatetags.history import told_change
from sessions_app.fields import dump_json
from sessions_app.models import Message, Session
from tests.factories import (
    MessageFactory,
    QueuedTurnFactory,
    SessionFactory,
    StaffFactory,
    TurnFactory,
    UserFactory,
)
from tests.gateway_app.admin.conftest import logged_in, page_of
from tests.statements import every_statement, sqlite_plan

LIST = "/admin/sessions_app/session/"

pytestmark = pytest.mark.django_db


def lines(client: Client, query: str = "") -> dict[str, str]:
    """The text of each row by its title."""
    html = client.get(LIST + query).content.decode()
    body = re.search(r"<tbody>.*</tbody>", html, re.DOTALL)
    rows = re.findall(r"<tr>.*?</tr>", body[0] if body else "", re.DOTALL)
    texts = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]
    titles = re.findall(r'field-titled">(?:<a[^>]*>)?<bdi>([^<]*)', "".join(rows))
    return dict(zip(titles, texts, strict=True))


def soon() -> dict[str, object]:
    return {"lease_owner": "web:1:x", "lease_expires_at": timezone.now() + timedelta(seconds=15)}


def test_it_says_how_warm_a_session_was_and_what_it_cost(ops_client, owner):
    session = SessionFactory(title="Winter tyres", owner=owner, model="openai:gpt-5")
    MessageFactory(session=session, text="Which width?")
    MessageFactory(session=session, kind="assistant", text="205 fits,\nI think.")
    MessageFactory(session=session, kind="note", text="A private note")
    for verdict in ("new", "reuse", "reuse", "reuse", "catch_up"):
        TurnFactory(session=session, verdict=verdict, cost_usd=Decimal("0.02"),
                    input_tokens=1000, cached_tokens=900)  # fmt: skip
    TurnFactory(session=session, verdict="rebuild", input_tokens=5000, cached_tokens=None)
    [line] = lines(ops_client).values()
    for shown in ("Winter tyres 205 fits, I think. ann main, openai:gpt-5", "Idle", "60 %",
                  "of 6 turns", "90 %", "$0.10", "just now"):  # fmt: skip
        assert shown in line
    assert "private" not in line
    html = ops_client.get(LIST).content.decode()
    assert 'aria-label="3 warm, 1 caught up, 1 rebuilt"' in html


def test_it_shows_no_number_that_is_not_known(ops_client, session):
    TurnFactory(session=session, verdict="new", cached_tokens=None)
    [line] = lines(ops_client).values()
    assert "%" not in line
    assert "$" not in line


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"state": "failed", "error_code": "model_rate_limited"}, "Failed: rate limit"),
        ({"state": "interrupted"}, "Interrupted"),
        ({"state": "stopped"}, "Idle"),
        ({"state": "waiting_approval", "finished_at": None}, "Waiting for approval"),
    ],
)
def test_it_says_how_the_last_turn_stands(ops_client, session, fields, said):
    TurnFactory(session=session)
    TurnFactory(session=session, **fields)
    assert said in lines(ops_client)[session.title]


def test_it_says_what_runs_and_how_much_waits(ops_client):
    runs, waits = SessionFactory(title="runs", **soon()), SessionFactory(title="waits")
    for session in (runs, runs, waits):
        QueuedTurnFactory(session=session)
    assert "Running, 2 queued" in lines(ops_client)["runs"]
    assert "1 queued" in lines(ops_client)["waits"]
    assert "h-dot" in ops_client.get(LIST).content.decode()


def test_it_narrows_to_states_verdicts_and_failures(ops_client):
    calm = TurnFactory(session=SessionFactory(title="calm"))
    TurnFactory(session=SessionFactory(title="rebuilt"), worst_verdict="rebuild")
    TurnFactory(session=SessionFactory(title="caught"), verdict="catch_up")
    TurnFactory(session=SessionFactory(title="failed"), state="failed")
    mended = SessionFactory(title="mended")
    TurnFactory(session=mended, state="failed")
    TurnFactory(session=mended)
    asks = SessionFactory(title="asks")
    TurnFactory(session=asks, state="waiting_approval", finished_at=None)
    SessionFactory(title="runs", **soon())
    assert set(lines(ops_client, "?had=rebuild")) == {"rebuilt"}
    assert set(lines(ops_client, "?had=catch_up")) == {"caught"}
    assert set(lines(ops_client, "?is=failed")) == {"failed"}
    assert set(lines(ops_client, "?failed=yes")) == {"failed", "mended"}
    assert calm.session.title in lines(ops_client, "?failed=no")
    assert "failed" not in lines(ops_client, "?failed=no")
    assert set(lines(ops_client, "?is=waiting")) == {"asks"}
    assert set(lines(ops_client, "?is=running")) == {"runs"}
    text = page_of(ops_client.get(LIST)).text
    for offered in ("By state", "By agent", "By verdict", "Had a rebuild", "Has a failed turn"):
        assert offered in text


def test_it_deletes_so_that_whoever_watches_is_told(ops_client, session):
    ops_client.post(f"{LIST}{session.pk}/delete/", {"post": "yes"})
    session.refresh_from_db()
    assert session.deleted_at is not None
    event = Event.objects.get(session=session)
    assert "hermes.rewritten" in event.body


def gone(**fields) -> Session:
    return SessionFactory(deleted_at=timezone.now() - timedelta(hours=2), **fields)


def restore(client: Client, *sessions: Session):
    data = {"action": "restore", "_selected_action": [str(one.pk) for one in sessions]}
    return client.post(f"{LIST}?is=deleted", data, follow=True)


def test_it_lists_deleted_sessions_only_where_they_are_asked_for(ops_client, session):
    deleted = gone(title="Old plans")
    assert set(lines(ops_client)) == {session.title}
    line = lines(ops_client, "?is=deleted")
    assert set(line) == {"Old plans"}
    assert "Deleted" in line["Old plans"]
    assert "2 h" in line["Old plans"]
    html = ops_client.get(f"{LIST}?is=deleted").content.decode()
    assert f"{deleted.pk}/transcript/" not in html
    assert 'value="restore"' in html
    assert 'value="delete_selected"' not in html
    assert 'value="restore"' not in ops_client.get(LIST).content.decode()
    assert ops_client.get(f"{LIST}{deleted.pk}/transcript/?is=deleted").status_code == 404
    assert ops_client.get(f"{LIST}{deleted.pk}/change/?is=deleted").status_code == 302


def test_it_restores_what_was_selected_and_notes_who(ops_client, operator):
    first, second, kept = gone(title="a"), gone(title="b", owner=None), gone(title="c")
    page = restore(ops_client, first, second)
    assert "2 sessions restored." in page_of(page).text
    assert set(lines(ops_client)) == {"a", "b"}
    assert set(lines(ops_client, "?is=deleted")) == {kept.title}
    entries = LogEntry.objects.filter(user=operator)
    assert {told_change(entry) for entry in entries} == {"Restored."}
    assert {entry.object_id for entry in entries} == {str(first.pk), str(second.pk)}


def test_it_says_why_a_session_cannot_be_restored(ops_client):
    old = SessionFactory(title="x", deleted_at=timezone.now() - timedelta(days=31))
    text = page_of(restore(ops_client, old)).text
    assert "“x”: This conversation does not exist, or was deleted too long ago." in text
    assert not LogEntry.objects.exists()


def test_it_restores_nothing_without_the_permission():
    deleted = gone()
    viewer = logged_in(StaffFactory(permissions=["sessions_app.view_session"]))
    assert 'value="restore"' not in viewer.get(f"{LIST}?is=deleted").content.decode()
    restore(viewer, deleted)
    deleted.refresh_from_db()
    assert deleted.deleted_at is not None
    for person in (deleted.owner, UserFactory()):
        assert logged_in(person).get(f"{LIST}?is=deleted").status_code == 302


@pytest.mark.parametrize(
    ("stored", "line"),
    [
        ('[{"type": "text", "text": "Hello\\nyou"}]', "Hello you"),
        ('[{"type": "text", "text": "Hel', "Hel"),
        ('[{"type": "text", "text": "Hel\\', "Hel"),
        ('[{"type": "text", "text": "Hel\\u00', "Hel"),
        ('[{"type": "reasoning", "text": "a"}, {"type": "text", "text": "b"}]', "b"),
        ('[{"type":"text","text":"a"},{"type":"reasoning","text":"b', "a"),
        ('[{"text": "a", "type": "reasoning"}, {"text": "b", "type": "text"}]', "b"),
        (dump_json([{"type": "reasoning", "text": '{"type":"text","text":"a"}'}]), ""),
        ('{"type": 3}', ""),
        ("null", ""),
        (None, ""),
        ('[{"type": "text", "text": "' + "x" * 300 + '"}]', "x" * 120 + "…"),
        ('[{"type": "text", "text": "\\ud800"}]', ""),
    ],
)
def test_it_reads_a_line_of_any_stored_message(stored, line):
    assert snippet_of(stored) == line


def test_it_shows_what_people_read_however_long_the_model_thought(ops_client, session):
    thought = {"type": "reasoning", "text": "What do they want? " * 500}
    answer = {"type": "text", "text": "The answer."}
    MessageFactory(session=session, kind="assistant", parts=[thought, answer])
    text = page_of(ops_client.get(LIST)).text
    assert "The answer." in text
    assert "What do they want?" not in text


def test_it_takes_as_many_statements_for_10_sessions_as_for_10000(ops_client, statements):
    def fill(count: int) -> None:
        sessions = [Session(title=f"s {n}", key=f"k:{count}:{n}") for n in range(count)]
        Session.objects.bulk_create(sessions, batch_size=500)
        for model, make in ((Turn, _turn), (Message, _message)):
            model.objects.bulk_create([make(one) for one in sessions[:100]], batch_size=50)

    counts = []
    for count in (10, 10_000):
        fill(count)
        counts.append(
            [statements(ops_client, LIST + query) for query in ("", "?had=rebuild&failed=no")]
        )
    assert counts[0] == counts[1]
    assert counts[0][0] <= 9


def _turn(session: Session) -> Turn:
    return Turn(session=session, state="completed", body_hash="", accepted_seq=1, verdict="rebuild")


def _message(session: Session) -> Message:
    return Message(session=session, kind="user", parts=[{"type": "text", "text": "Hello"}])


@pytest.mark.skipif(connection.vendor != "sqlite", reason="asks SQLite how it does the work")
def test_it_reads_the_lines_by_index(ops_client, session):
    TurnFactory(session=session)
    MessageFactory(session=session)
    with every_statement() as statements:
        ops_client.get(LIST)
    tables = ("gateway_app_turn", "sessions_app_message")
    read = [one for one in statements.found if any(table in one.sql for table in tables)]
    assert len(read) == 2
    for statement in read:
        plan = "\n".join(sqlite_plan(connection, statement))
        assert not re.search(r"SCAN (gateway_app_turn|sessions_app_message|U0)\b", plan), plan
