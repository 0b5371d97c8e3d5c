"""Beside the rows: what is known of warm agents, what changed, the session as a file, its pulse."""

import json
import re
from datetime import timedelta
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test import AsyncClient, Client
from django.utils import timezone

from gateway_app.models import Turn
from gateway_app.services.agents import save_agent_version
from gateway_app.services.presence import PresenceReport, renew_presence
from sessions_app.models import BLOCK, Message, Session
from tests.factories import (
    AgentFactory,
    MessageFactory,
    QueuedTurnFactory,
    SessionFactory,
    StaffFactory,
    TurnFactory,
    UserFactory,
)
from tests.gateway_app.admin.conftest import logged_in, page_of
from tests.gateway_app.admin.transcripts import begun, url_of

pytestmark = pytest.mark.django_db


def facts_of(client: Client, session: Session) -> str:
    """The facts column's text, one space between words."""
    html = client.get(url_of(session)).content.decode()
    aside = re.search(r"<aside.*?</aside>", html, re.DOTALL)[0]
    return " ".join(re.sub(r"<[^>]+>", " ", aside).split())


def test_it_tells_how_far_behind_each_process_is(ops_client, session):
    for _ in range(3):
        MessageFactory(session=session)
    for owner, baselines in (
        ("web:7:a", {session.pk: 3}), ("web:8:b", {session.pk: 1}), ("web:9:c", {}),
    ):  # fmt: skip
        renew_presence(PresenceReport(owner, 1, 128, 10, baselines))
    facts = facts_of(ops_client, session)
    assert "Baseline, web:7 3, up to date" in facts
    assert "Baseline, web:8 1, 2 behind" in facts
    assert "web:9" not in facts


def test_it_leads_to_what_changed_in_the_prompt(ops_client, session):
    agent = AgentFactory(slug="analyst")
    for number in (2, 3):
        values = {"temperature": None, "max_output_tokens": None, "created_by_id": None}
        save_agent_version(agent=agent, model="", system_prompt=f"Prompt {number}", **values)
    for number, said, link in (
        (1, "version 1, newest is 3", "1/3/"), (3, "version 3, diff", "2/3/"),
    ):  # fmt: skip
        Session.objects.filter(pk=session.pk).update(agent="analyst", agent_version=number)
        assert f"Prompt {said}" in " ".join(
            facts_of(ops_client, session).replace(" ,", ",").split()
        )
        html = ops_client.get(url_of(session)).content.decode()
        assert f"/admin/gateway_app/agent/{agent.pk}/compare/{link}" in html
    reader = logged_in(StaffFactory(permissions=["sessions_app.view_session"]))
    assert "/compare/" not in reader.get(url_of(session)).content.decode()


@pytest.mark.parametrize(
    ("model", "said"),
    [("openai:gpt-4o", "Context 50 % of 128k"), ("openai:unheard-of", "Context 64k tokens")],
)
def test_it_says_how_full_the_window_is(ops_client, session, model, said):
    begun(session, 1, sent_revision=1, model=model, context_tokens=64_000)
    assert said in facts_of(ops_client, session)


def test_it_marks_a_row_that_changed_after_it_was_sent(ops_client, session):
    long_ago = timezone.now() - timedelta(hours=1)
    Message.objects.all().delete()
    first = begun(session, 1, rows=2, sent_revision=1)
    Message.objects.filter(position=BLOCK + 2).update(kind="assistant")
    revision = Session.objects.get(pk=session.pk).revision
    second = begun(session, 2, rows=1, sent_revision=revision + 1)
    Turn.objects.filter(pk__in=[first.pk, second.pk]).update(started_at=timezone.now())
    Message.objects.update(created_at=long_ago)
    assert "the agent had sent it" not in page_of(ops_client.get(url_of(session))).text
    edited = Message.objects.get(position=BLOCK + 2)
    Message.objects.filter(pk=edited.pk).update(parts=[{"type": "text", "text": "recycle"}])
    edited.refresh_from_db()
    text = page_of(ops_client.get(url_of(session))).text
    told = f"Changed at revision {edited.revision}; the agent had sent it at {revision + 1}"
    assert text.count(told) == text.count("the agent had sent it") == 1


def test_it_does_not_take_a_row_of_others_for_a_changed_one(ops_client, session):
    turn = begun(session, 1, sent_revision=1)
    Turn.objects.filter(pk=turn.pk).update(started_at=timezone.now() - timedelta(hours=1))
    MessageFactory(session=session, position=7, text="Squeezed in later")
    assert "the agent had sent it" not in page_of(ops_client.get(url_of(session))).text


def test_it_has_a_pulse_that_moves_with_the_page(ops_client, session):
    url = url_of(session, "pulse/")
    before = ops_client.get(url).json()
    assert ops_client.get(url).json() == before
    MessageFactory(session=session)
    after_row = ops_client.get(url).json()
    assert after_row != before
    Session.objects.filter(pk=session.pk).update(title="Other")
    assert ops_client.get(url).json() != after_row
    Session.objects.filter(pk=session.pk).update(event_seq=5, open_block=3)
    running = ops_client.get(url).json()
    Session.objects.filter(pk=session.pk).update(event_seq=50)
    assert ops_client.get(url).json() == running  # not at every word of an answer
    renew_presence(PresenceReport("web:7:a", 1, 128, 10, {session.pk: 1}))
    assert ops_client.get(url).json() != running


def test_it_follows_only_the_transcripts_end(ops_client, session):
    MessageFactory(session=session)
    assert "data-live-pulse" in ops_client.get(url_of(session)).content.decode()
    earlier = ops_client.get(url_of(session, f"?after=0.{UUID(int=0)}")).content.decode()
    assert "data-live" not in earlier.replace("data-live-part", "")


FILES = ("raw/", "export.jsonl", "export.md")


@pytest.mark.parametrize("file", [*FILES, "pulse/"])
def test_it_gives_files_to_those_who_may_view_sessions(session, owner, file):
    url = url_of(session, file)
    for client in (Client(), logged_in(owner), logged_in(UserFactory())):
        assert client.get(url).status_code == 302
    turns_only = logged_in(StaffFactory(permissions=["gateway_app.view_turn"]))
    assert turns_only.get(url).status_code == 403
    reader = logged_in(StaffFactory(permissions=["sessions_app.view_session"]))
    assert reader.post(url).status_code == 405
    Session.objects.filter(pk=session.pk).update(deleted_at=timezone.now())
    assert reader.get(url).status_code == 404


@sync_to_async
def written(
    parts: str = '[{"type": "text", "text": "<b>Hello</b>"}]',
) -> tuple[Session, AsyncClient]:
    """A conversation with a row of each kind, one written as a bare SQL client would."""
    session = SessionFactory(title="Refund <1>")
    turn = TurnFactory(session=session, block=1, cost_usd="0.25")
    MessageFactory(session=session, text="Hello", turn_id=turn.pk)
    MessageFactory(session=session, kind="note", text="A private note")
    MessageFactory(session=session, kind="assistant", state="hidden", text="Hidden answer")
    QueuedTurnFactory(session=session)
    with connection.cursor() as cursor:
        key = session.pk.hex if connection.vendor == "sqlite" else session.pk
        cursor.execute(
            "INSERT INTO sessions_app_message (session_id, kind, parts) VALUES (%s, 'user', %s)",
            [key, parts],
        )
    client = AsyncClient()
    client.force_login(StaffFactory(permissions=["sessions_app.view_session"]))
    return session, client


async def body_of(client: AsyncClient, url: str) -> tuple[bytes, dict[str, str]]:
    response = await client.get(url)
    assert response.status_code == 200
    content = b"".join([piece async for piece in response])
    return content, dict(response.headers)


@pytest.mark.django_db(transaction=True)
async def test_it_shows_the_tables_as_they_are(transactional_db) -> None:
    session, client = await written()
    body, headers = await body_of(client, url_of(session, "raw/"))
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Content-Disposition"] == "inline"
    document = json.loads(body)
    assert document["session"]["title"] == "Refund <1>"
    assert [turn["state"] for turn in document["turns"]] == ["completed", "queued"]
    assert document["turns"][0]["cost_usd"] == 0.25
    kinds = [(row["kind"], row["state"]) for row in document["messages"]]
    assert kinds == [
        ("user", "active"), ("note", "active"), ("assistant", "hidden"), ("user", "active"),
    ]  # fmt: skip
    assert document["messages"][3]["parts"] == [{"type": "text", "text": "<b>Hello</b>"}]


@pytest.mark.django_db(transaction=True)
async def test_it_shows_what_python_cannot_parse(transactional_db) -> None:
    parts = '[{"type": "text", "text": ' + "1" * 5000 + "}]"
    session, client = await written(parts)
    body, _ = await body_of(client, url_of(session, "raw/"))
    assert parts.encode() in body


@pytest.mark.django_db(transaction=True)
async def test_it_exports_what_people_see(transactional_db) -> None:
    session, client = await written()
    for file, suffix in (("export.jsonl", ".jsonl"), ("export.md", ".md")):
        body, headers = await body_of(client, url_of(session, file))
        assert b"Hello" in body
        assert b"private" not in body
        assert b"Hidden" not in body
        assert headers["Content-Disposition"].startswith("attachment")
        assert suffix in headers["Content-Disposition"]
