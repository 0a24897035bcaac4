"""The configuration of broker and group at each pull, and the suggestions that follow from it.

A description is valid until the next one. The first one is also valid before its instant: the broker had this
configuration before the recorder asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from mqreplay.core.pull_answer import OFFSET_RESET, PULL_OFFSET_MOVED, suggest_which_broker_id
from mqreplay.core.slave_suggestion import effective_ratio, memory_threshold
from mqreplay.core.topic_route import MASTER_ID
from mqreplay.core.version import BROKER_4, BROKER_5, version_key
from mqreplay.evidence.arrays.distinct import distinct_rows, key_codes
from mqreplay.evidence.arrays.frame_arrays import Numbers, column_numbers, gathered, starts
from mqreplay.evidence.arrays.nearest import nearest
from mqreplay.evidence.intervals import with_state
from mqreplay.words.errors import IllegalArgument, MqreplayError
from mqreplay.words.keys import BROKER

LATEST = np.iinfo(np.int64).max
GROUP_KEY = (*BROKER, "consumer_group")
IN_CONTAINER = "isInBrokerContainer"
STORE_PLUG_IN = "the broker has a plug-in of its store (messageStorePlugIn), which may answer by other rules"
BROKER_COLUMNS = (
    *("broker_id", "since_5", "slave_read_enable", "acts_as_master", "effective_ratio", "memory"),
    *("physical_memory_bytes", "has_store_plug_in", "in_container", "may_be_in_container"),
)
PROPERTIES = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
_MAJOR = re.compile(r"^\s*[Vv]?([0-9]{1,4})")
GROUP_COLUMNS = ("group_broker_id", "which_broker_when_consume_slowly")


def with_descriptions(pull: pl.DataFrame, broker: pl.DataFrame, subscription_group: pl.DataFrame) -> pl.DataFrame:
    """Return the pulls, in their order, with the configuration at their requests:

    has_broker, has_group                                whether the broker, and the group on it, were described
    has_store_plug_in                                    of the broker, see has_store_plug_in
    in_container, may_be_in_container                    whether it runs in a broker container, and if that is unknown
    since_5, slave_read_enable, effective_ratio, memory  of the broker: its version, ratio in percent, memory in bytes
    physical_memory_bytes                                the memory of its machine
    if_slow, if_not                                      the suggestion to a slow client and to one that is not slow;
                                                         null where it depends on whether the master lives

    A group made by its first client is in subscriptionGroup.json only after the broker's next save.
    """
    brokers = described_brokers(broker)
    groups = subscription_group.filter(pl.col("change") != "removed")
    of_broker, of_group = valid_descriptions(pull, brokers, BROKER), valid_descriptions(pull, groups, GROUP_KEY)
    place, row_of = distinct_rows([pa.array(of_broker), pa.array(of_group)])
    of_broker, of_group = of_broker[row_of], of_group[row_of]
    cases = pl.DataFrame(
        [pl.Series("has_broker", of_broker >= 0), pl.Series("has_group", of_group >= 0)]
        + [gathered(brokers[name], of_broker) for name in BROKER_COLUMNS]
        + [gathered(groups[name], of_group) for name in GROUP_COLUMNS]
    )
    cases = cases.with_columns(
        pl.Series("if_slow", [_suggested(case, slow=True) for case in cases.rows(named=True)], pl.Int64),
        pl.Series("if_not", [_suggested(case, slow=False) for case in cases.rows(named=True)], pl.Int64),
    ).drop("broker_id", "acts_as_master", *GROUP_COLUMNS)
    return pl.concat([pull, cases.gather(place)], how="horizontal")


def valid_descriptions(pull: pl.DataFrame, described: pl.DataFrame, by: Sequence[str]) -> Numbers:
    """Return for each pull the row of ``described`` that is valid at its request, NOWHERE if there is none."""
    key, of_description = key_codes(by, pull, described)
    request, at = column_numbers(pull, "request_ts")[0], column_numbers(described, "ts")[0]
    order = np.lexsort((at, of_description))
    first = order[starts(of_description[order])]
    since = at.copy()
    since[first] = min(request.min(initial=LATEST), at.min(initial=LATEST))
    return nearest(key, request, of_description, since)


def properties_of(described: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties of a description, a row of silver.broker that is cast to PROPERTIES, by their keys."""
    return {each["key"]: each["value"] for each in described["properties"] or ()}


def descriptions(broker: pl.DataFrame) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Yield each description, a row of silver.broker, with its properties by their keys."""
    for row in broker.with_columns(pl.col("properties").cast(PROPERTIES)).iter_rows(named=True):
        yield row, properties_of(row)


def version_of(described: Mapping[str, Any]) -> str:
    """Return the version of a description, BROKER_4 where it names none."""
    return possible_versions(described)[0]


def possible_versions(described: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the version of a description; where it names none, one of each major version."""
    version: str = described["rocketmq_version"] or ""
    try:
        version_key(version)
    except IllegalArgument:
        major = _MAJOR.match(version)
        return (BROKER_4, BROKER_5) if major is None else (BROKER_5 if int(major[1]) >= 5 else BROKER_4,)
    return (version,)


def major_version(column: str = "rocketmq_version") -> pl.Expr:
    """Return the first number of a version such as 5.3.3 or V5_3_3; null if the text is no version."""
    return pl.col(column).str.extract(_MAJOR.pattern).cast(pl.Int32)


def has_store_plug_in() -> pl.Expr:
    """Return whether a broker has a plug-in of its store, such as the tiered store (TieredMessageStore).

    A plug-in need not follow DefaultMessageStore: the tiered store states the end of what it has stored remotely for
    the end of the queue, bounds batches otherwise, and suggests no slave (MessageStoreFetcherImpl#getMessageAsync).
    """
    names_one = pl.element().struct.field("value").str.strip_chars() != ""
    return _has_setting("messageStorePlugIn", names_one).alias("has_store_plug_in")


def elects_master() -> pl.Expr:
    """Return whether a controller or DLedger elects the master of a broker's name."""
    is_true = pl.element().struct.field("value").str.to_lowercase() == "true"
    return _has_setting("enableControllerMode", is_true) | _has_setting("enableDLegerCommitLog", is_true)


def with_stated_ends(pull: pl.DataFrame, broker: pl.DataFrame) -> pl.DataFrame:
    """Return the pulls; max_offset is null where it is not the end of the queue.

    A plug-in of the store may have read, and have another end of its own. Where a queue has nothing more, its own end
    is stated, and with an offset that was reset. A broker of 5.1 and later that tells a broadcasting client where to
    begin states 0 for both ends (PullMessageProcessor#queryBroadcastPullInitOffset).
    """
    moved, has_no_end = pl.col("response_code") == PULL_OFFSET_MOVED, (pl.col("max_offset") == 0)
    begins = moved & has_no_end & ((pl.col("remark") == OFFSET_RESET) | (pl.col("next_begin_offset") > 0))
    pull = pull.with_columns(pl.when(~begins.fill_null(value=False)).then("max_offset").alias("max_offset"))
    described = broker.with_columns(has_store_plug_in())
    if not described["has_store_plug_in"].any():
        return pull
    place = valid_descriptions(pull.with_columns(pl.col("broker_id").fill_null(0)), described, BROKER)
    is_reset = moved & (pl.col("queue_offset") >= pl.col("min_offset"))
    read = (pl.col("queue_offset") < pl.col("max_offset")) & ~is_reset.fill_null(value=False)
    by_plug_in = gathered(described["has_store_plug_in"], place).fill_null(value=False)
    return pull.with_columns(pl.when(~(by_plug_in & read.fill_null(value=True))).then("max_offset").alias("max_offset"))


def _has_setting(name: str, condition: pl.Expr) -> pl.Expr:
    """Return whether a description has a setting whose value, an element of its properties, meets a condition."""
    is_it = (pl.element().struct.field("key") == name) & condition
    return pl.col("properties").cast(PROPERTIES).list.eval(is_it).list.any().fill_null(False)


def valid_at(rows: pl.DataFrame, described: pl.DataFrame, ts: str, by: Sequence[str] = BROKER) -> pl.DataFrame:
    """Return the rows, by ``ts``, with the columns of the description of their broker that is valid then.

    ``described`` has the columns ``by`` and its own ts. A row of a broker without a description has nulls.
    """
    is_first = pl.col("ts") == pl.col("ts").min().over(by)
    since = pl.when(is_first).then(pl.lit(0, pl.Int64)).otherwise(pl.col("ts").dt.epoch("us"))
    known = described.with_columns(since.alias("_since")).sort("_since", maintain_order=True).drop("ts")
    asked = rows.sort(ts, maintain_order=True).with_columns(pl.col(ts).dt.epoch("us").alias("_since"))
    return with_state(asked, known, by, "_since").drop("_since")


def described_brokers(broker: pl.DataFrame) -> pl.DataFrame:
    """Return the descriptions of brokers.

    Columns: broker_name, broker_id, ts, since_5, slave_read_enable, acts_as_master, has_store_plug_in, in_container,
    may_be_in_container, effective_ratio (percent), memory (bytes), physical_memory_bytes, broker_addr,
    configured_ratio (percent).
    effective_ratio and memory are null where the description lacks what they follow from; physical_memory_bytes,
    configured_ratio and broker_addr are as described.
    """
    value = pl.element().struct.field("value").str.to_lowercase()
    rows = broker.with_columns(
        (major_version() >= 5).alias("since_5"),
        _has_setting("enableSlaveActingMaster", value == "true").alias("acts_as_master"),
        has_store_plug_in(),
        _has_setting(IN_CONTAINER, value == "true").alias("in_container"),
        # 5.0 does not report it (MixAll#object2Properties), nor does a broker.conf.
        ((major_version() >= 5) & ~_has_setting(IN_CONTAINER, pl.lit(value=True)))
        .fill_null(value=False)
        .alias("may_be_in_container"),
    )
    ratios = [_ratio(row) for row in rows.rows(named=True)]
    memories = [_memory(row, ratio) for row, ratio in zip(rows.rows(named=True), ratios, strict=True)]
    return rows.with_columns(
        pl.Series("effective_ratio", ratios, pl.Int64), pl.Series("memory", memories, pl.Int64)
    ).select(
        *(*BROKER, "ts", "since_5", "slave_read_enable", "acts_as_master"),
        *("has_store_plug_in", "in_container", "may_be_in_container", "effective_ratio", "memory", "broker_addr"),
        "physical_memory_bytes",
        pl.col("access_message_in_memory_max_ratio").alias("configured_ratio"),
    )


def _ratio(broker: dict[str, Any]) -> int | None:
    """Return the ratio reported by the running broker; else the one derived from version and properties."""
    reported: int | None = broker["effective_access_message_in_memory_max_ratio"]
    ratio, version = broker["access_message_in_memory_max_ratio"], broker["rocketmq_version"]
    if reported is not None or ratio is None or version is None:
        return reported
    try:
        return effective_ratio(ratio, broker["broker_role"], version)
    except MqreplayError:  # not a version
        return None


def _memory(broker: dict[str, Any], ratio: int | None) -> int | None:
    size = broker["physical_memory_bytes"]
    return None if size is None or ratio is None else memory_threshold(size, ratio)


def _suggested(case: dict[str, Any], *, slow: bool) -> int | None:
    """Return the suggestions for a slow pull and another; None if the broker or the group is not described."""
    needed = ("slave_read_enable", *GROUP_COLUMNS, "broker_id")
    if any(case[name] is None for name in needed):
        return None
    # A slave that may act as master knows the least living id of its name; any other takes it to be the master's
    # (BrokerController#minBrokerIdInGroup).
    least = {MASTER_ID, case["broker_id"]} if case["acts_as_master"] else {MASTER_ID}
    suggested = {
        suggest_which_broker_id(
            slow,
            case["slave_read_enable"],
            case["group_broker_id"],
            case["which_broker_when_consume_slowly"],
            broker_id=case["broker_id"],
            min_broker_id_in_group=min_broker_id,
            in_broker_container=case["in_container"],
            version=BROKER_5 if case["since_5"] else BROKER_4,
        )
        for min_broker_id in least
    }
    return suggested.pop() if len(suggested) == 1 else None
