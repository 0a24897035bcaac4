"""Changes of a master by elections of controllers and of DLedger, as logs of brokers and controllers have them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from mqreplay.decode.broker_events import BECAME_MASTER, BECAME_SLAVE, ELECTED, INACTIVE, NOT_ELECTED
from mqreplay.evidence.frames import columns
from mqreplay.evidence.intervals import INSTANT

SAME: Final = dt.timedelta(seconds=30)  # a controller and the brokers write of one election within this time
SAME_ROLE: Final = dt.timedelta(seconds=5)  # lines of brokers that name no epoch
LOST_BEFORE: Final = dt.timedelta(seconds=60)  # a controller elects at once when it has lost the master
FIRST_EPOCH: Final = 1  # the first master of a broker name: there was none before
ELECTIONS: dict[str, pl.DataType] = {
    "broker_name": pl.String(),
    "from_ts": INSTANT,  # the controller lost the old master, or the first line of the election
    "to_ts": INSTANT,
    "master_epoch": pl.Int64(),
    "old_id": pl.Int64(),
    "old_addr": pl.String(),
    "new_id": pl.Int64(),
    "new_addr": pl.String(),
    "why": pl.String(),  # expired, closed or lost: why the controller elected; null: not known
    **columns("is_elected"),  # false: the controller found no replica for it
    "gained": pl.Int64(),  # brokers that began to be the master, or slaves, by their own logs
    "left": pl.Int64(),
    "record_ids": pl.List(pl.String()),
}
Row = Mapping[str, Any]


@dataclass
class _Round:
    """What lines say of one election: those of one epoch, or of one time where they name no epoch."""

    epoch: int | None
    from_ts: dt.datetime
    to_ts: dt.datetime
    master_id: int | None = None
    master_addr: str | None = None
    is_elected: bool = True
    is_at_start: bool = True
    gained: int = 0
    left: int = 0
    record_ids: list[str] = field(default_factory=list)

    def fits(self, row: Row) -> bool:
        """Return whether a line is of this election."""
        if self.epoch is not None and row["master_epoch"] is not None:
            return bool(self.epoch == row["master_epoch"])
        is_of_role = self.epoch is None and self.master_id is None and self.gained + self.left > 0
        return bool(row["ts"] - self.from_ts <= (SAME_ROLE if is_of_role else SAME))

    def add(self, row: Row) -> None:
        """Add a line."""
        self.epoch = row["master_epoch"] if self.epoch is None else self.epoch
        self.to_ts = max(self.to_ts, min(row["ts"], self.from_ts + SAME))
        self.master_id = row["master_id"] if self.master_id is None else self.master_id
        self.master_addr = row["master_addr"] if self.master_addr is None else self.master_addr
        self.is_elected = row["event"] != NOT_ELECTED
        self.is_at_start = self.is_at_start and bool(row["is_at_start"])
        self.gained += row["event"] == BECAME_MASTER
        self.left += row["event"] == BECAME_SLAVE
        self.record_ids.append(row["record_id"])


def elections(broker_event: pl.DataFrame) -> pl.DataFrame:
    """Return the changes of masters that the lines of logs show, one for each election: columns ELECTIONS.

    An epoch of a controller (or a term of DLedger) has one master: all lines with it are of one election. It changes
    nothing if the master is the one of the epoch before, or if it is the first of the broker name. A broker that
    starts takes its role by an epoch that may be old: without an earlier line, its role shows no change.
    """
    kinds = [BECAME_MASTER, BECAME_SLAVE, ELECTED, NOT_ELECTED, INACTIVE]
    rows = broker_event.filter(pl.col("event").is_in(kinds)).sort("ts", "record_id")
    changes = [
        change
        for name in rows["broker_name"].unique(maintain_order=True)
        for change in _changes(rows.filter(pl.col("broker_name") == name).to_dicts())
    ]
    return pl.DataFrame(changes, ELECTIONS)


def _changes(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    rounds: list[_Round] = []
    for row in rows:
        if row["event"] != INACTIVE:
            last = next((each for each in reversed(rounds) if each.fits(row)), None)
            if last is None:
                last = _Round(row["master_epoch"], row["ts"], row["ts"])
                rounds.append(last)
            last.add(row)
    losses = [row for row in rows if row["event"] == INACTIVE]
    for before, election in zip([None, *rounds], rounds, strict=False):
        near = [row for row in losses if election.from_ts - LOST_BEFORE <= row["ts"] <= election.to_ts]
        near = [row for row in near if row["broker_id"] is None or row["broker_id"] != election.master_id]
        if not _is_change(before, election, near):
            continue
        known = {name: [row[name] for row in near if row[name] is not None] for name in ("broker_id", "broker_addr")}
        old_id = known["broker_id"][0] if known["broker_id"] else before and before.master_id
        old_addr = known["broker_addr"][0] if known["broker_addr"] else before and before.master_addr
        reasons = [row["detail"] or "lost" for row in near]
        yield {
            "broker_name": rows[0]["broker_name"],
            "from_ts": min([election.from_ts, *(row["ts"] for row in near)]),
            "to_ts": election.to_ts,
            "master_epoch": election.epoch,
            "old_id": old_id,
            "old_addr": old_addr,
            "new_id": election.master_id,
            "new_addr": election.master_addr,
            "why": reasons[0] if reasons else None,
            "is_elected": election.is_elected,
            "gained": election.gained,
            "left": election.left,
            "record_ids": sorted([*election.record_ids, *(row["record_id"] for row in near)]),
        }


def _is_change(before: _Round | None, election: _Round, losses: list[dict[str, Any]]) -> bool:
    if not election.is_elected:
        return True
    if election.epoch is not None and election.epoch <= FIRST_EPOCH:
        return False
    new = (election.master_id, election.master_addr)
    if before is not None:
        same = (a == b for a, b in zip((before.master_id, before.master_addr), new, strict=True) if None not in (a, b))
        known = list(same)
        if known:
            return not any(known)
    is_role_of_start = election.is_at_start and (before is None or new == (None, None))
    return bool(losses) or not is_role_of_start
