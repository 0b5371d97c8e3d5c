"""Agents, turns, sockets, pages."""

__version__ = "0.1.0"
