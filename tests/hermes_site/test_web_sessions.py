"""Cookies of web sessions that this site never gave out."""

import pytest
from django.conf import settings
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from gateway_app.credentials import admit_session

ODD = [r'"\000aaaaaaaaaaaa"', "\x00" * 12, "aaaaaaaaaaaa%00", "ä" * 12, "a" * 41, "a" * 5000, "x"]


@pytest.mark.django_db
@pytest.mark.parametrize("key", ODD)
def test_it_asks_the_database_for_no_key_that_it_never_gave_out(
    key: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client = Client(headers={"cookie": f"{settings.SESSION_COOKIE_NAME}={key}"})
    with django_assert_num_queries(0):
        assert client.get("/").status_code == 302
        assert client.get("/api/v1/me").status_code == 401
        assert admit_session(key.strip('"').replace(r"\000", "\x00")) is None


@pytest.mark.django_db
def test_it_knows_the_keys_that_it_gave_out(admin_client: Client) -> None:
    assert admin_client.get("/api/v1/me").status_code == 200
