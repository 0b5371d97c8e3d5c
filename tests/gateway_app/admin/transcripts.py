"""Transcripts for the admin's tests, and what its page shows of them."""

import re

from gateway_app.models import Turn
from sessions_app.models import BLOCK, Message, Session
from tests.factories import MessageFactory, TurnFactory


def url_of(session: Session, query: str = "") -> str:
    return f"/admin/sessions_app/session/{session.pk}/transcript/{query}"


def write(session: Session, rows: int) -> None:
    Message.objects.bulk_create(
        Message(session=session, kind="user", parts=[{"type": "text", "text": f"[row {n}]"}])
        for n in range(rows)
    )


def shown_rows(html: str) -> list[int]:
    return [int(number) for number in re.findall(r"\[row (\d+)\]", html)]


def begun(session: Session, block: int, rows: int = 1, **fields) -> Turn:
    turn = TurnFactory(session=session, block=block, **fields)
    for n in range(1, rows + 1):
        MessageFactory(
            session=session,
            position=block * BLOCK + n,
            turn_id=turn.pk,
            text=f"[row {block * 10 + n}]",
        )
    return turn
