"""A process that obeys soon, for messages to busy sessions."""

from dataclasses import replace

import pytest

from gateway_app.config import GatewayConfig


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    return replace(config, heartbeat_s=0.05)
