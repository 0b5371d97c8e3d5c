"""The queue of a session, as its people see it."""

from uuid import UUID

from gateway_app.models import Turn
from gateway_app.shapes import Shape, author_shape, queue_item


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
        Turn.objects.filter(session_id=session_id, state__in=["queued", "held"])
        .order_by("-priority", "accepted_seq")
        .values_list("pk", "content", "author_id", "author__username", "when_busy")
    )
    return [
        queue_item(pk, place, content, author_shape(author, {author or 0: name or ""}), when_busy)
        for place, (pk, content, author, name, when_busy) in enumerate(waiting, start=1)
    ]
