"""What is known of a model without asking its server: a name for people, and its window.

From the list that comes with genai-prices; nothing is looked up.
"""

from dataclasses import dataclass
from functools import lru_cache

from genai_prices import Usage, calc_price

from gateway_app.local_model.engine import WINDOW_TOKENS
from gateway_app.local_model.packages import MODEL, MODEL_NAME


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """`window_tokens` is how much a request and its answer may hold together; None: unknown."""

    name: str
    window_tokens: int | None = None


@lru_cache(maxsize=1024)
def model_facts(provider: str, model: str, base_url: str | None = None) -> ModelFacts:
    """The facts of `provider:model`. An unknown model is called what its server calls it.

    `base_url` is the server's address, if it is not the provider's own: a model of the same name
    elsewhere may have another window.
    """
    if provider == "local":
        known = model == MODEL
        return ModelFacts(MODEL_NAME, WINDOW_TOKENS) if known else ModelFacts(model)
    try:
        if base_url is None:
            found = calc_price(Usage(), model_ref=model, provider_id=provider).model
        else:
            found = calc_price(Usage(), model_ref=model, provider_api_url=base_url).model
    except (LookupError, ValueError):
        return ModelFacts(model)
    return ModelFacts(found.name or model, found.context_window)
