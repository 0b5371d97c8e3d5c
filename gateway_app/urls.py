"""Addresses of the pages and of the API."""

from django.urls import path

from gateway_app import views
from gateway_app.api.routes import api

urlpatterns = [
    path("api/v1/", api.urls),
    path("", views.chat, name="chat"),
    path("manifest.webmanifest", views.manifest, name="manifest"),
    path("c/<uuid:session_id>/", views.chat, name="conversation"),
    path("diagram/", views.diagram_frame, name="diagram_frame"),
]
