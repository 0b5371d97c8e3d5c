"""The OpenAI SDK's errors, as one ProviderError with one sentence."""

from typing import Final

import openai

from gateway_app.providers.failures import (
    TRANSPORT_FAILURES,
    Failure,
    Wording,
    failed_attempt,
    failed_status,
)

FAILURES: Final[tuple[type[Exception], ...]] = (openai.OpenAIError, *TRANSPORT_FAILURES)
"""What an attempt may raise beside a ProviderError, and `translate` understands."""


def translate(exc: Exception, wording: Wording) -> Failure:
    """The failure that an exception of the SDK, the transport or the parser stands for."""
    if isinstance(exc, openai.APIStatusError):
        return failed_status(exc.status_code, exc.body, exc.response.headers, wording)
    return failed_attempt(exc, wording)
