"""The recorder's rules without I/O: clock, options, changes, topology, estate, offsets, plans."""

from __future__ import annotations

from typing import cast

import pytest

from mqreplay.core.delay_level import SCHEDULE_TOPIC
from mqreplay.core.system_names import PROXY_GROUP
from mqreplay.recorder.network.answers import (
    Brokers,
    read_connected,
)
from mqreplay.recorder.network.brokers_json import BrokersJson
from mqreplay.recorder.network.clock import RecorderClock
from mqreplay.recorder.network.estate import Estate
from mqreplay.recorder.network.events import Events
from mqreplay.recorder.network.options import (
    Filter,
    RecordOptions,
    bytes_of,
    name_servers_of,
    record_options,
    seconds_of,
)
from mqreplay.recorder.network.poll_writer import Changes, PollWriter
from mqreplay.recorder.network.polls import Known, reading
from mqreplay.recorder.network.queue_polls import QueuePolls
from mqreplay.recorder.network.schedule import Target
from mqreplay.recorder.network.targets import plans
from mqreplay.recorder.network.topology import Broker, Topology
from mqreplay.recorder.record_files import RecordFiles
from mqreplay.recorder.remoting.frames import Answer
from mqreplay.words.errors import InputError
from recorder.network.connection_answers import connected

MASTER, SLAVE = Broker(("b", 0), "h:1", True), Broker(("b", 1), "h:2", True)


OPTIONS = RecordOptions(("ns:1", "ns:2"))


def test_the_clock_follows_drift_and_not_steps_and_never_goes_back() -> None:
    clock = RecorderClock(1_000_000, 0)
    before = 0
    # 1 ms in 5 s too slow, for an hour; then too fast.
    for steady in range(0, 3_600_000, 5000):
        assert clock.observe(1_000_000 + steady + steady // 5000, steady) == 0
        now = clock.now_ms(steady)
        assert now >= before
        assert abs(now - (1_000_000 + steady + steady // 5000)) <= 2
        before = now
    wall, steady = 1_000_000 + 3_600_000 + 719, 3_600_000
    assert clock.observe(wall - 3_600_000, steady) == pytest.approx(-3_600_000, abs=5)
    assert clock.observe(wall - 3_600_000 + 5000, steady + 5000) == 0
    assert clock.now_ms(steady + 5000) == pytest.approx(wall + 5000, abs=5)
    assert clock.observe(wall + 10_000, steady + 10_000) == pytest.approx(3_600_000, abs=5)
    assert clock.now_ms(steady + 10_000) == pytest.approx(wall + 10_000, abs=5)


@pytest.mark.parametrize("text", ["", "5", "5 parsecs", "-5s", "s", "1e3s", "5s5s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--every .* is not a duration"):
        seconds_of(text, "--every")


@pytest.mark.parametrize("text", ["", "0", "-1", "64q", "g", "1e9", "99999999999t"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--max-disk .* is not a size"):
        bytes_of(text, "--max-disk")


@pytest.mark.parametrize("text", ["", ";", "host", "host:", "host:0", "host:70000", "http://h:1", "a b:1", "h:1;:2"])
def test_what_is_no_name_server_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="HOST:PORT"):
        name_servers_of(text)


def test_options_of_a_command_line() -> None:
    options = record_options("h:1;[::1]:2;h:1", "2s", "8h", ["a*"], ["t"], None, "64g", 10, "1g")
    assert options.name_servers == ("h:1", "[::1]:2")
    assert (options.every_s, options.for_s, options.max_bytes) == (2.0, 28_800.0, 1 << 30)
    for every in ("0.5s", "2m"):
        with pytest.raises(InputError, match="1s to 60s"):
            record_options("h:1", every)
    with pytest.raises(InputError, match="requests-per-second"):
        record_options("h:1", requests_per_second=0)


def test_an_unchanged_value_is_repeated_before_it_is_a_minute_old() -> None:
    changes = Changes(5000)
    written = [ts for ts in range(0, 300_000, 5000) if changes.of("k", "same", ts).is_written]
    assert written == [0, 60_000, 120_000, 180_000, 240_000]
    assert changes.of("k", "other", 300_000).previous_ts == 295_000
    assert changes.of("k", "other", 305_000) == (False, False, 300_000, False)
    assert changes.of("l", "other", 305_000).previous_ts is None


def test_a_change_back_is_a_change() -> None:
    changes = Changes(5000)
    decisions = [changes.of("k", value, ts) for ts, value in enumerate("abab")]
    assert [each.is_change for each in decisions] == [True] * 4
    assert [each.previous_ts for each in decisions] == [None, 0, 1, 2]


def test_a_client_whose_head_stays_is_written_at_each_poll_from_the_first_on() -> None:
    written: list[int] = []
    writer = PollWriter(
        cast("RecordFiles", None),
        lambda _, record: written.append(record["ts"]),
        Known(Topology("C"), Estate(Filter()), cast("BrokersJson", None), cast("Events", None)),
        5000,
    )
    client = Target("running_info", "h:1", ("b", 0), "g", "c@1")
    queue = b'{"mqTable":{{"queueId":0}:{"cachedMsgCount":%d,"cachedMsgMinOffset":%d}}}'
    # The head moves until 40 s and stays until 100 s; then the cache is large.
    polls = [(1, 5), (1, 6), (1, 7), (1, 7), (1, 7), (1, 7), (501, 8), (501, 9), (1, 10), (1, 11)]
    for number, cache in enumerate(polls):
        ts = 20_000 * number
        writer.take(client, ts, ts, reading(client, Answer(0, None, {}, queue % cache)), 20_000)
    assert [ts // 20_000 for ts in written] == [0, 2, 3, 4, 5, 6, 7]


def test_a_broker_stays_while_one_name_server_lists_it_and_ten_minutes_more() -> None:
    topology, both = Topology("C"), {("b", 0): ("C", "h:1"), ("b", 1): ("C", "h:2")}
    master = {("b", 0): ("C", "h:1")}
    assert topology.update("ns:1", Brokers(("C",), both), 0)
    assert not topology.update("ns:2", Brokers(("C",), both), 0)
    assert not topology.update("ns:1", Brokers(("C",), master), 10)
    assert topology.brokers(10) == [MASTER, SLAVE]
    assert topology.update("ns:2", Brokers(("C",), master), 1000)
    assert topology.brokers(1000) == [MASTER, SLAVE._replace(is_listed=False)]
    assert topology.brokers(700_000) == [MASTER]
    assert topology.update("ns:2", Brokers(("C",), {("b", 0): ("C", "h:9")}), 700_001)
    assert topology.brokers(700_001)[0].addr == "h:9"


def estate_of(chosen: Filter | None = None) -> Estate:
    estate = Estate(chosen or Filter())
    estate.take_groups(("b", 0), ["pay", "idle", "TOOLS_CONSUMER"])
    estate.take_offsets(("b", 0), ["orders@pay", "%RETRY%pay@pay", "gone@pay", "rmq_sys_x@CID_RMQ_SYS_A"], (), 0)
    estate.take_queue_counts(("b", 0), {"orders": 4, "%RETRY%pay": 1, "%DLQ%pay": 1, "TBW102": 8})
    estate.take_members(("b", 0), "pay", frozenset({"c1", "c2"}))
    return estate


def subjects(found: dict, kind: str) -> list[str]:
    return sorted(each.subject for each in found if each.kind == kind)


def test_what_is_polled_of_whom() -> None:
    estate = estate_of()
    estate.take_listed_topics(frozenset({"orders", "%RETRY%pay"}))
    found = plans(OPTIONS, OPTIONS.name_servers, [MASTER, SLAVE], set(), estate)
    for kind in ("runtime", "offsets", "topics", "groups", "delays", "config"):
        assert {each.addr for each in found if each.kind == kind} == {"h:1", "h:2"}
    assert subjects(found, "members") == ["idle", "pay"]
    assert subjects(found, "connections") == ["pay"]
    assert subjects(found, "topic_offsets") == ["%DLQ%pay", "%RETRY%pay", "orders"]
    assert subjects(found, "route") == sorted(["%RETRY%pay", "gone", "orders"] * 2)
    assert {each.addr for each in found if each.kind in ("members", "topic_offsets")} == {"h:1"}
    assert {each.client_id for each in found if each.kind == "running_info"} == {"c1", "c2"}
    by_kind = {(each.kind, each.subject): plan for each, plan in found.items()}
    assert by_kind["members", "pay"].period_ms == 5000
    assert by_kind["members", "idle"].period_ms == 20_000
    assert by_kind["route", "gone"].period_ms == 300_000
    assert by_kind["topic_offsets", "%DLQ%pay"].period_ms == 60_000
    # Each name server every 30 s, in turn.
    phases = [found[Target("route", addr, None, "orders")].phase_ms for addr in ("ns:1", "ns:2")]
    assert phases[1] - phases[0] == 15_000


def test_ends_of_revive_topics_are_polled_where_their_offsets_are_recorded() -> None:
    """Other system topics are left out, and no group of the system is polled."""
    estate = estate_of()
    topic = "rmq_sys_REVIVE_LOG_C"
    estate.take_queue_counts(("b", 0), {topic: 8, "rmq_sys_x": 1})
    assert subjects(plans(OPTIONS, OPTIONS.name_servers, [MASTER], set(), estate), "topic_offsets") == []
    estate.take_offsets(("b", 0), [f"{topic}@CID_RMQ_SYS_REVIVE_GROUP", "rmq_sys_x@CID_RMQ_SYS_A"], (), 0)
    found = plans(OPTIONS, OPTIONS.name_servers, [MASTER], set(), estate)
    assert subjects(found, "topic_offsets") == [topic]
    assert subjects(found, "members") == ["idle", "pay"]
    assert subjects(found, "route") == []


def test_a_broker_that_never_answered_is_only_probed() -> None:
    found = plans(OPTIONS, ("ns:1",), [MASTER, SLAVE], set(), estate_of(), lambda addr: addr == "h:1")
    (probe,) = [each for each in found if each.addr == "h:2"]
    assert (probe.kind, found[probe].is_shared, found[probe].probe) == ("runtime", True, True)


def test_members_are_asked_of_a_slave_while_its_master_is_silent() -> None:
    estate = estate_of()
    estate.take_members(("b", 1), "pay", frozenset({"c1"}))
    found = plans(OPTIONS, OPTIONS.name_servers, [MASTER, SLAVE], {"h:1", "ns:1"}, estate)
    assert {each.addr for each in found if each.kind == "members"} == {"h:2"}
    assert [(each.addr, each.client_id) for each in found if each.kind == "running_info"] == [("h:2", "c1")]
    assert {each.addr for each in found if each.kind == "route"} == {"ns:2"}
    assert {each.addr for each in found if each.kind == "runtime"} == {"h:1", "h:2"}


def test_proxies_are_found_by_their_group_and_asked_once_they_answer() -> None:
    estate = estate_of()
    asked = Target("connections", "h:1", ("b", 0), PROXY_GROUP)
    assert asked not in plans(OPTIONS, ("ns:1",), [MASTER], set(), estate)
    estate.take_groups(("b", 0), ["pay", "idle", PROXY_GROUP])
    assert asked in plans(OPTIONS, ("ns:1",), [MASTER], set(), estate)
    hosts = read_connected(connected(["10.0.0.9@DEFAULT"], addr="10.0.0.9:45912")).hosts
    estate.take_proxy_hosts(hosts)
    addr = "10.0.0.9:8080"

    def proxied() -> list[tuple[str, str]]:
        found = plans(OPTIONS, ("ns:1",), [MASTER], set(), estate)
        return sorted((each.addr, each.subject) for each in found if each.kind == "proxy_members")

    assert proxied() == [(addr, PROXY_GROUP)]
    estate.take_proxied(addr, PROXY_GROUP, frozenset())
    assert proxied() == sorted([(addr, PROXY_GROUP), (addr, "pay"), (addr, "idle")])
    estate.forget_proxy(addr)
    assert proxied() == [(addr, PROXY_GROUP)]


UNKNOWN = Answer(3, " request type 907 not supported", {}, b"")
DLEDGER = Answer(1, "Can not get HARuntimeInfo, may be duplicationEnable is true", {}, b"")


@pytest.mark.parametrize(
    ("kind", "period_ms", "answer"),
    [("modes", 60_000, UNKNOWN), ("ha_status", 10_000, UNKNOWN), ("ha_status", 10_000, DLEDGER)],
)
def test_a_broker_that_does_not_know_a_request_is_seldom_asked(kind: str, period_ms: int, answer: Answer) -> None:
    estate, asked = estate_of(), Target(kind, "h:1", ("b", 0))
    assert plans(OPTIONS, ("ns:1",), [MASTER], set(), estate)[asked].period_ms == period_ms
    refused = reading(asked, answer)
    assert (refused.error, refused.fact) == (None, False)
    estate.take_support(("b", 0), kind, refused.fact)
    assert plans(OPTIONS, ("ns:1",), [MASTER], set(), estate)[asked].period_ms == 3_600_000


def test_delayed_messages_are_asked_with_the_times_of_the_last_ones() -> None:
    estate, asked = estate_of(), Target("topic_offsets", "h:1", ("b", 0), SCHEDULE_TOPIC)
    assert asked not in plans(OPTIONS, ("ns:1",), [MASTER], set(), estate)
    estate.take_queue_counts(("b", 0), {"orders": 4, SCHEDULE_TOPIC: 18})
    assert plans(OPTIONS, ("ns:1",), [MASTER], set(), estate)[asked].period_ms == 60_000
    assert QueuePolls(estate).queues_of(asked) is None, "one request for all levels"


def test_only_chosen_groups_and_topics_are_polled() -> None:
    found = plans(OPTIONS, ("ns:1",), [MASTER], set(), estate_of(Filter(("id*",), ())))
    assert subjects(found, "members") == ["idle"]
    assert subjects(found, "running_info") == subjects(found, "route") == []
    estate = estate_of(Filter((), ("ord*",)))
    found = plans(OPTIONS, ("ns:1",), [MASTER], set(), estate)
    assert subjects(found, "route") == ["%RETRY%pay", "orders"]
    assert estate.is_recorded_key("orders@pay")
    assert not estate.is_recorded_key("gone@pay")
    assert estate.is_recorded_key("%RETRY%pay@pay")


def test_a_topic_moves_when_its_maximum_offsets_differ_from_the_look_before() -> None:
    estate = Estate(Filter())
    for offsets, moves in (({0: 5}, False), ({0: 6}, True), ({0: 6}, False)):
        estate.take_max_offsets(("b", 0), "t", offsets)
        assert (("b", 0), "t") in estate.moved_topics or not moves
        assert bool(estate.moved_topics) == moves
