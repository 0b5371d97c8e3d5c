"""What the API's answers look like, for its OpenAPI document.

`shapes.py` makes these shapes; a test holds both to each other, field by field.
"""

from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

from gateway_app.models import Turn
from sessions_app.models import PERSON_KINDS, Message

ERRORS: Final = frozenset({400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 503})
"""Statuses by which any request may be refused; the error's code says why."""

Uuid = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
TurnState = Annotated[str, Field(json_schema_extra={"enum": list(Turn.State.values)})]
MessageKind = Annotated[str, Field(json_schema_extra={"enum": sorted(PERSON_KINDS)})]
MessageState = Annotated[str, Field(json_schema_extra={
    "enum": sorted(set(Message.State.values) - {"hidden"})
})]  # fmt: skip


class Refusal(TypedDict):
    """Why a request was refused."""

    code: str
    message: str
    successorId: NotRequired[Uuid]


class Error(TypedDict):
    """Every answer with a status of 400 or above."""

    error: Refusal


class Empty(TypedDict):
    """Done; there is nothing to say."""


class Me(TypedDict):
    """Whom the token or the cookie stands for."""

    id: int
    name: str
    isStaff: bool


class Session(TypedDict):
    """One conversation."""

    id: Uuid
    key: str
    title: str
    agent: str
    model: str
    state: Literal["active", "ended"]
    owner: int | None
    revision: int
    pinned: bool
    archived: bool
    running: bool
    failed: bool
    unread: bool
    createdAt: Moment
    updatedAt: Moment


class OneSession(TypedDict):
    session: Session


class MadeSession(OneSession):
    """`replayed`: the same `clientMessageId` had made it before."""

    replayed: bool


class Sessions(TypedDict):
    """A page; `nextCursor` is null on the last one."""

    sessions: list[Session]
    nextCursor: str | None


class Author(TypedDict):
    id: int
    name: str


class MessageRow(TypedDict):
    """One row of a transcript. `parts` are objects with a `type`."""

    id: Uuid
    position: int
    revision: int
    kind: MessageKind
    state: MessageState
    parts: Any
    parentId: NotRequired[Uuid]
    branches: NotRequired[list[Uuid]]
    turnId: NotRequired[Uuid]
    author: NotRequired[Author]
    finish: NotRequired[str]
    clientMessageId: NotRequired[str]
    createdAt: Moment


class Usage(TypedDict):
    """Tokens, as far as the provider told."""

    inputTokens: NotRequired[int]
    cachedInputTokens: NotRequired[int]
    cacheWriteInputTokens: NotRequired[int]
    outputTokens: NotRequired[int]


class TurnError(TypedDict):
    code: str
    message: str


class TurnFacts(TypedDict):
    """A turn as it stands beside its messages."""

    turnId: Uuid
    state: TurnState
    verdict: NotRequired[str]
    reason: NotRequired[str]
    baseline: NotRequired[int]
    revision: NotRequired[int]
    model: NotRequired[str]
    fallbackFrom: NotRequired[str]
    usage: NotRequired[Usage]
    contextTokens: NotRequired[int]
    ttftMs: NotRequired[int]
    durationMs: NotRequired[int]
    costUsd: NotRequired[float]
    retryOf: NotRequired[Uuid]
    error: NotRequired[TurnError]


class TurnRecord(TurnFacts):
    """A turn by itself."""

    sessionId: Uuid
    createdAt: Moment
    startedAt: NotRequired[Moment]
    finishedAt: NotRequired[Moment]


class OneTurn(TypedDict):
    turn: TurnRecord


class Turns(TypedDict):
    """A page, newest first; `nextCursor` is null on the last one."""

    turns: list[TurnRecord]
    nextCursor: str | None


class History(TypedDict):
    """A page of rows, oldest first, with their turns; `before` leads to the page before it."""

    messages: list[MessageRow]
    turns: list[TurnFacts]
    before: str | None
    hasMore: bool


class Sent(TypedDict):
    """The message is stored; `status` is its turn's. A repeat answers with the first one's ids."""

    sessionId: Uuid
    turnId: Uuid
    status: str
    replayed: bool
    place: NotRequired[int]


class UsageRow(TypedDict):
    """What one agent and model took on one day (UTC)."""

    day: Annotated[str, Field(json_schema_extra={"format": "date"})]
    agent: str
    model: str
    turns: int
    inputTokens: int
    cachedInputTokens: int
    outputTokens: int
    costUsd: float


class UsageTotal(TypedDict):
    turns: int
    inputTokens: int
    cachedInputTokens: int
    outputTokens: int
    costUsd: float


class UsageReport(TypedDict):
    rows: list[UsageRow]
    total: UsageTotal
