"""The list of sessions in the admin: found, paged by key, read-only, deleted softly."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from sessions_app.models import Message, Session
from tests.factories import (
    MessageFactory,
    SessionFactory,
    StaffFactory,
    SuperuserFactory,
    UserFactory,
)

LIST = "/admin/sessions_app/session/"

pytestmark = pytest.mark.django_db


def client_of(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def client() -> Client:
    return client_of(
        StaffFactory(permissions=["sessions_app.view_session", "sessions_app.delete_session"])
    )


def titles(client: Client, query: str = "") -> list[str]:
    response = client.get(LIST + query)
    assert response.status_code == 200
    return [session.title for session in response.context["cl"].result_list]


def test_it_shows_who_talks_with_what_and_how_much(client):
    session = SessionFactory(title="Winter tyres", model="openai:gpt-5", agent="main")
    MessageFactory(session=session)
    page = client.get(LIST).content.decode()
    for shown in ("Winter tyres", session.owner.username, "main, openai:gpt-5", "Idle"):
        assert shown in page


def test_it_pages_by_key_and_misses_nothing_where_times_are_equal(client):
    for number in range(120):
        SessionFactory(title=f"s{number}")
    now = timezone.now()
    ids = list(Session.objects.values_list("pk", flat=True))
    Session.objects.filter(pk__in=ids[:70]).update(updated_at=now)
    Session.objects.filter(pk__in=ids[70:]).update(updated_at=now - timedelta(hours=1))
    seen, query = [], ""
    for _ in range(3):
        seen += titles(client, query)
        older = re.search(r'rel="next" href="([^"]+)"', client.get(LIST + query).content.decode())
        query = unescape(older[1]) if older else ""
    assert sorted(seen) == sorted(f"s{number}" for number in range(120))
    assert query == ""


def test_it_keeps_a_search_while_paging(client):
    for number in range(60):
        SessionFactory(title=f"winter {number}")
        SessionFactory(title=f"summer {number}")
    page = client.get(LIST + "?q=winter").content.decode()
    older = unescape(re.search(r'rel="next" href="([^"]+)"', page)[1])
    assert [title.split()[0] for title in titles(client, older)] == ["winter"] * 10


@pytest.mark.parametrize("cursor", ["x", "2026-01-01~x", "2026-01-01T00:00:00+00:00~", "~~"])
def test_it_leads_back_from_a_cursor_that_is_not_its_own(client, cursor):
    response = client.get(LIST, {"p": cursor})
    assert response.status_code == 302
    assert response["Location"].endswith("?e=1")


def test_it_finds_by_title_key_owner_and_id(client):
    found = SessionFactory(title="Winter tyres", owner=UserFactory(username="ann"))
    SessionFactory(title="Other", owner=UserFactory(username="bo"))
    for term in ("winter", str(found.pk), found.key, "ann", found.pk.hex):
        assert titles(client, f"?q={term}") == ["Winter tyres"], term


def test_it_filters_by_state(client):
    SessionFactory(title="idle")
    SessionFactory(title="ended", state="ended")
    soon = timezone.now() + timedelta(seconds=15)
    SessionFactory(title="running", lease_owner="web-1", lease_expires_at=soon)
    SessionFactory(title="crashed", lease_owner="web-1", lease_expires_at=soon - timedelta(hours=1))
    assert titles(client, "?is=running") == ["running"]
    assert titles(client, "?is=ended") == ["ended"]
    assert sorted(titles(client, "?is=idle")) == ["crashed", "idle"]


def test_it_offers_the_models_and_agents_that_are_in_use(client):
    SessionFactory(title="a", model="openai:gpt-5", agent="main")
    SessionFactory(title="b", model="local:smollm2", agent="analyst")
    assert titles(client, "?model=local:smollm2") == ["b"]
    assert titles(client, "?agent=main") == ["a"]
    assert titles(client, "?model=gone:model") == []
    page = client.get(LIST).content.decode()
    assert "?model=openai%3Agpt-5" in page
    assert "?agent=analyst" in page


def test_it_does_not_find_a_deleted_session(client):
    gone = SessionFactory(deleted_at=timezone.now())
    assert titles(client) == []
    assert client.get(f"{LIST}{gone.pk}/change/").status_code == 302
    assert client.get(f"{LIST}{gone.pk}/transcript/").status_code == 404


def test_it_changes_nothing_but_by_deleting():
    client = client_of(SuperuserFactory())
    session = SessionFactory()
    MessageFactory(session=session)
    before = Session.objects.filter(pk=session.pk).values().get()
    change = f"{LIST}{session.pk}/change/"
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(change, {"title": "x", "revision": 0}).status_code == 403
    page = client.get(change).content.decode()
    assert re.findall(r'<(?:input|select|textarea)[^>]* name="([^"]+)"', page) == [
        "csrfmiddlewaretoken",
        "csrfmiddlewaretoken",
    ]
    assert Session.objects.filter(pk=session.pk).values().get() == before


def test_it_deletes_softly_and_leaves_the_clock_alone(client):
    session = MessageFactory().session
    before = Session.objects.values("revision", "removed_revision", "message_count").get()
    page = client.get(f"{LIST}{session.pk}/delete/").content.decode()
    assert "restore it for 30 days" in page
    assert client.post(f"{LIST}{session.pk}/delete/", {"post": "yes"}).status_code == 302
    session.refresh_from_db()
    assert session.deleted_at is not None
    assert session.run_generation == 1
    assert Message.objects.filter(session=session).count() == 1
    assert Session.objects.values("revision", "removed_revision", "message_count").get() == before


def test_it_deletes_the_selected_sessions_softly(client):
    kept = SessionFactory(title="kept")
    gone = [SessionFactory().pk for _ in range(3)]
    data = {"action": "delete_selected", "_selected_action": [str(pk) for pk in gone]}
    assert "restore them for 30 days" in client.post(LIST, data).content.decode()
    assert client.post(LIST, {**data, "post": "yes"}).status_code == 302
    assert titles(client) == [kept.title]
    assert Session.objects.filter(deleted_at__isnull=False).count() == 3


def test_it_offers_no_deletion_without_the_permission():
    client = client_of(StaffFactory(permissions=["sessions_app.view_session"]))
    session = SessionFactory()
    assert client.post(f"{LIST}{session.pk}/delete/", {"post": "yes"}).status_code == 403
    data = {"action": "delete_selected", "_selected_action": [str(session.pk)], "post": "yes"}
    client.post(LIST, data)
    session.refresh_from_db()
    assert session.deleted_at is None


def test_it_has_no_form_for_messages():
    assert not admin.site.is_registered(Message)


def test_it_opens_to_staff_with_the_permission_only():
    session = SessionFactory()
    pages = (LIST, f"{LIST}{session.pk}/change/", f"{LIST}{session.pk}/transcript/")
    for page in pages:
        assert Client().get(page).status_code == 302
        assert client_of(session.owner).get(page).status_code == 302
        assert client_of(UserFactory()).get(page).status_code == 302
        assert client_of(StaffFactory()).get(page).status_code == 403
        assert client_of(SuperuserFactory()).get(page).status_code == 200
        permitted = StaffFactory(permissions=["sessions_app.view_session"])
        assert client_of(permitted).get(page).status_code == 200


def test_it_takes_as_many_statements_for_200_sessions_as_for_2(client):
    client.get(LIST)
    counts = []
    for added in (2, 198):
        for _ in range(added):
            SessionFactory()
        with CaptureQueriesContext(connection) as captured:
            client.get(LIST)
        counts.append(len(captured))
        assert not any("SELECT COUNT(" in query["sql"] for query in captured)
    # web session, user, two permission reads, two filters, the page, its lines
    assert counts == [9, 9]


def test_it_links_each_title_to_its_transcript(client):
    session = SessionFactory()
    url = reverse("admin:sessions_app_session_transcript", args=[session.pk])
    assert f'href="{url}"' in client.get(LIST).content.decode()
