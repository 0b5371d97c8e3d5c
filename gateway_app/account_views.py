"""Logging in and out: passwords and one-time links."""

from typing import Any, Final

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from gateway_app import credentials, login_limits
from gateway_app.login_forms import LogInForm

DEVICE_S: Final = 31_536_000
MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


class LogIn(LoginView):
    """Logs in by password; this browser is known to the person's account from then on."""

    authentication_form = LogInForm
    template_name = "accounts/login.html"

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        response.set_signed_cookie(
            **login_limits.device_of(form.get_user().get_username()),
            max_age=DEVICE_S,
            httponly=True,
            samesite="Lax",
            secure=settings.SESSION_COOKIE_SECURE,
        )
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_invalid(form)
        if isinstance(form, LogInForm) and form.wait_s:
            response.status_code = 429
            response.headers["Retry-After"] = str(form.wait_s)
        return response


class PasswordForm(PasswordChangeForm):
    """Asks for the old password where there is one: whoever came by a link has none yet."""

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        if not user.has_usable_password():
            del self.fields["old_password"]


class SetPassword(PasswordChangeView):
    """Sets the person's password; every other web session of theirs ends."""

    form_class = PasswordForm
    template_name = "accounts/password.html"
    success_url = reverse_lazy("password_set")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def login_link(request: HttpRequest, secret: str) -> HttpResponse:
    """GET shows whom the link logs in and uses nothing up; POST logs in, once."""
    if request.method == "POST":
        user = credentials.redeem_login_link(secret)
        if user is not None:
            login(request, user, backend=MODEL_BACKEND)
            return redirect("/")
    else:
        user = credentials.peek_login_link(secret)
    if user is None:
        return render(request, "accounts/link_over.html", status=410)
    return render(request, "accounts/link.html", {"person": user})
