"""What an agent cost is given back once it is dropped, and nobody waits for that."""

import asyncio
import gc
import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from gateway_app.agent_cache import AgentCache
from gateway_app.cached_agent import CachedAgent
from gateway_app.config import GatewayConfig
from gateway_app.host import GatewayHost
from gateway_app.providers.openai_chat import OpenAIChatWire
from gateway_app.services.presence import ask_eviction
from gateway_app.turns.presence import PresenceBeat
from sessions_app.keys import build_key
from sessions_app.models import new_id
from sessions_app.services import create_session, end_session
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.busy.held import inbound
from tests.gateway_app.coherence.elsewhere import cached, in_database, say_through
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE_S: Final = 60
RESETS: Final = int(os.environ.get("HERMES_RESETS", "300"))
OURS: Final = {"gateway_app", "sessions_app", "uuid", "_asyncio"}
KEYS: Final = [str(number) for number in range(10)]


@pytest.fixture
def tunables() -> dict[str, Any]:
    """What a test turns; it parametrizes them."""
    return {}


@pytest.fixture
def config(config: GatewayConfig, tunables: dict[str, Any]) -> GatewayConfig:
    return replace(config, **tunables)


class Teardown:
    """The end of a warm agent: whichever thread frees it is held there until `gate`."""

    def __init__(self, agent: CachedAgent) -> None:
        self.begun, self.gate = Gate(), Gate()
        self._loop_thread = threading.get_ident()
        self.blocked_the_loop = False
        weakref.finalize(agent, self._free).atexit = False

    def _free(self) -> None:
        self.begun.release()
        if threading.get_ident() == self._loop_thread:
            self.blocked_the_loop = True
        else:
            self.gate.wait_sync(PATIENCE_S)


async def by_an_order(gateway: GatewayHost, client: SocketClient) -> None:
    """An operator's button."""
    await in_database(ask_eviction, owner=gateway.lease_owner)
    await PresenceBeat(gateway.lanes, [gateway.cache], gateway.config, gateway.lease_owner).tell()


async def by_its_age(gateway: GatewayHost, client: SocketClient) -> None:
    """Housekeeping comes by itself."""


async def for_another(gateway: GatewayHost, client: SocketClient) -> None:
    """A third conversation needs the place."""
    sent = await client.say("make room")
    await client.finished(sent["turnId"])


@pytest.mark.parametrize(
    ("drop", "tunables"),
    [
        (by_an_order, {}),
        (by_its_age, {"cache_idle_s": 0, "housekeeping_s": 0.05}),
        (for_another, {"cache_entries": 1}),
    ],
)
async def test_it_goes_on_while_a_dropped_agent_is_torn_down(
    gateway: GatewayHost,
    model: FakeModelServer,
    owner: User,
    drop: Callable[[GatewayHost, SocketClient], Coroutine[Any, Any, None]],
) -> None:
    """Case G93: it holds up neither the loop nor another conversation nor its own."""
    async with SocketClient(owner) as client:
        made = await client.ok("session.create", clientMessageId="new")
        session_id = UUID(made["session"]["id"])
        gateway.cache.pin(session_id)
        await say_through(gateway, session_id, owner, "hello")
        teardown = Teardown(cached(gateway, session_id))
        gateway.cache.unpin(session_id)
        dropping = asyncio.create_task(drop(gateway, client))
        try:
            await teardown.begun.wait()
            other = await client.say("somebody else")
            assert (await client.finished(other["turnId"]))["type"] == "RUN_FINISHED"
            await client.ok("session.subscribe", sessionId=str(session_id))
            again = await client.say("the same again", str(session_id))
            finished = await client.finished(again["turnId"])
            assert finished["metadata"]["hermes"]["cache"]["verdict"] == "reload"
        finally:
            teardown.gate.release()
            await dropping
    assert not teardown.blocked_the_loop


async def reset(gateway: GatewayHost, owner: User, key: str, number: int) -> None:
    """The key's conversation begins, is answered, and ends."""
    session = await gateway.lanes.write(
        create_session, key=build_key("main", "web", "dm", key), owner_id=owner.pk, agent="main"
    )
    accepted = await gateway.runner.accept(inbound(owner, f"{key} {number}"), session.pk)
    while accepted.turn_id in gateway.runner.live:
        await gateway.runner.wait_idle(PATIENCE_S)
    await gateway.lanes.write(end_session, session_id=session.pk)


def belongs_to_us(kind: type) -> bool:
    """Ours, or what ours are kept by; SQLite's module forgets its cursors by the hundred."""
    return str(kind.__module__).partition(".")[0] in OURS


@pytest.mark.parametrize("tunables", [{"cache_entries": 16}])
async def test_it_keeps_nothing_of_conversations_that_were_reset(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case G92: not one object of each is left, whichever part of the process would hold it."""
    model.default = Script(tokens=["Yes"])
    counts = []
    for first, last in ((0, RESETS // 3), (RESETS // 3, RESETS)):
        for number in range(first, last, len(KEYS)):
            await asyncio.gather(*(reset(gateway, owner, key, number) for key in KEYS))
        model.requests.clear()
        gc.collect()
        found = map(type, gc.get_objects())
        counts.append(Counter(kind.__name__ for kind in found if belongs_to_us(kind)))
    assert len(gateway.cache) <= 16
    grown = counts[1] - counts[0]
    assert grown.total() < (RESETS - RESETS // 3) / 2, grown.most_common(10)


def evict_it(cache: AgentCache, session_id: UUID) -> bool:
    return cache.evict(session_id)


def evict_all(cache: AgentCache, _: UUID) -> bool:
    return cache.evict_idle() == 1


def sweep(cache: AgentCache, _: UUID) -> bool:
    cache.idle_s = -1
    return cache.sweep() == 1


@pytest.mark.parametrize("drop", [evict_it, evict_all, sweep])
def test_it_frees_an_agent_off_the_caches_lock(drop: Callable[[AgentCache, UUID], bool]) -> None:
    cache = AgentCache(entries=4, idle_s=3600, size_bytes=10**6)
    agent = CachedAgent(new_id(), OpenAIChatWire(official=False), "")
    locked: list[bool] = []
    weakref.finalize(agent, lambda: locked.append(cache._lock.locked())).atexit = False
    session_id = agent.session_id
    cache._admit(agent)
    del agent
    assert drop(cache, session_id)
    assert locked == [False]
