"""Admin lists that page by key: no row is counted, so a page costs the same at any length."""

from datetime import datetime
from typing import Any, TypeVar, cast
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.db.models.expressions import Combinable
from django.http import HttpRequest

from sessions_app.date_walk import DateWalk, walk_dates
from sessions_app.selectors import older_than

Row = TypeVar("Row", bound=Model)

RECENT_ROWS = 1000
"""How many of the newest rows a filter looks at for the values that it offers."""


class KeysetChangeList(ChangeList):
    """Newest first by (`keyset_field`, id); `older` is the cursor of the next page, or None."""

    older: str | None
    is_newest: bool

    @property
    def keyset_field(self) -> str:
        return cast("KeysetAdmin[Any]", self.model_admin).keyset_field

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str | Combinable]:
        return [f"-{self.keyset_field}", "-pk"]

    def get_results(self, request: HttpRequest) -> None:
        field = self.keyset_field
        cursor = request.GET.get(PAGE_VAR, "")
        rows = self.queryset.filter(self._beyond(field, cursor)) if cursor else self.queryset
        try:
            page = list(rows[: self.list_per_page + 1])
        except OverflowError as exc:  # a number in the address that no SQLite column holds
            raise IncorrectLookupParameters from exc
        self.is_newest = not cursor
        self.older = None
        if len(page) > self.list_per_page:
            last = page[self.list_per_page - 1]
            self.older = f"{getattr(last, field).isoformat()}~{last.pk}"
        self.result_list = page[: self.list_per_page]
        # equal counts: the search form then names no total, which nobody counted
        self.result_count = self.full_result_count = len(self.result_list)
        self.show_full_result_count = False
        self.show_admin_actions = bool(self.result_list)
        self.can_show_all = self.multi_page = False
        self.paginator = Paginator(self.result_list, self.list_per_page)

    def _beyond(self, field: str, cursor: str) -> Q:
        """The rows after the cursor's. Raises IncorrectLookupParameters for one not of ours."""
        moment_text, _, pk_text = cursor.partition("~")
        try:
            moment = datetime.fromisoformat(moment_text)
            pk = self.lookup_opts.pk.to_python(pk_text)
        except (ValueError, ValidationError) as exc:
            raise IncorrectLookupParameters from exc
        if moment.tzinfo is None or pk is None:
            raise IncorrectLookupParameters
        return older_than(field, moment, pk)

    @property
    def dates(self) -> DateWalk | None:
        return walk_dates(self) if self.date_hierarchy else None

    @property
    def older_query(self) -> str:
        return self.get_query_string({PAGE_VAR: self.older})

    @property
    def newest_query(self) -> str:
        return self.get_query_string()


class KeysetAdmin(admin.ModelAdmin[Row]):
    """A read-only list of many rows, newest first. Services write; the admin shows."""

    keyset_field = "created_at"
    change_list_template = "admin/keyset_change_list.html"
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return KeysetChangeList

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False

    def id_lookup(self, value: UUID) -> Q:
        """What a search for an id means."""
        return Q(pk=value)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Row], search_term: str
    ) -> tuple[QuerySet[Row], bool]:
        try:
            return queryset.filter(self.id_lookup(UUID(search_term.strip()))), False
        except ValueError:
            return super().get_search_results(request, queryset, search_term)


class RecentValuesFilter(admin.SimpleListFilter):
    """Filters one column by the values that the newest rows hold: bounded, never a full scan."""

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        # ids rise with the time of their making, and are indexed
        newest = model_admin.model._default_manager.order_by("-pk")
        found = set(newest.values_list(self.parameter_name, flat=True)[:RECENT_ROWS])
        chosen = self.value()
        if chosen:
            found.add(chosen)
        return [(value, value) for value in sorted(found) if value]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset.filter(**{str(self.parameter_name): value}) if value else queryset
