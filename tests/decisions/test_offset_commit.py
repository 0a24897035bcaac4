"""Commits of offsets against MixAll#compareAndIncreaseOnly: a client's memory never lowers by itself."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.offset_commit import compare_and_increase, offset_commits
from mqreplay.replay.commit_pass import IN_MEMORY
from silver_moments import at
from silver_rows import rows

QUEUE = {"client_id": "c1", "consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0}
COMMIT = QUEUE | {"kind": "UPDATE", "mode": "oneway"}
PUSH = {"consumer_group": "g", "client_id": "c1", "consume_type": "CONSUME_PASSIVELY"}
RESET = {**dict.fromkeys(("consumer_group", "topic", "broker_name"), pl.String), "queue_id": pl.Int32}
RESET |= {"ts": pl.Datetime("us", "UTC")}
Row = dict[str, Any]


def judged(
    *commits: Row,
    new: bool = False,
    consume_type: str = "CONSUME_PASSIVELY",
    breaks: tuple[Row, ...] = (),
    resets: tuple[Row, ...] = (),
) -> list[Row]:
    """The verdicts on commits and answers to queries, in their order."""
    table = rows("silver.offset_commit", COMMIT, commits)
    table = table.with_columns(IN_MEMORY.of(table))
    broken = rows("gold.offset_continuity", QUEUE | {"broker_id": 0}, breaks)
    return offset_commits(
        table.hstack(compare_and_increase(table)),
        pl.DataFrame({"client_id": ["c1"] if new else []}, schema={"client_id": pl.String}),
        pl.DataFrame([PUSH | {"consume_type": consume_type}]),
        broken,
        pl.DataFrame([QUEUE | reset for reset in resets], schema=RESET),
        30,
    ).rows(named=True)


def commit(s: float, offset: int, **more: Any) -> Row:
    return {"ts": at(s), "commit_offset": offset} | more


def query(s: float, offset: int | None) -> Row:
    return {"kind": "QUERY", "mode": "sync", "ts": at(s), "response_ts": at(s + 0.1), "answer_offset": offset}


def verdicts(*commits: Row, **more: Any) -> list[tuple[int | None, int, str | None, str]]:
    return [
        (row["previous_offset"], row["expected_offset"], row["outcome"], row["judgement"])
        for row in judged(*commits, **more)
    ]


def test_an_offset_that_rises_or_stays_is_due() -> None:
    assert verdicts(commit(0, 5), commit(5, 5), commit(10, 9), new=True) == [
        (None, 5, "stored", "agree"),
        (5, 5, "stored", "agree"),
        (5, 9, "stored", "agree"),
    ]


def test_the_memory_of_a_client_older_than_the_recording_is_not_known() -> None:
    assert verdicts(commit(0, 5)) == [(None, 5, "stored", "undetermined")]


def test_a_lower_commit_differs() -> None:
    assert verdicts(commit(0, 5), commit(5, 3))[1] == (5, 5, "lowered", "differ")


def test_what_the_client_read_since_replaces_its_memory() -> None:
    assert verdicts(commit(0, 50), query(2, 3), commit(5, 4))[1] == (3, 4, "stored", "agree")
    # A broker without the offset, or no answer, leaves it.
    assert verdicts(commit(0, 50), query(2, None), commit(5, 60))[1] == (50, 60, "stored", "agree")


@pytest.mark.parametrize("cause", ["reset", "corrected"])
def test_a_reset_or_a_correction_explains_a_lower_commit(cause: str) -> None:
    broken = {"kind": "rewind", "cause": cause, "to_ts": at(8)}
    (_, row) = judged(commit(0, 50), commit(5, 3), breaks=(broken,))
    assert (row["outcome"], row["judgement"]) == ("lowered", "agree")
    assert row["reason"].startswith("lower than 50, the offset in the client's memory, after a ")


def test_a_reset_that_the_client_received_explains_a_lower_commit() -> None:
    # No copy of the broker's offsets shows it: the client committed what it then consumed.
    assert verdicts(commit(0, 50), commit(25, 8), resets=({"ts": at(5)},))[1][2:] == ("lowered", "agree")
    assert verdicts(commit(0, 50), commit(45, 8), resets=({"ts": at(5)},))[1][3] == "differ"
    assert verdicts(commit(0, 50), commit(25, 8), resets=({"ts": at(5), "queue_id": 1},))[1][3] == "differ"


@pytest.mark.parametrize(
    "broken",
    [
        {"kind": "rewind", "cause": "unknown", "to_ts": at(5)},
        {"kind": "rewind", "cause": "reset", "to_ts": at(90)},
        {"kind": "rewind", "cause": "reset", "to_ts": at(5), "queue_id": 1},
    ],
)
def test_another_break_explains_nothing(broken: Row) -> None:
    assert verdicts(commit(0, 50), commit(5, 3), breaks=(broken,))[1][3] == "differ"


def test_a_pull_consumer_may_set_any_offset() -> None:
    row = judged(commit(0, 50), commit(5, 3), consume_type="CONSUME_ACTIVELY")[1]
    assert (row["judgement"], row["reason"].partition(": ")[2]) == ("undetermined", "a pull consumer may set any")


def test_a_log_does_not_show_what_the_client_read() -> None:
    assert verdicts(commit(0, 50, mode=None), commit(5, 3, mode=None))[1][2:] == ("lowered", "undetermined")


def test_lines_of_a_log_and_packets_have_clocks_of_their_own() -> None:
    # The log's clock is behind: its line is of a later moment than the packet after it.
    assert verdicts(commit(0, 50), commit(2, 90, mode=None), commit(5, 60))[2] == (50, 60, "stored", "agree")


def test_clients_and_queues_have_memories_of_their_own() -> None:
    assert [each[0] for each in verdicts(commit(0, 50), commit(1, 3, client_id="c2"), commit(2, 4, queue_id=1))] == [
        None,
        None,
        None,
    ]


def test_what_a_broker_did() -> None:
    refused, lost = {"response_code": 1, "remark": "no"}, {"error": "timeout"}
    assert [
        each[2] for each in verdicts(commit(0, 5, **refused), commit(1, 6, **lost), commit(2, 7, response_code=0))
    ] == [
        "refused",
        None,
        "stored",
    ]


def test_commits_of_one_instant_are_in_order() -> None:
    assert [each[0] for each in verdicts(commit(5, 9), commit(5, 7), commit(0, 5))] == [7, 5, None]
