"""One slow loop per process; each job runs in one process at a time, in small transactions."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any, Final
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import DatabaseError, transaction
from django.db.models import CASCADE
from django.db.models.fields.reverse_related import ForeignObjectRel
from django.utils import timezone

from gateway_app.agent_cache import AgentCache
from gateway_app.config import GatewayConfig, gateway_config
from gateway_app.database_threads import DatabaseLanes
from gateway_app.event_store import fold_run
from gateway_app.login_limits import FORGET
from gateway_app.models import Event, JobLease, LoginLink, LoginTries, Presence, Turn
from sessions_app import database as db
from sessions_app.models import Session
from sessions_app.services import RESTORE_DAYS

logger: Final = logging.getLogger(__name__)

_BATCH: Final = 500
_JOB_S: Final = 60
_DEAD_S: Final = 120


@dataclass(frozen=True)
class Job:
    """`find` reads what is due (at most a batch), `act` changes it, each where it may.

    `act` gets at most `at_once`: turns wait behind it where there is one writer.
    """

    every_s: float
    at_once: int
    find: Callable[[], Sequence[Any]]
    act: Callable[[Sequence[Any]], None]


class Housekeeping:
    """Sweeps this process's caches, and takes its share of the jobs."""

    def __init__(
        self,
        lanes: DatabaseLanes,
        caches: Sequence[AgentCache],
        config: GatewayConfig,
        owner: str,
    ) -> None:
        self._lanes, self._caches, self._config, self._owner = lanes, caches, config, owner
        self._due = dict.fromkeys(JOBS, 0.0)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._config.housekeeping_s)
            for cache in self._caches:
                await asyncio.to_thread(cache.sweep)  # what it drops is freed there
            for name, job in JOBS.items():
                if monotonic() < self._due[name]:
                    continue
                try:
                    await self._run_job(name, job)
                except DatabaseError:
                    logger.warning("A housekeeping job failed", extra={"job": name})
                except Exception:  # the other jobs go on, and this one is tried again
                    logger.exception("A housekeeping job broke off", extra={"job": name})
                self._due[name] = monotonic() + job.every_s

    async def _run_job(self, name: str, job: Job) -> None:
        """Runs the job's batches while there is work and this process holds it."""
        while found := await self._lanes.read(job.find):
            if not await self._lanes.write(take_job, name, self._owner):
                return
            for start in range(0, len(found), job.at_once):
                await self._lanes.write(job.act, found[start : start + job.at_once])


def take_job(name: str, owner: str) -> bool:
    """Whether `owner` does the job now: it is free, ran out, or is its own already."""
    table = JobLease._meta.db_table
    until = db.now_sql(plus_s=_JOB_S)
    touched = db.execute(
        f"INSERT INTO {table} (name, owner, expires_at) VALUES (%s, %s, {until})"
        f" ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = {until}"
        f" WHERE {table}.owner = excluded.owner OR {table}.expires_at < {db.now_sql()}",
        [name, owner],
    )
    return touched > 0


def find_unfolded_turns() -> list[tuple[UUID, UUID]]:
    """(session, turn) of turns that ended a while ago and whose log still has every delta."""
    before = timezone.now() - timedelta(seconds=gateway_config().fold_after_s)
    ended = Turn.objects.filter(log_folded=False, finished_at__lt=before)
    return list(ended.values_list("session_id", "pk")[:50])


def fold_turns(turns: Sequence[tuple[UUID, UUID]]) -> None:
    for session_id, turn_id in turns:
        fold_run(session_id, turn_id)
        Turn.objects.filter(pk=turn_id).update(log_folded=True)


def find_old_events() -> list[tuple[UUID, int]]:
    """Rows of the log that are too old. The transcript is the memory.

    The condition's words are those of the partial index `event_old`.
    """
    found = db.rows(
        f"SELECT session_id, seq FROM {Event._meta.db_table} WHERE (folded OR turn_id IS NULL)"
        f" AND created_at < {db.now_sql(plus_s=-gateway_config().log_keep_s)} LIMIT {_BATCH}"
    )
    return [(db.to_uuid(session_id), seq) for session_id, seq in found]


def find_surplus_events() -> list[tuple[UUID, int]]:
    """The oldest rows of sessions whose log is too long.

    A session that nothing happened in for so long that its log is old has no surplus beside.
    """
    config = gateway_config()
    event, session = Event._meta.db_table, Session._meta.db_table
    found = db.rows(
        f"SELECT e.session_id, e.seq FROM {session} s JOIN {event} e ON e.session_id = s.id"
        f" AND e.seq < s.event_seq - %s WHERE s.event_seq > %s"
        f" AND s.updated_at > {db.now_sql(plus_s=-config.log_keep_s)} LIMIT {_BATCH}",
        [config.log_keep_events, config.log_keep_events],
    )
    return [(db.to_uuid(session_id), seq) for session_id, seq in found]


def delete_events(keys: Sequence[tuple[UUID, int]]) -> None:
    pairs = ", ".join(["(%s, %s)"] * len(keys))
    db.execute(
        f"DELETE FROM {Event._meta.db_table} WHERE (session_id, seq) IN (VALUES {pairs})",
        [value for session_id, seq in keys for value in (db.db_uuid(session_id), seq)],
    )


def find_purgeable_sessions() -> list[UUID]:
    """Deleted sessions that nobody can restore any more."""
    before = timezone.now() - timedelta(days=RESTORE_DAYS)
    return list(Session.objects.filter(deleted_at__lt=before).values_list("pk", flat=True)[:20])


def purge_sessions(session_ids: Sequence[UUID]) -> None:
    """A batch of what belongs to the sessions is gone for good; a session with its last batch.

    What the admin noted of it stays, without its title. A line in the log is the receipt.
    """
    for pk in session_ids:
        if any(_purge_rows(relation, pk) for relation in _belonging()):
            continue
        notes = LogEntry.objects.filter(
            content_type=ContentType.objects.get_for_model(Session), object_id=str(pk)
        )
        with transaction.atomic(savepoint=False):
            notes.update(object_repr=str(pk))
            Session.objects.filter(pk=pk).delete()
        logger.info("A session was purged", extra={"session": str(pk)})


def _belonging() -> list[ForeignObjectRel]:
    """What goes with a session: every model with a foreign key to it that cascades."""
    return [one for one in Session._meta.related_objects if one.on_delete is CASCADE]


def _purge_rows(relation: ForeignObjectRel, session_id: UUID) -> int:
    """How many rows of one model are gone now, at most a batch."""
    rows = relation.related_model._base_manager.filter(**{relation.field.name: session_id})
    batch = list(rows.values_list("pk", flat=True)[:_BATCH])
    if batch:
        rows.filter(pk__in=batch).delete()
    return len(batch)


def find_dead_links() -> list[int]:
    """Login links that ran out a day ago."""
    before = timezone.now() - timedelta(days=1)
    return list(
        LoginLink.objects.filter(expires_at__lt=before).values_list("pk", flat=True)[:_BATCH]
    )


def delete_links(links: Sequence[int]) -> None:
    LoginLink.objects.filter(pk__in=links).delete()


def find_old_tries() -> list[str]:
    """Counts of passwords tried that begin anew anyway."""
    old = LoginTries.objects.filter(until__lt=timezone.now() - FORGET)
    return list(old.values_list("pk", flat=True)[:_BATCH])


def delete_tries(keys: Sequence[str]) -> None:
    """Those among them that were not used again meanwhile."""
    LoginTries.objects.filter(pk__in=keys, until__lt=timezone.now() - FORGET).delete()


def find_dead_presences() -> list[str]:
    """Processes that told nothing of themselves for a while."""
    before = timezone.now() - timedelta(seconds=_DEAD_S)
    return list(Presence.objects.filter(seen_at__lt=before).values_list("pk", flat=True)[:_BATCH])


def delete_presences(owners: Sequence[str]) -> None:
    Presence.objects.filter(pk__in=owners).delete()


JOBS: Final[dict[str, Job]] = {
    "fold": Job(15, 1, find_unfolded_turns, fold_turns),
    "old_events": Job(600, 100, find_old_events, delete_events),
    "surplus_events": Job(600, 100, find_surplus_events, delete_events),
    "purge": Job(3600, 1, find_purgeable_sessions, purge_sessions),
    "login_links": Job(3600, 100, find_dead_links, delete_links),
    "login_tries": Job(600, 100, find_old_tries, delete_tries),
    "presences": Job(60, 100, find_dead_presences, delete_presences),
}
