"""How the fake model server writes a scripted answer, in each wire format."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from aiohttp import web

from tests.model_scripts import Json, RecordedRequest, Script


class _Cut(Exception):
    """The script cuts the connection here."""


class Sender:
    """Writes one scripted answer."""

    def __init__(
        self, request: web.Request, record: RecordedRequest, script: Script, usage: Json
    ) -> None:
        self._request, self._record, self._script, self._usage = request, record, script, usage
        self._sent_bytes = 0

    def _opening(self) -> bytes:
        raise NotImplementedError

    def _pieces(self) -> list[bytes]:
        """The answer's pieces: reasoning, text, then tool calls."""
        raise NotImplementedError

    def _closing(self) -> bytes:
        raise NotImplementedError

    def _refusal(self) -> web.Response:
        return refusal(self._script)

    async def send(self) -> web.StreamResponse:
        script = self._script
        if script.headers_gate is not None:
            await script.headers_gate.passed()
        if script.status != 200:
            return self._refusal()
        self._response = web.StreamResponse(
            headers={"Content-Type": script.content_type, **script.headers}
        )
        self._response.enable_chunked_encoding()
        await self._response.prepare(self._request)
        with suppress(_Cut):
            await (self._stream() if script.raw is None else self._replay(script.raw))
            await self._response.write_eof()
        return self._response

    async def _replay(self, pieces: Sequence[bytes]) -> None:
        for index, piece in enumerate(pieces):
            await self._wait_for_gate(index)
            await self._write(piece)
        if self._script.end_gate is not None:
            await self._script.end_gate.passed()

    async def _stream(self) -> None:
        script = self._script
        await self._write(self._opening())
        begin = asyncio.get_running_loop().time() + script.first_token_delay_s
        for index, piece in enumerate(self._pieces()):
            await self._wait_for_gate(index)
            if script.first_token_delay_s or script.token_delay_s:
                due = begin + index * script.token_delay_s
                await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            await self._write(piece)
            self._record.pieces_sent = index + 1
        if script.end_gate is not None:
            await script.end_gate.passed()
        await self._write(self._closing())

    async def _wait_for_gate(self, index: int) -> None:
        gate = self._script.gates.get(index)
        if gate is not None:
            await gate.passed()

    async def _write(self, text: bytes) -> None:
        cut = self._script.cut_at_byte
        if cut is not None and self._sent_bytes + len(text) >= cut:
            await self._response.write(text[: cut - self._sent_bytes])
            transport = self._request.transport
            if transport is not None:
                transport.close()
            raise _Cut
        await self._response.write(text)
        self._sent_bytes += len(text)
        self._record.started.release()


class OpenAISender(Sender):
    """Chat Completions."""

    def _opening(self) -> bytes:
        head = {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1}
        head["model"] = str(self._record.json.get("model"))
        self._head = json.dumps(head)[:-1]
        self._null = ', "usage": null' if self._script.usage_null else ""
        return self._delta('{"role": "assistant", "content": ""}')

    def _pieces(self) -> list[bytes]:
        script = self._script
        pieces = [json.dumps({script.reasoning_field: text}) for text in script.reasoning]
        pieces += [json.dumps({"reasoning_details": [one]}) for one in script.reasoning_details]
        pieces += [f'{{"{script.text_field}": {json.dumps(text)}}}' for text in script.tokens]
        for index, call in enumerate(script.tool_calls):
            first = {"name": call.name, "arguments": ""}
            opening = {"index": index, "id": call.id, "type": "function", "function": first}
            if call.extra is not None:
                opening["extra_content"] = call.extra
            pieces.append(json.dumps({"tool_calls": [opening]}))
            for text in call.arguments:
                piece = {"index": index, "function": {"arguments": text}}
                pieces.append(json.dumps({"tool_calls": [piece]}))
        return [self._delta(piece) for piece in pieces]

    def _closing(self) -> bytes:
        script = self._script
        reason = script.finish_reason
        if reason == "stop" and script.tool_calls:
            reason = "tool_calls"
        last = b""
        if reason is not None:
            last = self._delta("{}", json.dumps(reason))
        if script.send_usage and self._record.json.get("stream_options", {}).get("include_usage"):
            usage = json.dumps(self._usage)
            last += f'data: {self._head}, "choices": [], "usage": {usage}}}\n\n'.encode()
        if script.done:
            last += b"data: [DONE]\n\n"
        return last

    def _delta(self, delta: str, finish: str = "null") -> bytes:
        choice = f'{{"index": 0, "delta": {delta}, "finish_reason": {finish}}}'
        return f'data: {self._head}, "choices": [{choice}]{self._null}}}\n\n'.encode()


_STOP_REASONS: Final = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class AnthropicSender(Sender):
    """Messages."""

    def _opening(self) -> bytes:
        message: Json = {"id": "msg_fake", "type": "message", "role": "assistant", "content": []}
        message["model"] = str(self._record.json.get("model"))
        message["usage"] = self._counts() | {"output_tokens": 1}
        return _event("message_start", message=message) + _event("ping")

    def _counts(self) -> Json:
        usage = self._usage
        if "input_tokens" in usage:
            return usage
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        return {
            "input_tokens": usage["prompt_tokens"] - cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": usage["completion_tokens"],
        }

    def _pieces(self) -> list[bytes]:
        script = self._script
        self._blocks = 0
        pieces: list[bytes] = []
        if script.reasoning:
            thoughts = [{"type": "thinking_delta", "thinking": text} for text in script.reasoning]
            signed = [{"type": "signature_delta", "signature": text} for text in script.signature]
            pieces += self._block({"type": "thinking", "thinking": ""}, thoughts, signed)
        for secret in script.redacted:
            pieces += self._block({"type": "redacted_thinking", "data": secret}, [])
        if script.tokens:
            texts = [{"type": "text_delta", "text": text} for text in script.tokens]
            pieces += self._block({"type": "text", "text": ""}, texts)
        for call in script.tool_calls:
            start = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            inputs = [{"type": "input_json_delta", "partial_json": x} for x in call.arguments]
            pieces += self._block(start, inputs)
        return pieces

    def _block(self, start: Json, deltas: list[Json], last: Sequence[Json] = ()) -> list[bytes]:
        """One piece for each delta; start and end of the block go with the first and the last."""
        index, self._blocks = self._blocks, self._blocks + 1
        pieces = [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
        pieces = pieces or [b""]
        pieces[0] = _event("content_block_start", index=index, content_block=start) + pieces[0]
        ending = [_event("content_block_delta", index=index, delta=delta) for delta in last]
        pieces[-1] += b"".join([*ending, _event("content_block_stop", index=index)])
        return pieces

    def _closing(self) -> bytes:
        script = self._script
        reason = script.finish_reason
        if reason == "stop" and script.tool_calls:
            reason = "tool_calls"
        last = b""
        if reason is not None:
            usage = {"output_tokens": self._counts()["output_tokens"]} if script.send_usage else {}
            delta = {"stop_reason": _STOP_REASONS.get(reason, reason), "stop_sequence": None}
            last = _event("message_delta", delta=delta, usage=usage)
        return last + (_event("message_stop") if script.done else b"")

    def _refusal(self) -> web.Response:
        script = self._script
        if isinstance(script.error, str):
            return refusal(script)
        error = script.error or {"type": "api_error", "message": f"Status {script.status}"}
        body = {"type": "error", "error": error, "request_id": "req_fake"}
        return web.json_response(body, status=script.status, headers=script.headers)


def _event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


_TYPES: Final = {"<": "text/html", "{": "application/json"}


def refusal(script: Script) -> web.Response:
    error = script.error if script.error is not None else {"message": f"Status {script.status}"}
    if isinstance(error, str):
        return web.Response(
            status=script.status,
            text=error,
            headers=script.headers,
            content_type=_TYPES.get(error.lstrip()[:1], "text/plain"),
        )
    return web.json_response({"error": error}, status=script.status, headers=script.headers)
