"""Commits that went back, by clients' commits and brokers' logs, where no copies of the offsets show it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from mqreplay.decisions.offset_continuity import offset_continuity
from mqreplay.evidence.intervals import INSTANT
from mqreplay.evidence.offsets.lowered_commits import lowered_commits, with_senders, with_sent_causes
from mqreplay.evidence.offsets.offset_causes import offset_resets
from silver_moments import at
from silver_rows import rows

QUEUE = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 1}
Row = dict[str, Any]


def commit(seconds: float, offset: int, client: str = "a", **differs: object) -> Row:
    return QUEUE | {"ts": at(seconds), "kind": "UPDATE", "client_id": client, "commit_offset": offset} | differs


def packet(seconds: float, offset: int, client: str = "a", **differs: object) -> Row:
    return commit(seconds, offset, client, mode="oneway", broker_id=0) | differs


def logged(seconds: float, stored: int, offset: int, **differs: object) -> Row:
    own = {"ts": at(seconds), "broker_id": 0, "client_addr": "h:1", "stored_offset": stored, "commit_offset": offset}
    return QUEUE | own | differs


def copied(*seconds: float, broker_id: int = 0) -> list[Row]:
    file = {"broker_name": "b", "broker_id": broker_id, "file_name": "consumerOffset.json"}
    return [file | {"ts": at(second), "source_name": f"b-{broker_id}"} for second in seconds]


def changed(since: float, until: float, old: int, new: int) -> Row:
    times = {"from_ts": at(since), "to_ts": at(until)}
    return QUEUE | times | {"source_name": "b-0", "broker_id": 0, "previous_offset": old, "new_offset": new}


def falls(
    commits: list[Row] = [],  # noqa: B006
    lines: list[Row] = [],  # noqa: B006
    changes: list[Row] = [],  # noqa: B006
    copies: list[Row] = [],  # noqa: B006
    pulls: list[Row] = [],  # noqa: B006
) -> pl.DataFrame:
    return lowered_commits(
        rows("silver.offset_commit", {}, commits),
        rows("silver.lowered_offset", {}, lines),
        rows("silver.offset_change", {}, changes),
        rows("silver.pull", {}, pulls),
        rows("silver.snapshot", {}, copies),
    ).sort("to_ts")


def steps(found: pl.DataFrame) -> list[tuple[int, int]]:
    return found.select("previous_offset", "new_offset").rows()


UPWARDS = [commit(5 * i, 100 + 10 * i) for i in range(4)]


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        (UPWARDS, []),
        ([*UPWARDS, commit(20, 130)], []),
        ([*UPWARDS, commit(20, 60)], [(130, 60)]),
        ([*UPWARDS, commit(20, 60), commit(25, 70)], [(130, 60)]),
        # Another client takes the queue, and goes back.
        ([*UPWARDS, commit(20, 129, "b"), commit(25, 140, "b")], [(130, 129)]),
        # Refused, not answered, asked, to a slave, or of another queue or group.
        ([*UPWARDS, commit(20, 60, response_code=1)], []),
        ([*UPWARDS, commit(20, 60, response_code=0, remark="Offset has been previously reset")], []),
        ([*UPWARDS, commit(20, 60, error="timeout")], []),
        ([*UPWARDS, commit(20, 60, kind="QUERY", commit_offset=None, answer_offset=60)], []),
        ([*UPWARDS, commit(20, 60, broker_id=1)], []),
        ([*UPWARDS, commit(20, 60, queue_id=2)], []),
        ([*UPWARDS, commit(20, 60, consumer_group="other")], []),
        ([*UPWARDS, commit(20, -1)], []),
    ],
)
def test_a_commit_lower_than_the_one_before_is_a_fall(commits: list[Row], expected: list[tuple[int, int]]) -> None:
    found = falls(commits)
    assert steps(found) == expected
    assert set(found["source"]) <= {"commits"}


def test_commits_of_two_clocks_during_a_handover_are_no_fall() -> None:
    # The clock of a is 3 s ahead: its last commits seem to come after the first ones of b.
    ahead = [commit(5 * i + 3, 100 + 10 * i) for i in range(5)]
    after = [commit(21 + 5 * i, 141 + 10 * i, "b") for i in range(5)]
    assert steps(falls([*ahead, *after])) == []


def test_two_owners_that_commit_in_turn_show_the_first_fall() -> None:
    both = [*[commit(10 * i, 1000 + i) for i in range(10)], *[commit(10 * i + 35, 50 + i, "b") for i in range(6)]]
    assert steps(falls(both)) == [(1003, 50)]


def test_the_same_commits_in_packets_and_in_a_log_are_counted_once() -> None:
    # A log's line is later, and has the offset of that moment.
    packets = [packet(5 * i, 100 + 10 * i) for i in range(5)] + [packet(25, 60), packet(30, 70)]
    log = [commit(5 * i - 0.1, 101 + 10 * i) for i in range(5)] + [commit(25.1, 61), commit(30.1, 71)]
    assert steps(falls([*packets, *log])) == [(140, 60)]


def test_a_brokers_log_shows_a_fall_with_the_address_that_sent_it() -> None:
    found = falls(lines=[logged(10, 1459, 1458), logged(10, 1452, 1451, queue_id=2)])
    assert steps(found.sort("queue_id")) == [(1459, 1458), (1452, 1451)]
    assert set(found["client_addr"]) == {"h:1"}
    assert set(found["source"]) == {"broker_log"}


def test_the_brokers_log_outranks_the_commits_of_clients() -> None:
    found = falls([*UPWARDS, commit(20, 60)], [logged(21, 133, 60)])
    assert steps(found) == [(133, 60)]


def test_lines_of_one_second_are_one_fall() -> None:
    assert steps(falls(lines=[logged(10, 90, 80), logged(10, 100, 60), logged(10, 70, 65)])) == [(100, 60)]


def test_a_slaves_log_shows_nothing() -> None:
    assert falls(lines=[logged(10, 100, 60, broker_id=1)]).is_empty()


@pytest.mark.parametrize(
    ("changes", "copies", "covered"),
    [
        ([], [], False),
        ([changed(0, 10, 100, 110)], copied(0, 10, 20, 30, 40), True),
        # One copy shows no change; copies of a slave, or without the queue, do not show it either.
        ([changed(0, 10, 100, 110)], copied(10), False),
        ([changed(0, 10, 100, 110)], copied(0, 10, 20, 30, 40, broker_id=1), False),
        ([changed(0, 10, 100, 110) | {"consumer_group": "other"}], copied(0, 10, 20, 30, 40), False),
        # Before or after the copies, or between copies that are far apart.
        ([changed(0, 10, 100, 110)], copied(-300, -200), False),
        ([changed(0, 10, 100, 110)], copied(-4000, -3990, 4000, 4010), False),
        # These show the fall itself.
        ([changed(-4000, 4000, 130, 60)], copied(-4000, 4000), True),
    ],
)
def test_copies_are_the_only_source_where_they_show_the_queue(
    changes: list[Row], copies: list[Row], covered: bool
) -> None:
    found = falls([*UPWARDS, commit(20, 60)], [logged(20, 130, 60)], changes, copies)
    assert found.is_empty() == covered


def broken(commits: list[Row], lines: list[Row], pulls: list[Row], requests: list[Row]) -> list[Row]:
    """Return the breaks that the same rules make of falls."""
    tables = {"offset_commit": commits, "pull": pulls, "server_request": requests}
    commit_, pull, request = (rows(f"silver.{name}", {}, values) for name, values in tables.items())
    none = pl.DataFrame(schema={"broker_name": pl.String, "topic": pl.String, "queue_id": pl.Int32})
    ends = none.with_columns(
        at=pl.lit(None, INSTANT),
        asked_at=pl.lit(None, INSTANT),
        queue_min_offset=pl.lit(None, pl.Int64),
        queue_max_offset=pl.lit(None, pl.Int64),
    )
    group = none.with_columns(consumer_group=pl.lit(None, pl.String))
    skips = group.with_columns(
        skipped_from=pl.lit(None, pl.Int64),
        skipped_to=pl.lit(None, pl.Int64),
        ts=pl.lit(None, INSTANT),
    )
    return offset_continuity(
        rows("silver.offset_change", {}, []),
        ends,
        group,
        offset_resets(request, pull),
        skips,
        commit_,
        pull,
        {"g"} if commits else set(),
        60,
        falls(commits, lines, pulls=pulls),
    ).to_dicts()


def test_a_fall_is_a_rewind_by_a_client_and_tells_what_is_delivered_again() -> None:
    (found,) = broken([*UPWARDS, commit(20, 60)], [], [], [])
    assert (found["kind"], found["cause"], found["source"]) == ("rewind", "client_commit", "commits")
    assert (found["size"], found["redelivered_max"]) == (70, 70)
    assert (found["from_ts"], found["to_ts"], found["broker_id"]) == (at(15), at(20), 0)


def test_a_fall_after_a_reset_is_a_reset() -> None:
    reset = {"ts": at(18), "client_id": "a", "request_code": 220, "consumer_group": "g", "topic": "t"}
    reset |= {"reset_offsets": [("t", "b", 1, 60)]}
    (found,) = broken([*UPWARDS, commit(20, 60)], [], [], [reset])
    assert found["cause"] == "reset"


def test_a_fall_to_the_end_after_a_pull_past_it_is_a_correction() -> None:
    pull = QUEUE | {"request_ts": at(19), "response_ts": at(19), "client_id": "a", "response_code": 21}
    pull |= {"queue_offset": 999_999, "max_offset": 60, "min_offset": 0, "next_begin_offset": 60}
    (found,) = broken([commit(15, 999_999), commit(20, 60)], [], [pull], [])
    assert (found["cause"], found["redelivered_max"]) == ("corrected", 0)
    (logged_,) = broken([], [logged(20, 999_999, 60)], [pull], [])
    assert logged_["cause"] == "corrected"
    (other,) = broken([commit(15, 999_999), commit(20, 60)], [], [pull | {"consumer_group": "x"}], [])
    assert other["cause"] == "client_commit"
    # Asked 20 s before the offset was set: the queue may have grown past it since.
    late = pull | {"request_ts": at(-5)}
    (grown,) = broken([commit(15, 90), commit(20, 60)], [], [late], [])
    assert grown["cause"] == "client_commit"


def test_copies_get_the_address_that_the_broker_logged() -> None:
    rewind = QUEUE | {"kind": "rewind", "broker_id": 0, "from_ts": at(10), "to_ts": at(20), "source": "copies"}
    breaks = rows("gold.offset_continuity", rewind | {"cause": "unknown"}, [{}, {"kind": "vanished"}, {"queue_id": 2}])
    lines = rows("silver.lowered_offset", {}, [logged(12, 9, 5)])
    named = with_sent_causes(with_senders(breaks, lines))
    assert named["client_addr"].to_list() == ["h:1", None, None]
    assert named["cause"].to_list() == ["client_commit", "unknown", "unknown"]
    early = rows("silver.lowered_offset", {}, [logged(-30, 9, 5), logged(25, 9, 5)])
    assert with_senders(breaks, early)["client_addr"].is_null().all()
