"""The list of turns: found by what the guard said and how it ended, read-only."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.translation import override

from gateway_app.models import Turn
from gateway_app.services.dead_runs import LOST
from sessions_app.models import BLOCK
from sessions_app.sentences import notice_part, say
from tests.factories import (
    MessageFactory,
    QueuedTurnFactory,
    SessionFactory,
    StaffFactory,
    TurnFactory,
)
from tests.gateway_app.admin.conftest import logged_in, page_of

LIST = "/admin/gateway_app/turn/"

pytestmark = pytest.mark.django_db


def found(client: Client, query: str = "") -> set[Turn]:
    response = client.get(LIST + query)
    assert response.status_code == 200
    return set(response.context["cl"].result_list)


def test_it_shows_verdict_reason_cached_share_times_tokens_and_cost(ops_client, owner):
    TurnFactory(
        session=SessionFactory(owner=owner, title="Winter tyres"), verdict="rebuild",
        reason="reconfigured", input_tokens=7900, cached_tokens=7426, output_tokens=210,
        ttft_ms=412, duration_ms=65_000, cost_usd=Decimal("0.00001"),
    )  # fmt: skip
    page = page_of(ops_client.get(LIST))
    for shown in (
        "Completed", "Winter tyres", "ann", "Rebuilt", "the agent changed", "94 %", "412 ms",
        "1 min 5 s in all", "7.9k in, 210 out", "< $0.0001",
    ):  # fmt: skip
        assert shown in page.text
    assert "rect" in page.tags


def test_it_never_shows_a_zero_for_what_is_not_known(ops_client):
    TurnFactory(cached_tokens=None, cost_usd=None, ttft_ms=None, duration_ms=None)
    row = re.search(r"<tbody>.*</tbody>", ops_client.get(LIST).content.decode(), re.DOTALL)[0]
    assert "0 %" not in row
    assert "$" not in row
    assert "0 ms" not in row


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("?state=failed", {"state": "failed"}),
        ("?verdict=catch_up", {"verdict": "catch_up"}),
        ("?reason=compacted", {"reason": "compacted"}),
        ("?worst_verdict=rebuild", {"worst_verdict": "rebuild"}),
        ("?error_code=model_timeout", {"error_code": "model_timeout"}),
        ("?model=local:smollm2", {"model": "local:smollm2"}),
    ],
)
def test_it_filters(ops_client, query, fields):
    wanted = TurnFactory(**fields)
    TurnFactory()
    assert found(ops_client, query) == {wanted}


def test_it_offers_each_filter_in_words(ops_client):
    TurnFactory(model="local:smollm2")
    text = page_of(ops_client.get(LIST)).text
    for shown in (
        "Waiting for approval", "Caught up", "history edited", "By worst later verdict",
        "model too slow", "local:smollm2",
    ):  # fmt: skip
        assert shown in text


def steps(client: Client, query: str = "") -> dict[str, str]:
    """Title -> address of each period that the list leads to from here, and of the way back."""
    html = client.get(LIST + query).content.decode()
    walk = re.search(r'<nav class="toplinks h-dates".*?</nav>', html, re.DOTALL)[0]
    links = re.findall(r'<a href="([^"]+)"[^>]*>([^<]+)</a>', walk)
    return {unescape(title): unescape(link) for link, title in links}


def test_it_walks_from_years_to_months_to_days(ops_client):
    old, new = TurnFactory(), TurnFactory(state="failed")
    Turn.objects.filter(pk=old.pk).update(created_at=datetime(2024, 11, 29, 12, tzinfo=UTC))
    Turn.objects.filter(pk=new.pk).update(created_at=datetime(2025, 2, 3, 12, tzinfo=UTC))
    years = steps(ops_client)
    assert list(years) == ["2024", "2025"]
    assert found(ops_client, years["2024"]) == {old}
    months = steps(ops_client, years["2024"])
    assert list(months) == ["‹ All dates", "November 2024", "December 2024"]
    assert found(ops_client, months["December 2024"]) == set()
    days = steps(ops_client, months["November 2024"])
    assert list(days) == ["‹ 2024", "November 29", "November 30"]
    assert found(ops_client, days["November 29"]) == {old}
    assert found(ops_client, days["November 30"]) == set()
    back = steps(ops_client, days["November 29"])
    assert found(ops_client, back["‹ November 2024"]) == {old}
    kept = steps(ops_client, "?state=failed")
    assert found(ops_client, kept["2024"]) == set()
    assert found(ops_client, kept["2025"]) == {new}


@pytest.mark.parametrize(
    "query",
    ["?created_at__year=x", "?created_at__year=0", "?created_at__year=2026&created_at__month=13"],
)
def test_it_leads_back_from_a_date_that_is_none(ops_client, query):
    TurnFactory()
    assert ops_client.get(LIST + query).status_code == 302


def test_it_finds_by_author_title_and_ids(ops_client, owner):
    turn = TurnFactory(session=SessionFactory(owner=owner, title="Winter tyres"))
    TurnFactory()
    for term in ("ann", "winter", turn.pk, turn.session_id):
        assert found(ops_client, f"?q={term}") == {turn}


def test_it_pages_by_key(ops_client):
    session = SessionFactory()
    for _ in range(60):
        TurnFactory(session=session)
    page = ops_client.get(LIST)
    older = re.search(r'rel="next" href="([^"]+)"', page.content.decode())[1]
    first, second = set(page.context["cl"].result_list), found(ops_client, older)
    assert (len(first), len(second), first & second) == (50, 10, set())


def test_it_hides_turns_of_deleted_sessions(ops_client):
    turn = TurnFactory(session=SessionFactory(deleted_at=timezone.now()))
    assert found(ops_client) == set()
    assert ops_client.get(f"{LIST}{turn.pk}/change/").status_code == 302


def test_it_is_read_only(root_client):
    turn = TurnFactory(error_code="model_timeout", error_message="Silent for 60 s.")
    change = f"{LIST}{turn.pk}/change/"
    page = page_of(root_client.get(change))
    assert "Silent for 60 s." in page.text
    assert not {"textarea", "select"} & set(page.tags)
    assert root_client.post(change, {"state": "queued"}).status_code == 403
    assert root_client.get(f"{LIST}add/").status_code == 403
    assert root_client.post(f"{LIST}{turn.pk}/delete/", {"post": "yes"}).status_code == 403
    assert Turn.objects.get() == turn


def test_it_says_why_a_turn_failed_in_the_readers_language(ops_client):
    who = say("The model provider")
    refusal = say("%(who)s sent an answer that cannot be read.", who=who)
    turn = TurnFactory(state="failed", error_message=str(refusal))
    lost = TurnFactory(state="failed", error_message=str(LOST))
    MessageFactory(
        session=turn.session, turn_id=turn.pk, kind="notice", position=turn.block * BLOCK + 2,
        parts=[notice_part(refusal)],
    )  # fmt: skip
    with override("de"):
        told = {turn: refusal.translated(), lost: LOST.translated()}
    for one, text in told.items():
        page = ops_client.get(f"{LIST}{one.pk}/change/", headers={"accept-language": "de"})
        assert text in page_of(page).text
        assert one.error_message not in page_of(page).text


def test_it_shows_words_of_people_only_to_those_who_may_view_sessions():
    content = [{"type": "text", "text": "my secret question"}]
    turn = TurnFactory(session=SessionFactory(title="My secret title"), content=content)
    queued = QueuedTurnFactory(session=turn.session, content=content)
    counts_only = logged_in(StaffFactory(permissions=["gateway_app.view_turn"]))
    reader = logged_in(
        StaffFactory(permissions=["gateway_app.view_turn", "sessions_app.view_session"])
    )
    pages = (LIST, f"{LIST}{turn.pk}/change/", f"{LIST}{queued.pk}/change/")
    for page in pages:
        assert "secret" not in page_of(counts_only.get(page)).text
    assert found(counts_only, "?q=secret") == set()
    assert "My secret title" in page_of(reader.get(LIST)).text
    assert "my secret question" in page_of(reader.get(pages[1])).text
    assert found(reader, "?q=secret") == {turn, queued}


def test_it_opens_to_staff_with_the_permission_only(owner):
    turn = TurnFactory(session=SessionFactory(owner=owner))
    reads_sessions = StaffFactory(permissions=["sessions_app.view_session"])
    for page in (LIST, f"{LIST}{turn.pk}/change/"):
        assert logged_in(owner).get(page).status_code == 302
        assert logged_in(reads_sessions).get(page).status_code == 403


def test_it_takes_as_many_statements_for_200_turns_as_for_2(ops_client, statements):
    ops_client.get(LIST)
    counts = []
    for added in (2, 198):
        for _ in range(added):
            TurnFactory(author=StaffFactory())
        counts.append(statements(ops_client, LIST))
    # web session, user, two permission reads, models in use, the page, the first and last date
    assert counts == [8, 8]
