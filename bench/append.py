"""How long one append takes, in a small and in a large database; prints JSON.

`python -m bench.append ROWS APPENDS`, with DJANGO_SETTINGS_MODULE and HERMES_DATA_DIR set; SQLite.
The rows are made with the clock's triggers off, which tick once afterwards.
"""

import asyncio
import json
import sys
from time import perf_counter
from uuid import UUID

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from gateway_app.config import gateway_config  # noqa: E402
from gateway_app.database_threads import DatabaseLanes  # noqa: E402
from sessions_app import clock  # noqa: E402
from sessions_app.models import Message, Session, new_id  # noqa: E402
from sessions_app.services import append_messages  # noqa: E402
from sessions_app.transcript import NewMessage  # noqa: E402

PARTS = json.dumps([{"type": "text", "text": "word " * 40}])
SESSION_ROWS = 1000


def make_session(number: int) -> UUID:
    return Session.objects.create(id=new_id(), key=f"bench:{number}").pk


def fill(rows: int) -> None:
    """`rows` messages stand in sessions of SESSION_ROWS each."""
    sessions = [make_session(number).hex for number in range(max(1, rows // SESSION_ROWS))]
    clock.drop(connection)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
                       " SELECT i + 1 FROM n WHERE i < %s) SELECT i FROM n",
                       [min(rows, SESSION_ROWS)])  # fmt: skip
        for session in sessions:
            cursor.execute(
                f"INSERT INTO {Message._meta.db_table} (session_id, position, kind, parts)"
                " SELECT %s, i * 1000000 + 1, 'user', %s FROM numbers",
                [session, PARTS],
            )
        cursor.execute(
            f"UPDATE {Session._meta.db_table} SET message_count = %s, next_block = %s",
            [min(rows, SESSION_ROWS), SESSION_ROWS + 1],
        )
    clock.install(connection)
    clock.tick_all(connection)


async def measure(session_id: UUID, appends: int) -> list[float]:
    """The milliseconds of each append, one after another, as a turn's code waits for them."""
    config = gateway_config()
    lanes = DatabaseLanes(readers=1, postgres=config.postgres_threads)
    lanes.start(checkpoint=True)
    took = []
    try:
        for _ in range(appends):
            began = perf_counter()
            await lanes.write(
                append_messages,
                session_id=session_id,
                messages=[NewMessage(kind="user", parts=PARTS)],
            )
            took.append((perf_counter() - began) * 1000)
    finally:
        await asyncio.to_thread(lanes.close)
    return took


def main() -> None:
    rows, appends = map(int, sys.argv[1:3])
    call_command("migrate", verbosity=0, interactive=False)
    fill(rows)
    session_id = make_session(-1)
    sys.stdout.write(json.dumps(asyncio.run(measure(session_id, appends))))


if __name__ == "__main__":
    main()
