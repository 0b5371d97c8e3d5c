"""What a client may send, and what it is told when it sends something else."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import ApiToken
from sessions_app.models import Message
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.coherence.elsewhere import raw
from tests.socket_client import Frame, SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

SOMEBODY = "01920000-0000-7000-8000-000000000000"
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def tunables() -> dict[str, float]:
    """What a test turns; it parametrizes them."""
    return {}


@pytest.fixture
def config(config: GatewayConfig, tunables: dict[str, Any]) -> GatewayConfig:
    return replace(config, **tunables)


async def answer(client: SocketClient, frame: str | bytes) -> Frame:
    """The error that a frame gets; the socket lives on."""
    before = len(client.frames)
    await (client.send_bytes(frame) if isinstance(frame, bytes) else client.send_text(frame))
    await client.until(lambda: len(client.frames) > before)
    reply = client.frames[before]
    assert reply["ok"] is False
    assert reply["error"]["message"]
    assert await client.ok("ping", t=before) == {"t": before}
    return reply


BROKEN: list[str | bytes] = [
    "", "null", "[]", "17", '"hello"', "{", '{"id": "1"}', '{"type": 5, "id": "1"}',
    '{"type": "no.such.command", "id": "1"}', '{"type": "ping"}', '{"type": "ping", "id": 1}',
    '{"type": "ping", "id": ""}', f'{{"type": "ping", "id": "{"x" * 129}"}}',
    '{"type": "ping", "id": "1", "t": {}}', '{"type": "hello", "id": "1"}',
    '{"type": "session.list", "id": "1", "limit": 0}',
    '{"type": "session.list", "id": "1", "limit": 101}',
    '{"type": "session.list", "id": "1", "cursor": "nonsense"}',
    '{"type": "session.subscribe", "id": "1", "sessionId": "not a uuid"}',
    f'{{"type": "session.subscribe", "id": "1", "sessionId": "{SOMEBODY}", "after": -1}}',
    '{"type": "session.create", "id": "1", "clientMessageId": "a", "agent": "nobody"}',
    '{"type": "session.create", "id": "1", "clientMessageId": "a\\u0000b"}',
    '{"type": "session.create", "id": "1", "clientMessageId": "a", "agent": "a\\u0000b"}',
    '{"type": "message.send", "id": "1", "content": "Hi"}',
    '{"type": "message.send", "id": "1", "clientMessageId": "a", "content": ""}',
    '{"type": "message.send", "id": "1", "clientMessageId": "a", "content": " \\n"}',
    '{"type": "message.send", "id": "1", "clientMessageId": "a", "content": []}',
    '{"type": "message.send", "id": "1", "clientMessageId": "a", "content": "\\ud800"}',
    '{"type": "message.send", "id": "1", "clientMessageId": "a",'
    ' "content": [{"type": "image", "url": "http://example.org"}]}',
    '{"type": "turn.stop", "id": "1"}', '{"type": "ack", "acks": {"x": 1}}',
    '{"type": "ack", "acks": []}', "\ud800", DEEP, f'{{"type": "ping", "x": {DEEP}}}',
    f'{{"type": "message.send", "id": "1", "clientMessageId": "a", "content": {DEEP}}}',
    b"", b'{"type": "ping", "id": "1"}', b"\xff\xfe",
]  # fmt: skip


async def test_it_answers_what_it_cannot_take_with_a_clear_error(
    gateway: GatewayHost, owner: User
) -> None:
    async with SocketClient(owner) as client:
        for frame in BROKEN:
            assert (await answer(client, frame))["error"]["code"] == "invalid_frame", frame


async def test_it_says_what_does_not_fit_in_a_sentence_for_every_language(
    gateway: GatewayHost, owner: User
) -> None:
    frame = '{"type": "message.send", "id": "1", "clientMessageId": "a", "content": ""}'
    async with SocketClient(owner) as client:
        error = (await answer(client, frame))["error"]
    assert error["message"] == "content must have a length of at least 1."
    assert error["sentences"]


FORGED: list[object] = [
    [10**30, SOMEBODY], ["soon", SOMEBODY], [1, "x"], [1], [1, 2], {"a": 1}, [None, SOMEBODY],
    ["2026-01-01T00:00:00", SOMEBODY], ["0001-01-01T00:00:00+23:00", SOMEBODY],
    [[[]], SOMEBODY],
]  # fmt: skip


async def test_it_takes_a_forged_cursor_for_one_or_refuses_it(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        for cursor in FORGED:
            text = base64.urlsafe_b64encode(json.dumps(cursor).encode()).decode()
            for command, field in (("session.list", "cursor"), ("session.history", "before")):
                reply = await client.ask(command, sessionId=sent["sessionId"], **{field: text})
                assert reply["ok"] or reply["error"]["code"] == "invalid_frame", (cursor, reply)


async def test_it_offers_no_commands_of_a_later_version(gateway: GatewayHost, owner: User) -> None:
    async with SocketClient(owner) as client:
        for command in ("approval.decide", "command.run"):
            assert (await client.refused(command))["code"] == "unsupported"
        error = await client.refused(
            "message.send", clientMessageId="a", content="Hi", whenBusy="whenever"
        )
        assert error["code"] == "unsupported"
        assert (await client.refused("hello", protocol="hermes.v2"))["code"] == "unsupported"


async def test_it_ignores_fields_that_it_does_not_know(gateway: GatewayHost, owner: User) -> None:
    async with SocketClient(owner) as client:
        assert await client.ok("ping", t=1.5, later={"more": []}) == {"t": 1.5}


COMMANDS: list[tuple[str, dict[str, Any]]] = [
    ("session.create", {"clientMessageId": "a"}),
    ("session.list", {}),
    ("session.subscribe", {"sessionId": SOMEBODY}),
    ("session.unsubscribe", {"sessionId": SOMEBODY}),
    ("session.history", {"sessionId": SOMEBODY}),
    ("session.update", {"sessionId": SOMEBODY}),
    ("session.delete", {"sessionId": SOMEBODY}),
    ("session.restore", {"sessionId": SOMEBODY}),
    ("message.send", {"clientMessageId": "a", "content": "Hi"}),
    ("message.edit", {"clientMessageId": "a", "content": "Hi", "sessionId": SOMEBODY,
                      "messageId": SOMEBODY}),
    ("turn.retry", {"clientMessageId": "a", "sessionId": SOMEBODY, "turnId": SOMEBODY}),
    ("branch.select", {"sessionId": SOMEBODY, "messageId": SOMEBODY}),
    ("turn.stop", {"sessionId": SOMEBODY}),
    ("queue.edit", {"turnId": SOMEBODY, "content": "Hi"}),
    ("queue.remove", {"turnId": SOMEBODY}),
    ("ack", {"acks": {SOMEBODY: 1}}),
]  # fmt: skip


async def test_it_does_nothing_before_hello(gateway: GatewayHost, owner: User) -> None:
    client = SocketClient(owner)
    await client.open()
    for command, body in COMMANDS:
        assert (await client.refused(command, **body))["code"] == "unauthenticated", command
    assert await client.ok("ping", t=1) == {"t": 1}
    assert (await client.ok("hello", protocol="hermes.v1"))["user"]["name"] == "ann"
    await client.leave()


async def test_it_refuses_a_client_of_another_protocol(gateway: GatewayHost, owner: User) -> None:
    client = SocketClient(owner, subprotocols=["chat"])
    await client.open()
    assert (client.accepted, client.closed) == (False, 1000)
    await client.leave()


@pytest.mark.parametrize("tunables", [{"hello_timeout_s": 0.0}])
async def test_it_closes_who_says_no_hello(gateway: GatewayHost, owner: User) -> None:
    client = SocketClient(owner)
    await client.open()
    await client.until(lambda: client.closed)
    assert client.closed == 4008
    await client.leave()


@pytest.mark.parametrize("tunables", [{"max_hello_bytes": 200, "max_frame_bytes": 400}])
@pytest.mark.parametrize("filler", ["x", "é", "😀"])
async def test_it_closes_who_sends_too_large_a_frame(
    gateway: GatewayHost, owner: User, filler: str
) -> None:
    frame = '{{"type": "ping", "id": "1", "t": "{}"}}'
    room = (200 - len(frame)) // len(filler.encode())
    unknown = SocketClient(owner)
    await unknown.open()
    await unknown.send_text(frame.format(filler * room))
    await unknown.until(lambda: "1" in unknown.replies)
    await unknown.send_text(frame.format(filler * (room + 10)))
    await unknown.until(lambda: unknown.closed)
    assert unknown.closed == 4009
    await unknown.leave()
    async with SocketClient(owner) as known:
        await known.send_text(frame.format(filler * (room + 10)))
        await known.ok("ping")
        await known.send_text(frame.format(filler * 400))
        await known.until(lambda: known.closed)
        assert known.closed == 4009


@pytest.mark.parametrize("tunables", [{"max_open_commands": 3}])
async def test_it_takes_only_so_many_commands_at_once(gateway: GatewayHost, owner: User) -> None:
    async with SocketClient(owner) as client:
        for number in range(10):
            await client.send({"type": "session.list", "id": f"list {number}"})
        await client.until(lambda: sum(name.startswith("list") for name in client.replies) == 10)
        errors = [reply["error"] for reply in client.replies.values() if not reply["ok"]]
        assert errors
        assert {error["code"] for error in errors} == {"rate_limited"}
        assert all(error["retryable"] and error["retryAfterMs"] > 0 for error in errors)
        await client.ok("session.list")


@pytest.mark.parametrize("tunables", [{"max_open_commands": 3}])
async def test_it_bounds_the_lists_that_one_socket_waits_for(
    gateway: GatewayHost, owner: User, model: FakeModelServer
) -> None:
    model.models_held = Gate()
    async with SocketClient(owner) as client:
        for number in range(3):
            if number == 2:
                await client.ok("session.list")  # none of them is in the socket's queue any more
            await client.send({"id": f"m{number}", "type": "model.list"})
        assert (await client.refused("model.list"))["code"] == "rate_limited"
        model.models_held.release()
        await client.until(lambda: "m2" in client.replies)


def delete_the_token(user: User) -> None:
    raw(f"DELETE FROM {ApiToken._meta.db_table} WHERE user_id = %s", user.pk)


def close_the_account(user: User) -> None:
    raw(f"UPDATE {User._meta.db_table} SET is_active = %s WHERE id = %s", False, user.pk)


@pytest.mark.parametrize("tunables", [{"reauthorise_s": 0.0}])
@pytest.mark.parametrize("end", [delete_the_token, close_the_account])
async def test_it_looks_again_who_may_still_be_here(
    gateway: GatewayHost, owner: User, end: Callable[[User], None]
) -> None:
    """A bare SQL client tells nobody."""
    async with SocketClient(owner) as client:
        await sync_to_async(end)(owner)
        await client.until(lambda: client.closed)
    assert client.closed == 4001
    assert client.frames[-1] == {"type": "revoked"}


async def test_it_tells_of_a_restart_and_closes(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(Script(headers_gate=gate))
    async with SocketClient(owner) as client:
        await client.say("hello")
        await model.request(0)
        await gateway.drain(0)
        await client.until(lambda: client.closed)
    gate.release()
    assert client.closed == 4012
    assert {"type": "draining"} in client.frames


async def test_it_shows_a_row_with_a_surrogate_that_stands_alone(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        sent = await client.say("hello")
        await client.finished(sent["turnId"])
        session_id = sent["sessionId"]
        await sync_to_async(Message.objects.create)(
            session_id=session_id,
            kind="user",
            parts=[{"type": "text", "text": "half \ud800 of 👍"}],
        )
        sent = await client.say("and on", session_id)
        end = await client.finished(sent["turnId"])
        assert end["type"] == "RUN_FINISHED"
        page = await client.ok("session.history", sessionId=session_id)
        texts = [part.get("text") for row in page["messages"] for part in row["parts"]]
        assert "half \ufffd of 👍" in texts
        before = len(client.frames)
        await client.ok("session.subscribe", sessionId=session_id)
        await client.until(
            lambda: any(frame.get("type") == "snapshot" for frame in client.frames[before:])
        )


async def test_it_takes_commands_that_follow_hello_without_waiting(
    gateway: GatewayHost, owner: User
) -> None:
    client = SocketClient(owner)
    await client.open()
    await client.send({"id": "early", "type": "session.list"})
    await client.send({"id": "h", "type": "hello", "protocol": "hermes.v1"})
    await client.send({"id": "late", "type": "session.list"})
    await client.until(lambda: "late" in client.replies)
    assert client.replies["early"]["error"]["code"] == "unauthenticated"
    assert client.replies["h"]["ok"]
    assert client.replies["late"]["ok"]
    await client.leave()
