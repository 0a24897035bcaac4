"""Filtering by tags."""

from __future__ import annotations

from typing import Any

from mqreplay.core import tags_filter as rules
from mqreplay.core.java import utf16_key
from mqreplay.words.errors import RocketMQError

# The tags that every subscription was tried with.
TRIED = [
    None,
    "",
    "a",
    "b",
    "TagA",
    "Aa",
    "BB",
    "中",
    "*",
    "x y",
    " a",
    "polygenelubricants",
    "AaAa",
    "BBBB",
    "AaBB",
    "😀",
]


def tags_filter(case: dict[str, Any]) -> dict[str, Any]:
    kind = case["case"]
    if kind == "tagsCode":
        return {"tagsCode": rules.tags_code(case["tags"])}
    try:
        if kind == "build":
            return _built(rules.build(case["topic"], case["expression"], case["type"]))
        if kind == "buildSubscriptionData":
            return _tried(rules.build_subscription_data(case["topic"], case["expression"]))
    except RocketMQError as error:
        return {"error": str(error)}
    raise NotImplementedError(kind)


def _built(data: rules.SubscriptionData) -> dict[str, Any]:
    return {
        "subString": data.sub_string,
        "expressionType": data.expression_type,
        "tagsSet": sorted(data.tags_set, key=utf16_key),
    }


def _tried(data: rules.SubscriptionData) -> dict[str, Any]:
    codes = [(tag, rules.tags_code(tag)) for tag in TRIED]
    return {
        **_built(data),
        "tagsSetIterationOrder": list(data.tags_set),
        "codeSet": sorted(data.code_set),
        "classFilterMode": data.class_filter_mode,
        "tag_tagsCode_matched": [[tag, code, rules.is_matched_by_consume_queue(data, code)] for tag, code in codes],
    }


FILES = {"tags_filter": tags_filter}
