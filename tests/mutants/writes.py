"""Faults of the services: what is written where, and what is told of it."""

from dataclasses import replace
from functools import partial
from typing import Any

from django.db import transaction

from gateway_app.services import recovery, runs, starting, turns
from sessions_app import database as db
from sessions_app import services, transcript
from sessions_app.models import BLOCK, Message
from sessions_app.transcript import TranscriptWrite, transcript_committed
from tests.mutants.catalogue import mutant, patch


def _commit(change: Any) -> None:
    """What receivers are told is changed."""
    patch(transcript, "TranscriptCommit", lambda real: lambda **named: change(real(**named)))


@mutant("signal before the commit")
def _() -> None:
    transcript.transaction = _Now()  # type: ignore[attr-defined]


class _Now:
    """Django's transaction module, but that nothing waits for the commit."""

    def __getattr__(self, name: str) -> Any:
        return getattr(transaction, name)

    @staticmethod
    def on_commit(call: Any, **_: Any) -> None:
        call()


@mutant("signal at the end of the service, not of the ENCLOSING transaction")
def _() -> None:
    late: list[Any] = []

    class Inner(_Now):
        @staticmethod
        def on_commit(call: Any, **_: Any) -> None:
            late.append(call)

        @staticmethod
        def atomic(*args: Any, **named: Any) -> Any:
            return _Speaking(transaction.atomic(*args, **named), late)

    for module in (transcript, turns, runs, recovery):
        module.transaction = Inner()  # type: ignore[attr-defined]


class _Speaking:
    """An atomic block that tells what it did as soon as it ends itself."""

    def __init__(self, block: Any, late: list[Any]) -> None:
        self._block, self._late = block, late

    def __enter__(self) -> None:
        self._block.__enter__()

    def __exit__(self, kind: Any, *rest: Any) -> Any:
        result = self._block.__exit__(kind, *rest)
        calls, self._late[:] = list(self._late), []
        for call in calls if kind is None else []:
            call()
        return result


@mutant("a commit tells only its last row")
def _() -> None:
    _commit(lambda commit: replace(commit, rows=commit.rows[-1:]))


@mutant("a commit's rows are told as they were written first")
def _() -> None:
    def announce(self: TranscriptWrite, revision: int) -> None:
        rows = tuple({row.id: row for row in reversed(self._rows)}.values())
        commit = transcript.TranscriptCommit(
            self.session_id, self.incarnation, self.from_revision, revision, rows, self._removed
        )
        call = partial(transcript_committed.send_robust, sender=TranscriptWrite, commit=commit)
        transaction.on_commit(call, using=db.alias(), robust=True)

    TranscriptWrite.announce = announce  # type: ignore[method-assign]


@mutant("a commit tells the revision as from plus rows")
def _() -> None:
    _commit(lambda commit: replace(commit, revision=commit.from_revision + len(commit.rows)))


@mutant("a commit tells the revision after it as the one before it")
def _() -> None:
    _commit(lambda commit: replace(commit, from_revision=commit.revision))


@mutant("a delete is not told")
def _() -> None:
    def delete(real: Any) -> Any:
        def wrapped(self: TranscriptWrite, message_ids: Any) -> int:
            gone = real(self, message_ids)
            self._removed = False
            return int(gone)

        return wrapped

    patch(TranscriptWrite, "delete", delete)


@mutant("a change of state is not told")
def _() -> None:
    def set_state(self: TranscriptWrite, message_ids: Any, state: str) -> int:
        return Message.objects.filter(pk__in=message_ids).update(state=state)

    TranscriptWrite.set_state = set_state  # type: ignore[method-assign]


@mutant("an edit is told as it was before")
def _() -> None:
    def set_parts(real: Any) -> Any:
        def wrapped(self: TranscriptWrite, message_id: Any, *parts: Any) -> int:
            self._read([message_id])
            before = list(self._rows)
            found = real(self, message_id, *parts)
            self._rows = before
            return int(found)

        return wrapped

    patch(TranscriptWrite, "set_parts", set_parts)


@mutant("an edit forgets what was sent for the row")
def _() -> None:
    def read(real: Any) -> Any:
        def wrapped(self: TranscriptWrite, message_ids: Any) -> None:
            real(self, message_ids)
            self._rows = [replace(row, sent_parts=None) for row in self._rows]

        return wrapped

    patch(TranscriptWrite, "_read", read)


@mutant("a run's writes are not told")
def _() -> None:
    runs.TranscriptWrite = _Silent  # type: ignore[misc,assignment]


@mutant("the user's row is not told")
def _() -> None:
    starting.TranscriptWrite = _Silent  # type: ignore[misc,assignment]


@mutant("a recovery's rows are not told")
def _() -> None:
    recovery.TranscriptWrite = _Silent  # type: ignore[misc,assignment]


class _Silent(TranscriptWrite):
    def announce(self, revision: int) -> None:
        self.revision = revision


@mutant("a foreign append goes into the last block")
def _() -> None:
    _place_appends(lambda head: Message.objects.filter(session_id=head.id))


@mutant("a foreign append goes into the block before the next")
def _() -> None:
    _place_appends(
        lambda head: Message.objects.filter(
            session_id=head.id, position__gte=(head.next_block - 1) * BLOCK
        )
    )


def _place_appends(rows: Any) -> None:
    @transcript.retry_lost_race
    def append_messages(*, session_id: Any, messages: Any) -> list[Any]:
        with transcript.write_transcript(session_id) as (head, write):
            highest = rows(head).order_by("-position").values_list("position", flat=True).first()
            for place, message in enumerate(messages, start=1):
                message.position = (highest or head.next_block * BLOCK) + place
            write.insert(messages)
        return list(messages)

    _everywhere("append_messages", append_messages)


def _everywhere(name: str, service: Any) -> None:
    setattr(services, name, service)


@mutant("run numbers its rows from memory")
def _() -> None:
    memory: dict[Any, int] = {}

    def lock(real: Any) -> Any:
        def wrapped(run: Any, count: int, *, closing: bool) -> Any:
            locked, seq, _ = real(run, count, closing=closing)
            # a run's first row is the user's
            known = memory.setdefault((run.turn_id, run.generation), run.block * BLOCK + 1)
            return locked, seq, known

        return wrapped

    def write(real: Any) -> Any:
        def wrapped(write: Any) -> Any:
            written = real(write)
            memory[write.run.turn_id, write.run.generation] += len(write.messages)
            return written

        return wrapped

    patch(runs, "_lock_run", lock)
    patch(runs, "_write_run", write)


@mutant("a run takes a new block for every write")
def _() -> None:
    def lock(real: Any) -> Any:
        def wrapped(run: Any, count: int, *, closing: bool) -> Any:
            locked, seq, _ = real(run, count, closing=closing)
            return locked, seq, locked.next_block * BLOCK

        return wrapped

    patch(runs, "_lock_run", lock)


@mutant("a fenced run may write")
def _() -> None:
    def rows(real: Any) -> Any:
        def wrapped(sql: str, params: Any = ()) -> Any:
            if "run_generation = %s AND deleted_at IS NULL RETURNING" in sql:
                sql = sql.replace("run_generation = %s", "%s >= 0")
            if " AND generation = %s RETURNING" in sql:
                sql = sql.replace("generation = %s RETURNING", "%s >= 0 RETURNING")
            return real(sql, params)

        return wrapped

    patch(db, "rows", rows)


@mutant("recovery leaves the dead run's generation")
def _() -> None:
    def rows(real: Any) -> Any:
        def wrapped(sql: str, params: Any = ()) -> Any:
            recovering = (
                "SET run_generation = run_generation + 1, event_seq = event_seq + %s" in sql
            )
            if recovering:
                sql = sql.replace("run_generation = run_generation + 1, ", "")
            return real(sql, params)

        return wrapped

    patch(db, "rows", rows)


@mutant("services write beside a running turn")
def _() -> None:
    services.refuse_while_open = lambda head, position=None: None


@mutant("a summary stands at the end")
def _() -> None:
    class Write(TranscriptWrite):
        def insert(self, messages: Any) -> None:
            for message in messages:
                if message.kind == "summary":
                    message.position += 40 * BLOCK
            super().insert(messages)

    transcript.TranscriptWrite = Write  # type: ignore[misc]
