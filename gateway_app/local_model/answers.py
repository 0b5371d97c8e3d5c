"""The tokens that the model itself chose for its answers.

A text has many tokenisations, and a model does not always write the one that a tokeniser would
make of its text: read back as text, an answer then differs from what the model's memory holds
from the first such place on (seen: 42 % of the prompt found instead of 99 %). So the tokens are
kept, and stand in the next prompt instead of the text.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

Piece = tuple[str, int | None]
"""A text as it came, and its token; None if it came of several (a character of many bytes)."""

Token = int | str
"""A token, or a text that is still to be made tokens."""

MAX_SESSIONS: Final = 1024
MAX_SESSION_TOKENS: Final = 8192
"""More than the model's window: what fell out of it is of no use."""


@dataclass(slots=True)
class _Conversation:
    answers: OrderedDict[str, tuple[Piece, ...]] = field(default_factory=OrderedDict)
    tokens: int = 0


class Answers:
    """The answers of the conversations that spoke last, as tokens. Bounded."""

    def __init__(
        self, *, max_sessions: int = MAX_SESSIONS, max_session_tokens: int = MAX_SESSION_TOKENS
    ) -> None:
        self._max_sessions = max_sessions
        self._max_session_tokens = max_session_tokens
        self._conversations: OrderedDict[str, _Conversation] = OrderedDict()

    def remember(self, session: str, pieces: Iterable[Piece]) -> None:
        """The answer, whole or cut off, can be recalled; the oldest ones may be forgotten."""
        answer = tuple(pieces)
        kept = self._conversations.setdefault(session, _Conversation())
        self._conversations.move_to_end(session)
        if len(self._conversations) > self._max_sessions:
            self._conversations.popitem(last=False)
        text = "".join(piece for piece, _ in answer)
        kept.tokens += len(answer) - len(kept.answers.pop(text, ()))
        kept.answers[text] = answer
        while kept.tokens > self._max_session_tokens:
            _, forgotten = kept.answers.popitem(last=False)
            kept.tokens -= len(forgotten)

    def recall(self, session: str, text: str) -> list[Token]:
        """The tokens of the session's answer `text`; the text itself if it is not known.

        Known are also the beginnings of answers, up to any of their tokens: a person who stops an
        answer may have seen less of it than was written.
        """
        kept = self._conversations.get(session)
        if kept is None:
            return [text]
        answer = kept.answers.get(text)
        if answer is not None:
            return _tokens(answer)
        for whole, answer in reversed(kept.answers.items()):
            if whole.startswith(text) and (count := _pieces_of(answer, len(text))) is not None:
                return _tokens(answer[:count])
        return [text]


def _tokens(pieces: Iterable[Piece]) -> list[Token]:
    return [text if token is None else token for text, token in pieces]


def _pieces_of(answer: tuple[Piece, ...], length: int) -> int | None:
    """How many pieces make the answer's first `length` characters; None: it ends inside one."""
    for count, (text, _) in enumerate(answer):
        if length <= 0:
            return count if length == 0 else None
        length -= len(text)
    return len(answer) if length == 0 else None
