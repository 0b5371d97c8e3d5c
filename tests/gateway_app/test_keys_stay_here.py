"""No turn shows a key or a traceback, whatever a provider's server repeats (I11)."""

import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import Event, Turn
from sessions_app.models import Message
from tests.fake_model_server import FakeModelServer, Script
from tests.session_log import verified
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

KEYS = {"openai": "5ecretOpenAIkey42", "anthropic": "5ecretClaudeKey42"}
ECHO = f"Authorization: Bearer {KEYS['openai']} {KEYS['anthropic']}; x-api-key: {KEYS['anthropic']}"
ECHO_EVENT = json.dumps({"type": "error", "error": {"message": ECHO, "code": 400}})
TRACEBACK = f"Traceback (most recent call last):\n  File /srv/model.py, line 1\n{ECHO}"


@pytest.fixture
def config(config: GatewayConfig, model: FakeModelServer) -> GatewayConfig:
    return replace(
        config,
        openai_api_key=KEYS["openai"],
        anthropic_api_key=KEYS["anthropic"],
        anthropic_base_url=model.url,
    )


@sync_to_async
def stored() -> str:
    """Everything that the database keeps of turns."""
    kept: list[Any] = [
        *Message.objects.values(),
        *Turn.objects.values(),
        *Event.objects.values(),
    ]
    return repr(kept)


@pytest.mark.parametrize("provider", sorted(KEYS))
@pytest.mark.parametrize(
    "script",
    [
        *(Script(status=status, error={"message": ECHO, "type": "x"})
          for status in (400, 401, 403, 404, 413, 429, 500)),
        Script(status=400, error=ECHO),
        Script(status=500, error=TRACEBACK),
        Script(status=400, error={"message": TRACEBACK}),
        Script(raw=[f"data: {ECHO_EVENT}\n\n".encode()]),
        Script(status=302, error=ECHO, headers={"Location": f"http://{KEYS['openai']}.invalid/"}),
        Script(raw=[f"data: {ECHO}\n\n".encode()]),
    ],
    ids=["400", "401", "403", "404", "413", "429", "500", "text", "trace-500", "trace-400",
         "stream", "redirect", "garbled"],
)  # fmt: skip
async def test_no_key_and_no_traceback_gets_out(
    gateway: GatewayHost,
    model: FakeModelServer,
    owner: User,
    caplog: pytest.LogCaptureFixture,
    script: Script,
    provider: str,
) -> None:
    caplog.set_level(logging.INFO)
    model.script(script)
    async with SocketClient(owner) as client:
        created = await client.ok("session.create", clientMessageId="c")
        session_id = created["session"]["id"]
        await client.ok("session.update", sessionId=session_id, model=f"{provider}:fake-1")
        await client.ok("session.subscribe", sessionId=session_id)
        sent = await client.say("hello", session_id)
        failed = await client.finished(sent["turnId"])
        await verified(client, session_id)
        seen = repr([client.events(), await client.ok("session.history", sessionId=session_id)])
    assert failed["type"] == "RUN_ERROR"
    header = model.requests[0].headers
    assert KEYS[provider] in header.get("authorization", "") + header.get("x-api-key", "")
    for text in (seen, await stored(), caplog.text, failed["message"]):
        assert not any(key in text for key in KEYS.values())
        assert "Traceback" not in text
        assert "/srv/model.py" not in text
