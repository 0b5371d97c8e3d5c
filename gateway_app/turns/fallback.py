"""Which model a run asks: the agent's own, then its fallbacks, once it could not be had."""

from typing import Final

from gateway_app.providers.base import ProviderError
from sessions_app.sentences import say

FALLBACK_CODES: Final = frozenset({"model_unavailable", "model_rate_limited", "model_timeout"})
"""Failures of the agent's own model that another model may heal; a wrong key must be seen."""


class ModelChoice:
    """`index` counts the models of a run: 0 is the agent's own. It stays for the run's rest."""

    def __init__(self) -> None:
        self.index = 0
        self._first: ProviderError | None = None

    def next(self, error: ProviderError, fallbacks: int) -> ProviderError | None:
        """None: `index` names the next model. Otherwise the error that the run ends with.

        A fallback may fail for any reason; then the next one is asked.
        """
        if self._first is None:
            if error.code not in FALLBACK_CODES or fallbacks == 0:
                return error
            self._first = error
        if self.index < fallbacks:
            self.index += 1
            return None
        first = self._first
        text = first.sentence + say("No fallback model could answer either.")
        return type(first)(text, retry_after_ms=first.retry_after_ms)
