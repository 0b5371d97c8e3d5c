"""Reaches up from a commit to the agent caches of this process."""


def connect() -> None:
    """Connects the receivers; called once, when the app is ready."""
