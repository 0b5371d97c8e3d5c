"""Serves the collected static files from an ASGI application without blocking its event loop."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit
from wsgiref.headers import Headers

from django.conf import settings
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage, staticfiles_storage
from django.core.handlers.asgi import ASGIHandler
from whitenoise import WhiteNoise
from whitenoise.responders import Response

from hermes_site.types import ASGIApp, Event, Receive, Scope, Send

CHUNK_BYTES: Final = 64 * 1024
FOR_FRAMES: Final = "gateway_app/vendor/mermaid/"
_CONDITIONS: Final = {
    b"if-none-match": "HTTP_IF_NONE_MATCH",
    b"if-modified-since": "HTTP_IF_MODIFIED_SINCE",
    b"accept-encoding": "HTTP_ACCEPT_ENCODING",
    b"range": "HTTP_RANGE",
}


def with_static_files(app: ASGIApp) -> ASGIApp:
    """`app` behind the static files of this configuration.

    Hashed storage: the collected files. Plain storage (tests) or DEBUG: straight from the apps.
    """
    prefix = urlsplit(settings.STATIC_URL).path
    if settings.DEBUG or not isinstance(staticfiles_storage, ManifestStaticFilesStorage):
        # It only calls what it is given.
        return open_to_frames(ASGIStaticFilesHandler(cast(ASGIHandler, app)), prefix=prefix)
    files = StaticFiles(
        app,
        root=Path(settings.STATIC_ROOT),
        prefix=prefix,
        immutable=staticfiles_storage.hashed_files.values(),
    )
    return open_to_frames(files, prefix=prefix)


def open_to_frames(app: ASGIApp, *, prefix: str) -> ASGIApp:
    """`app`, whose modules for diagrams may be read by the frame that draws them.

    That frame has an origin of its own, so that its modules come from another origin.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_open(message: Event) -> None:
            if message["type"] == "http.response.start":
                opened = (b"access-control-allow-origin", b"*")
                message = {**message, "headers": [*message.get("headers", ()), opened]}
            await send(message)

        wanted = scope["type"] == "http" and scope["path"].startswith(prefix + FOR_FRAMES)
        await app(scope, receive, send_open if wanted else send)

    return answer


class StaticFiles:
    """Answers for the files found under `root` at construction; everything else is `app`'s."""

    def __init__(self, app: ASGIApp, *, root: Path, prefix: str, immutable: Iterable[str]) -> None:
        self.app = app
        forever = {prefix + name for name in immutable}
        root.mkdir(parents=True, exist_ok=True)
        found = WhiteNoise(
            None,
            root=str(root),
            prefix=prefix,
            allow_all_origins=False,
            immutable_file_test=lambda path, url: url in forever,
            add_headers_function=_add_headers,
        ).files
        manifest = prefix + ManifestStaticFilesStorage.manifest_name
        self.files = {url: file for url, file in found.items() if _public(url) and url != manifest}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file = self.files.get(scope["path"]) if scope["type"] == "http" else None
        if file is None:
            await self.app(scope, receive, send)
            return
        headers = {
            _CONDITIONS[name]: value.decode("latin-1")
            for name, value in scope["headers"]
            if name in _CONDITIONS
        }
        await _send(await asyncio.to_thread(file.get_response, scope["method"], headers), send)


def _public(url: str) -> bool:
    """Whether a file is for browsers: not one of those that begin with a dot."""
    return not url.rpartition("/")[2].startswith(".")


def _add_headers(headers: Headers, path: str, url: str) -> None:
    headers["X-Content-Type-Options"] = "nosniff"


async def _send(response: Response, send: Send) -> None:
    """The whole response, its file read chunk by chunk in a thread and closed."""
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in response.headers]
    await send({"type": "http.response.start", "status": int(response.status), "headers": headers})
    file: Any = response.file
    try:
        while file is not None and (chunk := await asyncio.to_thread(file.read, CHUNK_BYTES)):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        if file is not None:
            file.close()
