"""Topics and groups that a slave lacks or has with other values than its master.

A slave copies both tables from its master every 10 s in 4.9 and every minute in 5.x (SlaveSynchronize#syncTopicConfig,
#syncSubscriptionGroupConfig). It answers pulls by its own copies, so without them it serves nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from mqreplay.core.system_names import is_made_by_brokers, is_system_group
from mqreplay.evidence.frames import columns
from mqreplay.evidence.intervals import INSTANT, merge

ANSWERS_EACH = 90  # seconds between two signs of life of a broker, at most, that belong together
PERM_INHERIT = 1  # topics with it are templates and the topics of clusters and brokers: each broker makes its own
TOPIC_VALUES = {"read_queue_nums": "readQueueNums", "write_queue_nums": "writeQueueNums", "perm": "perm"}
GROUP_VALUES = {
    "consume_enable": "consumeEnable",
    "consume_from_min_enable": "consumeFromMinEnable",
    "consume_broadcast_enable": "consumeBroadcastEnable",
    "retry_queue_nums": "retryQueueNums",
    "retry_max_times": "retryMaxTimes",
    "group_broker_id": "brokerId",
    "which_broker_when_consume_slowly": "whichBrokerWhenConsumeSlowly",
}
DRIFT: dict[str, pl.DataType] = {
    "broker_name": pl.String(),
    "broker_id": pl.Int64(),  # of the slave
    **columns("topic", "consumer_group"),
    "differs": pl.String(),  # values of the slave and of the master; null: the slave lacks it
    "from_ts": INSTANT,
    "to_ts": INSTANT,  # the last instant at which both brokers gave a sign of life
    "until_ts": INSTANT,  # the next change of either of them; null: none was recorded
    "source_name": pl.String(),  # key of the master's row
    "ts": INSTANT,
}
Of = tuple[str, Mapping[str, str]]


def slave_config_drift(
    topic_config: pl.DataFrame,
    subscription_group: pl.DataFrame,
    snapshot: pl.DataFrame,
    broker_runtime: pl.DataFrame,
    drift_s: int,
) -> pl.DataFrame:
    """Return the settings that differed for longer than ``drift_s`` seconds while both brokers answered.

    Columns: broker_name, broker_id, topic, consumer_group, differs, from_ts, to_ts, until_ts, source_name, ts.

    The other arguments are silver tables. What only the slave has is no drift: its next copy removes it. Topics that
    each broker creates itself or on demand, and values that one of the two does not state, are not compared.
    """
    watched = signs_of_life(broker_runtime, snapshot)
    found = [
        _drift(compared_topics(topic_config), topic_config, ("topic", TOPIC_VALUES), watched),
        _drift(compared_groups(subscription_group), subscription_group, ("consumer_group", GROUP_VALUES), watched),
    ]
    lasts = pl.col("to_ts") - pl.col("from_ts") > pl.duration(seconds=drift_s)
    return pl.concat(found).filter(lasts).sort("broker_name", "broker_id", "topic", "consumer_group", "from_ts")


def compared_topics(topic_config: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of silver.topic_config without the topics that each broker creates itself."""
    is_template = (pl.col("perm") & PERM_INHERIT) != 0
    return topic_config.filter(~is_template.fill_null(False) & ~_named("topic", is_made_by_brokers))


def compared_groups(subscription_group: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of silver.subscription_group without RocketMQ's own groups."""
    return subscription_group.filter(~_named("consumer_group", is_system_group))


def _named(column: str, rule: Callable[[str], bool]) -> pl.Expr:
    return pl.col(column).map_elements(rule, pl.Boolean)


def signs_of_life(broker_runtime: pl.DataFrame, snapshot: pl.DataFrame, each_s: int = ANSWERS_EACH) -> pl.DataFrame:
    """Return the times in which a broker gave signs of life, at least each ``each_s`` seconds: answers, changed files.

    Columns: broker_name, broker_id, since, until.
    """
    place = ["broker_name", "broker_id"]
    answered = broker_runtime.filter(pl.col("error").is_null()).select(*place, "ts")
    copied = snapshot.filter(pl.col("broker_id").is_not_null()).select(*place, "ts")
    signs = pl.concat([answered, copied]).unique()
    return merge(signs, place, at="ts", gap_s=each_s).rename({"from_ts": "since", "to_ts": "until"})


def _drift(configs: pl.DataFrame, every: pl.DataFrame, of: Of, watched: pl.DataFrame) -> pl.DataFrame:
    """Return the differences of one table, however short, with the columns of `slave_config_drift`."""
    name, values = of
    states = config_states(configs, every, of)
    is_master = pl.col("broker_id") == 0
    master = states.filter(is_master & pl.col("is_there")).drop("broker_id")
    met = states.filter(~is_master).join(master, on=["broker_name", name], suffix="_of_master")
    differences = [
        pl.when(pl.col(each) != pl.col(f"{each}_of_master")).then(
            pl.format("{} {} instead of {}", pl.lit(java), each, f"{each}_of_master")
        )
        for each, java in values.items()
    ]
    differs = pl.concat_str(differences, separator=", ", ignore_nulls=True)
    pairs = met.with_columns(pl.when("is_there").then(differs).alias("differs"))
    # A night has thousands of names and hundreds of times of life: few names differ.
    differing = pairs.filter(~pl.col("is_there") | (pl.col("differs") != ""))
    drifted = (
        differing.join(_both_alive(watched), ["broker_name", "broker_id"])
        .with_columns(
            pl.max_horizontal("since", "since_of_master", "alive_ts").alias("from_ts"),
            pl.min_horizontal("until", "until_of_master").alias("until_ts"),
        )
        .with_columns(pl.min_horizontal("until_ts", "dead_ts").alias("to_ts"))
        .filter(pl.col("from_ts") < pl.col("to_ts"))
    )
    known = {"source_name": pl.col("source_name_of_master"), "ts": pl.col("since_of_master")}
    columns = {n: known.get(n, pl.col(n) if n in drifted.columns else pl.lit(None)) for n in DRIFT}
    return drifted.select([column.cast(DRIFT[n]).alias(n) for n, column in columns.items()])


def _both_alive(watched: pl.DataFrame) -> pl.DataFrame:
    """Return when a slave and its master both gave signs of life: broker_name, broker_id, alive_ts, dead_ts."""
    is_master = pl.col("broker_id") == 0
    master = watched.filter(is_master).select("broker_name", "since", "until")
    both = watched.filter(~is_master).join(master, "broker_name", suffix="_of_master")
    begin, end = pl.max_horizontal("since", "since_of_master"), pl.min_horizontal("until", "until_of_master")
    return both.filter(begin < end).select("broker_name", "broker_id", begin.alias("alive_ts"), end.alias("dead_ts"))


def config_states(configs: pl.DataFrame, every: pl.DataFrame, of: Of) -> pl.DataFrame:
    """Return each state of a name at a broker: values, is_there, since, until (null: it did not end).

    A slave lacks a name from its first copy on, until the first row of the name.
    """
    name, values = of
    place = ["source_name", "broker_name", "broker_id"]
    rows = configs.select(*place, name, "ts", (pl.col("change") != "removed").alias("is_there"), *values)
    first = every.filter(pl.col("broker_id") > 0).group_by(place).agg(pl.col("ts").min())
    of_master = rows.filter(pl.col("broker_id") == 0).select("broker_name", name).unique()
    lacking = first.join(of_master, "broker_name").join(rows, [*place, name, "ts"], how="anti")
    absent = lacking.with_columns(pl.lit(False).alias("is_there"))
    ordered = pl.concat([rows, absent], how="diagonal").sort("ts", "is_there")
    following = pl.col("ts").shift(-1).over("source_name", name)
    return ordered.with_columns(following.alias("until")).rename({"ts": "since"})
