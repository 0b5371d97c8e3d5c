"""The admin's site: Django's own, with our names and the live board among its pages.

Beside the admin package, not in it: the package's modules register with this very site.
"""

from typing import Any, Final

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver, reverse
from django.utils.translation import gettext_lazy

from gateway_app.login_forms import AdminLogInForm

ROOMS: Final = ("sessions_app", "gateway_app")
"""Where the board stands: with the conversations, or with turns where those are out of sight."""


class HermesAdminSite(AdminSite):
    login_form = AdminLogInForm
    site_title = gettext_lazy("Hermes administration")
    site_header = gettext_lazy("Hermes administration")
    index_title = gettext_lazy("Administration")

    def get_urls(self) -> list[URLResolver | URLPattern]:
        from gateway_app.admin.board import board_urls

        return [*board_urls(self), *super().get_urls()]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Django's list; the board stands with the sessions, for those who may open it."""
        from gateway_app.admin.board import may_view

        apps: list[Any] = super().get_app_list(request, app_label)
        apps.sort(key=lambda app: app["app_label"] != "sessions_app")  # conversations first
        home = next((app for app in apps if app["app_label"] in ROOMS), None)
        if home and may_view(request):
            home["models"].append(_board_entry())
        return apps


def _board_entry() -> dict[str, Any]:
    """What the index and the sidebar show of a model, for a page that is none."""
    return {
        "model": None,
        "name": gettext_lazy("Live board"),
        "object_name": "Board",
        "perms": {"add": False, "change": False, "delete": False, "view": True},
        "admin_url": reverse("admin:board"),
        "add_url": None,
        "view_only": True,
    }
