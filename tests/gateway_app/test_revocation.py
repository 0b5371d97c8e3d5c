"""Whoever may no longer be here is closed at once, by whichever way it came about (case K4)."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from gateway_app import credentials
from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.models import ApiToken
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    """Nothing is found out by looking from time to time."""
    return replace(config, reauthorise_s=3600)


def revoke(user: User) -> None:
    credentials.revoke_token(ApiToken.objects.get(user=user))


def disable(user: User) -> None:
    user.is_active = False
    user.save()


def delete(user: User) -> None:
    user.delete()


@pytest.mark.parametrize("end", [revoke, disable, delete])
async def test_it_closes_the_sockets_of_a_token_at_once(
    gateway: GatewayHost, owner: User, stranger: User, end: Callable[[User], None]
) -> None:
    async with SocketClient(owner) as client, SocketClient(stranger) as other:
        await sync_to_async(end)(owner)
        await client.until(lambda: client.closed)
        assert client.closed == 4001
        assert client.frames[-1] == {"type": "revoked"}
        assert (await other.ok("ping")) == {"t": None}
        assert other.closed is None


class Browser(SocketClient):
    """A page of somebody who has logged in."""

    def __init__(self, user: User) -> None:
        super().__init__(user)
        self.web = Client()

    async def open(self) -> None:
        await sync_to_async(self.web.force_login)(self.user)
        admission = await sync_to_async(credentials.admit_session)(self.web.session.session_key)
        assert admission is not None
        self.credential = admission.credential
        await super().open()


def log_out(page: Browser) -> None:
    page.web.post(reverse("logout"))
    assert SESSION_KEY not in page.web.session


def set_password(page: Browser) -> None:
    page.user.set_password("three warm feathers")
    page.user.save()


@pytest.mark.parametrize("end", [log_out, set_password])
async def test_it_closes_the_sockets_of_a_web_session_at_once(
    gateway: GatewayHost, owner: User, end: Callable[[Browser], None]
) -> None:
    async with Browser(owner) as page, SocketClient(owner) as program:
        await sync_to_async(end)(page)
        await page.until(lambda: page.closed)
        assert page.closed == 4001
        assert program.closed is None, "its token still holds"


async def test_it_looks_at_nobody_who_only_logs_in(gateway: GatewayHost, owner: User) -> None:
    async with SocketClient(owner) as client:
        [connection] = gateway.connections
        checked_at = connection.checked_at
        await sync_to_async(Client().force_login)(owner)
        await client.ok("ping")
        assert connection.checked_at == checked_at
