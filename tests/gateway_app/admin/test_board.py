"""The live board: turns and caches of all processes, its buttons, its charts, who may see what."""

import csv
import io
import json
import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from gateway_app.models import Presence, Turn
from gateway_app.selectors import board
from gateway_app.services.presence import PresenceReport, renew_presence
from gateway_app.services.turns import start_next_turn
from gateway_app.templatetags.history import told_change
from sessions_app.models import BLOCK, Message, Session
from tests.factories import (
    EventFactory,
    MessageFactory,
    QueuedTurnFactory,
    SessionFactory,
    StaffFactory,
    TurnFactory,
    UserFactory,
)
from tests.gateway_app.admin.conftest import logged_in, page_of

BOARD = "/admin/board/"

pytestmark = pytest.mark.django_db


def running(session: Session, *, event: dict[str, object] | None = None, **fields) -> Turn:
    """A turn that runs, whose log ends with `event`."""
    ago = timezone.now() - timedelta(minutes=90)
    turn = TurnFactory(
        session=session, state="running", lease_owner="web:7:abc", started_at=ago,
        finished_at=None, **fields,
    )  # fmt: skip
    if event:
        body = json.dumps([[9, event]])
        EventFactory(session=session, seq=9, turn_id=turn.pk, body=body)
    return turn


def rows(client: Client, query: str = "") -> list[str]:
    """The text of each row of both tables."""
    html = client.get(f"{BOARD}live/{query}").content.decode()
    found = re.findall(r"<tr id=.*?</tr>", html, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in found]


def test_it_shows_what_runs_waits_and_failed(ops_client, session):
    running(session, event={"type": "TOOL_CALL_START", "toolCallName": "web_fetch"})
    for _ in range(2):
        QueuedTurnFactory(session=session)
    TurnFactory(session=SessionFactory(title="Meter readings"), state="failed",
                error_code="model_rate_limited")  # fmt: skip
    TurnFactory()  # one that went well is none of the board's business
    asked = SessionFactory(title="Nightly export")
    TurnFactory(session=asked, state="waiting_approval", lease_owner="")
    shown = rows(ops_client)
    assert len(shown) == 5
    [run] = [row for row in shown if row.startswith("Running")]
    for part in ("Refund for order 2291", "ann", "web:7", "1 h", "tool web_fetch", "Stop"):
        assert part in run
    queued = [row for row in shown if row.startswith("Queued")]
    assert ["1 of 2" in queued[0], "2 of 2" in queued[1]] == [True, True]
    assert all("Remove" in row for row in queued)
    [failed] = [row for row in shown if row.startswith("Failed")]
    assert "rate limit" in failed
    [asks] = [row for row in shown if row.startswith("Waiting for approval")]
    assert "Nightly export" in asks
    assert "asks for approval" in asks


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"type": "RUN_STARTED"}, "waiting for the first word"),
        ({"type": "TEXT_MESSAGE_CONTENT"}, "writing"),
        ({"type": "REASONING_MESSAGE_CONTENT"}, "thinking"),
        ({"type": "TOOL_CALL_END"}, "running a tool"),
        (None, "waiting for the first word"),
    ],
)
def test_it_says_what_a_run_does(ops_client, session, event, said):
    running(session, event=event)
    assert said in rows(ops_client)[0]


def test_it_says_what_a_run_does_after_others_wrote_to_its_session(ops_client, session):
    running(session, event={"type": "TEXT_MESSAGE_CONTENT"})
    body = json.dumps([[10, {"type": "CUSTOM", "name": "hermes.queue"}]])
    EventFactory(session=session, seq=10, turn_id=None, body=body)
    assert "writing" in rows(ops_client)[0]


def test_it_shows_one_group_when_asked(ops_client, session):
    running(session)
    QueuedTurnFactory(session=session)
    assert [row.split()[0] for row in rows(ops_client, "?show=queued")] == ["Queued"]
    text = page_of(ops_client.get(f"{BOARD}?show=queued")).text
    assert re.search(r"All 2\s*Running 1\s*Queued 1\s*Waiting 0\s*Failed 0", text)


def test_it_hides_turns_of_deleted_sessions(ops_client):
    gone = SessionFactory(deleted_at=timezone.now())
    running(gone)
    QueuedTurnFactory(session=gone)
    TurnFactory(session=gone, state="failed")
    assert rows(ops_client) == []


def test_it_shows_the_cache_of_each_living_process(ops_client):
    renew_presence(PresenceReport("web:7:abc", 118, 128, 14_889_779))
    renew_presence(PresenceReport("web:8:def", 3, 128, 2048))
    renew_presence(PresenceReport("web:9:xyz", 1, 128, 1))
    Presence.objects.filter(pk="web:9:xyz").update(seen_at=timezone.now() - timedelta(minutes=1))
    for verdict, reason in (*[("reuse", "")] * 7, ("catch_up", ""), ("rebuild", "rewritten"),
                            ("reload", ""), ("new", "")):  # fmt: skip
        TurnFactory(lease_owner="web:7:abc", verdict=verdict, reason=reason)
    TurnFactory(lease_owner="web:9:xyz", verdict="rebuild", reason="compacted")
    old = TurnFactory(lease_owner="web:7:abc", verdict="rebuild", reason="compacted")
    Turn.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(hours=25))
    first, second = rows(ops_client)
    assert "web:7 118 / 128 14.2 MiB" in first
    assert "70 % 10 % 10 % 10 % history edited 1" in first
    assert "web:8 3 / 128 2 KiB No turn yet" in second


def test_it_counts_a_turn_by_the_worst_that_was_said_of_it(ops_client):
    renew_presence(PresenceReport("web:7:abc", 1, 128, 1))
    TurnFactory(lease_owner="web:7:abc", verdict="reuse", worst_verdict="rebuild",
                worst_reason="compacted")  # fmt: skip
    assert "0 % 0 % 0 % 100 % older messages summarised 1" in rows(ops_client)[0]


def test_it_says_when_it_did_not_count_the_whole_day(ops_client, monkeypatch):
    renew_presence(PresenceReport("web:7:abc", 1, 128, 1))
    for _ in range(4):
        TurnFactory(lease_owner="web:7:abc")
    assert "Agent caches last 24 hours" in flat(ops_client)
    monkeypatch.setattr(board, "SHARE_TURNS", 3)
    assert "Agent caches the newest 3 turns" in flat(ops_client)


def flat(client: Client) -> str:
    return " ".join(page_of(client.get(f"{BOARD}live/")).text.split())


def test_it_stops_a_running_turn_of_anybody(ops_client, operator, session):
    turn = running(session)
    assert ops_client.post(BOARD, {"stop": str(turn.pk)}).status_code == 302
    turn.refresh_from_db()
    assert turn.stop_requested_at is not None
    assert turn.state == "running"  # its process ends it
    entry = LogEntry.objects.get(object_id=str(turn.pk))
    assert (entry.user, told_change(entry)) == (operator, "Stopped.")
    assert "stopping" in rows(ops_client)[0]


def test_it_removes_a_message_from_its_queue(ops_client, session):
    running(session)
    turn = QueuedTurnFactory(session=session)
    before = Session.objects.get(pk=session.pk).event_seq
    page = ops_client.post(BOARD, {"stop": str(turn.pk)}, follow=True)
    assert "The message no longer waits." in page_of(page).text
    turn.refresh_from_db()
    assert (turn.state, turn.finish) == ("stopped", "stopped")
    assert Session.objects.get(pk=session.pk).event_seq == before + 1  # its people are told
    page = ops_client.post(BOARD, {"stop": str(turn.pk)}, follow=True)
    assert "This turn was over already." in page_of(page).text
    assert LogEntry.objects.count() == 1


def failed(session: Session, block: int = 1, **fields) -> Turn:
    """A turn whose answer failed, closed by its notice."""
    turn = TurnFactory(session=session, state="failed", block=block, generation=block, **fields)
    for place, kind in enumerate(("user", "notice"), start=1):
        MessageFactory(session=session, kind=kind, turn_id=turn.pk, position=block * BLOCK + place)
    return turn


def test_it_tries_a_failed_turn_again_in_the_name_of_its_owner(ops_client, operator, session):
    turn = failed(session)
    assert "Retry" in rows(ops_client)[0]
    page = ops_client.post(BOARD, {"retry": str(turn.pk)}, follow=True)
    assert "The turn is tried again." in page_of(page).text
    again = Turn.objects.exclude(pk=turn.pk).get()
    assert (again.state, again.retry_of, again.author) == ("queued", turn.pk, session.owner)
    assert told_change(LogEntry.objects.get()) == "Tried again."
    assert not any("Retry" in row for row in rows(ops_client))
    page = ops_client.post(BOARD, {"retry": str(turn.pk)}, follow=True)
    assert "Only the last turn of a conversation can be tried again." in page_of(page).text
    assert Turn.objects.count() == 2
    run, _ = start_next_turn(session_id=session.pk, lease_owner="web:7:abc")
    assert run.turn_id == again.pk
    states = Message.objects.order_by("position").values_list("kind", "state")
    assert list(states) == [("user", "active"), ("notice", "branched")]


def test_it_tries_nothing_again_that_something_followed(ops_client, session):
    turns = [
        failed(session), failed(SessionFactory(owner=None), author=None),
        failed(SessionFactory()), failed(SessionFactory(deleted_at=timezone.now())),
    ]  # fmt: skip
    TurnFactory(session=session, block=2)
    MessageFactory(session=turns[2].session, kind="operator", position=2 * BLOCK + 1)
    for turn in turns:
        ops_client.post(BOARD, {"retry": str(turn.pk)})
    assert not Turn.objects.filter(retry_of__isnull=False).exists()
    assert not LogEntry.objects.exists()
    viewer = logged_in(StaffFactory(permissions=["gateway_app.view_turn"]))
    assert viewer.post(BOARD, {"retry": str(turns[0].pk)}).status_code == 403


@pytest.mark.parametrize("turn", ["x", "01a22af8-ecf9-750d-9565-21c391ead990"])
def test_it_knows_no_turn_that_is_none(ops_client, turn):
    assert ops_client.post(BOARD, {"stop": turn}).status_code == 404


def test_it_asks_a_process_to_evict(ops_client):
    renew_presence(PresenceReport("web:7:abc", 5, 128, 1))
    assert "Evict idle" in rows(ops_client)[0]
    ops_client.post(BOARD, {"evict": "web:7:abc"})
    assert "Dropping idle agents" in rows(ops_client)[0]
    assert renew_presence(PresenceReport("web:7:abc", 5, 128, 1)) == 1
    renew_presence(PresenceReport("web:7:abc", 0, 128, 1, evict_done=1, evicted=5))
    assert "5 agents dropped Evict idle" in rows(ops_client)[0]
    page = ops_client.post(BOARD, {"evict": "gone"}, follow=True)
    assert "This process is no longer there." in page_of(page).text


def test_it_opens_to_staff_who_may_view_turns(session, owner):
    turn = running(session)
    pages = (BOARD, f"{BOARD}live/", f"{BOARD}tokens.csv", f"{BOARD}times.csv")
    viewer = logged_in(StaffFactory(permissions=["gateway_app.view_turn"]))
    reader = logged_in(StaffFactory(permissions=["sessions_app.view_session"]))
    for page in pages:
        assert viewer.get(page).status_code == 200
        assert reader.get(page).status_code == 403
        assert logged_in(StaffFactory()).get(page).status_code == 403
        for person in (owner, UserFactory()):
            assert logged_in(person).get(page).status_code == 302
        assert Client().get(page).status_code == 302
    for client, status in ((viewer, 403), (reader, 403), (logged_in(owner), 302)):
        assert client.post(BOARD, {"stop": str(turn.pk)}).status_code == status
        assert client.post(BOARD, {"evict": "web:7:abc"}).status_code == status
    turn.refresh_from_db()
    assert turn.stop_requested_at is None


def test_it_shows_titles_and_buttons_only_to_those_who_may(session):
    running(session)
    viewer = logged_in(StaffFactory(permissions=["gateway_app.view_turn"]))
    [row] = rows(viewer)
    assert session.title not in row
    assert str(session.pk) in row
    assert "Stop" not in row
    assert "Read" not in row


def test_it_stands_on_the_index_for_those_who_may_open_it(ops_client):
    link = f'href="{BOARD}"'
    assert link in ops_client.get("/admin/").content.decode()
    assert link in ops_client.get("/admin/sessions_app/").content.decode()
    turns_only = logged_in(StaffFactory(permissions=["gateway_app.view_turn"]))
    assert link in turns_only.get("/admin/gateway_app/").content.decode()
    other = logged_in(StaffFactory(permissions=["gateway_app.view_agent"]))
    assert link not in other.get("/admin/").content.decode()


def test_it_draws_tokens_and_times_with_a_table_beside(ops_client):
    TurnFactory(input_tokens=1000, cached_tokens=810, output_tokens=50, ttft_ms=900)
    TurnFactory(input_tokens=1000, cached_tokens=None, output_tokens=None, ttft_ms=2700)
    page = page_of(ops_client.get(BOARD))
    assert "2,000 tokens in and 50 out in 14 days, 40 % of the input from the cache." in page.text
    assert "half within 900 ms, 95 % within 2.7 s, 2 turns" in page.text
    assert {"rect", "polyline", "table"} <= set(page.tags)
    assert page.refused == []


def test_it_tells_short_times_in_milliseconds_and_one_turn_as_one(ops_client):
    TurnFactory(ttft_ms=4)
    text = page_of(ops_client.get(BOARD)).text
    assert "half within 4 ms, 95 % within 4 ms, 1 turn." in text
    assert "02.5 ms5 ms" in text


def test_it_gives_both_charts_as_csv(ops_client):
    TurnFactory(input_tokens=1000, cached_tokens=810, output_tokens=50, ttft_ms=900)
    days = list(csv.reader(io.StringIO(ops_client.get(f"{BOARD}tokens.csv").content.decode())))
    assert len(days) == 15
    assert days[-1] == [str(timezone.localdate()), "810", "190", "50", "1"]
    hours = list(csv.reader(io.StringIO(ops_client.get(f"{BOARD}times.csv").content.decode())))
    assert len(hours) == 25
    assert hours[-1][1:] == ["900", "900", "1"]


def test_it_says_that_nothing_runs(ops_client):
    text = page_of(ops_client.get(BOARD)).text
    for said in ("Nothing runs or waits", "No process tells of itself", "Nothing to draw yet"):
        assert said in text


def test_it_takes_as_many_statements_for_200_turns_as_for_2(ops_client, statements):
    def fill(count: int) -> None:
        for number in range(count):
            session = SessionFactory()
            running(session, event={"type": "RUN_STARTED"}, author=StaffFactory())
            QueuedTurnFactory(session=session)
            TurnFactory(session=session, state="failed")
            renew_presence(PresenceReport(f"web:{count}:{number}", 1, 128, 1))

    counts = []
    for count in (1, 60):
        fill(count)
        counts.append((statements(ops_client, BOARD), statements(ops_client, f"{BOARD}live/")))
    # web session, user, two permission reads; open, waiting, failed; processes, verdicts;
    # days, hours
    assert counts == [(11, 9), (11, 9)]
