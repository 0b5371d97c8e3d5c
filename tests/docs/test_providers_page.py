"""docs/providers.md says what the providers do, and names every sentence that they can end in."""

import re
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import httpx2
import pytest

from gateway_app import agent
from gateway_app.admin.agents import MAX_FALLBACKS
from gateway_app.config import GatewayConfig
from gateway_app.providers import base, failures, http
from gateway_app.providers.anthropic import AnthropicProvider
from gateway_app.providers.anthropic_wire import DEFAULT_MAX_TOKENS
from gateway_app.providers.base import ModelInvalid, ProviderError
from gateway_app.providers.failures import Wording, failed_attempt, failed_status
from gateway_app.providers.openai import OpenAIProvider
from gateway_app.providers.registry import KNOWN, Providers
from gateway_app.turns.fallback import FALLBACK_CODES
from tests.docs.reading import document, section, table_words

PAGE: Final = document("docs/providers.md")
ERRORS: Final = section(PAGE, "## What an error means")
WORDING: Final = Wording()
JSON: Final = {"content-type": "application/json"}


def rows(heading: str) -> list[list[str]]:
    """The cells of every row of the table below the heading, without its head."""
    lines = re.findall(r"^\| (.+) \|$", section(PAGE, heading), re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines[1:]]


def caused_by(cause: Exception) -> Exception:
    error = OSError("It failed")
    error.__cause__ = cause
    return error


def provider_errors() -> Iterator[ProviderError]:
    """An error of each kind that a server can bring about."""
    for status in (302, 400, 401, 402, 403, 404, 413, 429, 500, 529):
        yield failed_status(status, {"message": "what it says"}, JSON, WORDING).error
    yield failed_status(400, {"code": "content_filter"}, JSON, WORDING).error
    for cause in (
        ConnectionRefusedError(), socket.gaierror(), ssl.SSLError(), ConnectionResetError(),
        httpx2.ConnectTimeout("It failed"),
    ):  # fmt: skip
        yield failed_attempt(caused_by(cause), WORDING).error
    for exc in (failures.UnreadableAnswer(), failures.CutAnswer(), failures.WebPage()):
        yield failed_attempt(exc, WORDING).error
    yield failures.silent(5, WORDING, started=True)
    yield failures.silent(5, WORDING, started=False)
    yield failures.too_long(5, WORDING)
    for finish in ("stop", "length", "content_filter"):
        yield agent.without_answer(finish)


def in_table(error: ProviderError) -> bool:
    """Whether a row of the page begins as the error's sentence does, with its code."""
    said = re.sub(r"\d+", "N", str(error))
    return any(
        said.startswith(sentence.removesuffix(".").replace("(what it says)", ""))
        and code == f"`{error.code}`"
        for sentence, code, *_ in rows("## What an error means")
    )


@pytest.mark.parametrize("error", list(provider_errors()), ids=lambda error: str(error)[:60])
def test_it_explains_every_error_of_a_server(error: ProviderError) -> None:
    assert in_table(error), str(error)


@pytest.mark.parametrize(
    ("model", "config"),
    [
        ("nobody:x", {}),
        *(
            (f"{name}:x", config)
            for name in ("openai", "anthropic")
            for config in (
                {},
                {f"{name}_api_key": "a b"},
                {f"{name}_base_url": "http://host:port/"},
            )
        ),
    ],
)
async def test_it_explains_every_error_of_the_setting(model: str, config: dict[str, str]) -> None:
    with pytest.raises(ModelInvalid) as caught:
        await Providers(GatewayConfig(**config)).resolve(model)  # type: ignore[arg-type]  # texts
    name = model.partition(":")[0]
    said = str(caught.value).replace(repr(name), "PROVIDER")
    said = said.replace(name.upper(), "PROVIDER").replace(f"provider {name}", "provider PROVIDER")
    assert any(said.startswith(row[0].removesuffix(".")) for row in rows("## What an error means"))


def test_it_knows_the_codes_that_there_are() -> None:
    kinds = [base.ProviderError, *base.ProviderError.__subclasses__(), agent.TurnLimit]
    told = set(re.findall(r"`([a-z_]+)` \|", ERRORS))
    assert told == {kind.code for kind in kinds}


def test_it_names_every_provider() -> None:
    assert set(table_words(PAGE.partition("## ")[0])) == set(KNOWN)


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("## OpenAI and compatible servers", OpenAIProvider),
        ("## Anthropic and compatible servers", AnthropicProvider),
    ],
)
async def test_its_addresses_and_models_can_be_used(
    heading: str, kind: type[OpenAIProvider] | type[AnthropicProvider]
) -> None:
    for _, address, _, model in rows(heading):
        url = address.strip("`") or None
        provider = kind(GatewayConfig(), api_key="k", base_url=url)
        name, colon, rest = model.strip("`").partition(":")
        assert (name, colon) == (provider.name, ":")
        assert rest
        assert url is None or (await provider.address()) == url
        await provider.aclose()


def test_its_limits_are_those_of_the_code() -> None:
    config = GatewayConfig()
    patience = section(PAGE, "## Patience")
    for limit_s in (
        config.connect_timeout_s, config.first_token_timeout_s, config.idle_timeout_s,
        config.total_timeout_s,
    ):  # fmt: skip
        assert f"| {limit_s:g} s |" in patience
    assert f"repeated up to {config.max_retries} times" in patience
    assert f"up to {http.MAX_WAIT_S:g} s" in patience
    assert agent.EMPTY_RETRIES == 1
    assert "An empty answer is asked for once more." in patience
    assert f"one of {DEFAULT_MAX_TOKENS}," in PAGE


def test_it_says_when_a_fallback_is_asked() -> None:
    told = section(PAGE, "## Fallback models")
    assert "up to five" in told
    assert MAX_FALLBACKS == 5
    assert {"model_unavailable", "model_rate_limited", "model_timeout"} == FALLBACK_CODES
    assert len(re.findall(r"^- ", told, re.MULTILINE)) == len(FALLBACK_CODES)


def test_it_is_linked() -> None:
    assert "(docs/providers.md)" in document("README.md")
    assert "(providers.md)" in document("docs/configuration.md")
