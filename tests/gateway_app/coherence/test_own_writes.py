"""A turn's own writes must not look foreign."""

from uuid import UUID

import pytest

from gateway_app.host import GatewayHost
from gateway_app.models import Event, Turn
from sessions_app.fields import dump_json
from sessions_app.models import Message, Session
from sessions_app.services import compact_messages, update_session
from sessions_app.transcript import NewMessage
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.coherence.elsewhere import (
    SocketConversation,
    cached,
    grows_only,
    in_database,
    level,
    messages,
    session_of,
    starts_with,
    texts_of,
)

pytestmark = pytest.mark.django_db(transaction=True)


def verdicts_of(session_id: UUID) -> list[str]:
    """The worst verdict of each turn, in order."""
    turns = Turn.objects.filter(session_id=session_id).order_by("accepted_seq")
    return list(turns.values_list("worst_verdict", flat=True))


def last_position(session_id: UUID) -> int:
    rows = Message.objects.filter(session_id=session_id).order_by("-position")
    return rows.values_list("position", flat=True)[0]


async def test_it_reuses_the_agent_after_an_ordinary_turn_with_tools(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """Case 2: user, tool and assistant rows; the transcript grows at every turn."""
    await conversation.say("hello")
    agent = cached(gateway, conversation.session_id)
    for number in range(2):
        calls = [ToolCall(f"call-{number}-{place}", "look") for place in range(2)]
        model.script(Script(tokens=[], tool_calls=calls), Script(tokens=[f"answer {number}"]))
        turn = await conversation.say(f"use tools {number}")
        assert (turn.verdict, turn.worst_verdict) == ("reuse", "reuse")
    assert cached(gateway, conversation.session_id) is agent
    assert await level(gateway, conversation.session_id)
    assert len(model.requests) == 5
    assert grows_only(model)


@pytest.mark.parametrize("waiting", [1, 5])
async def test_it_reuses_the_agent_for_every_queued_follow_up(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation, waiting: int
) -> None:
    """Cases 3 and 4: the next turn starts within the write that ends the one before."""
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}))
    turns = [await conversation.send("first")]
    await model.request(0)
    agent = cached(gateway, conversation.session_id)
    turns += [await conversation.send(f"follow-up {number}") for number in range(waiting)]
    gate.release()
    done = [await conversation.finished(turn_id) for turn_id in turns]
    assert [turn.state for turn in done] == ["completed"] * len(turns)
    assert [turn.worst_verdict for turn in done] == ["new", *["reuse"] * waiting]
    assert cached(gateway, conversation.session_id) is agent
    assert await level(gateway, conversation.session_id)
    assert grows_only(model)


async def test_it_stores_a_compaction_once_and_rebuilds_once(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """Case 5: this process compacts; nothing is inserted again, and the agent is patched."""
    for number in range(3):
        await conversation.say(f"message {number}")
    agent, session_id = cached(gateway, conversation.session_id), conversation.session_id
    last = await in_database(last_position, session_id)
    summary = NewMessage(kind="summary", parts=dump_json([{"type": "text", "text": "so far"}]))
    replaced = await gateway.lanes.write(
        compact_messages, session_id=session_id, until_position=last, summary=summary
    )
    assert replaced == 7
    assert await level(gateway, session_id)
    turn = await conversation.say("after")
    assert (turn.verdict, turn.reason) == ("rebuild", "compacted")
    assert messages(model, 3)[1:] == [
        ("user", "[Summary of the conversation until here: so far]"), ("user", "after"),
    ]  # fmt: skip
    turn = await conversation.say("and on")
    assert turn.verdict == "reuse"
    assert cached(gateway, session_id) is agent
    assert starts_with(model.requests[4].body, model.requests[3].body)
    kinds = [kind for kind, _ in await in_database(texts_of, session_id)]
    assert kinds == ["summary", "user", "assistant", "user", "assistant"]


async def test_it_takes_the_rows_of_a_failed_turn_as_its_own(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """Case 7: the user's row and the closing notice."""
    await conversation.say("hello")
    agent = cached(gateway, conversation.session_id)
    model.script(Script(status=500))
    failed = await conversation.say("this one fails")
    assert (failed.state, failed.verdict) == ("failed", "reuse")
    assert await level(gateway, conversation.session_id)
    turn = await conversation.say("and this one does not")
    assert (turn.state, turn.worst_verdict) == ("completed", "reuse")
    assert cached(gateway, conversation.session_id) is agent
    sent = messages(model, 2)
    assert sent[-3] == ("user", "this one fails")
    assert sent[-2][0] == "assistant" and sent[-2][1].startswith("[Notice: ")
    assert grows_only(model)


async def test_it_takes_the_rows_of_a_stopped_turn_as_its_own(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """Case 7: the partial answer."""
    await conversation.say("hello")
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}))
    turn_id = await conversation.send("stop me")
    await model.request(1)
    await conversation.shown(turn_id)
    await conversation.stop(turn_id)
    stopped = await conversation.finished(turn_id)
    gate.release()
    assert stopped.state == "stopped"
    assert await level(gateway, conversation.session_id)
    turn = await conversation.say("go on")
    assert turn.worst_verdict == "reuse"
    assert messages(model, 2)[-2:] == [("assistant", "one "), ("user", "go on")]
    assert grows_only(model)


async def test_it_does_not_move_the_clock_with_what_no_model_sees(
    gateway: GatewayHost, conversation: SocketConversation
) -> None:
    """Cases 8 and 9: title, usage, feedback, the log's own bookkeeping."""
    session_id = conversation.session_id
    await conversation.say("hello")
    before = await in_database(session_of, session_id)

    def bookkeeping() -> None:
        update_session(session_id=session_id, title="Another title", pinned=True, archived=True)
        Message.objects.filter(session_id=session_id).update(feedback=1, finish="seen")
        Turn.objects.filter(session_id=session_id).update(input_tokens=7, cost_usd="0.5")
        Event.objects.filter(session_id=session_id).update(folded=True)
        Session.objects.filter(pk=session_id).update(event_seq=before.event_seq + 100)

    await in_database(bookkeeping)
    after = await in_database(session_of, session_id)
    assert (after.revision, after.removed_revision) == (before.revision, before.removed_revision)
    turn = await conversation.say("again")
    assert (turn.worst_verdict, turn.baseline) == ("reuse", turn.revision)
    assert await in_database(verdicts_of, session_id) == ["new", "reuse"]
