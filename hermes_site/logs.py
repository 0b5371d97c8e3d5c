"""What never stands in a log line."""

import logging
import re
from typing import Final

_LINK: Final = re.compile(r"/login/[^/\s]+")


class HideLoginSecrets(logging.Filter):
    """Replaces the secret of a login link in a request's path; every record is kept."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if "/login/" in message:
            record.msg, record.args = _LINK.sub("/login/...", message), ()
        return True
