"""A place that could not be made leaves nothing behind."""

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection

from tests.chaos.place import Place

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="a place is on PostgreSQL"),
]


async def test_it_leaves_nothing_behind_when_its_server_does_not_start(tmp_path: Path) -> None:
    postgres = os.environ["DATABASE_URL"]
    place = Place(
        postgres=postgres, model_url="http://127.0.0.1:9", workers=1, folder=tmp_path / "data",
        unheard_of=1,
    )  # fmt: skip
    with pytest.raises(AssertionError, match="unheard_of"):
        async with place:
            pass
    assert place.served.returncode
    assert place.log.closed
    for port in (place.network.port, place.redis_port):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
    name = urlsplit(place.database_url).path.lstrip("/")
    with psycopg.connect(postgres) as server:
        assert not server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchall()
