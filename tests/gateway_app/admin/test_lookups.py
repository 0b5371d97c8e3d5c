"""What a query may not ask of the admin's lists."""

import pytest
from django.test import Client

from gateway_app.models import Presence
from tests.factories import SessionFactory, SuperuserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(client: Client) -> Client:
    client.force_login(SuperuserFactory())
    return client


@pytest.mark.parametrize("path", ["sessions_app/session/", "gateway_app/turn/", "auth/user/"])
@pytest.mark.parametrize("lookup", ["pk__regex", "pk__iregex", "pk__IREGEX", "title__regex"])
def test_it_matches_no_pattern(root: Client, path: str, lookup: str) -> None:
    SessionFactory(title="a" * 40 + "!")
    assert root.get(f"/admin/{path}", {lookup: "(a+)+$"}).status_code == 400


def test_it_evicts_no_process_whose_name_has_nul(root: Client) -> None:
    assert root.post("/admin/board/", {"evict": "a\x00b"}).status_code == 302
    assert not Presence.objects.exists()
