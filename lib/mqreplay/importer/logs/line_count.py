"""How many lines of a file are used and how many not, by what they are, and why a file without a fact is no log."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from mqreplay.decode.logs.other_clients import CPP, GO, GRPC, INSTEAD
from mqreplay.importer.files.layout import base_name
from mqreplay.importer.files.other_files import unused_log
from mqreplay.words.quantity import counted

NOT_OF_ROCKETMQ: Final = "none of its lines is in a layout of RocketMQ's logs or has a message that RocketMQ writes"
OTHER: Final = "lines that no decision uses"
OTHER_CLIENTS: Final = (CPP, GO, GRPC)
_SHOWN: Final = 120  # characters of an example
_MOST_EXAMPLE: Final = 400  # characters of an example with exceptions, before the last one
_MOST_ERRORS: Final = 20  # kinds of warnings and errors of a file that are shown
_MOST_FORMS: Final = 8  # of a file that is refused
_LEVEL: Final = re.compile(" (WARN|ERROR) ")
ERRORS: Final = {
    "WARN": "warnings of RocketMQ that no decision uses, of the form ",
    "ERROR": "errors of RocketMQ that no decision uses, of the form ",
}
_CONSTANT: Final = re.compile(r"[^\d\[({=<:,@/%]{4,60}")  # how a message begins, before its values
_UNDATED: Final = re.compile("without a date|have no date")
_LOG: Final = re.compile(r"\.(?:log|out)\b")


@dataclass
class LineCount:
    """How many lines were read and used, and how many not, by form. ``read`` is ``used`` and all of ``left_out``.

    ``examples`` has a line of each form. ``headed`` counts lines in RocketMQ's layouts without a fact, ``logs`` of them
    the logs that their threads show, in words.
    """

    read: int = 0
    used: int = 0
    headed: int = 0
    logs: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    trouble: str | None = None  # why a file could not be read to its end

    @property
    def of_rocketmq(self) -> bool:
        """Return whether a line is of RocketMQ, used or not."""
        return bool(self.used or self.headed or any(form in self.examples for form in self.left_out))

    def leave_out(self, form: str, place: str | None, text: str) -> None:
        """Count a line that is not used; ``place``: of an example, PATH:LINE."""
        self.left_out[form] += 1
        if place is not None:
            self.examples.setdefault(form, f"{place}: {text[:_SHOWN]!r}")

    def add(self, other: LineCount) -> None:
        """Add the count of another file."""
        self.read += other.read
        self.used += other.used
        self.headed += other.headed
        self.left_out += other.left_out
        self.examples = other.examples | self.examples

    def error_form(self, head: str, message: str) -> str | None:
        """Return the form of a warning or error of RocketMQ that no record names; None for another line."""
        level, begin = _LEVEL.search(head), _CONSTANT.match(message)
        if level is None or begin is None:
            return None
        form = f"{ERRORS[level[1]]}{begin[0].rstrip()!r}"
        shown = sum(each.startswith(tuple(ERRORS.values())) for each in self.examples)
        return form if form in self.examples or shown < _MOST_ERRORS else None

    def add_cause(self, form: str, cause: str) -> None:
        """Add the exception below a line to the example of its form."""
        example = self.examples.get(form, "")
        if 0 < len(example) <= _MOST_EXAMPLE and cause[:_SHOWN] not in example:
            self.examples[form] = f"{example}, with {cause[:_SHOWN]!r}"

    def drop_warnings(self) -> None:
        """Count warnings that no record names as other lines: a healthy log has many."""
        for form in [form for form in self.left_out if form.startswith(ERRORS["WARN"])]:
            self.left_out[OTHER] += self.left_out.pop(form)
            del self.examples[form]

    def give_up(self, used: int, form: str) -> None:
        """Count lines that were used as left out after all."""
        self.used -= used
        self.left_out[form] += used

    def as_dict(self) -> dict[str, Any]:
        """Return the count for JSON."""
        forms = {name: count for name, count in sorted(self.left_out.items()) if count}
        return {"read": self.read, "used": self.used, "left_out": forms, "examples": self.examples}


def why_no_log(path: str, count: LineCount) -> str | None:
    """Return why no line of a file is evidence; None for a file that is no log, by its name and its lines.

    >>> why_no_log("app.log", LineCount(read=3))
    "none of its lines is in a layout of RocketMQ's logs or has a message that RocketMQ writes"
    >>> why_no_log("notes.txt", LineCount(read=3)) is None
    True
    """
    if not count.of_rocketmq and _LOG.search(path.rpartition("/")[2]) is None:
        return None
    if count.trouble is not None:
        return count.trouble
    if not count.read:
        return "it is empty"
    unusable = [form for form, number in count.left_out.items() if number and form in count.examples]
    if unusable:
        examples = {form: count.examples[form].removeprefix(f"{path}:") for form in unusable}
        in_order = sorted(unusable, key=lambda form: form.startswith(ERRORS["WARN"]))
        shown = "; ".join(
            f"{form} ({count.left_out[form]:,}), such as line {examples[form]}" for form in in_order[:_MOST_FORMS]
        )
        shown += f"; and {len(unusable) - _MOST_FORMS} more forms" if len(unusable) > _MOST_FORMS else ""
        instead = f"; give {INSTEAD}" if any(form in OTHER_CLIENTS for form in unusable) else ""
        instead += "; give the lines with their dates" if any(_UNDATED.search(form) for form in unusable) else ""
        words = _log_words(path, count) if any(form.startswith(tuple(ERRORS.values())) for form in unusable) else ""
        return f"no line of it can be used: {shown}{instead}{words and f'; it is {words}'}"
    damaged = [form for form in count.left_out if form.startswith("damaged")]
    if damaged:
        return f"no line of it can be used: {', '.join(f'{form}: {count.left_out[form]:,}' for form in damaged)}"
    if words := _log_words(path, count):
        return f"none of its {counted(count.read, 'line')} has a message that import uses: it is {words}"
    if count.headed:
        return (
            f"none of its {counted(count.read, 'line')} has a message that import uses; {count.headed:,} of them "
            f"{'is' if count.headed == 1 else 'are'} in a layout of RocketMQ's logs"
        )
    return NOT_OF_ROCKETMQ


def _log_words(path: str, count: LineCount) -> str:
    """Return which log of RocketMQ a file is, by its name or the threads of its lines; "" if none is known."""
    named = unused_log(base_name(path))
    return named.words if named is not None else next((words for words, _ in count.logs.most_common(1)), "")
