"""The pages of one session: its transcript, what tells that it changed, and it as a file."""

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from gateway_app.admin.facts import read_facts
from gateway_app.admin.raw import export_raw
from gateway_app.admin.transcript import read_page
from gateway_app.api.answers import ExportResponse
from gateway_app.content_policy import TRUSTED_TYPES_POLICY
from gateway_app.selectors.board import read_baselines
from gateway_app.selectors.exports import FORMS, export_session
from gateway_app.views import assets
from sessions_app.admin import SessionAdmin, activity
from sessions_app.models import Session

logger: Final = logging.getLogger(__name__)

BEGINNING: Final = f"0.{UUID(int=0)}"
"""The cursor before every row."""

_Page = Callable[[SessionAdmin, HttpRequest, Session], HttpResponseBase]


def transcript_url(session_id: UUID) -> str:
    return reverse("admin:sessions_app_session_transcript", args=[session_id])


def transcript_urls(owner: SessionAdmin) -> list[URLPattern]:
    """Each page is for staff who may view sessions; reading changes nothing."""

    def view(show: _Page) -> Callable[..., HttpResponseBase]:
        @require_safe
        def read(request: HttpRequest, session_id: UUID) -> HttpResponseBase:
            return show(owner, request, _readable(owner, request, session_id))

        return owner.admin_site.admin_view(read)

    pages: dict[str, tuple[str, _Page]] = {
        "transcript": ("transcript/", transcript_page),
        "pulse": ("transcript/pulse/", pulse_page),
        "raw": ("transcript/raw/", raw_page),
        "export_jsonl": ("transcript/export.jsonl", jsonl_page),
        "export_markdown": ("transcript/export.md", markdown_page),
    }
    return [
        path(f"<uuid:session_id>/{where}", view(show), name=f"sessions_app_session_{name}")
        for name, (where, show) in pages.items()
    ]


def _readable(owner: SessionAdmin, request: HttpRequest, session_id: UUID) -> Session:
    """The session, for staff who may view sessions. Raises PermissionDenied, Http404."""
    session = owner.get_queryset(request).select_related("owner").filter(pk=session_id).first()
    if not owner.has_view_permission(request, session):
        raise PermissionDenied
    if session is None:
        raise Http404(gettext("This session does not exist."))
    return session


def _note_reading(request: HttpRequest, session: Session) -> None:
    """Who read which session; nothing of what."""
    logger.info(
        "staff read a transcript", extra={"session": str(session.pk), "user": request.user.pk}
    )


def pulse_of(session: Session, warm: Mapping[str, int]) -> dict[str, Any]:
    """What differs as soon as the page would. A run's log grows with every word: it is left out.

    `warm` are the baselines that processes tell.
    """
    return {
        "revision": session.revision,
        "block": session.open_block,
        "generation": session.run_generation,
        "updated": session.updated_at.isoformat(),
        "seq": 0 if session.open_block else session.event_seq,
        "title": session.title,
        "warm": dict(sorted(warm.items())),
    }


def pulse_page(owner: SessionAdmin, request: HttpRequest, session: Session) -> HttpResponse:
    return JsonResponse(pulse_of(session, read_baselines(session.pk)))


def transcript_page(owner: SessionAdmin, request: HttpRequest, session: Session) -> HttpResponse:
    """Every row of the session, a page at a time."""
    _note_reading(request, session)
    return TemplateResponse(
        request,
        "admin/sessions_app/session/transcript.html",
        _context(owner, request, session),
        headers={"Content-Security-Policy": TRUSTED_TYPES_POLICY},
    )


def raw_page(owner: SessionAdmin, request: HttpRequest, session: Session) -> HttpResponseBase:
    """The session's tables as JSON, shown by the browser as the text it is."""
    _note_reading(request, session)
    response = ExportResponse(export_raw(session.pk))
    response.headers["Content-Disposition"] = "inline"
    return response


def _export(request: HttpRequest, session: Session, form: str) -> HttpResponseBase:
    assert form in FORMS
    _note_reading(request, session)
    return ExportResponse(export_session(session=session, form=form))


def jsonl_page(owner: SessionAdmin, request: HttpRequest, session: Session) -> HttpResponseBase:
    return _export(request, session, "jsonl")


def markdown_page(owner: SessionAdmin, request: HttpRequest, session: Session) -> HttpResponseBase:
    return _export(request, session, "markdown")


def _context(owner: SessionAdmin, request: HttpRequest, session: Session) -> dict[str, Any]:
    warm = read_baselines(session.pk)
    facts = read_facts(
        session,
        activity(session),
        warm,
        link_agent=request.user.has_perm("gateway_app.view_agent"),
    )
    before, after = request.GET.get("before", ""), request.GET.get("after", "")
    try:
        page = read_page(session, facts.agent_name, before=before, after=after)
    except ValueError as exc:
        raise Http404(gettext("There is no such page of the transcript.")) from exc
    return {
        **owner.admin_site.each_context(request),
        "title": owner.shown_title(session),
        "opts": owner.opts,
        "original": session,
        "facts": facts,
        "page": page,
        "assets": assets(),
        "beginning": BEGINNING,
        "live": not (before or after),
        # as the script writes what the pulse's own address answers
        "pulse": json.dumps(pulse_of(session, warm), ensure_ascii=False, separators=(",", ":")),
        "has_delete_permission": owner.has_delete_permission(request, session),
    }
