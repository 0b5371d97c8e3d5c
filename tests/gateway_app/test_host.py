"""The gateway of a process: it starts once, and again after a start that failed."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection, connections

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import Turn

pytestmark = pytest.mark.django_db(transaction=True)


def rename(before: str, after: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {before} RENAME TO {after}")


async def test_it_starts_once_however_often_it_is_asked(config: GatewayConfig) -> None:
    host = GatewayHost(config)
    await asyncio.gather(*(host.start(checkpoint=False) for _ in range(5)))
    assert await host.lanes.read(Turn.objects.count) == 0
    await host.aclose()


async def test_it_starts_again_after_the_database_was_away(config: GatewayConfig) -> None:
    host, table = GatewayHost(config), Turn._meta.db_table
    await sync_to_async(rename)(table, "away")
    try:
        with pytest.raises(DatabaseError):
            await host.start(checkpoint=False)
    finally:
        await sync_to_async(rename)("away", table)
    await host.start(checkpoint=False)
    assert await host.lanes.read(Turn.objects.count) == 0
    await host.aclose()
    await sync_to_async(connections.close_all)()
