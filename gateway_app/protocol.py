"""The frames of `/ws/v1/`: what a client may send, as structs, and what it gets back, as text.

`docs/websocket.md` is the reference for people; `static/gateway_app/js/protocol.js` mirrors this.
"""

from typing import Annotated, Any, Final, get_args
from uuid import UUID

import msgspec

from gateway_app import misfits
from sessions_app.errors import Refusal
from sessions_app.sentences import Sentence, quote, say

PROTOCOL: Final = "hermes.v1"

_NO_NUL: Final = r"^[^\x00]*$"
"""PostgreSQL stores no NUL in a text column."""

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=_NO_NUL)]
Name = Annotated[str, msgspec.Meta(max_length=128, pattern=_NO_NUL)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=100)]
Title = Annotated[str, msgspec.Meta(max_length=200)]
Text = Annotated[str, msgspec.Meta(min_length=1)]


class TextPart(msgspec.Struct, tag="text", tag_field="type"):
    text: Text


Content = Text | Annotated[list[TextPart], msgspec.Meta(min_length=1, max_length=64)]


class Command(msgspec.Struct, rename="camel", tag_field="type", kw_only=True):
    """Every command but `ack` has an `id`, which its reply repeats as `re`."""

    id: Id | None = None


class Hello(Command, tag="hello"):
    protocol: str
    client: str | None = None


class ModelList(Command, tag="model.list"):
    pass


class SessionCreate(Command, tag="session.create"):
    client_message_id: Id
    agent: Name | None = None
    title: Title | None = None


class SessionList(Command, tag="session.list"):
    query: str | None = None
    cursor: str | None = None
    limit: Limit = 50
    archived: bool = False
    pinned: bool | None = None


class SessionSubscribe(Command, tag="session.subscribe"):
    session_id: UUID
    after: Annotated[int, msgspec.Meta(ge=0)] | None = None


class SessionUnsubscribe(Command, tag="session.unsubscribe"):
    session_id: UUID


class SessionHistory(Command, tag="session.history"):
    session_id: UUID
    before: str | None = None
    limit: Limit = 50


class SessionUpdate(Command, tag="session.update"):
    session_id: UUID
    title: Title | None = None
    pinned: bool | None = None
    archived: bool | None = None
    agent: Name | None = None
    model: Name | None = None


class SessionSeen(Command, tag="session.seen"):
    session_id: UUID
    revision: Annotated[int, msgspec.Meta(ge=0)]


class SessionDelete(Command, tag="session.delete"):
    session_id: UUID


class SessionRestore(Command, tag="session.restore"):
    session_id: UUID


class MessageSend(Command, tag="message.send"):
    client_message_id: Id
    content: Content
    session_id: UUID | None = None
    when_busy: str = "queue"
    agent: Name | None = None
    model: Name | None = None


class TurnRetry(Command, tag="turn.retry"):
    session_id: UUID
    turn_id: UUID
    client_message_id: Id
    when_busy: str = "reject"


class MessageEdit(Command, tag="message.edit"):
    session_id: UUID
    message_id: UUID
    content: Content
    client_message_id: Id
    when_busy: str = "reject"


class BranchSelect(Command, tag="branch.select"):
    session_id: UUID
    message_id: UUID


class TurnStop(Command, tag="turn.stop"):
    session_id: UUID | None = None
    turn_id: UUID | None = None
    clear_queue: bool = False


class QueueEdit(Command, tag="queue.edit"):
    turn_id: UUID
    content: Content | None = None
    when_busy: str | None = None


class QueueRemove(Command, tag="queue.remove"):
    turn_id: UUID


class Ack(Command, tag="ack"):
    acks: dict[UUID, int]


class Ping(Command, tag="ping"):
    t: float | int | str | None = None


AnyCommand = (
    Hello
    | ModelList
    | SessionCreate
    | SessionList
    | SessionSubscribe
    | SessionUnsubscribe
    | SessionHistory
    | SessionUpdate
    | SessionSeen
    | SessionDelete
    | SessionRestore
    | MessageSend
    | MessageEdit
    | BranchSelect
    | TurnRetry
    | TurnStop
    | QueueEdit
    | QueueRemove
    | Ack
    | Ping
)

STARTING: Final = (SessionCreate, MessageSend, MessageEdit, TurnRetry)
"""Commands that make something that stays, or ask a model."""

SLOW: Final = (ModelList,)
"""Commands that wait for somebody else's server; their replies come when they come."""

LATER: Final = frozenset({"approval.decide", "command.run"})
"""Commands of the protocol that this server does not offer yet."""


class _Envelope(msgspec.Struct):
    type: str
    id: str | None = None


class FrameError(Refusal):
    """A frame that cannot be taken; `re` is its id, if it could be read."""

    def __init__(self, code: str, sentence: Sentence, re: str | None = None) -> None:
        super().__init__(sentence)
        self.code, self.re = code, re


_commands: Final = msgspec.json.Decoder(AnyCommand)
_envelope: Final = msgspec.json.Decoder(_Envelope)
_encode: Final = msgspec.json.Encoder().encode
_KNOWN: Final = frozenset(str(struct.__struct_config__.tag) for struct in get_args(AnyCommand))


def parse(text: str) -> AnyCommand:
    """One frame as a command. Raises FrameError with a sentence that names what is wrong."""
    try:
        raw = text.encode()
        envelope = _envelope.decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as exc:
        sentence = say("This frame is not a command object: %(problem)s", problem=str(exc))
        raise FrameError("invalid_frame", sentence) from exc
    if envelope.type not in _KNOWN:
        code = "unsupported" if envelope.type in LATER else "invalid_frame"
        sentence = say("This server has no command '%(name)s'.", name=envelope.type)
        raise FrameError(code, sentence, envelope.id)
    try:
        command = _commands.decode(raw)
    except msgspec.ValidationError as exc:
        raise FrameError("invalid_frame", misfits.of_body(exc), envelope.id) from exc
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as exc:
        sentence = quote(f"{envelope.type}: {exc}")
        raise FrameError("invalid_frame", sentence, envelope.id) from exc
    if command.id is None and not isinstance(command, Ack):
        raise FrameError("invalid_frame", say("%(name)s needs an id.", name=envelope.type))
    return command


def content_parts(content: str | list[TextPart]) -> list[dict[str, Any]]:
    """The content of a message as parts. Raises FrameError when there is nothing in it."""
    texts = [content] if isinstance(content, str) else [part.text for part in content]
    if not any(text.strip() for text in texts):
        raise FrameError("invalid_frame", say("The message is empty. Write something."))
    return [{"type": "text", "text": text} for text in texts]


def ok(re: str | None, result: object) -> str:
    return _encode({"re": re, "ok": True, "result": result}).decode()


def error(
    re: str | None, code: str, sentence: Sentence, *, retryable: bool = False, **more: object
) -> str:
    """`sentences` is what the message is made of, for a client that speaks another language."""
    shape = {"code": code, "message": str(sentence), "retryable": retryable, **more}
    shape["sentences"] = sentence.shape()
    return _encode({"re": re, "ok": False, "error": shape}).decode()


def control(kind: str, **fields: object) -> str:
    """A frame that answers nothing: snapshot, draining, revoked."""
    return _encode({"type": kind, **fields}).decode()
