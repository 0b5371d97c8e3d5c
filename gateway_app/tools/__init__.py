"""What an app's `agent_tools.py` imports to give agents tools: docs/tools.md."""

from gateway_app.tools.base import ToolContext, ToolError
from gateway_app.tools.registry import tool

__all__ = ["ToolContext", "ToolError", "tool"]
