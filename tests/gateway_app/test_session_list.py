"""The list of a person's conversations: keyset pages, search, archive, and nobody else's."""

import pytest
from django.db import connection

from gateway_app.selectors.sessions import list_sessions, read_history
from sessions_app.errors import MessageInvalid, SessionNotFound
from sessions_app.services import delete_session, update_session
from tests.factories import MessageFactory, SessionFactory, UserFactory
from tests.statements import every_statement, postgres_plan, sqlite_plan

pytestmark = pytest.mark.django_db(transaction=True)


def listed(user_id: int, **fields: object) -> list[str]:
    page = {"query": None, "cursor": None, "limit": 50, "archived": False} | fields
    return [one["title"] for one in list_sessions(user_id=user_id, **page)["sessions"]]


@pytest.mark.parametrize(("pinned", "index"), [(True, "session_pinned"), (None, "session_list")])
def test_it_reads_a_page_in_order_from_an_index(pinned: bool | None, index: str) -> None:
    """However many others a person has."""
    owner = UserFactory()
    with every_statement() as statements:
        listed(owner.pk, pinned=pinned)
    plan = sqlite_plan if connection.vendor == "sqlite" else postgres_plan
    lines = plan(connection, statements.found[0])
    assert any(index in line for line in lines), lines
    assert not any("TEMP B-TREE" in line or "Sort" in line for line in lines), lines


def test_it_pages_without_repeating_or_losing_a_row() -> None:
    owner = UserFactory()
    for number in range(7):
        SessionFactory(owner=owner, title=str(number))
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page = list_sessions(user_id=owner.pk, query=None, cursor=cursor, limit=3, archived=False)
        seen += [one["title"] for one in page["sessions"]]
        cursor = page["nextCursor"]
    assert seen == [str(number) for number in reversed(range(7))]
    assert cursor is None


def test_it_lists_only_the_owners_live_sessions() -> None:
    owner = UserFactory()
    mine, gone, away = (SessionFactory(owner=owner, title=name) for name in ("a", "b", "c"))
    SessionFactory(title="somebody else's")
    delete_session(session_id=gone.pk)
    update_session(session_id=away.pk, archived=True)
    assert listed(owner.pk) == [mine.title]
    assert listed(owner.pk, archived=True) == [away.title]
    assert listed(owner.pk, query="A") == [mine.title]
    assert listed(owner.pk, pinned=False) == [mine.title]
    assert listed(owner.pk, pinned=True) == []
    update_session(session_id=mine.pk, pinned=True)
    assert listed(owner.pk, pinned=True) == [mine.title]
    assert listed(owner.pk, query="nothing\x00") == []


def test_it_pages_history_by_position() -> None:
    session = SessionFactory()
    for number in range(5):
        MessageFactory(session=session, text=str(number))
    MessageFactory(session=session, kind="note", text="staff only")
    MessageFactory(session=session, kind="session_meta")
    seen: list[str] = []
    before = None
    for _ in range(3):
        page = read_history(user_id=session.owner_id, session_id=session.pk, before=before, limit=2)
        seen = [row["parts"][0]["text"] for row in page["messages"]] + seen
        before = page["before"]
    assert seen == ["0", "1", "2", "3", "4"]
    assert before is None


@pytest.mark.parametrize("cursor", ["x", "AAAA", "WzEsMl0=", "WyJ4IiwieCJd", "bnVsbA=="])
def test_it_refuses_a_cursor_that_is_not_its_own(cursor: str) -> None:
    session = SessionFactory()
    with pytest.raises(MessageInvalid):
        list_sessions(user_id=session.owner_id, query=None, cursor=cursor, limit=3, archived=False)
    with pytest.raises(MessageInvalid):
        read_history(user_id=session.owner_id, session_id=session.pk, before=cursor, limit=2)


def test_it_shows_a_stranger_nothing() -> None:
    session = SessionFactory()
    with pytest.raises(SessionNotFound):
        read_history(user_id=UserFactory().pk, session_id=session.pk, before=None, limit=2)


def test_it_ends_a_page_of_long_rows_early() -> None:
    session = SessionFactory()
    for number in range(4):
        MessageFactory(session=session, text=str(number) * 600_000)
    seen: list[str] = []
    before = None
    for _ in range(4):
        page = read_history(
            user_id=session.owner_id, session_id=session.pk, before=before, limit=50
        )
        assert len(page["messages"]) == 1
        seen = [page["messages"][0]["parts"][0]["text"][0], *seen]
        before = page["before"]
    assert (seen, before) == (["0", "1", "2", "3"], None)
