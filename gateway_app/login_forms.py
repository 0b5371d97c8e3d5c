"""The forms that ask for a password: as Django's own, but not as often as somebody likes."""

from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.utils.translation import ngettext

from gateway_app import login_limits


class _Counted(AuthenticationForm):
    wait_s = 0

    def clean(self) -> dict[str, Any]:  # Any: Django's cleaned values
        """As Django's, unless whoever tries must wait: then the password is not looked at."""
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if self.request is None or not name or not password:
            return super().clean()
        bounds = login_limits.bounds_of(self.request, name)
        self.wait_s = login_limits.take(bounds)
        if self.wait_s:
            raise ValidationError(_wait_words(self.wait_s), code="wait")
        cleaned = super().clean()
        login_limits.give_back(bounds)
        return cleaned


class LogInForm(_Counted):
    pass


class AdminLogInForm(_Counted, AdminAuthenticationForm):
    pass


def _wait_words(seconds: int) -> str:
    if seconds < 60:
        words = ngettext(
            "Too many tries. The next one is possible in %(count)d second.",
            "Too many tries. The next one is possible in %(count)d seconds.",
            seconds,
        )
        return words % {"count": seconds}
    minutes = -(-seconds // 60)
    words = ngettext(
        "Too many tries. The next one is possible in %(count)d minute.",
        "Too many tries. The next one is possible in %(count)d minutes.",
        minutes,
    )
    return words % {"count": minutes}
