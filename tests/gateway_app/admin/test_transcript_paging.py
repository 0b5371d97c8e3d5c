"""Long transcripts page by key, and rows of bare SQL clients do not break a page."""

import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client

from sessions_app.models import BLOCK, Message, Session
from tests.factories import MessageFactory
from tests.gateway_app.admin.conftest import page_of
from tests.gateway_app.admin.transcripts import begun, shown_rows, url_of, write

pytestmark = pytest.mark.django_db


def test_it_pages_a_long_transcript_by_key_in_both_directions(ops_client, session):
    write(session, 450)
    last = ops_client.get(url_of(session)).content.decode()
    assert shown_rows(last) == list(range(250, 450))
    seen, html = shown_rows(last), last
    while earlier := re.search(r'rel="prev" href="([^"]+)"', html):
        html = ops_client.get(url_of(session, unescape(earlier[1]))).content.decode()
        seen = shown_rows(html) + seen
    assert seen == list(range(450))
    html = ops_client.get(url_of(session, f"?after=0.{'0' * 32}")).content.decode()
    forward = shown_rows(html)
    while later := re.search(r'rel="next" href="([^"]+)"', html):
        html = ops_client.get(url_of(session, unescape(later[1]))).content.decode()
        forward += shown_rows(html)
    assert forward == list(range(450))


def test_it_pages_rows_that_share_a_position_without_losing_one(ops_client, session):
    rows = [
        Message(session=session, kind="user", state="compacted", position=BLOCK + 1,
                parts=[{"type": "text", "text": f"[row {n}]"}])
        for n in range(250)
    ]  # fmt: skip
    Message.objects.bulk_create(rows)
    last = ops_client.get(url_of(session)).content.decode()
    earlier = unescape(re.search(r'rel="prev" href="([^"]+)"', last)[1])
    first = ops_client.get(url_of(session, earlier)).content.decode()
    assert sorted(shown_rows(first) + shown_rows(last)) == list(range(250))


def titles_of(html: str) -> list[str]:
    """The turns' titles, in order."""
    heads = re.findall(r"<h2>(.*?)</h2>", html)
    return [title for head in heads if (title := re.sub("<[^>]+>", "", head)).startswith("Turn ")]


def both_pages(client: Client, session: Session) -> tuple[str, str]:
    last = client.get(url_of(session)).content.decode()
    earlier = unescape(re.search(r'rel="prev" href="([^"]+)"', last)[1])
    return client.get(url_of(session, earlier)).content.decode(), last


def test_it_shows_each_begun_turn_once_also_at_the_edge_of_a_page(ops_client, session):
    rowless = {6, 25, 50, 75, 110}  # 210 rows: the pages part between the turns 5 and 7
    for block in range(1, 111):
        begun(session, block, rows=0 if block in rowless else 2)
    first, last = both_pages(ops_client, session)
    titles = titles_of(first + last)
    assert titles == [f"Turn {number}" for number in range(1, 111)]


def test_it_continues_a_turn_on_the_next_page(ops_client, session):
    for block in range(1, 52):
        begun(session, block, rows=4)
    begun(session, 52, rows=2)
    first, last = both_pages(ops_client, session)
    assert titles_of(first) == ["Turn 1", "Turn 2"]
    assert titles_of(last)[0] == "Turn 2, continued"


@pytest.mark.parametrize("query", ["?before=x", "?after=1", "?after=-1.x", f"?after={10**30}.0"])
def test_it_has_no_page_at_a_cursor_that_is_not_its_own(ops_client, session, query):
    assert ops_client.get(url_of(session, query)).status_code == 404


def insert_raw(session: Session, parts: str) -> None:
    """What a bare SQL client may write: valid JSON, nothing more."""
    with connection.cursor() as cursor:
        key = session.pk.hex if connection.vendor == "sqlite" else session.pk
        cursor.execute(
            "INSERT INTO sessions_app_message (session_id, kind, parts) VALUES (%s, 'user', %s)",
            [key, parts],
        )


@pytest.mark.parametrize(
    "parts",
    [
        '"just text"', "{}", "null", "17", "[1, null]", '[{"type": "text"}]', '[{"type": []}]',
        '[{"type": "tool_call", "id": {}, "name": {}}]', '[{"type": "text", "text": {"a": 1}}]',
        '[{"type": "session_meta", "tools": 3}]', '[{"type": "text", "text": "\\ud800 cut"}]',
        '[{"type": "text", "text": "a\\u0000b"}]', '[{"type": "text", "text": ' + "1" * 5000 + "}]",
        "[" * 900 + "]" * 900, '{"\\udfff": "\\udfff"}',
        '[{"type": "tool_result", "content": [{"a": 1}], "error": "no"}]',
    ],
)  # fmt: skip
def test_it_shows_whatever_a_bare_sql_client_wrote(ops_client, session, parts):
    insert_raw(session, parts)
    MessageFactory(session=session, text="A row after it")
    assert "A row after it" in page_of(ops_client.get(url_of(session))).text


def test_it_cuts_a_huge_part_and_says_so(ops_client, session):
    MessageFactory(session=session, text="x" * 50_000 + "y" * 1234)
    html = ops_client.get(url_of(session)).content.decode()
    assert "1234 more characters are stored." in html
    assert "y" * 100 not in html
