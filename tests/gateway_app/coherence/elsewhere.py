"""What other processes do to a conversation, and how a conversation is held with this one."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar
from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection

from gateway_app import receivers
from gateway_app.cached_agent import CachedAgent
from gateway_app.host import GatewayHost
from gateway_app.inbound import Inbound
from gateway_app.models import Event, Turn
from sessions_app.keys import build_key
from sessions_app.models import Message, Session
from sessions_app.services import create_session
from sessions_app.signals import transcript_committed
from tests.coherence.raw import RawClient
from tests.fake_model_server import FakeModelServer
from tests.socket_client import PATIENCE_S, Frame, SocketClient

R = TypeVar("R")


async def in_database(call: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    return await sync_to_async(call)(*args, **kwargs)


@contextmanager
def elsewhere() -> Iterator[None]:
    """What is committed within, another process committed: no receiver of this one hears of it."""
    transcript_committed.disconnect(dispatch_uid="gateway_app.rebaseline")
    try:
        yield
    finally:
        receivers.connect()


def raw(sql: str, *params: object) -> int:
    """One statement of a bare SQL client, committed; how many rows it touched."""
    client = RawClient()
    try:
        return client.run(sql, params)
    finally:
        client.close()


def raw_append(session_id: UUID, text: str, kind: str = "user") -> int:
    """A row by a bare INSERT of three columns."""
    parts = json.dumps([{"type": "text", "text": text}])
    table = Message._meta.db_table
    return raw(
        f"INSERT INTO {table} (session_id, kind, parts) VALUES (%s, %s, %s)",
        session_id, kind, parts,
    )  # fmt: skip


def session_of(session_id: UUID) -> Session:
    return Session.objects.get(pk=session_id)


def turn_of(turn_id: str) -> Turn:
    return Turn.objects.get(pk=turn_id)


def texts_of(session_id: UUID) -> list[tuple[str, str]]:
    """(kind, text) of every active row, in order."""
    found = Message.objects.filter(session_id=session_id, state="active").order_by("position")
    return [(row.kind, "".join(part.get("text", "") for part in row.parts)) for row in found]


def messages(model: FakeModelServer, number: int) -> list[tuple[str, str]]:
    """(role, content) of a request's messages."""
    return [(one["role"], one["content"]) for one in model.requests[number].messages]


def starts_with(later: bytes, earlier: bytes) -> bool:
    """Whether a request's bytes start with an earlier one's, up to the end of its messages."""
    assert earlier.endswith(b"]}")
    return later.startswith(earlier[:-2])


def grows_only(model: FakeModelServer) -> bool:
    """Whether every request's bytes start with those of the one before."""
    bodies = [request.body for request in model.requests]
    return all(starts_with(later, earlier) for earlier, later in itertools.pairwise(bodies))


@contextmanager
def ends_refused() -> Iterator[None]:
    """The database refuses the log of any end, so that a run's whole last transaction rolls back.

    That is the very last thing the transaction writes: its rows stand already, and are taken back.
    """
    table = Event._meta.db_table
    if connection.vendor == "sqlite":
        begin = (
            f"CREATE TRIGGER refuse_ends BEFORE INSERT ON {table}"
            " WHEN instr(NEW.body, 'RUN_FINISHED') OR instr(NEW.body, 'RUN_ERROR')"
            " BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
        end = "DROP TRIGGER refuse_ends"
    else:
        check = (
            "CHECK (strpos(body, 'RUN_FINISHED') = 0 AND strpos(body, 'RUN_ERROR') = 0) NOT VALID"
        )
        begin = f"ALTER TABLE {table} ADD CONSTRAINT refuse_ends {check}"
        end = f"ALTER TABLE {table} DROP CONSTRAINT refuse_ends"
    raw(begin)
    try:
        yield
    finally:
        raw(end)


class Conversation(Protocol):
    """One person's way into one session."""

    session_id: UUID

    async def send(self, text: str) -> str:
        """The message is accepted; its turn's id."""
        ...

    async def finished(self, turn_id: str) -> Turn:
        """The turn's row, once the turn is over."""
        ...

    async def say(self, text: str) -> Turn: ...


class _Saying:
    async def say(self, text: str) -> Turn:
        return await self.finished(await self.send(text))  # type: ignore[attr-defined,no-any-return]


async def say_through(gateway: GatewayHost, session_id: UUID, owner: User, text: str) -> Turn:
    """A whole turn in another process's gateway, whose session it is as well."""
    inbound = Inbound(
        author_id=owner.pk,
        author_name=owner.username,
        client_message_id=f"elsewhere {text}",
        body_hash="",
        content=[{"type": "text", "text": text}],
    )
    accepted = await gateway.runner.accept(inbound, session_id)
    assert await gateway.runner.wait_idle(PATIENCE_S)
    return await in_database(turn_of, str(accepted.turn_id))


class RunnerConversation(_Saying):
    """A message of a Telegram group, given to the turn runner as its adapter would."""

    def __init__(self, gateway: GatewayHost, owner: User) -> None:
        self._gateway, self._owner = gateway, owner
        self._sent = 0

    async def open(self) -> None:
        self.session_id = (
            await in_database(
                create_session,
                key=build_key("main", "telegram", "group", "-1001", "12345"),
                owner_id=self._owner.pk,
                agent="main",
            )
        ).pk

    async def close(self) -> None:
        """Nothing is open."""

    async def send(self, text: str) -> str:
        self._sent += 1
        inbound = Inbound(
            author_id=self._owner.pk,
            author_name=self._owner.username,
            client_message_id=f"msg-{self._sent}",
            body_hash="",
            content=[{"type": "text", "text": text}],
        )
        return str((await self._gateway.runner.accept(inbound, self.session_id)).turn_id)

    async def finished(self, turn_id: str) -> Turn:
        async with asyncio.timeout(PATIENCE_S):
            while UUID(turn_id) in self._gateway.runner.live:
                await self._gateway.runner.wait_idle(PATIENCE_S)
        return await in_database(turn_of, turn_id)


class SocketConversation(_Saying):
    """The same through a websocket."""

    def __init__(self, gateway: GatewayHost, owner: User) -> None:
        self._client = SocketClient(owner)

    async def open(self) -> None:
        await self._client.__aenter__()
        made: Frame = await self._client.ok("session.create", clientMessageId="new")
        self.session_id = UUID(made["session"]["id"])
        await self._client.ok("session.subscribe", sessionId=str(self.session_id))

    async def close(self) -> None:
        await self._client.leave()

    async def send(self, text: str) -> str:
        sent = await self._client.say(text, str(self.session_id))
        return str(sent["turnId"])

    async def finished(self, turn_id: str) -> Turn:
        await self._client.finished(turn_id)
        return await in_database(turn_of, turn_id)

    async def shown(self, turn_id: str) -> str:
        """The first text of the answer, once it was shown."""
        return str(await self._client.until(lambda: self._client.text(turn_id)))

    def events(self) -> list[Frame]:
        """The event frames so far."""
        return self._client.events(str(self.session_id))

    async def stop(self, turn_id: str) -> None:
        await self._client.ok("turn.stop", turnId=turn_id)

    async def refused(self, kind: str, **fields: Any) -> Frame:
        """A command about this session that is refused; the error."""
        session_id = str(self.session_id)
        return await self._client.refused(kind, sessionId=session_id, **fields)


def cached(gateway: GatewayHost, session_id: UUID) -> CachedAgent:
    """The session's warm agent."""
    agent = gateway.cache.get(session_id)
    assert agent is not None
    return agent


async def level(gateway: GatewayHost, session_id: UUID) -> bool:
    """Whether the warm agent's baseline is the session's revision and incarnation."""
    session = await in_database(session_of, session_id)
    return cached(gateway, session_id).baseline == (session.revision, session.incarnation)
