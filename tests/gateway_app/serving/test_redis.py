"""A server whose wake-ups go over Redis."""

import os

import pytest

from tests.gateway_app.serving.conftest import Site, Tab

pytestmark = pytest.mark.redis


def test_it_serves_over_redis_and_ends_well(site: Site) -> None:
    served = site.start(REDIS_URL=os.environ["REDIS_URL"]).ready()
    assert "Redis" in served.read_until("Database:")
    assert served.get("/readyz").json()["channelLayer"] == "ok"
    with Tab(served, Authorization=f"Bearer {site.token()}") as tab:
        assert tab.ask("hello", protocol="hermes.v1")["ok"]
    assert served.end() == 0
    assert not any("Traceback" in line for line in served.said), served.said


def test_it_serves_one_file_from_two_servers_that_share_redis(site: Site) -> None:
    shared = {"REDIS_URL": os.environ["REDIS_URL"]}
    both = [site.start(**shared).ready() for _ in range(2)]
    alone = site.manage("serve", "--port", "0")
    assert alone.returncode == 1
    assert "already serves" in alone.stdout
    assert [served.end() for served in both] == [0, 0]


def test_it_tells_lists_at_one_server_what_became_of_sessions_at_another(site: Site) -> None:
    one, other = (site.start(REDIS_URL=os.environ["REDIS_URL"]).ready() for _ in range(2))
    header = {"Authorization": f"Bearer {site.token()}"}
    with Tab(one, **header) as here, Tab(other, **header) as there:
        for tab in (here, there):
            assert tab.ask("hello", protocol="hermes.v1")["ok"]
        made = here.ask("session.create", clientMessageId="a", title="Made elsewhere")
        session_id = made["result"]["session"]["id"]
        heard = there.until(lambda frame: frame.get("type") == "session")
        assert (heard["session"]["id"], heard["session"]["title"]) == (session_id, "Made elsewhere")
        assert here.ask("session.delete", sessionId=session_id)["ok"]
        gone = there.until(lambda frame: frame.get("type") == "gone")
        assert gone == {"type": "gone", "sessionId": session_id}
