"""A conversation over the websocket."""

from collections.abc import AsyncIterator

import pytest_asyncio
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from tests.gateway_app.coherence.elsewhere import SocketConversation


@pytest_asyncio.fixture
async def conversation(gateway: GatewayHost, owner: User) -> AsyncIterator[SocketConversation]:
    """The owner's new conversation, without a message."""
    opened = SocketConversation(gateway, owner)
    await opened.open()
    yield opened
    await opened.close()
