"""The three ways to a model that are measured, each behind the same few calls.

`open(model)`, then `turn()` any number of times, then `close()`. All three count and time alike: a
turn begins when its request is written, and has its first token when the first text is read.
"""

import json
import os
from dataclasses import dataclass, field
from time import perf_counter, time
from typing import Any, Protocol

import aiohttp
import msgspec

ACK_EVERY = 64
PATIENCE_S = 60


@dataclass
class Turn:
    """One turn, as its client saw it. `contents`: when each piece of text arrived."""

    ttft_ms: float = 0
    total_ms: float = 0
    tokens: int = 0
    contents: list[float] = field(default_factory=list)
    arrivals: list[tuple[int, float]] = field(default_factory=list)
    """(seq, wall clock) of each event frame; Hermes only."""


class Stopwatch:
    """Times one turn's content as it arrives."""

    def __init__(self) -> None:
        self.turn = Turn()
        self.began = perf_counter()

    def content(self, tokens: int) -> None:
        now = perf_counter()
        if not self.turn.tokens:
            self.turn.ttft_ms = (now - self.began) * 1000
        self.turn.tokens += tokens
        self.turn.contents.append(now)

    def over(self) -> Turn:
        self.turn.total_ms = (perf_counter() - self.began) * 1000
        return self.turn


class Client(Protocol):
    async def open(self, model: str) -> None: ...
    async def turn(self) -> Turn: ...
    async def close(self) -> None: ...


def request(model: str) -> bytes:
    return json.dumps(
        {
            "model": model,
            "stream": True,
            "messages": [
                {"role": "system", "content": "You are a helpful assistant."},
                {"role": "user", "content": "Tell me something."},
            ],
        }
    ).encode()


class DirectClient:
    """Asks the model server itself."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self.http, self.url = http, f"{url}/chat/completions"

    async def open(self, model: str) -> None:
        self.body = request(model)

    async def turn(self) -> Turn:
        watch = Stopwatch()
        async with self.http.post(self.url, data=self.body) as answer:
            async for piece in answer.content.iter_any():
                if tokens := piece.count(b'"content":'):
                    watch.content(tokens)
        return watch.over()

    async def close(self) -> None:
        return


class RelayClient:
    """A socket of the bare relay."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self.http, self.url = http, url

    async def open(self, model: str) -> None:
        self.body = request(model).decode()
        self.socket = await self.http.ws_connect(self.url)

    async def turn(self) -> Turn:
        watch = Stopwatch()
        await self.socket.send_str(self.body)
        while True:
            frame = (await self.socket.receive(PATIENCE_S)).data
            if '"delta"' not in frame:
                return watch.over()
            watch.content(1)

    async def close(self) -> None:
        await self.socket.close()


class _Event(msgspec.Struct):
    type: str
    delta: str = ""


class _Frame(msgspec.Struct):
    event: _Event | None = None
    seq: int = 0
    re: str | None = None
    ok: bool = True
    result: object = None


class HermesClient:
    """A socket of Hermes, in one conversation; its turns follow one another."""

    def __init__(self, http: aiohttp.ClientSession, url: str, token: str) -> None:
        self.http, self.url, self.token = http, url, token
        self.commands = self.unacknowledged = 0
        self.decode = msgspec.json.Decoder(_Frame).decode

    async def connect(self) -> None:
        self.socket = await self.http.ws_connect(
            self.url,
            protocols=["hermes.v1"],
            headers={"Authorization": f"Bearer {self.token}"},
            max_msg_size=0,
        )
        await self.ask("hello", protocol="hermes.v1")

    async def open(self, model: str) -> None:
        await self.connect()
        made = await self.ask("session.create", clientMessageId=os.urandom(8).hex())
        self.session_id = made["session"]["id"]
        await self.ask("session.update", sessionId=self.session_id, model=f"openai:{model}")
        await self.watch(self.session_id)

    async def watch(self, session_id: str) -> None:
        self.session_id = session_id
        await self.ask("session.subscribe", sessionId=session_id)

    async def send(self, kind: str, **fields: object) -> str:
        self.commands += 1
        name = str(self.commands)
        await self.socket.send_str(json.dumps({"id": name, "type": kind, **fields}))
        return name

    async def ask(self, kind: str, **fields: object) -> Any:
        name = await self.send(kind, **fields)
        while True:
            frame = self.decode((await self.socket.receive(PATIENCE_S)).data)
            if frame.re == name:
                assert frame.ok, f"{kind} was refused"
                return frame.result

    async def turn(self) -> Turn:
        watch = Stopwatch()
        await self.send(
            "message.send",
            sessionId=self.session_id,
            clientMessageId=os.urandom(8).hex(),
            content="Tell me something.",
        )
        return await self.answer(watch)

    async def answer(self, watch: Stopwatch) -> Turn:
        """Reads the turn to its end, acknowledging as a client owes it."""
        while True:
            frame = self.decode((await self.socket.receive(PATIENCE_S)).data)
            assert frame.ok, f"refused: {frame}"
            if frame.event is None:
                continue
            watch.turn.arrivals.append((frame.seq, time()))
            self.unacknowledged += 1
            if frame.event.type == "TEXT_MESSAGE_CONTENT":
                watch.content(frame.event.delta.count(" "))
            over = frame.event.type == "RUN_FINISHED"
            if over or self.unacknowledged >= ACK_EVERY:
                self.unacknowledged = 0
                acks = {"type": "ack", "acks": {self.session_id: frame.seq}}
                await self.socket.send_str(json.dumps(acks))
            assert frame.event.type != "RUN_ERROR", "the turn failed"
            if over:
                return watch.over()

    async def close(self) -> None:
        await self.socket.close()
