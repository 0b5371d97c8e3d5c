"""A client of `/api/v1/` for tests: the real application over ASGI, without a network."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http.response import HttpResponseBase
from django.test import AsyncClient

from gateway_app import credentials

Answer = dict[str, Any]


class HttpClient:
    """Somebody with an API token; without a user, nobody. Paths start below `/api/v1`."""

    def __init__(self, user: User | None = None) -> None:
        self.user = user
        self._client = AsyncClient(raise_request_exception=False)
        self._headers: dict[str, str] = {}

    async def ask(
        self, method: str, path: str, body: Any = None, **options: Any
    ) -> HttpResponseBase:
        """One request with a JSON body, if any. `headers` go beside the token's."""
        if self.user is not None and not self._headers:
            token = await sync_to_async(credentials.create_token)(user=self.user)
            self._headers = {"Authorization": f"Bearer {token}"}
        headers = self._headers | options.pop("headers", {})
        if method in {"POST", "PATCH", "PUT"}:
            body = b"" if body is None else body
            options = {"data": body, "content_type": "application/json"} | options
        call = getattr(self._client, method.lower())
        answer: HttpResponseBase = await call(f"/api/v1{path}", headers=headers, **options)
        return answer

    async def ok(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        """One request that must succeed; its JSON."""
        answer: Any = await self.ask(method, path, body, **options)
        assert answer.status_code < 300, (answer.status_code, answer.content)
        return answer.json() if answer.content else {}  # type: ignore[no-any-return]

    async def refused(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        """One request that must fail; its error, with the `status`."""
        answer: Any = await self.ask(method, path, body, **options)
        assert answer.status_code >= 400, answer.content
        error: Answer = answer.json()["error"]
        return error | {"status": answer.status_code}

    async def file(self, path: str, **options: Any) -> bytes:
        """A download, as it comes in pieces."""
        answer: Any = await self.ask("GET", path, **options)
        assert answer.status_code == 200, answer.content
        content = b"".join([piece async for piece in answer.streaming_content])
        answer.close()
        return content
