"""The session list with the product's cells, and the transcript page."""

from contextlib import suppress
from typing import Any, Final

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from gateway_app.admin import cells
from gateway_app.admin.history import note_change
from gateway_app.admin.session_list import (
    DELETED,
    FailedTurnFilter,
    LastActivityFilter,
    SessionChangeList,
    StateFilter,
    VerdictFilter,
    cached_cell,
    line_of,
    state_cell,
    warmth_cell,
)
from gateway_app.admin.transcript_pages import transcript_url, transcript_urls
from gateway_app.services import operators
from sessions_app.admin import AgentFilter, ModelFilter, SessionAdmin, activity
from sessions_app.errors import SessionError, SessionNotFound
from sessions_app.models import Session
from sessions_app.sentences import say

LIST: Final = "sessions_app_session_changelist"
admin.site.unregister(Session)


@admin.register(Session)
class TranscriptAdmin(SessionAdmin):
    """Sessions lead to their transcripts."""

    change_list_template = "admin/sessions_app/session/change_list.html"
    list_display = (
        "titled", "person_and_agent", "state_cell", "warmth", "cached_and_cost", "updated",
    )  # fmt: skip
    list_display_links = None
    list_filter = (
        StateFilter, AgentFilter, ModelFilter, VerdictFilter, FailedTurnFilter,
        ("updated_at", LastActivityFilter), "pinned", "archived",
    )  # fmt: skip
    actions = ("restore",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return SessionChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        """Live sessions; in the list also deleted ones, where it is asked for them."""
        match = request.resolver_match
        if match and match.url_name == LIST and request.GET.get("is") == DELETED:
            return super(SessionAdmin, self).get_queryset(request)
        return super().get_queryset(request)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """What can be deleted cannot be restored, and the other way round."""
        actions = super().get_actions(request)
        actions.pop("delete_selected" if request.GET.get("is") == DELETED else "restore", None)
        return actions

    def has_restore_permission(self, request: HttpRequest) -> bool:
        return self.has_delete_permission(request)

    def delete_model(self, request: HttpRequest, obj: Session) -> None:
        with suppress(SessionNotFound):  # somebody else was first: it is gone, as wanted
            operators.delete_any_session(session_id=obj.pk)

    @admin.action(description=_("Restore the selected sessions"), permissions=["restore"])
    def restore(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        count = 0
        for session in queryset:
            try:
                operators.restore_any_session(session_id=session.pk)
            except SessionError as exc:
                self.message_user(
                    request, f"“{session}”: {exc.sentence.translated()}", messages.WARNING
                )
                continue
            note_change(request, session, say("Restored."))
            count += 1
        if count:
            told = ngettext(
                "%(count)d session restored.", "%(count)d sessions restored.", count
            ) % {"count": count}
            self.message_user(request, told, messages.SUCCESS)

    @admin.display(description=_("conversation"))
    def titled(self, session: Session) -> SafeString:
        text = self.shown_title(session)
        url = transcript_url(session.pk)
        title = cells.value(text) if session.deleted_at else cells.link(url, text)
        return cells.two_lines(title, cells.cut(line_of(session).snippet))

    @admin.display(description=_("person, agent"))
    def person_and_agent(self, session: Session) -> SafeString:
        owner = session.owner.get_username() if session.owner else cells.NOTHING
        return cells.two_lines(cells.value(owner), cells.cut(self.agent_and_model(session)))

    @admin.display(description=_("state"))
    def state_cell(self, session: Session) -> SafeString:
        return state_cell(session, activity(session))

    @admin.display(description=_("warm turns"))
    def warmth(self, session: Session) -> SafeString | str:
        return warmth_cell(session)

    @admin.display(description=_("cached, cost"))
    def cached_and_cost(self, session: Session) -> SafeString | str:
        cost = line_of(session).cost_usd
        return cells.two_lines(cached_cell(session), cost is not None and cells.dollars(cost))

    @admin.display(description=_("active"))
    def updated(self, session: Session) -> SafeString | str:
        """The last activity; of a deleted session, when it was deleted."""
        return cells.moment(session.deleted_at or session.updated_at, ago=False)

    def get_urls(self) -> list[URLPattern]:
        return [*transcript_urls(self), *super().get_urls()]
