"""Answers kept as the tokens that they were generated as."""

import pytest

from gateway_app.local_model.answers import Answers

PIECES = [("Par", 7), ("is", 8), (" 👌", None), ("!", 9)]


@pytest.fixture
def answers():
    kept = Answers()
    kept.remember("s", PIECES)
    return kept


def test_it_recalls_an_answer_as_its_tokens(answers):
    assert answers.recall("s", "Paris 👌!") == [7, 8, " 👌", 9]


@pytest.mark.parametrize(("text", "tokens"), [("Par", [7]), ("Paris", [7, 8]), ("", [])])
def test_it_recalls_an_answer_that_was_cut_off(answers, text, tokens):
    assert answers.recall("s", text) == tokens


@pytest.mark.parametrize("text", ["Pari", "Paris 👌?", "Paris 👌!!", "Berlin"])
def test_it_gives_a_text_back_that_is_no_answers_beginning(answers, text):
    assert answers.recall("s", text) == [text]


def test_it_does_not_mix_conversations(answers):
    assert answers.recall("t", "Paris") == ["Paris"]


def test_it_prefers_the_whole_answer_to_the_beginning_of_another(answers):
    answers.remember("s", [("Paris", 5)])
    answers.remember("s", [("Pa", 1), ("ris", 2), (" is", 3)])
    assert answers.recall("s", "Paris") == [5]


def test_it_recalls_the_latest_tokens_of_a_text(answers):
    answers.remember("s", [("Paris 👌!", 4)])
    assert answers.recall("s", "Paris 👌!") == [4]


def test_it_keeps_tokens_without_a_text():
    answers = Answers()
    answers.remember("s", [("a", 1), ("", 2), ("b", 3), ("", 4)])
    assert answers.recall("s", "ab") == [1, 2, 3, 4]


def test_it_forgets_the_oldest_answers_of_a_long_conversation():
    answers = Answers(max_session_tokens=4)
    for text in ("aa", "bb", "cc"):
        answers.remember("s", [(letter, ord(letter)) for letter in text])
    assert answers.recall("s", "aa") == ["aa"]
    assert answers.recall("s", "bb") == [98, 98]
    answers.remember("s", [("c", 1), ("c", 2)])
    assert answers.recall("s", "bb") == [98, 98]


def test_it_forgets_the_conversation_that_was_silent_longest():
    answers = Answers(max_sessions=2)
    for session in "aba":
        answers.remember(session, [("x", 1)])
    answers.remember("c", [("x", 1)])
    assert answers.recall("a", "x") == [1]
    assert answers.recall("b", "x") == ["x"]
