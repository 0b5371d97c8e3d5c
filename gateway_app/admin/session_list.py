"""The list of sessions: its filters, and what each line says beside the session's own row."""

from typing import Any, Final

from django.contrib import admin
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from gateway_app.admin import cells, words
from gateway_app.admin.words import Word
from gateway_app.models import Turn
from gateway_app.selectors.session_lines import SessionLine, last_ended, read_lines
from gateway_app.selectors.verdicts import CAUGHT_UP, REBUILT
from sessions_app.admin import running_now
from sessions_app.changelist import KeysetChangeList
from sessions_app.models import Session

DELETED: Final = "deleted"
FAILURES: Final = ("failed", "interrupted")
_EMPTY: Final = SessionLine()


class SessionChangeList(KeysetChangeList):
    """Each session of the page carries its line: two more statements, whatever the page holds."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        sessions = list(self.result_list)
        lines = read_lines([session.pk for session in sessions]) if sessions else {}
        for session in sessions:
            session.__dict__["line"] = lines.get(session.pk, _EMPTY)


def line_of(session: Session) -> SessionLine:
    line: SessionLine = session.__dict__.get("line", _EMPTY)
    return line


def _turns() -> QuerySet[Turn]:
    return Turn.objects.filter(session_id=OuterRef("pk"))


class StateFilter(admin.SimpleListFilter):
    """Deleted sessions are listed only where they are asked for."""

    title = _("state")
    parameter_name = "is"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [(value, gettext(name)) for value, name in words.SESSION_FILTERS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        chosen = self.value()
        if chosen == DELETED:
            return queryset.filter(deleted_at__isnull=False)
        live = queryset.filter(deleted_at__isnull=True)
        current = live.filter(state=Session.State.ACTIVE)
        match chosen:
            case "running":
                return current.filter(running_now())
            case "waiting":
                return current.filter(Exists(_turns().filter(state="waiting_approval")))
            case "failed":
                ended = current.exclude(running_now()).annotate(ended_as=last_ended("state"))
                return ended.filter(ended_as__in=FAILURES)
            case "idle":
                return current.exclude(running_now())
            case "ended":
                return live.filter(state=Session.State.ENDED)
        return live


class VerdictFilter(admin.SimpleListFilter):
    title = _("verdict")
    parameter_name = "had"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [("rebuild", gettext("Had a rebuild")), ("catch_up", gettext("Caught up"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        met = {"rebuild": REBUILT, "catch_up": CAUGHT_UP}.get(self.value() or "")
        return queryset.filter(Exists(_turns().filter(met))) if met else queryset


class LastActivityFilter(admin.DateFieldListFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = _("last activity")


class FailedTurnFilter(admin.SimpleListFilter):
    title = _("failed turn")
    parameter_name = "failed"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [("yes", gettext("Has a failed turn")), ("no", gettext("Has none"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        failed = Q(pk__in=Turn.objects.filter(state="failed").values("session_id"))
        match self.value():
            case "yes":
                return queryset.filter(failed)
            case "no":
                return queryset.exclude(failed)
        return queryset


def _queued(count: int) -> str:
    return ngettext("%(count)d queued", "%(count)d queued", count) % {"count": count}


def state_cell(session: Session, shown: str) -> SafeString:
    """What the session does now, or how its last turn ended. `shown` is its row's own state."""
    line = line_of(session)
    if session.deleted_at:
        return cells.mark(words.SESSION_STATES["deleted"])
    word = words.word_of(words.SESSION_STATES, shown)
    if shown == "running" and line.waiting:
        word = Word(f"{word.text}, {_queued(line.waiting)}", word.icon, word.tone)
    if shown == "idle" and line.approvals:
        word = words.TURN_STATES["waiting_approval"]
    elif shown == "idle" and line.waiting:
        word = Word(_queued(line.waiting), "clock")
    elif shown == "idle" and line.last_state in FAILURES:
        ended = words.TURN_STATES[line.last_state]
        why = gettext(words.ERRORS.get(line.last_error, line.last_error))
        word = Word(f"{ended.text}: {why}" if why else ended.text, ended.icon, ended.tone)
    return cells.mark(word)


def warmth_cell(session: Session) -> SafeString | str:
    """The verdicts' shares as a bar, the warm one as a number, and of how many turns."""
    line = line_of(session)
    if not line.turns:
        return cells.NOTHING
    turns = ngettext("of %(count)d turn", "of %(count)d turns", line.turns) % {"count": line.turns}
    if not line.shares.total:
        return cells.two_lines(cells.NOTHING, cells.value(turns))
    percent = line.shares.percent("reuse")
    bar = format_html("{} <bdi>{} %</bdi>", cells.verdict_bar(line.shares), percent)
    return cells.two_lines(bar, cells.value(turns))


def cached_cell(session: Session) -> SafeString | str:
    line = line_of(session)
    percent = cells.cached_percent(line.input_tokens, line.cached_tokens)
    return cells.NOTHING if percent is None else cells.value(f"{percent} %")
