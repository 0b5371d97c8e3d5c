"""Runs the model server on a socket that listens, until a signal or its owner's end."""

import asyncio
import os
import signal
import socket
import sys
import threading
from typing import NoReturn

from aiohttp import web

from gateway_app.addresses import http_url
from gateway_app.local_model.chatml import ChatML
from gateway_app.local_model.engine import EngineClient, RunningEngine, start_engine
from gateway_app.local_model.server import ModelServer


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return http_url(host, port)


def run(listener: socket.socket) -> NoReturn:
    """Loads the model, prints the URL on a line of its own and serves until SIGTERM or SIGINT.

    Raises LocalModelError before anything is printed.
    """
    engine = start_engine()
    asyncio.run(_serve(listener, engine))
    sys.stdout.flush()
    # llama.cpp's threads cannot be ended in good order while they generate
    os._exit(0)


def run_owned(listener: socket.socket) -> NoReturn:
    """As `run`, for an owner that holds the other end of stdin: when it ends, so does this."""
    threading.Thread(target=_end_with_owner, daemon=True).start()
    run(listener)


async def _serve(listener: socket.socket, engine: RunningEngine) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    client = EngineClient(engine)
    server = ModelServer(client, ChatML(*await client.specials()))
    # a handler is cancelled when its client goes: nobody reads the answer any more
    runner = web.AppRunner(
        server.application(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1
    )
    await runner.setup()
    await web.SockSite(runner, listener).start()
    sys.stdout.write(f"{url_of(listener)}\n")
    sys.stdout.flush()
    await stop.wait()
    await runner.cleanup()
    await client.aclose()


def _end_with_owner() -> None:
    # a thread of its own: it also ends a process whose loop hangs or that still loads the model
    while os.read(0, 4096):
        pass
    os._exit(0)
