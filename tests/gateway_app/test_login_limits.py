"""Passwords cannot be tried at will, and nobody is shut out by somebody else's tries."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from gateway_app import credentials, housekeeping, login_limits
from gateway_app.models import LoginTries
from tests.factories import StaffFactory, UserFactory

pytestmark = pytest.mark.django_db

WAIT = "Too many tries. The next one is possible in"


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann")


def log_in(
    password: str, *, name: str = "ann", at: str = "192.0.2.1", by: Client | None = None
) -> str:
    """What a log-in says: "in", "wrong" or "wait"."""
    form = {"username": name, "password": password}
    answer = (by or Client()).post("/accounts/login/", form, REMOTE_ADDR=at)
    if answer.status_code == 302:
        return "in"
    assert (answer.status_code == 429) == (WAIT in answer.text)
    return "wait" if WAIT in answer.text else "wrong"


def pass_time(seconds: int) -> None:
    """As if so many seconds had passed since every try."""
    for row in LoginTries.objects.all():
        LoginTries.objects.filter(pk=row.pk).update(until=row.until - timedelta(seconds=seconds))


def test_it_makes_each_further_try_wait_longer(ann: User) -> None:
    assert [log_in("no") for _ in range(6)] == ["wrong"] * 6
    assert log_in("secret") == "wait"
    pass_time(2)
    assert log_in("no") == "wrong"
    pass_time(3)
    answer = Client().post(
        "/accounts/login/", {"username": "ann", "password": "no"}, REMOTE_ADDR="192.0.2.1"
    )
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    assert f"{WAIT} 1 second." in answer.text
    pass_time(1)
    assert log_in("secret") == "in"
    assert [log_in("no") for _ in range(6)] == ["wrong"] * 6


def test_it_says_long_waits_in_minutes(ann: User) -> None:
    bounds = {"key": login_limits.PAIR}
    assert login_limits.PAIR.wait(10_000) == timedelta(minutes=15)
    LoginTries.objects.create(key="key", tries=9, until=timezone.now() + timedelta(seconds=899))
    assert login_limits.take(bounds) in {898, 899}
    assert LoginTries.objects.get().tries == 9


def test_it_slows_many_addresses_that_try_one_name_but_not_its_owner(ann: User) -> None:
    browser = Client()
    assert log_in("secret", by=browser) == "in"
    browser.post("/accounts/logout/")
    tries = [log_in("no", at=f"198.51.100.{number}") for number in range(25)]
    assert tries == ["wrong"] * 21 + ["wait"] * 4
    assert log_in("secret", at="203.0.113.5") == "wait"
    assert log_in("secret", by=browser) == "in"
    pass_time(60)
    assert log_in("secret", at="203.0.113.5") == "in"


def test_it_counts_a_known_browser_too_and_only_for_its_own_name(ann: User) -> None:
    UserFactory(username="bob")
    browser = Client()
    assert log_in("secret", by=browser) == "in"
    browser.post("/accounts/logout/")
    assert [log_in("no", by=browser) for _ in range(7)] == ["wrong"] * 6 + ["wait"]
    assert [log_in("no", name="bob", by=browser) for _ in range(7)] == ["wrong"] * 6 + ["wait"]
    assert log_in("secret", name="bob", at="203.0.113.5") == "in"


def test_it_slows_one_address_that_tries_many_names(ann: User) -> None:
    tries = [log_in("no", name=f"name{number}") for number in range(52)]
    assert tries == ["wrong"] * 51 + ["wait"]
    assert log_in("secret") == "wait"
    assert log_in("secret", at="203.0.113.5") == "in"


def test_it_never_counts_this_machine_itself_as_an_address(ann: User) -> None:
    assert {log_in("no", name=f"name{number}", at="127.0.0.1") for number in range(60)} == {"wrong"}
    assert log_in("secret", at="127.0.0.1") == "in"


@pytest.mark.parametrize(
    ("proxy", "last"), [(("HTTP_X_FORWARDED_PROTO", "https"), "wrong"), (None, "wait")]
)
def test_it_believes_a_forwarded_address_only_of_its_own_proxy(
    ann: User, settings: Settings, proxy: tuple[str, str] | None, last: str
) -> None:
    settings.SECURE_PROXY_SSL_HEADER = proxy
    form = {"username": "ann", "password": "no"}
    for number in range(7):
        answer = Client().post(
            "/accounts/login/",
            form,
            REMOTE_ADDR="192.0.2.1",
            HTTP_X_FORWARDED_FOR=f"203.0.113.1, 198.51.100.{number}",
        )
    assert ("wait" if WAIT in answer.text else "wrong") == last


def test_it_lets_a_login_link_in_whatever_was_tried(ann: User) -> None:
    for _ in range(7):
        log_in("no")
    client = Client()
    answer = client.post(f"/login/{credentials.create_login_link(ann)}/", REMOTE_ADDR="192.0.2.1")
    assert answer.status_code == 302
    assert client.get("/api/v1/me").json()["name"] == "ann"


def test_it_bounds_the_admins_own_page_by_the_same_counts() -> None:
    StaffFactory(username="ann")
    for _ in range(6):
        log_in("no")
    form = {"username": "ann", "password": "secret"}
    assert WAIT in Client().post("/admin/login/", form, REMOTE_ADDR="192.0.2.1").text
    pass_time(2)
    assert Client().post("/admin/login/", form, REMOTE_ADDR="192.0.2.1").status_code == 302


def test_it_keeps_no_name_and_no_address_and_forgets_its_counts(ann: User) -> None:
    log_in("no")
    for key in LoginTries.objects.values_list("key", flat=True):
        assert len(key) == 64
        assert "ann" not in key
    job = housekeeping.JOBS["login_tries"]
    assert job.find() == []
    pass_time(3601)
    job.act(job.find())
    assert not LoginTries.objects.exists()
