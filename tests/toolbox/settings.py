"""The product's settings with the tests' tools, for processes that tests serve."""

from hermes_site.settings import *  # noqa: F403
from hermes_site.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.toolbox"]
