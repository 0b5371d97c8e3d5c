"""A bare Channels consumer that relays a model's stream: no database, nothing kept.

`daphne bench.relay:application`. MODEL_URL says where the model is; RELAY_CLIENT how it is read:
`httpx` line by line, as such a relay is usually written, or `aiohttp`, the leanest there is.
"""

import json
import os
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import aiohttp
import httpx2
from django.conf import settings

settings.configure(
    SECRET_KEY="bench",
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=["channels"],
    CHANNEL_LAYERS={"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}},
)

import django  # noqa: E402

django.setup()

from channels.generic.websocket import AsyncWebsocketConsumer  # noqa: E402
from channels.routing import ProtocolTypeRouter  # noqa: E402

URL = f"{os.environ['MODEL_URL']}/chat/completions"


@cache
def httpx_client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(limits=httpx2.Limits(max_connections=4096), timeout=60)


@cache
def aiohttp_client() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))


async def lines_by_httpx(body: str) -> AsyncIterator[str]:
    async with httpx_client().stream("POST", URL, content=body) as answer:
        async for line in answer.aiter_lines():
            yield line


async def lines_by_aiohttp(body: str) -> AsyncIterator[str]:
    async with aiohttp_client().post(URL, data=body.encode()) as answer:
        async for line in answer.content:
            yield line.decode()


LINES = {"httpx": lines_by_httpx, "aiohttp": lines_by_aiohttp}[os.environ["RELAY_CLIENT"]]


class RelayConsumer(AsyncWebsocketConsumer):
    """Each frame is a request's JSON; its answer goes out a frame a token, then `done`."""

    async def receive(self, text_data: str | None = None, bytes_data: Any = None) -> None:
        async for line in LINES(text_data or ""):
            if not line.startswith("data: {"):
                continue
            choices = json.loads(line[6:])["choices"]
            if choices and (text := choices[0]["delta"].get("content")):
                await self.send(json.dumps({"delta": text}))
        await self.send(json.dumps({"done": True}))


application = ProtocolTypeRouter({"websocket": RelayConsumer.as_asgi()})
