"""Topics that may not be read or written, by copies of a broker's topics, while clients use them."""

from __future__ import annotations

from typing import Any

import pytest

from mqreplay.findings.forbidden_topics import forbidden_reads, forbidden_writes
from mqreplay.findings.texts import written_summary
from mqreplay.language.language import in_english
from silver_moments import at
from silver_rows import rows

CONFIG = {"source_name": "b-0", "broker_name": "b", "broker_id": 0, "topic": "t", "ts": at(0), "change": "first"}
CONFIG |= {"perm": 6}
OWNER = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "client_id": "c", "from_ts": at(0)}
OWNER |= {"to_ts": at(220)}
WRITE_ONLY = {"ts": at(200), "change": "changed", "perm": 2}
AGAIN = {"ts": at(290), "change": "changed"}
Row = dict[str, Any]


def said(row: Row, kind: str) -> str:
    """Return the summary of the finding that is made of a row."""
    lasted_s = int((row["to_ts"] - row["from_ts"]).total_seconds())
    return written_summary(kind, row | {"form": "topic", "lasted_s": lasted_s}, in_english())


def found(configs: list[Row], owners: list[Row] | None = None, refused: list[Row] | None = None) -> list[Row]:
    pulls = rows("gold.finding", {"topic": "t", "broker_name": "b"}, refused or [])
    held = rows("gold.queue_owner", OWNER, [{}] if owners is None else owners)
    of_copies = rows("silver.topic_config", CONFIG, configs)
    return forbidden_reads(of_copies, held, pulls, at(1000), 45).sort("from_ts").rows(named=True)


def test_a_topic_that_could_not_be_read_for_a_while() -> None:
    (row,) = found([{}, WRITE_ONLY, AGAIN])
    assert (row["from_ts"], row["to_ts"], row["consumer_group"]) == (at(200), at(290), "g")
    assert said(row, "pull_refused") == (
        "t could not be read on the master of b for 90 s (perm 2), while group g consumed it: messages of these queues"
        " waited."
    )
    assert [key["ts"] for key in row["evidence"]] == [at(200)]


def test_until_the_end_of_the_recording() -> None:
    (row,) = found([{}, WRITE_ONLY, WRITE_ONLY | {"ts": at(300), "perm": 0}], [{}, {"consumer_group": "h"}])
    assert (row["to_ts"], row["consumer_group"]) == (at(1000), None)
    assert "while 2 groups consumed it" in said(row, "pull_refused")


@pytest.mark.parametrize(
    ("configs", "owners"),
    [
        ([{}], None),
        ([{}, WRITE_ONLY, AGAIN], []),
        ([{}, WRITE_ONLY, AGAIN], [{"to_ts": at(50)}]),
        ([{}, WRITE_ONLY, AGAIN], [{"from_ts": at(400), "to_ts": None}]),
        ([{}, WRITE_ONLY, AGAIN], [{"broker_name": "other"}]),
        ([{}, WRITE_ONLY, AGAIN | {"ts": at(240)}], None),
        ([{}, WRITE_ONLY | {"perm": 4}, AGAIN], None),
        ([{"broker_id": 1}, WRITE_ONLY | {"broker_id": 1}, AGAIN | {"broker_id": 1}], None),
        ([{}, WRITE_ONLY | {"perm": None}], None),
    ],
    ids=["readable", "nobody", "left before", "came after", "elsewhere", "short", "readers only", "slave", "unknown"],
)
def test_no_finding(configs: list[Row], owners: list[Row] | None) -> None:
    assert found(configs, owners) == []


def test_what_refused_pulls_show_is_left_to_them() -> None:
    configs = [{}, WRITE_ONLY, AGAIN]
    assert found(configs, refused=[{"from_ts": at(170), "to_ts": at(230)}]) == []
    assert found(configs, refused=[{"from_ts": at(10), "to_ts": at(20)}]) != []


def test_a_topic_that_is_removed_is_not_forbidden_any_more() -> None:
    (row,) = found([{}, WRITE_ONLY, AGAIN | {"change": "removed", "perm": None}])
    assert row["to_ts"] == at(290)


READ_ONLY = {"ts": at(200), "change": "changed", "perm": 4}
GROWS = [(100.0, 10), (130.0, 20), (160.0, 30), (190.0, 40), (220.0, 43), (250.0, 43), (280.0, 43), (310.0, 50)]


def lost(configs: list[Row], ends: list[tuple[float, int]] | None = None, topic: str = "t") -> list[Row]:
    offsets = {"topic": topic, "broker_name": "b", "queue_id": 0, "min_offset": 0}
    polls = [{"ts": at(s), "offsets": [offsets | {"max_offset": end}]} for s, end in GROWS if ends is None] + [
        {"ts": at(s), "offsets": [offsets | {"max_offset": end}]} for s, end in ends or []
    ]
    stats = rows("silver.topic_stats", {"broker_name": "b", "broker_id": 0, "topic": topic}, polls)
    of_copies = rows("silver.topic_config", CONFIG | {"topic": topic}, configs)
    return forbidden_writes(of_copies, stats, at(1000), 45).sort("broker_name").rows(named=True)


def test_a_topic_that_could_not_be_written_for_a_while() -> None:
    (row,) = lost([{}, READ_ONLY, AGAIN])
    assert (row["from_ts"], row["to_ts"], row["broker_id"], row["everywhere"]) == (at(200), at(290), 0, True)
    assert said(row, "sends_avoid_broker") == (
        "t could not be written on the master of b for 90 s (perm 4): producers found no queue of it there, nor on"
        " another known master: their sends failed without a route."
    )
    assert [key["ts"] for key in row["evidence"]] == [at(200)]


def test_other_masters_that_let_producers_write() -> None:
    other = {"source_name": "b2-0", "broker_name": "b2"}
    (row,) = lost([{}, READ_ONLY, AGAIN, other])
    assert said(row, "sends_avoid_broker").endswith("producers found no queue of it there.")
    (row,) = lost([{}, READ_ONLY, AGAIN, other, READ_ONLY | other])
    assert row["everywhere"]


@pytest.mark.parametrize(
    ("configs", "ends"),
    [
        ([{}, READ_ONLY, AGAIN], []),
        ([{}, READ_ONLY, AGAIN], [(0, 5), (30, 40), (150, 40), (190, 40), (220, 40)]),
        ([{}, READ_ONLY, AGAIN], [*GROWS[:5], (265.0, 43), (285.0, 44)]),
        ([{}, READ_ONLY, AGAIN | {"ts": at(240)}], None),
        ([READ_ONLY | {"change": "first"}, AGAIN], None),
        ([{}, READ_ONLY | {"perm": 2}, AGAIN], None),
        ([{"broker_id": 1}, READ_ONLY | {"broker_id": 1}, AGAIN | {"broker_id": 1}], None),
        ([{}, READ_ONLY | {"change": "removed", "perm": None}], None),
    ],
    ids=["no polls", "idle before", "still written", "short", "never writeable", "write-only", "slave", "removed"],
)
def test_no_writers_were_lost(configs: list[Row], ends: list[tuple[float, int]] | None) -> None:
    assert lost(configs, ends) == []


def test_the_brokers_own_topics_have_no_producers() -> None:
    assert lost([{}, READ_ONLY, AGAIN], topic="%RETRY%g") == []
