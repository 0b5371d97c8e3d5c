"""OpenAI's Chat Completions as a wire format: transcript rows to messages, messages to a body.

Pure and deterministic: the same row is the same text for ever. Change anything that changes a
byte and `OpenAIChatWire.name` must get the next version.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from uuid import UUID

from gateway_app.providers.base import Prompt, RequestSettings
from gateway_app.providers.call_ids import PLAIN, STRICT, sent_call_id
from gateway_app.providers.openai_replay import CONTENT, call_fields, reasoning_fields
from gateway_app.providers.rows import (
    OPERATOR_PREFIX,
    Part,
    call_arguments,
    call_name,
    clean,
    dump,
    joined_text,
    needed,
    one_result,
    parts_of,
)
from sessions_app.signals import TranscriptRow

_BESIDE_TEXT: Final = frozenset({"reasoning", "redacted_reasoning", "server_fields", "tool_call"})
_LONGEST_NAME: Final = 64
"""Models make names up, and a name that the server refuses would close the conversation."""


def _assistant(
    parts: Sequence[Part], server: str, blank: str | None, ids: re.Pattern[str]
) -> dict[str, object]:
    text = joined_text(parts, ignoring=_BESIDE_TEXT)
    reasoning = reasoning_fields(parts, server)
    calls = [
        {
            "id": sent_call_id(needed(part.id, "id"), ids),
            "type": "function",
            "function": {
                "name": call_name(needed(part.name, "name"), longest=_LONGEST_NAME),
                "arguments": call_arguments(part.arguments),
            },
            **call_fields(part, server),
        }
        for part in parts
        if part.type == "tool_call"
    ]
    if not calls:
        return {"role": "assistant", "content": text, **reasoning}
    if blank is not None:
        reasoning.setdefault(CONTENT, blank)
    return {"role": "assistant", "content": text or None, **reasoning, "tool_calls": calls}


def _message(kind: str, parts: Sequence[Part], ids: re.Pattern[str]) -> dict[str, object]:
    match kind:
        case "user":
            return {"role": "user", "content": joined_text(parts)}
        case "tool":
            call_id, content = one_result(parts)
            sent_id = sent_call_id(call_id, ids)
            return {"role": "tool", "tool_call_id": sent_id, "content": content}
        case "operator":
            return {"role": "assistant", "content": OPERATOR_PREFIX + joined_text(parts)}
        case "notice":
            return {"role": "assistant", "content": f"[Notice: {joined_text(parts)}]"}
        case "summary":
            content = f"[Summary of the conversation until here: {joined_text(parts)}]"
            return {"role": "user", "content": content}
        case "system":
            return {"role": "system", "content": joined_text(parts)}
    raise ValueError(f"The model does not see messages of kind {kind!r}.")


@lru_cache(maxsize=256)
def _system_piece(system: str) -> str:
    return dump({"role": "system", "content": clean(system)})


class OpenAIChatWire:
    """The wire of OpenAI and of every server that is compatible with it."""

    def __init__(
        self, *, official: bool = False, server: str = "", blank: str | None = None
    ) -> None:
        """`official`: the server is OpenAI's own, which knows a cache hint and newer names.

        `server` is what it is called in the parts that are its own. `blank`: it demands reasoning
        with each call, and this stands for it where there is none.
        """
        self.name = "openai-chat/3" if blank is None else "openai-chat/3-reasoning"
        self._official, self._server, self._blank = official, server, blank
        self._ids = STRICT if official else PLAIN

    def encode(self, row: TranscriptRow) -> str:
        """The row's message as JSON text. Raises ValueError for parts that cannot be read."""
        parts = parts_of(row)
        if row.kind == "assistant":
            return dump(_assistant(parts, self._server, self._blank, self._ids))
        return dump(_message(row.kind, parts, self._ids))

    def body(
        self,
        *,
        model: str,
        prompt: Prompt,
        pieces: Sequence[str],
        settings: RequestSettings,
        session_id: UUID,
    ) -> bytes:
        """The request body; what stands before the first message is equal all session long."""
        head: dict[str, object] = {"model": clean(model)}
        if settings.temperature is not None:
            head["temperature"] = settings.temperature
        if settings.max_output_tokens is not None:
            limit = "max_completion_tokens" if self._official else "max_tokens"
            head[limit] = settings.max_output_tokens
        head["stream"] = True
        head["stream_options"] = {"include_usage": True}
        if self._official:
            head["prompt_cache_key"] = str(session_id)
        tools = "" if prompt.tools == "[]" else f',"tools":{prompt.tools}'
        messages = [_system_piece(prompt.system), *pieces] if prompt.system else pieces
        body = f'{dump(head)[:-1]}{tools},"messages":[{",".join(messages)}]}}'
        return body.encode(errors="replace")
