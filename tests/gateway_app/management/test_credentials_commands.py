"""`apitoken` and `loginlink`, as a person at a shell uses them."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from gateway_app import credentials
from gateway_app.models import ApiToken
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann")


def run(*args: str, **options: Any) -> list[str]:
    out = StringIO()
    call_command(*args, stdout=out, **options)
    return out.getvalue().splitlines()


def test_it_prints_a_new_token_alone_on_the_last_line(ann: User) -> None:
    said = run("apitoken", "create", "ann", "--name", "laptop")
    assert credentials.authenticate_token(said[-1]) == ann
    assert ApiToken.objects.get().name == "laptop"
    assert ApiToken.objects.get().expires_at is None


def test_it_makes_a_token_that_ends_after_some_days(ann: User) -> None:
    run("apitoken", "create", "ann", "--days", "30")
    life = ApiToken.objects.get().expires_at - timezone.now()
    assert timedelta(days=29) < life <= timedelta(days=30)


def test_it_lists_tokens_by_their_first_characters_only(ann: User) -> None:
    tokens = [run("apitoken", "create", "ann", "--name", name)[-1] for name in ("one", "two")]
    run("apitoken", "revoke", tokens[0][:12])
    one, two = run("apitoken", "list", "ann")
    assert one.startswith(tokens[0][:12])
    assert "revoked" in one
    assert one.endswith("one")
    assert "never expires" in two
    assert not any(token in one + two for token in tokens)


def test_it_revokes_one_token_by_its_first_characters(ann: User) -> None:
    first, second = (run("apitoken", "create", "ann")[-1] for _ in range(2))
    run("apitoken", "revoke", first[:12])
    assert credentials.authenticate_token(first) is None
    assert credentials.authenticate_token(second) == ann


@pytest.mark.parametrize("prefix", ["", "hms_", "hms_nothing", "%"])
def test_it_revokes_nothing_by_a_vague_or_unknown_prefix(ann: User, prefix: str) -> None:
    token = run("apitoken", "create", "ann")[-1]
    with pytest.raises(CommandError, match="No token that could be revoked"):
        run("apitoken", "revoke", prefix)
    assert credentials.authenticate_token(token) == ann


def test_it_revokes_nothing_where_two_tokens_fit(ann: User) -> None:
    token = run("apitoken", "create", "ann")[-1]
    run("apitoken", "create", "ann")
    ApiToken.objects.update(prefix=token[:12])
    with pytest.raises(CommandError, match="More than one"):
        run("apitoken", "revoke", token[:12])


def test_it_says_that_there_is_no_such_user() -> None:
    for args in (("apitoken", "create", "bob"), ("apitoken", "list", "bob"), ("loginlink", "bob")):
        with pytest.raises(CommandError, match="'bob'"):
            run(*args)


def test_it_refuses_a_life_of_no_days(ann: User) -> None:
    with pytest.raises(CommandError, match="--days"):
        run("apitoken", "create", "ann", "--days", "0")


def test_it_prints_a_login_link_alone_on_its_line(ann: User) -> None:
    [line] = run("loginlink", "ann", "--base-url", "https://chat.example/")
    address, secret = line.rstrip("/").rsplit("/", 1)
    assert address == "https://chat.example/login"
    assert credentials.redeem_login_link(secret) == ann
