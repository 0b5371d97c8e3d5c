"""`manage.py runworker turns --port N`: what a supervisor and Prometheus ask a turn worker."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from django.conf import settings
from django.utils.module_loading import import_string

from gateway_app.addresses import http_url
from gateway_app.config import gateway_config
from gateway_app.host import GatewayHost, set_host
from gateway_app.serving.server import Server

PATHS: Final = frozenset({"/healthz", "/readyz", "/metrics"})

_Application = Callable[[Any, Any, Any], Awaitable[None]]


def run_turns_beside_port(address: str, port: int, tell: Callable[[str], None]) -> str | None:
    """`run_turns`, and the port answers PATHS as a server's own does, to whom it would."""
    config = replace(gateway_config(), turns="inline")
    set_host(GatewayHost(config))

    def announce(bound: int) -> None:
        tell(f"Health and metrics: {http_url(address, bound)}")
        tell("Turns run here.")

    server = Server(
        _only_paths(import_string(settings.ASGI_APPLICATION)),
        address=address,
        port=port,
        config=config,
        announce=announce,
        say=tell,
    )
    server.run()
    return server.failure


def _only_paths(application: _Application) -> _Application:
    """Nobody chats or logs in where turns run."""

    async def call(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        elif scope["path"] in PATHS:
            await application(scope, receive, send)
        else:
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body"})

    return call
