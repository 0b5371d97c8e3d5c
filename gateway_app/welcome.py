"""What a first visit is told of models: whether the embedded one answers, and what else could."""

from typing import Final

from django.db.models import F
from django.utils.translation import gettext, gettext_noop

from gateway_app.host import host
from gateway_app.models import AgentVersion
from gateway_app.providers.registry import KNOWN

_EMBEDDED: Final = "local:"
_VARIABLES: Final = (
    ("anthropic", "Anthropic", "ANTHROPIC_API_KEY"),
    ("openai", "OpenAI", "OPENAI_API_KEY"),
    ("openai", gettext_noop("Your own server"), "OPENAI_BASE_URL"),
)


def embedded_answers() -> bool:
    """Whether new conversations get the embedded model, unless somebody chooses another."""
    own = AgentVersion.objects.filter(agent__is_default=True, number=F("agent__current_version"))
    model = own.values_list("model", flat=True).first() or host().providers.site_default
    return model.startswith(_EMBEDDED)


def connectable() -> list[tuple[str, str]]:
    """(provider, the variable that connects it) of all that this version speaks to."""
    return [(gettext(name), variable) for kind, name, variable in _VARIABLES if kind in KNOWN]
