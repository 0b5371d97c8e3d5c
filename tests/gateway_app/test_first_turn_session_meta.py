"""The founding regression: a turn's own rows must not look foreign.

A message of a group reaches an empty session, for which the cache already holds an agent. The turn
stores its own rows and, after them, the first turn's marker row, which counts as well.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from django.contrib.auth.models import User

from gateway_app.cached_agent import CachedAgent
from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.services.recovery import release_runs
from sessions_app.models import Message
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.coherence.elsewhere import (
    Conversation,
    RunnerConversation,
    SocketConversation,
    cached,
    elsewhere,
    ends_refused,
    in_database,
    level,
    messages,
    raw_append,
    session_of,
    starts_with,
    texts_of,
    turn_of,
)
from tests.gateway_app.heart import beat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    """The heart beats when a test says so: what broke off is not taken up before."""
    return replace(config, heartbeat_s=3600)


@pytest_asyncio.fixture(params=[RunnerConversation, SocketConversation], ids=["runner", "socket"])
async def conversation(
    request: pytest.FixtureRequest, gateway: GatewayHost, owner: User
) -> AsyncIterator[Conversation]:
    """An empty session with a way into it; its agent is warm, built when it had no rows."""
    opened = request.param(gateway, owner)
    await opened.open()
    session = await in_database(session_of, opened.session_id)
    provider, _ = await gateway.providers.resolve("")
    agent = CachedAgent(session.pk, provider.wire, "", baseline=(0, session.incarnation))
    assert gateway.cache._admit(agent) is agent
    yield opened
    await opened.close()


def kinds_and_positions(conversation: Conversation) -> list[tuple[str, int]]:
    rows = Message.objects.filter(session_id=conversation.session_id).order_by("position")
    return list(rows.values_list("kind", "position"))


async def test_it_ends_the_first_turn_with_the_baseline_at_the_revision(
    gateway: GatewayHost, conversation: Conversation
) -> None:
    warm = cached(gateway, conversation.session_id)
    turn = await conversation.say("hello world")
    assert turn.state == "completed"
    rows = await in_database(kinds_and_positions, conversation)
    assert [kind for kind, _ in rows] == ["user", "assistant", "session_meta"]
    session = await in_database(session_of, conversation.session_id)
    assert session.message_count == 3
    assert cached(gateway, conversation.session_id) is warm
    assert warm.baseline == (session.revision, session.incarnation)


async def test_it_reuses_the_cached_agent_for_the_second_message(
    gateway: GatewayHost, conversation: Conversation
) -> None:
    warm = cached(gateway, conversation.session_id)
    await conversation.say("hello world")
    turn = await conversation.say("again")
    assert (turn.verdict, turn.worst_verdict, turn.reason) == ("reuse", "reuse", "")
    assert turn.baseline == turn.revision
    assert cached(gateway, conversation.session_id) is warm
    assert await level(gateway, conversation.session_id)


async def test_it_catches_up_when_the_receiver_is_disconnected(
    gateway: GatewayHost, conversation: Conversation
) -> None:
    with elsewhere():
        await conversation.say("hello world")
        assert not await level(gateway, conversation.session_id)
    turn = await conversation.say("again")
    assert turn.verdict == "catch_up"
    assert await level(gateway, conversation.session_id)


async def test_it_starts_the_second_request_with_the_bytes_of_the_first(
    gateway: GatewayHost, model: FakeModelServer, conversation: Conversation
) -> None:
    await conversation.say("hello world")
    await conversation.say("again")
    one, two = (request.body for request in model.requests)
    assert starts_with(two, one)
    assert messages(model, 1)[1:] == [
        ("user", "hello world"), ("assistant", "Hello, world!"), ("user", "again"),
    ]  # fmt: skip


async def test_it_sends_a_foreign_row_of_the_first_turns_midst_with_the_second(
    gateway: GatewayHost, model: FakeModelServer, conversation: Conversation
) -> None:
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}))
    first = await conversation.send("hello world")
    await model.request(0)
    await in_database(raw_append, conversation.session_id, "from elsewhere")
    gate.release()
    await conversation.finished(first)
    turn = await conversation.say("again")
    assert ("user", "from elsewhere") not in messages(model, 0)
    assert messages(model, 1)[1:] == [
        ("user", "hello world"), ("assistant", "one two"), ("user", "from elsewhere"),
        ("user", "again"),
    ]  # fmt: skip
    assert starts_with(model.requests[1].body, model.requests[0].body)
    assert turn.verdict == "catch_up"


async def test_it_keeps_baseline_and_revision_equal_when_a_turn_rolls_back(
    gateway: GatewayHost, model: FakeModelServer, conversation: Conversation
) -> None:
    with ends_refused():
        first = await conversation.send("hello world")
        assert await gateway.runner.wait_idle(60)
    session_id = conversation.session_id
    assert await in_database(texts_of, session_id) == [("user", "hello world")]
    assert (await in_database(turn_of, first)).state == "running"
    assert await level(gateway, session_id)

    warm = cached(gateway, session_id)
    turn = await in_database(turn_of, first)
    await in_database(release_runs, turn_ids=[turn.pk], lease_owner=gateway.lease_owner)
    await beat(gateway)
    turn = await conversation.finished(first)
    assert (turn.state, turn.runs, turn.verdict) == ("completed", 2, "reuse")
    assert cached(gateway, session_id) is warm
    assert await level(gateway, session_id)
    one, two = (request.body for request in model.requests)
    assert one == two
