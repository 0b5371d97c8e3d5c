"""Settings of the tests: SQLite on disk unless DATABASE_URL says PostgreSQL; nothing leaves it."""

import tempfile
from pathlib import Path

from hermes_site.settings import *  # noqa: F403
from hermes_site.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.toolbox", "tests.clean_slate"]
SECRET_KEY = "tests-only"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "testserver"]

if DATABASES["default"]["ENGINE"].endswith("sqlite"):
    _folder = Path(tempfile.mkdtemp(prefix="hermes-tests-"))
    for _settings in DATABASES.values():
        _settings["NAME"] = str(_folder / "hermes.sqlite3")
    DATABASES["default"]["TEST"] = {"NAME": str(_folder / "hermes-test.sqlite3")}

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
