"""Who somebody is now."""

from django.contrib.auth.models import User


def active_user(user_id: int | None) -> User | None:
    """The user; None where the account is gone or closed."""
    return None if user_id is None else User.objects.filter(pk=user_id, is_active=True).first()
