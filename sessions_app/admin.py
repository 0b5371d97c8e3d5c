"""The bare list of sessions: read-only, but for deleting, which is the service's soft delete."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from sessions_app import services
from sessions_app.changelist import KeysetAdmin, RecentValuesFilter
from sessions_app.errors import SessionNotFound
from sessions_app.models import Session


def running_now() -> Q:
    """Sessions that a living run holds."""
    return Q(lease_expires_at__gt=timezone.now()) & ~Q(lease_owner="")


def activity(session: Session) -> str:
    """`running`, `idle` or `ended`."""
    if session.state == Session.State.ENDED:
        return "ended"
    expires_at = session.lease_expires_at
    return (
        "running" if session.lease_owner and expires_at and expires_at > timezone.now() else "idle"
    )


class StateFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "is"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [
            ("running", gettext("Running")),
            ("idle", gettext("Idle")),
            ("ended", gettext("Ended")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        match self.value():
            case "running":
                return queryset.filter(running_now())
            case "idle":
                return queryset.filter(state=Session.State.ACTIVE).exclude(running_now())
            case "ended":
                return queryset.filter(state=Session.State.ENDED)
        return queryset


class AgentFilter(RecentValuesFilter):
    title = _("agent")
    parameter_name = "agent"


class ModelFilter(RecentValuesFilter):
    title = _("model")
    parameter_name = "model"


@admin.register(Session)
class SessionAdmin(KeysetAdmin[Session]):
    """Every live session. The clock's columns are shown and belong to the database."""

    keyset_field = "updated_at"
    list_display: tuple[str, ...] = (
        "shown_title", "owner", "agent_and_model", "message_count", "revision",
        "shown_state", "updated_at",
    )  # fmt: skip
    list_filter: ClassVar[Any] = (
        StateFilter,
        AgentFilter,
        ModelFilter,
        "pinned",
        "archived",
        "updated_at",
    )
    list_select_related = ("owner",)
    search_fields = ("title", "key", "owner__username")
    search_help_text = _("Search titles, keys and owners, or give a session's id.")
    fieldsets = (
        (None, {"fields": ("title", "id", "key", "owner", "shown_state", "pinned", "archived")}),
        (_("Agent"), {"fields": ("agent", "agent_version", "model", "prompt_hash")}),
        (
            _("Transcript clock"),
            {
                "description": _("Kept by the database itself; nothing else may write it."),
                "fields": (
                    "revision", "removed_revision", "incarnation", "message_count", "next_block",
                ),
            },
        ),
        (
            _("Run"),
            {
                "fields": (
                    "open_block", "run_generation", "lease_owner", "lease_expires_at", "event_seq",
                ),
            },
        ),
        (_("Times"), {"fields": ("created_at", "updated_at", "ended_at")}),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        """A deleted session is found by no door."""
        return super().get_queryset(request).filter(deleted_at__isnull=True)

    def has_delete_permission(self, request: HttpRequest, obj: Session | None = None) -> bool:
        return request.user.has_perm("sessions_app.delete_session")

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Only the sessions themselves: their rows stay until a purge, so none is collected."""
        names = [str(session) for session in objs]
        return names, {str(self.opts.verbose_name_plural): len(names)}, set(), []

    def delete_model(self, request: HttpRequest, obj: Session) -> None:
        with suppress(SessionNotFound):  # somebody else was first: it is gone, as wanted
            services.delete_session(session_id=obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        for session in queryset:
            self.delete_model(request, session)

    @admin.display(description=_("title"))
    def shown_title(self, session: Session) -> str:
        return session.title or gettext("Untitled")

    @admin.display(description=_("agent, model"))
    def agent_and_model(self, session: Session) -> str:
        return ", ".join(filter(None, (session.agent, session.model)))

    @admin.display(description=_("state"))
    def shown_state(self, session: Session) -> str:
        return {"running": gettext("Running"), "idle": gettext("Idle"), "ended": gettext("Ended")}[
            activity(session)
        ]
