"""What the admin's History tells of changes that no form made, in each reader's language."""

from typing import cast

from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import Model
from django.http import HttpRequest

from sessions_app.sentences import Sentence


def note_change(request: HttpRequest, row: Model, sentence: Sentence) -> None:
    """The row's History says what whoever asks did to it."""
    LogEntry.objects.log_actions(
        cast(int, request.user.pk), [row], CHANGE, sentence.shape(), single_object=True
    )
