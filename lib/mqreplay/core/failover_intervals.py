"""The time that each step of a failover may take, by the periods of RocketMQ's own threads.

A broker that stops keeps its place in the name servers' lists until its channel closes or its registration expires,
and in a client's routes until the client asks again. It is back once it registered, and each client asked once more.
All times are in ms. The defaults are those of RocketMQ; a broker, a name server or a client may have other settings.
"""

from __future__ import annotations

from typing import NamedTuple

from mqreplay.core.route_info_manager import BROKER_CHANNEL_EXPIRED_TIME, RouteInfoManager, TopicConfigs
from mqreplay.core.topic_route import MASTER_ID
from mqreplay.core.version import BROKER_4, at_least

SCAN_OF_4 = 10_000  # NamesrvController#initialize
SCAN_OF_5 = 5_000  # NamesrvConfig#scanNotActiveBrokerInterval
REGISTER_NAME_SERVER_PERIOD = 30_000  # BrokerConfig#registerNameServerPeriod
REGISTER_BROKER_TIMEOUT_OF_4 = 6_000  # BrokerConfig#registerBrokerTimeoutMills
REGISTER_BROKER_TIMEOUT_OF_5 = 24_000
POLL_NAME_SERVER_INTERVAL = 30_000  # ClientConfig#pollNameServerInterval
LOCK_TIMEOUT_MILLIS = 3_000  # MQClientInstance#LOCK_TIMEOUT_MILLIS
MQ_CLIENT_API_TIMEOUT = 3_000  # ClientConfig#mqClientApiTimeout
CONSUMER_TIMEOUT_MILLIS_WHEN_SUSPEND = 30_000  # DefaultMQPushConsumerImpl
PULL_TIME_DELAY_MILLS_WHEN_EXCEPTION = 3_000  # DefaultMQPushConsumerImpl#pullTimeDelayMillsWhenException
CONTROLLER_HEARTBEAT_TIMEOUT = 10_000  # BrokerConfig#controllerHeartBeatTimeoutMills
CONTROLLER_SCAN = 5_000  # ControllerConfig#scanNotActiveBrokerInterval
SYNC_BROKER_METADATA_PERIOD = 5_000  # BrokerConfig#syncBrokerMetadataPeriod


class Interval(NamedTuple):
    """The first and the last instant at which a step may happen, in epoch ms."""

    begin: int
    end: int


def removal_by_name_server(
    stopped: int,
    version: str = BROKER_4,
    expired_time: int = BROKER_CHANNEL_EXPIRED_TIME,
    scan_not_active_broker_interval: int = SCAN_OF_5,
) -> Interval:
    """When a name server removes a broker that stopped: RouteInfoManager#scanNotActiveBroker, #onChannelDestroy.

    At once if its channel closes, as that of a killed process does. Else ``expired_time`` after its last registration,
    which is not later than ``stopped``, at the next scan. A broker with enableSlaveActingMaster registers a shorter one
    (brokerNotActiveTimeoutMillis). ``version`` is the name server's: one of 4.x knows neither of the two settings.

    >>> removal_by_name_server(0), removal_by_name_server(0, "5.3.3", 10_000)
    (Interval(begin=0, end=130000), Interval(begin=0, end=15000))
    """
    is_5 = at_least(version, "5.0.0")
    expired_time = expired_time if is_5 else BROKER_CHANNEL_EXPIRED_TIME
    period = scan_not_active_broker_interval if is_5 else SCAN_OF_4
    names = RouteInfoManager()
    names.register_broker("", "", "", MASTER_ID, None, TopicConfigs(None, {}), None, stopped)
    scan = stopped + expired_time  # the latest one that may still find it
    while not names.scan_not_active_broker(scan, expired_time):
        scan += max(1, period)
    return Interval(stopped, scan)


def may_have_expired(
    stopped: int,
    removed: int,
    expired_time: int = BROKER_CHANNEL_EXPIRED_TIME,
    register_period: int = REGISTER_NAME_SERVER_PERIOD,
) -> bool:
    """Whether a broker removed at that time may have expired; earlier, its channel closed or it unregistered.

    Its last registration, or heartbeat with enableSlaveActingMaster, is at most ``register_period`` older than
    ``stopped`` (BrokerController#start).

    >>> may_have_expired(0, 89_000), may_have_expired(0, 91_000)
    (False, True)
    """
    return removed >= stopped - register_period + expired_time


def route_update(
    first_changed: int, last_changed: int, poll_name_server_interval: int = POLL_NAME_SERVER_INTERVAL
) -> Interval:
    """When a client gets a route that name servers changed between two instants: MQClientInstance#startScheduledTask.

    A client asks one name server for all its topics each ``poll_name_server_interval``, and earlier for a topic whose
    broker it does not find. It may wait LOCK_TIMEOUT_MILLIS for the lock, and mqClientApiTimeout for the answer.

    >>> route_update(0, 2_000)
    Interval(begin=0, end=38000)
    """
    waits = poll_name_server_interval + LOCK_TIMEOUT_MILLIS + MQ_CLIENT_API_TIMEOUT
    return Interval(first_changed, last_changed + waits)


def next_pull(route_changed: int) -> Interval:
    """When a client pulls by a route that it got, if it is not paused: DefaultMQPushConsumerImpl#pullMessage.

    Its last pull by the route before ends with its timeout at the latest, and the next one follows an error after
    pullTimeDelayMillsWhenException.

    >>> next_pull(0)
    Interval(begin=0, end=33000)
    """
    waits = CONSUMER_TIMEOUT_MILLIS_WHEN_SUSPEND + PULL_TIME_DELAY_MILLS_WHEN_EXCEPTION
    return Interval(route_changed, route_changed + waits)


def registration(
    answers: int,
    version: str = BROKER_4,
    register_period: int = REGISTER_NAME_SERVER_PERIOD,
    register_broker_timeout: int | None = None,
    disappear_time_after_start: int = -1,
) -> Interval:
    """When a broker that answers again is registered at all its name servers: BrokerController#registerBrokerAll.

    A start registers it at once, and a broker that was only paused does at its next period; one of 5.x waits
    disappearTimeAfterStart. One that `goes_online_late` has no bound.

    >>> registration(0), registration(0, "5.3.3")
    (Interval(begin=0, end=36000), Interval(begin=0, end=54000))
    >>> [registration(0, version, disappear_time_after_start=900).end for version in ("4.9.7", "5.3.3")]
    [36000, 54900]
    """
    is_5 = at_least(version, "5.0.0")
    default = REGISTER_BROKER_TIMEOUT_OF_5 if is_5 else REGISTER_BROKER_TIMEOUT_OF_4
    timeout = default if register_broker_timeout is None else register_broker_timeout
    waits = max(0, disappear_time_after_start) if is_5 else 0
    return Interval(answers, answers + waits + min(max(register_period, 10_000), 60_000) + timeout)


def goes_online_late(enable_slave_acting_master: bool, total_replicas: int = 1, skip_pre_online: bool = False) -> bool:
    """Whether a broker that starts registers only after it has met the others of its name: BrokerPreOnlineService.

    Until then it is isolated (BrokerController#start); there is no bound for it. A master fetches the offsets of its
    slaves meanwhile, and takes them if theirs are newer (#syncMetadataReverse). Only in 5.x.

    >>> goes_online_late(True, 2), goes_online_late(True), goes_online_late(True, 2, True), goes_online_late(False, 2)
    (True, False, False, False)
    """
    return enable_slave_acting_master and total_replicas > 1 and not skip_pre_online


def election(
    stopped: int,
    heart_beat_timeout: int = CONTROLLER_HEARTBEAT_TIMEOUT,
    sync_broker_metadata_period: int = SYNC_BROKER_METADATA_PERIOD,
    register_broker_timeout: int = REGISTER_BROKER_TIMEOUT_OF_5,
) -> Interval:
    """When a controller has made another broker the master: DefaultBrokerHeartbeatManager#scanNotActiveBroker.

    At once if the channel of the master to the controller closes; else after ``heart_beat_timeout``
    (controllerHeartBeatTimeoutMills of the old master), at the next scan. The new master learns it from the controller
    or at its next look (ReplicasManager#syncBrokerMetadata), and registers (ReplicasManager#changeToMaster);
    controllers are of 5.x. A jRaft controller of 5.2.0 to 5.3.3 never scans after its start: without a closed channel
    it elects nobody (RaftBrokerHeartBeatManager#scanNotActiveBroker, apache/rocketmq#9717).

    >>> election(0)
    Interval(begin=0, end=44000)
    """
    waits = heart_beat_timeout + CONTROLLER_SCAN + sync_broker_metadata_period
    return Interval(stopped, stopped + waits + register_broker_timeout)


def judge_time(expected: Interval, before: int | None, seen: int | None) -> str:
    """Return agree, differ or undetermined for a step that happened after ``before``, and until ``seen``.

    ``before`` is the last instant known not to have it (None: not known), ``seen`` the first one known to have it
    (None: it was not seen). Times are in ms. No method of RocketMQ: it compares what was seen with an interval.

    >>> judge_time(Interval(0, 30), 10, 25), judge_time(Interval(0, 30), 31, 40), judge_time(Interval(0, 30), 20, 40)
    ('agree', 'differ', 'undetermined')
    >>> judge_time(Interval(0, 30), 31, None), judge_time(Interval(10, 30), None, 5)
    ('differ', 'undetermined')
    """
    if before is not None and before > expected.end:
        return "differ"
    return "agree" if seen is not None and expected.begin <= seen <= expected.end else "undetermined"
