"""Django's sessions in the database, asked only for keys that it may have given out."""

from typing import Final

from django.contrib.sessions.backends import db

_LONGEST: Final = 40


class SessionStore(db.SessionStore):
    """Takes any other key for none: PostgreSQL breaks off at NUL, which a cookie can hold."""

    def _validate_session_key(self, key: str | None) -> bool:
        return bool(key and key.isascii() and key.isalnum() and 8 <= len(key) <= _LONGEST)
