"""The ASGI application: HTTP by Django behind its static files, websockets behind one door."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hermes_site.settings")

from django.core.asgi import get_asgi_application

django_app = get_asgi_application()

from channels.routing import ProtocolTypeRouter

from gateway_app.host import ensure_started
from gateway_app.routing import websocket_urlpatterns
from hermes_site.door import Door
from hermes_site.static import with_static_files
from hermes_site.types import ASGIApp, Receive, Scope, Send


def with_host(app: ASGIApp) -> ASGIApp:
    """`app`, called only once this process's gateway runs (under any ASGI server)."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        await ensure_started()
        await app(scope, receive, send)

    return call


application = ProtocolTypeRouter(
    {
        "http": with_static_files(with_host(django_app)),
        "websocket": with_host(Door(websocket_urlpatterns)),
    }
)
