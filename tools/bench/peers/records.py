"""The smaller kinds of lines -> their silver tables, and gold.allocation.

Such lines repeat but for their times (a client's heartbeat is the same all day), so each distinct rest of a line is
decoded, and judged, once; rows then point to it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mqreplay.core.allocation import allocate
from mqreplay.core.message_queue import MessageQueue
from mqreplay.decode.lock_requests import decode_lock_request
from mqreplay.decode.server_requests import decode_server_request
from mqreplay.words.errors import RocketMQError

from .delta import Written, constant, days, hex_strings, instants, write_file
from .pull_lines import gunzip
from .routes import Routes

TEXT, LONG, INT = pa.string(), pa.int64(), pa.int32()
TIMES = re.compile(rb'\{"ts":([0-9]+),(?:"response_ts":([0-9]+),)?')
ASKED = [("client_id", TEXT), ("broker_name", TEXT), ("broker_addr", TEXT), ("broker_id", LONG)]
SUBSCRIPTION = [("topic", TEXT), ("subString", TEXT), ("expressionType", TEXT), ("subVersion", LONG)]
CONSUMER = [
    *[("groupName", TEXT), ("consumeType", TEXT), ("messageModel", TEXT), ("consumeFromWhere", TEXT)],
    *[("unitMode", pa.bool_()), ("subscriptionDataSet", pa.list_(pa.struct(SUBSCRIPTION)))],
]
HEARTBEAT = [("consumerDataSet", pa.list_(pa.struct(CONSUMER)))]
HEARTBEAT += [("producerDataSet", pa.list_(pa.struct([("groupName", TEXT)])))]
RUNTIME = [("bootTimestamp", TEXT), ("brokerVersionDesc", TEXT), ("commitLogMaxOffset", TEXT)]
QUEUES = pa.list_(pa.struct([("broker_name", TEXT), ("queue_id", INT)]))
PLACES = [("topic", TEXT), ("broker_name", TEXT), ("queue_id", INT)]
LOCKED = pa.list_(pa.struct(PLACES))
COLUMNS = {
    "lock_requests": [
        *[("kind", TEXT), *ASKED, ("mode", TEXT), ("response_code", INT), ("remark", TEXT), ("error", TEXT)],
        *[("consumer_group", TEXT), ("mq_set", LOCKED), ("lock_ok_mq_set", LOCKED)],
    ],
    "server_requests": [
        *[*ASKED, ("request_code", INT), ("name", TEXT), ("body", TEXT), ("consumer_group", TEXT), ("topic", TEXT)],
        ("ext", pa.map_(TEXT, TEXT)),
        ("reset_offsets", pa.list_(pa.struct([*PLACES, ("offset", LONG)]))),
    ],
    "heartbeats": [("kind", TEXT), *ASKED, ("response_code", INT), ("error", TEXT), ("body", pa.struct(HEARTBEAT))],
    "routes": [
        *[("client_id", TEXT), ("topic", TEXT), ("namesrv_addr", TEXT), ("response_code", INT)],
        *[("remark", TEXT), ("error", TEXT), ("body", TEXT)],
    ],
    "broker_runtime": [*ASKED[1:], ("full", pa.bool_()), ("table", pa.struct(RUNTIME)), ("error", TEXT)],
    "rebalance_log": [
        *[("client_id", TEXT), ("consumer_group", TEXT), ("topic", TEXT), ("strategy", TEXT)],
        *[("cid_all", pa.list_(TEXT)), ("mq_all", QUEUES), ("mq_divided", QUEUES), ("error", TEXT)],
    ],
}
TABLES = {
    "heartbeats": "silver.heartbeat",
    "routes": "silver.route",
    "broker_runtime": "silver.broker_runtime",
    "rebalance_log": "silver.rebalance",
    "lock_requests": "silver.lock",
    "server_requests": "silver.server_request",
}
PLACE = ("topic", "broker_name", "queue_id")
SOME_MS = 1_800_000_000_000  # in place of a line's own time, which is no part of its case
LISTED = {"mq_set": PLACE, "lock_ok_mq_set": PLACE, "reset_offsets": (*PLACE, "offset")}


def _decoded(decode: Callable[[bytes], dict[str, Any]]) -> Callable[[dict], dict]:
    """A line's case as mqreplay's decoder reads it, with names instead of places in what it lists."""

    def read(case: dict) -> dict:
        row = decode(json.dumps({"ts": SOME_MS, **case}).encode())
        for name, names in LISTED.items():
            if row.get(name) is not None:
                row[name] = [dict(zip(names, one, strict=True)) for one in row[name]]
        return row | ({"ext": list(row["ext"].items())} if row.get("ext") else {})

    return read


DECODED = {"lock_requests": _decoded(decode_lock_request), "server_requests": _decoded(decode_server_request)}


@dataclass(frozen=True)
class KindRead:
    """What one kind of lines gave: table files, the first instant (epoch ms), and the routes if it was those."""

    written: dict[str, Written]
    schemas: dict[str, pa.Schema]
    first_ts: int
    routes: Routes | None


class Lines:
    """All lines of a kind: their times, their ids, and which distinct case each one is."""

    def __init__(self, paths: list[Path]) -> None:
        seen: dict[bytes, int] = {}
        times, answers, which, ids = [], [], [], []
        for path in paths:
            for line in gunzip(path).splitlines():
                found = TIMES.match(line)
                if found is None:
                    raise ValueError("a line that does not begin with its time: the peers are not written for that")
                which.append(seen.setdefault(line[found.end() :], len(seen)))
                times.append(int(found[1]))
                answers.append(int(found[2] or -1))
                ids.append(hashlib.sha256(line).digest()[:16])
        self.cases = [json.loads(b"{" + rest) for rest in seen]
        self.which, self.ts = np.array(which, np.int32), np.array(times, np.int64)
        self.response_ts = np.array(answers, np.int64)
        self.ids = hex_strings(np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 16))

    def table(self, stem: str, cluster: str) -> pa.Table:
        """The silver table of that kind."""
        columns = {"cluster": constant(cluster, len(self.ts)), "day": days(self.ts), "ts": instants(self.ts)}
        if (self.response_ts >= 0).any():
            columns["response_ts"] = instants(self.response_ts)
        for name, kind in COLUMNS[stem]:
            columns[name] = self.spread([case.get(name) for case in self.cases], kind)
        return pa.table(columns | {"record_id": self.ids})

    def spread(self, values: list, kind: pa.DataType) -> pa.Array:
        """A value for each case as a column for each line."""
        return pa.array(values, kind).take(pa.array(self.which))


def read_kind(stem: str, paths: list[Path], cluster: str, out: Path) -> KindRead | None:
    """Write the table of that kind, and of rebalances gold.allocation too; None if the recording has no such lines."""
    if not paths:
        return None
    lines = Lines(paths)
    if stem in DECODED:
        lines.cases = [DECODED[stem](case) for case in lines.cases]
    if stem == "rebalance_log":
        lines.cases = [_case(case) for case in lines.cases]
    tables = {TABLES[stem]: lines.table(stem, cluster)}
    if stem == "rebalance_log":
        tables["gold.allocation"] = _allocation(lines, tables[TABLES[stem]])
    written = {name: write_file(out / name.replace(".", "/"), rows) for name, rows in tables.items()}
    routes = Routes(lines) if stem == "routes" else None
    return KindRead(written, {name: rows.schema for name, rows in tables.items()}, int(lines.ts.min()), routes)


def _allocation(lines: Lines, silver: pa.Table) -> pa.Table:
    texts = {name: lines.spread([case[name] for case in lines.cases], TEXT) for name in ("judgement", "reason")}
    columns = {name: silver[name] for name in ("cluster", "day", "consumer_group", "topic", "client_id")}
    columns |= {"rebalance_ts": silver["ts"]} | {name: silver[name] for name in ("strategy", "cid_all", "mq_all")}
    columns |= {"expected": lines.spread([case["expected"] for case in lines.cases], QUEUES)}
    return pa.table({**columns, "actual": silver["mq_divided"], **texts, "record_id": lines.ids})


def _case(row: dict) -> dict:
    for name in ("mq_all", "mq_divided"):
        row[name] = [{"broker_name": broker, "queue_id": queue} for broker, queue in row[name]]
    mq_all = [MessageQueue(row["topic"], q["broker_name"], q["queue_id"]) for q in row["mq_all"]]
    try:
        given = allocate(row["strategy"], row["consumer_group"], row["client_id"], mq_all, row["cid_all"])
    except RocketMQError as error:
        judgement = "agree" if row["error"] else "differ"
        return row | {"expected": None, "judgement": judgement, "reason": f"the strategy refuses these lists: {error}"}
    expected = [{"broker_name": q.broker_name, "queue_id": q.queue_id} for q in given]

    def order(queue: dict) -> tuple:
        return queue["broker_name"], queue["queue_id"]

    same = sorted(expected, key=order) == sorted(row["mq_divided"], key=order)
    reason = "the client took what the strategy gives"
    if not same:
        reason = "the client took other queues than the strategy gives for the lists it saw"
    return row | {"expected": expected, "judgement": "agree" if same else "differ", "reason": reason}
