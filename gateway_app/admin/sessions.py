"""The session list with the product's cells, and the transcript page."""

import logging
from typing import Any, Final
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from gateway_app.admin import cells, words
from gateway_app.admin.facts import read_facts
from gateway_app.admin.transcript import read_page
from gateway_app.content_policy import TRUSTED_TYPES_POLICY
from sessions_app.admin import SessionAdmin
from sessions_app.models import Session

logger = logging.getLogger(__name__)

BEGINNING: Final = f"0.{UUID(int=0)}"
"""The cursor before every row."""

admin.site.unregister(Session)


def transcript_url(session_id: UUID) -> str:
    return reverse("admin:sessions_app_session_transcript", args=[session_id])


@admin.register(Session)
class TranscriptAdmin(SessionAdmin):
    """Sessions lead to their transcripts."""

    list_display = (
        "titled", "person_and_agent", "state_cell", "messages", "revision", "updated",
    )  # fmt: skip
    list_display_links = None

    @admin.display(description="title")
    def titled(self, session: Session) -> SafeString:
        title = cells.link(transcript_url(session.pk), self.shown_title(session))
        return cells.two_lines(title, cells.code(session.key))

    @admin.display(description="owner, agent")
    def person_and_agent(self, session: Session) -> SafeString:
        owner = session.owner.get_username() if session.owner else cells.NOTHING
        return cells.two_lines(cells.value(owner), cells.value(self.agent_and_model(session)))

    @admin.display(description="state")
    def state_cell(self, session: Session) -> SafeString:
        return cells.mark(words.word_of(words.SESSION_STATES, self.shown_state(session)))

    @admin.display(description="messages")
    def messages(self, session: Session) -> int:
        return session.message_count

    @admin.display(description="updated")
    def updated(self, session: Session) -> SafeString | str:
        return cells.moment(session.updated_at)

    def get_urls(self) -> list[URLPattern]:
        page = path(
            "<uuid:session_id>/transcript/",
            self.admin_site.admin_view(require_safe(self.transcript_view)),
            name="sessions_app_session_transcript",
        )
        return [page, *super().get_urls()]

    def transcript_view(self, request: HttpRequest, session_id: UUID) -> HttpResponse:
        """Every row of the session, for staff who may view sessions. Reading changes nothing."""
        session = self.get_queryset(request).select_related("owner").filter(pk=session_id).first()
        if not self.has_view_permission(request, session):
            raise PermissionDenied
        if session is None:
            raise Http404("This session does not exist.")
        logger.info(
            "staff read a transcript", extra={"session": str(session_id), "user": request.user.pk}
        )
        return TemplateResponse(
            request,
            "admin/sessions_app/session/transcript.html",
            self._context(request, session),
            headers={"Content-Security-Policy": TRUSTED_TYPES_POLICY},
        )

    def _context(self, request: HttpRequest, session: Session) -> dict[str, Any]:
        facts = read_facts(
            session,
            self.shown_state(session),
            link_agent=request.user.has_perm("gateway_app.view_agent"),
        )
        before, after = request.GET.get("before", ""), request.GET.get("after", "")
        try:
            page = read_page(session, facts.agent_name, before=before, after=after)
        except ValueError as exc:
            raise Http404("There is no such page of the transcript.") from exc
        return {
            **self.admin_site.each_context(request),
            "title": self.shown_title(session),
            "opts": self.opts,
            "original": session,
            "facts": facts,
            "page": page,
            "beginning": BEGINNING,
            "has_delete_permission": self.has_delete_permission(request, session),
        }
