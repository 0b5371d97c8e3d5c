"""A real HTTP server that speaks OpenAI Chat Completions and Anthropic Messages, scripted.

In a test: `with FakeModelServer() as server:` runs it in a thread with its own loop; push scripts
with `server.script(...)`, hold an answer back with a `Gate`, read `server.requests`. As a program:
`python -m tests.fake_model_server --port 0` prints its base URL and serves until it is stopped.
"""

import argparse
import asyncio
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from tests.gate import WAIT_S, Gate
from tests.model_answers import AnthropicSender, OpenAISender, Sender, refusal
from tests.model_scripts import Answer, Json, RecordedRequest, Script, ToolCall

__all__ = ["FakeModelServer", "Gate", "Json", "RecordedRequest", "Script", "ToolCall"]


class FakeModelServer:
    """The server in a thread of its own; every method may be called from any thread."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._host, self._port = host, port
        self._scripts: deque[Answer] = deque()
        self._arrivals: dict[int, Gate] = {}
        self._seen: deque[str] = deque(maxlen=256)
        self._lock = threading.Lock()
        self._started = threading.Event()
        self._stop = Gate()
        self._thread = threading.Thread(target=self._run, name="fake-model", daemon=True)
        self.default: Answer = Script()
        """The answer when no script is queued."""
        self.models: list[str] = ["fake-1"]
        self.windows: dict[str, int] = {}
        """What the list tells of a model's window."""
        self.models_answer: Script | None = None
        self.models_held: Gate | None = None
        """The list is not answered before it is released."""
        self.requests: list[RecordedRequest] = []
        """The requests for answers, in order of arrival."""
        self.model_lists = 0
        self.listed = Gate()
        """Released when the list was asked for the first time."""

    # the test's side

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._started.wait(WAIT_S):
            raise TimeoutError("The fake model server did not start.")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.release()
        self._thread.join(WAIT_S)

    @property
    def url(self) -> str:
        """The base URL, as OPENAI_BASE_URL wants it."""
        return f"http://{self._host}:{self._port}/v1"

    def script(self, *answers: Answer) -> None:
        """Queues answers: the next requests get them in order, each one once."""
        self._scripts.extend(answers)

    def forget_scripts(self) -> None:
        """No answer is queued any more: the next request gets the default one."""
        self._scripts.clear()

    async def request(self, number: int) -> RecordedRequest:
        """The chat request `number` (from 0), once it has arrived."""
        await self._arrival(number).wait()
        return self.requests[number]

    def request_sync(self, number: int) -> RecordedRequest:
        self._arrival(number).wait_sync()
        return self.requests[number]

    def _arrival(self, number: int) -> Gate:
        with self._lock:
            gate = self._arrivals.setdefault(number, Gate())
            if number < len(self.requests):
                gate.release()
        return gate

    # the server's side

    def _run(self) -> None:
        asyncio.run(self.serve())

    async def serve(self, on_ready: Callable[[str], None] | None = None) -> None:
        """Serves until stopped or cancelled. `on_ready` gets the base URL."""
        app = web.Application(client_max_size=256 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_get("/v1/models", self._list_models)
        runner = web.AppRunner(
            app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None
        )
        await runner.setup()
        site = web.TCPSite(runner, self._host, self._port)
        await site.start()
        self._port = runner.addresses[0][1]
        self._started.set()
        if on_ready is not None:
            on_ready(self.url)
        try:
            await self._stop.passed()
        finally:
            await runner.cleanup()

    async def _list_models(self, request: web.Request) -> web.StreamResponse:
        self.model_lists += 1
        self.listed.release()
        if self.models_held is not None:
            await self.models_held.passed()
        if self.models_answer is not None:
            return refusal(self.models_answer)
        listed = [
            {"id": name, "object": "model"}
            | ({"context_length": self.windows[name]} if name in self.windows else {})
            for name in self.models
        ]
        return web.json_response({"object": "list", "data": listed})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, OpenAISender)

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, AnthropicSender)

    async def _answer(self, request: web.Request, sender: type[Sender]) -> web.StreamResponse:
        record = RecordedRequest(
            path=request.path,
            body=await request.read(),
            headers={name.lower(): value for name, value in request.headers.items()},
            at=time.monotonic(),
            peer=request.transport and request.transport.get_extra_info("peername"),
        )
        with self._lock:
            self.requests.append(record)
            arrival = self._arrivals.get(len(self.requests) - 1)
        if arrival is not None:
            arrival.release()
        try:
            answer: Answer = self._scripts.popleft() if self._scripts else self.default
            script = answer if isinstance(answer, Script) else answer(record.json)
            usage = script.usage or self._usage(record.json, script)
            return await sender(request, record, script, usage).send()
        except asyncio.CancelledError:
            record.closed_by_client = not self._stop.released
            raise
        except ConnectionError:
            record.closed_by_client = not self._stop.released
            return web.Response()  # nobody is there to be told
        finally:
            record.ended_at = time.monotonic()
            record.ended.release()

    def _usage(self, body: Json, script: Script) -> Json:
        """Four bytes a token; cached is the longest prefix shared with an earlier request."""
        parts = (body.get("tools", []), body.get("system", ""), body.get("messages", []))
        text = "".join(map(json.dumps, parts)).replace(_HINT, "").rstrip("]}")
        cached = max((_common_prefix(text, earlier) for earlier in self._seen), default=0)
        self._seen.append(text)
        prompt, written = len(text) // 4 + 1, len(script.tokens) + len(script.reasoning)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
            "prompt_tokens_details": {"cached_tokens": min(cached // 4, prompt)},
        }


_HINT: Final = ', "cache_control": {"type": "ephemeral"}'


def _common_prefix(one: str, other: str) -> int:
    """The number of leading characters that are equal, found by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def main() -> None:
    """Serves one answer for ever, for benchmarks; prints the base URL first."""
    parser = argparse.ArgumentParser(prog="python -m tests.fake_model_server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--first-token-delay-ms", type=float, default=0)
    parser.add_argument("--delay-ms", type=float, default=0, help="between tokens")
    options = parser.parse_args()
    server = FakeModelServer(host=options.host, port=options.port)
    server.default = Script(
        tokens=[f"token{number % 10} " for number in range(options.tokens)],
        first_token_delay_s=options.first_token_delay_ms / 1000,
        token_delay_s=options.delay_ms / 1000,
    )

    def say(url: str) -> None:
        sys.stdout.write(f"{url}{os.linesep}")
        sys.stdout.flush()

    try:
        asyncio.run(server.serve(on_ready=say))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
