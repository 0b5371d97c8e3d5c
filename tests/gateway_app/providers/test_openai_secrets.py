"""No key and no password gets out."""

import logging

import pytest

from tests.fake_model_server import FakeModelServer, Script
from tests.gateway_app.providers.asking import deltas, failure
from tests.gateway_app.providers.conftest import KEY, MakeProvider


async def test_it_names_no_key_in_any_error_log_or_repr(
    make_provider: MakeProvider, server: FakeModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider = make_provider(max_retries=0)
    said = {"message": f"Wrong {KEY}, sk-Other12345, https://me:pw@host/", "type": "invalid"}
    broken = b'data: {"error": {"code": 400, "message": "Bad key ' + KEY.encode() + b'"}}\n\n'
    for script in (
        *(Script(status=status, error=said) for status in (400, 401, 403, 404, 422, 429, 500)),
        Script(status=400, error=f"Wrong key {KEY}"),
        Script(raw=[broken]),
    ):
        server.script(script)
        error = await failure(provider)
        assert KEY not in str(error)
        assert "Other12345" not in str(error)
        assert "me:pw" not in str(error)
        assert error.__cause__ is None
        assert error.__context__ is None
        logging.getLogger("tests").exception("It failed", exc_info=error)
    assert KEY not in caplog.text
    assert KEY not in repr(provider)
    assert KEY not in provider.fingerprint


async def test_its_fingerprint_changes_with_key_and_address(
    make_provider: MakeProvider, server: FakeModelServer
) -> None:
    one = make_provider().fingerprint
    assert one == make_provider().fingerprint
    assert one != make_provider(api_key="another").fingerprint
    assert one != make_provider(base_url=server.url + "/").fingerprint


async def test_it_logs_in_with_the_name_and_password_of_an_address(
    make_provider: MakeProvider, server: FakeModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    address = server.url.replace("http://", "http://me:p%40ss@")
    await deltas(make_provider(api_key=None, base_url=address))
    assert server.requests[0].headers["authorization"] == "Basic bWU6cEBzcw=="
    assert "p%40ss" not in caplog.text
    assert "p@ss" not in caplog.text
