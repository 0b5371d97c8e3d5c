"""An agent's versions side by side, and the way to move running conversations to the current."""

from dataclasses import dataclass
from typing import Any, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_safe

from gateway_app.admin import cells
from gateway_app.admin.history import note_change
from gateway_app.admin.word_diff import Piece, compare
from gateway_app.content_policy import TRUSTED_TYPES_POLICY
from gateway_app.models import Agent, AgentVersion
from gateway_app.services.agents import apply_version, sessions_behind
from sessions_app.errors import MessageInvalid
from sessions_app.sentences import say

COUNTED: Final = 10_000
"""More conversations than these are not counted before they are moved."""
POLICY: Final = {"Content-Security-Policy": TRUSTED_TYPES_POLICY}
SETTINGS: Final = {
    "model": (gettext_lazy("Model"), gettext_lazy("the site's default")),
    "fallback_models": (gettext_lazy("Fallback models"), gettext_lazy("none")),
    "tools": (gettext_lazy("Tools"), gettext_lazy("none")),
    "temperature": (gettext_lazy("Temperature"), gettext_lazy("the provider's")),
    "max_output_tokens": (gettext_lazy("Max output tokens"), gettext_lazy("the provider's")),
}


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    old: str
    new: str

    @property
    def changed(self) -> bool:
        return self.old != self.new


@dataclass(frozen=True, slots=True)
class VersionView:
    number: int
    author: str
    at: SafeString | str


def compare_url(agent: Agent, old: int, new: int) -> str:
    return reverse("admin:gateway_app_agent_compare", args=[agent.pk, old, new])


def urls(owner: admin.ModelAdmin[Agent]) -> list[URLPattern]:
    site = owner.admin_site

    @require_safe
    def compared(request: HttpRequest, agent_id: int, old: int, new: int) -> HttpResponse:
        return compare_view(owner, request, agent_id, old, new)

    @require_http_methods(["GET", "HEAD", "POST"])
    def applied(request: HttpRequest, agent_id: int) -> HttpResponse:
        return apply_view(owner, request, agent_id)

    return [
        path(
            "<int:agent_id>/compare/<int:old>/<int:new>/",
            site.admin_view(compared),
            name="gateway_app_agent_compare",
        ),
        path("<int:agent_id>/apply/", site.admin_view(applied), name="gateway_app_agent_apply"),
    ]


def _shown(version: AgentVersion, name: str) -> str:
    value = getattr(version, name)
    if value in (None, ""):
        return str(SETTINGS[name][1])
    return ", ".join(str(value).splitlines())


def _settings(old: AgentVersion, new: AgentVersion) -> list[Setting]:
    return [
        Setting(str(names[0]), _shown(old, name), _shown(new, name))
        for name, names in SETTINGS.items()
    ]


def _prompt(old: AgentVersion, new: AgentVersion) -> list[Piece]:
    return compare(old.system_prompt, new.system_prompt)


def _view(version: AgentVersion) -> VersionView:
    author = version.created_by.get_username() if version.created_by else "Hermes"
    return VersionView(version.number, author, cells.moment(version.created_at))


def _version(agent: Agent, number: int) -> AgentVersion:
    versions = AgentVersion.objects.select_related("created_by")
    return get_object_or_404(versions, agent=agent, number=number)


def _context(owner: admin.ModelAdmin[Agent], request: HttpRequest, agent: Agent) -> dict[str, Any]:
    return {
        **owner.admin_site.each_context(request),
        "opts": owner.opts,
        "agent": agent,
        "may_apply": owner.has_change_permission(request, agent),
    }


def compare_view(
    owner: admin.ModelAdmin[Agent], request: HttpRequest, agent_id: int, old: int, new: int
) -> HttpResponse:
    """What changed from one version to another: settings, and the prompt word by word."""
    if not owner.has_view_permission(request):
        raise PermissionDenied
    agent = get_object_or_404(Agent, pk=agent_id)
    before, after = _version(agent, old), _version(agent, new)
    last = agent.current_version
    context = {
        **_context(owner, request, agent),
        "title": gettext("%(agent)s, version %(old)d to %(new)d")
        % {"agent": agent.name, "old": old, "new": new},
        "old": _view(before),
        "new": _view(after),
        "settings": _settings(before, after),
        "prompt": _prompt(before, after),
        "earlier": compare_url(agent, old - 1, old) if old > 1 else "",
        "later": compare_url(agent, new, new + 1) if new < last else "",
        "with_current": compare_url(agent, old, last) if new < last else "",
    }
    return TemplateResponse(
        request, "admin/gateway_app/agent/compare.html", context, headers=POLICY
    )


def apply_view(owner: admin.ModelAdmin[Agent], request: HttpRequest, agent_id: int) -> HttpResponse:
    """Asks, and on POST moves the agent's running conversations to its current version."""
    agent = get_object_or_404(Agent, pk=agent_id)
    if not owner.has_change_permission(request, agent):
        raise PermissionDenied
    if request.method == "POST":
        return _apply(request, agent)
    count = sessions_behind(agent)[: COUNTED + 1].count()
    context = {
        **_context(owner, request, agent),
        "title": gettext("Apply version %d to running conversations") % agent.current_version,
        "count": min(count, COUNTED),
        "more": count > COUNTED,
    }
    return TemplateResponse(request, "admin/gateway_app/agent/apply.html", context, headers=POLICY)


def _apply(request: HttpRequest, agent: Agent) -> HttpResponse:
    try:
        number = int(request.POST.get("version", ""))
    except ValueError as exc:
        raise Http404(gettext("There is no such version.")) from exc
    try:
        moved = apply_version(agent=agent, number=number)
    except MessageInvalid as exc:
        messages.warning(request, exc.sentence.translated())
        return HttpResponseRedirect(reverse("admin:gateway_app_agent_apply", args=[agent.pk]))
    if moved:
        note_change(
            request,
            agent,
            say(
                "Applied version %(number)s. Running conversations that have it now: %(count)s.",
                number=str(number),
                count=moved,
            ),
        )
    messages.success(
        request,
        ngettext(
            "%(count)d conversation has version %(number)d from its next message on.",
            "%(count)d conversations have version %(number)d from their next message on.",
            moved,
        )
        % {"count": moved, "number": number},
    )
    return HttpResponseRedirect(reverse("admin:gateway_app_agent_change", args=[agent.pk]))
