"""Values as a reader is to see them. Names in a recording come from anywhere: nothing in them may hide or reorder."""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from mqreplay.language.language import Language, in_english
from mqreplay.report.next_step import advice_parts

# Zero-width joiners are part of words and of emoji; other invisible characters only mislead.
DATE_LENGTH = len("2026-11-21 ")
WANTED = frozenset("\n\t\u200c\u200d")


def visible(value: Any) -> Any:
    """Text with control, bidirectional and other invisible characters spelled out; anything else as it is.

    >>> visible("pay\\u202egro\\x00"), visible(7)
    ('pay⟨U+202E⟩gro⟨U+0000⟩', 7)
    """
    if not isinstance(value, str) or value.isprintable() or hasattr(value, "__html__"):
        return value  # what bears __html__ is a piece of the page, made of text that has been here before
    return "".join(_spelled(c) if _misleads(c) else c for c in value)


def _misleads(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in WANTED


def _spelled(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"


def number(value: int | None) -> str:
    """With thousands marked.

    >>> number(25276502016), number(None)
    ('25,276,502,016', '–')
    """
    return "–" if value is None else f"{value:,}"


def instant(value: dt.datetime | None) -> str:
    """Return an instant to the millisecond.

    >>> instant(dt.datetime(2026, 11, 21, 2, 46, 1, 301_999))
    '2026-11-21 02:46:01.301'
    """
    return "–" if value is None else value.strftime("%Y-%m-%d %H:%M:%S.") + f"{value.microsecond // 1000:03}"


def clock(value: dt.datetime | None, other: dt.datetime | None = None) -> str:
    """To the second; without the day if it is that of ``other``.

    >>> at = dt.datetime(2026, 11, 21, 2, 46, 1, 301_999)
    >>> clock(at), clock(at, at)
    ('2026-11-21 02:46:01', '02:46:01')
    """
    if value is None:
        return "–"
    return value.strftime("%H:%M:%S" if other is not None and other.date() == value.date() else "%Y-%m-%d %H:%M:%S")


def dates(first: dt.date | None, last: dt.date | None) -> str:
    """Return the days from one instant or day to another; empty if one is not known.

    >>> dates(dt.date(2026, 11, 20), dt.datetime(2026, 11, 21, 2)), dates(None, None)
    ('2026-11-20 – 2026-11-21', '')
    """
    if first is None or last is None:
        return ""
    return " – ".join(dict.fromkeys(f"{day:%Y-%m-%d}" for day in (first, last)))


def next_second(value: dt.datetime) -> dt.datetime:
    """Return the first whole second that is not before an instant: what begins at the instant is seen then.

    >>> next_second(dt.datetime(2026, 11, 21, 2, 51, 30, 1)), next_second(dt.datetime(2026, 11, 21, 2, 51, 30))
    (datetime.datetime(2026, 11, 21, 2, 51, 31), datetime.datetime(2026, 11, 21, 2, 51, 30))
    """
    return value.replace(microsecond=0) + dt.timedelta(seconds=value.microsecond > 0)


def iso(value: dt.datetime | None) -> str:
    """Return an instant as the filters of the page compare it; empty if it is not known.

    >>> iso(dt.datetime(2026, 11, 21, 2, 46, 1, 301_999)), iso(None)
    ('2026-11-21T02:46:01', '')
    """
    return "" if value is None else value.strftime("%Y-%m-%dT%H:%M:%S")


def span(
    begin: dt.datetime | None,
    end: dt.datetime | None,
    known_day: dt.date | None = None,
    words: Language | None = None,
) -> str:
    """From and to, with the day once if it is one, and not at all if the reader knows it.

    >>> span(dt.datetime(2026, 11, 21, 2), dt.datetime(2026, 11, 21, 3))
    '2026-11-21 02:00:00.000 – 03:00:00.000'
    >>> span(dt.datetime(2026, 11, 21, 2), dt.datetime(2026, 11, 21, 3), dt.date(2026, 11, 21))
    '02:00:00.000 – 03:00:00.000'
    >>> span(dt.datetime(2026, 11, 21, 2), None)
    'since 2026-11-21 02:00:00.000'
    """
    if begin is None or end is None:
        text, known = ("since {instant}", begin) if end is None else ("until {instant}", end)
        return (words or in_english()).filled(text, instant=instant(known)) if known else "–"
    if begin.date() != end.date():
        return f"{instant(begin)} – {instant(end)}"
    text = instant(begin) if begin == end else f"{instant(begin)} – {instant(end)[DATE_LENGTH:]}"
    return text[DATE_LENGTH:] if begin.date() == known_day else text


def lasting(begin: dt.datetime | None, end: dt.datetime | None, words: Language | None = None) -> str:
    """Return a duration in two units.

    >>> lasting(dt.datetime(2026, 11, 21), dt.datetime(2026, 11, 21, 1, 2, 3))
    '1 h 2 min'
    """
    if begin is None or end is None:
        return "–"
    words = words or in_english()
    seconds = int((end - begin).total_seconds())
    sizes = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts = []
    for unit, size in sizes:
        if seconds >= size:
            parts.append(words.filled(f"{{n}} {unit}", n=seconds // size))
            seconds %= size
    return " ".join(parts[:2]) or words.filled("{n} s", n=0)


def with_code(text: str, names: Mapping[str, str] | None = None) -> Markup:
    """Return an advice as HTML, with its commands as code. Invisible characters are spelled out.

    ``names`` are those of `next_step.names_of`.

    >>> with_code("Run `a < b` now.")
    Markup('Run <code>a &lt; b</code> now.')
    >>> with_code("`stop -g GROUP -t TOPIC` a GROUP", {"GROUP": "my group"})
    Markup('<code>stop -g &#39;my group&#39; -t TOPIC</code> a GROUP')
    """
    parts = map(visible, advice_parts(text, names or {}))
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(parts))
