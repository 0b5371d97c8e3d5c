"""A hundred random edits, retries, stops and changes of branch leave one whole tree (case G3)."""

import itertools
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from sessions_app.models import Message
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.http_client import HttpClient
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

STEPS = 100
SEEN = ("user", "assistant", "notice")


class Walk:
    """One conversation and what may be done to it next."""

    def __init__(self, client: SocketClient, model: FakeModelServer, dice: random.Random) -> None:
        self.client, self.model, self.dice = client, model, dice
        self.session_id, self.count = "", 0

    async def rows(self, state: str) -> list[Message]:
        found = Message.objects.filter(session_id=self.session_id, state=state, kind__in=SEEN)
        return await sync_to_async(list)(found.order_by("position"))

    def word(self) -> str:
        self.count += 1
        return f"word{self.count}"

    async def ended(self, reply: dict[str, Any]) -> None:
        await self.client.finished(reply["turnId"])

    async def say(self) -> None:
        self.model.script(Script(tokens=[self.word()]))
        await self.ended(await self.client.say(self.word(), self.session_id))

    async def stop(self) -> None:
        gate, first = Gate(), self.word()
        self.model.script(Script(tokens=[first, "never"], gates={1: gate}))
        sent = await self.client.say(self.word(), self.session_id)
        await self.client.until(lambda: self.client.text(sent["turnId"]))
        await self.client.ok("turn.stop", turnId=sent["turnId"])
        await self.ended(sent)
        gate.release()

    async def edit(self) -> None:
        asked = [row for row in await self.rows("active") if row.kind == "user"]
        await self.another("message.edit", messageId=str(self.dice.choice(asked).pk),
                           content=self.word())  # fmt: skip

    async def retry(self) -> None:
        last = [row for row in await self.rows("active") if row.turn_id][-1]
        await self.another("turn.retry", turnId=str(last.turn_id))

    async def another(self, command: str, **fields: Any) -> None:
        self.model.script(Script(tokens=[self.word()]))
        fields |= {"sessionId": self.session_id, "clientMessageId": self.word()}
        await self.ended(await self.client.ok(command, **fields))

    async def select(self) -> None:
        others = await self.rows("branched")
        if others:
            chosen = str(self.dice.choice(others).pk)
            await self.client.ok("branch.select", sessionId=self.session_id, messageId=chosen)
            assert chosen in {str(row.pk) for row in await self.rows("active")}


@sync_to_async
def check_tree(session_id: str) -> None:
    """Every row hangs on an earlier one, and the active ones are one path from the root."""
    found = Message.objects.filter(session_id=session_id).order_by("position")
    rows = {row.pk: row for row in found}
    for row in rows.values():
        if row.parent_id in rows:
            assert rows[row.parent_id].position < row.position
    roots = [row for row in rows.values() if row.parent_id not in rows]
    assert all(row.kind == "user" for row in roots), roots
    path = [row for row in rows.values() if row.state == "active"]
    assert path[0] in roots
    for above, below in itertools.pairwise(path):
        assert below.parent_id == above.pk


async def check_shown(walk: Walk, http: HttpClient) -> None:
    """The display, the file and the rows are the same; so is what the model is asked next."""
    active = [(str(row.pk), row.parts) for row in await walk.rows("active")]
    shown, before = [], None
    while True:
        cursor = {} if before is None else {"before": before}
        page = await walk.client.ok("session.history", sessionId=walk.session_id, **cursor)
        shown = [*page["messages"], *shown]
        before = page["before"]
        if not page["hasMore"]:
            break
    kept = [row for row in shown if row["state"] == "active" and row["kind"] in SEEN]
    assert [(row["id"], row["parts"]) for row in kept] == active
    file = await http.file(f"/sessions/{walk.session_id}/export")
    lines = [json.loads(line) for line in file.splitlines()]
    written = [one for one in lines if one["type"] == "message" and one["state"] == "active"]
    assert [(one["id"], one["parts"]) for one in written if one["kind"] in SEEN] == active


async def test_it_keeps_one_whole_tree_whatever_is_done_to_it(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    dice = random.Random(3)
    async with SocketClient(owner) as client:
        walk = Walk(client, model, dice)
        model.script(Script(tokens=[walk.word()]))
        first = await client.say("root")
        walk.session_id = first["sessionId"]
        await walk.ended(first)
        steps: list[Callable[[], Awaitable[None]]] = [
            walk.say, walk.edit, walk.retry, walk.stop, walk.select, walk.select,
        ]  # fmt: skip
        http = HttpClient(owner)
        for step in range(STEPS):
            await dice.choice(steps)()
            assert await gateway.runner.wait_idle(60)
            await check_tree(walk.session_id)
            if step % 10 == 9:
                await check_shown(walk, http)
        await walk.say()
        asked = [
            part["content"] for part in model.requests[-1].messages if part["role"] != "system"
        ]
        said = [row.parts[0]["text"] for row in await walk.rows("active") if row.kind != "notice"]
        assert asked == said[:-1]
    assert UUID(walk.session_id)
