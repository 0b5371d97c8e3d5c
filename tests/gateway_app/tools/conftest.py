"""The default agent has every tool; what the tests' own tools keep is forgotten."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async

from gateway_app.config import GatewayConfig
from gateway_app.models import AgentVersion
from gateway_app.tools.registry import all_tools
from sessions_app.models import Message
from tests.ag_ui_verifier import Json
from tests.fake_model_server import FakeModelServer
from tests.socket_client import SocketClient
from tests.toolbox import agent_tools


@pytest.fixture
def equipped(transactional_db: None) -> Iterator[None]:
    """The default agent may use all that is installed."""
    names = "\n".join(tool.name for tool in all_tools())
    AgentVersion.objects.filter(agent__is_default=True).update(tools=names)
    agent_tools.forget()
    yield
    agent_tools.forget()


def with_anthropic(config: GatewayConfig, model: FakeModelServer) -> GatewayConfig:
    """The model answers by way of Anthropic's Messages."""
    return replace(
        config,
        default_model="anthropic:claude-sonnet-5-5",
        anthropic_api_key="sk-ant-test",
        anthropic_base_url=model.url,
    )


@sync_to_async
def rows_of(session_id: str) -> list[tuple[str, str | None, list[Json]]]:
    """(kind, finish, parts) of the active rows, in order."""
    rows = Message.objects.filter(session_id=session_id, state="active")
    kept = rows.exclude(kind="session_meta").order_by("position")
    return [(row.kind, row.finish, row.parts) for row in kept]


def told(client: SocketClient) -> int:
    """How many results the client was told of."""
    events = [frame["event"]["type"] for frame in client.events()]
    return events.count("TOOL_CALL_RESULT")


def results(rows: list[tuple[str, str | None, list[Json]]]) -> list[tuple[str, object, str]]:
    """(call, error, content) of the tool rows."""
    parts = [part for kind, _, parts in rows if kind == "tool" for part in parts]
    return [(part["callId"], part.get("error", False), part["content"]) for part in parts]
