"""Requests that no client of ours makes, over raw connections to a real server."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.gateway_app.serving.conftest import PATIENCE_S, Served, Site

MEGABYTE = 1024 * 1024


@pytest.fixture
def served(site: Site) -> Served:
    return site.start().ready()


def connect(served: Served, head: str) -> socket.socket:
    """A connection on which a request's head was sent; `HOST` in it is the server's."""
    place = urlsplit(served.url)
    connection = socket.create_connection((place.hostname, place.port), timeout=PATIENCE_S)
    connection.sendall(head.replace("HOST", place.netloc).replace("\n", "\r\n").encode("latin-1"))
    return connection


def pour(connection: socket.socket, piece: bytes, times: int) -> int:
    """How many pieces the server took before it hung up."""
    for number in range(times):
        try:
            connection.sendall(piece)
        except OSError:
            return number
    return times


def answer(connection: socket.socket) -> str:
    """What came back until the server closed."""
    told = b""
    with connection:
        while piece := connection.recv(65536):
            told += piece
    return told.decode("latin-1")


def peak_bytes(served: Served) -> int:
    status = Path(f"/proc/{served.process.pid}/status").read_text(encoding="utf-8")
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("path", ["/healthz", "/accounts/login/", "/api/v1/sessions", "/ws/v1/"])
def test_it_refuses_a_large_body_before_it_comes(served: Served, path: str) -> None:
    told = answer(connect(served, f"POST {path} HTTP/1.1\nHost: HOST\nContent-Length: 9000000\n\n"))
    head, _, body = told.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 413 ")
    assert json.loads(body)["error"]["code"] == "too_large"


@pytest.mark.parametrize("announced", [True, False])
def test_it_keeps_nothing_of_a_body_without_an_end(served: Served, announced: bool) -> None:
    served.get("/healthz")
    before = peak_bytes(served)
    size = "Content-Length: 500000000" if announced else "Transfer-Encoding: chunked"
    chunk = b"100000\r\n" + b"a" * MEGABYTE + b"\r\n"
    form = "Content-Type: application/x-www-form-urlencoded"
    with connect(served, f"POST /healthz HTTP/1.1\nHost: HOST\n{form}\n{size}\n\n") as poured:
        pour(poured, chunk, 200)
    assert served.get("/healthz").status_code == 200
    assert peak_bytes(served) - before < 30 * MEGABYTE
    assert served.end() == 0
    assert not any("Traceback" in line for line in served.said), served.said


IMPORT = "POST /api/v1/sessions/import HTTP/1.1\nHost: HOST\nContent-Type: application/x-ndjson\n"


@pytest.mark.parametrize("size", ["Content-Length: 60000000", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize(
    "login",
    [
        "X-Nothing: here",
        "Authorization: Bearer hermes_nobody",
        "Cookie: sessionid=abcdefghijklmnop",
    ],
)
def test_it_refuses_an_upload_before_it_comes(served: Served, login: str, size: str) -> None:
    told = answer(connect(served, f"{IMPORT}{login}\n{size}\nExpect: 100-continue\n\n"))
    head, _, body = told.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 401 ")
    assert json.loads(body)["error"]["code"] == "unauthenticated"


def test_it_holds_nothing_of_uploads_from_nobody(served: Served) -> None:
    served.get("/healthz")
    before = peak_bytes(served)
    uploads = [connect(served, f"{IMPORT}Content-Length: 60000000\n\n") for _ in range(8)]
    with ThreadPoolExecutor(len(uploads)) as pool:
        list(pool.map(lambda upload: pour(upload, b"a" * MEGABYTE, 50), uploads))
    assert [answer(upload)[:13] for upload in uploads] == ["HTTP/1.1 401 "] * 8
    assert peak_bytes(served) - before < 30 * MEGABYTE
    assert served.get("/healthz").status_code == 200
    assert served.end() == 0
    assert not any("Traceback" in line for line in served.said), served.said


@pytest.mark.parametrize("expecting", [True, False])
def test_it_takes_an_upload_that_is_larger_than_other_bodies(
    site: Site, served: Served, expecting: bool
) -> None:
    login = f"Authorization: Bearer {site.token()}\nConnection: close\n"
    head = f"{IMPORT}{login}Content-Length: {4 * MEGABYTE}\n"
    if expecting:
        importing = connect(served, f"{head}Expect: 100-continue\n\n")
        assert importing.recv(65536).startswith(b"HTTP/1.1 100 ")
    else:
        importing = connect(served, f"{head}\n")
    assert pour(importing, b"a" * MEGABYTE, 4) == 4
    told = answer(importing)
    assert told.startswith("HTTP/1.1 422 "), told
    assert "line 1" in told.lower()


def test_it_takes_an_upload_by_cookie_only_with_the_csrf_token(site: Site) -> None:
    served = site.start(HERMES_ADMIN_PASSWORD="a long enough secret").ready()
    with httpx2.Client(base_url=served.url, timeout=PATIENCE_S) as browser:
        browser.get("/accounts/login/")
        form = {"username": "admin", "password": "a long enough secret"}
        form["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
        assert browser.post("/accounts/login/", data=form).status_code == 302
        head = {"Content-Type": "application/x-ndjson"}
        body = b"a" * (3 * MEGABYTE)
        importing = "/api/v1/sessions/import"
        assert browser.post(importing, content=body, headers=head).status_code == 403
        head["X-CSRFToken"] = browser.cookies["csrftoken"]
        assert browser.post(importing, content=body, headers=head).status_code == 422


def test_it_takes_a_small_upload_that_came_with_its_head(site: Site, served: Served) -> None:
    login = f"Authorization: Bearer {site.token()}\nConnection: close\n"
    told = answer(connect(served, f"{IMPORT}{login}Content-Length: 3\n\nabc"))
    assert told.startswith("HTTP/1.1 422 "), told


def test_it_lets_nobody_say_where_the_site_is_mounted(served: Served) -> None:
    for mount in ("/elsewhere", "//evil.example", "\xff"):
        head = f"Host: HOST\nConnection: close\nDaphne-Root-Path: {mount}\n\n"
        told = answer(connect(served, "GET /accounts/login/ HTTP/1.1\n" + head))
        assert told.startswith("HTTP/1.1 200 "), told[:200]
        assert "elsewhere" not in told
        assert "evil" not in told
