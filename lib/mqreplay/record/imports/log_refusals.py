"""Why a file that may be a log is no evidence."""

from __future__ import annotations

import re
from typing import Final

from mqreplay.record.imports.log_text import LineCount

NO_LINE: Final = "it has no line of a RocketMQ log"
_LOG: Final = re.compile(r"\.(?:log|out)\b")


def why_no_log(path: str, count: LineCount) -> str | None:
    """Return why no line of a file is evidence; None for a file that is no log, by its name and its lines.

    >>> why_no_log("app.log", LineCount(read=3))
    'it has no line of a RocketMQ log'
    >>> why_no_log("notes.txt", LineCount(read=3)) is None
    True
    """
    if not count.of_rocketmq and _LOG.search(path.rpartition("/")[2]) is None:
        return None
    if count.trouble is not None:
        return count.trouble
    if not count.read:
        return "it is empty"
    unusable = [form for form in count.left_out if form in count.examples]
    if unusable:
        examples = {form: count.examples[form].removeprefix(f"{path}:") for form in unusable}
        shown = "; ".join(f"{form} ({count.left_out[form]:,}), such as line {examples[form]}" for form in unusable)
        return f"no line of it can be used: {shown}"
    damaged = [form for form in count.left_out if form.startswith("damaged")]
    if damaged:
        return f"no line of it can be used: {', '.join(f'{form}: {count.left_out[form]:,}' for form in damaged)}"
    if count.headed:
        return "no decision uses this log of RocketMQ: no line of it says what a client or a broker did"
    return NO_LINE
