"""subscriptionGroup.json of a broker: settings of each consumer group, such as the broker for slow reads."""

from __future__ import annotations

from typing import Final, NamedTuple

from mqreplay.core.java import LONG_MAX
from mqreplay.decode.fastjson_text import read_fastjson
from mqreplay.decode.fields import DataVersion, bool_field, data_version_of, int_field, object_of, table_of
from mqreplay.decode.kind import AGAIN, RECORD, FileKind, RecordingWays
from mqreplay.words.errors import DecodeError


class SubscriptionGroup(NamedTuple):
    """A consumer group on one broker; ``broker_id`` is suggested to it, or the other id when it is slow."""

    group_name: str
    consume_enable: bool
    consume_from_min_enable: bool
    consume_broadcast_enable: bool
    retry_queue_nums: int
    retry_max_times: int
    broker_id: int
    which_broker_when_consume_slowly: int
    notify_consumer_ids_changed_enable: bool


class SubscriptionGroups(NamedTuple):
    """The rows of one subscriptionGroup.json, in the order written, and the version of the table."""

    rows: list[SubscriptionGroup]
    data_version: DataVersion


def decode_subscription_group(data: bytes) -> SubscriptionGroups:
    """Return the groups in the bytes of a subscriptionGroup.json of 4.9 or 5.x.

    An absent field has the default of RocketMQ's SubscriptionGroupConfig. Source: SubscriptionGroupManager.

    Raises:
        DecodeError: torn, foreign, wrong_type, bad_number and those of fastjson_text.

    >>> rows = decode_subscription_group(b'{"subscriptionGroupTable":{"pay":{"consumeEnable":false}}}').rows
    >>> rows[0].consume_enable, rows[0].retry_max_times, rows[0].which_broker_when_consume_slowly
    (False, 16, 1)
    """
    root = read_fastjson(data)
    table = table_of(root, "subscriptionGroupTable")
    rows = []
    for name, value in table.items():
        if not isinstance(name, str):
            raise DecodeError("bad_key", f"a quoted group name is expected instead of {name!r}")
        config = object_of(value, name)
        rows.append(
            SubscriptionGroup(
                group_name=name,
                consume_enable=bool_field(config, "consumeEnable", True),
                consume_from_min_enable=bool_field(config, "consumeFromMinEnable", True),
                consume_broadcast_enable=bool_field(config, "consumeBroadcastEnable", True),
                retry_queue_nums=int_field(config, "retryQueueNums", 1),
                # -1 is a setting: the first failure goes to the dead letters.
                retry_max_times=int_field(config, "retryMaxTimes", 16, low=-(2**31)),
                broker_id=int_field(config, "brokerId", 0, high=LONG_MAX),
                which_broker_when_consume_slowly=int_field(config, "whichBrokerWhenConsumeSlowly", 1, high=LONG_MAX),
                notify_consumer_ids_changed_enable=bool_field(config, "notifyConsumerIdsChangedEnable", True),
            )
        )
    return SubscriptionGroups(rows, data_version_of(object_of(root, "subscriptionGroup.json")))


KIND: Final = FileKind(
    stem="subscription_groups",
    table="silver.subscription_group",
    label="subscriptionGroup.json",
    by_recorder=True,
    recording=RecordingWays(AGAIN, RECORD, "copy it with the snapshots", by_hooks=False, importance=14),
)
