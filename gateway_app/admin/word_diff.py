"""What changed between two texts, word by word, as pieces to show."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
_WORDS_AT_ONCE: Final = 4000
"""Longer stretches are shown as removed and added whole: the comparison would take too long."""
KEPT_CHARACTERS: Final = 240
"""How much of an unchanged stretch stays visible at each side of a change."""

Change = Literal["same", "out", "in", "gap"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text; of a `gap` only how many characters are left out."""

    change: Change
    text: str


def _words(old: str, new: str) -> Iterator[Piece]:
    before, after = _WORD.findall(old), _WORD.findall(new)
    if max(len(before), len(after)) > _WORDS_AT_ONCE:
        yield from (Piece("out", old), Piece("in", new))
        return
    out, new_words = "", ""
    for _, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        gone, came = "".join(before[a:b]), "".join(after[c:d])
        if gone == came and (gone.strip() or not (out or new_words)):
            yield from (Piece("out", out), Piece("in", new_words), Piece("same", gone))
            out, new_words = "", ""
            continue
        out, new_words = out + gone, new_words + came  # a space between two changes is in both
    yield from (Piece("out", out), Piece("in", new_words))


def _lines(old: str, new: str) -> Iterator[Piece]:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            yield Piece("same", "".join(before[a:b]))
        else:
            yield from _words("".join(before[a:b]), "".join(after[c:d]))


def _joined(pieces: Iterator[Piece]) -> list[Piece]:
    """Neighbours of one kind as one piece, and no empty ones."""
    found: list[Piece] = []
    for piece in pieces:
        if not piece.text:
            continue
        if found and found[-1].change == piece.change:
            found[-1] = Piece(piece.change, found[-1].text + piece.text)
        else:
            found.append(piece)
    return found


def _shortened(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Long unchanged stretches lose their middle; the text's ends keep one side."""
    for place, piece in enumerate(pieces):
        first, last = place == 0, place == len(pieces) - 1
        kept = KEPT_CHARACTERS * (1 if first or last else 2)
        if piece.change != "same" or len(piece.text) <= kept + KEPT_CHARACTERS:
            yield piece
            continue
        head = "" if first else piece.text[:KEPT_CHARACTERS]
        tail = "" if last and not first else piece.text[-KEPT_CHARACTERS:]
        if head:
            yield Piece("same", head)
        yield Piece("gap", f"{len(piece.text) - len(head) - len(tail):,}")
        if tail:
            yield Piece("same", tail)


def compare(old: str, new: str) -> list[Piece]:
    """The pieces of both texts in order: out of the old one, in the new one, the same in both."""
    if old == new:
        return []
    return list(_shortened(_joined(_lines(old, new))))
