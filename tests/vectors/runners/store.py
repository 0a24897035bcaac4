"""The store's side of a pull: batches, memory, and getMessage as a whole."""

from __future__ import annotations

from typing import Any

from mqreplay.core import slave_suggestion as rules
from mqreplay.core.consume_queue import CommitLog, ConsumeQueue, CqUnit, StoreConfig
from mqreplay.core.get_message import NO_MATCHED_MESSAGE, MessageFilter, can_continue_at, get_message
from mqreplay.core.java import string_hash, trim
from mqreplay.words.errors import RocketMQError


def batch_full(case: dict[str, Any], version: str = "4.9.7") -> dict[str, Any]:
    kind = case["case"].split(".")[0]
    if kind == "isTheBatchFull":
        return {"full": _full(case, version)}
    if kind == "checkInDiskByCommitOffset":
        in_disk = rules.check_in_disk_by_commit_offset(
            case["offsetPy"],
            case["maxOffsetPy"],
            case["totalPhysicalMemorySize"],
            case["accessMessageInMemoryMaxRatio"],
        )
        return {"inDisk": in_disk}
    if kind == "nextOffsetCorrection":
        corrected = rules.next_offset_correction(
            case["oldOffset"], case["newOffset"], case["brokerRole"], case["offsetCheckInSlave"]
        )
        return {"next": corrected}
    if kind == "getMessage":
        try:
            return _get_message(case, version)
        except RocketMQError as error:
            return {"error": str(error)}
    raise NotImplementedError(case["case"])


def _full(case: dict[str, Any], version: str) -> bool:
    limits = rules.TransferLimits(
        case["maxTransferBytesOnMessageInMemory"],
        case["maxTransferCountOnMessageInMemory"],
        case["maxTransferBytesOnMessageInDisk"],
        case["maxTransferCountOnMessageInDisk"],
    )
    return rules.is_the_batch_full(
        case["sizePy"],
        case["maxMsgNums"],
        case["bufferTotal"],
        case["messageTotal"],
        case["isInDisk"],
        limits,
        version,
    )


def _tag_filter(subscription: str | None) -> MessageFilter | None:
    """FilterAPI and ExpressionMessageFilter, for the tag expressions of the vectors."""
    if subscription is None or subscription == "*":
        return None
    codes = {string_hash(trim(tag)) for tag in subscription.split("||")}
    return lambda tags_code: tags_code in codes


def _get_message(case: dict[str, Any], version: str) -> dict[str, Any]:
    queue = None
    if case["queueKnown"]:
        units = [CqUnit(py, size, string_hash(tags) if tags else 0) for py, size, tags in case["queue"]]
        queue = ConsumeQueue(units, case["minOffsetInQueue"])
    found = get_message(
        queue,
        case["offset"],
        case["maxMsgNums"],
        CommitLog(case["logMaxOffsetPy"], case["logMinOffsetPy"], case["mappedFileSizeCommitLog"]),
        StoreConfig(
            case["totalPhysicalMemorySize"],
            case["accessMessageInMemoryMaxRatio"],
            rules.TransferLimits(*case["limits"]),
            case["brokerRole"],
            case["offsetCheckInSlave"],
        ),
        _tag_filter(case["subscription"]),
        version,
    )
    return {
        "status": found.status,
        "nextBeginOffset": found.next_begin_offset,
        "minOffset": found.min_offset,
        "maxOffset": found.max_offset,
        "offsetsPy": found.offsets_py,
        "bufferTotalSize": found.buffer_total_size,
        "messageCount": found.message_count,
        "suggestPullingFromSlave": found.suggest_pulling_from_slave,
    }


def late_end(case: dict[str, Any], version: str) -> dict[str, Any]:
    """The walk over a queue that has more entries than the end that was read; its filter passes none."""
    if case["case"] != "noneMatches":
        raise NotImplementedError(case["case"])
    offset, end = case["offset"], case["maxOffset"]
    possible = [
        after
        for after in range(offset, case["entries"] + 1)
        if can_continue_at(NO_MATCHED_MESSAGE, offset, after, end, case["maxMsgNums"], version)
    ]
    return {"status": NO_MATCHED_MESSAGE, "nextBeginOffset": possible[-1], "maxOffset": end}


FILES = {"batch_full": batch_full, "late_end": late_end}
