"""Requests that no client of ours makes, over raw connections to a real server."""

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.gateway_app.serving.conftest import Served, Site

MEGABYTE = 1024 * 1024


@pytest.fixture
def served(site: Site) -> Served:
    return site.start().ready()


def connect(served: Served, head: str) -> socket.socket:
    """A connection on which a request's head was sent; `HOST` in it is the server's."""
    place = urlsplit(served.url)
    connection = socket.create_connection((place.hostname, place.port), timeout=30)
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


def test_it_takes_an_import_that_is_larger_than_other_bodies(served: Served) -> None:
    size = f"Content-Type: application/x-ndjson\nContent-Length: {4 * MEGABYTE}"
    head = f"POST /api/v1/sessions/import HTTP/1.1\nHost: HOST\nConnection: close\n{size}\n\n"
    importing = connect(served, head)
    assert pour(importing, b"a" * MEGABYTE, 4) == 4
    assert answer(importing).startswith("HTTP/1.1 401 ")


def test_it_lets_nobody_say_where_the_site_is_mounted(served: Served) -> None:
    for mount in ("/elsewhere", "//evil.example", "\xff"):
        head = f"Host: HOST\nConnection: close\nDaphne-Root-Path: {mount}\n\n"
        told = answer(connect(served, "GET /accounts/login/ HTTP/1.1\n" + head))
        assert told.startswith("HTTP/1.1 200 "), told[:200]
        assert "elsewhere" not in told
        assert "evil" not in told
