"""The embedded model's HTTP API: `/v1/chat/completions`, `/v1/models`, `/health`.

A conversation names itself by the header `X-Hermes-Session`, or as OpenAI's clients do, by
`prompt_cache_key`. It gets a slot of its own, so that its prompt is found there next time. The
table lives here, so a restart of the gateway changes nothing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Final

import aiohttp
from aiohttp import web

from gateway_app.local_model.answers import Answers, Piece
from gateway_app.local_model.chat import (
    AnswerWriter,
    BadRequest,
    ChatRequest,
    Usage,
    read_request,
)
from gateway_app.local_model.chatml import ChatML
from gateway_app.local_model.engine import (
    SLOTS,
    WINDOW_TOKENS,
    EngineClient,
    EngineError,
    Step,
)
from gateway_app.local_model.packages import MODEL
from gateway_app.local_model.slots import SlotQueue, SlotTable

SESSION_HEADER: Final = "X-Hermes-Session"
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
ROOM_TOKENS: Final = 256
"""What must be left of the window for an answer, unless the request asks for less."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _error(status: int, code: str, message: str) -> web.Response:
    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"message": message, "type": kind, "param": None, "code": code}
    return web.json_response({"error": error}, status=status)


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every refusal is an error object; a web page's scripts may not use the model at all."""
    if "Origin" in request.headers:
        return _error(403, "forbidden", "Web pages may not use the local model.")
    try:
        return await handler(request)
    except BadRequest as exc:
        return _error(exc.status, exc.code, exc.message)
    except web.HTTPException as exc:
        return _error(exc.status, "invalid_request", f"{exc.reason}.")
    except (EngineError, aiohttp.ClientError):
        return _error(500, "engine_failed", "The local model failed.")


class ModelServer:
    """The handlers, and what they share."""

    def __init__(self, engine: EngineClient, chatml: ChatML) -> None:
        self._engine = engine
        self._chatml = chatml
        self._slots = SlotQueue(SlotTable(SLOTS))
        self._answers = Answers()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_errors_as_json])
        app.router.add_post("/v1/chat/completions", self.chat_completions)
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/health", self.health)
        return app

    async def health(self, _request: web.Request) -> web.Response:
        """Asks the engine itself; `generating` may stay up for a moment after `busy` fell."""
        generating = await self._engine.generating()
        counts = {"busy": self._slots.busy, "waiting": self._slots.waiting}
        return web.json_response(
            {"status": "ok", "slots": SLOTS, "generating": generating} | counts
        )

    async def models(self, _request: web.Request) -> web.Response:
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "hermes"}
        return web.json_response({"object": "list", "data": [model]})

    async def chat_completions(self, request: web.Request) -> web.StreamResponse:
        chat = read_request(await request.read())
        session = request.headers.get(SESSION_HEADER) or chat.prompt_cache_key
        async with self._slots.lease(session) as slot:
            answer = _Answer(chat, await self._prompt(chat, session))
            try:
                async with aclosing(self._engine.complete(answer.body(slot))) as steps:
                    if chat.stream:
                        return await _stream(request, answer, steps)
                    return await _whole(answer, steps)
            finally:
                if session is not None:
                    self._answers.remember(session, answer.pieces)

    async def _prompt(self, chat: ChatRequest, session: str | None) -> list[int]:
        """The tokens to send. Raises BadRequest if they leave no room for an answer."""
        recall = partial(self._answers.recall, session or "")
        prompt = await self._engine.tokenize(self._chatml.prompt(chat.conversation(), recall))
        room = min(ROOM_TOKENS, chat.answer_tokens)
        if len(prompt) + room > WINDOW_TOKENS:
            raise BadRequest(
                f"The conversation has {len(prompt)} tokens. {MODEL} holds {WINDOW_TOKENS},"
                f" {room} of them for its answer.",
                code="context_length_exceeded",
            )
        return prompt


class _Answer:
    """One answer while it grows."""

    def __init__(self, chat: ChatRequest, prompt: list[int]) -> None:
        self.chat = chat
        self.prompt = prompt
        self.pieces: list[Piece] = []
        self.usage = Usage(prompt=len(prompt))
        self.finish = "stop"

    def body(self, slot: int) -> dict[str, object]:
        """The engine's request."""
        most = WINDOW_TOKENS - len(self.prompt)
        return self.chat.sampling() | {
            "prompt": self.prompt,
            "n_predict": min(self.chat.answer_tokens, most),
            "id_slot": slot,
            "cache_prompt": True,
            "return_tokens": True,
            # an event after each batch of the prompt: without one llama.cpp does not notice that
            # its client has gone until the first token
            "return_progress": True,
            "stream": True,
        }

    def add(self, step: Step) -> None:
        """Takes one event in."""
        fresh = step.tokens_predicted - self.usage.completion
        self.usage.completion = step.tokens_predicted
        if step.content or step.tokens:
            # of several tokens the event tells the last one only
            exact = fresh == 1 and len(step.tokens) == 1
            self.pieces.append((step.content, step.tokens[0] if exact else None))
        if step.stop:
            self.finish = "length" if step.stop_type == "limit" else "stop"
            self.usage.cached = step.timings.cache_n if step.timings else 0


async def _whole(answer: _Answer, steps: AsyncIterator[Step]) -> web.Response:
    async for step in steps:
        answer.add(step)
    text = "".join(text for text, _ in answer.pieces)
    body = AnswerWriter().whole(text, answer.finish, answer.usage)
    return web.Response(body=body, content_type="application/json")


async def _stream(
    request: web.Request, answer: _Answer, steps: AsyncIterator[Step]
) -> web.StreamResponse:
    """Sends the answer as it comes. The status waits for the first event, so errors keep theirs.

    An engine that fails later cuts the connection: the reader must not take it for an end.
    """
    writer, response = AnswerWriter(), web.StreamResponse()
    response.content_type = "text/event-stream"
    try:
        async for step in steps:
            if not response.prepared:
                await response.prepare(request)
                await response.write(writer.chunk({"role": "assistant", "content": ""}))
            answer.add(step)
            if step.content:
                await response.write(writer.chunk({"content": step.content}))
    except (EngineError, aiohttp.ClientError):
        if not response.prepared:
            raise
        if request.transport is not None:
            request.transport.abort()
        return response
    await response.write(writer.chunk({}, answer.finish))
    if answer.chat.wants_usage:
        await response.write(writer.usage_chunk(answer.usage))
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response
