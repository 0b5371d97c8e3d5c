"""Prices come from the list that is installed, or there is none."""

from decimal import Decimal

import pytest

from gateway_app.providers.base import Usage
from gateway_app.providers.cost import cost_usd


def test_it_prices_cached_tokens_lower() -> None:
    fresh = cost_usd("openai", "gpt-4o-mini", Usage(1_000_000, 0, 0))
    cached = cost_usd("openai", "gpt-4o-mini", Usage(1_000_000, 1_000_000, 0))
    assert fresh == Decimal("0.15")
    assert cached == Decimal("0.075")


def test_it_prices_reads_and_writes_of_anthropics_cache() -> None:
    model, million = "claude-sonnet-5-5", 1_000_000
    fresh = cost_usd("anthropic", model, Usage(million, 0, 0))
    read = cost_usd("anthropic", model, Usage(million, million, 0))
    written = cost_usd("anthropic", model, Usage(million, 0, 0, million))
    mixed = cost_usd("anthropic", model, Usage(million, 500_000, 1000, 100_000))
    assert (fresh, read, written) == (Decimal("2"), Decimal("0.1"), Decimal("2.5"))
    assert mixed == Decimal("1.11")


def test_counts_that_contradict_each_other_cost_no_less_than_nothing() -> None:
    cost = cost_usd("anthropic", "claude-sonnet-5-5", Usage(10, 100, 0, 100))
    assert cost is not None
    assert cost > 0


@pytest.mark.parametrize(
    ("address", "model"),
    [
        ("https://openrouter.ai/api/v1", "openai/gpt-5-mini"),
        ("https://api.groq.com/openai/v1", "llama-3.3-70b-versatile"),
        ("https://api.mistral.ai/v1", "mistral-large-latest"),
        ("https://api.deepseek.com/v1", "deepseek-chat"),
        ("https://api.x.ai/v1", "grok-4"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash"),
    ],
)
def test_it_prices_the_servers_that_the_page_names(address: str, model: str) -> None:
    assert cost_usd("openai", model, Usage(1000, None, 10), base_url=address)


def test_what_costs_nothing_has_no_cost() -> None:
    assert cost_usd("openai", "gpt-4o-mini", Usage(0, 0, 0)) is None


def test_it_prices_a_model_of_another_known_server() -> None:
    cost = cost_usd(
        "openai",
        "openai/gpt-4o-mini",
        Usage(1000, None, 10),
        base_url="https://openrouter.ai/api/v1",
    )
    assert cost is not None
    assert cost > 0


@pytest.mark.parametrize(
    ("provider", "model", "usage", "base_url"),
    [
        ("local", "smollm2", Usage(10, 0, 10), None),
        ("openai", "no-such-model", Usage(10, 0, 10), None),
        ("openai", "", Usage(10, 0, 10), None),
        ("nobody", "gpt-4o-mini", Usage(10, 0, 10), None),
        ("openai", "gpt-4o-mini", Usage(None, None, 10), None),
        ("openai", "gpt-4o-mini", Usage(10, 0, None), None),
        ("openai", "gpt-4o-mini", Usage(-1, 0, 10), None),
        ("openai", "gpt-4o-mini", Usage(10, 0, 10), "http://127.0.0.1:11434/v1"),
        ("openai", "gpt-4o-mini", Usage(10, 0, 10), ""),
    ],
)
def test_it_knows_no_price_rather_than_a_wrong_one(
    provider: str, model: str, usage: Usage, base_url: str | None
) -> None:
    assert cost_usd(provider, model, usage, base_url=base_url) is None
