"""What requests meet before any view."""

import pytest
from django.test import Client


@pytest.mark.parametrize("path", ["/", "/accounts/login/", "/healthz", "/nowhere"])
def test_it_says_what_to_set_for_a_name_that_is_not_served(
    client: Client, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    with caplog.at_level("INFO"):
        answer = client.get(path, headers={"host": "chat.example"})
    assert answer.status_code == 400
    for words in ("chat.example", "ALLOWED_HOSTS", "HERMES_PUBLIC_URL"):
        assert words in answer.text
    assert "default-src" in answer.headers["Content-Security-Policy"]
    [record] = [one for one in caplog.records if one.levelname != "DEBUG"]
    assert (record.name, record.levelname) == ("hermes_site.middleware", "INFO")
    assert record.exc_info is None


def test_it_says_so_in_the_apis_own_form(client: Client) -> None:
    answer = client.get("/api/v1/sessions", headers={"host": "chat.example"})
    assert answer.status_code == 400
    assert "ALLOWED_HOSTS" in answer.json()["error"]["message"]


@pytest.mark.parametrize("host", ["<b>evil</b>", "a b", "evil\x1b[2J", "[::1", "é", "a" * 5000])
def test_it_repeats_no_name_as_markup_or_as_lines(
    client: Client, caplog: pytest.LogCaptureFixture, host: str
) -> None:
    with caplog.at_level("INFO"):
        answer = client.get("/", headers={"host": host})
    assert answer.status_code == 400
    assert "<b>evil" not in answer.text
    assert len(answer.text) < 10_000
    logged = caplog.records[-1].__dict__["host"]
    assert logged.isprintable()
    assert len(logged) < 500
