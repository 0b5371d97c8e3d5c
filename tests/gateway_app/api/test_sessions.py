"""Sessions over HTTP: list, make, read, change, delete, restore."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from tests.factories import MessageFactory, SessionFactory
from tests.http_client import HttpClient
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


async def test_it_makes_a_session_once(gateway: GatewayHost, owner: User) -> None:
    client = HttpClient(owner)
    body = {"clientMessageId": "new", "title": "Pillows"}
    made = await client.ask("POST", "/sessions", body)
    assert made.status_code == 201
    session = made.json()["session"]
    assert (session["title"], session["owner"], session["agent"]) == ("Pillows", owner.pk, "main")
    assert (await client.ok("POST", "/sessions", body))["session"]["id"] == session["id"]
    assert len((await client.ok("GET", "/sessions"))["sessions"]) == 1
    assert await client.ok("GET", f"/sessions/{session['id']}") == {"session": session}


async def test_it_lists_by_pages_and_finds_by_title(gateway: GatewayHost, owner: User) -> None:
    for number in range(5):
        await sync_to_async(SessionFactory)(owner=owner, title=f"Talk {number}")
    client, seen, cursor = HttpClient(owner), [], ""
    for _ in range(3):
        page = await client.ok("GET", f"/sessions?limit=2{cursor}")
        seen += [one["title"] for one in page["sessions"]]
        cursor = f"&cursor={page['nextCursor']}"
    assert seen == [f"Talk {number}" for number in (4, 3, 2, 1, 0)]
    assert page["nextCursor"] is None
    found = await client.ok("GET", "/sessions?query=talk%203")
    assert [one["title"] for one in found["sessions"]] == ["Talk 3"]


async def test_it_changes_what_is_given_and_tells_the_sockets(
    gateway: GatewayHost, owner: User
) -> None:
    client = HttpClient(owner)
    async with SocketClient(owner) as socket:
        made = await socket.ok("session.create", clientMessageId="new")
        session_id = made["session"]["id"]
        await socket.ok("session.subscribe", sessionId=session_id)
        changed = await client.ok("PATCH", f"/sessions/{session_id}", {"title": "New name"})
        assert changed["session"]["title"] == "New name"
        await socket.until(
            lambda: any(one["event"].get("name") == "hermes.title" for one in socket.events())
        )
    changed = await client.ok("PATCH", f"/sessions/{session_id}", {"archived": True})
    assert (changed["session"]["title"], changed["session"]["archived"]) == ("New name", True)
    assert (await client.ok("GET", "/sessions"))["sessions"] == []
    assert len((await client.ok("GET", "/sessions?archived=true"))["sessions"]) == 1


async def test_it_exports_markdown_in_the_language_that_is_asked_for(
    gateway: GatewayHost, owner: User
) -> None:
    session = await sync_to_async(SessionFactory)(owner=owner)
    await sync_to_async(MessageFactory)(session=session, kind="assistant", text="Blue.")
    client, path = HttpClient(owner), f"/sessions/{session.pk}/export?form=markdown"
    german = await client.file(path, headers={"Accept-Language": "de"})
    assert "\n## Assistent\n" in german.decode()
    assert "\n## Assistant\n" in (await client.file(path)).decode()


async def test_it_deletes_and_restores(gateway: GatewayHost, owner: User) -> None:
    client = HttpClient(owner)
    session_id = str((await sync_to_async(SessionFactory)(owner=owner)).pk)
    assert (await client.ask("DELETE", f"/sessions/{session_id}")).status_code == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/messages"), ("GET", "/export")):
        error = await client.refused(method, f"/sessions/{session_id}{path}")
        assert (error["status"], error["code"]) == (404, "not_found")
    restored = await client.ok("POST", f"/sessions/{session_id}/restore")
    assert restored["session"]["id"] == session_id
    assert await client.ok("GET", f"/sessions/{session_id}") == restored
