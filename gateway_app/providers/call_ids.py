"""The ids of tool calls: servers make them up, and refuse each other's.

OpenAI takes up to 40 characters, Anthropic letters, digits, `_` and `-`, and each id once in a
conversation. But whoever gave an id should get it back as it was: models such as Kimi read it, and
some gateways keep a signature in it.

So a call keeps the id that its server gave it, if that can be one; its row, the events and the
result know it by this one name. A wire whose server would refuse it sends another in its place, in
the call and in the result alike.
"""

import re
from hashlib import sha256
from typing import Final

PLAIN: Final = re.compile(r"[!-~]{1,4096}")
"""What any server may get back that gave it: no blanks, nothing that cannot be seen."""
STRICT: Final = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""What every server takes, whoever made it."""


def is_call_id(text: str) -> bool:
    """Whether a call may be known by the id that its server gave."""
    return PLAIN.fullmatch(text) is not None


def sent_call_id(text: str, taken: re.Pattern[str]) -> str:
    """The id as a server is sent it that takes `taken`; different ids stay different."""
    if taken.fullmatch(text):
        return text
    return f"call_{sha256(text.encode(errors='replace')).hexdigest()[:32]}"
