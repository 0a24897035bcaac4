"""RebalancePushImpl#computePullFromWhere, with and without its exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqreplay.core.compute_pull_from import (
    READ_OFFSET_TYPE,
    AdminQuestion,
    ConsumeFromWhere,
    admin_question,
    compute_pull_from_where,
    compute_pull_from_where_with_exception,
)
from mqreplay.core.faq_url import client_exception
from mqreplay.words.errors import MQClientError, RocketMQError


def question(asked: dict[str, Any]) -> AdminQuestion | None:
    where = ConsumeFromWhere(asked["consumeFromWhere"])
    try:
        return admin_question(where, asked["storedOffset"], asked["topic"], asked["consumeTimestamp"])
    except RocketMQError:
        return None


def answer(asked: dict[str, Any], found: AdminQuestion | None, version: str) -> int | MQClientError | None:
    if found is None:
        return None
    if asked["adminAnswers"] == "mqClientException":
        return client_exception(1, "no route", version)
    offset: int = asked["adminAnswers"][found.method]
    return offset


def compute_pull_from(asked: dict[str, Any], version: str = "4.9.8") -> dict[str, Any]:
    if asked["case"] != asked["consumeFromWhere"] or asked["timeZone"] != "UTC":
        raise NotImplementedError(asked["case"])
    found = question(asked)
    admin_answer = answer(asked, found, version)

    def result(compute: Callable[..., int]) -> int | str:
        try:
            return compute(
                ConsumeFromWhere(asked["consumeFromWhere"]),
                asked["storedOffset"],
                asked["topic"],
                admin_answer,
                asked["consumeTimestamp"],
                version,
            )
        except RocketMQError as error:
            return str(error)

    admin_asked: Any = found and (found.method if found.timestamp is None else list(found))
    return {
        "withException": result(compute_pull_from_where_with_exception),
        "plain": result(compute_pull_from_where),
        "readType": READ_OFFSET_TYPE,
        "adminAsked": admin_asked,
    }


FILES = {"compute_pull_from": compute_pull_from}
