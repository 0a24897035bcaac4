"""A value of a row of evidence as text: numbers, instants, lists, queues and subscriptions."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from mqreplay.language.language import Language, in_english

LONGEST_VALUE: Final = 160  # characters of one value
MOST_ITEMS: Final = 12  # items of a list


def value_text(value: Any, words: Language | None = None, *, translated: bool = False) -> Any:
    """Return a value as text; a number as it is, for the text it goes into may format it.

    ``translated``: texts are sentences or words of the catalogue, not names.
    """
    words = words or in_english()
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, dt.datetime):
        return value.strftime("%H:%M:%S.%f")[:-3]
    if isinstance(value, list):
        return _list_text(value, words, translated=translated)
    if isinstance(value, dict):
        return _struct_text(value, words)
    text = words.text(str(value)) if translated else str(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def _list_text(values: list[Any], words: Language, *, translated: bool = False) -> str:
    """Return the items; those of the same topic behind its name.

    >>> queues = [{"topic": "T", "broker_name": "b", "queue_id": queue, "offset": 7} for queue in (0, 1)]
    >>> _list_text(queues, in_english())
    'T b/0 to offset 7, b/1 to offset 7'
    >>> _list_text([], in_english()), _list_text(list(range(14)), in_english())
    ('none', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 ... (14 in all)')
    """
    texts, before = [], None
    for value in values[:MOST_ITEMS]:
        topic = value.get("topic") if isinstance(value, dict) and "queue_id" in value else None
        text = str(value_text(value, words, translated=translated))
        texts.append(f"{topic} {text}" if topic not in (None, before) else text)
        before = topic
    cut = ", ".join(texts) or words.filled("none")
    return cut if len(values) <= MOST_ITEMS else words.filled("{items} ... ({n} in all)", items=cut, n=len(values))


def _struct_text(value: dict[str, Any], words: Language) -> str:
    """Return a queue, a subscription or a group with its subscriptions; of any other struct all its values.

    >>> _struct_text({"group_name": "g", "subscriptions": [{"topic": "T", "sub_string": "A || B"}]}, in_english())
    'g subscribes to T (A || B)'
    >>> queue = {"broker_name": "b", "queue_id": 1, "consumer_offset": 130, "broker_offset": 120}
    >>> _struct_text(queue, in_english())
    'b/1 at 130 of 120'
    """
    if "queue_id" in value:
        queue, offset = f"{value.get('broker_name')}/{value['queue_id']}", value.get("offset")
        if "consumer_offset" in value:
            ends = {"offset": f"{value['consumer_offset']:,}", "end": f"{value['broker_offset']:,}"}
            return words.filled("{queue} at {offset} of {end}", queue=queue, **ends)
        return queue if offset is None else words.filled("{queue} to offset {n}", queue=queue, n=f"{offset:,}")
    if "group_name" in value:
        topics = _list_text(value.get("subscriptions") or [], words)
        return words.filled("{group} subscribes to {topics}", group=value["group_name"], topics=topics)
    if "sub_string" in value:
        return f"{value.get('topic')} ({value['sub_string']})"
    return " ".join(str(value_text(each, words)) for each in value.values() if each is not None)[:LONGEST_VALUE]
