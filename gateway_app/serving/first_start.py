"""The first person of a new installation, and how they get in."""

from typing import Final

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.db import IntegrityError, transaction

ADMIN: Final = "admin"


def ensure_admin(password: str | None) -> User | None:
    """Somebody can administer this site; returns `admin` as long as they have no password.

    Where no user exists, `admin` is made. `password` is set once, on an `admin` without one. Raises
    ValidationError if it is one that nobody could choose in the pages either.
    """
    if not User.objects.exists():
        try:
            with transaction.atomic():
                User.objects.create_superuser(ADMIN)
        except IntegrityError:  # another process that starts now made it
            pass
    admin = User.objects.filter(username=ADMIN, is_active=True, is_superuser=True).first()
    if admin is None or admin.has_usable_password():
        return None
    if password is None:
        return admin
    validate_password(password, admin)
    admin.set_password(password)
    admin.save(update_fields=["password"])
    return None


def login_address(secret: str, base_url: str) -> str:
    """The full address of a one-time login link."""
    return f"{base_url.rstrip('/')}/login/{secret}/"
