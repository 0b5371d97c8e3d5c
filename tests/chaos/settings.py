"""The product's settings, with tools to call, and a channel layer that loses messages."""

from hermes_site.settings import ENVIRONMENT, INSTALLED_APPS
from tests.configured import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.toolbox"]

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "tests.chaos.lossy.LossyChannelLayer",
        "CONFIG": {"hosts": [ENVIRONMENT.redis_url]},
    }
}
