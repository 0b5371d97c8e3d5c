"""Turns: what was asked, what the guard said, what it cost, how it ended. Read-only."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from gateway_app.admin import cells, words
from gateway_app.admin.parts import plain_text
from gateway_app.admin.transcript_pages import transcript_url
from gateway_app.models import Turn
from gateway_app.selectors.failures import told_failures
from gateway_app.selectors.stored import load_parts
from sessions_app.changelist import KeysetAdmin, RecentValuesFilter


class _WordFilter(admin.SimpleListFilter):
    """Filters a column by the values that have a word."""

    known: dict[str, str] = {}

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [(value, gettext(text)) for value, text in self.known.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset.filter(**{str(self.parameter_name): value}) if value else queryset


def _sources(known: dict[str, words.Word]) -> dict[str, str]:
    return {value: word.source for value, word in known.items()}


class StateFilter(_WordFilter):
    title = _("state")
    parameter_name = "state"
    known = _sources(words.TURN_STATES)


class VerdictFilter(_WordFilter):
    title = _("verdict")
    parameter_name = "verdict"
    known = _sources(words.VERDICTS)


class WorstVerdictFilter(_WordFilter):
    title = _("worst later verdict")
    parameter_name = "worst_verdict"
    known = _sources(words.VERDICTS)


class ReasonFilter(_WordFilter):
    title = _("reason")
    parameter_name = "reason"
    known = words.REASONS


class ErrorFilter(_WordFilter):
    title = _("error")
    parameter_name = "error_code"
    known = words.ERRORS


class ModelFilter(RecentValuesFilter):
    title = _("model")
    parameter_name = "model"


def _reads_sessions(request: HttpRequest) -> bool:
    return request.user.has_perm("sessions_app.view_session")


@admin.register(Turn)
class TurnAdmin(KeysetAdmin[Turn]):
    """What people wrote, and titles, are shown only to those who may view sessions."""

    list_display = (
        "state_cell", "session_cell", "verdict_cell", "time", "tokens_cell",
        "created",
    )  # fmt: skip
    list_display_links = ("state_cell",)
    list_filter = (
        StateFilter, VerdictFilter, ReasonFilter, WorstVerdictFilter, ErrorFilter, ModelFilter,
    )  # fmt: skip
    list_select_related = ("session", "author")
    date_hierarchy = "created_at"
    search_fields = ("author__username", "session__title")
    search_help_text = _("Search titles and authors, or give the id of a turn or a session.")
    fieldsets = (
        (
            None,
            {"fields": ("id", "state_cell", "session_cell", "content_cell", "when_busy")},
        ),
        (
            _("Coherence guard"),
            {
                "fields": (
                    "verdict_cell", "baseline", "revision", "sent_revision", "sent_rows",
                    "sent_digest", "sent_signature",
                )
            },
        ),
        (
            _("Model"),
            {
                "fields": (
                    "model", "fallback_from", "finish", "cached_cell", "input_tokens",
                    "cached_tokens", "cache_write_tokens", "output_tokens", "cost", "first_token",
                    "whole_turn",
                )
            },
        ),
        (_("Failure"), {"fields": ("error_code", "error_cell")}),
        (
            _("Run"),
            {
                "fields": (
                    "block", "generation", "runs", "lease_owner", "retry_of", "priority",
                    "accepted_seq", "created_at", "started_at", "stop_requested_at",
                    "finished_at",
                )
            },
        ),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Turn]:
        """Turns of deleted sessions are found by no door."""
        live = super().get_queryset(request).filter(session__deleted_at__isnull=True)
        return live.defer("content")

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        names = self.list_display
        if _reads_sessions(request):
            return names
        return tuple("untitled_cell" if name == "session_cell" else name for name in names)

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return self.search_fields if _reads_sessions(request) else ("author__username",)

    def get_fieldsets(self, request: HttpRequest, obj: Turn | None = None) -> Any:
        if _reads_sessions(request):
            return self.fieldsets
        shown = ("id", "state_cell", "untitled_cell", "when_busy")
        return [(None, {"fields": shown}), *self.fieldsets[1:]]

    def id_lookup(self, value: UUID) -> Q:
        return Q(pk=value) | Q(session_id=value)

    @admin.display(description=_("state"))
    def state_cell(self, turn: Turn) -> SafeString:
        return cells.turn_state(turn)

    @admin.display(description=_("session, author"))
    def session_cell(self, turn: Turn) -> SafeString:
        title = cells.link(
            transcript_url(turn.session_id), turn.session.title or gettext("Untitled")
        )
        return cells.two_lines(title, turn.author and cells.value(turn.author.get_username()))

    @admin.display(description=_("session, author"))
    def untitled_cell(self, turn: Turn) -> SafeString:
        author = turn.author and cells.value(turn.author.get_username())
        return cells.two_lines(cells.code(str(turn.session_id)), author)

    @admin.display(description=_("message"))
    def content_cell(self, turn: Turn) -> SafeString:
        stored = Turn.objects.filter(pk=turn.pk).values_list(Cast("content", TextField()))
        text = plain_text(load_parts(stored.get()[0] or "[]"))
        return format_html('<div class="h-text" dir="auto">{}</div>', text)

    @admin.display(description=_("error message"))
    def error_cell(self, turn: Turn) -> SafeString | str:
        told = told_failures([turn]).get(turn.pk)
        return cells.value(told) if told else cells.NOTHING

    @admin.display(description=_("verdict"))
    def verdict_cell(self, turn: Turn) -> SafeString | str:
        return cells.verdict(turn)

    @admin.display(description=_("cached"))
    def cached_cell(self, turn: Turn) -> SafeString | str:
        return cells.cached_share(turn)

    @admin.display(description=_("first token"))
    def time(self, turn: Turn) -> SafeString:
        whole = "" if turn.duration_ms is None else self.whole_turn(turn)
        return cells.two_lines(
            self.first_token(turn), whole and format_html(gettext("{} in all"), whole)
        )

    @admin.display(description=_("first token"))
    def first_token(self, turn: Turn) -> SafeString | str:
        return cells.milliseconds(turn.ttft_ms)

    @admin.display(description=_("whole turn"))
    def whole_turn(self, turn: Turn) -> SafeString | str:
        return cells.milliseconds(turn.duration_ms)

    @admin.display(description=_("cost"))
    def cost(self, turn: Turn) -> SafeString | str:
        return cells.dollars(turn.cost_usd)

    @admin.display(description=_("tokens, cached, cost"))
    def tokens_cell(self, turn: Turn) -> SafeString | str:
        cached = "" if turn.cached_tokens is None else self.cached_cell(turn)
        cost = "" if turn.cost_usd is None else self.cost(turn)
        return cells.two_lines(
            cells.tokens(turn), (cached or cost) and cells.side_by_side(cached, cost)
        )

    @admin.display(description=_("created"))
    def created(self, turn: Turn) -> SafeString | str:
        return cells.moment(turn.created_at, ago=False)
