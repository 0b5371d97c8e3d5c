"""Addresses of logging in, of health and of metrics."""

from django.contrib.auth.views import LogoutView, PasswordChangeDoneView
from django.urls import path
from django.views.i18n import set_language

from gateway_app import account_views, health_views, metrics_view

urlpatterns = [
    path("accounts/login/", account_views.LogIn.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("accounts/password/", account_views.SetPassword.as_view(), name="password"),
    path(
        "accounts/password/set/",
        PasswordChangeDoneView.as_view(template_name="accounts/password_set.html"),
        name="password_set",
    ),
    path("login/<str:secret>/", account_views.login_link, name="login_link"),
    path("i18n/language/", set_language, name="set_language"),
    path("healthz", health_views.healthz, name="healthz"),
    path("readyz", health_views.readyz, name="readyz"),
    path("metrics", metrics_view.metrics, name="metrics"),
]
