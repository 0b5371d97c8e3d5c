"""The admin of agents, turns, tokens and transcripts. Importing a module registers its pages."""

from gateway_app.admin import agents, sessions, tokens, turns

__all__ = ["agents", "sessions", "tokens", "turns"]
