"""The product's settings, as if the collected static files were those of another release."""

from hermes_site.settings import *  # noqa: F403
from hermes_site.settings import STORAGES

STORAGES = STORAGES | {"staticfiles": {"BACKEND": "tests.browser.other_release.storage.Another"}}
