"""Whether this process can serve, part by part."""

import asyncio
import logging
from typing import Final

from channels.layers import get_channel_layer
from django.db import Error, connection
from redis.exceptions import AuthenticationError, AuthorizationError, RedisError

from gateway_app.migration_state import missing_migrations, unknown_migrations
from sessions_app import clock

logger = logging.getLogger(__name__)

OK: Final = "ok"
REFUSED: Final = "Redis refuses the password of REDIS_URL."
LAYER_PATIENCE_S: Final = 3


def database_parts() -> dict[str, str]:
    """`database`, `migrations` and `clock`: OK, or one sentence that names no secret."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return {"database": OK, "migrations": _migrations(), "clock": _clock()}
    except Error as exc:
        logger.warning("The database does not answer", extra={"reason": str(exc)})
        return {
            "database": "The database does not answer.",
            "migrations": "unknown",
            "clock": "unknown",
        }


async def channel_layer_part() -> str:
    """OK if a wake-up can be sent now, else one sentence."""
    layer = get_channel_layer()
    assert layer is not None
    try:
        async with asyncio.timeout(LAYER_PATIENCE_S):
            await layer.group_send("hermes-readiness", {"type": "readiness"})
    except (AuthenticationError, AuthorizationError) as exc:
        logger.warning("The channel layer does not let us in", extra={"reason": str(exc)})
        return REFUSED
    except (OSError, RedisError) as exc:
        logger.warning("The channel layer does not answer", extra={"reason": str(exc)})
        return "The channel layer does not answer."
    return OK


def _migrations() -> str:
    if newer := unknown_migrations(connection):
        return f"The database is newer than this version: {newer[0]}."
    if missing := missing_migrations(connection):
        return f"{len(missing)} migrations are missing. Run python manage.py migrate."
    return OK


def _clock() -> str:
    if clock.SESSION not in connection.introspection.table_names():
        return "not installed"
    if clock.differences(connection):
        return "The transcript clock is not in place. Run python manage.py migrate."
    return OK
