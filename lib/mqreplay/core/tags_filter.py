"""Filters by tags: a subscription's expression, the code of a tag, and the match of a message.

A broker keeps only the hash of a tag in its consume queue, and compares hashes (`Aa` and `BB` are one to it); the
client compares the tags themselves afterwards.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mqreplay.core.java import split_on_char, string_hash, trim
from mqreplay.core.java_maps import hash_map_order
from mqreplay.words.errors import IllegalArgument, JavaException

SUB_ALL = "*"
TAG = "TAG"
SQL92 = "SQL92"


@dataclass(frozen=True, slots=True)
class SubscriptionData:
    """A group's subscription to a topic. ``tags_set`` is in Java's iteration order, ``code_set`` has their hashes."""

    topic: str | None
    sub_string: str
    expression_type: str = TAG
    tags_set: tuple[str, ...] = ()
    code_set: frozenset[int] = frozenset()
    class_filter_mode: bool = False


def build_subscription_data(topic: str | None, sub_string: str | None) -> SubscriptionData:
    """FilterAPI#buildSubscriptionData: tags parted by ``||``, each trimmed as Java does; None, "" and ``*`` are all.

    The expression itself is kept as written. Raises JavaException if nothing but separators is in it.

    >>> build_subscription_data("T", "TagA || TagB").tags_set
    ('TagA', 'TagB')
    >>> build_subscription_data("T", "").sub_string
    '*'
    """
    if sub_string is None or sub_string in ("", SUB_ALL):
        return SubscriptionData(topic, SUB_ALL)
    parts = split_on_char(sub_string, "||")
    if not parts:
        raise JavaException("subString split error")
    tags = [tag for tag in map(trim, parts) if tag]
    return SubscriptionData(
        topic,
        sub_string,
        tags_set=tuple(hash_map_order(tags, string_hash)),
        code_set=frozenset(map(string_hash, tags)),
    )


def build(topic: str | None, sub_string: str | None, expression_type: str | None) -> SubscriptionData:
    """FilterAPI#build: by tags if the type is None or TAG, else the expression and its type as they are.

    Raises IllegalArgument if another type than TAG has no expression.

    >>> build("T", "a > 1", "SQL92").tags_set
    ()
    """
    if expression_type is None or expression_type == TAG:
        return build_subscription_data(topic, sub_string)
    if not sub_string:
        raise IllegalArgument(f"Expression can't be null! {expression_type}")
    return SubscriptionData(topic, sub_string, expression_type)


def tags_code(tags: str | None) -> int:
    """MessageExtBrokerInner#tagsString2tagsCode: the hash a broker keeps of a message's tags, 0 where there are none.

    >>> tags_code("TagA"), tags_code(None), tags_code("")
    (2598919, 0, 0)
    """
    return string_hash(tags) if tags else 0


def is_tag_type(expression_type: str | None) -> bool:
    """ExpressionType#isTagType: None, "" and TAG filter by tags.

    >>> is_tag_type(None), is_tag_type("TAG"), is_tag_type("tag")
    (True, True, False)
    """
    return not expression_type or expression_type == TAG


def is_matched_by_consume_queue(subscription: SubscriptionData, code: int | None) -> bool:
    """ExpressionMessageFilter#isMatchedByConsumeQueue for tags: whether the broker sends a message of this tags code.

    ``code`` is an int, None where the consume queue has none.

    >>> aa = build_subscription_data("T", "Aa")
    >>> is_matched_by_consume_queue(aa, tags_code("BB")), is_matched_by_consume_queue(aa, tags_code("a"))
    (True, False)
    """
    if code is None or subscription.class_filter_mode or subscription.sub_string == SUB_ALL:
        return True
    return code in subscription.code_set


def is_matched_by_client(tags_set: Collection[str], tags: str | None) -> bool:
    """PullAPIWrapper#processPullResult: whether the client keeps a message, by the tag itself.

    A subscription without tags keeps all, and one with tags drops messages without.

    >>> is_matched_by_client({"Aa"}, "BB"), is_matched_by_client((), None)
    (False, True)
    """
    return not tags_set or (tags is not None and tags in tags_set)
