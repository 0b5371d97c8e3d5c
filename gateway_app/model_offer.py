"""Which models people may choose here, as `model.list` tells it."""

from typing import Any

from django.db.models import F

from gateway_app.database_threads import DatabaseLanes
from gateway_app.models import Agent
from gateway_app.providers.base import ProviderError
from gateway_app.providers.registry import Providers

Shape = dict[str, Any]


async def offered_models(lanes: DatabaseLanes, providers: Providers) -> list[Shape]:
    """The site's default first, then those that agents name, then what the providers list, and the
    embedded model.

    A provider that does not answer now has no models now; its agents' models are there anyway.
    """
    default = await _default_model(providers)
    named = await lanes.read(_agents_models)
    names = [default, *named, *await providers.listed(), *providers.embedded()]
    return [
        _model_shape(name, providers, default=name == default)
        for name in dict.fromkeys(names)
        if name is not None
    ]


async def _default_model(providers: Providers) -> str | None:
    try:
        provider, model = await providers.resolve("")
    except ProviderError:
        return None
    return f"{provider.name}:{model}"


def _agents_models() -> list[str]:
    """The models of the agents' current versions, without those that take the site's default."""
    agents = Agent.objects.filter(versions__number=F("current_version"))
    models = agents.order_by("-is_default", "name").values_list("versions__model", flat=True)
    return [model for model in models if all(model.partition(":"))]


def _model_shape(model: str, providers: Providers, *, default: bool) -> Shape:
    provider, _, name = model.partition(":")
    facts = providers.facts(provider, name)
    shape: Shape = {"id": model, "name": facts.name, "provider": provider, "default": default}
    if facts.window_tokens is not None:
        shape["contextWindow"] = facts.window_tokens
    return shape
