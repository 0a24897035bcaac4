"""Messages received twice: a cause must be possible by the evidence, and what a handover explains is silent."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqreplay.evidence.messages.deliveries import repeated_deliveries
from mqreplay.evidence.offsets.offset_causes import offset_resets
from mqreplay.findings.causes import with_causes
from mqreplay.findings.duplicates import duplicate_findings
from mqreplay.findings.every import KINDS
from mqreplay.findings.shape import SCHEMA
from silver_moments import at
from silver_rows import rows

GAP_S, AFTER_S, WARN = 45, 60, 3
QUEUE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
CONSUMED = QUEUE | {"queue_topic": "T", "reconsume_times": 0, "orderly": False, "status": "CONSUME_SUCCESS"}
BREAK = QUEUE | {"broker_id": 0, "kind": "rewind", "cause": "set_from_outside"}
Row = dict[str, Any]


def twice(offset: int, first: float, second: float, clients: str = "cc", **differs: object) -> list[Row]:
    """Both deliveries of a message, to two clients of one letter."""
    row = CONSUMED | {"queue_offset": offset} | differs
    return [
        row | {"ts": at(s), "client_id": client, "record_id": f"{offset}@{s}{client}{differs.get('queue_id', '')}"}
        for s, client in zip((first, second), clients, strict=True)
    ]


def rewound(to: int, since: float, until: float, **differs: object) -> Row:
    return BREAK | {"new_offset": to, "from_ts": at(since), "to_ts": at(until)} | differs


def other(kind: str, since: float, until: float, name: str = "", **place: object) -> Row:
    row = {"finding_id": name or kind, "kind": kind, "severity": "warning", "summary": "S.", "evidence": []}
    return row | {"from_ts": at(since), "to_ts": at(until), "consumer_group": "g"} | place


def held(client: str, since: float, until: float, **differs: object) -> Row:
    return QUEUE | {"client_id": client, "from_ts": at(since), "to_ts": at(until), "source": "assignment"} | differs


def pushed(offset: int, seconds: float, queue: int = 0) -> Row:
    return {"ts": at(seconds), "consumer_group": "g", "reset_offsets": [("T", "b", queue, offset)]}


def judged(
    consumed: list[Row],
    found: list[Row] = [],  # noqa: B006
    breaks: list[Row] = [],  # noqa: B006
    owners: list[Row] = [],  # noqa: B006
    resets: list[Row] = [],  # noqa: B006
    shards: int = 1,
) -> list[Row]:
    """Findings of all kinds, with their causes, duplicates first."""
    consume = rows("silver.consume", {}, consumed)
    of = pl.struct("topic", "broker_name", "queue_id").hash(3) % shards
    broadcasting = pl.DataFrame({"consumer_group": ["broadcast"]})
    repeated = pl.concat(repeated_deliveries(consume.filter(of == shard), broadcasting) for shard in range(shards))
    others = pl.DataFrame(found, SCHEMA)
    mine = duplicate_findings(
        repeated,
        others,
        rows("gold.offset_continuity", {}, breaks),
        offset_resets(rows("silver.server_request", {}, resets), rows("silver.pull", {}, [])),
        rows("gold.queue_owner", {}, owners),
        "c",
        gap_s=GAP_S,
        after_s=AFTER_S,
        warn_messages=WARN,
    )
    assert mine.schema == pl.Schema(SCHEMA)
    return with_causes(pl.concat([mine.sort("from_ts", "finding_id"), others]), KINDS.values()).to_dicts()


def causes(*args: Any, **more: Any) -> list[str | None]:
    return [row["follows_from"] for row in judged(*args, **more) if row["kind"] == "duplicate_delivery"]


REWIND, RESET = other("offset_rewind", 100, 110, topic="T"), other("offset_reset", 100, 101, topic="T")
LOST = other("consumer_lost", 100, 110, client_id="c")
DOWN = other("broker_down", 100, 150, broker_name="b", broker_id=0, consumer_group=None)
BOTH = other("double_owned_queue", 100, 150, topic="T")
# What was delivered twice with which evidence, and the cause.
CASES: dict[str, tuple[dict[str, list[Row]], list[str | None]]] = {
    "a rewind of the queue to an offset below": (
        {"consumed": twice(5, 90, 112), "found": [REWIND], "breaks": [rewound(5, 100, 105)]},
        ["offset_rewind"],
    ),
    "a rewind that copies show only after the delivery": (
        {"consumed": twice(5, 65, 71), "found": [REWIND], "breaks": [rewound(5, 100, 105)]},
        ["offset_rewind"],
    ),
    "a rewind to an offset above": (
        {"consumed": twice(5, 90, 112), "found": [REWIND], "breaks": [rewound(6, 100, 105)]},
        [None],
    ),
    "a rewind of another queue": (
        {"consumed": twice(5, 90, 112), "found": [REWIND], "breaks": [rewound(5, 100, 105, queue_id=1)]},
        [None],
    ),
    "a rewind of another group": (
        {"consumed": twice(5, 90, 112), "found": [REWIND], "breaks": [rewound(5, 100, 105, consumer_group="h")]},
        [None],
    ),
    "a rewind that only a slave's copy shows": (
        {"consumed": twice(5, 90, 112), "found": [REWIND], "breaks": [rewound(5, 100, 105, broker_id=1)]},
        [None],
    ),
    "a rewind before the first delivery": (
        {"consumed": twice(5, 121, 140), "found": [REWIND], "breaks": [rewound(5, 100, 105)]},
        [None],
    ),
    "a reset of the queue, without a copy that shows it": (
        {"consumed": twice(5, 90, 112), "found": [RESET], "resets": [pushed(5, 100)]},
        ["offset_reset"],
    ),
    "a reset to an offset above": (
        {"consumed": twice(5, 90, 112), "found": [RESET], "resets": [pushed(6, 100)]},
        [None],
    ),
    "a message that was first delivered after the reset": (
        {"consumed": twice(500, 130, 140), "found": [RESET], "resets": [pushed(5, 100)]},
        [None],
    ),
    "a message that was stored after the reset, and delivered soon": (
        {
            "consumed": twice(500, 105, 112, "cd", store_ts=at(103)),
            "found": [RESET, other("consumer_lost", 108, 110, client_id="c")],
            "resets": [pushed(5, 100)],
        },
        ["consumer_lost"],
    ),
    "a message that was in flight at the reset": (
        {"consumed": twice(500, 105, 125, born_ts=at(99)), "found": [RESET], "resets": [pushed(5, 100)]},
        ["offset_reset"],
    ),
    "of a reset and a later rewind, the later": (
        {
            "consumed": twice(5, 90, 171),
            "found": [RESET, other("offset_rewind", 150, 160, topic="T")],
            "resets": [pushed(0, 100)],
            "breaks": [rewound(5, 155, 160)],
        },
        ["offset_rewind"],
    ),
    "of resets, the one that the rewind in the file shows, and not the first of the night": (
        {
            "consumed": twice(5, 200, 230),
            "found": [RESET, other("offset_reset", 220, 220, "second", topic="T"), REWIND | {"to_ts": at(240)}],
            "resets": [pushed(0, 100), pushed(5, 220)],
            "breaks": [rewound(0, 100, 105, cause="reset"), rewound(5, 225, 240, cause="client_commit")],
        },
        ["second"],
    ),
    "of rewinds that are close to each other, the one between the deliveries": (
        {
            "consumed": twice(5, 90, 112),
            "found": [REWIND, other("offset_rewind", 150, 160, "later", topic="T")],
            "breaks": [rewound(5, 100, 105), rewound(5, 150, 155)],
        },
        ["offset_rewind"],
    ),
    "an offset past the end that was corrected": (
        {
            "consumed": twice(5, 90, 112),
            "found": [other("offset_beyond_max", 95, 110, topic="T")],
            "breaks": [rewound(3, 100, 105, cause="corrected")],
        },
        ["offset_beyond_max"],
    ),
    "the client that had the message was lost": (
        {"consumed": twice(5, 95, 120, "cd"), "found": [LOST]},
        ["consumer_lost"],
    ),
    "another client was lost, and the queue changed hands because of it": (
        {"consumed": twice(5, 95, 120, "de"), "found": [LOST]},
        ["consumer_lost"],
    ),
    "a client was lost much earlier, or in another group": (
        {"consumed": [*twice(5, 270, 270.1, "cd"), *twice(6, 95, 120, "cd", consumer_group="h")], "found": [LOST]},
        [],
    ),
    "several owners at once": ({"consumed": twice(5, 120, 121, "cd"), "found": [BOTH]}, ["double_owned_queue"]),
    "an outage of the queue's broker": (
        {"consumed": twice(5, 95, 209, "cd"), "found": [DOWN]},
        ["broker_down"],
    ),
    "an outage of another broker": ({"consumed": twice(5, 95, 209, "cd", broker_name="z"), "found": [DOWN]}, []),
    "an outage of a slave": ({"consumed": twice(5, 95, 140, "cd"), "found": [DOWN | {"broker_id": 1}]}, []),
    "an outage that was over for long": ({"consumed": twice(5, 95, 211), "found": [DOWN]}, [None]),
    "an outage that began after both": ({"consumed": twice(5, 80, 97), "found": [DOWN]}, [None]),
}


@pytest.mark.parametrize("case", CASES)
def test_only_what_lies_between_the_deliveries_is_their_cause(case: str) -> None:
    evidence, expected = CASES[case]
    assert causes(**evidence) == expected
    assert causes(**evidence, shards=5) == expected


def test_a_cause_says_the_sum_of_its_effects() -> None:
    consumed = [line for offset in range(4) for line in twice(offset, 95, 120 + offset, "cd")]
    consumed += [line for offset in range(2) for line in twice(offset, 95, 160, "cd", consumer_group="h")]
    consumed += twice(7, 95, 160, "cd", broker_name="z")
    listed = judged(consumed, [DOWN])
    (down,) = [row for row in listed if row["kind"] == "broker_down"]
    assert down["summary"] == "S. 6 messages were delivered again."
    effects = [row for row in listed if row["follows_from"] == down["finding_id"]]
    assert {row["consumer_group"]: row["summary"] for row in effects} == {
        "g": "Group g received 4 messages of T more than once: reads went from the master to a slave and back.",
        "h": "Group h received 2 messages of T more than once: reads went from the master to a slave and back.",
    }
    assert {(row["severity"], row["broker_name"]) for row in effects} == {("info", "b")}


def test_two_causes_are_two_findings() -> None:
    consumed = [*twice(5, 90, 112), *twice(6, 95, 120, "cd", queue_id=1)]
    listed = judged(consumed, [REWIND, LOST], [rewound(5, 100, 105)])
    assert [(row["follows_from"], row["queue_id"]) for row in listed[:2]] == [
        ("offset_rewind", 0),
        ("consumer_lost", 1),
    ]


def test_a_few_messages_of_a_queue_that_changes_hands_are_normal() -> None:
    few = [line for offset in range(WARN) for line in twice(offset, 10, 20, "cd")]
    few += [line for offset in range(WARN) for line in twice(offset, 10, 20, "cd", queue_id=1)]
    assert judged(few) == []
    (row,) = judged([*few, *twice(WARN, 10, 20, "cd")])
    assert row["summary"] == (
        "Group g received 4 messages of T more than once: queues changed hands, with more than the 3 messages per queue"
        " that are normal then."
    )
    assert (row["severity"], row["queue_id"], row["broker_name"]) == ("warning", 0, "b")


def test_the_same_client_again_is_a_handover_only_if_it_took_the_queue_anew() -> None:
    kept, anew = [held("c", 0, 100)], [held("c", 0, 12), held("d", 12, 15), held("c", 15, 100)]
    (row,) = judged(twice(5, 10, 20), owners=kept)
    assert row["summary"] == (
        "Group g received 1 message of T more than once: the same client received an offset again, and no rewind,"
        " reset or change of owner explains it."
    )
    assert row["severity"] == "warning"
    assert judged(twice(5, 10, 20), owners=anew) == []


@pytest.mark.parametrize(
    "lines",
    [
        [line for n in range(3) for line in twice(n, n, n)[:1]],
        [twice(1, 1, 9)[0] | {"status": "RECONSUME_LATER"}, twice(1, 1, 9)[1]],
        [CONSUMED | {"queue_offset": 1, "ts": at(1), "client_id": "c", "record_id": f"r{n}"} for n in (1, 2)],
        [twice(1, 1, 2)[0], twice(1, 1, 2, queue_id=1)[1]],
        twice(1, 1, 2, "cd", consumer_group="broadcast"),
    ],
    ids=["once", "tried again", "logged twice", "another queue", "broadcast"],
)
def test_only_a_second_success_of_one_message_counts(lines: list[Row]) -> None:
    assert judged(lines) == []


def test_duplicates_further_apart_than_the_gap_are_two_findings() -> None:
    lines = [*twice(1, 1, 10), *twice(2, 1, 10 + GAP_S), *twice(3, 1, 10.001 + 2 * GAP_S)]
    assert [(row["from_ts"], row["to_ts"]) for row in judged(lines)] == [
        (at(10), at(10 + GAP_S)),
        (at(10.001 + 2 * GAP_S),) * 2,
    ]


def test_a_third_delivery_has_a_cause_of_its_own() -> None:
    lines = [*twice(5, 90, 112), *twice(5, 90, 200, "cd")[1:]]
    listed = judged(lines, [REWIND, other("consumer_lost", 190, 195, client_id="c")], [rewound(5, 100, 105)])
    assert [row["follows_from"] for row in listed[:2]] == ["offset_rewind", "consumer_lost"]


DELIVERIES = st.tuples(
    st.integers(0, 2), st.integers(0, 4), st.integers(0, 300), st.sampled_from("cd"), st.sampled_from("bz")
)


@given(st.lists(DELIVERIES, max_size=25))
def test_the_split_into_shards_changes_nothing_and_sums_agree(deliveries) -> None:
    lines = [
        CONSUMED
        | {"queue_id": q, "queue_offset": offset, "ts": at(s), "client_id": client, "broker_name": b}
        | {"record_id": f"r{n}"}
        for n, (q, offset, s, client, b) in enumerate(deliveries)
    ]
    evidence = {"found": [REWIND, DOWN, LOST], "breaks": [rewound(2, 100, 105), rewound(1, 102, 106, queue_id=1)]}
    listed = judged(lines, **evidence)
    assert listed == judged(lines, **evidence, shards=5)
    effects: dict[str, int] = {}
    for row in listed:
        if row["kind"] == "duplicate_delivery" and row["follows_from"] is not None:
            n = int(row["summary"].split(" received ")[1].split(" ")[0])
            effects[row["follows_from"]] = effects.get(row["follows_from"], 0) + n
    with_counts = {row["finding_id"]: row["summary"] for row in listed if "again." in row["summary"]}
    assert {name: int(text.split(" ")[1]) for name, text in with_counts.items()} == effects
