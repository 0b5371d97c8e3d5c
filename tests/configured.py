"""The product's settings; HERMES_TEST_CONFIG (JSON) changes the gateway's configuration."""

import json
import os
from dataclasses import replace
from functools import cache

from gateway_app import config
from hermes_site.settings import *  # noqa: F403

_known = config.gateway_config


@cache
def _changed() -> config.GatewayConfig:
    return replace(_known(), **json.loads(os.environ.get("HERMES_TEST_CONFIG", "{}")))


config.gateway_config = _changed
