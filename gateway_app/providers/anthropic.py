"""The provider for Anthropic and every server that is compatible with its Messages."""

from typing import Final

from anthropic import AsyncAnthropic, DefaultAioHttpClient

from gateway_app.config import GatewayConfig
from gateway_app.providers.anthropic_errors import FAILURES, translate
from gateway_app.providers.anthropic_stream import AnthropicAnswerParser
from gateway_app.providers.anthropic_wire import AnthropicWire
from gateway_app.providers.failures import Failure, Wording
from gateway_app.providers.http import HTTPProvider, client_options
from sessions_app.sentences import say

ANTHROPIC_URL: Final = "https://api.anthropic.com"
DEFAULT_MODEL: Final = "claude-sonnet-5-5"
WORDING: Final = Wording(
    mend_key=say("Check %(variable)s.", variable="ANTHROPIC_API_KEY"),
    mend_address=say("Check %(variable)s and the network.", variable="ANTHROPIC_BASE_URL"),
)


class AnthropicProvider(HTTPProvider):
    """Anthropic, or one server compatible with it, in one process."""

    failures = FAILURES
    answers_at = "/v1/messages"
    models_at = "/v1/models"

    def __init__(
        self,
        config: GatewayConfig,
        *,
        name: str = "anthropic",
        api_key: str | None = None,
        base_url: str | None = None,
        wording: Wording | None = None,
        backoff_s: float = 0.5,
    ) -> None:
        """`base_url` None: Anthropic's own; it stands before `/v1/messages`."""
        super().__init__(
            config,
            name=name,
            api_key=api_key,
            base_url=(base_url or ANTHROPIC_URL).rstrip("/").removesuffix("/v1"),
            wording=wording or WORDING,
            backoff_s=backoff_s,
        )
        self.wire = AnthropicWire()
        self.known_default = DEFAULT_MODEL if base_url is None else None
        options = client_options(config, proxied=True)
        # a key is always given: without one the SDK would look for credentials of its own
        self.client = AsyncAnthropic(
            api_key=self.key,
            base_url=self.base_url,
            max_retries=0,
            timeout=options["timeout"],
            default_headers=self.login if api_key is None else None,
            open_telemetry=False,
            http_client=DefaultAioHttpClient(**options),
        )

    def _parser(self) -> AnthropicAnswerParser:
        return AnthropicAnswerParser()

    def _translate(self, exc: Exception) -> Failure:
        return translate(exc, self.wording)
