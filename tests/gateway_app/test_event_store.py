"""The event log in the database: group commit, fence, order."""

import threading
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction

from gateway_app.event_store import LoggedEvents, RunBatch, flush_runs, read_events
from sessions_app.models import Session
from tests.factories import SessionFactory

pytestmark = pytest.mark.django_db(transaction=True)


def running(generation: int = 1) -> Session:
    session: Session = SessionFactory()
    Session.objects.filter(pk=session.pk).update(run_generation=generation)
    return session


def batch(session: Session, *events: str, generation: int = 1) -> RunBatch:
    found = tuple(f'{{"type":"{event}"}}'.encode() for event in events)
    return RunBatch(session.pk, uuid4(), generation, found)


def test_it_logs_several_runs_in_one_transaction_with_their_own_seqs() -> None:
    one, other = running(), running()
    logged, fenced = flush_runs([batch(one, "A", "B"), batch(other, "C")])
    assert {(each.session_id, each.first_seq, each.last_seq) for each in logged} == {
        (one.pk, 1, 2),
        (other.pk, 1, 1),
    }
    assert fenced == []
    logged, _ = flush_runs([batch(one, "D")])
    assert [(each.first_seq, each.last_seq) for each in logged] == [(3, 3)]
    read = read_events(one.pk, from_seq=2, limit_rows=10)
    assert [(each.seq, each.event) for each in read] == [
        (2, b'{"type":"B"}'),
        (3, b'{"type":"D"}'),
    ]


def test_it_fences_a_run_whose_generation_is_over_and_logs_the_others() -> None:
    stale, fresh = running(generation=2), running()
    logged, fenced = flush_runs([batch(stale, "A", generation=1), batch(fresh, "B")])
    assert [each.session_id for each in logged] == [fresh.pk]
    assert fenced == [stale.pk]
    assert read_events(stale.pk, from_seq=1, limit_rows=10) == []


def test_it_leaves_nothing_behind_when_the_transaction_fails() -> None:
    session = running()
    with pytest.raises(RuntimeError), transaction.atomic():
        flush_runs([batch(session, "A")])
        raise RuntimeError
    assert read_events(session.pk, from_seq=1, limit_rows=10) == []
    session.refresh_from_db()
    assert session.event_seq == 0


class Holder(threading.Thread):
    """Another connection that holds a session's row lock until it is told to go."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session, self.holds, self.go = session, threading.Event(), threading.Event()

    def run(self) -> None:
        with transaction.atomic():
            Session.objects.select_for_update(no_key=True).get(pk=self.session.pk)
            self.holds.set()
            self.go.wait(30)
        connections.close_all()


def test_it_steps_over_a_locked_session_and_waits_for_it_when_told_to() -> None:
    if connection.vendor != "postgresql":
        return  # SQLite has one writer: nothing is ever locked by another row's lock
    locked, free = running(), running()
    holder = Holder(locked)
    holder.start()
    assert holder.holds.wait(30)
    logged, fenced = flush_runs([batch(locked, "A"), batch(free, "B")])
    assert [each.session_id for each in logged] == [free.pk]
    assert fenced == []

    waited: list[LoggedEvents] = []

    def wait_for_it() -> None:
        waited.extend(flush_runs([batch(locked, "A")], wait=True)[0])
        connections.close_all()

    waiting = threading.Thread(target=wait_for_it)
    waiting.start()
    holder.go.set()
    holder.join(30)
    waiting.join(30)
    assert [each.session_id for each in waited] == [locked.pk]
