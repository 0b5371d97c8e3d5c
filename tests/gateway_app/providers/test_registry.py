"""Names of models to providers, by configuration."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from gateway_app.config import GatewayConfig
from gateway_app.providers.base import ModelInvalid, Usage
from gateway_app.providers.openai import DEFAULT_MODEL
from gateway_app.providers.registry import Providers
from tests.fake_model_server import FakeModelServer
from tests.gateway_app.providers.asking import a_request
from tests.gateway_app.providers.conftest import KEY
from tests.gateway_app.serving.conftest import ROOT, environment

MakeProviders = Callable[..., Providers]


@pytest.fixture
async def make_providers() -> AsyncIterator[MakeProviders]:
    made: list[Providers] = []

    def make(**config: str | None) -> Providers:
        made.append(Providers(replace(GatewayConfig(), **config)))  # type: ignore[arg-type]  # the caller's fields
        return made[-1]

    yield make
    for providers in made:
        await providers.aclose()


LOADED = """
import sys, django
django.setup()
import gateway_app.host
print(sorted({"openai", "anthropic"} & set(sys.modules)))
"""


def test_it_loads_no_vendors_package_before_a_provider_is_made(tmp_path: Path) -> None:
    """A command that asks no model need not wait for it."""
    loaded = subprocess.check_output(
        [sys.executable, "-c", LOADED], cwd=ROOT, text=True,
        env=environment(tmp_path, DJANGO_SETTINGS_MODULE="hermes_site.settings"),
    )  # fmt: skip
    assert loaded == "[]\n"


async def test_it_makes_a_provider_once(make_providers: MakeProviders) -> None:
    providers = make_providers(openai_api_key=KEY)
    assert providers.get("openai") is providers.get("openai")


async def test_it_resolves_provider_and_model(make_providers: MakeProviders) -> None:
    providers = make_providers(openai_api_key=KEY)
    provider, model = await providers.resolve("openai:llama3:8b")
    assert provider is providers.get("openai")
    assert model == "llama3:8b"


@pytest.mark.parametrize("name", ["", "openai", "openai:"])
async def test_a_key_alone_means_the_providers_default(
    make_providers: MakeProviders, name: str
) -> None:
    provider, model = await make_providers(openai_api_key=KEY).resolve(name)
    assert (provider.name, model) == ("openai", DEFAULT_MODEL)


async def test_an_address_means_its_first_model(
    make_providers: MakeProviders, server: FakeModelServer
) -> None:
    """Also without a key: then a placeholder is sent."""
    providers = make_providers(openai_base_url=server.url)
    provider, model = await providers.resolve("")
    assert (provider.name, model) == ("openai", "fake-1")
    async for _ in provider.stream(a_request(provider)):  # type: ignore[arg-type]  # an OpenAIProvider
        pass
    assert server.requests[0].headers["authorization"] == "Bearer none"


async def test_an_address_without_its_v1_is_told(
    make_providers: MakeProviders, server: FakeModelServer
) -> None:
    providers = make_providers(openai_base_url=server.url.removesuffix("/v1"))
    with pytest.raises(ModelInvalid) as caught:
        await providers.resolve("")
    assert "Check OPENAI_BASE_URL: most servers want its /v1." in str(caught.value)


async def test_hermes_model_comes_first(make_providers: MakeProviders) -> None:
    providers = make_providers(openai_api_key=KEY, default_model="openai:gpt-5.5")
    assert (await providers.resolve(""))[1] == "gpt-5.5"


async def test_nothing_set_means_the_embedded_model(make_providers: MakeProviders) -> None:
    provider, model = await make_providers().resolve("")
    assert (provider.name, model) == ("local", "smollm2")


@pytest.mark.parametrize(
    ("name", "config", "sentence"),
    [
        ("gpt-5", {}, "Write it as provider:model, such as openai:gpt-5."),
        (
            "nobody:x",
            {},
            "There is no model provider 'nobody'. Known are: openai, anthropic, local.",
        ),
        ("openai:x", {}, "The provider openai has no key. Set OPENAI_API_KEY"),
        ("openai:x", {"openai_api_key": "sk-é"}, "OPENAI_API_KEY holds characters"),
        ("openai:x", {"openai_api_key": "sk-a b"}, "OPENAI_API_KEY holds characters"),
        ("openai:x", {"openai_base_url": "http://host:port/v1"}, "OPENAI_BASE_URL is no address"),
    ],
)
async def test_it_says_what_to_set(
    make_providers: MakeProviders, name: str, config: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ModelInvalid) as caught:
        await make_providers(**config).resolve(name)
    assert sentence in str(caught.value)


async def test_it_prices_openai_but_not_a_server_of_the_same_models(
    make_providers: MakeProviders, server: FakeModelServer
) -> None:
    usage = Usage(1000, 0, 100)
    own, other = make_providers(openai_api_key=KEY), make_providers(openai_base_url=server.url)
    assert own.cost_usd("openai", DEFAULT_MODEL, usage) is not None
    assert other.cost_usd("openai", DEFAULT_MODEL, usage) is None
    assert own.cost_usd("local", "smollm2", usage) is None


async def test_it_makes_providers_anew_after_closing(make_providers: MakeProviders) -> None:
    providers = make_providers(openai_api_key=KEY)
    before = providers.get("openai")
    await providers.aclose()
    assert providers.get("openai") is not before


async def test_a_price_is_exact(make_providers: MakeProviders) -> None:
    cost = make_providers(openai_api_key=KEY).cost_usd("openai", "gpt-4o-mini", Usage(10, 0, 10))
    assert isinstance(cost, Decimal)
