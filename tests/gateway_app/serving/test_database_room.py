"""What a server says of PostgreSQL's connections before it opens any."""

import pytest
from django.db import connection

from gateway_app.serving.database_room import most_connections, too_little_room

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="a file has no such limit"),
]


def room() -> int:
    """What the server has for everybody who is not its operator."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('max_connections')::int"
            " - current_setting('superuser_reserved_connections')::int"
            " - coalesce(current_setting('reserved_connections', true)::int, 0)"
        )
        return int(cursor.fetchone()[0])


def test_it_says_nothing_of_workers_that_fit() -> None:
    assert too_little_room(room() // most_connections()) is None


def test_it_says_how_many_workers_fit() -> None:
    fit = room() // most_connections()
    said = too_little_room(fit + 1) or ""
    assert said.startswith(f"This server may open {(fit + 1) * most_connections()} connections")
    assert "Set max_connections to " in said
    assert said.endswith(f", or --workers to {fit}.")
