"""Keys, sessions and the cache's index: each turn uses its own session's state."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connections

from gateway_app.host import GatewayHost
from sessions_app.errors import SessionEnded
from sessions_app.keys import MAX_LENGTH, build_key, split_key
from sessions_app.models import Message, Session
from sessions_app.services import create_session, end_session, get_or_create_session
from tests.fake_model_server import FakeModelServer
from tests.gateway_app.coherence.elsewhere import (
    cached,
    in_database,
    messages,
    say_through,
    starts_with,
    texts_of,
)

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


async def test_it_makes_one_session_of_two_first_messages(
    gateway: GatewayHost, model: FakeModelServer, owner: User
) -> None:
    """Case 31: single-flight, and the turns run in order."""

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
    for text in ("one", "two"):
        await say_through(gateway, session_id, owner, text)
    kinds = [kind for kind, _ in await in_database(texts_of, session_id)]
    assert kinds == ["user", "assistant", "session_meta", "user", "assistant"]


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
