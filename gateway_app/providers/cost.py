"""What a request cost, from the price list that comes with genai-prices; nothing is looked up."""

from decimal import Decimal
from typing import Final

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from gateway_app.providers.base import Usage

UNPRICED: Final = frozenset({"local"})


def cost_usd(
    provider: str, model: str, usage: Usage, *, base_url: str | None = None
) -> Decimal | None:
    """US dollars, or None: a local model, a model or server without a known price, no counts.

    `base_url` is the server's address, if it is not the provider's own: a model of the same name
    on another server has that server's price, or none.
    """
    if provider in UNPRICED or usage.input_tokens is None or usage.output_tokens is None:
        return None
    read = min(usage.cached_tokens or 0, max(usage.input_tokens, 0))
    written = min(usage.cache_write_tokens or 0, max(usage.input_tokens - read, 0))
    try:
        counts = PricedUsage(
            input_tokens=usage.input_tokens,
            cache_read_tokens=read,
            cache_write_tokens=written,
            output_tokens=usage.output_tokens,
        )
        if base_url is None:
            price = calc_price(counts, model_ref=model, provider_id=provider)
        else:
            price = calc_price(counts, model_ref=model, provider_api_url=base_url)
    except (LookupError, ValueError):
        return None
    # a list without prices for a model counts them as nothing
    return price.total_price or None
