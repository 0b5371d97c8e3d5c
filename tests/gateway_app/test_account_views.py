"""Logging in by password and by link, and the caller that the API sees."""

import logging
import re
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django.utils.module_loading import import_string

from gateway_app import credentials
from gateway_app.content_policy import PAGE_POLICY as POLICY
from gateway_app.models import LoginLink
from tests.factories import StaffFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann")


def logged_in(client: Client) -> str | None:
    answer = client.get("/api/v1/me")
    return answer.json()["name"] if answer.status_code == 200 else None


def test_it_logs_in_by_password_and_out(ann: User, client: Client) -> None:
    page = client.get("/accounts/login/?next=/admin/")
    assert page.headers["Content-Security-Policy"] == POLICY
    assert "style=" not in page.text
    assert all(" src=" in tag for tag in re.findall(r"<script[^>]*>", page.text))
    wrong = client.post("/accounts/login/", {"username": "ann", "password": "wrong"})
    assert 'role="alert"' in wrong.text
    assert logged_in(client) is None
    form = {"username": "ann", "password": "secret", "next": "/admin/"}
    assert client.post("/accounts/login/", form).headers["Location"] == "/admin/"
    assert logged_in(client) == "ann"
    assert client.post("/accounts/logout/").headers["Location"] == "/accounts/login/"
    assert logged_in(client) is None


@pytest.mark.parametrize("name", ["accounts", "admin"])
def test_it_asks_nobody_about_passwords_that_come_too_often(name: str, client: Client) -> None:
    StaffFactory(username=name)
    path = f"/{name}/login/"
    form = {"username": name.upper(), "password": "wrong"}
    tries = [client.post(path, form).text for _ in range(7)]
    assert ["Too many tries." in told for told in tries] == [False] * 6 + [True]
    form = {"username": name, "password": "secret"}
    assert "Too many tries." in client.post(path, form).text
    assert client.post(path, form, REMOTE_ADDR="192.0.2.7").status_code == 302, "elsewhere it may"


def test_it_counts_no_login_that_succeeds(client: Client) -> None:
    UserFactory(username="often")
    for _ in range(12):
        form = {"username": "often", "password": "secret"}
        assert client.post("/accounts/login/", form).status_code == 302


def test_it_never_sends_a_person_elsewhere_after_login(ann: User, client: Client) -> None:
    form = {"username": "ann", "password": "secret", "next": "https://evil.example/"}
    assert client.post("/accounts/login/", form).headers["Location"] == "/"


def test_it_shows_a_link_without_using_it_and_logs_in_by_its_button(
    ann: User, client: Client
) -> None:
    address = f"/login/{credentials.create_login_link(ann)}/"
    for _ in range(3):
        page = client.get(address)
        assert page.status_code == 200
        assert "Log in as <bdi>ann</bdi>" in page.text
        assert "no-store" in page.headers["Cache-Control"]
        assert client.head(address).status_code == 200
    assert logged_in(client) is None
    assert client.post(address).headers["Location"] == "/"
    assert logged_in(client) == "ann"


def test_it_demands_the_csrf_token_of_a_link(ann: User) -> None:
    client = Client(enforce_csrf_checks=True)
    address = f"/login/{credentials.create_login_link(ann)}/"
    assert client.post(address).status_code == 403
    client.get(address)
    token = client.cookies["csrftoken"].value
    assert client.post(address, {"csrfmiddlewaretoken": token}).status_code == 302


def test_it_says_that_a_link_is_over(ann: User, client: Client) -> None:
    address = f"/login/{credentials.create_login_link(ann)}/"
    client.post(address)
    client.logout()
    for answer in (client.get(address), client.post(address), client.get("/login/never-made/")):
        assert answer.status_code == 410
        assert "manage.py loginlink" in answer.text
    LoginLink.objects.update(used_at=None, expires_at=timezone.now() - timedelta(seconds=1))
    assert client.get(address).status_code == 410
    assert logged_in(client) is None


def test_it_keeps_the_secret_of_a_link_out_of_the_log(ann: User, settings: Any) -> None:
    console = settings.LOGGING["handlers"]["console"]
    [name] = console["filters"]
    log = StringIO()
    handler = logging.StreamHandler(log)
    handler.addFilter(import_string(settings.LOGGING["filters"][name]["()"])())
    logging.getLogger("django.security.csrf").addHandler(handler)
    secret = credentials.create_login_link(ann)
    assert Client(enforce_csrf_checks=True).post(f"/login/{secret}/").status_code == 403
    logging.getLogger("django.security.csrf").removeHandler(handler)
    assert "/login/.../" in log.getvalue()
    assert secret not in log.getvalue()


def test_it_lets_whoever_came_by_link_set_a_password(client: Client) -> None:
    person = UserFactory(username="bob", password=None)
    person.set_unusable_password()
    person.save()
    client.post(f"/login/{credentials.create_login_link(person)}/")
    assert "old_password" not in client.get("/accounts/password/").text
    weak = {"new_password1": "12345678", "new_password2": "12345678"}
    assert client.post("/accounts/password/", weak).status_code == 200
    strong = {"new_password1": "three warm feathers", "new_password2": "three warm feathers"}
    answer = client.post("/accounts/password/", strong, follow=True)
    assert answer.redirect_chain == [("/accounts/password/set/", 302)]
    assert "<bdi>bob</bdi> logs in with the new password from now on." in answer.text
    assert logged_in(client) == "bob"
    assert Client().login(username="bob", password="three warm feathers")


def test_it_asks_for_the_old_password_where_there_is_one(ann: User, client: Client) -> None:
    client.force_login(ann)
    new = {"new_password1": "three warm feathers", "new_password2": "three warm feathers"}
    assert client.post("/accounts/password/", new).status_code == 200
    assert client.post("/accounts/password/", new | {"old_password": "wrong"}).status_code == 200
    assert client.post("/accounts/password/", new | {"old_password": "secret"}).status_code == 302


def test_it_tells_the_caller_who_they_are(client: Client) -> None:
    ops = StaffFactory(username="ops")
    client.force_login(ops)
    assert client.get("/api/v1/me").json() == {"id": ops.pk, "name": "ops", "isStaff": True}


def test_it_answers_nobody_with_401_in_json(client: Client) -> None:
    answer = client.get("/api/v1/me")
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthenticated"
    assert answer.json()["error"]["message"]
    assert client.post("/api/v1/me").json()["error"]["code"] == "unsupported"


def test_it_takes_a_bearer_token_alone(ann: User, client: Client) -> None:
    token = credentials.create_token(user=UserFactory(username="bob"))

    def name(**headers: Any) -> str | None:
        answer = client.get("/api/v1/me", headers=headers)
        return answer.json()["name"] if answer.status_code == 200 else None

    assert name(authorization=f"Bearer {token}") == "bob"
    assert client.get(f"/api/v1/me?token={token}").status_code == 401
    client.force_login(ann)
    assert name() == "ann"
    assert name(authorization=f"bearer {token}") == "bob"
    assert name(authorization="Bearer wrong") is None
    assert name(authorization="Bearer ") is None
    assert name(authorization="Basic YTpi") == "ann"


def test_it_confirms_no_password_to_nobody(client: Client) -> None:
    answer = client.get("/accounts/password/set/")
    assert answer.headers["Location"].startswith("/accounts/login/")
