"""The provider for OpenAI and every server that is compatible with its Chat Completions."""

import hashlib
from typing import Final
from urllib.parse import urlsplit

from openai import AsyncOpenAI, DefaultAioHttpClient

from gateway_app.config import GatewayConfig
from gateway_app.providers.failures import Failure, Wording
from gateway_app.providers.http import HTTPProvider, client_options
from gateway_app.providers.openai_chat import OpenAIChatWire
from gateway_app.providers.openai_errors import FAILURES, translate
from gateway_app.providers.openai_replay import BLANKS
from gateway_app.providers.openai_stream import OpenAIAnswerParser

OPENAI_URL: Final = "https://api.openai.com/v1"
DEFAULT_MODEL: Final = "gpt-5.4-mini"


class OpenAIProvider(HTTPProvider):
    """One OpenAI-compatible server in one process."""

    failures = FAILURES
    answers_at = "/chat/completions"
    models_at = "/models"

    def __init__(
        self,
        config: GatewayConfig,
        *,
        name: str = "openai",
        api_key: str | None = None,
        base_url: str | None = None,
        wording: Wording | None = None,
        backoff_s: float = 0.5,
        proxied: bool = True,
    ) -> None:
        """`base_url` None: OpenAI's own. `backoff_s`: the first pause before a second attempt.

        `proxied` False: the proxy that the environment names is not for this server.
        """
        super().__init__(
            config,
            name=name,
            api_key=api_key,
            base_url=base_url or OPENAI_URL,
            wording=wording or Wording(),
            backoff_s=backoff_s,
        )
        host = urlsplit(self.base_url).hostname or ""
        self.server = hashlib.sha256(self.base_url.encode(errors="replace")).hexdigest()[:16]
        self.wire = OpenAIChatWire(
            official=host == "api.openai.com", server=self.server, blank=BLANKS.get(host)
        )
        self.known_default = DEFAULT_MODEL if base_url is None else None
        options = client_options(config, proxied=proxied)
        self.client = AsyncOpenAI(
            api_key=self.key,
            base_url=self.base_url,
            max_retries=0,
            timeout=options["timeout"],
            default_headers=self.login if api_key is None else None,
            http_client=DefaultAioHttpClient(**options),
        )

    def _parser(self) -> OpenAIAnswerParser:
        return OpenAIAnswerParser(self.server)

    def _translate(self, exc: Exception) -> Failure:
        return translate(exc, self.wording)
