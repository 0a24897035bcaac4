"""Lines of the pull log -> silver.pull (polars), and of each pull the few numbers that decisions look at (numpy)."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from .delta import Written, hex_strings, write_frame

LONG, INT, TEXT = pl.Int64, pl.Int32, pl.String
FIELDS = {
    "request_ts": LONG,
    "response_ts": LONG,
    "client_id": TEXT,
    "consumer_group": TEXT,
    "topic": TEXT,
    "broker_name": TEXT,
    "queue_id": INT,
    "broker_addr": TEXT,
    "broker_id": LONG,
    "opaque": LONG,
    "queue_offset": LONG,
    "commit_offset": LONG,
    "sys_flag": INT,
    "max_msg_nums": INT,
    "suspend_timeout_ms": LONG,
    "sub_version": LONG,
    "expression": TEXT,
    "expression_type": TEXT,
    "response_code": INT,
    "response_name": TEXT,
    "remark": TEXT,
    "next_begin_offset": LONG,
    "min_offset": LONG,
    "max_offset": LONG,
    "suggest_which_broker_id": LONG,
    "body_bytes": LONG,
    "msg_count": INT,
    "first_queue_offset": LONG,
    "last_queue_offset": LONG,
    "first_commitlog_offset": LONG,
    "last_commitlog_offset": LONG,
    "last_store_size": LONG,
    "first_born_ts": LONG,
    "error": TEXT,
}
INSTANTS = ("request_ts", "response_ts", "first_born_ts")
PLACE = ("client_id", "consumer_group", "topic", "broker_name", "queue_id")
NUMBERS = (
    "request_ts",
    "response_ts",
    "opaque",
    "broker_id",
    "queue_offset",
    "next_begin_offset",
    "min_offset",
    "max_offset",
    "suggest_which_broker_id",
)
NULL = -(2**63)
UNKNOWN = -1  # an answer that came, or may have come, unseen; no broker id is negative


@dataclass(frozen=True)
class PullFile:
    """What a file of the pull log gave. ``places`` are its distinct PLACEs; ``numbers`` the file of NUMBERS."""

    written: Written
    places: list[tuple]
    subscribed: dict[str, int]
    numbers: str
    first_ts: int
    last_ts: int
    told: np.ndarray  # of each place: what its last answer suggested
    answered: np.ndarray  # when its last answer came
    reached: np.ndarray  # how far its pulls came (messages)


def gunzip(path: Path | str) -> bytes:
    """All bytes of a gzipped file of one member."""
    return zlib.decompress(Path(path).read_bytes(), 31)


def digests_of(text: bytes) -> np.ndarray:
    """The first 16 bytes of each line's SHA-256. Raises ValueError for a line that stands twice."""
    sha256 = hashlib.sha256
    found = [sha256(line).digest()[:16] for line in text.split(b"\n") if line]
    if len(set(found)) != len(found):
        raise ValueError("a line stands twice: the peers are not written for that")
    return np.frombuffer(b"".join(found), np.uint8).reshape(-1, 16)


def place_codes(frame: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """A row of each distinct PLACE, and for every row which of them it has."""
    packed, most = np.zeros(len(frame), np.int64), 1
    for name in PLACE:
        column = frame[name]
        codes = column.cast(pl.Categorical).to_physical() if column.dtype == pl.String else column
        size = int(codes.max()) + 1  # type: ignore[arg-type]
        packed, most = packed * size + codes.to_numpy(), most * size
    if most > 2**62:
        raise ValueError("so many clients, groups and topics do not fit into a number")
    _, first, keyed = np.unique(packed, return_index=True, return_inverse=True)
    return first, keyed.astype(np.int32)


def read_pulls(path: str, cluster: str, table: str, scratch: str) -> PullFile:
    """One file into the table's folder; its numbers into ``scratch``."""
    text = gunzip(path)
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:32]
    ids = digests_of(text)
    frame = pl.read_ndjson(text, schema=FIELDS)
    del text
    silver = frame.select(
        pl.lit(cluster).alias("cluster"),
        pl.from_epoch("request_ts", "ms").dt.date().alias("day"),
        *[
            (pl.col(name) * 1000).cast(pl.Datetime("us", "UTC")) if name in INSTANTS else pl.col(name)
            for name in FIELDS
        ],
        pl.Series("record_id", hex_strings(ids)),
        pl.lit(digest).alias("source_digest"),
    )
    written = write_frame(Path(table), silver)
    del silver
    first, keyed = place_codes(frame)
    places = frame.select(PLACE)[first].rows()
    born = frame.group_by("client_id").agg(pl.col("sub_version").min()).rows()
    numbers = np.stack([frame[name].fill_null(NULL).to_numpy() for name in NUMBERS])
    failed = frame["error"].is_not_null().to_numpy()
    to = f"{scratch}/{Path(path).name}.npy"
    failed_or_not = np.where(failed, 1, NULL)
    np.save(to, np.concatenate([numbers, keyed[None].astype(np.int64), failed_or_not[None]]))
    np.save(f"{to}.ids.npy", ids)
    times = numbers[0]
    if (np.diff(times) < 0).any():
        raise ValueError(f"{path} is not in the order of its times: the peers are not written for that")
    told, answered, reached = _closing(Numbers(numbers, keyed, failed), len(places))
    return PullFile(written, places, dict(born), to, int(times[0]), int(times[-1]), told, answered, reached)


class Numbers:
    """The numbers of a file's pulls, by name, in the order of their requests."""

    def __init__(self, rows: np.ndarray, place: np.ndarray, failed: np.ndarray) -> None:
        self.place, self.failed, self._rows = place, failed, rows

    @classmethod
    def of(cls, path: str) -> Numbers:
        """Those that a worker left."""
        rows = np.load(path, mmap_mode="r")
        return cls(rows, rows[-2].astype(np.int32), rows[-1] == 1)

    def __getitem__(self, name: str) -> np.ndarray:
        """A column of NUMBERS; NULL where there is none."""
        return self._rows[NUMBERS.index(name)]

    @property
    def told(self) -> np.ndarray:
        """What each answer suggested; UNKNOWN if it may have come unseen, NULL if it suggested nothing."""
        unseen = (self["response_ts"] == NULL) & ~self.failed
        return np.where(unseen, UNKNOWN, self["suggest_which_broker_id"])

    @property
    def answered(self) -> np.ndarray:
        """When each answer came, or else the request went."""
        return np.where(self["response_ts"] == NULL, self["request_ts"], self["response_ts"])

    @property
    def reached(self) -> np.ndarray:
        """How far each pull brings its group (messages)."""
        return np.maximum(self["next_begin_offset"], self["queue_offset"])


def _closing(numbers: Numbers, places: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    told, answered, reached = (np.full(places, NULL) for _ in range(3))
    suggested = np.flatnonzero(numbers.told != NULL)
    told[numbers.place[suggested]] = numbers.told[suggested]  # of several the last stands
    answered[numbers.place] = numbers.answered
    np.maximum.at(reached, numbers.place, numbers.reached)
    return told, answered, reached
