"""Housekeeping: what each job finds and does, and that one process does it at a time."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from gateway_app import housekeeping
from gateway_app.config import GatewayConfig
from gateway_app.event_store import insert_events, read_events
from gateway_app.host import GatewayHost
from gateway_app.models import Event, LoginLink, Turn
from sessions_app import database as db
from sessions_app.models import Message, Session, new_id
from tests.factories import EventFactory, MessageFactory, SessionFactory, TurnFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = timedelta(days=400)


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    return replace(config, housekeeping_s=0.01)


@pytest.fixture
def ended_turns(transactional_db: None) -> None:
    """More turns to fold than one look finds."""
    for turn in TurnFactory.create_batch(60, finished_at=timezone.now() - LONG_AGO):
        insert_events(turn.session_id, turn.pk, 1, 1, [content("a")])


def run(name: str) -> int:
    """One batch of a job; how much it found."""
    job = housekeeping.JOBS[name]
    found = job.find()
    if found:
        job.act(found)
    return len(found)


def content(delta: str) -> bytes:
    return f'{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{delta}"}}'.encode()


def test_it_folds_the_log_of_an_ended_turn_around_the_rows_of_others() -> None:
    session = SessionFactory()
    ended = timezone.now() - timedelta(minutes=2)
    turn = TurnFactory(session=session, state="completed", finished_at=ended, accepted_seq=1)
    insert_events(session.pk, turn.pk, 1, 2, [b'{"type":"RUN_STARTED"}', content("a")])
    insert_events(session.pk, turn.pk, 1, 3, [content("b")])
    insert_events(session.pk, None, 0, 4, [b'{"type":"CUSTOM","name":"hermes.queue"}'])
    insert_events(session.pk, turn.pk, 1, 6, [content("c"), b'{"type":"RUN_FINISHED"}'])
    assert run("fold") == 1
    assert run("fold") == 0
    read = read_events(session.pk, from_seq=1, limit_rows=100)
    assert [one.seq for one in read] == [1, 4, 5, 6]
    assert b'"delta":"abc"' in read[2].event


def test_it_leaves_the_log_of_a_turn_that_just_ended() -> None:
    turn = TurnFactory(state="completed", finished_at=timezone.now())
    insert_events(turn.session_id, turn.pk, 1, 1, [content("a")])
    assert run("fold") == 0


async def test_it_comes_to_the_end_of_a_job(ended_turns: None, gateway: GatewayHost) -> None:
    async with asyncio.timeout(60):
        while await gateway.lanes.read(housekeeping.find_unfolded_turns):
            pass


def test_it_drops_events_that_are_too_old() -> None:
    old, kept = EventFactory(), EventFactory()
    running = EventFactory(turn_id=new_id())
    for event in (old, running):
        Event.objects.filter(session=event.session).update(created_at=timezone.now() - LONG_AGO)
    assert run("old_events") == 1
    assert run("old_events") == 0
    left = set(Event.objects.values_list("session_id", flat=True))
    assert left == {kept.session_id, running.session_id}


def test_it_drops_the_surplus_of_a_long_log() -> None:
    session = SessionFactory()
    for seq in (1, 2, 11_000):
        insert_events(session.pk, None, 0, seq, [b"{}"])
    Session.objects.filter(pk=session.pk).update(event_seq=11_000)
    assert run("surplus_events") == 2
    assert list(Event.objects.values_list("seq", flat=True)) == [11_000]


def test_it_purges_what_nobody_can_restore_any_more() -> None:
    gone, restorable = SessionFactory(), SessionFactory()
    MessageFactory(session=gone)
    turn = TurnFactory(session=gone)
    insert_events(gone.pk, turn.pk, 1, 1, [b"{}"])
    Session.objects.filter(pk=gone.pk).update(deleted_at=timezone.now() - LONG_AGO)
    Session.objects.filter(pk=restorable.pk).update(deleted_at=timezone.now())
    while run("purge"):
        pass
    assert list(Session.objects.values_list("pk", flat=True)) == [restorable.pk]
    assert (Message.objects.count(), Turn.objects.count(), Event.objects.count()) == (0, 0, 0)


def test_it_purges_a_long_conversation_in_short_transactions() -> None:
    session = SessionFactory(deleted_at=timezone.now() - LONG_AGO)
    parts = [{"type": "text", "text": "x"}]
    rows = [Message(session=session, kind="user", parts=parts, position=n) for n in range(1, 1202)]
    Message.objects.bulk_create(rows)
    left = []
    while run("purge"):
        left.append(Message.objects.count())
    assert left == [701, 201, 0, 0]
    assert not Session.objects.exists()


def test_it_drops_dead_login_links() -> None:
    LoginLink.objects.create(user=UserFactory(), hash="x", expires_at=timezone.now() - LONG_AGO)
    assert run("login_links") == 1
    assert not LoginLink.objects.exists()


def test_it_gives_a_job_to_one_process_until_its_lease_runs_out() -> None:
    assert housekeeping.take_job("fold", "one")
    assert not housekeeping.take_job("fold", "two")
    assert housekeeping.take_job("fold", "one")
    db.execute(f"UPDATE gateway_app_joblease SET expires_at = {db.now_sql(plus_s=-1)}")
    assert housekeeping.take_job("fold", "two")
