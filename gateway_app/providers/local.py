"""The provider for the embedded model: OpenAI's wire to a child, or to HERMES_LOCAL_URL."""

from collections.abc import Mapping
from typing import Final

from gateway_app.config import GatewayConfig
from gateway_app.local_model.child import LocalModelChild
from gateway_app.local_model.packages import MODEL, LocalModelError
from gateway_app.local_model.server import SESSION_HEADER
from gateway_app.providers.base import ModelRequest, ModelUnavailable
from gateway_app.providers.failures import Wording
from gateway_app.providers.openai import OpenAIProvider
from sessions_app.sentences import say

ANYWHERE: Final = "http://local/v1"
"""Stands for the address in the fingerprint: the port is another after each start of the gateway,
the model is the same, so a conversation has no reason to begin its prompt anew."""


class LocalProvider(OpenAIProvider):
    """Owns the child, unless `config.local_url` names a server that runs already."""

    def __init__(self, config: GatewayConfig) -> None:
        mend = say("Try again in a moment.")
        if config.local_url:
            mend = say("Check %(variable)s.", variable="HERMES_LOCAL_URL")
        wording = Wording(
            who=say("The local model"),
            no_model=say("There is no model at the address of the local model."),
            mend_address=mend,
        )
        super().__init__(config, name="local", base_url=ANYWHERE, wording=wording, proxied=False)
        self._child = None if config.local_url else LocalModelChild()

    def start(self) -> None:
        """The model is being loaded, so that the first answer need not wait for it.

        Without a child of its own nothing happens. Raises ModelUnavailable, saying what to do.
        """
        if self._child is not None:
            try:
                self._child.start()
            except LocalModelError as exc:
                raise ModelUnavailable(exc.sentence) from exc

    async def address(self) -> str:
        """The base URL of a server that answers. Raises ModelUnavailable."""
        if self._child is None:
            url = (self.config.local_url or "").rstrip("/").removesuffix("/v1")
        else:
            try:
                url = await self._child.url()
            except LocalModelError as exc:
                raise ModelUnavailable(exc.sentence) from exc
        return f"{url}/v1"

    def headers(self, request: ModelRequest) -> Mapping[str, str]:
        """Names the conversation, which keeps its slot in the model by that."""
        return {SESSION_HEADER: str(request.session_id)}

    async def default_model(self) -> str:
        return MODEL

    async def models(self) -> list[str]:
        return [MODEL]

    async def aclose(self) -> None:
        """The connections are closed and the child has ended."""
        await super().aclose()
        if self._child is not None:
            await self._child.aclose()
