"""What a person is told of the turns of their own sessions."""

from uuid import UUID

from gateway_app.models import Turn
from gateway_app.selectors.sessions import make_cursor, own_session_check, read_moment_cursor
from gateway_app.shapes import Shape, turn_record_shape
from sessions_app.errors import SessionNotFound
from sessions_app.selectors import older_than
from sessions_app.sentences import say


def read_turn(*, user_id: int, turn_id: UUID) -> Shape:
    """The turn, if its session is the user's. Raises SessionNotFound."""
    turn = Turn.objects.filter(pk=turn_id).defer("content").first()
    if turn is None:
        raise SessionNotFound(say("This turn does not exist."))
    try:
        own_session_check(user_id=user_id, session_id=turn.session_id)
    except SessionNotFound as exc:
        raise SessionNotFound(say("This turn does not exist.")) from exc
    return turn_record_shape(turn)


def list_turns(*, user_id: int, session_id: UUID, cursor: str | None, limit: int) -> Shape:
    """A page of the session's turns, newest first. Raises SessionNotFound, MessageInvalid."""
    own_session_check(user_id=user_id, session_id=session_id)
    turns = Turn.objects.filter(session_id=session_id).defer("content")
    if cursor:
        turns = turns.filter(older_than("created_at", *read_moment_cursor(cursor)))
    page = list(turns.order_by("-created_at", "-pk")[: limit + 1])
    more, page = len(page) > limit, page[:limit]
    after = make_cursor(page[-1].created_at.isoformat(), str(page[-1].pk)) if more else None
    return {"turns": [turn_record_shape(turn) for turn in page], "nextCursor": after}
