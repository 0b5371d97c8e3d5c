"""Session keys: the route by which messages reach a session.

`agent:<agent>:<platform>:<chat type>:<chat>[:<thread>][:<participant>]`; parts are percent-encoded
where they hold `:` or `%`, so a key splits back into exactly the parts it was made of.
"""

from uuid import UUID

MAX_LENGTH = 200


def _quote(part: str) -> str:
    return part.replace("%", "%25").replace(":", "%3A")


def _unquote(part: str) -> str:
    return part.replace("%3A", ":").replace("%25", "%")


def build_key(agent: str, platform: str, chat_type: str, *parts: str) -> str:
    """The key of a route. Raises ValueError for an empty part or a key over MAX_LENGTH."""
    words = ("agent", agent, platform, chat_type, *parts)
    if not all(words):
        raise ValueError("A part of a session key is empty.")
    key = ":".join(_quote(word) for word in words)
    if len(key) > MAX_LENGTH:
        raise ValueError(f"The session key is longer than {MAX_LENGTH} characters.")
    return key


def split_key(key: str) -> tuple[str, ...]:
    """The parts of a key, `agent` first. Raises ValueError for something that is no key."""
    parts = tuple(_unquote(part) for part in key.split(":"))
    if len(parts) < 5 or parts[0] != "agent":
        raise ValueError(f"{key!r} is not a session key.")
    return parts


def web_key(agent: str, user_id: int, conversation: UUID) -> str:
    """The key of a web conversation: every "New chat" makes one."""
    return build_key(agent, "web", "dm", str(user_id), str(conversation))
