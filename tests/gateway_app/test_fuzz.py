"""Whatever a client sends gets an answer or a documented close, and nobody else notices."""

from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway_app.host import GatewayHost
from tests.factories import MessageFactory, QueuedTurnFactory, SessionFactory
from tests.fake_model_server import FakeModelServer
from tests.gateway_app.frames import STRUCTS, dump, frames, texts
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

CODES: Final = frozenset(
    {
        "invalid_frame", "unauthenticated", "forbidden", "not_found", "busy", "queue_full",
        "idempotency_mismatch", "session_ended", "too_large", "rate_limited", "draining",
        "already_decided", "expired", "unsupported",
    }
)  # fmt: skip
"""Every code that a client may be told, but for a fault of the server."""
CLOSES: Final = {1000, 4001, 4003, 4008, 4009, 4012, 4013}

fuzzed = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@sync_to_async
def make_ids(owner: User, stranger: User) -> list[str]:
    """Ids that are there: of the person's own things, and of somebody else's."""
    ids = []
    for user in (owner, stranger):
        session = SessionFactory(owner=user)
        turn = QueuedTurnFactory(session=session, state="stopped")
        ids += [session.pk, MessageFactory(session=session).pk, turn.pk]
    return [str(one) for one in ids]


async def alive(client: SocketClient) -> None:
    assert await client.ok("ping", t=1) == {"t": 1}


def check_replies(client: SocketClient) -> None:
    for reply in client.replies.values():
        assert reply["ok"] or reply["error"]["code"] in CODES, reply
        assert reply["ok"] or reply["error"]["message"]


def answered(client: SocketClient) -> int:
    """Replies so far; one to what is no JSON names no id."""
    return len([frame for frame in client.frames if "re" in frame])


KNOWN: Final = [f"known-{number}" for number in range(6)]


def with_ids(value: Any, ids: list[str]) -> Any:
    """The frame with the names of KNOWN replaced by the ids they stand for."""
    if isinstance(value, str) and value in KNOWN:
        return ids[KNOWN.index(value)]
    if isinstance(value, dict):
        return {with_ids(name, ids): with_ids(item, ids) for name, item in value.items()}
    return [with_ids(item, ids) for item in value] if isinstance(value, list) else value


@fuzzed
@given(batch=frames(KNOWN))
async def test_it_answers_every_command_whatever_is_in_it(
    gateway: GatewayHost,
    model: FakeModelServer,
    owner: User,
    stranger: User,
    batch: list[dict[str, Any]],
) -> None:
    ids = await make_ids(owner, stranger)
    async with SocketClient(stranger) as witness, SocketClient(owner) as client:
        before = answered(client)
        for number, frame in enumerate(with_ids(batch, ids)):
            await client.send_text(dump({**frame, "id": f"fuzz {number}"}))
        await client.ok("session.unsubscribe", sessionId=ids[0])
        owed = len([frame for frame in batch if frame["type"] != "ack"])
        await client.until(lambda: client.closed or answered(client) - before > owed)
        assert client.closed is None
        check_replies(client)
        await alive(client)
        await alive(witness)


@fuzzed
@given(batch=st.lists(texts(), min_size=1, max_size=12))
async def test_it_lives_through_whatever_is_no_command(
    gateway: GatewayHost, owner: User, stranger: User, batch: list[str | bytes]
) -> None:
    async with SocketClient(stranger) as witness, SocketClient(owner) as client:
        for frame in batch:
            await (client.send_bytes if isinstance(frame, bytes) else client.send_text)(frame)
        if client.closed is None:
            await alive(client)
        assert client.closed in {None, *CLOSES}
        check_replies(client)
        await alive(witness)


def test_it_fuzzes_every_command() -> None:
    assert {"hello", "ack", "ping", "message.send", "queue.edit"} <= set(STRUCTS)
    assert len(STRUCTS) >= 20
