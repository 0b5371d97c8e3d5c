"""The live board: what runs, waits and fails in all processes, and how warm their caches are."""

import csv
from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_safe

from gateway_app.admin import cells, charts
from gateway_app.admin.board_rows import cache_rows, filters, turn_rows
from gateway_app.admin.history import note_change
from gateway_app.content_policy import TRUSTED_TYPES_POLICY
from gateway_app.models import Presence, Turn
from gateway_app.selectors import board as reads
from gateway_app.services.operators import retry_any_turn, stop_any_turn
from gateway_app.services.presence import ask_eviction
from sessions_app.errors import SessionError, SessionNotFound
from sessions_app.sentences import Sentence, say

POLICY: Final = {"Content-Security-Policy": TRUSTED_TYPES_POLICY}


def may_view(request: HttpRequest) -> bool:
    return request.user.has_perm("gateway_app.view_turn")


def may_act(request: HttpRequest) -> bool:
    return request.user.has_perm("gateway_app.change_turn")


def board_urls(site: admin.AdminSite) -> list[URLPattern]:
    return [
        path("board/", site.admin_view(board_view), name="board"),
        path("board/live/", site.admin_view(live_view), name="board_live"),
        path("board/tokens.csv", site.admin_view(tokens_csv), name="board_tokens_csv"),
        path("board/times.csv", site.admin_view(times_csv), name="board_times_csv"),
    ]


def _live(request: HttpRequest) -> dict[str, Any]:
    """What the page renews: turns and caches. Titles only for those who may view sessions."""
    if not may_view(request):
        raise PermissionDenied
    reads_sessions = request.user.has_perm("sessions_app.view_session")
    rows = turn_rows(named=reads_sessions)
    caches = reads.read_caches()
    shown = request.GET.get("show", "")
    return {
        "filters": filters(rows, shown),
        "shown": shown,
        "rows": [row for row in rows if shown in ("", row.group)],
        "caches": cache_rows(caches.processes),
        "counted": cells.count(reads.SHARE_TURNS) if caches.cut else "",
        "may_act": may_act(request),
    }


@require_http_methods(["GET", "HEAD", "POST"])
def board_view(request: HttpRequest) -> HttpResponse:
    """The board; a POST is one of its buttons."""
    if request.method == "POST":
        return _act(request)
    context = {
        **admin.site.each_context(request),
        **_live(request),
        "title": gettext("Live board"),
        "tokens": charts.tokens_chart(reads.read_days()),
        "times": charts.times_chart(reads.read_hours()),
    }
    return TemplateResponse(request, "admin/board/board.html", context, headers=POLICY)


@require_safe
def live_view(request: HttpRequest) -> HttpResponse:
    """The part of the board that is renewed while somebody looks."""
    return TemplateResponse(request, "admin/board/live.html", _live(request), headers=POLICY)


def _act(request: HttpRequest) -> HttpResponse:
    """One button: stop, remove, retry, evict. What was done is recorded."""
    if not (may_view(request) and may_act(request)):
        raise PermissionDenied
    if turn := request.POST.get("stop"):
        _stop(request, turn)
    elif turn := request.POST.get("retry"):
        _retry(request, turn)
    elif owner := request.POST.get("evict"):
        _evict(request, owner)
    shown = request.GET.urlencode()
    return HttpResponseRedirect(reverse("admin:board") + (f"?{shown}" if shown else ""))


def _turn(text: str) -> Turn:
    try:
        return Turn.objects.defer("content").get(pk=UUID(text))
    except (ValueError, Turn.DoesNotExist) as exc:
        raise Http404(gettext("This turn does not exist.")) from exc


def _retry(request: HttpRequest, text: str) -> None:
    turn = _turn(text)
    try:
        retry_any_turn(turn_id=turn.pk)
    except SessionError as exc:
        messages.warning(request, exc.sentence.translated())
    else:
        _note(request, turn, say("Tried again."), gettext("The turn is tried again."))


def _stop(request: HttpRequest, text: str) -> None:
    turn = _turn(text)
    try:
        stopped = stop_any_turn(turn_id=turn.pk)
    except SessionNotFound as exc:
        raise Http404(gettext("This turn does not exist.")) from exc
    if stopped.running:
        _note(request, turn, say("Stopped."), gettext("The turn is told to stop."))
    elif stopped.logged:
        told = gettext("The message no longer waits.")
        _note(request, turn, say("Removed from the queue."), told)
    else:
        messages.warning(request, gettext("This turn was over already."))


def _evict(request: HttpRequest, owner: str) -> None:
    presence = Presence.objects.filter(pk=owner.replace("\x00", "")).first()
    if presence is None or not ask_eviction(owner=owner):
        messages.warning(request, gettext("This process is no longer there."))
        return
    told = gettext("The process drops its idle agents within a few seconds.")
    _note(request, presence, say("Evicted idle agents."), told)


def _note(request: HttpRequest, row: Model, change: Sentence, told: str) -> None:
    note_change(request, row, change)
    messages.success(request, told)


def _csv(name: str, head: list[str], lines: Iterable[Iterable[object]]) -> HttpResponse:
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    writer = csv.writer(response)
    writer.writerow(head)
    writer.writerows(lines)
    return response


@require_safe
def tokens_csv(request: HttpRequest) -> HttpResponse:
    if not may_view(request):
        raise PermissionDenied
    head = ["day", "cached_tokens", "new_tokens", "output_tokens", "turns"]
    days = reads.read_days()
    lines = ((day.day, day.cached, day.new, day.output, day.turns) for day in days)
    return _csv("tokens.csv", head, lines)


@require_safe
def times_csv(request: HttpRequest) -> HttpResponse:
    if not may_view(request):
        raise PermissionDenied
    head = ["hour", "p50_ms", "p95_ms", "turns"]
    hours = reads.read_hours()
    lines = ((one.hour.isoformat(), one.p50_ms, one.p95_ms, one.turns) for one in hours)
    return _csv("first_word.csv", head, lines)
