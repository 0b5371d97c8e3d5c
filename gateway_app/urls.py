"""Addresses of the pages."""

from django.urls import path

from gateway_app import views

urlpatterns = [
    path("", views.chat, name="chat"),
    path("c/<uuid:session_id>/", views.chat, name="conversation"),
]
