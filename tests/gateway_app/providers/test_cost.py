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
