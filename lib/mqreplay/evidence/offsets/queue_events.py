"""All events of some queues as numpy columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from mqreplay.decode.consumer_offset import FILE_NAMES
from mqreplay.evidence.arrays.distinct import common_codes
from mqreplay.evidence.arrays.frame_arrays import Mask, Numbers, numbers
from mqreplay.evidence.frames import columns, valued
from mqreplay.evidence.intervals import INSTANT
from mqreplay.words.keys import QUEUE

COPIES, LOGGED_COMMITS, COMMITS = "copies", "broker_log", "commits"  # gold.offset_continuity.source
CHANGE_ROW, COMMIT_ROW, PULL_ROW, STATS_ROW = range(4)  # `what`: the table of a row
# Every column of an event, and its source in each table; null if a table has none.
EVENT_COLUMNS: Mapping[str, pl.DataType] = {
    "what": pl.Int8(),  # CHANGE_ROW; COMMIT_ROW; PULL_ROW; STATS_ROW
    **columns("broker_name", "topic", "queue_id", "consumer_group", "client_id", "broker_id"),
    "at": INSTANT,  # to_ts; ts; request_ts; ts
    "also_at": INSTANT,  # from_ts; -; response_ts; -
    "committed": pl.Int64(),  # new_offset; commit_offset; commit_offset if the pull carries one; -
    **columns("previous_offset", "queue_offset"),
    "next_begin_offset": pl.Int64(),  # the broker that answered the pull
    **columns("min_offset", "max_offset", "opaque"),
    "counts": pl.Boolean(),  # a change or commit from which the group's status is computed
}


@dataclass(frozen=True)
class Ends:
    """Begin and end offsets of queues by their masters, by queue and instant (microseconds), see `queue_ends`."""

    queue: Numbers
    at: Numbers
    asked_at: Numbers
    low: Numbers
    has_low: Mask
    high: Numbers
    has_high: Mask


class QueueEvents:
    """Events in any order, those of a queue together. An event is identified by its number in ``rows``."""

    def __init__(self, rows: pa.Table) -> None:
        """Take ``rows`` with EVENT_COLUMNS; text may be strings or dictionaries of strings."""
        self.rows = pa.table([_encoded(column) for column in rows.columns], names=rows.column_names)
        self.what: Numbers = self.rows["what"].to_numpy()
        (self.queue,) = common_codes([self._plain(name) for name in QUEUE])
        self._numbers: dict[str, tuple[Numbers, Mask]] = {}

    def numbers(self, name: str, of: Numbers | slice = slice(None)) -> tuple[Numbers, Mask]:
        """Return a column of the rows, null as 0, and where it is not null; instants are microseconds."""
        values, there = self._whole(name)
        return values[of], there[of]

    def known(self, name: str, of: Numbers) -> Numbers:
        """Return a column of the rows that is never null."""
        return self._whole(name)[0][of]

    def _whole(self, name: str) -> tuple[Numbers, Mask]:
        if name not in self._numbers:
            self._numbers[name] = numbers(self.rows[name])
        return self._numbers[name]

    @cached_property
    def key(self) -> Numbers:
        """Return a number for each row's queue and group."""
        (codes,) = common_codes([pa.array(self.queue), self._plain("consumer_group")])
        return codes

    @cached_property
    def by_client(self) -> Numbers:
        """Return a number for each row's queue, group and client."""
        (codes,) = common_codes([pa.array(self.key), self._plain("client_id")])
        return codes

    @cached_property
    def client_order(self) -> Numbers:
        """Return the rank of each row's client name, so that no result depends on the order of rows."""
        names = self.rows["client_id"].combine_chunks()
        order = np.argsort(names.dictionary.fill_null("").to_numpy(zero_copy_only=False), kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return place[names.indices.to_numpy()]

    @cached_property
    def names(self) -> tuple[Numbers, list[str]]:
        """Return the number of each row's broker name, and the names by number."""
        encoded = self.rows["broker_name"].combine_chunks()
        return encoded.indices.to_numpy(), encoded.dictionary.to_pylist()

    def _plain(self, name: str) -> pa.Array:
        """Return a column for comparisons: for text the indices, which are equal if the text is."""
        column = self.rows[name].combine_chunks()
        return column.indices if pa.types.is_dictionary(column.type) else column

    @cached_property
    def of_master(self) -> Mask:
        """Return whether each row is from a master or its file."""
        broker_id, there = self.numbers("broker_id")
        return there & (broker_id == 0)

    @cached_property
    def changes(self) -> Numbers:
        """Return the rows of brokers' files."""
        return np.flatnonzero(self.what == CHANGE_ROW)

    @cached_property
    def pulls(self) -> Numbers:
        """Return the rows of pulls."""
        return np.flatnonzero(self.what == PULL_ROW)

    @cached_property
    def ends(self) -> Ends:
        """Return the ends by masters: in answers to pulls, at their time, and in topic statistics."""
        _, has_high = self.numbers("max_offset")
        pulled = (self.what == PULL_ROW) & self.of_master & has_high
        known = np.flatnonzero(pulled | (self.what == STATS_ROW))
        asked, (answered, came) = self.known("at", known), self.numbers("also_at", known)
        at = np.where(came, answered, asked)
        low, has_low = self.numbers("min_offset", known)
        high, has_high = self.numbers("max_offset", known)
        # Sort by all columns, so that the result does not depend on the order of rows at the same instant.
        order = np.lexsort((asked, low, has_low, high, has_high, at, self.queue[known]))
        queue, at, asked = self.queue[known][order], at[order], asked[order]
        return Ends(queue, at, asked, low[order], has_low[order], high[order], has_high[order])

    def table(self, of: Numbers, names: Sequence[str], **found: pa.Array | npt.NDArray[np.generic]) -> pa.Table:
        """Return these columns of the rows, and the values ``found``."""
        own = self.rows.select(list(names)).take(pa.array(of))
        columns = [_decoded(column.combine_chunks()) for column in own.columns] + [
            value if isinstance(value, pa.Array) else pa.array(value) for value in found.values()
        ]
        return pa.Table.from_arrays(columns, names=[*names, *found])


def queue_events(
    offset_change: pl.DataFrame,
    offset_commit: pl.DataFrame,
    pull: pl.DataFrame,
    topic_stats: pl.DataFrame,
    groups_with_accepted_commits: AbstractSet[str],
) -> QueueEvents:
    """Return the events of the shard of queues that the first three frames are of, from brokers' files only.

    ``topic_stats`` is of all queues: statistics of a queue of which there is no other event change no result but the
    last instant, and last_instant reads them itself. ``groups_with_accepted_commits`` are those of all shards.
    """
    rows = pl.concat(
        [_changes(offset_change, groups_with_accepted_commits), _commits(offset_commit), _pulls(pull)]
    ).to_arrow()
    stats = _statistics(topic_stats)
    if len(stats):
        ends = stats.to_arrow()
        of_rows, of_ends = common_codes(*[[table[name] for name in QUEUE] for table in (rows, ends)])
        rows = pa.concat_tables([rows, ends.filter(pa.array(np.isin(of_ends, of_rows)))])
    return QueueEvents(rows)


def groups_with_commits_of_shard(offset_commit: pl.DataFrame) -> set[str]:
    """Return the groups of which any commit was recorded."""
    return set(offset_commit.filter(pl.col("kind") == "UPDATE")["consumer_group"].drop_nulls().unique())


def groups_with_accepted_commits_of_shard(offset_commit: pl.DataFrame) -> set[str]:
    """Return the groups of which a broker accepted a commit."""
    return set(accepted_commits(offset_commit)["consumer_group"].unique().to_list())


def accepted_commits(offset_commit: pl.DataFrame) -> pl.DataFrame:
    """Return the commits that a broker accepted."""
    return offset_commit.filter(_IS_COMMIT & _ACCEPTED)


def last_instant(parts: Iterable[int | None], topic_stats: pl.DataFrame) -> int | None:
    """Return the last commit or end of a queue in the recording (epoch ms), from those of its parts.

    If all groups stop, the brokers' ends prove that the recording continued.
    """
    of_stats = _statistics(topic_stats).select(pl.col("at").max().dt.epoch("ms")).item()
    return max((part for part in (*parts, of_stats) if part is not None), default=None)


_IS_COMMIT = (pl.col("kind") == "UPDATE") & pl.col("commit_offset").is_not_null()
# The broker answered, and did not store it. After a server-side reset it even answers SUCCESS, with this remark
# (ConsumerManageProcessor#updateConsumerOffset); its remark is null for a commit that it stored.
PREVIOUSLY_RESET = "Offset has been previously reset"
REFUSED_COMMIT = (pl.col("response_code").fill_null(0) != 0) | (pl.col("remark").fill_null("") == PREVIOUSLY_RESET)
_ACCEPTED = pl.col("error").is_null() & ~REFUSED_COMMIT


def stored_commits(offset_commit: pl.DataFrame) -> pl.DataFrame:
    """Return the rows without the commits that a broker refused."""
    return offset_commit.filter(~REFUSED_COMMIT)


def _changes(offset_change: pl.DataFrame, groups_with_accepted_commits: AbstractSet[str]) -> pl.DataFrame:
    # If no commits of a group were recorded, the master's snapshots count instead.
    is_known = pl.col("consumer_group").is_in(sorted(groups_with_accepted_commits))
    return _events(
        offset_change.filter(pl.col("broker_id").is_not_null()),
        CHANGE_ROW,
        at=pl.col("to_ts"),
        also_at=pl.col("from_ts"),
        committed=pl.col("new_offset"),
        counts=(pl.col("broker_id") == 0) & pl.col("new_offset").is_not_null() & ~is_known,
    )


def _commits(offset_commit: pl.DataFrame) -> pl.DataFrame:
    return _events(
        offset_commit.filter(_IS_COMMIT & ~REFUSED_COMMIT),
        COMMIT_ROW,
        at=pl.col("ts"),
        committed=pl.col("commit_offset"),
        counts=_ACCEPTED,
    )


def _pulls(pull: pl.DataFrame) -> pl.DataFrame:
    return _events(
        pull,
        PULL_ROW,
        at=pl.col("request_ts"),
        also_at=pl.col("response_ts"),
        # Sent with the commit bit of PullSysFlag only; without it the field is 0.
        committed=pl.when(pl.col("commit_offset") > 0).then("commit_offset"),
        next_begin_offset=pl.when(pl.col("response_code").is_not_null()).then("next_begin_offset"),
    )


def _statistics(topic_stats: pl.DataFrame) -> pl.DataFrame:
    of_masters = topic_stats.filter((pl.col("broker_id") == 0) & pl.col("offsets").is_not_null())
    ends = of_masters.select("ts", "broker_id", "offsets").explode("offsets").unnest("offsets")
    return _events(ends, STATS_ROW, at=pl.col("ts"))


def _events(frame: pl.DataFrame, what: int, **columns: pl.Expr) -> pl.DataFrame:
    own = {name: pl.col(name) for name in EVENT_COLUMNS if name in frame.columns}
    of_event = own | columns | {"what": pl.lit(what)}
    return valued(frame, EVENT_COLUMNS, **of_event)


def _encoded(column: pa.ChunkedArray) -> pa.Array:
    """Return text as a dictionary, so that it is hashed only once; other columns unchanged."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())  # its indices may be null, and have gaps
    whole = column.combine_chunks()
    if not (pa.types.is_string(whole.type) or pa.types.is_large_string(whole.type)):
        return whole
    return whole.dictionary_encode(null_encoding="encode")


def _decoded(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def is_offset_file() -> pl.Expr:
    """Return whether ``file_name`` is a broker's offset file, its .bak, or its polls (consumerOffset.jsonl.gz)."""
    names = (pl.col("file_name").str.starts_with(name) for name in FILE_NAMES)
    return pl.any_horizontal(*names) & pl.col("broker_id").is_not_null()


class LastCopies(NamedTuple):
    """Times of the last copies of brokers' offset files (microseconds)."""

    of_masters: dict[str, int]  # by broker name
    of_slaves: dict[str, dict[int, int]]  # by broker name and broker id


def last_copies(snapshot: pl.DataFrame) -> LastCopies:
    """Return the time of the last copy of each broker's offset file."""
    last = snapshot.filter(is_offset_file()).group_by("broker_name", "broker_id").agg(pl.col("ts").max().dt.epoch("us"))
    found = LastCopies({}, {})
    for broker_name, broker_id, copied_us in last.rows():
        if broker_id == 0:
            found.of_masters[broker_name] = copied_us
        else:
            found.of_slaves.setdefault(broker_name, {})[broker_id] = copied_us
    return found
