"""Answers to readers with other settings: whoever is sent elsewhere is answered by another broker from then on."""

from __future__ import annotations

import polars as pl

from mqreplay.decisions.slave_suggestion import COLUMNS
from mqreplay.decisions.supposed_suggestions import supposed_answers, supposed_suggestions
from mqreplay.decisions.suppositions import RATIO, SLAVE_READ, BrokerSetting
from silver_moments import at
from silver_rows import rows

END = 1000
PULL = {
    "client_id": "c",
    "consumer_group": "g",
    "topic": "T",
    "broker_name": "b",
    "queue_id": 0,
    "broker_id": 0,
    "min_offset": 0,
    "max_offset": 100,
    "response_code": 0,
    "remark": "FOUND",
    "last_store_size": 1,
    "suggest_which_broker_id": 0,
}
# A slave of 5.3.3 has 10 percent less than its setting (BrokerStartup): 400 bytes in memory here, and 300 there.
MASTER = {
    "recording": "r",
    "ts": at(0),
    "broker_name": "b",
    "broker_id": 0,
    "broker_role": "ASYNC_MASTER",
    "rocketmq_version": "5.3.3",
    "physical_memory_bytes": END,
    "access_message_in_memory_max_ratio": 40,
    "slave_read_enable": True,
}
SLAVE = {"broker_id": 1, "broker_role": "SLAVE"}
GROUP = {
    "source_name": "s",
    "broker_name": "b",
    "ts": at(0),
    "consumer_group": "g",
    "change": "added",
    "group_broker_id": 0,
    "which_broker_when_consume_slowly": 1,
}
RATIO_30 = BrokerSetting(RATIO, "30", "b")  # 300 bytes at the master, 200 at the slave
ENDS = [(0, END), (99, END)]


def answers(diffs, *supposed, night=(), brokers=({}, SLAVE), ends=ENDS, slave_ends=ENDS, more=()) -> pl.DataFrame:
    """Return what would be answered to reads so many bytes before the end of the log.

    ``night``: broker id and suggestion of each read, if they are not the master's.
    """
    pulls = [
        {
            **{"request_ts": at(number + 1), "response_ts": at(number + 1.1), "queue_offset": number},
            **{"next_begin_offset": number + 1, "first_queue_offset": number, "last_queue_offset": number},
            **{"first_commitlog_offset": END - diff, "last_commitlog_offset": END - diff},
            **dict(zip(("broker_id", "suggest_which_broker_id"), answer, strict=True)),
        }
        for number, (diff, answer) in enumerate(zip(diffs, night or [(0, 0)] * len(diffs), strict=True))
    ]
    polls = [
        {"broker_id": broker_id, "ts": at(second), "commit_log_max_offset": end}
        for broker_id, of in ((0, ends), (1, slave_ends))
        for second, end in of
    ]
    return supposed_answers(
        rows("silver.pull", PULL, [*pulls, *more]),
        rows("silver.consume", {"client_id": "c", "consumer_group": "g", "ts": at(0)}, []),
        rows("silver.produce", {}, []),
        rows("silver.broker", MASTER, brokers),
        rows("silver.subscription_group", GROUP, [{"broker_id": 0}, {"broker_id": 1}]),
        rows("silver.broker_runtime", {"broker_name": "b"}, polls),
        *(0, (), supposed),
    )


def bounds(*arguments, **evidence) -> list[tuple[bool, bool]]:
    return answers(*arguments, **evidence).select("to_slave_min", "to_slave_max").rows()


NO, YES, OPEN = (False, False), (True, True), (False, True)


def test_a_slave_keeps_readers_that_its_master_would_not_send():
    assert bounds([350, 250, 150, 250], RATIO_30) == [YES, YES, NO, NO]


def test_readers_that_are_not_sent_away_are_answered_by_the_master():
    night = [(0, 1), (1, 1), (1, 1), (1, 0)]
    assert bounds([450, 350, 310, 150], night=night) == [YES, YES, YES, NO]
    assert bounds([450, 350, 310, 150], BrokerSetting(RATIO, "50", "b"), night=night) == [NO] * 4
    assert bounds([450, 350, 310, 150], BrokerSetting(SLAVE_READ, "false"), night=night) == [NO] * 4


def test_what_follows_from_an_undetermined_answer_is_undetermined_until_both_brokers_agree():
    ends = [(0, END), (1.5, END + 40), (99, END + 40)]  # the first read is 290 to 330 bytes before the end
    assert bounds([290, 210, 100, 250], RATIO_30, ends=ends) == [OPEN, OPEN, NO, NO]


def test_a_slave_that_answered_because_the_master_was_gone_would_have_answered():
    assert bounds([250, 250, 250], RATIO_30, night=[(0, 0), (1, 0), (0, 0)]) == [NO, YES, YES]
    assert bounds([250, 150, 250], RATIO_30, night=[(0, 0), (1, 0), (0, 0)]) == [NO, NO, NO]


def test_without_a_slave_the_master_answers_all():
    assert bounds([350, 250, 150], RATIO_30, brokers=[{}]) == [YES, NO, NO]


def test_another_slave_log_that_is_unknown_leaves_its_answers_open():
    assert bounds([350, 250, 350], RATIO_30, slave_ends=[]) == [YES, OPEN, OPEN]


def test_readers_of_other_queues_and_clients_are_others():
    one = {"request_ts": at(3), "response_ts": at(3.1), "queue_offset": 7, "next_begin_offset": 8}
    one |= {f"{which}_queue_offset": 7 for which in ("first", "last")}
    one |= {f"{which}_commitlog_offset": END - 250 for which in ("first", "last")}
    found = answers([350, 250], RATIO_30, more=[one | {"client_id": "d"}, one | {"queue_id": 1}])
    assert sorted(found.select("client_id", "queue_id", "to_slave_min").rows()) == [
        *(("c", 0, True), ("c", 0, True), ("c", 1, False), ("d", 0, False)),
    ]


def test_counts():
    (row,) = supposed_suggestions(answers([350, 250, 150, 250], RATIO_30)).to_dicts()
    assert row == {
        **{"consumer_group": "g", "topic": "T", "broker_name": "b", "pulls": 4, "to_slave": 0},
        **{"to_slave_min": 2, "to_slave_max": 2, "unchanged": 2, "changed": 2, "undetermined": 0},
    }


def test_the_settings_of_the_night_change_nothing():
    night = [(0, 1), (1, 1), (1, 0), (0, 0)]
    found = answers([450, 350, 250, 350], BrokerSetting(RATIO, "40"), night=night)
    assert found.columns == [*COLUMNS, "to_slave_min", "to_slave_max"]
    assert found["to_slave_min"].to_list() == found["to_slave_max"].to_list() == [True, True, False, False]
    assert answers([]).is_empty()
