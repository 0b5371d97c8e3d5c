"""The JSON shapes of the wire: session, message, turn, queue item. Plain dicts, camelCase."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

from gateway_app.models import Turn
from sessions_app.models import Message, Session
from sessions_app.transcript import NewMessage

Shape = dict[str, Any]

QUEUED_CHARACTERS: Final = 16_000
"""How much of a waiting message its session's queue shows: every change repeats the whole queue."""


def timestamp(value: datetime | None) -> str | None:
    """ISO 8601 in UTC, with milliseconds and a Z."""
    if value is None:
        return None
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def without_none(shape: Shape) -> Shape:
    return {name: value for name, value in shape.items() if value is not None}


def _sendable(value: Any) -> Any:
    """JSON as a frame can carry it: a raw writer's lone surrogates are replaced."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_sendable(item) for item in value]
    if isinstance(value, dict):
        return {_sendable(name): _sendable(item) for name, item in value.items()}
    return value


def session_shape(session: Session, *, failed: bool, unread: bool) -> Shape:
    """A session as lists show it; `failed` and `unread` are not in its row."""
    return {
        "id": str(session.pk),
        "key": session.key,
        "title": session.title,
        "agent": session.agent,
        "model": session.model,
        "state": session.state,
        "owner": session.owner_id,
        "revision": session.revision,
        "pinned": session.pinned,
        "archived": session.archived,
        "running": session.open_block > 0,
        "failed": failed,
        "unread": unread,
        "createdAt": timestamp(session.created_at),
        "updatedAt": timestamp(session.updated_at),
    }


def message_shape(
    message: Message, names: Mapping[int, str], branches: Sequence[UUID] | None = None
) -> Shape:
    """A stored row. `names` gives authors' names by user id; `branches`, where it forks, the first
    row of each branch."""
    return without_none(
        {
            "id": str(message.pk),
            "position": message.position,
            "revision": message.revision,
            "kind": message.kind,
            "state": message.state,
            "parts": _sendable(message.parts),
            "parentId": message.parent_id and str(message.parent_id),
            "branches": branches and [str(first) for first in branches],
            "turnId": message.turn_id and str(message.turn_id),
            "author": author_shape(message.author_id, names),
            "finish": message.finish,
            "clientMessageId": message.client_message_id,
            "createdAt": timestamp(message.created_at),
        }
    )


def new_message_shape(message: NewMessage, revision: int, names: Mapping[int, str]) -> Shape:
    """A row that its writer announces; its parts go out as the exact text that was stored."""
    return without_none(
        {
            "id": str(message.id),
            "position": message.position,
            "revision": revision,
            "kind": message.kind,
            "state": message.state,
            "parts": msgspec.Raw(message.parts.encode("utf-8", "surrogatepass")),
            "parentId": message.hangs_on and str(message.hangs_on),
            "turnId": message.turn_id and str(message.turn_id),
            "author": author_shape(message.author_id, names),
            "finish": message.finish,
            "clientMessageId": message.client_message_id,
            "createdAt": timestamp(message.created_at),
        }
    )


def author_shape(author_id: int | None, names: Mapping[int, str]) -> Shape | None:
    return None if author_id is None else {"id": author_id, "name": names.get(author_id, "")}


def queue_item(
    turn_id: UUID,
    place: int,
    content: object,
    author: Shape | None,
    when_busy: str,
    client_message_id: str | None,
) -> Shape:
    """A waiting message. A long one is cut and says `shortened`: the turn has the whole."""
    shown, shortened = _shorten(content)
    shape = {
        "turnId": str(turn_id),
        "place": place,
        "content": shown,
        "author": author,
        "whenBusy": when_busy,
        "clientMessageId": client_message_id,
        "shortened": shortened or None,
    }
    return without_none(shape)


def _shorten(content: object) -> tuple[object, bool]:
    """The parts up to QUEUED_CHARACTERS of text, and whether any text was left out."""
    if not isinstance(content, list):
        return content, False
    room, cut = QUEUED_CHARACTERS, False
    shown: list[object] = []
    for part in content:
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str) and len(text) > room:
            part, cut = {**part, "text": text[:room]}, True
        room -= min(room, len(text) if isinstance(text, str) else 0)
        shown.append(part)
    return shown, cut


class Spent(Protocol):
    """What a turn, or one run of it, took; None where nothing is known."""

    @property
    def model(self) -> str | None: ...

    input_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    context_tokens: int | None
    ttft_ms: int | None
    duration_ms: int | None
    cost_usd: Decimal | None


def usage_shape(spent: Spent) -> Shape:
    """Tokens, without what the provider did not tell."""
    return without_none(
        {
            "inputTokens": spent.input_tokens,
            "cachedInputTokens": spent.cached_tokens,
            "cacheWriteInputTokens": spent.cache_write_tokens,
            "outputTokens": spent.output_tokens,
        }
    )


def cost(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def spent_shape(spent: Spent) -> Shape:
    """Who answered, how full its window was, how long it took and what it cost."""
    return without_none(
        {
            "model": spent.model or None,
            "contextTokens": spent.context_tokens,
            "ttftMs": spent.ttft_ms,
            "durationMs": spent.duration_ms,
            "costUsd": cost(spent.cost_usd),
        }
    )


def outcome_shape(turn: Turn) -> Shape:
    """What became of a turn, as its people and an export of its session read it."""
    error = None
    if turn.error_code:
        error = {"code": turn.error_code, "message": turn.error_message}
    return spent_shape(turn) | without_none(
        {
            "state": turn.state,
            "usage": usage_shape(turn) or None,
            "retryOf": turn.retry_of and str(turn.retry_of),
            "error": error,
        }
    )


def turn_shape(turn: Turn) -> Shape:
    """What a person may know of a turn that stands beside its messages."""
    guarded = without_none(
        {
            "verdict": turn.worst_verdict or turn.verdict or None,
            "reason": turn.worst_reason or turn.reason or None,
            "baseline": turn.baseline,
            "revision": turn.revision,
            "fallbackFrom": turn.fallback_from or None,
        }
    )
    return {"turnId": str(turn.pk)} | outcome_shape(turn) | guarded


def turn_shapes(turns: Iterable[Turn]) -> list[Shape]:
    return [turn_shape(turn) for turn in turns]


def turn_record_shape(turn: Turn) -> Shape:
    """A turn by itself: what `turn_shape` says, where it belongs, and when it was."""
    return turn_shape(turn) | without_none(
        {
            "sessionId": str(turn.session_id),
            "createdAt": timestamp(turn.created_at),
            "startedAt": timestamp(turn.started_at),
            "finishedAt": timestamp(turn.finished_at),
        }
    )
