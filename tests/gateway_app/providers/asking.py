"""How the tests ask a provider, and read what it answers."""

from collections.abc import Sequence

import pytest

from gateway_app.providers.base import (
    Delta,
    ModelRequest,
    Prompt,
    ProviderError,
    RequestSettings,
    TextDelta,
)
from gateway_app.providers.http import HTTPProvider
from tests.gateway_app.providers.conftest import SESSION

HELLO = '{"role":"user","content":"Hello"}'
BLOCKS = '{"role":"user","content":[{"type":"text","text":"Hello"}]}'


def a_request(provider: HTTPProvider, *pieces: str, model: str = "fake-1") -> ModelRequest:
    body = provider.wire.body(
        model=model,
        prompt=Prompt("hash", "You are Hermes."),
        pieces=pieces or (BLOCKS if provider.wire.name.startswith("anthropic") else HELLO,),
        settings=RequestSettings(),
        session_id=SESSION,
    )
    return ModelRequest(SESSION, model, body)


async def batches(provider: HTTPProvider, *pieces: str) -> list[Sequence[Delta]]:
    return [batch async for batch in provider.stream(a_request(provider, *pieces))]


async def deltas(provider: HTTPProvider, *pieces: str) -> list[Delta]:
    return [delta for batch in await batches(provider, *pieces) for delta in batch]


async def failure(provider: HTTPProvider) -> ProviderError:
    """The error that the request ends in."""
    with pytest.raises(ProviderError) as caught:
        await deltas(provider)
    return caught.value


def text_of(answer: Sequence[Delta]) -> str:
    return "".join(delta.text for delta in answer if isinstance(delta, TextDelta))
