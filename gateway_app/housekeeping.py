"""One slow loop per process; each job runs in one process at a time, in small transactions."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import DatabaseError
from django.utils import timezone

from gateway_app.agent_cache import AgentCache
from gateway_app.config import GatewayConfig, gateway_config
from gateway_app.database_threads import DatabaseLanes
from gateway_app.event_store import fold_run
from gateway_app.models import Event, JobLease, LoginLink, Turn
from sessions_app import database as db
from sessions_app.models import Session
from sessions_app.services import RESTORE_DAYS

logger: Final = logging.getLogger(__name__)

_BATCH: Final = 500
_EVERY_S: Final = 15
_JOB_S: Final = 60
_ENDED: Final = ["completed", "failed", "stopped", "interrupted"]


class Housekeeping:
    """Sweeps this process's cache, and takes its share of the jobs."""

    def __init__(
        self, lanes: DatabaseLanes, cache: AgentCache, config: GatewayConfig, owner: str
    ) -> None:
        self._lanes, self._cache, self._config, self._owner = lanes, cache, config, owner

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            self._cache.sweep()
            for name, job in JOBS.items():
                try:
                    await self._run_job(name, job)
                except DatabaseError:
                    logger.warning("A housekeeping job failed", extra={"job": name})

    async def _run_job(self, name: str, job: Callable[[], int]) -> None:
        """Runs the job's batches while there is work and this process holds it."""
        while await self._lanes.write(take_job, name, self._owner):
            if not await self._lanes.write(job):
                return


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


def fold_ended_runs() -> int:
    """Folds the log of turns that ended a while ago; how many turns."""
    before = timezone.now() - timedelta(seconds=gateway_config().fold_after_s)
    unfolded = Event.objects.filter(folded=False, turn_id__isnull=False, created_at__lt=before)
    found = unfolded.values_list("turn_id", flat=True).distinct()[:50]
    turn_ids = [turn_id for turn_id in found if turn_id is not None]
    turns = Turn.objects.filter(pk__in=turn_ids, state__in=_ENDED, finished_at__lt=before)
    ended = list(turns.values_list("session_id", "pk"))
    for session_id, turn_id in ended:
        fold_run(session_id, turn_id)
    return len(ended)


def trim_log() -> int:
    """Drops events that are too old; how many rows. The transcript is the memory."""
    before = timezone.now() - timedelta(seconds=gateway_config().log_keep_s)
    old = Event.objects.filter(created_at__lt=before).order_by("session_id", "seq")
    return _delete_events(list(old.values_list("session_id", "seq")[:_BATCH]))


def trim_long_logs() -> int:
    """Drops the oldest events of sessions whose log is too long; how many rows."""
    keep = gateway_config().log_keep_events
    event, session = Event._meta.db_table, Session._meta.db_table
    found = db.rows(
        f"SELECT e.session_id, e.seq FROM {event} e JOIN {session} s ON s.id = e.session_id"
        f" WHERE s.event_seq > %s AND e.seq < s.event_seq - %s LIMIT {_BATCH}",
        [keep, keep],
    )
    return _delete_events([(db.to_uuid(session_id), seq) for session_id, seq in found])


def _delete_events(keys: list[tuple[UUID, int]]) -> int:
    table = Event._meta.db_table
    if keys:
        pairs = ", ".join(["(%s, %s)"] * len(keys))
        db.execute(
            f"DELETE FROM {table} WHERE (session_id, seq) IN (VALUES {pairs})",
            [value for session_id, seq in keys for value in (db.db_uuid(session_id), seq)],
        )
    return len(keys)


def purge_deleted_sessions() -> int:
    """Deletes for good what nobody can restore any more; how many sessions."""
    before = timezone.now() - timedelta(days=RESTORE_DAYS)
    gone = list(Session.objects.filter(deleted_at__lt=before).values_list("pk", flat=True)[:20])
    for pk in gone:
        Session.objects.filter(pk=pk).delete()
    return len(gone)


def drop_login_links() -> int:
    """Deletes login links that ran out a day ago; how many."""
    before = timezone.now() - timedelta(days=1)
    return LoginLink.objects.filter(expires_at__lt=before).delete()[0]


JOBS: Final[dict[str, Callable[[], int]]] = {
    "fold": fold_ended_runs,
    "trim_log": trim_log,
    "trim_long_logs": trim_long_logs,
    "purge": purge_deleted_sessions,
    "login_links": drop_login_links,
}
