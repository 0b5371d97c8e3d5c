"""The Anthropic SDK's errors, as one ProviderError with one sentence."""

from collections.abc import Mapping
from typing import Final

import anthropic

from gateway_app.providers.failures import (
    TRANSPORT_FAILURES,
    Failure,
    Wording,
    failed_attempt,
    failed_status,
)

FAILURES: Final[tuple[type[Exception], ...]] = (anthropic.AnthropicError, *TRANSPORT_FAILURES)
"""What an attempt may raise beside a ProviderError, and `translate` understands."""


def translate(exc: Exception, wording: Wording) -> Failure:
    """The failure that an exception of the SDK, the transport or the parser stands for."""
    if isinstance(exc, anthropic.APIStatusError):
        error = exc.body.get("error") if isinstance(exc.body, Mapping) else exc.body
        return failed_status(exc.status_code, error, exc.response.headers, wording)
    return failed_attempt(exc, wording)
