"""OpenAI's Chat Completions, as far as the embedded model understands it: what comes and goes."""

import time
from dataclasses import dataclass
from typing import Annotated, Final
from uuid import uuid4

import msgspec

from gateway_app.local_model.chatml import Message
from gateway_app.local_model.packages import MODEL

SEED: Final = 42
ANSWER_TOKENS: Final = 512
"""The longest answer unless the request says otherwise: so small a model may never end."""

_ROLES: Final = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

Positive = Annotated[int, msgspec.Meta(ge=1)]
Penalty = Annotated[float, msgspec.Meta(ge=-2, le=2)]


class BadRequest(Exception):
    """A request that is refused; `code` as OpenAI names it, `message` for a person."""

    def __init__(self, message: str, *, code: str = "invalid_request", status: int = 400) -> None:
        super().__init__(message)
        self.message, self.code, self.status = message, code, status


class _Part(msgspec.Struct):
    type: str
    text: str = ""


class _Message(msgspec.Struct):
    role: str
    content: str | list[_Part] | None = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class ChatRequest(msgspec.Struct):
    """What a request may say. Anything else, tools included, is not this model's and ignored."""

    messages: list[_Message]
    model: str = MODEL
    stream: bool = False
    stream_options: _StreamOptions | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    max_tokens: Positive | None = None
    max_completion_tokens: Positive | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    prompt_cache_key: str | None = None

    @property
    def answer_tokens(self) -> int:
        return self.max_completion_tokens or self.max_tokens or ANSWER_TOKENS

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage

    def conversation(self) -> list[Message]:
        """The messages. Raises BadRequest for what is no text."""
        return [Message(_role(message.role), _text(message.content)) for message in self.messages]

    def sampling(self) -> dict[str, object]:
        """How to choose tokens, in the engine's names: the likeliest one unless told otherwise."""
        chosen: dict[str, object] = {
            "temperature": self.temperature or 0.0,
            "seed": SEED if self.seed is None else self.seed % 2**32,
            "stop": [self.stop] if isinstance(self.stop, str) else self.stop or [],
        }
        for name in ("top_p", "frequency_penalty", "presence_penalty"):
            value = getattr(self, name)
            if value is not None:
                chosen[name] = value
        return chosen


def read_request(body: bytes) -> ChatRequest:
    """The request. Raises BadRequest."""
    try:
        request = msgspec.json.decode(body, type=ChatRequest)
    except msgspec.DecodeError as exc:
        raise BadRequest(f"The request cannot be read: {exc}.") from exc
    if request.model != MODEL:
        raise BadRequest(
            f"There is no model {request.model[:100]!r} here, only {MODEL}.",
            code="model_not_found",
            status=404,
        )
    return request


def _role(role: str) -> str:
    if role not in _ROLES:
        raise BadRequest(f"There is no role {role[:100]!r}.")
    return _ROLES[role]


def _text(content: str | list[_Part] | None) -> str:
    if not isinstance(content, list):
        return content or ""
    if any(part.type != "text" for part in content):
        raise BadRequest("This model reads text only.")
    return "".join(part.text for part in content)


@dataclass(slots=True)
class Usage:
    prompt: int = 0
    cached: int = 0
    completion: int = 0

    def shown(self) -> dict[str, object]:
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }


class AnswerWriter:
    """Writes one answer's JSON: `chunk`s of a stream, or the `whole` of it."""

    def __init__(self) -> None:
        self._head = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": MODEL}

    def chunk(self, delta: dict[str, str], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return self._event({"choices": [choice]})

    def usage_chunk(self, usage: Usage) -> bytes:
        return self._event({"choices": [], "usage": usage.shown()})

    def whole(self, text: str, finish: str, usage: Usage) -> bytes:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        body = {"object": "chat.completion", "choices": [choice], "usage": usage.shown()}
        return msgspec.json.encode(self._head | body)

    def _event(self, body: dict[str, object]) -> bytes:
        chunk = self._head | {"object": "chat.completion.chunk"} | body
        return b"data: " + msgspec.json.encode(chunk) + b"\n\n"
