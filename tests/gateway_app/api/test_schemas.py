"""The API's document and the shapes of the wire say the same, field by field."""

from typing import Any

import pytest

from gateway_app import shapes
from gateway_app.api import schemas
from gateway_app.models import Turn
from gateway_app.selectors.sessions import read_session
from sessions_app.models import Message
from tests.factories import MessageFactory, SessionFactory, TurnFactory

pytestmark = pytest.mark.django_db


def agrees(shape: shapes.Shape, schema: Any) -> bool:
    """The shape has every field that the schema demands, and none that it does not know."""
    return schema.__required_keys__ <= set(shape) <= set(schema.__annotations__)


def test_it_documents_every_field() -> None:
    session = SessionFactory()
    turn: Turn = TurnFactory(
        session=session, error_code="limit", error_message="x", reason="none", cost_usd="1",
        retry_of=session.pk, context_tokens=9, cache_write_tokens=5, fallback_from="openai:away",
    )  # fmt: skip
    first = MessageFactory(session=session)
    row: Message = MessageFactory(
        session=session, author=session.owner, parent=first, turn_id=turn.pk, finish="stop",
        client_message_id="m",
    )  # fmt: skip
    whole = shapes.message_shape(row, {session.owner_id: "ann"}, [row.pk, row.pk])
    assert set(whole) == set(schemas.MessageRow.__annotations__)
    assert agrees(shapes.message_shape(first, {}), schemas.MessageRow)
    record = shapes.turn_record_shape(turn)
    assert set(record) == set(schemas.TurnRecord.__annotations__)
    assert set(record["usage"]) == set(schemas.Usage.__annotations__)
    assert agrees(shapes.turn_shape(turn), schemas.TurnFacts)
    found = read_session(user_id=session.owner_id, session_id=session.pk)
    assert set(found) == set(schemas.Session.__annotations__)
