"""Turns that are held where a test wants them, and messages that come meanwhile."""

from uuid import UUID

from django.contrib.auth.models import User

from gateway_app.inbound import Inbound
from gateway_app.models import Turn
from gateway_app.services.turns import Accepted, accept_turn
from sessions_app.models import Message
from tests.fake_model_server import FakeModelServer, Gate, Json, Script, ToolCall
from tests.gateway_app.coherence.elsewhere import texts_of
from tests.socket_client import SocketClient

LOOK = [ToolCall("a1", "look")]


def inbound(owner: User, text: str, when_busy: str = "queue") -> Inbound:
    return Inbound(
        author_id=owner.pk,
        author_name=owner.username,
        client_message_id=text,
        body_hash="",
        content=[{"type": "text", "text": text}],
        when_busy=when_busy,
    )


def accept(message: Inbound, session_id: str) -> Accepted:
    """As another process accepts it, which runs nothing here."""
    return accept_turn(inbound=message, session_id=UUID(session_id), lease_owner="elsewhere")


def said(session_id: str) -> list[tuple[str, str]]:
    """(kind, text) of the active rows that a person sees."""
    return [one for one in texts_of(UUID(session_id)) if one[0] != "session_meta"]


def rows_of(session_id: str) -> list[tuple[str, str, str]]:
    """(kind, state, text) of every row, in order."""
    found = Message.objects.filter(session_id=session_id).order_by("position", "id")
    return [
        (row.kind, row.state, "".join(part.get("text", "") for part in row.parts))
        for row in found
        if row.kind != "session_meta"
    ]


def states_of(session_id: str) -> list[str]:
    turns = Turn.objects.filter(session_id=session_id).order_by("accepted_seq")
    return list(turns.values_list("state", flat=True))


async def come(client: SocketClient, session_id: str, more: int) -> None:
    """So many events more have come; fewer, if what runs has ended before."""
    wanted = len(client.events(session_id)) + more

    def there() -> bool:
        events = client.events(session_id)
        return len(events) >= wanted or events[-1]["event"]["type"] == "RUN_FINISHED"

    await client.until(there)


async def held(client: SocketClient, model: FakeModelServer, *then: Script) -> tuple[Gate, Json]:
    """A turn that has shown "one" and waits at a gate before "two"."""
    gate = Gate()
    model.script(Script(tokens=["one ", "two"], gates={1: gate}), *then)
    sent = await client.say("first")
    await client.until(lambda: client.text(sent["turnId"]))
    return gate, sent


async def held_in_a_step(client: SocketClient, model: FakeModelServer) -> tuple[Gate, Json]:
    """A turn that waits at a gate before it calls a tool; then come "seen" and plain answers."""
    gate = Gate()
    model.script(
        Script(tokens=["I look. "], tool_calls=LOOK, gates={1: gate}), Script(tokens=["seen"])
    )
    sent = await client.say("first")
    await client.until(lambda: client.text(sent["turnId"]))
    return gate, sent
