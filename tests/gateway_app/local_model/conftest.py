"""A real model process for each module, and conversations that speak to it as the gateway does."""

import json
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from gateway_app.config import GatewayConfig
from gateway_app.local_model.child import LocalModelChild
from gateway_app.providers.base import (
    Delta,
    ModelRequest,
    Prompt,
    RequestSettings,
    TextDelta,
    Usage,
)
from gateway_app.providers.local import LocalProvider
from sessions_app.signals import TranscriptRow

SYSTEM = "You are a helpful assistant. Answer briefly and clearly."


@pytest.fixture(scope="module")
def model_url():
    child = LocalModelChild()
    try:
        yield child.wait()
    finally:
        child.close()


@pytest.fixture
async def provider(model_url):
    made = LocalProvider(GatewayConfig(local_url=model_url))
    yield made
    await made.aclose()


class Conversation:
    """A transcript as the gateway sends it: rows, encoded once, joined into each request."""

    def __init__(self, provider: LocalProvider, system: str = SYSTEM) -> None:
        self.provider = provider
        self.session_id = uuid4()
        self.usage = Usage(0, 0, 0)
        self.answer = ""
        self._prompt = Prompt(hash="", system=system)
        self._pieces: list[str] = []

    def write(self, kind: str, text: str) -> None:
        parts = json.dumps([{"type": "text", "text": text}])
        row = TranscriptRow(uuid4(), len(self._pieces), kind, "active", parts, None)
        self._pieces.append(self.provider.wire.encode(row))

    def stream(self, most: int) -> AsyncIterator[list[Delta]]:
        """The answer to what was written, not yet stored."""
        body = self.provider.wire.body(
            model="smollm2",
            prompt=self._prompt,
            pieces=self._pieces,
            settings=RequestSettings(max_output_tokens=most),
            session_id=self.session_id,
        )
        return self.provider.stream(ModelRequest(self.session_id, "smollm2", body))

    async def say(self, text: str, *, most: int = 24) -> Usage:
        """One turn: the person's text, the model's answer, both in the transcript; its usage."""
        self.write("user", text)
        self.answer = ""
        async for deltas in self.stream(most):
            for delta in deltas:
                if isinstance(delta, TextDelta):
                    self.answer += delta.text
                elif isinstance(delta, Usage):
                    self.usage = delta
        self.write("assistant", self.answer)
        return self.usage


@pytest.fixture
def conversation(provider):
    def begin(system: str = SYSTEM) -> Conversation:
        return Conversation(provider, system)

    return begin


def cached_share(before: Usage, after: Usage) -> float:
    """How much of the former turn's prompt and answer the later turn found in the cache."""
    return after.cached_tokens / (before.input_tokens + before.output_tokens)
