"""Messages that POP handed out: acknowledged, revived in time or too late, delivered again in order."""

from __future__ import annotations

import datetime as dt
import random

import polars as pl
import pytest

from mqreplay.core.pop_order import check_block, commit_and_next, update, update_next_visible_time
from mqreplay.core.pop_receipt import decode_receipt_handle
from mqreplay.core.pop_revive import (
    CheckPoint,
    is_kv_revive_due,
    is_revive_due,
    revive_deadline,
    unacknowledged_offsets,
)
from mqreplay.decisions.pop_receipts import pop_receipts
from silver_rows import rows

T0 = dt.datetime(2026, 11, 25, 1, tzinfo=dt.UTC)
INSTANT = pl.Datetime("us", "UTC")
RECEIPT = pl.Struct(
    {
        "topic_type": pl.String,
        "queue_id": pl.Int32,
        "start_offset": pl.Int64,
        "queue_offset": pl.Int64,
        "msg_id": pl.String,
        "reconsume_times": pl.Int32,
        "store_ts": pl.Int64,
    }
)
POP = {
    "day": pl.Date,
    "consumer_group": pl.String,
    "topic": pl.String,
    "broker_name": pl.String,
    "client_id": pl.String,
    "request_ts": INSTANT,
    "pop_ts": INSTANT,
    "answer_invisible_time_ms": pl.Int64,
    "revive_queue_id": pl.Int32,
    "attempt_id": pl.String,
    "receipts": pl.List(RECEIPT),
    "record_id": pl.String,
}
ACKED = pl.Struct(
    {
        "consumer_group": pl.String,
        "topic": pl.String,
        "queue_id": pl.Int32,
        "queue_offset": pl.Int64,
        "pop_ts": pl.Int64,
        "invisible_time_ms": pl.Int64,
        "revive_queue_id": pl.Int32,
    }
)
ACK = {
    "day": pl.Date,
    "ts": INSTANT,
    "response_ts": INSTANT,
    "kind": pl.String,
    "broker_name": pl.String,
    "broker_addr": pl.String,
    "broker_id": pl.Int64,
    "invisible_time_ms": pl.Int64,
    "response_code": pl.Int32,
    "pop_ts": INSTANT,
    "answer_invisible_time_ms": pl.Int64,
    "revive_queue_id": pl.Int32,
    "receipts": pl.List(ACKED),
}
INVISIBLE = 20_000
LATE = revive_deadline(INVISIBLE)


def at(ms):
    return T0 + dt.timedelta(milliseconds=ms)


def epoch(ms):
    return int(at(ms).timestamp() * 1000)


def handed(ms, mark="0", offset=5, times=0, stored=-1000, revive=3, attempt=None):
    receipt = dict(zip(RECEIPT.to_schema(), (mark, 2, offset, offset, "m1", times, epoch(stored)), strict=True))
    return (T0.date(), "g", "t", "b", "c", at(ms), at(ms), INVISIBLE, revive, attempt, [receipt], f"r{ms}")


def ack(ms, of=0, kind="ACK", code=0, topic="t", offset=5, changed=None, queue=2):
    receipts = [dict(zip(ACKED.to_schema(), ("g", topic, queue, offset, epoch(of), INVISIBLE, 3), strict=True))]
    new = (None, None) if changed is None else (at(ms), changed)
    return (T0.date(), at(ms), at(ms), kind, "b", None, 0, changed, code, *new, 3, receipts)


def receipts_of(pops, acks=(), settings=None):
    described = (
        [] if settings is None else [{"broker_name": "b", "broker_id": 0, "properties": {"brokerName": "b"} | settings}]
    )
    frames = pl.DataFrame(pops, schema=POP, orient="row"), pl.DataFrame(list(acks), schema=ACK, orient="row")
    return pop_receipts(*frames, rows("silver.broker", {}, described))


def judged(pops, acks=(), settings=None):
    found = receipts_of(pops, acks, settings)
    return [(row["outcome"], row["judgement"]) for row in found.sort("pop_ts").iter_rows(named=True)]


def revived(stored):
    """The message again, from its retry topic, into which the broker stored it at that time."""
    return handed(stored + 100, mark="1", offset=0, times=1, stored=stored)


OPEN = ("open", "undetermined")


def test_an_acknowledged_message():
    assert judged([handed(0)], [ack(5000)]) == [("acknowledged", "agree")]


def test_without_an_acknowledgement_it_is_unknown_whether_it_waits_or_was_lost():
    assert judged([handed(0)]) == [OPEN]


@pytest.mark.parametrize(
    ("stored", "verdict"),
    [(INVISIBLE - 1, "differ"), (INVISIBLE + 3000, "agree"), (LATE, "agree"), (LATE + 1, "differ")],
)
def test_a_message_nobody_acknowledged_is_revived_after_its_time_and_not_too_late(stored, verdict):
    assert judged([handed(0), revived(stored)], settings={}) == [("revived", verdict), OPEN]


def test_how_late_a_message_may_be_revived_is_a_setting_of_the_broker():
    """PopReviveService#run waits for reviveInterval times up to reviveMaxSlow, and a pass takes reviveScanTime."""
    late = [handed(0), revived(LATE + 30_000)]
    assert judged(late, settings={"reviveScanTime": "40000"})[0] == ("revived", "agree")
    assert judged(late, settings={"reviveMaxSlow": "33"})[0] == ("revived", "agree")
    assert judged(late, settings={"reviveInterval": "8500"})[0] == ("revived", "agree")
    assert judged(late, settings={"reviveScanTime": "39999"})[0] == ("revived", "differ")
    assert judged(late)[0] == ("revived", "undetermined"), "the settings are not known"
    assert judged([handed(0), revived(LATE - 901)], settings={"timerPrecisionMs": "100"})[0] == ("revived", "agree")
    assert judged([handed(0), revived(LATE - 899)], settings={"timerPrecisionMs": "100"})[0] == ("revived", "differ")


def test_a_message_that_was_acknowledged_does_not_come_back():
    assert judged([handed(0), revived(INVISIBLE + 3000)], [ack(5000)])[0] == ("acknowledged", "differ")


def test_an_acknowledgement_after_its_time_stops_nothing():
    late = [ack(INVISIBLE + 1000)]
    assert judged([handed(0), revived(INVISIBLE + 3000)], late)[0] == ("acknowledged_late", "agree")
    assert judged([handed(0)], late) == [("acknowledged_late", "undetermined")]


@pytest.mark.parametrize(
    "other",
    [
        ack(5000, of=-40_000),
        ack(5000, topic="%RETRY%g_t"),
        ack(5000, offset=6),
        ack(5000, queue=1),
        ack(5000, code=208),
        ack(5000, code=None),
    ],
)
def test_another_or_refused_acknowledgement_does_not_count(other):
    assert judged([handed(0)], [other]) == [OPEN]


def test_a_changed_invisible_time_moves_the_time_and_gives_a_new_receipt():
    changed = ack(10_000, kind="CHANGE_INVISIBLE_TIME", changed=30_000)
    assert judged([handed(0), revived(42_000)], [changed])[0] == ("revived", "agree")
    assert judged([handed(0), revived(22_000)], [changed])[0] == ("revived", "differ")
    assert judged([handed(0)], [changed, ack(35_000, of=10_000)]) == [("acknowledged", "agree")]
    assert judged([handed(0)], [changed, ack(15_000, of=0)]) == [OPEN]  # the old receipt has no effect


def test_in_order_the_same_queue_delivers_it_again():
    first, again = handed(0, revive=999), handed(INVISIBLE, revive=999)
    assert judged([first, again]) == [("delivered_again", "agree"), OPEN]
    assert judged([first, handed(9000, revive=999)])[0] == ("delivered_again", "differ")
    same = [handed(0, revive=999, attempt="a"), handed(9000, revive=999, attempt="a")]
    assert judged(same)[0] == ("delivered_again", "agree")


BY_KV = {"popConsumerKVServiceEnable": "true"}


@pytest.mark.parametrize(
    ("settings", "after", "verdict"),
    [
        ({}, 1000, "differ"),  # the service waits 2 s, and its timer may be 1 s early
        ({}, 1001, "agree"),
        ({"timerPrecisionMs": "100"}, 1900, "differ"),
        ({"timerPrecisionMs": "5000"}, 50, "agree"),
        (BY_KV, 49, "differ"),
        (BY_KV, 50, "agree"),
        (None, 49, "differ"),
        (None, 50, "agree"),  # it may be either service
    ],
)
def test_a_message_is_not_revived_at_once(settings, after, verdict):
    assert judged([handed(0), revived(INVISIBLE + after)], settings=settings)[0] == ("revived", verdict)
    laws = is_kv_revive_due(0, after), is_revive_due(0, after + 1000)
    assert settings or verdict == "differ" or any(laws)


@pytest.mark.parametrize("seed", range(20))
def test_the_messages_of_a_checkpoint_are_revived_as_by_core(seed):
    """Random acknowledgements of one answer: core says which messages the broker revives, and no other may come."""
    chance = random.Random(seed)
    offsets = sorted(chance.sample(range(40), chance.randint(1, 12)))
    pops = [handed(0, offset=offset) for offset in offsets]
    for row, offset in zip(pops, offsets, strict=True):
        row[10][0]["msg_id"] = f"m{offset}"
    acked = [offset for offset in offsets if chance.random() < 0.5]
    point = CheckPoint(offsets[0], epoch(0), INVISIBLE, len(offsets), tuple(offset - offsets[0] for offset in offsets))
    assert point.revive_time == epoch(INVISIBLE)
    right = unacknowledged_offsets(point, acked)
    acks = [ack(5000, offset=offset) for offset in acked]
    for offset in offsets:
        again = revived(INVISIBLE + 3000)
        again[10][0]["msg_id"] = f"m{offset}"
        found = receipts_of([*pops, again], acks, {})
        (row,) = found.filter((pl.col("queue_offset") == offset) & (pl.col("topic") == "t")).rows(named=True)
        assert row["judgement"] == ("agree" if offset in right else "differ")
        assert point.index_of_ack(offset) == offsets.index(offset)


@pytest.mark.parametrize("revive_queue", [3, 999])
def test_a_receipt_names_its_time_and_its_order_as_by_core(revive_queue):
    receipt = decode_receipt_handle(f"5 {epoch(7)} {INVISIBLE} {revive_queue} 0 b 2 5")
    row = receipts_of([handed(7, revive=revive_queue)]).row(0, named=True)
    assert int(row["visible_ts"].timestamp() * 1000) == receipt.next_visible_time
    assert row["is_order"] == receipt.is_order


@pytest.mark.parametrize("seed", range(30))
def test_a_queue_in_order_is_handed_out_as_by_core(seed):
    """Random POPs, acknowledgements and changed times of a queue, answered by core; then a POP while it is blocked."""
    chance, info, begin, popped_ms = random.Random(seed), None, 0, {}
    pops, acks = [], []
    for step in range(60):
        now = step * 3000
        if chance.random() < 0.4 and not check_block(info, f"a{step}", INVISIBLE, epoch(now)):
            offsets = list(range(begin, begin + chance.randint(1, 4)))
            info = update(info, f"a{step}", epoch(now), INVISIBLE, offsets, epoch(now))
            pops += [handed(now, offset=offset, revive=999, attempt=f"a{step}") for offset in offsets]
            popped_ms = dict.fromkeys(offsets, now)
        elif popped_ms:
            offset, kept = chance.choice(list(popped_ms)), chance.random() < 0.25
            if kept and info.is_not_ack(offset - info.offset_list[0]):
                # Such a change has a new receipt, which a client must use from then on: here it is not acknowledged.
                info = update_next_visible_time(info, offset, info.pop_time, epoch(now + 9000))
                acks.append(ack(now, of=popped_ms[offset], kind="CHANGE_INVISIBLE_TIME", changed=9000, offset=offset))
                del popped_ms[offset]
            elif not kept:
                commit = commit_and_next(info, offset, info.pop_time)
                info, begin = commit.order_info, commit.next_offset
                acks.append(ack(now, of=popped_ms[offset], offset=offset))
    found = receipts_of(pops, acks, {})
    assert found.filter(pl.col("judgement") == "differ").is_empty()
    for row in found.filter(pl.col("outcome") == "open").rows(named=True):
        early = (row["visible_ts"] - T0) // dt.timedelta(milliseconds=1) - 1
        again = handed(early, offset=row["queue_offset"], revive=999, attempt="early")
        judgements = receipts_of([*pops, again], acks, {}).filter(pl.col("record_id") == row["record_id"])
        assert "differ" in judgements["judgement"].to_list()
