"""Fields of a command's header, which are text on the wire."""

from __future__ import annotations

from collections.abc import Mapping


def numbers_of(ext: Mapping[str, str], names: Mapping[str, str]) -> dict[str, object]:
    """Return numbers of a header by our names; ``names`` maps RocketMQ's names to ours.

    A text that is not a number is kept: the decoder of the kind refuses it with a reason.

    >>> numbers_of({"queueId": "3", "offset": "x", "other": "1"}, {"queueId": "queue_id", "offset": "offset"})
    {'queue_id': 3, 'offset': 'x'}
    """
    return {ours: _number(ext[theirs]) for theirs, ours in names.items() if theirs in ext}


def _number(text: str) -> int | str:
    return int(text) if text.removeprefix("-").isdecimal() and len(text) <= 20 else text
