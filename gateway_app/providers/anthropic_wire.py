"""Anthropic's Messages as a wire format: transcript rows to messages, messages to a body.

Pure and deterministic: the same row is the same text for ever. Change anything that changes a
byte and `AnthropicWire.name` must get the next version.

Every piece is a whole message with a list of blocks. Messages of one role that follow one another
become one message in the body, as the server would make of them anyway: so the results of several
calls stand together, and a body that grows still starts with the one before.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final
from uuid import UUID

from gateway_app.providers.base import Prompt, RequestSettings
from gateway_app.providers.call_ids import STRICT, sent_call_id
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

DEFAULT_MAX_TOKENS: Final = 32_000
"""The server demands a limit: an agent that names none gets what every current model allows."""
CACHE_HINT: Final = ',"cache_control":{"type":"ephemeral"}'
"""Within a block; never part of a piece, so that moving it changes no prefix."""
MAX_HINTS: Final = 4

# a piece is a head, blocks and the tail
_HEAD: Final = {role: f'{{"role":"{role}","content":[' for role in ("user", "assistant")}
_TAIL: Final = "]}"
_BEGINNING: Final = f'{_HEAD["user"]}{{"type":"text","text":"(The conversation begins.)"}}{_TAIL}'
"""Before an assistant's message that nobody asked for: a conversation must begin with a user's."""
_LONGEST_NAME: Final = 128


def _block(**fields: object) -> str:
    return dump(dict(fields))


def _text_block(text: str) -> str:
    """A block with the text; blank ones are refused, so they say that they are."""
    return _block(type="text", text=text if text.strip() else "(no text)")


def _call_block(part: Part) -> str:
    arguments = call_arguments(part.arguments).strip()
    name = call_name(needed(part.name, "name"), longest=_LONGEST_NAME)
    call_id = sent_call_id(needed(part.id, "id"), STRICT)
    start = _block(type="tool_use", id=call_id, name=name)
    return f'{start[:-1]},"input":{arguments}}}'


def _assistant_blocks(parts: Sequence[Part]) -> list[str]:
    """The blocks in the model's order; reasoning only if its provider signed it, and unchanged."""
    blocks = []
    for part in parts:
        match part.type:
            case "text":
                if (text := needed(part.text, "text")).strip():
                    blocks.append(_text_block(text))
            case "tool_call":
                blocks.append(_call_block(part))
            case "reasoning":
                if isinstance(part.signature, str) and part.signature:
                    thinking = part.text or ""
                    blocks.append(
                        _block(type="thinking", thinking=thinking, signature=part.signature)
                    )
            case "redacted_reasoning":
                if isinstance(part.data, str) and part.data:
                    blocks.append(_block(type="redacted_thinking", data=part.data))
            case "server_fields":
                pass  # another wire's
            case _:
                raise ValueError(f"A part of type {part.type!r} cannot stand in this message.")
    return blocks or [_text_block("")]


def _result_block(parts: Sequence[Part]) -> str:
    call_id, content = one_result(parts)
    fields: dict[str, object] = {"type": "tool_result"}
    fields["tool_use_id"] = sent_call_id(call_id, STRICT)
    fields["content"] = content if content.strip() else "(no output)"
    if parts[0].error is True:
        fields["is_error"] = True
    return dump(fields)


def _message(kind: str, parts: Sequence[Part]) -> tuple[str, list[str]]:
    """The role and the blocks. What neither the model nor the person wrote is no assistant's."""
    match kind:
        case "user":
            return "user", [_text_block(joined_text(parts))]
        case "assistant":
            return "assistant", _assistant_blocks(parts)
        case "tool":
            return "user", [_result_block(parts)]
        case "operator":
            return "user", [_text_block(OPERATOR_PREFIX + joined_text(parts))]
        case "notice":
            return "user", [_text_block(f"[Notice: {joined_text(parts)}]")]
        case "summary":
            text = f"[Summary of the conversation until here: {joined_text(parts)}]"
            return "user", [_text_block(text)]
        case "system":
            return "user", [_text_block(f"[Instruction: {joined_text(parts)}]")]
    raise ValueError(f"The model does not see messages of kind {kind!r}.")


def _role(piece: str) -> str:
    return "user" if piece.startswith(_HEAD["user"]) else "assistant"


def _blocks(piece: str) -> str:
    return piece[len(_HEAD[_role(piece)]) : -len(_TAIL)]


def _joined(pieces: Sequence[str]) -> list[str]:
    """The messages of a body: one for each run of one role, a user's first."""
    messages = [
        f"{_HEAD[role]}{','.join(map(_blocks, run))}{_TAIL}" for role, run in groupby(pieces, _role)
    ]
    if messages and _role(messages[0]) != "user":
        messages.insert(0, _BEGINNING)
    return messages


def _hinted(block_list: str) -> str:
    """The text of a list (or a message) with the cache hint in its last block."""
    end = block_list.rindex("}]")
    return f"{block_list[:end]}{CACHE_HINT}{block_list[end:]}"


def _with_hints(messages: list[str], hints: int) -> list[str]:
    """Hints at the ends of the last users' messages: where this and the last request end."""
    ends = [index for index, message in enumerate(messages) if _role(message) == "user"]
    for index in ends[-hints:]:
        messages[index] = _hinted(messages[index])
    return messages


@lru_cache(maxsize=256)
def _system(system: str) -> str:
    if not system.strip():
        return ""
    block = _block(type="text", text=clean(system))
    return f',"system":{_hinted(f"[{block}]")}'


@lru_cache(maxsize=256)
def _tools(schemas: str) -> str:
    """The tool schemas, which are stored as OpenAI has them, as Anthropic wants them."""
    tools = []
    for schema in json.loads(schemas):
        told = schema.get("function", schema)
        tool = {"name": told["name"], "description": told.get("description", "")}
        tool["input_schema"] = told.get("parameters", {"type": "object", "properties": {}})
        tools.append(dump(tool))
    joined = ",".join(tools)
    return f',"tools":{_hinted(f"[{joined}]")}' if tools else ""


class AnthropicWire:
    """The wire of Anthropic and of servers that are compatible with it."""

    name = "anthropic-messages/3"

    def encode(self, row: TranscriptRow) -> str:
        """The row's message as JSON text. Raises ValueError for parts that cannot be read."""
        role, blocks = _message(row.kind, parts_of(row))
        return f"{_HEAD[role]}{','.join(blocks)}{_TAIL}"

    def body(
        self,
        *,
        model: str,
        prompt: Prompt,
        pieces: Sequence[str],
        settings: RequestSettings,
        session_id: UUID,
    ) -> bytes:
        """The request body; cache hints aside, a grown request starts with the one before."""
        head: dict[str, object] = {"model": clean(model)}
        head["max_tokens"] = settings.max_output_tokens or DEFAULT_MAX_TOKENS
        if settings.temperature is not None:
            head["temperature"] = settings.temperature
        head["stream"] = True
        fixed = _tools(prompt.tools) + _system(prompt.system)
        messages = _with_hints(_joined(pieces), MAX_HINTS - fixed.count(CACHE_HINT))
        body = f'{dump(head)[:-1]}{fixed},"messages":[{",".join(messages)}]}}'
        return body.encode(errors="replace")
