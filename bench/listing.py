"""How long a page of a person's conversations takes, and a search in them; prints JSON.

`python -m bench.listing SESSIONS REPEATS`, with DJANGO_SETTINGS_MODULE and HERMES_DATA_DIR set;
SQLite. Each conversation has a turn, a question and an answer that its owner has not seen.
"""

import asyncio
import json
import sys
from time import perf_counter
from typing import Any

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.models import Model  # noqa: E402

from gateway_app.database_threads import DatabaseLanes  # noqa: E402
from gateway_app.models import Turn  # noqa: E402
from gateway_app.selectors.sessions import list_sessions, make_cursor  # noqa: E402
from sessions_app import clock  # noqa: E402
from sessions_app.models import BLOCK, Message, Session  # noqa: E402

PARTS = [{"type": "text", "text": "word " * 40}]
NEW_ID = "lower(hex(randomblob(16)))"
PAGE = 50


def copy(one: Model, source: str, **other: str) -> None:
    """A row as `one` for each row of `source`; `other` columns are SQL of the two."""
    table = one._meta.db_table
    columns = [field.column for field in one._meta.concrete_fields]
    chosen = ", ".join(other.get(name, f"one.{name}") for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM {source}"
            f" JOIN {table} one ON one.id = %s",
            [one.pk.hex],
        )


def fill(sessions: int) -> User:
    """Somebody with so many conversations, a minute apart; the clock's triggers tick afterwards."""
    user = User.objects.create_user("ann")
    clock.drop(connection)
    first = Session.objects.create(owner=user, title="Talk 0 of many", key="bench:0", next_block=2)
    turn = Turn.objects.create(
        session=first, state="completed", author=user, content=PARTS, accepted_seq=1, block=1,
        client_message_id=first.pk.hex, body_hash="-",
    )  # fmt: skip
    said = [
        Message.objects.create(session=first, turn_id=turn.pk, kind=kind, parts=PARTS,
                               position=BLOCK + place, author=author)
        for place, (kind, author) in enumerate((("user", user), ("assistant", None)), start=1)
    ]  # fmt: skip
    numbers = (
        "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        f" WHERE i < {sessions - 1}) SELECT i FROM n)"
    )
    copy(
        first, numbers, id=NEW_ID, key="'bench:' || i", title="'Talk ' || i || ' of many'",
        updated_at="strftime('%%Y-%%m-%%d %%H:%%M:%%f', one.updated_at, '-' || i || ' minutes')",
    )  # fmt: skip
    others = f"(SELECT id AS sid FROM {Session._meta.db_table} WHERE key <> 'bench:0')"
    copy(turn, others, id=NEW_ID, session_id="sid", client_message_id="sid")
    for row in said:
        copy(row, others, id=NEW_ID, session_id="sid")
    clock.install(connection)
    clock.tick_all(connection)
    return user


def asks(user: User, sessions: int) -> dict[str, dict[str, Any]]:
    """What is asked of the list, by the name of its figure."""
    middle = Session.objects.get(title=f"Talk {sessions // 2} of many")
    cursor = make_cursor(middle.updated_at.isoformat(), str(middle.pk))
    return {
        "first": {},
        "middle": {"cursor": cursor},
        "common": {"query": "many"},
        "oldest": {"query": f"talk {sessions - 1} "},
        "none": {"query": "nowhere"},
    }


async def measure(user: User, sessions: int, repeats: int) -> dict[str, list[float]]:
    """The milliseconds of each answer, as a command's code waits for them."""
    wanted = await asyncio.to_thread(asks, user, sessions)
    lanes = DatabaseLanes(readers=1, postgres=1)
    lanes.start(checkpoint=True)
    took: dict[str, list[float]] = {name: [] for name in wanted}
    try:
        for _ in range(repeats):
            for name, ask in wanted.items():
                whole = {"query": None, "cursor": None, **ask}
                began = perf_counter()
                await lanes.read(
                    list_sessions, user_id=user.pk, limit=PAGE, archived=False, **whole
                )
                took[name].append((perf_counter() - began) * 1000)
    finally:
        await asyncio.to_thread(lanes.close)
    return took


def main() -> None:
    sessions, repeats = map(int, sys.argv[1:3])
    call_command("migrate", verbosity=0, interactive=False)
    user = fill(sessions)
    sys.stdout.write(json.dumps(asyncio.run(measure(user, sessions, repeats))))


if __name__ == "__main__":
    main()
