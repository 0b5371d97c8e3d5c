"""The API, put together: `api.urls` stand below `/api/v1/`."""

from typing import Any, Final

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from gateway_app import __version__
from gateway_app.api import messages, people, sessions, transfers, turns
from gateway_app.api.callers import Authentication
from gateway_app.api.errors import register_handlers

_DESCRIPTION: Final = """\
Conversations, messages and turns over HTTP. Authenticate with `Authorization: Bearer <API token>`,
or with the session cookie of the chat; with the cookie, send the CSRF token in `X-CSRFToken` for
whatever is no GET. What is not the caller's own is `not_found`, also for staff.
"""


class HermesAPI(NinjaAPI):
    """Names each operation as its handler is named, and keeps its document."""

    _document: OpenAPISchema | None = None

    def get_openapi_schema(self, **params: Any) -> OpenAPISchema:
        """The document, made once: whoever asks for it needs no credential."""
        if self._document is None:
            self._document = super().get_openapi_schema()
        return self._document

    def get_openapi_operation_id(self, operation: Operation) -> str:
        name: str = operation.view_func.__name__
        return name


api = HermesAPI(
    title="Hermes",
    version=__version__,
    description=_DESCRIPTION,
    urls_namespace="api",
    docs_url=None,
    auth=Authentication(),
)
register_handlers(api)
for router in (people.router, sessions.router, messages.router, turns.router, transfers.router):
    api.add_router("", router)
