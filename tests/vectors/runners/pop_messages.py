"""POP: what a broker remembers of ordered messages, and which messages it revives."""

from __future__ import annotations

from typing import Any

from mqreplay.core import pop_order, pop_revive
from mqreplay.core.pop_revive import CheckPoint


def order(asked: dict[str, Any], version: str) -> dict[str, Any]:
    if asked["case"] != "steps":
        raise NotImplementedError(asked["case"])
    now = asked["now"]
    info: pop_order.OrderInfo | None = None
    answers: list[int | bool | None] = []
    for kind, *step in asked["steps"]:
        answer: int | bool | None = None
        if kind == "update":
            info = pop_order.update(info, *step, now=now)
        elif kind == "ack":
            answer, info = pop_order.commit_and_next(info, *step)
        elif kind == "change":
            info = pop_order.update_next_visible_time(info, *step)
        else:
            answer = pop_order.check_block(info, *step, now=now)
            info = pop_order.after_check(info, *step)
        answers.append(answer)
    return {"answers": answers, "record": None if info is None else record(info, now)}


def record(info: pop_order.OrderInfo, now: int) -> dict[str, Any]:
    free = pop_order.lock_free_timestamp(info, now)
    return {
        "popTime": info.pop_time,
        "attemptId": info.attempt_id,
        "invisibleTime": info.invisible_time,
        "offsetList": info.offset_list,
        "nextVisibleTime": info.offset_next_visible_time,
        "consumedCount": info.offset_consumed_count,
        "commitOffsetBit": info.commit_offset_bit,
        "nextOffset": pop_order.next_offset(info),
        "lockFree": "now" if free == now else free,
    }


def check_point(row: dict[str, Any]) -> CheckPoint:
    return CheckPoint(
        row["startOffset"],
        row["popTime"],
        row["invisibleTime"],
        row["num"],
        tuple(row["diffs"] or ()),
        row["rePutTimes"],
    )


def row(point: CheckPoint) -> dict[str, Any]:
    return {
        "startOffset": point.start_offset,
        "popTime": point.pop_time,
        "invisibleTime": point.invisible_time,
        "num": point.num,
        "diffs": point.queue_offset_diff,
        "rePutTimes": point.re_put_times,
    }


def revive(asked: dict[str, Any], version: str) -> dict[str, Any]:
    match asked["case"]:
        case "pass":
            point = check_point(asked["checkPoint"])
            revived = pop_revive.unacknowledged_offsets(point, asked["acks"])
            return {"deliverTime": point.deliver_time, "reviveTime": point.revive_time, "revived": revived}
        case "due":
            return {"due": pop_revive.is_revive_due(asked["reviveTime"], asked["endTime"])}
        case "re_put":
            point = check_point(asked["checkPoint"])
            again = pop_revive.re_put_check_point(point, asked["offset"], asked["now"], asked["skip"])
            return {"checkPoint": None if again is None else row(again)}
        case "behind":
            arguments = asked["max"], asked["offset"], asked["hasRevived"], version
            return {"messages": pop_revive.revive_behind_messages(*arguments)}
        case "kv_retry":
            times = asked["attemptTimes"]
            next_time = pop_revive.kv_next_invisible_time(asked["invisibleTime"], times, asked["maxAttemptTimes"])
            return {"invisibleTime": next_time, "attemptTimes": None if next_time is None else times + 1}
    raise NotImplementedError(asked["case"])


FILES = {"pop_order": order, "pop_revive": revive}
