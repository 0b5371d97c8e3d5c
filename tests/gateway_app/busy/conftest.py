"""Two processes on one database, for messages to busy sessions."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    """A process that obeys soon."""
    return replace(config, heartbeat_s=0.05)


@pytest_asyncio.fixture
async def other(gateway: GatewayHost) -> AsyncIterator[GatewayHost]:
    """Another process on the same database."""
    host = GatewayHost(replace(gateway.config, postgres_threads=2))
    await host.start(checkpoint=False)
    yield host
    await host.aclose()
