"""`{{ entry|told_change }}`: what an entry of the admin's History says."""

import json

from django import template
from django.contrib.admin.models import LogEntry
from django.utils.translation import gettext

from sessions_app.sentences import read_shape

register = template.Library()


@register.filter
def told_change(entry: LogEntry) -> str:
    """In the active language. What earlier versions noted is an English sentence, to look up."""
    stored = entry.change_message
    try:
        sentence = read_shape(json.loads(stored))
    except (ValueError, RecursionError):
        return gettext(stored) if stored else ""
    return sentence.translated() if sentence else str(entry.get_change_message())
