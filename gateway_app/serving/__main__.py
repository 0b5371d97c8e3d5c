"""One worker of `serve --workers N`, started by its owner (`group.py`)."""

import argparse
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import django

from gateway_app import group_metrics


def main() -> int:
    """Serves until SIGTERM or its owner's end; says `ready`, or why not, on stdout."""
    options = _options()
    group_metrics.join(options.metrics, options.place)
    django.setup()

    # here, not above: they need Django's models
    from django.conf import settings
    from django.utils.module_loading import import_string

    from gateway_app.config import gateway_config
    from gateway_app.host import GatewayHost, set_host
    from gateway_app.serving.group import READY
    from gateway_app.serving.port import PortTaken, share
    from gateway_app.serving.server import Server

    config = gateway_config()
    config = replace(config, local_url=config.local_url or options.local_url)
    set_host(GatewayHost(config))
    try:
        listener = share(options.host, options.port)
    except PortTaken as exc:
        _tell(str(exc))
        return 1
    server = Server(
        import_string(settings.ASGI_APPLICATION),
        address=options.host,
        port=options.port,
        config=config,
        announce=lambda _: _tell(READY),
        say=lambda _: None,
        listener=listener,
    )
    threading.Thread(target=_end_with_owner, args=(server.stop_soon,), daemon=True).start()
    server.run()
    if server.failure:
        _tell(server.failure)
        return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--place", type=int, required=True)
    parser.add_argument("--metrics", type=Path, required=True)
    parser.add_argument("--local-url")
    return parser.parse_args()


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _end_with_owner(stop: Callable[[], None]) -> None:
    """The owner holds the other end of stdin, for as long as it lives."""
    while os.read(0, 4096):
        pass
    stop()


if __name__ == "__main__":
    raise SystemExit(main())
