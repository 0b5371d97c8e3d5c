"""What stands in a log line, and what never does."""

import logging
import re
from typing import Final

_LINK: Final = re.compile(r"/login/[^/\s]+")
_OURS: Final = {"gateway_app", "hermes_site", "sessions_app"}
"""Loggers whose facts are known to hold no text of a message, no token and no key."""
_STANDARD: Final = logging.makeLogRecord({}).__dict__.keys() | {"message", "asctime", "taskName"}


class HideLoginSecrets(logging.Filter):
    """Replaces the secret of a login link in a request's path; every record is kept."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if "/login/" in message:
            record.msg, record.args = _LINK.sub("/login/...", message), ()
        return True


class DropProbes(logging.Filter):
    """Drops what Django says of a `/readyz` that is answered 503: no fault, and often asked."""

    def filter(self, record: logging.LogRecord) -> bool:
        request = getattr(record, "request", None)
        probed = getattr(request, "path_info", None) == "/readyz"
        return not (probed and getattr(record, "status_code", None) == 503)


class LineFormatter(logging.Formatter):
    """One line: the message, then what is particular about it, as `name=value`."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        facts = ""
        if record.name.partition(".")[0] in _OURS:
            names = record.__dict__.keys() - _STANDARD
            facts = "".join(f" {name}={record.__dict__[name]}" for name in sorted(names))
        return super().formatMessage(record) + facts
