"""Refusals know what they were made of: English for programs, the reader's language for people."""

import pytest
from django.utils import translation

from gateway_app.errors import ImportRefused, QueueFull
from gateway_app.providers import failures
from gateway_app.providers.failures import Wording, failed_status
from sessions_app.errors import Refusal, SessionEnded, SessionNotFound
from sessions_app.sentences import notice_part, quote, say, translated_part

KEPT = say("Your message is kept.")


def german(refusal: Refusal) -> str:
    with translation.override("de"):
        return refusal.sentence.translated()


def test_it_is_english_whatever_language_is_active() -> None:
    with translation.override("de"):
        assert str(SessionNotFound()) == "This conversation does not exist."
        assert "32 messages already wait here." in str(QueueFull(32))


@pytest.mark.parametrize(
    ("refusal", "sentence"),
    [
        (SessionNotFound(), "Diese Unterhaltung gibt es nicht."),
        (
            SessionEnded(None),
            "Diese Unterhaltung ist beendet. Schreiben Sie in der, die ihr folgt.",
        ),
        (
            ImportRefused(12_000, say("it nests too deep.")),
            "Zeile 12.000 kann nicht importiert werden: Sie ist zu tief verschachtelt.",
        ),
        (
            failures.silent(0.5, Wording(), started=False),
            "Der Modellanbieter antwortete 0,5 s lang nicht. Ihre Nachricht bleibt erhalten."
            " Versuchen Sie es später noch einmal.",
        ),
    ],
)
def test_it_is_said_in_the_active_language(refusal: Refusal, sentence: str) -> None:
    assert german(refusal) == sentence


@pytest.mark.parametrize("status", range(300, 600))
def test_it_leaves_no_failure_of_a_provider_in_english(status: int) -> None:
    told = {"content-type": "application/json"}
    error = failed_status(status, {"message": "Nope"}, told, Wording()).error
    with translation.override("de"):
        for text, _ in error.sentence.parts:
            assert translation.gettext(text) != text


def test_it_reads_a_stored_notice_in_each_readers_language() -> None:
    part = notice_part(say("%(who)s does not know this model.", who=say("The local model")) + KEPT)
    assert part["text"] == "The local model does not know this model. Your message is kept."
    with translation.override("de"):
        shown = "Das lokale Modell kennt dieses Modell nicht. Ihre Nachricht bleibt erhalten."
        assert translated_part(part) == shown
    with translation.override("en"):
        assert translated_part(part) is None


@pytest.mark.parametrize(
    "sentences",
    [
        None,
        [],
        "Your message is kept.",
        [{"text": "Your message is kept."}],
        [{"text": "Something of a later version.", "values": {}}],
        [{"text": "Your message is kept.", "values": {}}, 7],
        quote("%(text)s").shape(),
    ],
)
def test_it_leaves_alone_what_it_does_not_know(sentences: object) -> None:
    with translation.override("de"):
        assert translated_part({"text": "As it was stored.", "sentences": sentences}) is None


def test_it_is_neither_flooded_nor_drowned_by_what_a_raw_writer_left() -> None:
    deep: list[dict[str, object]] = [{"text": "Your message is kept.", "values": {}}]
    for _ in range(5000):
        deep = [{"text": "Check %(variable)s.", "values": {"variable": deep}}]
    often = [{"text": "%(a)s" * 1000, "values": {"a": "a" * 1000}}]
    flood = [{"text": "Check %(variable)s.", "values": {"variable": often}}]
    with translation.override("de"):
        for sentences in (deep, flood):
            shown = translated_part({"sentences": sentences})
            assert shown is None or len(shown) < 100


def test_it_makes_no_room_for_widths_and_fills_values_once() -> None:
    wide = [
        {"text": "Your message is kept.", "values": {}},
        {
            "text": "Check %(variable)s.",
            "values": {"variable": "%(variable)s %(x)999999999s"},
        },
    ]
    with translation.override("de"):
        shown = translated_part({"sentences": wide})
    assert shown == "Ihre Nachricht bleibt erhalten. Prüfen Sie %(variable)s %(x)999999999s."
