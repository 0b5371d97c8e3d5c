"""API tokens, web sessions and login links: made once, checked again, ended for good."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.utils import timezone

from gateway_app import credentials
from gateway_app.models import ApiToken, LoginLink
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann")


def test_it_stores_no_token_in_clear(ann: User) -> None:
    text = credentials.create_token(user=ann, name="laptop")
    row = ApiToken.objects.values().get()
    assert text.startswith("hms_")
    assert len(text) >= 40
    assert row["prefix"] == text[:12]
    assert all(text[12:] not in str(value) for value in row.values())


def test_it_knows_a_tokens_user_and_nobody_by_another_text(ann: User) -> None:
    text = credentials.create_token(user=ann)
    assert credentials.authenticate_token(text) == ann
    for other in ("", text[:-1], text + "x", text.upper(), "hms_", "\x00", "ä" * 500):
        assert credentials.authenticate_token(other) is None


def test_it_moves_last_used_at_at_most_once_a_minute(ann: User) -> None:
    text = credentials.create_token(user=ann)
    credentials.authenticate_token(text)
    first = ApiToken.objects.get().last_used_at
    credentials.authenticate_token(text)
    assert first is not None
    assert ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(minutes=2))
    credentials.authenticate_token(text)
    assert ApiToken.objects.get().last_used_at >= first


def test_it_takes_no_token_that_is_expired_revoked_or_of_an_inactive_user(ann: User) -> None:
    soon = timezone.now() + timedelta(days=1)
    text = credentials.create_token(user=ann, expires_at=soon)
    token = ApiToken.objects.get()
    assert credentials.authenticate_token(text) == ann
    ApiToken.objects.update(expires_at=timezone.now())
    assert credentials.authenticate_token(text) is None
    ApiToken.objects.update(expires_at=soon)
    User.objects.update(is_active=False)
    assert credentials.authenticate_token(text) is None
    User.objects.update(is_active=True)
    credentials.revoke_token(token)
    assert credentials.authenticate_token(text) is None


def test_it_keeps_the_time_of_the_first_revocation(ann: User) -> None:
    credentials.create_token(user=ann)
    token = ApiToken.objects.get()
    credentials.revoke_token(token)
    first = ApiToken.objects.get().revoked_at
    credentials.revoke_token(token)
    assert ApiToken.objects.get().revoked_at == first


def test_it_says_when_a_tokens_credential_has_ended(ann: User) -> None:
    admission = credentials.admit_token(credentials.create_token(user=ann))
    assert admission is not None
    stranger = UserFactory()
    assert credentials.credential_valid(admission.credential, ann.pk)
    assert not credentials.credential_valid(admission.credential, stranger.pk)
    credentials.revoke_token(ApiToken.objects.get())
    assert not credentials.credential_valid(admission.credential, ann.pk)


@pytest.mark.parametrize("end", ["logout", "password", "inactive", "deleted", "other session"])
def test_it_says_when_a_web_sessions_credential_has_ended(
    ann: User, client: Client, end: str
) -> None:
    client.force_login(ann)
    key = client.cookies["sessionid"].value
    admission = credentials.admit_session(key)
    assert admission is not None
    assert admission.user == ann
    assert credentials.credential_valid(admission.credential, ann.pk)
    credential = admission.credential
    match end:
        case "logout":
            client.logout()
        case "password":
            ann.set_password("another")
            ann.save()
        case "inactive":
            User.objects.update(is_active=False)
        case "deleted":
            User.objects.all().delete()
        case "other session":
            credential = credential | {"auth_hash": "0" * 64}
    assert not credentials.credential_valid(credential, ann.pk)


def test_it_logs_in_once_by_a_link(ann: User) -> None:
    secret = credentials.create_login_link(ann)
    assert secret not in str(LoginLink.objects.values())
    assert credentials.peek_login_link(secret) == ann
    assert credentials.peek_login_link(secret) == ann
    assert credentials.redeem_login_link(secret) == ann
    assert credentials.redeem_login_link(secret) is None
    assert credentials.peek_login_link(secret) is None


def test_it_takes_no_link_that_is_wrong_expired_or_of_an_inactive_user(ann: User) -> None:
    secret = credentials.create_login_link(ann)
    assert credentials.redeem_login_link(secret + "x") is None
    User.objects.update(is_active=False)
    assert credentials.redeem_login_link(secret) is None
    User.objects.update(is_active=True)
    LoginLink.objects.update(expires_at=timezone.now())
    assert credentials.redeem_login_link(secret) is None


def test_it_lets_a_link_live_a_quarter_of_an_hour_and_sweeps_dead_ones(ann: User) -> None:
    credentials.create_login_link(ann)
    life = LoginLink.objects.get().expires_at - timezone.now()
    assert timedelta(minutes=14) < life <= timedelta(minutes=15)
    LoginLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    credentials.create_login_link(ann)
    assert LoginLink.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_it_gives_a_link_to_one_of_two_who_race_for_it(ann: User) -> None:
    secret = credentials.create_login_link(ann)

    def redeem(_: int) -> User | None:
        try:
            return credentials.redeem_login_link(secret)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(redeem, range(8)))
    assert [user for user in got if user] == [ann]
