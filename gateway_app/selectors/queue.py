"""The queue of a session, as its people see it."""

from typing import Final
from uuid import UUID

from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from gateway_app.models import Turn
from gateway_app.shapes import Shape, author_shape, queue_item

_TURN: Final = Turn._meta.db_table


def _literally(condition: str) -> RawSQL:
    """A condition in the words of a partial index: SQLite takes none whose values are bound."""
    return RawSQL(condition, [], output_field=BooleanField())


WAITING: Final = _literally(f"{_TURN}.state IN ('queued', 'held') AND {_TURN}.priority > -32769")
"""Turns that wait to run, held ones included; by index, however many have ended. `queued_sql`."""

OPEN: Final = _literally(f"{_TURN}.state IN ('running', 'waiting_approval')")
"""The session's turn that runs or waits for an approval; likewise."""


def queued_sql(turn: str) -> str:
    """SQL: the turn of this alias waits to run.

    The words are those of the partial index `turn_queue`, without which SQLite does not use it. The
    condition on its second column makes it better than another index that starts with session.
    """
    waits = f"{turn}.state IN ('queued', 'held') AND {turn}.priority > -32769"
    return f"({waits} AND {turn}.state = 'queued')"


def read_queue(session_id: UUID) -> list[Shape]:
    """Waiting turns in the order in which they will run."""
    waiting = (
        Turn.objects.filter(WAITING, session_id=session_id)
        .order_by("-priority", "accepted_seq")
        .values_list(
            "pk", "content", "author_id", "author__username", "when_busy", "client_message_id"
        )
    )
    return [
        queue_item(pk, place, content, author_shape(author, {author or 0: name or ""}), way, sent)
        for place, (pk, content, author, name, way, sent) in enumerate(waiting, start=1)
    ]
