"""`{% browser_catalogue %}`: the words of js/i18n.js, in the page's language."""

from functools import cache
from pathlib import Path

from babel.messages.pofile import read_po
from django import template
from django.conf import settings
from django.utils.encoding import force_str
from django.utils.html import json_script
from django.utils.safestring import SafeString
from django.utils.translation import get_language, to_locale

register = template.Library()

Messages = dict[str, str | list[str]]
CONTEXT_MARK = "\x04"
TOLD = "The chat shows it too."
"""What scripts/catalogue.py writes at the sentences that sessions_app/sentences.py marks."""


@register.simple_tag
def browser_catalogue() -> SafeString:
    """A `<script type="application/json" id="catalogue">`, which the policy lets stand inline."""
    return _script(get_language() or settings.LANGUAGE_CODE)


@cache
def _script(language: str) -> SafeString:
    catalogue = {"language": language, "messages": browser_messages(language)}
    return json_script(catalogue, "catalogue")


def browser_messages(language: str) -> Messages:
    """Every translated message of the domain `djangojs`, and the server's sentences that the chat
    shows; a message with plurals is a list.

    Empty for the language of the source, which needs no catalogue.
    """
    messages: Messages = {}
    for folder in settings.LOCALE_PATHS:
        texts = Path(folder, to_locale(language), "LC_MESSAGES")
        for domain, told_only in (("django", True), ("djangojs", False)):
            path = texts / f"{domain}.po"
            if path.exists():
                messages |= _read(path, told_only)
    return messages


def _read(path: Path, told_only: bool) -> Messages:
    """Babel's reader of compiled files would lose the contexts; so the source is read, once."""
    with path.open("rb") as file:
        catalogue = read_po(file)
    messages: Messages = {}
    for message in catalogue:
        msgid = message.id if isinstance(message.id, str) else message.id[0]
        # Babel decodes everything of a compiled file but the context
        prefix = f"{force_str(message.context)}{CONTEXT_MARK}" if message.context else ""
        text = message.string
        if told_only and TOLD not in message.auto_comments:
            continue
        if msgid and text and not message.fuzzy:
            messages[prefix + msgid] = text if isinstance(text, str) else list(text)
    return messages
