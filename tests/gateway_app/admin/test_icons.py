"""The admin's icons: each one that a page uses is there, and no other."""

import re
from pathlib import Path

from django.conf import settings

from gateway_app.admin import words

TEMPLATES = Path(settings.BASE_DIR) / "templates/admin"


def test_it_holds_the_icons_that_are_used_and_no_other():
    sets = (
        words.VERDICTS, words.TURN_STATES, words.SESSION_STATES, words.KINDS,
        words.MESSAGE_STATES, words.TOKEN_STATES,
    )  # fmt: skip
    used = {word.icon for known in sets for word in known.values()} - {"", "dot"}
    for template in TEMPLATES.rglob("*.html"):
        used |= set(re.findall(r'href="#i-([\w-]+)"', template.read_text()))
    held = re.findall(r'<symbol id="i-([\w-]+)"', (TEMPLATES / "icons.html").read_text())
    assert sorted(held) == sorted(used)
