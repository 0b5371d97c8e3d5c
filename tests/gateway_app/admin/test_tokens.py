"""API tokens in the admin: the text once, the hash never, revoked for good."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from gateway_app.credentials import authenticate_token
from gateway_app.models import ApiToken
from tests.factories import ApiTokenFactory, StaffFactory, SuperuserFactory, UserFactory
from tests.gateway_app.admin.conftest import logged_in, page_of

LIST = "/admin/gateway_app/apitoken/"

pytestmark = pytest.mark.django_db


def made_text(response) -> str:
    """The token's text, from the one page that shows it."""
    words = page_of(response).text.split()
    [text] = [word for word in words if word.startswith("hms_")]
    return text


def test_it_shows_the_text_of_a_new_token_once(ops_client, operator):
    response = ops_client.post(f"{LIST}add/", {"name": "laptop"})
    text = made_text(response)
    assert authenticate_token(text) == operator
    assert "no-store" in response.headers["Cache-Control"]
    token = ApiToken.objects.get()
    for page in (LIST, f"{LIST}{token.pk}/change/", f"{LIST}{token.pk}/history/", "/admin/"):
        html = ops_client.get(page).content.decode()
        assert text not in html
        assert text[len(token.prefix) :] not in html
    assert text not in str(ops_client.cookies)
    assert text not in str(dict(ops_client.session))


def test_the_page_of_a_new_token_is_named_in_its_path(ops_client):
    german = {"accept-language": "de"}
    html = ops_client.post(f"{LIST}add/", {"name": "laptop"}, headers=german).content.decode()
    assert "&rsaquo; API-Token erstellt" in html


def test_a_token_without_a_name_has_the_dash_of_all_that_is_empty(root_client):
    ApiTokenFactory(name="")
    assert '<td class="field-name">–</td>' in root_client.get(LIST).content.decode()


def test_it_proposes_whoever_makes_the_token(root_client):
    form = root_client.get(f"{LIST}add/").context["adminform"].form
    assert form["user"].value() == int(root_client.session["_auth_user_id"])


def test_it_never_shows_a_hash(root_client):
    token = ApiTokenFactory()
    for page in (LIST, f"{LIST}{token.pk}/change/", f"{LIST}?q={token.prefix}"):
        assert token.hash not in root_client.get(page).content.decode()


def test_it_lists_each_token_with_its_state(root_client):
    yesterday = timezone.now() - timedelta(days=1)
    ApiTokenFactory(name="alive", user=UserFactory(username="ann"))
    ApiTokenFactory(name="old", expires_at=yesterday)
    ApiTokenFactory(name="gone", revoked_at=yesterday)
    text = page_of(root_client.get(LIST)).text
    for shown in ("ann", "alive", "Live", "Expired", "Revoked", ApiToken.objects.first().prefix):
        assert shown in text
    for state, name in (("live", "alive"), ("expired", "old"), ("revoked", "gone")):
        result = root_client.get(f"{LIST}?is={state}").context["cl"].result_list
        assert [token.name for token in result] == [name]


def revoke(client, *tokens: ApiToken):
    data = {"action": "revoke", "_selected_action": [token.pk for token in tokens]}
    return client.post(LIST, data)


def test_it_revokes_the_selected_tokens_for_good(ops_client):
    text = made_text(ops_client.post(f"{LIST}add/", {"name": "laptop"}))
    token, other = ApiToken.objects.get(), ApiTokenFactory()
    assert revoke(ops_client, token).status_code == 302
    assert authenticate_token(text) is None
    token.refresh_from_db()
    first = token.revoked_at
    revoke(ops_client, token)
    token.refresh_from_db()
    assert token.revoked_at == first
    other.refresh_from_db()
    assert other.revoked_at is None
    assert "Revoked." in page_of(ops_client.get(f"{LIST}{token.pk}/history/")).text


def test_it_revokes_nothing_without_the_permission():
    token = ApiTokenFactory()
    revoke(logged_in(StaffFactory(permissions=["gateway_app.view_apitoken"])), token)
    token.refresh_from_db()
    assert token.revoked_at is None


def test_it_lets_staff_make_tokens_for_themselves_only(ops_client, operator, root):
    text = made_text(ops_client.post(f"{LIST}add/", {"name": "x", "user": root.pk}))
    assert authenticate_token(text) == operator


def test_it_lets_superusers_make_tokens_for_anybody(root_client, owner):
    text = made_text(root_client.post(f"{LIST}add/", {"name": "x", "user": owner.pk}))
    assert authenticate_token(text) == owner


def test_it_offers_one_way_to_save(ops_client):
    html = ops_client.get(f"{LIST}add/").content.decode()
    assert re.findall(r'<input type="submit" value="([^"]+)"', html) == ["Save"]


def test_it_makes_a_token_that_expires(ops_client):
    tomorrow = timezone.now() + timedelta(days=1)
    sent = {"name": "x", "expires_at_0": tomorrow.date(), "expires_at_1": "12:00:00"}
    made_text(ops_client.post(f"{LIST}add/", sent))
    assert ApiToken.objects.get().expires_at.date() == tomorrow.date()


def test_it_makes_no_token_without_the_permission():
    viewer = logged_in(StaffFactory(permissions=["gateway_app.view_apitoken"]))
    assert viewer.post(f"{LIST}add/", {"name": "x"}).status_code == 403
    assert not ApiToken.objects.exists()


def test_it_changes_and_deletes_no_token():
    client, token = logged_in(SuperuserFactory()), ApiTokenFactory()
    assert client.post(f"{LIST}{token.pk}/change/", {"name": "x"}).status_code == 403
    assert client.post(f"{LIST}{token.pk}/delete/", {"post": "yes"}).status_code == 403


def test_it_takes_as_many_statements_for_200_tokens_as_for_2(ops_client, statements):
    ops_client.get(LIST)
    counts = []
    for added in (2, 198):
        for _ in range(added):
            ApiTokenFactory()
        counts.append(statements(ops_client, LIST))
    # web session, user, two permission reads, the count, the page
    assert counts == [6, 6]


def test_it_says_that_a_token_without_a_date_never_expires(ops_client):
    assert "Empty: it never expires." in page_of(ops_client.get(f"{LIST}add/")).text
    made_text(ops_client.post(f"{LIST}add/", {"name": "x"}))
    assert ApiToken.objects.get().expires_at is None


def test_it_revokes_a_token_from_its_page(ops_client):
    token = ApiTokenFactory()
    page = f"{LIST}{token.pk}/change/"
    assert "Revoke API token" in page_of(ops_client.get(page)).text
    answer = ops_client.post(f"{LIST}{token.pk}/revoke/", follow=True)
    assert "1 API token revoked." in page_of(answer).text
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert "Revoke API token" not in page_of(ops_client.get(page)).text
    assert "Revoked." in page_of(ops_client.get(f"{LIST}{token.pk}/history/")).text
    assert ops_client.get(f"{LIST}{token.pk}/revoke/").status_code == 405
    assert ops_client.post(f"{LIST}999/revoke/").status_code == 404


def test_it_offers_the_button_only_to_those_who_may_revoke(owner):
    token = ApiTokenFactory()
    viewer = logged_in(StaffFactory(permissions=["gateway_app.view_apitoken"]))
    assert "Revoke API token" not in page_of(viewer.get(f"{LIST}{token.pk}/change/")).text
    assert viewer.post(f"{LIST}{token.pk}/revoke/").status_code == 403
    assert logged_in(owner).post(f"{LIST}{token.pk}/revoke/").status_code == 302
    token.refresh_from_db()
    assert token.revoked_at is None


def test_it_notes_who_made_a_token(ops_client, operator):
    made_text(ops_client.post(f"{LIST}add/", {"name": "laptop"}))
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_repr, entry.is_addition()) == (operator, "laptop", True)
