"""Whatever a command's fields hold, its sender gets an answer that names what is wrong."""

import itertools
from typing import Any

import pytest
from django.contrib.auth.models import User

from gateway_app import protocol
from gateway_app.host import GatewayHost
from tests.fake_model_server import FakeModelServer
from tests.gateway_app.test_frames import COMMANDS, SOMEBODY
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, 2**31, 2**63, 2**64, 10**30, "", " ", "\x00", "a\x00b",
    "\ufeff", "\u202e", "\x1b[2J", "%s", "%", "'; DROP TABLE x; --", "../../etc/passwd", "🜲" * 200,
    "x" * 10_000, SOMEBODY, SOMEBODY.upper(), "{}", [], [[]], [None], {}, {"": ""},
    [{"type": "text", "text": "\x00"}], [{"type": "text"}], [{"type": "text", "text": "x"}] * 65,
]  # fmt: skip


def names_of(command: str) -> list[str]:
    """The fields that a command takes, as they are on the wire."""
    structs: dict[str, Any] = {
        struct.__struct_config__.tag: struct
        for struct in vars(protocol).values()
        if isinstance(struct, type)
        and issubclass(struct, protocol.Command)
        and struct is not protocol.Command
    }
    return [name for name in structs[command].__struct_encode_fields__ if name != "id"]


@pytest.mark.parametrize(
    ("command", "body"), [one for one in COMMANDS if one[0] != "ack"], ids=lambda one: str(one)[:20]
)
async def test_it_survives_odd_values_in_every_field(
    gateway: GatewayHost, model: FakeModelServer, owner: User, command: str, body: dict[str, Any]
) -> None:
    """Case K9: an answer or a clear error, never a fault; other sockets live on."""
    ids = itertools.count()
    async with SocketClient(owner) as client, SocketClient(owner) as other:
        made = await client.ok("session.create", clientMessageId="mine")
        for name, value in itertools.product(names_of(command), ODD):
            whole = body | (
                {"clientMessageId": str(next(ids))} if "clientMessageId" in body else {}
            )
            if "sessionId" in whole:
                whole["sessionId"] = made["session"]["id"]
            reply = await client.ask(command, **whole | {name: value})
            code = None if reply["ok"] else reply["error"]["code"]
            assert code != "internal", (name, value, reply)
        assert await other.ok("ping", t=1) == {"t": 1}
        assert gateway.runner.draining is False
