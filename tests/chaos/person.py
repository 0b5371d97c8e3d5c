"""Somebody with a conversation: sends, stops, steers, resends, leaves and comes back."""

import asyncio
import json
import random
from collections import Counter
from typing import Any, Final

from websockets import ConnectionClosed, InvalidHandshake, Subprotocol
from websockets.asyncio.client import ClientConnection, connect

from tests.viewer import Viewer

Json = dict[str, Any]

PATIENCE_S: Final = 15
_RETRIED: Final = {"internal", "draining", "rate_limited", "queue_full", "busy"}


class Lost(Exception):
    """The connection is gone; nobody knows what became of the last command."""


class Person:
    """One conversation. `acknowledged`: client message id -> turn id, as the server said."""

    def __init__(self, number: int, url: str, token: str, rng: random.Random) -> None:
        self.number, self._rng = number, rng
        self._url, self._token = url.replace("http", "ws", 1) + "/ws/v1/", token
        self.session_id: str | None = None
        self.viewer = Viewer()
        self.acknowledged: dict[str, str] = {}
        self.done: Counter[str] = Counter()
        self._sent = 0
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._replies: dict[str, asyncio.Future[Json]] = {}
        self._changed = asyncio.Event()
        self._snapshot: asyncio.Event = asyncio.Event()
        self._asked = 0

    # --- the conversation ---

    async def live(self, until: float) -> None:
        """Acts at random until then (by the loop's clock)."""
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            await asyncio.sleep(self._rng.uniform(0.2, 1.5))
            try:
                await self._act()
            except Lost:
                self.done["connection lost"] += 1
                await self.leave()

    async def _act(self) -> None:
        await self._be_there()
        chance = self._rng.random()
        if chance < 0.12 and self.viewer.running:
            await self._ask("turn.stop", sessionId=self.session_id)
            self.done["stopped"] += 1
        elif chance < 0.2 and self.acknowledged:
            await self._send(*self._rng.choice(list(self.acknowledged)).split("|"))
            self.done["resent"] += 1
        elif chance < 0.28:
            await self.leave()
            self.done["left"] += 1
        elif len(self.viewer.queue) < 2:
            ways = ["queue"] * 6 + ["steer", "interrupt"]
            self._sent += 1
            await self._send(f"c{self.number}", str(self._sent), self._rng.choice(ways))

    async def _send(self, name: str, number: str, way: str) -> None:
        """Sends until it is acknowledged: across lost connections it is the same message."""
        cid = f"{name}|{number}|{way}"
        while True:
            try:
                await self._be_there()
                reply = await self._ask(
                    "message.send", sessionId=self.session_id, clientMessageId=cid,
                    content=f"{name} says {number}", whenBusy=way,
                )  # fmt: skip
            except Lost:
                self.done["connection lost"] += 1
                await self.leave()
                continue
            if reply["ok"]:
                turn_id = reply["result"]["turnId"]
                assert self.acknowledged.setdefault(cid, turn_id) == turn_id, (cid, reply)
                return
            assert reply["error"]["code"] in _RETRIED, reply
            await asyncio.sleep(0.5)

    async def settle(self, limit_s: float) -> None:
        """Watches until nothing runs and nothing waits."""
        async with asyncio.timeout(limit_s):
            while True:
                try:
                    await self._be_there()
                    while self.viewer.running or self.viewer.queue:
                        self._changed.clear()
                        await asyncio.wait({asyncio.ensure_future(self._changed.wait()),
                                            self._reading}, timeout=2,
                                           return_when="FIRST_COMPLETED")  # fmt: skip
                        if self._reading.done():
                            raise Lost
                    return
                except Lost:
                    await self.leave()
                    await asyncio.sleep(0.3)

    # --- the connection ---

    @property
    def _reading(self) -> "asyncio.Task[None]":
        assert self._reader is not None
        return self._reader

    async def leave(self) -> None:
        """The tab is closed, without a word."""
        socket, self._socket = self._socket, None
        if self._reader is not None:
            self._reader.cancel()
            failure = (await asyncio.gather(self._reader, return_exceptions=True))[0]
            self._reader = None
            if isinstance(failure, AssertionError):
                raise failure
        if socket is not None:
            socket.transport.abort()

    async def _be_there(self) -> None:
        """Connected, and subscribed from what was seen last."""
        if self._socket is not None and not self._reading.done():
            return
        await self.leave()
        try:
            self._socket = await asyncio.wait_for(
                connect(self._url, subprotocols=[Subprotocol("hermes.v1")], proxy=None,
                        additional_headers={"Authorization": f"Bearer {self._token}"},
                        max_size=None, ping_interval=None), PATIENCE_S,
            )  # fmt: skip
        except (OSError, InvalidHandshake, ConnectionClosed, TimeoutError) as exc:
            await asyncio.sleep(0.3)
            raise Lost from exc
        self._reader = asyncio.create_task(self._read(self._socket))
        await self._ok("hello", protocol="hermes.v1")
        if self.session_id is None:
            made = await self._ok("session.create", clientMessageId=f"new-{self.number}")
            self.session_id = made["session"]["id"]
        self._snapshot.clear()
        after = {"after": self.viewer.seq} if self.viewer.seq else {}
        subscribed = await self._ok("session.subscribe", sessionId=self.session_id, **after)
        self.done[subscribed["mode"]] += 1
        if subscribed["mode"] == "snapshot":
            try:
                await asyncio.wait_for(self._snapshot.wait(), PATIENCE_S)
            except TimeoutError as exc:
                raise Lost from exc

    async def _ok(self, kind: str, **fields: Any) -> Json:
        reply = await self._ask(kind, **fields)
        if not reply["ok"]:
            assert reply["error"]["code"] in _RETRIED, reply
            await asyncio.sleep(0.3)
            raise Lost
        result: Json = reply["result"]
        return result

    async def _ask(self, kind: str, **fields: Any) -> Json:
        """The reply. Raises Lost when none comes."""
        socket = self._socket
        if socket is None:
            raise Lost
        self._asked += 1
        name = str(self._asked)
        reply = self._replies[name] = asyncio.get_running_loop().create_future()
        try:
            await socket.send(json.dumps({"id": name, "type": kind, **fields}))
            await asyncio.wait({reply, self._reading}, timeout=PATIENCE_S,
                               return_when="FIRST_COMPLETED")  # fmt: skip
        except (ConnectionClosed, OSError) as exc:
            raise Lost from exc
        finally:
            del self._replies[name]
        if not reply.done():
            raise Lost
        return reply.result()

    async def _read(self, socket: ClientConnection) -> None:
        """What the server says becomes what this person sees, until the connection ends."""
        try:
            async for text in socket:
                frame = json.loads(text)
                if (reply := self._replies.get(frame.get("re", ""))) and not reply.done():
                    reply.set_result(frame)
                self.viewer.take([frame])
                if frame.get("type") == "snapshot":
                    self._snapshot.set()
                elif "event" in frame:
                    acks = {"type": "ack", "acks": {frame["sessionId"]: frame["seq"]}}
                    await socket.send(json.dumps(acks))
                self._changed.set()
        except (ConnectionClosed, OSError):
            return
