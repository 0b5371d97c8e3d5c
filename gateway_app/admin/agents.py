"""Agents: saving the form makes a version; a version itself is never changed."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from gateway_app.admin import agent_pages, cells
from gateway_app.admin.words import Word
from gateway_app.models import DEFAULT_PROMPT, Agent, AgentVersion
from gateway_app.services import agents as services
from gateway_app.tools.base import Tool
from gateway_app.tools.registry import all_tools
from sessions_app.changelist import KeysetAdmin

VERSION_FIELDS = (
    "model", "fallback_models", "tools", "system_prompt", "temperature", "max_output_tokens",
)  # fmt: skip
MAX_FALLBACKS = 5
LISTED_VERSIONS = 20
DEFAULT = Word(gettext_noop("Default"), "check", "ok")
OWN_TOOLS = (
    gettext_noop("Tell the date, the weekday and the time."),
    gettext_noop(
        "Find earlier conversations of the person you talk with, newest first, by their titles."
    ),
)
"""First lines of the tools that Hermes brings along, for the catalogue."""


class AgentForm(forms.ModelForm[Agent]):
    """An agent's name and the content of its next version, filled from the current one."""

    make_default = forms.BooleanField(
        label=_("Default agent"),
        required=False,
        help_text=_("New sessions begin with it. To change that, make another agent the default."),
    )
    model = forms.CharField(
        label=_("Model"),
        max_length=128,
        required=False,
        help_text=_("PROVIDER:MODEL, such as openai:gpt-5 or local:smollm2. Empty: the site's."),
    )
    fallback_models = forms.CharField(
        label=_("Fallback models"),
        widget=forms.Textarea(attrs={"rows": 3, "cols": 60}),
        required=False,
        help_text=_(
            "One PROVIDER:MODEL a line, asked in this order when the model above is not there, does"
            " not answer or takes no more requests."
        ),
    )
    tools = forms.MultipleChoiceField(
        label=_("Tools"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_(
            "What the agent may do on behalf of whoever writes to it. Several servers and small"
            " models take no tools."
        ),
    )
    system_prompt = forms.CharField(
        label=_("System prompt"),
        widget=forms.Textarea(attrs={"rows": 14, "cols": 90, "dir": "auto"}),
        required=False,
        strip=False,
        help_text=_("Running sessions keep the version that they began with."),
    )
    temperature = forms.FloatField(
        label=_("Temperature"),
        required=False,
        min_value=0,
        max_value=2,
        help_text=_("Empty: the provider's."),
    )
    max_output_tokens = forms.IntegerField(
        label=_("Max output tokens"),
        required=False,
        min_value=1,
        help_text=_("Empty: the provider's."),
    )
    edited_version = forms.IntegerField(label="", widget=forms.HiddenInput, required=False)

    class Meta:
        model = Agent
        fields: ClassVar = ["name", "slug"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        tools = cast(forms.MultipleChoiceField, self.fields["tools"])
        tools.choices = _tool_choices([])
        if self.instance._state.adding:
            self.fields["system_prompt"].initial = DEFAULT_PROMPT
            return
        current = current_version(self.instance)
        for name in VERSION_FIELDS:
            self.fields[name].initial = getattr(current, name, None)
        tools.initial = current.tools.split() if current else []
        tools.choices = _tool_choices(tools.initial)
        self.fields["edited_version"].initial = self.instance.current_version
        self.fields["make_default"].initial = self.instance.is_default
        self.fields["make_default"].disabled = self.instance.is_default

    def clean_model(self) -> str:
        """Raises ValidationError where the model does not name its provider."""
        model = str(self.cleaned_data["model"]).strip()
        provider, colon, name = model.partition(":")
        if model and not (provider and colon and name):
            raise forms.ValidationError(gettext("Name the provider too, such as openai:gpt-5."))
        return model

    def clean_fallback_models(self) -> str:
        """One model a line. Raises ValidationError for one that does not name its provider."""
        names = list(dict.fromkeys(str(self.cleaned_data["fallback_models"]).split()))
        for name in names:
            if len(name) > 128 or not all(name.partition(":")):
                told = gettext("Write “%(name)s” with its provider, such as openai:gpt-5.")
                raise forms.ValidationError(told % {"name": name[:50]})
        if len(names) > MAX_FALLBACKS:
            told = gettext("Name at most %(count)s models.")
            raise forms.ValidationError(told % {"count": MAX_FALLBACKS})
        return "\n".join(names)

    def clean_tools(self) -> str:
        """One name a line, always in the same order."""
        return "\n".join(sorted(self.cleaned_data["tools"]))

    def clean(self) -> dict[str, Any] | None:
        """Raises ValidationError where somebody saved a version since this form was opened."""
        cleaned = super().clean()
        edited, current = self.cleaned_data.get("edited_version"), self.instance.current_version
        if not self.instance._state.adding and edited not in (None, current):
            told = gettext(
                "Version %(current)s was saved while you edited version %(edited)s. Open the agent"
                " again and repeat your change there."
            )
            raise forms.ValidationError(told % {"current": current, "edited": edited})
        return cleaned

    def clean_system_prompt(self) -> str:
        """Browsers send CRLF; a prompt that nobody changed must not differ from the stored one."""
        return str(self.cleaned_data["system_prompt"]).replace("\r\n", "\n")

    def version_values(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in VERSION_FIELDS}


def _tool_choices(chosen: Sequence[str]) -> list[tuple[str, str]]:
    """What is installed, and what the agent has all the same."""
    known = [(tool.name, f"{tool.name}: {_first_line(tool)}") for tool in all_tools()]
    names = {name for name, _ in known}
    gone = [
        (name, gettext("%(tool)s (not installed)") % {"tool": name})
        for name in chosen
        if name not in names
    ]
    return [*known, *gone]


def _first_line(tool: Tool) -> str:
    """Of the description; models read it in English, people in their language if it has one."""
    line = tool.description.partition("\n")[0]
    return gettext(line) if line else ""


def current_version(agent: Agent) -> AgentVersion | None:
    return agent.versions.filter(number=agent.current_version).first()


@admin.register(Agent)
class AgentAdmin(admin.ModelAdmin[Agent]):
    form = AgentForm
    list_display = (
        "name", "slug", "default_cell", "current_version", "current_model", "created",
    )  # fmt: skip
    search_fields = ("name", "slug")
    show_full_result_count = False
    readonly_fields = ("versions_table",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        current = AgentVersion.objects.filter(
            agent=OuterRef("pk"), number=OuterRef("current_version")
        )
        agents = super().get_queryset(request).order_by("-is_default", "name", "pk")
        return agents.annotate(model_now=Subquery(current.values("model")[:1]))

    def get_fieldsets(self, request: HttpRequest, obj: Agent | None = None) -> Any:
        names = ["name", "slug", "make_default"]
        content = [*VERSION_FIELDS, "edited_version"]
        if not self._edits(request, obj):
            shown = ["name", "slug", "default_cell", "current_version", "current_model"]
            return [(None, {"fields": [*shown, "versions_table"]})]
        if obj is None:
            return [(None, {"fields": names}), (_("First version"), {"fields": content})]
        return [
            (None, {"fields": names}),
            (_("Next version"), {"fields": content}),
            (_("Versions"), {"fields": ["versions_table"]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Agent | None = None) -> Any:
        """The slug stands in session keys: it is given once."""
        return self.readonly_fields if obj is None else (*self.readonly_fields, "slug")

    def get_prepopulated_fields(self, request: HttpRequest, obj: Agent | None = None) -> Any:
        return {"slug": ("name",)} if obj is None and self._edits(request, obj) else {}

    def _edits(self, request: HttpRequest, obj: Agent | None) -> bool:
        if obj is None:
            return self.has_add_permission(request)
        return self.has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        """Sessions stay bound to the versions that they began with."""
        return False

    def save_model(self, request: HttpRequest, obj: Agent, form: AgentForm, change: bool) -> None:
        values = {**form.version_values(), "created_by_id": request.user.pk}
        if change:
            services.rename_agent(agent=obj, name=obj.name)
            services.save_agent_version(agent=obj, **values)
        else:
            made = services.create_agent(slug=obj.slug, name=obj.name, **values)
            obj.pk = made.pk
        if form.cleaned_data["make_default"] and not obj.is_default:
            services.make_default_agent(agent=obj)

    def get_urls(self) -> list[URLPattern]:
        return [*agent_pages.urls(self), *super().get_urls()]

    @admin.display(description=_("default"))
    def default_cell(self, agent: Agent) -> SafeString | str:
        return cells.mark(DEFAULT) if agent.is_default else cells.NOTHING

    @admin.display(description=_("model"))
    def current_model(self, agent: Agent) -> SafeString:
        return cells.value(getattr(agent, "model_now", "") or gettext("the site's default"))

    @admin.display(description=_("created"))
    def created(self, agent: Agent) -> SafeString | str:
        return cells.moment(agent.created_at)

    @admin.display(description=_("versions"))
    def versions_table(self, agent: Agent) -> SafeString:
        newest = agent.versions.select_related("created_by").order_by("-number")[:LISTED_VERSIONS]
        rows = [
            {
                "url": reverse("admin:gateway_app_agentversion_change", args=[version.pk]),
                "version": version,
                "current": version.number == agent.current_version,
                "compare": agent_pages.compare_url(agent, version.number - 1, version.number)
                if version.number > 1
                else "",
                "at": cells.moment(version.created_at),
            }
            for version in newest
        ]
        all_versions = reverse("admin:gateway_app_agentversion_changelist")
        return render_to_string(
            "admin/gateway_app/agent/versions.html",
            {"rows": rows, "all_url": f"{all_versions}?agent__id__exact={agent.pk}"},
        )


@admin.register(AgentVersion)
class AgentVersionAdmin(KeysetAdmin[AgentVersion]):
    """What each version said, for staff who may view agents. Reached from its agent's page."""

    list_display = ("numbered", "model_used", "temperature", "max_output_tokens", "author", "at")
    list_select_related = ("agent", "created_by")
    fieldsets = (
        (None, {"fields": ("agent", "number", "author", "at")}),
        (
            _("Content"),
            {
                "fields": (
                    "model_used",
                    "fallbacks",
                    "tool_names",
                    "prompt_text",
                    "temperature",
                    "max_output_tokens",
                )
            },
        ),
    )

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: AgentVersion | None = None) -> bool:
        return request.user.has_perm("gateway_app.view_agent") or request.user.has_perm(
            "gateway_app.change_agent"
        )

    @admin.display(description=_("version"))
    def numbered(self, version: AgentVersion) -> SafeString:
        return cells.value(
            gettext("%(agent)s, version %(number)s")
            % {"agent": version.agent.name, "number": version.number}
        )

    @admin.display(description=_("model"))
    def model_used(self, version: AgentVersion) -> SafeString:
        return cells.value(version.model or gettext("the site's default"))

    @admin.display(description=_("fallback models"))
    def fallbacks(self, version: AgentVersion) -> SafeString | str:
        names = version.fallback_models.split()
        return cells.value(", ".join(names)) if names else cells.NOTHING

    @admin.display(description=_("tools"))
    def tool_names(self, version: AgentVersion) -> SafeString | str:
        names = version.tools.split()
        return cells.value(", ".join(names)) if names else cells.NOTHING

    @admin.display(description=_("system prompt"))
    def prompt_text(self, version: AgentVersion) -> SafeString:
        return format_html('<div class="h-text" dir="auto">{}</div>', version.system_prompt)

    @admin.display(description=_("made by"))
    def author(self, version: AgentVersion) -> str:
        return version.created_by.get_username() if version.created_by else "Hermes"

    @admin.display(description=_("made"))
    def at(self, version: AgentVersion) -> SafeString | str:
        return cells.moment(version.created_at)
