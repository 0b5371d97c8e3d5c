"""What a person is told of the turns of their own sessions."""

from uuid import UUID

from django.utils.translation import override

from gateway_app.models import Turn
from gateway_app.selectors.failures import told_failures
from gateway_app.selectors.sessions import make_cursor, own_session_check, read_moment_cursor
from gateway_app.shapes import Shape, turn_record_shape
from sessions_app.errors import SessionNotFound
from sessions_app.selectors import older_than
from sessions_app.sentences import say


def read_turn(*, user_id: int, turn_id: UUID, language: str) -> Shape:
    """The turn, if its session is the user's. Raises SessionNotFound."""
    turn = Turn.objects.filter(pk=turn_id).defer("content").first()
    if turn is None:
        raise SessionNotFound(say("This turn does not exist."))
    try:
        own_session_check(user_id=user_id, session_id=turn.session_id)
    except SessionNotFound as exc:
        raise SessionNotFound(say("This turn does not exist.")) from exc
    return _told([turn], language)[0]


def list_turns(
    *, user_id: int, session_id: UUID, cursor: str | None, limit: int, language: str
) -> Shape:
    """A page of the session's turns, newest first. Raises SessionNotFound, MessageInvalid."""
    own_session_check(user_id=user_id, session_id=session_id)
    turns = Turn.objects.filter(session_id=session_id).defer("content")
    if cursor:
        turns = turns.filter(older_than("created_at", *read_moment_cursor(cursor)))
    page = list(turns.order_by("-created_at", "-pk")[: limit + 1])
    more, page = len(page) > limit, page[:limit]
    after = make_cursor(page[-1].created_at.isoformat(), str(page[-1].pk)) if more else None
    return {"turns": _told(page, language), "nextCursor": after}


def _told(turns: list[Turn], language: str) -> list[Shape]:
    """The turns of one session; why one failed is said in the language."""
    with override(language):
        told = told_failures(turns)
    shapes = [turn_record_shape(turn) for turn in turns]
    for turn, shape in zip(turns, shapes, strict=True):
        if turn.pk in told and "error" in shape:
            shape["error"]["message"] = told[turn.pk]
    return shapes
