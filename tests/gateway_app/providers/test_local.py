"""The provider for the embedded model, as far as it needs no model."""

from uuid import uuid4

import pytest

from gateway_app.config import GatewayConfig
from gateway_app.local_model.running import listen, url_of
from gateway_app.providers.base import ModelRequest, ModelUnavailable
from gateway_app.providers.local import LocalProvider


def free_url() -> str:
    """An address that nobody listens on."""
    with listen("127.0.0.1", 0) as listener:
        return url_of(listener)


async def test_it_keeps_its_fingerprint_whatever_the_address():
    providers = [
        LocalProvider(GatewayConfig(local_url=url)) for url in (None, "http://a", "http://b")
    ]
    assert len({provider.fingerprint for provider in providers}) == 1
    for provider in providers:
        await provider.aclose()


@pytest.mark.parametrize("url", ["http://a:1", "http://a:1/", "http://a:1/v1", "http://a:1/v1/"])
async def test_it_takes_the_url_with_or_without_its_version(url):
    provider = LocalProvider(GatewayConfig(local_url=url))
    assert await provider.address() == "http://a:1/v1"
    assert await provider.default_model() == "smollm2"
    await provider.aclose()


async def test_it_starts_no_child_where_a_model_runs_already():
    provider = LocalProvider(GatewayConfig(local_url=free_url(), max_retries=0))
    try:
        provider.start()
        with pytest.raises(ModelUnavailable, match=r"local model .* Check HERMES_LOCAL_URL"):
            await anext(provider.stream(ModelRequest(uuid4(), "smollm2", b"{}")))
    finally:
        await provider.aclose()
