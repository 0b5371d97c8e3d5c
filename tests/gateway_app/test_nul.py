"""NUL, which PostgreSQL stores in no text, and half a letter: the same on both databases."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from gateway_app.host import GatewayHost
from gateway_app.models import Agent, Turn
from sessions_app.models import Message
from tests.factories import SuperuserFactory
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

NUL = "a\x00b"
HALF = '"a\\ud800b"'
"""As JSON: half of a pair of surrogates."""

FIELDS = [
    ("session.create", {"clientMessageId": "$"}, False),
    ("session.create", {"clientMessageId": "agent", "agent": "$"}, False),
    ("session.create", {"clientMessageId": "title", "title": "$"}, True),
    ("session.list", {"query": "$"}, True),
    ("session.list", {"cursor": "$"}, False),
    ("message.send", {"clientMessageId": "content", "content": "$"}, True),
    ("message.send", {"clientMessageId": "$", "content": "Hi"}, False),
    ("message.send", {"clientMessageId": "busy", "content": "Hi", "whenBusy": "$"}, False),
    ("hello", {"protocol": "hermes.v1", "client": "$"}, True),
    ("hello", {"protocol": "$"}, False),
    ("ping", {"t": "$"}, True),
]  # fmt: skip
"""(command, body, whether NUL at the dollar is taken)"""


def at_dollar(body: dict[str, Any], value: str) -> dict[str, Any]:
    return {name: value if field == "$" else field for name, field in body.items()}


async def test_it_takes_or_refuses_nul_alike_everywhere(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    async with SocketClient(owner) as client:
        for command, body, taken in FIELDS:
            reply = await client.ask(command, **at_dollar(body, NUL))
            assert reply["ok"] is taken, (command, body, reply)
            if not taken:
                assert reply["error"]["code"] in {"invalid_frame", "unsupported"}, reply
        await gateway.runner.wait_idle(60)


async def test_it_refuses_half_a_letter_in_every_field(gateway: GatewayHost, owner: User) -> None:
    async with SocketClient(owner) as client:
        for command, body, _ in FIELDS:
            fields = "".join(
                f', "{name}": ' + (HALF if field == "$" else f'"{field}"')
                for name, field in body.items()
            )
            before = len(client.frames)
            await client.send_text(f'{{"id": "half", "type": "{command}"{fields}}}')
            await client.until(lambda before=before: len(client.frames) > before)
            assert client.frames[before]["error"]["code"] == "invalid_frame", (command, body)


async def test_it_keeps_nul_in_a_message_and_out_of_a_title(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    gate = Gate()
    model.script(Script(headers_gate=gate))
    async with SocketClient(owner) as client:
        sent = await client.say(NUL)
        queued = await client.say("later", sent["sessionId"])
        edited = await client.ok("queue.edit", turnId=queued["turnId"], content=NUL)
        assert edited["queue"][0]["content"] == [{"type": "text", "text": NUL}]
        gate.release()
        await client.finished(queued["turnId"])
        page = await client.ok("session.history", sessionId=sent["sessionId"])
        said = [row["parts"][0]["text"] for row in page["messages"] if row["kind"] == "user"]
        assert said == [NUL, NUL]
        changed = await client.ok("session.update", sessionId=sent["sessionId"], title=NUL)
        assert changed["session"]["title"] == "a b"
        found = await client.ok("session.list", query=NUL)
        assert "sessions" in found
    stored = await sync_to_async(lambda: Message.objects.filter(kind="user").first())()
    assert stored is not None
    assert stored.parts == [{"type": "text", "text": NUL}]
    assert await sync_to_async(Turn.objects.count)() == 2


def test_it_refuses_nul_in_forms(client: Client, owner: User) -> None:
    for address in ("/accounts/login/", "/admin/login/"):
        for form in ({"username": NUL, "password": "x"}, {"username": "ann", "password": NUL}):
            answer = client.post(address, form)
            assert answer.status_code == 200, (address, form)
            assert "_auth_user_id" not in client.session
    for method in (client.get, client.post):
        assert method("/login/a%00b/").status_code in {403, 404, 410}
    client.force_login(owner)
    page = {"old_password": NUL, "new_password1": NUL, "new_password2": NUL}
    assert client.post("/accounts/password/", page).status_code == 200
    owner.refresh_from_db()
    assert not owner.check_password(NUL)


@pytest.mark.parametrize("query", ["q", "o", "p", "id__exact", "state"])
@pytest.mark.parametrize("value", ["a%00b", "%FF", "9" * 400])
def test_it_answers_nonsense_in_the_admins_addresses(
    client: Client, query: str, value: str
) -> None:
    client.force_login(SuperuserFactory())
    for name in ("sessions_app_session", "gateway_app_turn", "gateway_app_agent", "auth_user"):
        answer = client.get(reverse(f"admin:{name}_changelist") + f"?{query}={value}", follow=True)
        assert answer.status_code in {200, 400, 403, 404}, name
        assert (answer.status_code == 400) or "%00" not in value


def test_it_refuses_nul_in_the_admins_forms(client: Client) -> None:
    client.force_login(SuperuserFactory())
    form = {"slug": "new", "name": NUL, "model": NUL, "system_prompt": NUL}
    answer = client.post(reverse("admin:gateway_app_agent_add"), form)
    assert answer.status_code == 200
    assert not Agent.objects.filter(slug="new").exists()
    answer = client.get(reverse("admin:sessions_app_session_change", args=["a\x00b"]))
    assert answer.status_code in {302, 404}
