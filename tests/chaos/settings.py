"""The product's settings, with a channel layer that loses messages."""

from hermes_site.settings import *  # noqa: F403
from hermes_site.settings import ENVIRONMENT

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "tests.chaos.lossy.LossyChannelLayer",
        "CONFIG": {"hosts": [ENVIRONMENT.redis_url]},
    }
}
