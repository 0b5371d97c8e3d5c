"""Over HTTP nobody has more than over the websocket."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import User

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from tests.http_client import HttpClient

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    return replace(config, commands_burst=9, commands_per_s=0.001, sends_burst=3, sends_per_s=0.001)


async def test_it_tells_who_starts_too_much_when_to_come_again(
    gateway: GatewayHost, owner: User, stranger: User
) -> None:
    client, other = HttpClient(owner), HttpClient(stranger)
    made = await client.ok("POST", "/sessions", {"clientMessageId": "a"})
    path = f"/sessions/{made['session']['id']}/messages"
    await client.ok("POST", path, {"clientMessageId": "b", "content": "Hi"})
    file = {"data": b"{}", "content_type": "application/x-ndjson"}
    assert (await client.refused("POST", "/sessions/import", **file))["status"] == 422
    for where, more in ((path, {}), ("/sessions", {}), ("/sessions/import", file)):
        error = await client.refused(
            "POST", where, {"clientMessageId": "c", "content": "x"}, **more
        )
        assert (error["status"], error["code"]) == (429, "rate_limited"), where
    answer = await client.ask("POST", "/sessions", {"clientMessageId": "d"})
    assert int(answer.headers["Retry-After"]) > 2
    await client.ok("GET", "/sessions")
    await other.ok("POST", "/sessions", {"clientMessageId": "a"})


async def test_it_bounds_what_somebody_reads(
    gateway: GatewayHost, owner: User, stranger: User
) -> None:
    client = HttpClient(owner)
    for _ in range(9):
        await client.ok("GET", "/sessions")
    assert (await client.refused("GET", "/sessions"))["code"] == "rate_limited"
    await HttpClient(stranger).ok("GET", "/me")
