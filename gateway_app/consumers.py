"""The websocket consumer: parse, delegate, send. It never awaits a turn; the runner owns those."""

import asyncio
import logging
from typing import Any, Final

from channels.consumer import AsyncConsumer
from django.db import DatabaseError

from gateway_app import protocol
from gateway_app.close_codes import FAULT, LAGGING, POLICY, TOO_LARGE
from gateway_app.connection import Connection
from gateway_app.errors import GatewayError
from gateway_app.host import host
from gateway_app.outbox import Outbox
from gateway_app.protocol import FrameError
from gateway_app.slow_commands import SlowCommands
from gateway_app.socket_commands import COMMANDS
from sessions_app.errors import SessionEnded, SessionError
from sessions_app.sentences import say

logger: Final = logging.getLogger(__name__)


def _need_hello(connection: Connection, command: protocol.AnyCommand) -> None:
    if not connection.greeted and not isinstance(command, protocol.Hello):
        raise FrameError("unauthenticated", say("Say hello first."), command.id)


def _size(frame: str | bytes) -> int:
    """Bytes of a frame on the wire."""
    if isinstance(frame, bytes) or frame.isascii():
        return len(frame)
    return len(frame.encode("utf-8", "surrogatepass"))


class GatewayConsumer(AsyncConsumer):
    """One socket. Its own message loop spares Channels' thread hop and layer task per frame."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope, self.base_send = scope, send
        self._closed = False
        self._refusals = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._commands: asyncio.Queue[protocol.AnyCommand] = asyncio.Queue()
        self._slow = SlowCommands(self._answer, self._report)
        self._connection: Connection | None = None
        try:
            while True:
                message = await receive()
                if message["type"] == "websocket.connect":
                    await self._connect()
                elif message["type"] == "websocket.receive":
                    await self._receive(message)
                elif message["type"] == "websocket.disconnect":
                    return
        finally:
            self._end()

    async def _connect(self) -> None:
        if protocol.PROTOCOL not in self.scope.get("subprotocols", ()):
            await self.base_send({"type": "websocket.close"})
            return
        gateway, user = host(), self.scope["user"]
        self._place = (user.pk, self.scope.get("address", ""))
        if not await gateway.limits.enter(*self._place):
            await self.base_send({"type": "websocket.accept", "subprotocol": protocol.PROTOCOL})
            await self._close(POLICY)
            return
        outbox = Outbox(self._send_text, gateway.lanes, gateway.config, user.pk)
        self._connection = Connection(
            host=gateway,
            user_id=user.pk,
            user_name=user.get_username(),
            credential=self.scope["credential"],
            outbox=outbox,
            tell=self._send_text,
            close=self._close,
        )
        await self.base_send({"type": "websocket.accept", "subprotocol": protocol.PROTOCOL})
        gateway.connections.add(self._connection)
        for work in (outbox.run(), self._serve()):
            task = asyncio.create_task(work)
            task.add_done_callback(self._report)
            self._tasks.append(task)

    def _report(self, task: "asyncio.Task[None]") -> None:
        """A fault in a socket's own task closes the socket; the client comes back."""
        if not task.cancelled() and (error := task.exception()):
            logger.error("A socket's task broke off", exc_info=error)
            asyncio.ensure_future(self._close(FAULT))  # noqa: RUF006  ends with the socket

    async def _send_text(self, text: str) -> None:
        if not self._closed:
            await self.base_send({"type": "websocket.send", "text": text})

    async def _close(self, code: int) -> None:
        if not self._closed:
            self._closed = True
            await self.base_send({"type": "websocket.close", "code": code})

    def _end(self) -> None:
        self._closed = True
        for task in self._tasks:
            task.cancel()
        self._slow.end()
        if self._connection is not None:
            self._connection.host.limits.leave(*self._place)
            self._connection.host.connections.discard(self._connection)
            self._connection.end()

    async def _receive(self, message: dict[str, Any]) -> None:
        connection, text = self._connection, message.get("text")
        if connection is None or self._closed:
            return
        config = connection.host.config
        limit = config.max_frame_bytes if connection.greeted else config.max_hello_bytes
        if _size(text or message.get("bytes") or b"") > limit:
            await self._close(TOO_LARGE)
            return
        try:
            if text is None:
                raise FrameError("invalid_frame", say("Send text frames; this one was binary."))
            reply = self._take(connection, protocol.parse(text))
        except FrameError as exc:
            reply = protocol.error(exc.re, exc.code, exc.sentence)
        if self._refusals > config.max_refusals:  # it does not wait
            await self._close(POLICY)
        elif reply is not None and not connection.outbox.answer(reply):
            await self._close(LAGGING)

    def _take(self, connection: Connection, command: protocol.AnyCommand) -> str | None:
        """The reply to what needs no waiting; the rest is queued, in order."""
        if isinstance(command, protocol.Ping):
            return protocol.ok(command.id, {"t": command.t})
        if isinstance(command, protocol.Ack):
            _need_hello(connection, command)
            for session_id, seq in command.acks.items():
                connection.outbox.acknowledge(session_id, seq)
        elif wait_ms := self._must_wait_ms(connection, command):
            self._refusals += 1
            text = say("Too many commands at once. Wait a little, then send it again.")
            return protocol.error(
                command.id, "rate_limited", text, retryable=True, retryAfterMs=wait_ms
            )
        else:
            self._refusals = 0
            self._commands.put_nowait(command)
        return None

    def _must_wait_ms(self, connection: Connection, command: protocol.AnyCommand) -> int:
        """How long until the command may come again; 0: it may come now."""
        open_commands = self._commands.qsize() + len(self._slow)
        if open_commands >= connection.host.config.max_open_commands:
            return 1000
        sends = isinstance(command, protocol.STARTING)
        return connection.host.limits.command(connection.user_id, sends=sends)

    async def _serve(self) -> None:
        """Runs this socket's commands one after another: sends keep their order."""
        while True:
            command = await self._commands.get()
            if isinstance(command, protocol.SLOW):
                self._slow.put(command)
            else:
                await self._answer(command)

    async def _answer(self, command: protocol.AnyCommand) -> None:
        connection = self._connection
        assert connection is not None
        await connection.outbox.idle()
        if (reply := await self._reply(connection, command)) is not None:
            connection.outbox.put(reply)

    async def _reply(self, connection: Connection, command: protocol.AnyCommand) -> str | None:
        more: dict[str, Any] = {}
        try:
            _need_hello(connection, command)
            result = await COMMANDS[type(command)](connection, command)
            return None if result is None else protocol.ok(command.id, result)
        except FrameError as exc:
            return protocol.error(command.id, exc.code, exc.sentence)
        except SessionError as exc:
            if isinstance(exc, SessionEnded) and exc.successor_id:
                more["successorId"] = str(exc.successor_id)
            code = "invalid_frame" if exc.code == "invalid" else exc.code
            return protocol.error(command.id, code, exc.sentence, **more)
        except GatewayError as exc:
            return protocol.error(command.id, exc.code, exc.sentence, retryable=exc.retryable)
        except DatabaseError:
            logger.exception("A command lost the database")
            text = say("The database did not answer. Nothing was lost; send it again.")
            return protocol.error(command.id, "internal", text, retryable=True)
        except Exception:  # the last line of defence: a person gets a sentence, the log the rest
            logger.exception("A command broke off")
            text = say("Something broke in this server. Send it again.")
            return protocol.error(command.id, "internal", text, retryable=True)
