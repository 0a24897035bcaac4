"""Commits past unfinished messages."""

from __future__ import annotations

from typing import Any

from evidence_keys import keys_of
from mqreplay.findings.unfinished_commits import unfinished_commits
from silver_moments import at
from silver_rows import rows

Row = dict[str, Any]
PASSED = {"consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 0, "client_id": "c1", "ts": at(10)}
PASSED |= {"source": "commit", "committed_offset": 7, "unfinished_offset": 5, "finished_ts": at(22)}
PASSED |= {"judgement": "differ"}


def found(*passed: Row) -> list[Row]:
    return unfinished_commits(rows("gold.committed_offset", PASSED, list(passed)), "c", 120).rows(named=True)


def test_a_group_that_commits_past_unfinished_messages() -> None:
    (one,) = found({}, {"ts": at(15), "committed_offset": 8})
    assert one["summary"] == "Group g committed t past 1 message that client c1 had not finished: up to 12 s before."
    assert (one["severity"], one["from_ts"], one["to_ts"], one["queue_id"]) == ("warning", at(10), at(22), 0)
    assert len(keys_of(one["evidence"])) == 2
    (several,) = found({}, {"queue_id": 1, "unfinished_offset": 9})
    assert several["summary"].startswith("Group g committed t past 2 messages that client c1")
    assert several["queue_id"] is None
    assert len(found({}, {"client_id": "c2"}, {"ts": at(900), "finished_ts": at(905)})) == 3


def test_what_polls_show() -> None:
    (one,) = found({"source": "running_info", "finished_ts": None})
    assert one["summary"] == "Group g committed t past 1 message that client c1 had not finished."


def test_what_is_not_known_is_no_finding() -> None:
    assert found({"judgement": "undetermined"}) == found() == []
