"""What bounds a broker's view at a pull, whatever the shards that rows are dealt into."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.evidence.brokers.log_marks import with_marks
from silver_moments import at
from silver_rows import rows

FOUND = ("end_before", "end_after", "place_before", "place_after", "next_place")
PULL = {"client_id": "c", "consumer_group": "g", "broker_name": "b0", "broker_id": 0, "topic": "t", "queue_id": 1}
CONSUME = {"client_id": "c", "consumer_group": "g", "ts": at(0)}
PRODUCE = {"ts": at(0), "topic": "t"}
# Each broker's log is polled every ten seconds and grows by 1,000 bytes between.
RUNTIME = rows(
    "silver.broker_runtime",
    {"broker_id": 0},
    [
        {"broker_name": f"b{name}", "ts": at(10 * n), "commit_log_max_offset": 1000 * n + name}
        for name in range(2)
        for n in range(10)
    ]
    + [{"broker_name": "b0", "ts": at(25), "commit_log_max_offset": None}],
)


def places(*values):
    names = ("first_queue_offset", "first_commitlog_offset", "last_queue_offset", "last_commitlog_offset")
    return dict(zip(names, values, strict=True))


def marked(pulls, consumed=(), produced=(), runtime=RUNTIME, slack_ms=0, is_asked=None):
    frame = rows("silver.pull", PULL, pulls)
    consume = rows("silver.consume", CONSUME, consumed)
    produce = rows("silver.produce", PRODUCE, produced)
    found = with_marks(frame, pl.lit(True) if is_asked is None else is_asked, runtime, consume, produce, slack_ms)
    return dict(zip(found["record_id"], found.select(FOUND).rows(), strict=True))


def asked(seconds, begins, **differs):
    return {"request_ts": at(seconds), "response_ts": at(seconds + 0.5), "next_begin_offset": begins} | differs


def test_ends_are_the_brokers_and_places_the_queues():
    pulls = [
        # Two answered 25 s in, of the same queue's name on two brokers; messages 3 to 5 were delivered.
        asked(25, 6, record_id="one", **places(3, 1300, 5, 1500)),
        asked(25, 6, record_id="two", broker_name="b1"),
        asked(95, 9, record_id="past all polls", queue_id=2),
    ]
    consumed = [
        {"broker_name": "b0", "topic": "t", "queue_id": 1, "queue_offset": 7, "commitlog_offset": 1700},
        {
            "broker_name": "b1",
            "queue_topic": "t",
            "topic": "other",
            "queue_id": 1,
            "queue_offset": 5,
            "commitlog_offset": 1450,
        },
    ]
    produced = [
        {
            "broker_name": "b1",
            "queue_id": 1,
            "queue_offset": 8,
            "offset_msg_id": "0A000001" + "00002A9F" + f"{1900:016X}",
        },
        {"broker_name": "b1", "queue_id": 1, "queue_offset": 2, "offset_msg_id": "no place"},
        {"broker_name": None, "queue_id": None, "queue_offset": None, "offset_msg_id": None},
    ]
    assert marked(pulls, consumed, produced) == {
        "one": (2000, 3000, 1500, 1500, 1700),
        "two": (2001, 3001, 1450, 1450, 1900),
        "past all polls": (9000, None, None, None, None),
    }


def test_place_in_an_offset_message_id():
    def place(offset_msg_id):
        produced = [{"broker_name": "b0", "queue_id": 1, "queue_offset": 5, "offset_msg_id": offset_msg_id}]
        return marked([asked(25, 6)], produced=produced)["r0"][2]

    assert place("0" * 16 + f"{77:016x}") == 77
    assert place("0" * 40 + f"{77:016X}") == 77
    assert place("0" * 16 + "7" + "F" * 15) == 2**63 - 1
    assert place("0" * 16 + "8" + "0" * 15) is None  # negative as a long
    assert place("0" * 17 + f"{77:016x}") is None
    assert place("g" * 16 + f"{77:016x}") is None


def test_slack_moves_both_polls_outwards():
    (row,) = marked([asked(20.2, 6)]).values()
    assert row[:2] == (2000, 3000)
    (row,) = marked([asked(20.2, 6)], slack_ms=300).values()
    assert row[:2] == (1000, 3000)
    (row,) = marked([asked(19.6, 6)]).values()
    assert row[:2] == (1000, 3000)
    (row,) = marked([asked(19.4, 6)], slack_ms=200).values()
    assert row[:2] == (1000, 3000)


def test_pulls_that_are_not_asked_about_are_marks_too():
    pulls = [asked(25, 6), asked(25, 9, response_ts=None, **places(6, 1600, 8, 1800))]
    assert marked(pulls, is_asked=pl.col("response_ts").is_not_null()) == {"r0": (2000, 3000, None, 1600, 1600)}


def test_without_next_begin_offset_no_place_is_known():
    pulls = [asked(25, None, **places(0, 0, 0, 0)), asked(25, 1)]
    assert marked(pulls) == {"r0": (2000, 3000, None, None, None), "r1": (2000, 3000, 0, 0, None)}


def test_of_two_values_at_one_position_the_wider_bound_counts():
    polls = [
        {"broker_name": "b0", "ts": at(s), "commit_log_max_offset": end}
        for s, end in ((20, 7), (20, 5), (30, 9), (30, 8))
    ]
    runtime = rows("silver.broker_runtime", {"broker_id": 0}, polls)
    pulls = [asked(25, 6, **places(5, 100, 5, 200))]
    assert marked(pulls, runtime=runtime) == {"r0": (5, 9, 100, 200, None)}


def test_empty_shard():
    found = with_marks(
        rows("silver.pull", PULL, []),
        pl.lit(True),
        RUNTIME.clear(),
        rows("silver.consume", CONSUME, []),
        rows("silver.produce", PRODUCE, []),
        0,
    )
    assert found.is_empty()
    assert [found.schema[name] for name in FOUND] == [pl.Int64] * len(FOUND)


QUEUES = st.fixed_dictionaries({"broker_name": st.sampled_from(["b0", "b1"]), "queue_id": st.integers(0, 2)})
OFFSETS = st.none() | st.integers(0, 8)
# Far offsets too: a broker keeps whatever a client commits.
BEGINS = OFFSETS | st.sampled_from([-(2**63) + 1, 2**63 - 1])
PULLS = st.lists(st.tuples(QUEUES, BEGINS, OFFSETS, OFFSETS), max_size=12)
MESSAGES = st.lists(st.tuples(QUEUES, st.integers(0, 8) | st.just(2**63 - 1)), max_size=8)


@given(PULLS, MESSAGES)
def test_places_are_those_of_a_search_through_all_marks(pulls, messages):
    def place(offset):
        return None if offset is None else offset // 2

    listed = [
        asked(25, begins, **queue, **places(first, place(first), last, place(last)))
        for queue, begins, first, last in pulls
    ]
    consumed = [
        {**queue, "topic": "t", "queue_offset": offset, "commitlog_offset": place(offset)} for queue, offset in messages
    ]
    marks = [(queue, offset) for queue, offset in messages]
    marks += [(queue, offset) for queue, _, *ends in pulls for offset in ends if offset is not None]

    def expected(queue, begins):
        if begins is None:
            return None, None, None
        own = sorted(offset for other, offset in marks if other == queue)
        before, after = [o for o in own if o <= begins - 1], [o for o in own if o >= begins - 1]
        later = [o for o in own if o >= begins]
        return place(before[-1] if before else None), *(place(found[0] if found else None) for found in (after, later))

    found = marked(listed, consumed)
    assert [row[2:] for row in found.values()] == [expected(queue, begins) for queue, begins, *_ in pulls]
