"""The ASGI application: HTTP by Django, websockets behind one door."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hermes_site.settings")

from django.core.asgi import get_asgi_application

application = get_asgi_application()
