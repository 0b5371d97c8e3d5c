"""Small pieces of HTML for lists and facts. Everything from a row is escaped by format_html."""

from datetime import datetime
from decimal import Decimal
from typing import Final

from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from gateway_app.admin import words
from gateway_app.admin.words import Word
from gateway_app.models import Turn
from gateway_app.selectors.verdicts import Shares

NOTHING: Final = "–"
RIBBON_WIDTH: Final = 56


def icon(name: str) -> SafeString:
    """An icon beside a word; readers hear the word alone."""
    if name == "dot":
        return SafeString('<span class="h-dot" aria-hidden="true"></span>')
    return format_html(
        '<svg class="h-icon" aria-hidden="true"><use href="#i-{}"></use></svg>', name
    )


def mark(word: Word) -> SafeString:
    """Icon + word, in the word's tone."""
    drawn, tone = icon(word.icon) if word.icon else "", word.tone or "plain"
    return format_html('<span class="h-mark h-tone-{}">{}{}</span>', tone, drawn, word.text)


def two_lines(first: object, second: object) -> SafeString:
    """A value with a quiet line below it; the line is left out where it is empty."""
    if not second:
        return format_html("{}", first)
    return format_html('{}<span class="h-second">{}</span>', first, second)


def side_by_side(*values: SafeString | str) -> SafeString:
    return format_html_join(" ", "{}", [[value] for value in values if value])


def link(url: str, text: object) -> SafeString:
    return format_html('<a href="{}"><bdi>{}</bdi></a>', url, text)


def value(text: str) -> SafeString:
    """A value with its unit, kept together in either direction of writing."""
    return format_html("<bdi>{}</bdi>", text)


def cut(text: str) -> SafeString | str:
    """A line that is cut where its column ends; nothing for an empty one."""
    return format_html('<span class="h-cut" dir="auto">{}</span>', text) if text else ""


def code(text: str) -> SafeString:
    return format_html('<code class="h-code" dir="ltr">{}</code>', text)


def _age(moment: datetime, *, ago: bool) -> str:
    seconds = (timezone.now() - moment).total_seconds()
    if seconds < 0 or seconds >= 86_400:
        return date_format(timezone.localtime(moment), _day())
    if seconds < 60:
        return gettext("just now")
    size, unit = (60, "min") if seconds < 3600 else (3600, "h")
    age = f"{int(seconds // size)} {unit}"
    return gettext("%(age)s ago") % {"age": age} if ago else age


def _day() -> str:
    # translators: a date as Django's date filter writes it
    return gettext("j M Y")


def moment(at: datetime | None, *, ago: bool = True) -> SafeString | str:
    """Relative up to a day, then a date; the full time in the title. Narrow columns leave `ago`."""
    if at is None:
        return NOTHING
    full = date_format(timezone.localtime(at), f"{_day()}, H:i:s e")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', at.isoformat(), full, _age(at, ago=ago)
    )


def milliseconds(ms: int | None) -> SafeString | str:
    return NOTHING if ms is None else value(time_text(ms))


def time_text(ms: int) -> str:
    """`900 ms`, `2.7 s`, `3 min 20 s`."""
    if ms < 1000:
        return f"{ms} ms"
    return (
        f"{number_format(f'{ms / 1000:.1f}')} s"
        if ms < 60_000
        else f"{ms // 60_000} min {ms // 1000 % 60} s"
    )


def count(number: int) -> str:
    """`12,345`, as the reader's language writes it."""
    return number_format(number, force_grouping=True)


def short_count(count: int) -> str:
    """`7.9k`: a number of tokens short enough for a line."""
    for size, unit in ((1_000_000, "M"), (1000, "k")):
        if count >= size:
            return number_format(f"{count / size:.1f}".removesuffix(".0")) + unit
    return str(count)


def dollars(cost: Decimal | None) -> SafeString | str:
    """Rounded to what the size of the sum deserves; an unknown cost is not a 0."""
    if cost is None:
        return NOTHING
    places = 2 if cost >= Decimal("0.1") or cost == 0 else 4
    if 0 < cost < Decimal("0.0001"):
        return value(f"< ${number_format('0.0001')}")
    return value(f"${number_format(f'{cost:.{places}f}')}")


def cached_percent(input_tokens: int | None, cached_tokens: int | None) -> int | None:
    """The cached share of the input, or None where it is not known."""
    if not input_tokens or cached_tokens is None:
        return None
    return min(100, cached_tokens * 100 // input_tokens)


def ribbon(turn: Turn) -> SafeString | str:
    """Cached, new and output tokens as shares of one bar; nothing where the cache is unknown."""
    percent = cached_percent(turn.input_tokens, turn.cached_tokens)
    if percent is None or turn.input_tokens is None or turn.cached_tokens is None:
        return ""
    new = max(0, turn.input_tokens - turn.cached_tokens)
    shares = (turn.cached_tokens, new, turn.output_tokens or 0)
    scale, start, bars = RIBBON_WIDTH / (sum(shares) or 1), 0.0, []
    for name, share in zip(("cached", "new", "output"), shares, strict=True):
        bars.append((name, f"{start:.2f}", f"{share * scale:.2f}"))
        start += share * scale
    sentence = gettext("%(cached)s cached, %(new)s new, %(output)s output tokens") % dict(
        zip(("cached", "new", "output"), shares, strict=True)
    )
    return format_html(
        '<svg class="h-ribbon" viewBox="0 0 56 6" role="img" aria-label="{}">{}</svg>',
        sentence,
        format_html_join(
            "", '<rect class="h-ribbon-{}" x="{}" y="0" width="{}" height="6"></rect>', bars
        ),
    )


def cached_share(turn: Turn) -> SafeString | str:
    percent = cached_percent(turn.input_tokens, turn.cached_tokens)
    return NOTHING if percent is None else format_html("{} <bdi>{} %</bdi>", ribbon(turn), percent)


def tokens(turn: Turn) -> SafeString | str:
    """`7.9k in, 210 out`; the sides that the provider told."""
    sides = (
        (turn.input_tokens, gettext("%(count)s in")),
        (turn.output_tokens, gettext("%(count)s out")),
    )
    told = [text % {"count": short_count(count)} for count, text in sides if count is not None]
    return value(", ".join(told)) if told else NOTHING


def _verdict(name: str, reason: str) -> SafeString:
    marked = mark(words.word_of(words.VERDICTS, name))
    if not reason:
        return marked
    why = gettext(words.REASONS.get(reason, reason))
    return format_html('{} <span class="h-why">{}</span>', marked, why)


def verdict(turn: Turn) -> SafeString | str:
    """What the guard said first, why, and the worst it said later in the same turn."""
    if not turn.verdict:
        return NOTHING
    first = _verdict(turn.verdict, turn.reason)
    worst = (turn.worst_verdict, turn.worst_reason)
    if turn.worst_verdict in {"", "new", "reuse"} or worst == (turn.verdict, turn.reason):
        return first
    return format_html(
        '{}<span class="h-second">{}</span>',
        first,
        format_html(gettext("then {}"), _verdict(turn.worst_verdict, turn.worst_reason)),
    )


def turn_state(turn: Turn) -> SafeString:
    """Icon + word; a failed turn also says of what, in words."""
    state = mark(words.word_of(words.TURN_STATES, turn.state))
    return two_lines(state, gettext(words.ERRORS.get(turn.error_code, turn.error_code)))


BAR_WIDTH: Final = 64


def verdict_bar(shares: Shares) -> SafeString | str:
    """Warm, caught up, loaded again and rebuilt turns as one bar; nothing where none is known."""
    if not shares.total:
        return ""
    scale, start, bars, told = BAR_WIDTH / shares.total, 0.0, [], []
    for standing in ("reuse", "catch_up", "reload", "rebuild"):
        count = getattr(shares, standing)
        if count:
            bars.append((standing, f"{start:.2f}", f"{count * scale:.2f}"))
            told.append(f"{count} {words.VERDICTS[standing].text.lower()}")
            start += count * scale
    return format_html(
        '<svg class="h-bar" viewBox="0 0 64 6" preserveAspectRatio="none" role="img"'
        ' aria-label="{}"><title>{}</title>{}</svg>',
        ", ".join(told),
        ", ".join(told),
        format_html_join(
            "", '<rect class="h-bar-{}" x="{}" y="0" width="{}" height="6"></rect>', bars
        ),
    )


def owner(name: str) -> SafeString | str:
    """A process as people tell it apart, host and number; its whole name on leases in the title."""
    if not name:
        return NOTHING
    return format_html('<bdi title="{}">{}</bdi>', name, name.rpartition(":")[0] or name)
