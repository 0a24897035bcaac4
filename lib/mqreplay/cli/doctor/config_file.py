"""Examine a file that is read as a whole: its errors, and a broker's start from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sized
from pathlib import Path

from mqreplay.cli.doctor.kind import LMQ_OFFSETS
from mqreplay.cli.doctor.on_load import BAK, VERSIONS, holding, start_from_bak, start_from_file
from mqreplay.cli.doctor.verdict import Verdict, error_facts, place_of, plain
from mqreplay.decode.brokers import decode_brokers
from mqreplay.decode.client_offsets import decode_client_offsets
from mqreplay.decode.consumer_offset import (
    FILE_NAME,
    LMQ_FILE_NAME,
    ConsumerOffsets,
    decode_consumer_offset,
    decode_lmq_consumer_offset,
    impossible_offsets,
    strange_keys,
)
from mqreplay.decode.delay_offset import decode_delay_offset
from mqreplay.decode.message_request_mode import decode_message_request_mode
from mqreplay.decode.pop_order import decode_pop_order
from mqreplay.decode.subscription_group import decode_subscription_group
from mqreplay.decode.text import MARK_BYTES, MAX_BYTES
from mqreplay.decode.topics import decode_topics
from mqreplay.words.errors import DecodeError
from mqreplay.words.quantity import counted

Facts = dict[str, object]
STRANGE = 3  # named keys; others are counted
CUT = ("torn", "empty", "nul_bytes", "trailing_data")
MEND_CUT = "copy it again: brokers rewrite it in place, and this copy was made meanwhile"
MEND = {
    "utf_16": "copy the file itself from its host, or convert it to UTF-8",
    "not_utf8": "copy it again: this copy is damaged",
    "foreign": "check what was copied: this is another file with this name",
    "too_large": "find out which program wrote it: no broker's file is so large",
}
USUAL_MEND = "copy it again; if the original has the same error, somebody edited it: correct the place above"
MEND_BROKERS = "write it again from `mqadmin getBrokerConfig`"


def _consumer_offset(data: bytes) -> tuple[str, Facts]:
    return _about(decode_consumer_offset(data))


def _lmq_consumer_offset(data: bytes) -> tuple[str, Facts]:
    return _about(decode_lmq_consumer_offset(data))


def _about(got: ConsumerOffsets) -> tuple[str, Facts]:
    strange = strange_keys(got)
    keys = len(set(got.key))
    facts: Facts = {"entries": len(got), "keys": keys, "strange_keys": strange, "other_tables": list(got.other_keys)}
    words = holding(len(got), keys)
    if strange:
        named = ", ".join(f"'{key}'" for key in strange[:STRANGE]) + (", …" if len(strange) > STRANGE else "")
        words += f"; not topic@group, so no group can use them: {named}"
    if impossible := impossible_offsets(got):
        key, queue_id, offset = impossible[0]
        words += f"; {counted(len(impossible), 'offset')} that no queue can have, such as {offset} of {key} {queue_id}"
    facts["impossible_offsets"] = len(impossible)
    return words, facts


def _rows(decode: Callable[[bytes], Sized], noun: str) -> Callable[[bytes], tuple[str, Facts]]:
    def examine(data: bytes) -> tuple[str, Facts]:
        entries = len(decode(data))
        return counted(entries, noun), {"entries": entries}

    return examine


READERS: dict[str, Callable[[bytes], tuple[str, Facts]]] = {
    "consumer_offset": _consumer_offset,
    LMQ_OFFSETS: _lmq_consumer_offset,
    "topics": _rows(lambda data: decode_topics(data).rows, "topic"),
    "subscription_groups": _rows(lambda data: decode_subscription_group(data).rows, "consumer group"),
    "message_request_modes": _rows(decode_message_request_mode, "mode"),
    "pop_orders": _rows(decode_pop_order, "queue"),
    "delay_offset": _rows(lambda data: decode_delay_offset(data).rows, "delay level"),
    "client_offsets": _rows(decode_client_offsets, "queue"),
    "brokers": _rows(lambda data: decode_brokers(data).brokers, "broker"),
}


def examine_config_file(path: str, verdict: Verdict) -> None:
    """Add the results of the strict reader, the content of the .bak, and the consequences of errors to the verdict.

    Raises OSError if it cannot be read.
    """
    data = _read(path)
    is_bak = path.endswith(BAK)
    verdict.facts["bytes"] = len(data)
    code = _read_strictly(data, verdict)
    bak = None if is_bak or not Path(path + BAK).is_file() else _read(path + BAK)
    bak_is_whole = bak is not None and _say_bak(bak, verdict)
    if Path(path).name.removesuffix(BAK) == FILE_NAME and Path(path).with_name(LMQ_FILE_NAME).is_file():
        verdict.say("note", f"{LMQ_FILE_NAME} is beside it: a broker with enableLmq=true reads and writes only that")
    if code is None:
        return
    verdict.whole = False
    if verdict.kind == "consumer_offset":
        _say_broker(None if is_bak else data, data if is_bak else bak, verdict)
    elif verdict.kind != "brokers" and not is_bak:
        _say_loader(data, bak, verdict)
    verdict.facts["mend"] = _mend(code, verdict.kind, Path(path).name + BAK if bak_is_whole else None)
    verdict.say("mend", str(verdict.facts["mend"]))


def _read(path: str) -> bytes:
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        # A read allocates all requested memory first. The reader refuses longer files.
        return stream.read(min(size, MAX_BYTES) + 1)


def _read_strictly(data: bytes, verdict: Verdict) -> str | None:
    try:
        words, facts = READERS[verdict.kind](data)
    except DecodeError as error:
        place = None if error.offset is None else place_of(data, error.offset)
        verdict.say("strictly", f"{error.code}: {plain(error)}")
        if place is not None and data:
            at = f"line {place.line}, character {place.column} of it; byte {place.byte} of {len(data)}"
            verdict.say("place", at)
            verdict.say("text", place.shown)
        verdict.facts["error"] = error_facts(error, place)
        return error.code
    verdict.say("holds", words)
    if data.startswith(MARK_BYTES):
        verdict.say("note", "it begins with a byte order mark, as an editor writes it; fastjson passes over it")
    verdict.facts.update(facts)
    return None


def _say_bak(bak: bytes, verdict: Verdict) -> bool:
    found: Facts = {"whole": True, "bytes": len(bak)}
    try:
        words, facts = READERS[verdict.kind](bak)
    except DecodeError as error:
        place = None if error.offset is None else place_of(bak, error.offset)
        words, facts = f"{error.code}: {plain(error)}", {"error": error_facts(error, place)}
        found["whole"] = False
    verdict.say("its .bak", f"{'whole' if found['whole'] else 'broken too'}: {words}")
    verdict.facts["bak"] = {**found, **facts}
    return bool(found["whole"])


def _say_broker(file: bytes | None, bak: bytes | None, verdict: Verdict) -> None:
    start = start_from_bak(bak or b"") if file is None else start_from_file(file, bak)
    facts = start._asdict()
    words = facts.pop("words")
    verdict.facts["broker"] = dict.fromkeys(VERSIONS, facts)
    verdict.say("broker", f"{' and '.join(VERSIONS)}: {words}")


def _say_loader(data: bytes, bak: bytes | None, verdict: Verdict) -> None:
    # ConfigManager#load and LocalFileOffsetStore#readLocalOffset both read the .bak; fastjson's tolerance for these
    # kinds is not replayed.
    who = "client" if verdict.kind == "client_offsets" else "broker"
    then = "takes the .bak" if bak is not None else "starts without any of this: there is no .bak"
    verdict.say(who, f"finds nothing in it, and {then}" if not data else f"undetermined; if it refuses it, it {then}")


def _mend(code: str, kind: str, whole_bak: str | None) -> str:
    if kind == "brokers":
        return MEND_BROKERS
    mend = MEND_CUT if code in CUT else MEND.get(code, USUAL_MEND)
    return f"take {whole_bak}, the last complete one; or {mend}" if whole_bak else mend
