"""System checks of the environment: what is wrong, and the mend."""

from pathlib import Path
from tempfile import TemporaryFile

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.db import connection


def check_environment(**_: object) -> list[CheckMessage]:
    """One error for each variable that cannot be used as it stands."""
    return [Error(problem, id="hermes_site.E001") for problem in settings.ENVIRONMENT.problems]


def check_data_dir(**_: object) -> list[CheckMessage]:
    """The data directory takes new files, if anything of this configuration is kept there."""
    env = settings.ENVIRONMENT
    sqlite = connection.vendor == "sqlite"
    if (env.secret_key and not sqlite) or is_writable(env.data_dir):
        return []
    return [
        Error(
            f"The data directory {env.data_dir} cannot be written.",
            hint="Give it to the user that runs Hermes, or set HERMES_DATA_DIR to another one.",
            id="hermes_site.E002",
        )
    ]


def is_writable(folder: Path) -> bool:
    """`folder` exists now (it is made if need be) and takes new files from this process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
