"""A site to run requests against, and a gateway that starts no turn by itself."""

from dataclasses import replace

import pytest

from gateway_app.config import GatewayConfig
from tests.gateway_app.serving.conftest import empty_site, migrated, site

__all__ = ["empty_site", "migrated", "site"]


@pytest.fixture
def config(config: GatewayConfig) -> GatewayConfig:
    """Turns that tests put into the queue stay there."""
    return replace(config, heartbeat_s=3600)
