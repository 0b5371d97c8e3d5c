"""Whether a request can fit the model's window, told before the call."""

from collections.abc import Iterable
from typing import Final

from gateway_app.cached_agent import Profile
from gateway_app.providers.base import ContextFull
from sessions_app.sentences import say

CHARACTERS_PER_TOKEN: Final = 8
"""More than any prose or code has for long: the estimate stays below the true count, so that
nothing is refused that would have fitted. What lies between the two the provider refuses."""


def tokens_at_least(texts: Iterable[str]) -> int:
    """A lower bound of the tokens in these texts."""
    return sum(map(len, texts)) // CHARACTERS_PER_TOKEN


def overfull(
    profile: Profile, pieces: Iterable[str], *, told: int | None = None
) -> ContextFull | None:
    """The error of a request that cannot fit, else None. An unknown window holds everything.

    `told` is the window as the model's server tells it.
    """
    window = told or profile.window_tokens
    if window is None:
        return None
    prompt = profile.prompt
    tokens = tokens_at_least((prompt.system, prompt.tools, *pieces))
    if tokens <= window:
        return None
    return ContextFull(
        say(
            "This conversation has more than %(tokens)s tokens, and the model holds %(window)s."
            " Your message is kept. Start a new chat, or choose a model that holds more.",
            tokens=tokens,
            window=window,
        )
    )
