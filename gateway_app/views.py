"""The chat page. What it shows comes over the websocket; the page carries only where and who."""

from typing import Any, Final
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from gateway_app.config import gateway_config
from gateway_app.content_policy import TRUSTED_TYPES_POLICY, diagram_frame_policy
from gateway_app.release import release
from gateway_app.welcome import connectable, embedded_answers

STYLES: Final = tuple(
    f"gateway_app/css/{name}.css"
    for name in (
        "tokens", "base", "layout", "head", "overlay", "sheet", "palette", "find", "sidebar",
        "sessions", "welcome", "thread", "rows", "turn", "prose", "code", "composer", "queue",
        "gauge", "forced",
    )
)  # fmt: skip


@never_cache
@require_safe
@login_required
def chat(request: HttpRequest, session_id: UUID | None = None) -> HttpResponse:
    """The chat, at `/` and at a conversation's own address; the script reads which it is.

    Whether the conversation exists and is the caller's is said over the websocket, where every
    other read of it is authorised too.
    """
    user = request.user
    assert isinstance(user, User)
    name = user.get_full_name() or user.get_username()
    page = {
        "page": page_facts(user),
        "assets": assets(),
        "name": name,
        "styles": STYLES,
        "embedded": embedded_answers(),
        "providers": connectable(),
    }
    response = render(request, "gateway_app/chat.html", page)
    response.headers["Content-Security-Policy"] = TRUSTED_TYPES_POLICY
    return response


def page_facts(user: User) -> dict[str, Any]:
    """What the page's script needs before its first frame."""
    config = gateway_config()
    return {
        "user": {"id": user.pk},
        "socketPath": "/ws/v1/",
        "release": release(),
        "limits": {"maxFrameBytes": config.max_frame_bytes, "maxQueued": config.max_queued},
        "urls": {
            "login": reverse("login"),
            "password": reverse("password"),
            "me": reverse("api:me"),
            "admin": reverse("admin:index") if user.is_staff else None,
        },
    }


def assets() -> dict[str, str]:
    """Addresses of what the page's script loads only when an answer needs it."""
    return {
        "highlightWorker": static("gateway_app/js/highlight_worker.js"),
        "mathsStyles": static("gateway_app/vendor/katex/katex.css"),
        "diagramFrame": reverse("diagram_frame"),
    }


@require_safe
@xframe_options_sameorigin
def diagram_frame(request: HttpRequest) -> HttpResponse:
    """The page that draws diagrams inside the chat. It holds nothing of anybody's."""
    response = render(request, "gateway_app/diagram_frame.html")
    response.headers["Content-Security-Policy"] = diagram_frame_policy(request)
    return response


@require_safe
def manifest(request: HttpRequest) -> HttpResponse:
    """What a phone needs to keep the chat among its apps."""
    facts = {
        "name": "Hermes",
        "short_name": "Hermes",
        "start_url": reverse("chat"),
        "display": "standalone",
        "background_color": "#fcfdfd",
        "theme_color": "#0b6b66",
        "icons": [
            {
                "src": static("gateway_app/img/favicon.svg"),
                "sizes": "any",
                "type": "image/svg+xml",
                "purpose": "any",
            }
        ],
    }
    return JsonResponse(facts, content_type="application/manifest+json")
