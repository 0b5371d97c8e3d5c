"""Keys, sessions and the cache's index: each turn uses its own session's state."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connections

from gateway_app.host import GatewayHost
from sessions_app.errors import SessionEnded
from sessions_app.keys import MAX_LENGTH, build_key, split_key
from sessions_app.models import Message, Session
from sessions_app.services import (
    create_session,
    end_session,
    get_or_create_session,
    undo_messages,
)
from tests.fake_model_server import FakeModelServer, Gate, Script
from tests.gateway_app.busy.held import inbound, said
from tests.gateway_app.coherence.elsewhere import (
    cached,
    in_database,
    level,
    messages,
    say_through,
    starts_with,
    texts_of,
)
from tests.http_client import HttpClient
from tests.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)

KEY = build_key("main", "telegram", "group", "-1001", "12345")


def open_session(owner: User, key: str = KEY) -> UUID:
    return create_session(key=key, owner_id=owner.pk, agent="main").pk


def make_current(session_id: UUID) -> None:
    """The session is the current one of its key again; the other one ends."""
    key = Session.objects.values_list("key", flat=True).get(pk=session_id)
    end_session(session_id=Session.objects.get(key=key, state="active").pk)
    Session.objects.filter(pk=session_id).update(state="active", ended_at=None)


async def test_it_keeps_both_agents_warm_when_a_key_switches_sessions(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Cases 23 and 24: first, second, first; each row lands where its turn was."""
    first = await in_database(open_session, owner)
    await say_through(gateway, first, owner, "in the first")
    await in_database(end_session, session_id=first)
    second = await in_database(open_session, owner)
    turn = await say_through(gateway, second, owner, "in the second")
    assert turn.verdict == "new"
    agents = cached(gateway, first), cached(gateway, second)

    for session_id, number in ((first, 2), (second, 3)):
        await in_database(make_current, session_id)
        turn = await say_through(gateway, session_id, owner, f"again {number}")
        assert turn.worst_verdict == "reuse"
        assert starts_with(model.requests[number].body, model.requests[number - 2].body)
    assert (cached(gateway, first), cached(gateway, second)) == agents
    users = [
        [text for kind, text in await in_database(texts_of, session_id) if kind == "user"]
        for session_id in (first, second)
    ]
    assert users == [["in the first", "again 2"], ["in the second", "again 3"]]


async def test_it_never_goes_back_to_a_session_that_ended(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case 25: the cached agent is the old one's; messages name the successor, again and again."""
    first = await in_database(open_session, owner)
    await say_through(gateway, first, owner, "hello")
    await in_database(end_session, session_id=first)
    second = await in_database(open_session, owner)
    for number in range(3):
        with pytest.raises(SessionEnded) as refused:
            await say_through(gateway, first, owner, f"late {number}")
        assert refused.value.successor_id == second
    verdicts = [(await say_through(gateway, second, owner, f"now {n}")).verdict for n in range(3)]
    assert verdicts == ["new", "reuse", "reuse"]
    current, made = await in_database(get_or_create_session, key=KEY, owner_id=owner.pk,
                                      agent="main")  # fmt: skip
    assert (current.pk, made) == (second, False)
    assert len(await in_database(texts_of, first)) == 3
    assert messages(model, 3)[1][1] == "now 0"


async def test_it_makes_one_session_of_first_messages_at_once(
    gateway: GatewayHost, other: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case 31: single-flight, and the turns run in order, whichever process took them."""

    def first_message() -> tuple[UUID, bool]:
        try:
            session, made = get_or_create_session(key=KEY, owner_id=owner.pk, agent="main")
            return session.pk, made
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        found = [future.result() for future in [pool.submit(first_message) for _ in range(4)]]
    assert len({session_id for session_id, _ in found}) == 1
    assert sum(made for _, made in found) == 1
    session_id = found[0][0]
    gate, hosts = Gate(), (gateway, other, gateway, other)
    model.script(Script(gates={0: gate}))
    accepted = await asyncio.gather(
        *(host.runner.accept(inbound(owner, f"{place}"), session_id)
          for place, host in enumerate(hosts))
    )  # fmt: skip
    gate.release()
    assert [one.status for one in accepted].count("running") == 1
    assert sorted(one.place or 0 for one in accepted) == [0, 1, 2, 3]
    order = [str(place) for place in sorted(range(4), key=lambda place: accepted[place].place or 0)]
    for host in hosts:
        assert await host.runner.wait_idle(60)
    rows = await in_database(said, str(session_id))
    assert [kind for kind, _ in rows] == ["user", "assistant"] * 4
    assert [text for kind, text in rows if kind == "user"] == order


@pytest.mark.parametrize(
    "parts",
    [
        ("telegram", "group", "-1001"),
        ("telegram", "thread", "-1001", "9"),
        ("slack", "channel", "T1:C1", "100%"),
    ],
)
async def test_it_sends_nothing_that_was_undone_whatever_the_key(
    gateway: GatewayHost, model: FakeModelServer, owner: User, parts: tuple[str, ...]
) -> None:
    """Case 29: the agent in use is the one that forgets."""
    session_id = await in_database(open_session, owner, build_key("main", *parts))
    for text in ("one", "two"):
        await say_through(gateway, session_id, owner, text)
    agent = cached(gateway, session_id)
    await gateway.lanes.write(undo_messages, session_id=session_id, count=2)
    assert await level(gateway, session_id)
    turn = await say_through(gateway, session_id, owner, "three")
    assert (turn.verdict, turn.reason) == ("rebuild", "rewritten")
    assert [text for _, text in messages(model, 2)[1:]] == ["one", "Hello, world!", "three"]
    assert cached(gateway, session_id) is agent


async def test_it_goes_by_the_session_when_its_key_is_another_one(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Cases 27 and 32: an alias leads to the same agent, and the old key to a new one."""
    alias = build_key("main", "telegram", "group", "-1001", "ann")
    session_id = await in_database(open_session, owner)
    await say_through(gateway, session_id, owner, "by the old key")
    agent = cached(gateway, session_id)
    await in_database(Session.objects.filter(pk=session_id).update, key=alias)
    found = {
        key: await in_database(get_or_create_session, key=key, owner_id=owner.pk, agent="main")
        for key in (alias, KEY)
    }
    assert (found[alias][0].pk, found[alias][1]) == (session_id, False)
    assert found[KEY][1]
    await say_through(gateway, found[KEY][0].pk, owner, "somewhere else")
    turn = await say_through(gateway, session_id, owner, "by the alias")
    assert turn.worst_verdict == "reuse"
    assert cached(gateway, session_id) is agent
    assert starts_with(model.requests[2].body, model.requests[0].body)
    assert len(messages(model, 1)) == 2


async def test_it_knows_a_person_by_every_name_and_at_every_door(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case 32: renamed, and by HTTP after a socket, it is the same conversation."""
    async with SocketClient(owner) as client:
        first = await client.say("as ann")
        await client.finished(first["turnId"])
        await in_database(User.objects.update, username="anna", email="anna@example.org")
        by_http = HttpClient(await in_database(User.objects.get))
        path = f"/sessions/{first['sessionId']}/messages"
        body = {"clientMessageId": "by http", "content": "as anna"}
        second = await by_http.ok("POST", path, body)
        finished = await client.finished(second["turnId"])
        again = await client.ok("message.send", sessionId=first["sessionId"], **body)
    assert (again["turnId"], again["replayed"]) == (second["turnId"], True)
    assert finished["metadata"]["hermes"]["cache"]["verdict"] == "reuse"
    assert await in_database(Session.objects.count) == 1
    assert starts_with(model.requests[1].body, model.requests[0].body)


@pytest.mark.parametrize(
    "parts",
    [
        ("agent", "web", "dm", "1"),
        ("main", "web", "dm", "1"),
        ("agent:main", "web", "dm", "1"),
        ("agent%3Amain", "web", "dm", "1"),
        ("agent", "main:web", "dm", "1"),
        ("agent", "main", "web", "dm", "1"),
    ],
)
def test_it_gives_each_route_a_key_of_its_own(parts: tuple[str, ...]) -> None:
    """Case 33: an agent may be called like the key's first word, or have a colon in its name."""
    assert split_key(build_key(*parts)) == ("agent", *parts)


def test_it_refuses_a_key_that_nobody_could_look_up() -> None:
    for parts in (("main", "web", "", "1"), ("main", "web", "dm", "x" * MAX_LENGTH)):
        with pytest.raises(ValueError, match="session key"):
            build_key(*parts)


def test_it_leaves_the_rows_of_the_other_session_alone(owner: User) -> None:
    """A row that is moved to the key's other session counts there, and no longer here."""
    first = open_session(owner)
    row = Message.objects.create(session_id=first, kind="user", parts=[])
    end_session(session_id=first)
    second = open_session(owner)
    Message.objects.filter(pk=row.pk).update(session_id=second)
    counts = dict(Session.objects.values_list("pk", "message_count"))
    assert (counts[first], counts[second]) == (0, 1)
