"""A client of `/ws/v1/` for tests: the real consumer over ASGI, without a network."""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any, Self

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app import credentials
from gateway_app.consumers import GatewayConsumer

PATIENCE_S = 90
"""A test that waits longer than this for a frame has failed."""

Frame = dict[str, Any]


def _credential(user: User) -> Any:
    admission = credentials.admit_token(credentials.create_token(user=user, name="tests"))
    assert admission is not None
    return admission.credential


class SocketClient:
    """`async with SocketClient(user) as client:` says hello; frames are kept in `frames`."""

    def __init__(self, user: User, *, subprotocols: list[str] | None = None) -> None:
        self.scope = {
            "type": "websocket",
            "path": "/ws/v1/",
            "headers": [],
            "subprotocols": ["hermes.v1"] if subprotocols is None else subprotocols,
            "user": user,
        }
        self.user = user
        self.credential: Any = None
        """Another than a token of its own."""
        self.frames: list[Frame] = []
        self.replies: dict[str, Frame] = {}
        self.closed: int | None = None
        self.accepted = False
        self.acknowledging = True
        self._ids = itertools.count(1)
        self._incoming: asyncio.Queue[Frame] = asyncio.Queue()
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        await self.ok("hello", protocol="hermes.v1", client="tests")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    async def open(self) -> None:
        """Connects, without a hello."""
        if self.credential is None:
            self.credential = await sync_to_async(_credential)(self.user)
        self.scope["credential"] = self.credential
        application = GatewayConsumer.as_asgi()
        self._task = asyncio.create_task(application(self.scope, self._incoming.get, self._receive))
        await self._incoming.put({"type": "websocket.connect"})
        await self.until(lambda: self.accepted or self.closed is not None)

    async def leave(self) -> None:
        """The tab is closed."""
        await self._incoming.put({"type": "websocket.disconnect", "code": 1001})
        if self._task is not None:
            await asyncio.wait([self._task], timeout=PATIENCE_S)
            self._task.result()

    async def _receive(self, message: Frame) -> None:
        async with self._changed:
            if message["type"] == "websocket.accept":
                self.accepted = True
            elif message["type"] == "websocket.close":
                self.closed = message.get("code", 1000)
            else:
                frame = json.loads(message["text"])
                if "re" in frame:
                    self.replies[frame["re"]] = frame
                self.frames.append(frame)
                if "event" in frame and self.acknowledging:
                    acks = {frame["sessionId"]: frame["seq"]}
                    await self.send({"type": "ack", "acks": acks})
            self._changed.notify_all()

    async def send(self, frame: Frame) -> None:
        await self.send_text(json.dumps(frame))

    async def send_text(self, text: str) -> None:
        await self._incoming.put({"type": "websocket.receive", "text": text})

    async def send_bytes(self, value: bytes) -> None:
        await self._incoming.put({"type": "websocket.receive", "bytes": value})

    async def ask(self, kind: str, **fields: Any) -> Frame:
        """One command; its reply."""
        name = str(next(self._ids))
        await self.send({"id": name, "type": kind, **fields})
        await self.until(lambda: name in self.replies or self.closed is not None)
        return self.replies[name]

    async def ok(self, kind: str, **fields: Any) -> Any:
        """One command that must succeed; its result."""
        reply = await self.ask(kind, **fields)
        assert reply["ok"], reply
        return reply["result"]

    async def refused(self, kind: str, **fields: Any) -> Frame:
        """One command that must fail; its error."""
        reply = await self.ask(kind, **fields)
        assert not reply["ok"], reply
        error: Frame = reply["error"]
        return error

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Waits until something the server sent makes the condition true."""
        async with self._changed:
            async with asyncio.timeout(PATIENCE_S):
                await self._changed.wait_for(condition)
        return condition()

    def events(self, session_id: str | None = None, turn_id: str | None = None) -> list[Frame]:
        """The event frames so far, of one session or turn."""
        return [
            frame
            for frame in self.frames
            if "event" in frame
            and session_id in (None, frame["sessionId"])
            and turn_id in (None, frame.get("turnId"))
        ]

    async def finished(self, turn_id: str) -> Frame:
        """The terminal event of a turn's run that is not retried."""

        def terminal() -> Frame | None:
            for frame in self.events(turn_id=turn_id):
                event = frame["event"]
                retrying = event.get("metadata", {}).get("hermes", {}).get("retrying")
                if event["type"] in {"RUN_FINISHED", "RUN_ERROR"} and not retrying:
                    return event  # type: ignore[no-any-return]
            return None

        event: Frame = await self.until(terminal)
        return event

    def text(self, turn_id: str) -> str:
        """What the turn's content events add up to."""
        return "".join(
            frame["event"]["delta"]
            for frame in self.events(turn_id=turn_id)
            if frame["event"]["type"] == "TEXT_MESSAGE_CONTENT"
        )

    async def say(self, text: str, session_id: str | None = None, **fields: Any) -> Frame:
        """Sends a message, subscribed to its session; the reply's result."""
        body: Frame = {
            "content": text,
            "clientMessageId": fields.pop("cid", f"{id(self)}-{next(self._ids)}"),
        }
        if session_id is None:
            made = await self.ok("session.create", clientMessageId=f"new-{body['clientMessageId']}")
            session_id = made["session"]["id"]
            await self.ok("session.subscribe", sessionId=session_id)
        return await self.ok("message.send", sessionId=session_id, **body, **fields)  # type: ignore[no-any-return]
