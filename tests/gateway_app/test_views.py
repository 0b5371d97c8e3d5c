"""The chat page: who may have it, what it carries, and under which policy."""

import json
import re
from dataclasses import replace
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gateway_app.config import gateway_config
from gateway_app.content_policy import PAGE_POLICY, TRUSTED_TYPES_POLICY
from gateway_app.host import GatewayHost, set_host
from gateway_app.models import AgentVersion
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

PATHS = ["/", f"/c/{uuid4()}/"]


@pytest.fixture
def person() -> User:
    user: User = UserFactory(username="ann")
    return user


def page_of(client: Client, path: str = "/") -> tuple[str, dict[str, object]]:
    """The page's text and what its script reads."""
    response = client.get(path)
    assert response.status_code == 200
    text = response.content.decode()
    found = re.search(r'<script id="page" type="application/json">(.*?)</script>', text)
    assert found
    return text, json.loads(found[1])


@pytest.mark.parametrize("path", PATHS)
def test_it_asks_a_stranger_to_log_in_and_comes_back(client: Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 302
    assert response.headers["Location"] == f"/accounts/login/?next={path}"


@pytest.mark.parametrize("path", PATHS)
def test_it_shows_the_chat_under_trusted_types(client: Client, person: User, path: str) -> None:
    client.force_login(person)
    response = client.get(path)
    assert response.headers["Content-Security-Policy"] == TRUSTED_TYPES_POLICY
    assert TRUSTED_TYPES_POLICY.startswith(PAGE_POLICY)
    assert "no-store" in response.headers["Cache-Control"]


def test_it_carries_what_the_script_needs_and_no_more(client: Client, person: User) -> None:
    client.force_login(person)
    _, page = page_of(client)
    assert page == {
        "user": {"id": person.pk},
        "socketPath": "/ws/v1/",
        "release": "0.1.0",
        "limits": {"maxFrameBytes": 1024 * 1024, "maxQueued": 32},
        "urls": {
            "login": "/accounts/login/",
            "password": "/accounts/password/",
            "me": "/api/v1/me",
            "admin": None,
        },
    }


def test_it_shows_the_way_to_the_admin_to_staff_only(client: Client) -> None:
    client.force_login(UserFactory(is_staff=True))
    _, page = page_of(client)
    assert page["urls"] == {**page["urls"], "admin": "/admin/"}  # type: ignore[dict-item]


def test_it_takes_a_persons_name_as_text(client: Client) -> None:
    client.force_login(UserFactory(first_name="<img src=x onerror=alert(1)>", last_name=""))
    text, _ = page_of(client)
    assert "<img src" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_it_has_no_inline_script_style_or_handler(client: Client, person: User) -> None:
    client.force_login(person)
    text, _ = page_of(client)
    scripts = re.findall(r"<script([^>]*)>", text)
    assert all("src=" in one or 'type="application/json"' in one for one in scripts)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text)


@pytest.mark.parametrize("path", ["/c/not-a-uuid/", "/c/", "/c/%00/"])
def test_it_knows_no_other_addresses(client: Client, person: User, path: str) -> None:
    client.force_login(person)
    assert client.get(path).status_code == 404


def test_it_takes_no_other_methods(client: Client, person: User) -> None:
    client.force_login(person)
    assert client.post("/").status_code == 405


@pytest.mark.parametrize(
    ("host", "secure", "scripts"),
    [
        ("localhost:8000", False, "'self' http://localhost:8000"),
        ("localhost", True, "'self' https://localhost"),
        ("[::1]:8000", False, "'self'"),
    ],
)
def test_it_draws_diagrams_in_a_frame_without_origin_and_network(
    client: Client, host: str, secure: bool, scripts: str
) -> None:
    """To WebKit 'self' is nothing in such a frame: its policy names the site."""
    response = client.get("/diagram/", headers={"host": host}, secure=secure)
    assert response.headers["Content-Security-Policy"] == (
        f"sandbox allow-scripts; default-src 'none'; script-src {scripts}; "
        "style-src 'unsafe-inline'; frame-ancestors 'self'"
    )
    assert response.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert client.post("/diagram/").status_code == 405


def test_it_can_be_kept_among_a_phones_apps(client: Client) -> None:
    response = client.get("/manifest.webmanifest")
    assert response.headers["Content-Type"] == "application/manifest+json"
    facts = response.json()
    assert (facts["name"], facts["start_url"], facts["display"]) == ("Hermes", "/", "standalone")
    assert [icon["type"] for icon in facts["icons"]] == ["image/svg+xml"]


@pytest.mark.parametrize(
    ("site", "own", "told"),
    [
        ("local:smollm2", "", True),
        ("openai:x", "", False),
        ("openai:x", "local:smollm2", True),
        ("local:smollm2", "openai:x", False),
    ],
)
def test_it_says_how_to_connect_a_model_only_where_the_embedded_one_answers(
    client: Client, person: User, site: str, own: str, told: bool
) -> None:
    set_host(GatewayHost(replace(gateway_config(), default_model=site)))
    try:
        AgentVersion.objects.filter(agent__is_default=True).update(model=own)
        client.force_login(person)
        text, _ = page_of(client)
    finally:
        set_host(None)
    assert ("A small model is ready" in text) is told
    assert ("OPENAI_BASE_URL" in text) is told


def test_it_names_a_server_of_ones_own_in_the_readers_language_and_languages_in_theirs(
    client: Client, person: User
) -> None:
    client.force_login(person)
    text = client.get("/", headers={"accept-language": "de"}).content.decode()
    assert "Eigener Server" in text and "Your own server" not in text
    assert '<option value="en" lang="en">English</option>' in text
    assert '<option value="de" lang="de" selected>Deutsch</option>' in text
