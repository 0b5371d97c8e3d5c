"""An installed app whose tools tests call: `agent_tools.py`, and settings with it."""
