"""Made-up breaks in offsets, owners of queues, outages and resets, and the findings of resets."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.evidence.intervals import INSTANT
from mqreplay.findings.offset_resets import reset_findings
from silver_moments import at
from silver_rows import rows

GAP_S, RESET_GAP_S, REACH_S, HANDOVER_S = 120, 30, 60, 45
BREAK = {"topic": "T", "broker_name": "b", "broker_id": 0, "queue_id": 0, "kind": "rewind", "cause": "client_commit"}
Row = dict[str, Any]


def broke(group: str, seconds: float, size: int | None, again: int | None = 0, **differs: object) -> Row:
    row = {"consumer_group": group, "from_ts": at(seconds - 5), "to_ts": at(seconds), "size": size}
    step = 0 if size is None else -size if differs.get("kind") in ("jump", "beyond_max") else size
    row |= {"previous_offset": 100 + step, "new_offset": 100, "redelivered_max": again}
    return BREAK | row | differs


BREAKS = [
    broke("went back", 10, 7, 7),
    broke("went back", 10, 9, 9, queue_id=1),
    # The slave's copy of it shows the same, later, and without a cause.
    broke("went back", 20, 9, 9, queue_id=1, broker_id=1, cause="unknown"),
    broke("nothing again", 10, 7, 0),
    broke("a slave alone", 10, 7, 7, broker_id=1, cause="unknown"),
    broke("more than a bigint", 10, 7, 2**63 - 1),
    broke("more than a bigint", 10, 7, 2**63 - 1, queue_id=1),
    broke("more than a bigint", 10, 7, 9, queue_id=2),
    broke("two causes", 10, 7, 7),
    broke("two causes", 10, 7, 7, cause="set_from_outside", queue_id=1),
    # Past the end, and put back to the end by the next pull: one finding, as long as it was there.
    broke("past the end", 10, 900, kind="beyond_max", new_offset=999, queue_max_offset=99, cause="set_from_outside"),
    broke("past the end", 40, 900, cause="corrected", new_offset=99, queue_max_offset=104),
    # A slave of 5.x copies its master's offsets once a minute, and knows the queue's end of then.
    broke("shown late", 50, 900, kind="beyond_max", new_offset=999, queue_max_offset=99, cause="set_from_outside"),
    broke("shown late", 70, 900, kind="beyond_max", new_offset=999, queue_max_offset=120, broker_id=1, from_ts=at(1)),
    broke("shown late", 60, 900, cause="corrected", new_offset=99, queue_max_offset=99),
    broke("shown late", 130, 900, cause="corrected", new_offset=130, queue_max_offset=130, broker_id=1),
    broke("past an unknown end", 10, 900, kind="beyond_max", new_offset=999),
    broke("handed over", 100, 7, 7),
    broke("handed over and back", 100, 7, 7),
    broke("handed over and back", 100, 8, 8, queue_id=1, cause="set_from_outside"),
    broke("handed over long before", 100, 7, 7),
    broke("held alone", 100, 7, 7),
    broke("within the gap", 10, 7, 7),
    broke("within the gap", 40, 7, 7),
    broke("past the gap", 10, 7, 7),
    broke("past the gap", 40.001, 7, 7),
    broke("reset back", 108, 7, 7, cause="reset"),
    broke("reset ahead", 108, 80, kind="jump", cause="reset"),
    broke("reset ahead", 109, 90, kind="jump", cause="reset", queue_id=1),
    broke("reset, shown late", 161, 7, 7, cause="reset"),
    broke("reset, copied by a slave", 108, 7, 7, cause="reset", broker_id=1),
    # No findings of their own: an entry that is gone, an offset below the queue's beginning.
    broke("gone", 10, 0, kind="vanished", new_offset=None),
    broke("cleaned", 10, 0, kind="below_min"),
]


def down(*spans: tuple[float, float]) -> pl.DataFrame:
    """Outages of the master b."""
    schema = {"broker_name": pl.String, "broker_id": pl.Int64, "from_ts": INSTANT, "to_ts": INSTANT}
    return pl.DataFrame([("b", 0, at(since), at(until)) for since, until in spans], schema, orient="row")


def held(group: str, client: str, since: float, until: float, **differs: object) -> Row:
    row = {"consumer_group": group, "client_id": client, "from_ts": at(since), "to_ts": at(until)}
    return row | {"topic": "T", "broker_name": "b", "queue_id": 0, "source": "assignments"} | differs


OWNERS = [
    *[held(g, "old", 0, 96) for g in ("handed over", "handed over and back", "held alone")],
    *[held(g, "new", 90, 500) for g in ("handed over", "handed over and back")],
    held("held alone", "old", 96, 500),
    held("held alone", "other", 0, 500, queue_id=1),
    held("handed over long before", "old", 0, 49),
    held("handed over long before", "new", 50, 500),
]


def pushed(group: str, seconds: float, client: str = "c1") -> list[Row]:
    """A reset of two queues, as offset_resets gives it."""
    place = {"consumer_group": group, "topic": "T", "broker_name": "b", "offset": 100}
    sent = {
        "since": at(seconds),
        "ts": at(seconds),
        "table_name": "silver.server_request",
        "record_id": f"{group}{seconds}{client}",
    }
    return [place | sent | {"queue_id": queue} for queue in (0, 1)]


PUSHES = [
    *[row for client in ("c1", "c2") for row in pushed("reset back", 100, client)],
    *pushed("reset ahead", 100),
    *pushed("reset to where it was", 100),
    *pushed("reset, shown late", 100),
    *pushed("reset, copied by a slave", 100),
    *[row for seconds in (100, 130, 160.001) for row in pushed("reset again and again", seconds)],
]
RESETS = {
    "consumer_group": pl.String,
    "broker_name": pl.String,
    "topic": pl.String,
    "queue_id": pl.Int32,
    "asked": pl.Int64,
    "offset": pl.Int64,
    "delivered_to": pl.Int64,
    "since": pl.Datetime("us", "UTC"),
    "ts": pl.Datetime("us", "UTC"),
    "table_name": pl.String,
    "record_id": pl.String,
}


NO_RESETS = pl.DataFrame(schema=RESETS)


def breaks(differs: list[Row]) -> pl.DataFrame:
    return rows("gold.offset_continuity", {}, differs)


def owned(differs: list[Row]) -> pl.DataFrame:
    return rows("gold.queue_owner", {}, differs)


def of_resets(resets: list[Row], differs: list[Row]) -> list[Row]:
    found = reset_findings(pl.DataFrame(resets, RESETS), breaks(differs), "c", RESET_GAP_S, REACH_S)
    return found.sort("from_ts").to_dicts()
