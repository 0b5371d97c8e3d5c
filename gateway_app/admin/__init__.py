"""The admin of agents, turns, tokens and transcripts. Importing a module registers its pages."""

from django.contrib import admin

from gateway_app.admin import agents, sessions, tokens, turns

__all__ = ["agents", "sessions", "tokens", "turns"]

admin.site.site_title = "Hermes administration"
admin.site.site_header = "Hermes administration"
admin.site.index_title = "Administration"
