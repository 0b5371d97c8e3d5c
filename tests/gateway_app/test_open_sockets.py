"""The process finds a person's sockets without a look at everybody else's."""

import pytest
from django.contrib.auth.models import User

from gateway_app.host import GatewayHost
from gateway_app.open_sockets import OpenSockets
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


async def test_it_finds_a_persons_sockets_and_no_others(
    gateway: GatewayHost, owner: User, stranger: User
) -> None:
    sockets = gateway.connections
    async with SocketClient(owner), SocketClient(stranger):
        async with SocketClient(owner):
            assert [len(sockets.of(user.pk)) for user in (owner, stranger)] == [2, 1]
            assert len(sockets) == len(list(sockets)) == 3
        [mine] = sockets.of(owner.pk)
        assert mine.user_id == owner.pk
        assert len(sockets) == 2
        copy = OpenSockets()
        for one in [*sockets, mine]:
            copy.add(one)
        copy.discard(mine)
        copy.discard(mine)
        assert [one.user_id for one in copy] == [stranger.pk]
        assert len(copy) == 1
    assert not sockets
    assert sockets.of(owner.pk) == []
