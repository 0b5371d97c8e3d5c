"""Daphne in this process, from the bound port to the drained end."""

from daphne.server import Server as Daphne  # isort: skip  (first: it installs the reactor)

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any, Final

from autobahn.exception import Disconnected
from daphne.endpoints import build_endpoint_description_strings
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet import defer, reactor

from gateway_app.config import GatewayConfig
from gateway_app.host import host
from gateway_app.serving.http_request import take_requests
from gateway_app.serving.leaving import close_and_leave, limit_drain, listen
from gateway_app.serving.loaded import keep_what_is_loaded
from gateway_app.serving.port import PortTaken
from gateway_app.tasks import end_tasks

logger = logging.getLogger(__name__)

PONG_PATIENCE_S: Final = 30
LEAVING_S: Final = 0.2
"""How long closed sockets have to leave by themselves before their consumers are cancelled."""


class Room:
    """Whether the transport takes more: Twisted's IPushProducer, waited for by whoever sends."""

    def __init__(self) -> None:
        self.there = asyncio.Event()
        self.there.set()

    def pauseProducing(self) -> None:  # noqa: N802 Twisted's name
        self.there.clear()

    def resumeProducing(self) -> None:  # noqa: N802 Twisted's name
        self.there.set()

    def stopProducing(self) -> None:  # noqa: N802 Twisted's name
        self.there.set()


class Socket(WebSocketProtocol):
    """Daphne's websocket, with limits of its own for each direction.

    An Origin that is no URL is answered as the door answers a foreign one.
    """

    maxMessagePayloadSize: int  # noqa: N815 autobahn's name

    def __init__(self) -> None:
        super().__init__()
        self.room = Room()

    def onOpen(self) -> None:  # noqa: N802 autobahn's name
        self.transport.unregisterProducer()  # the HTTP channel that this connection was
        self.transport.registerProducer(self.room, True)
        super().onOpen()

    def sendMessage(self, *args: Any, **options: Any) -> None:  # noqa: N802 autobahn's name
        """autobahn holds what it sends to the limit of what it takes; a snapshot may be larger."""
        limit, self.maxMessagePayloadSize = self.maxMessagePayloadSize, 0
        try:
            super().sendMessage(*args, **options)
        except Disconnected:  # the client left at this moment; its consumer hears of it next
            pass
        finally:
            self.maxMessagePayloadSize = limit

    def failHandshake(self, reason: str, code: int = 400, responseHeaders: Any = None) -> None:  # noqa: N802, N803 autobahn's names
        super().failHandshake(reason, 403 if "Origin" in reason else code, responseHeaders)


class Server(Daphne):
    """Serves `application` until SIGTERM or SIGINT, then drains; `run()` returns after that.

    `failure` is why it never served, in one sentence; None after an orderly end.
    """

    def __init__(
        self,
        application: Any,
        *,
        address: str,
        port: int,
        config: GatewayConfig,
        announce: Callable[[int], None],
        say: Callable[[str], None],
        listener: socket.socket | None = None,
    ) -> None:
        super().__init__(
            application,
            endpoints=build_endpoint_description_strings(host=address, port=port),
            signal_handlers=False,
            websocket_timeout=-1,
            ping_interval=config.heartbeat_ping_s,
            ping_timeout=PONG_PATIENCE_S,
            # above our own limit, so that a frame a little too large is answered by close 4009
            websocket_max_message_size=2 * config.max_frame_bytes,
            websocket_max_frame_size=2 * config.max_frame_bytes,
            verbosity=0,
            ready_callable=self._prepare,
        )
        self.listener = listener
        if listener is not None:  # adopted below: Daphne's words for a descriptor know no IPv6
            self.endpoints: list[str] = []
        self.address = (address, port)
        self.config = config
        self.announce = announce
        self.say = say
        self.ports: list[Any] = []
        self.failure: str | None = None
        self.stopping = False
        self.starting: asyncio.Future[None] | None = None
        self.loop: asyncio.AbstractEventLoop = reactor._asyncioEventloop

    def _prepare(self) -> None:
        """Runs when the ports are bound and the reactor does not turn yet."""
        self.ws_factory.protocol = Socket
        take_requests(self.http_factory)
        if self.listener is not None:
            adopted = reactor.adoptStreamPort(
                self.listener.fileno(), self.listener.family, self.http_factory
            )
            self.listener.close()  # the reactor has one of its own
            self.listen_success(adopted)
        listen(self.stop_soon)
        reactor.callWhenRunning(self._begin)

    def _begin(self) -> None:
        self.starting = asyncio.ensure_future(self._start())

    async def _start(self) -> None:
        try:
            await host().start()
        except Exception as exc:  # whatever it was: nothing is served without the gateway
            logger.exception("The gateway did not start")
            self.fail(f"The gateway did not start: {exc}")
            return
        keep_what_is_loaded()
        if not self.stopping:
            self.announce(self.ports[0].getHost().port)

    def fail(self, sentence: str) -> None:
        self.failure = sentence
        self.stop()

    # --- Daphne's own hooks ---

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Returns when the client has read enough of what it was sent, so that nothing piles up."""
        await super().handle_reply(protocol, message)
        if message["type"] == "websocket.send":
            await protocol.room.there.wait()

    def listen_success(self, port: Any) -> None:
        super().listen_success(port)
        self.ports.append(port)

    def listen_error(self, failure: Any) -> None:
        reason = getattr(failure.value, "socketError", failure.value)
        self.fail(str(PortTaken(*self.address, getattr(reason, "strerror", str(reason)))))

    def stop(self) -> None:
        """Begins the end. Once begun, further calls and signals change nothing."""
        if not self.stopping:
            self.stopping = True
            super().stop()

    def stop_soon(self) -> None:
        """`stop`, from another thread or a signal."""
        self.loop.call_soon_threadsafe(self.stop)

    def kill_all_applications(self) -> defer.Deferred[None]:
        """Daphne's last act before the reactor ends, which waits for it: the drain."""
        return defer.Deferred.fromFuture(asyncio.ensure_future(self._drain()))

    async def _drain(self) -> None:
        """Turns had their time, sockets were told and closed, the gateway is shut down."""
        code = 0 if self.failure is None else 1
        limit_drain(self.config.drain_s, code)
        try:
            if self.failure is None:
                self.say(f"Stopping: running answers get up to {self.config.drain_s:g} s.")
            if self.starting is not None:  # what is half there cannot be drained
                await asyncio.wait([self.starting])
            if self.failure is None:
                await host().drain(self.config.drain_s)
            await self._stop_listening()
            await host().drain(0)  # whoever came while the others went
            await asyncio.sleep(LEAVING_S)
            await self._cancel_applications()
        finally:
            await close_and_leave(host(), code)

    async def _stop_listening(self) -> None:
        closed = [defer.maybeDeferred(port.stopListening) for port in self.ports]
        for deferred in closed:
            await deferred.asFuture(asyncio.get_running_loop())

    async def _cancel_applications(self) -> None:
        """Ends what Daphne still runs; a consumer that ended before its socket has no task."""
        tasks = [
            details["application_instance"]
            for details in self.connections.values()
            if "application_instance" in details
        ]
        await end_tasks(tasks)
