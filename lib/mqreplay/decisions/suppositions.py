"""Another setting than that of the night, as other inputs of the same rules: what `mqreplay whatif` supposes.

A supposition changes rows of silver tables. The kernels that judge a night then decide on these rows, so no rule is
written twice, and the settings of the night give the night.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import polars as pl

RATIO: Final = "accessMessageInMemoryMaxRatio"
SLAVE_READ: Final = "slaveReadEnable"
FIRST, LAST = "!", "~"  # client ids that begin so sort before, and after, those of clients (by their addresses)


@dataclass(frozen=True)
class BrokerSetting:
    """``name`` of the settings of a broker is ``value``; of all if ``broker_name`` or ``broker_id`` is None."""

    name: str
    value: str
    broker_name: str | None = None
    broker_id: int | None = None


@dataclass(frozen=True)
class GroupStrategy:
    """All members of a group allocate by a strategy, by its getName()."""

    consumer_group: str
    strategy: str


@dataclass(frozen=True)
class GroupConsumers:
    """A group has ``added`` members more, or fewer if it is negative."""

    consumer_group: str
    added: int


@dataclass(frozen=True)
class TopicQueues:
    """A topic has ``queues`` queues on each of its brokers (mqadmin updateTopic -r -w)."""

    topic: str
    queues: int


Supposition: TypeAlias = BrokerSetting | GroupStrategy | GroupConsumers | TopicQueues


def text_of(supposition: Supposition) -> str:
    """Return a supposition as people read it.

    >>> text_of(BrokerSetting(RATIO, "60", "broker-a")), text_of(GroupConsumers("order-group", 2))
    ('accessMessageInMemoryMaxRatio=60 on broker-a', '+2 consumers in order-group')
    """
    if isinstance(supposition, BrokerSetting):
        return f"{supposition.name}={supposition.value} on {supposition.broker_name or 'all brokers'}"
    if isinstance(supposition, GroupStrategy):
        return f"strategy={supposition.strategy} in {supposition.consumer_group}"
    if isinstance(supposition, GroupConsumers):
        return f"{counted_consumers(supposition.added, '+')} in {supposition.consumer_group}"
    noun = "queue" if supposition.queues == 1 else "queues"
    return f"{supposition.queues} {noun} of {supposition.topic} on each broker"


def counted_consumers(number: int, sign: str = "-") -> str:
    """Return a number of consumers; with ``sign`` "+", positive numbers have a sign.

    >>> counted_consumers(1), counted_consumers(2, "+"), counted_consumers(-1, "+")
    ('1 consumer', '+2 consumers', '-1 consumer')
    """
    return f"{number:{sign}} {'consumer' if abs(number) == 1 else 'consumers'}"


def supposed_brokers(broker: pl.DataFrame, suppositions: Sequence[Supposition]) -> pl.DataFrame:
    """Return rows of silver.broker with other settings.

    The ratio that a running broker reported is dropped with a changed one: the kernels derive it anew, as the broker
    would (MessageStoreConfig#getAccessMessageInMemoryMaxRatio).
    """
    rows = broker
    for each in suppositions:
        if isinstance(each, BrokerSetting):
            of = [
                pl.col(name) == value
                for name, value in (("broker_name", each.broker_name), ("broker_id", each.broker_id))
                if value is not None
            ]
            rows = rows.with_columns(_columns_of(each, pl.all_horizontal(pl.lit(value=True), *of)))
    return rows


def _columns_of(setting: BrokerSetting, of: pl.Expr) -> list[pl.Expr]:
    if setting.name == RATIO:
        ratio, reported = "access_message_in_memory_max_ratio", "effective_access_message_in_memory_max_ratio"
        changed = pl.when(of).then(pl.lit(int(setting.value), pl.Int64)).otherwise(ratio).alias(ratio)
        return [changed, pl.when(~of).then(reported).alias(reported)]
    if setting.name == SLAVE_READ:
        value = pl.lit(setting.value.lower() == "true")
        return [pl.when(of).then(value).otherwise("slave_read_enable").alias("slave_read_enable")]
    raise ValueError(f"no decision of the replay depends on {setting.name}")


def supposed_rebalances(
    rebalance: pl.DataFrame, suppositions: Sequence[Supposition], sorts: str = LAST
) -> pl.DataFrame:
    """Return rebalances (consumer_group, topic, strategy, cid_all, mq_all) with other lists and strategies.

    ``sorts``: where members that come or leave sort, FIRST or LAST: which ones they are is not known, and with it the
    queues that move. Rows of a client that is not in its list any more stay; their share is empty.
    """
    rows = rebalance
    for each in suppositions:
        if isinstance(each, GroupStrategy):
            of = pl.col("consumer_group") == each.consumer_group
            rows = rows.with_columns(pl.when(of).then(pl.lit(each.strategy)).otherwise("strategy").alias("strategy"))
        elif isinstance(each, GroupConsumers):
            of = pl.col("consumer_group") == each.consumer_group
            rows = rows.with_columns(
                pl.when(of).then(_clients(each.added, sorts)).otherwise("cid_all").alias("cid_all")
            )
        elif isinstance(each, TopicQueues):
            of = pl.col("topic") == each.topic
            rows = rows.with_columns(pl.when(of).then(_queues(each.queues)).otherwise("mq_all").alias("mq_all"))
    return rows


def new_clients(added: int, sorts: str) -> list[str]:
    """Return the ids of members that do not exist.

    >>> new_clients(2, LAST), new_clients(-1, LAST)
    (['~1', '~2'], [])
    """
    return [f"{sorts}{number}" for number in range(1, added + 1)]


def _clients(added: int, sorts: str) -> pl.Expr:
    """Return cid_all with members added or removed, sorted as RebalanceImpl#rebalanceByTopic sorts it."""
    ids = pl.col("cid_all")
    if added < 0:
        kept = (ids.list.len().cast(pl.Int64) + added).clip(0)
        return ids.list.sort().list.head(kept) if sorts == LAST else ids.list.sort().list.tail(kept)
    more = pl.lit(new_clients(added, sorts), pl.List(pl.String))
    return pl.concat_list(ids, more).list.sort()


def _queues(queues: int) -> pl.Expr:
    """Return mq_all with this number of queues of each broker that has some."""
    brokers = pl.element().struct.field("broker_name").unique().sort()
    each = brokers.repeat_by(queues).explode()
    ids = pl.int_range(brokers.len() * queues) % queues
    return pl.col("mq_all").list.eval(pl.struct(each.alias("broker_name"), ids.cast(pl.Int32).alias("queue_id")))
