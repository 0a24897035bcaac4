"""Members by polled lists: present, vanished and silent ones."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqreplay.evidence.members.listed_members import listed_signs, listed_spans, silences, vanished
from mqreplay.evidence.members.membership import membership
from mqreplay.evidence.recorder_holes import HOLES
from mqreplay.findings.lost_consumers import lost_consumers, lost_findings
from silver_moments import BEGAN, at
from silver_rows import rows

Row = dict[str, Any]
NO_HOLES = pl.DataFrame(schema=HOLES)
END, LOST_S, SILENT_S = 300, 45, 90


def listed(seconds: float, *clients: str, before: float | None = None, broker: str = "b", **differs: object) -> Row:
    row = {"consumer_group": "g", "broker_name": broker, "broker_id": 0, "ts": at(seconds), "response_code": 0}
    row |= {"previous_ts": None if before is None else at(before), "cid_all": list(clients)}
    return row | differs


def nobody(seconds: float, before: float | None, broker: str = "b") -> Row:
    return listed(seconds, before=before, broker=broker, response_code=1, cid_all=None, remark="no consumer")


def down(seconds: float, before: float, broker: str = "b") -> Row:
    return listed(seconds, before=before, broker=broker, response_code=None, cid_all=None, error="no connection")


def polls(broker: str = "b", boot: float = -3600) -> list[Row]:
    base = {"broker_name": broker, "broker_id": 0, "boot_ts": at(boot)}
    return [base | {"ts": at(s)} for s in range(0, END + 1, 5)]


def asked(client: str, seconds: float, before: float, error: str | None, code: int | None = None) -> Row:
    row = {"client_id": client, "consumer_group": "g", "source": "running_info", "error": error}
    row |= {"ts": at(seconds), "previous_ts": at(before), "response_code": code}
    return row | {"queues": None if error else [("T", "b", 0, *[None] * 8)]}


def judged(
    lists: list[Row], runtime: list[Row] | None = None, answers: list[Row] | None = None, holes: pl.DataFrame = NO_HOLES
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The sessions and the members that vanished."""
    polled = rows("silver.broker_runtime", {}, polls() if runtime is None else runtime)
    spans = listed_spans(rows("silver.consumer_list", {}, lists), polled, holes, at(END))
    assignment = rows("silver.assignment", {}, answers or [])
    silent = silences(assignment, at(END), LOST_S)
    gone = vanished(spans, silent, holes, SILENT_S, assignment)
    return membership(listed_signs(spans, gone, silent), SILENT_S).sort("client_id", "from_ts"), gone


def spans(sessions: pl.DataFrame) -> list[tuple[str, float, float]]:
    seconds = [((pl.col(name) - BEGAN).dt.total_milliseconds() / 1000).alias(name) for name in ("from_ts", "to_ts")]
    return sessions.select("client_id", *seconds).rows()


def every_minute(first: int, *clients: str, broker: str = "b") -> list[Row]:
    return [listed(s, *clients, before=s - 5, broker=broker) for s in range(first, END + 1, 60)]


def test_a_member_is_there_until_the_list_last_named_it() -> None:
    sessions, gone = judged([listed(0, "c1", "c2"), listed(40, "c1", before=35), *every_minute(100, "c1")])
    assert spans(sessions) == [("c1", 0, END), ("c2", 0, 35)]
    assert gone.rows() == [("g", "c2", at(35), False)]
    assert not sessions["watched"].any()
    assert not sessions["beat"].any()


def test_a_member_of_any_broker_is_there() -> None:
    lists = [listed(0, "c1"), listed(0, "c1", broker="a"), nobody(40, 35), *[nobody(s, s - 5) for s in (100, 160, 220)]]
    sessions, gone = judged([*lists, *every_minute(60, "c1", broker="a")], polls() + polls("a"))
    assert spans(sessions) == [("c1", 0, END)]
    assert gone.is_empty()


def test_a_broker_that_is_down_says_nothing() -> None:
    sessions, gone = judged([listed(0, "c1"), down(40, 35), *[down(s, s - 5) for s in (100, 160, 220, 280)]])
    assert spans(sessions) == [("c1", 0, 35)]
    assert gone.is_empty()


def test_a_broker_that_has_just_started_does_not_know_its_members_yet() -> None:
    lists = [listed(0, "c1"), down(40, 35), nobody(60, 55), listed(85, "c1", before=80), *every_minute(145, "c1")]
    runtime = [poll for poll in polls() if poll["ts"] < at(40)] + [p for p in polls(boot=52) if p["ts"] > at(55)]
    sessions, gone = judged(lists, runtime)
    assert spans(sessions) == [("c1", 0, END)]
    assert gone.is_empty()


def test_a_list_that_is_not_written_again_holds_no_longer() -> None:
    lists = [listed(0, "c1", broker="slave"), listed(0, "c1"), nobody(40, 35)]
    sessions, gone = judged(lists)
    assert spans(sessions) == [("c1", 0, 65)]
    assert gone.is_empty()


def test_the_same_id_again_is_another_session() -> None:
    lists = [listed(0, "c1"), nobody(20, 15), listed(30, "c1", before=25), *every_minute(90, "c1")]
    assert spans(judged(lists)[0]) == [("c1", 0, 15), ("c1", 30, END)]


def test_a_client_that_moves_to_another_broker_did_not_vanish() -> None:
    first = [listed(0, "c1"), listed(60, "c1", before=55), *(nobody(s, s - 5) for s in (100, 160, 220, 280))]
    later = [listed(130, "c1", before=125, broker="b2"), *every_minute(190, "c1", broker="b2")]
    sessions, gone = judged(first + later, polls() + polls("b2"))
    assert spans(sessions) == [("c1", 0, END)]
    assert gone.is_empty()
    # It never came back.
    assert judged(first, polls() + polls("b2"))[1].rows() == [("g", "c1", at(95), False)]


def test_a_client_that_never_answers_and_connects_to_its_broker_again_did_not_vanish() -> None:
    lists = [listed(0, "c1"), nobody(20, 15), listed(30, "c1", before=25), *every_minute(90, "c1")]
    never = [asked("c1", s, max(s - 20, 0), "b did not answer") for s in (0, 60)]
    assert spans(judged(lists, answers=never)[0]) == [("c1", 0, END)]
    # Not known whether it is the same process: another client may keep its id when it is started again.
    assert len(judged(lists, answers=[asked("c1", 0, 0, None)])[0]) == 2


def test_nothing_vanishes_in_a_hole_of_the_recording() -> None:
    holes = pl.DataFrame([(at(50), at(200), "stopped")], HOLES, orient="row")
    lists = [listed(0, "c1", "c2"), listed(200, "c1"), *every_minute(260, "c1")]
    assert judged(lists, holes=holes)[1].is_empty()


def test_a_client_that_answers_no_more_is_silent_since_its_last_answer() -> None:
    lists = [listed(0, "c1"), listed(60, "c1", before=55), listed(120, "c1", before=115), nobody(150, 145)]
    answers = [asked("c1", 0, 0, None), asked("c1", 40, 20, "timed out", 207), asked("c1", 100, 80, "timed out", 207)]
    sessions, gone = judged(lists, answers=answers)
    assert spans(sessions) == [("c1", 0, 20)]
    assert gone.rows() == [("g", "c1", at(20), True)]


def test_a_pause_and_an_unknown_request_are_no_silence() -> None:
    lists = [listed(0, "c1", "c2"), *every_minute(60, "c1", "c2")]
    pause = [asked("c1", 0, 0, None), asked("c1", 40, 20, "timed out", 207), asked("c1", 100, 80, None)]
    never = [asked("c2", s, max(s - 20, 0), "timed out", 207) for s in (0, 60, 120)]
    sessions, gone = judged(lists, answers=pause + never)
    assert spans(sessions) == [("c1", 0, END), ("c2", 0, END)]
    assert gone.is_empty()


def test_of_a_member_that_vanished_nobody_knows_why_and_of_one_that_fell_silent_all_know() -> None:
    lists = [listed(0, "hung", "left"), listed(40, "hung", before=35), listed(100, "hung", before=95), nobody(150, 145)]
    answers = [asked("hung", 0, 0, None), asked("hung", 40, 20, "timed out", 207)]
    sessions, gone = judged(lists, answers=answers)
    owner = {"consumer_group": "g", "topic": "T", "broker_name": "b", "source": "running_info", "from_ts": at(0)}
    owners = rows(
        "gold.queue_owner",
        owner,
        [
            {"client_id": "hung", "queue_id": 0, "to_ts": at(20)},
            {"client_id": "left", "queue_id": 1, "to_ts": at(35)},
        ],
    )
    lost = lost_findings(lost_consumers(sessions, owners, at(END), LOST_S, gone), "c").sort("client_id")
    assert lost.select("client_id", "severity", "confidence").rows() == [
        ("hung", "warning", 0.9),
        ("left", "info", 0.5),
    ]
    assert lost["summary"].to_list() == [
        "Consumer hung of group g disappeared without unregistering while it held 1 queue: killed, crashed or cut off.",
        "Consumer left of group g left while it held 1 queue; the recording cannot tell whether it was stopped in order"
        " or killed.",
    ]
    assert [[row["table_name"] for row in found] for found in lost["evidence"]] == [
        ["silver.assignment", "gold.queue_owner"],
        ["silver.consumer_list", "gold.queue_owner"],
    ]
    assert lost_consumers(sessions, owners, at(60), LOST_S, gone)["client_id"].to_list() == []


def test_a_member_that_another_broker_names_did_not_vanish() -> None:
    """A master is asked again after an outage, at another address: its first list has nobody."""
    of_other = [
        listed(4, "c1", broker="b2"),
        *[listed(s, "c1", before=s - 5, broker="b2") for s in (64, 124, 184, 244)],
    ]
    sessions, gone = judged([listed(0, "c1"), nobody(150, None), *of_other], [*polls(), *polls("b2")])
    assert gone.rows() == []
    assert [client for client, *_ in spans(sessions)] == ["c1"]
