"""The admin's site: Django's own, with our names and the live board among its pages.

Beside the admin package, not in it: the package's modules register with this very site.
"""

import logging
import re
from collections.abc import Callable
from functools import wraps
from traceback import walk_tb
from typing import Any, Final, TypeVar, cast

from django.contrib import messages
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import ValidationError
from django.db import DataError, ProgrammingError
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.urls import URLPattern, URLResolver, reverse
from django.utils.translation import gettext, gettext_lazy

from gateway_app.login_forms import AdminLogInForm
from sessions_app.changelist import KeysetChangeList

_View = TypeVar("_View", bound=Callable[..., HttpResponseBase])
logger: Final = logging.getLogger(__name__)

_BAD_VALUES: Final = (
    ValueError, TypeError, IndexError, OverflowError, ValidationError, DataError, ProgrammingError,
)  # fmt: skip
"""What Django and the databases raise where a value is not one of its column."""
_VALUES_USED: Final = frozenset({
    ChangeList.get_results.__code__,
    KeysetChangeList.get_results.__code__,
    ModelAdmin.response_action.__code__,
    AutocompleteSelect.optgroups.__code__,
})  # fmt: skip
"""Where Django asks the database for what was sent, without a look at it."""
_ID: Final = re.compile(r"\d{1,18}|[\da-fA-F-]{32,36}", re.ASCII)
_DATABASE: Final = ("django.", "psycopg.", "sessions_app.sqlite.")
"""Modules that take part in that."""
_PATTERNS: Final = ("__regex", "__iregex")

ROOMS: Final = ("sessions_app", "gateway_app")
"""Where the board stands: with the conversations, or with turns where those are out of sight."""


class HermesAdminSite(AdminSite):
    login_form = AdminLogInForm
    site_title = gettext_lazy("Hermes administration")
    site_header = gettext_lazy("Hermes administration")
    index_title = gettext_lazy("Administration")

    def admin_view(self, view: _View, cacheable: bool = False) -> _View:
        """Django's door, which takes no pattern from a query, and no value that fits no column.

        SQLite has Python match patterns, row by row: one with many ways holds the whole process up.
        Values of a forged query or form lead to the page as it is without them; faults of our own
        go on to where faults are logged.
        """

        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if any(name.lower().endswith(_PATTERNS) for name in request.GET):
                raise DisallowedModelAdminLookup("No list is narrowed by a pattern.")
            if not all(map(_ID.fullmatch, request.POST.getlist(ACTION_CHECKBOX_NAME))):
                return _without_values(request)
            try:
                response = view(request, *args, **kwargs)
                if isinstance(response, SimpleTemplateResponse):
                    response.render()  # the rows of a list are read here
            except _BAD_VALUES as exc:
                if not (request.GET or request.POST) or not _is_of_values(exc):
                    raise
                return _without_values(request, exc)
            return response

        return super().admin_view(cast(_View, guarded), cacheable)

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


def _is_of_values(exc: BaseException) -> bool:
    """Whether it was raised where Django used what was sent, and nobody else's code took part."""
    frames = [frame for frame, _ in walk_tb(exc.__traceback__)]
    used = next((at for at, frame in enumerate(frames) if frame.f_code in _VALUES_USED), None)
    return used is not None and all(
        f"{frame.f_globals.get('__name__')}.".startswith(_DATABASE) for frame in frames[used + 1 :]
    )


def _without_values(request: HttpRequest, exc: BaseException | None = None) -> HttpResponseRedirect:
    logger.warning("An admin page was sent values that it cannot use", exc_info=exc)
    told = gettext("The address or the form held a value that cannot be used here.")
    messages.error(request, told)
    return HttpResponseRedirect(request.path)


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
