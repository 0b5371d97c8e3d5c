"""The frozen part of a request: the same bytes for life, and one deliberate change when asked."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db.models import DateTimeField, F

from gateway_app.host import GatewayHost
from gateway_app.models import Agent, Turn
from gateway_app.services.agents import create_agent, save_agent_version
from gateway_app.services.sessions import change_session, create_web_session
from sessions_app.fields import dump_json
from sessions_app.models import Message, Session
from sessions_app.services import append_messages
from sessions_app.transcript import NewMessage
from tests.fake_model_server import FakeModelServer, Gate, Script, ToolCall
from tests.gateway_app.coherence.elsewhere import (
    SocketConversation,
    cached,
    elsewhere,
    grows_only,
    in_database,
    messages,
    say_through,
)

pytestmark = pytest.mark.django_db(transaction=True)


def edit_agent(prompt: str) -> None:
    save_agent_version(
        agent=Agent.objects.get(slug="main"), model="", system_prompt=prompt, temperature=0.9,
        max_output_tokens=None, created_by_id=None,
    )  # fmt: skip


def second_agent() -> None:
    create_agent(
        slug="second", name="Second", model="openai:fake-2", system_prompt="You are second.",
        temperature=None, max_output_tokens=None, created_by_id=None,
    )  # fmt: skip


def heads(model: FakeModelServer) -> list[bytes]:
    """What stands before the first message that is no system prompt."""
    return [request.body.partition(b'{"role":"user"')[0] for request in model.requests]


async def test_it_keeps_the_system_prompt_of_a_session_for_life(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation
) -> None:
    """Cases 35 and 36: the agent is edited meanwhile; ids change with every message."""
    await conversation.say("hello")
    await in_database(edit_agent, "You are somebody else.")
    for number in range(3):
        assert (await conversation.say(f"again {number}")).worst_verdict == "reuse"
    assert len(set(heads(model))) == 1
    assert grows_only(model)
    ids = await in_database(lambda: list(Message.objects.values_list("pk", flat=True)))
    last = model.requests[-1].body.decode()
    assert not any(str(one) in last or one.hex in last for one in ids)
    assert str(conversation.session_id) not in last


async def test_it_gives_a_new_session_the_new_version(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation, owner: User
) -> None:
    await conversation.say("hello")
    await in_database(edit_agent, "You are somebody else.")
    later, _ = await in_database(create_web_session, user_id=owner.pk, create_id=None)
    await say_through(gateway, later.pk, owner, "hello")
    assert [messages(model, number)[0][1] for number in range(2)] == [
        "You are a helpful assistant. Answer clearly and briefly.", "You are somebody else.",
    ]  # fmt: skip


async def test_it_takes_two_names_of_one_model_for_the_same(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation, owner: User
) -> None:
    """Case 37: the site's default, and the same model by its name."""
    await conversation.say("hello")
    await gateway.lanes.write(
        change_session, user_id=owner.pk, session_id=conversation.session_id, model="openai:fake-1"
    )
    assert (await conversation.say("again")).verdict == "reuse"
    assert grows_only(model)


@pytest.fixture
def restarted(gateway: GatewayHost) -> GatewayHost:
    """The gateway of a later life: an empty cache, a lease owner of its own."""
    return GatewayHost(replace(gateway.config))


async def test_it_keeps_the_prefix_over_a_restart(
    restarted: GatewayHost, model: FakeModelServer, conversation: SocketConversation, owner: User
) -> None:
    """Case 39: the agent was edited meanwhile, too."""
    await conversation.say("hello")
    await conversation.say("again")
    await in_database(edit_agent, "You are somebody else.")
    await restarted.start(checkpoint=False)
    try:
        turns = [
            await say_through(restarted, conversation.session_id, owner, text)
            for text in ("after the restart", "and on")
        ]
    finally:
        await restarted.aclose()
    assert [turn.verdict for turn in turns] == ["reload", "reuse"]
    assert grows_only(model)


def days_pass() -> None:
    """Every time that is stored is a year and a day older."""
    for kind in (Session, Message, Turn):
        for field in kind._meta.get_fields():
            if isinstance(field, DateTimeField):
                older = F(field.name) - timedelta(days=366)
                kind._default_manager.update(**{field.name: older})


async def test_it_keeps_the_prefix_over_a_long_pause(
    restarted: GatewayHost, model: FakeModelServer, conversation: SocketConversation, owner: User
) -> None:
    """Cases 35 and 77: warm or loaded, the bytes tell nobody which day it is."""
    model.script(Script(status=500))
    await conversation.say("hello")
    await in_database(days_pass)
    warm = await conversation.say("a year later")
    await in_database(days_pass)
    await restarted.start(checkpoint=False)
    try:
        loaded = await say_through(restarted, conversation.session_id, owner, "and another one")
    finally:
        await restarted.aclose()
    assert (warm.verdict, loaded.verdict) == ("reuse", "reload")
    assert grows_only(model)
    sent = messages(model, 1)
    assert [role for role, _ in sent[1:]] == ["user", "assistant", "user"]
    assert sent[2][1].startswith("[Notice: ")


async def test_it_keeps_a_chosen_model_over_a_restart_and_for_that_session_alone(
    restarted: GatewayHost, model: FakeModelServer, conversation: SocketConversation, owner: User
) -> None:
    """Case 96: from the next message on, also for what waits already."""
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}))
    first = await conversation.send("hello")
    await model.request(0)
    waiting = await conversation.send("this one waits")
    await in_database(
        change_session, user_id=owner.pk, session_id=conversation.session_id, model="openai:fake-2"
    )
    gate.release()
    await conversation.finished(first)
    await conversation.finished(waiting)
    later, _ = await in_database(create_web_session, user_id=owner.pk, create_id=None)
    await restarted.start(checkpoint=False)
    try:
        turn = await say_through(restarted, conversation.session_id, owner, "after the restart")
        await say_through(restarted, later.pk, owner, "hello")
    finally:
        await restarted.aclose()
    asked = [request.json["model"] for request in model.requests]
    assert asked == ["fake-1", "fake-2", "fake-2", "fake-1"]
    assert turn.verdict == "reload"


async def test_it_replays_what_was_sent_for_a_message(
    restarted: GatewayHost, model: FakeModelServer, conversation: SocketConversation, owner: User
) -> None:
    """Case 40: the text beside the row goes to the model, before and after a restart."""

    def append() -> None:
        row = NewMessage(
            kind="user",
            parts=dump_json([{"type": "text", "text": "look at this"}]),
            sent_parts=dump_json([{"type": "text", "text": "look at this\n<file>1e22</file>"}]),
        )
        append_messages(session_id=conversation.session_id, messages=[row])

    await in_database(append)
    await conversation.say("well")
    await restarted.start(checkpoint=False)
    try:
        turn = await say_through(restarted, conversation.session_id, owner, "and now")
    finally:
        await restarted.aclose()
    assert turn.verdict == "reload"
    assert messages(model, 1)[1] == ("user", "look at this\n<file>1e22</file>")
    assert grows_only(model)


async def test_it_rebuilds_exactly_once_for_another_agent(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation, owner: User
) -> None:
    """Case 42's shape: a deliberate change, with its reason; the agent object stays."""
    await in_database(second_agent)
    await conversation.say("hello")
    agent = cached(gateway, conversation.session_id)
    await gateway.lanes.write(
        change_session, user_id=owner.pk, session_id=conversation.session_id, agent="second"
    )
    turns = [await conversation.say(text) for text in ("as another", "again")]
    assert [(turn.verdict, turn.reason) for turn in turns] == [
        ("rebuild", "reconfigured"), ("reuse", ""),
    ]  # fmt: skip
    assert messages(model, 1)[0] == ("system", "You are second.")
    assert [request.json["model"] for request in model.requests] == ["fake-1", "fake-2", "fake-2"]
    assert cached(gateway, conversation.session_id) is agent


async def test_it_does_not_mix_prompts_when_the_first_turn_is_reconfigured(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation, owner: User
) -> None:
    """The agent changes while the first turn asks for tools; nobody else gets its old prompt."""
    await in_database(second_agent)
    gate = Gate()
    calls = [ToolCall("call-1", "look")]
    model.script(Script(tokens=["thinking"], gates={0: gate}, tool_calls=calls))
    turn_id = await conversation.send("hello")
    await model.request(0)
    await gateway.lanes.write(
        change_session, user_id=owner.pk, session_id=conversation.session_id, agent="second"
    )
    gate.release()
    turn = await conversation.finished(turn_id)
    assert (turn.worst_verdict, turn.worst_reason) == ("rebuild", "reconfigured")
    later, _ = await in_database(
        create_web_session, user_id=owner.pk, create_id=None, agent="second"
    )
    await say_through(gateway, later.pk, owner, "hello")
    for number in (1, 2):
        assert model.requests[number].json["model"] == "fake-2"
        assert messages(model, number)[0] == ("system", "You are second.")


async def test_it_never_shares_a_prefix_between_two_keys(
    gateway: GatewayHost, model: FakeModelServer, conversation: SocketConversation, owner: User
) -> None:
    """Case 43: the new credential, which begins like the old one, is used, and named."""
    await conversation.say("hello")
    rotated = GatewayHost(replace(gateway.config, openai_api_key="sk-test-2"))
    await rotated.start(checkpoint=False)
    try:
        with elsewhere():
            turns = [
                await say_through(rotated, conversation.session_id, owner, text)
                for text in ("with the new key", "again")
            ]
    finally:
        await rotated.aclose()
    assert [(turn.verdict, turn.reason) for turn in turns] == [
        ("rebuild", "reconfigured"), ("catch_up", ""),
    ]  # fmt: skip
    keys = [request.headers["authorization"] for request in model.requests]
    assert keys == ["Bearer sk-test", "Bearer sk-test-2", "Bearer sk-test-2"]
    turn = await conversation.say("with the old key once more")
    assert (turn.verdict, turn.reason) == ("rebuild", "reconfigured")
