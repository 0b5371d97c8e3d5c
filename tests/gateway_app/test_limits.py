"""Nobody takes more than their share of a process (case K11)."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import User

from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.limits import Limits, Meter
from tests.socket_client import SocketClient

AFAR = "192.0.2.7"


def test_it_meters_each_key_by_its_rate_after_its_burst() -> None:
    now = [0.0]
    meter = Meter("m", 2, 3, clock=lambda: now[0])
    assert [meter.take("a") for _ in range(4)] == [0, 0, 0, 500]
    assert meter.take("b") == 0
    now[0] += 0.5
    assert [meter.take("a") for _ in range(2)] == [0, 500]
    now[0] += 60
    assert [meter.take("a") for _ in range(4)] == [0, 0, 0, 500]


def test_it_forgets_whoever_rested() -> None:
    now = [0.0]
    meter = Meter("m", 1, 1, clock=lambda: now[0])
    for key in range(10_000):
        meter.take(str(key))
    now[0] += 2
    meter.take("new")
    assert len(meter._kept) == 1


async def test_it_limits_addresses_but_not_loopback() -> None:
    limits = Limits(replace(GatewayConfig(), connects_burst=2, address_sockets=2))
    assert [limits.knock(AFAR) for _ in range(3)] == [True, True, False]
    assert all(limits.knock(one) for one in ("127.0.0.1", "::1", "") for _ in range(9))
    assert [await limits.enter(user, AFAR) for user in (1, 2, 3)] == [True, True, False]
    limits.leave(1, AFAR)
    assert await limits.enter(3, AFAR)


@pytest.mark.django_db(transaction=True)
class TestSockets:
    @pytest.fixture
    def config(self, config: GatewayConfig) -> GatewayConfig:
        return replace(
            config, commands_burst=20, commands_per_s=0.001, sends_burst=2, sends_per_s=0.001,
            user_sockets=2, max_refusals=5,
        )  # fmt: skip

    async def test_it_tells_who_sends_too_much_when_to_come_again(
        self, gateway: GatewayHost, owner: User, stranger: User
    ) -> None:
        async with SocketClient(owner) as client, SocketClient(stranger) as other:
            await client.say("a new conversation, and a message in it")
            error = await client.refused("message.send", content="3", clientMessageId="c3")
            assert (error["code"], error["retryable"]) == ("rate_limited", True)
            assert error["retryAfterMs"] > 1000
            assert await client.ok("session.list"), "reading is another matter"
            assert (await other.say("mine"))["status"] == "running"

    async def test_it_closes_who_does_not_wait(self, gateway: GatewayHost, owner: User) -> None:
        async with SocketClient(owner) as client:
            for number in range(30):
                await client.send({"id": f"n{number}", "type": "session.list"})
            await client.until(lambda: client.closed)
        assert client.closed == 4008

    async def test_it_bounds_the_sockets_of_a_person(
        self, gateway: GatewayHost, owner: User, stranger: User
    ) -> None:
        async with SocketClient(owner), SocketClient(stranger):
            async with SocketClient(owner):
                third = SocketClient(owner)
                await third.open()
                await third.until(lambda: third.closed)
                assert third.closed == 4008
            async with SocketClient(owner) as again:
                assert again.closed is None
