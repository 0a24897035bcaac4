"""Whether a broker may be restarted: each reason to say no, or that it is not known."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

import mqreplay
from made_warehouse import made_warehouse
from mqreplay.answers.ready import Readiness, readiness
from mqreplay.cli.command_line import main
from mqreplay.mcp.server import Tools
from mqreplay.moment.instant import Recorded
from mqreplay.settings import FindingSettings, Settings, load_settings

DAY = dt.date(2026, 11, 21)
AT = dt.datetime(2026, 11, 21, 2, 30, tzinfo=dt.UTC)
BEFORE = AT - dt.timedelta(seconds=10)
ROUTE = [("b", 6), ("c", 6)]


def broker(broker_id: int, role: str = "ASYNC_MASTER", name: str = "b") -> dict[str, Any]:
    of = {"broker_name": name, "broker_id": broker_id, "ts": BEFORE, "recording": "r"}
    return of | {"broker_role": role if broker_id == 0 else "SLAVE", "properties": {"brokerRole": role}}


def poll(broker_id: int, error: str | None = None, name: str = "b") -> dict[str, Any]:
    return {"broker_name": name, "broker_id": broker_id, "ts": BEFORE, "error": error, "day": DAY}


def behind(count: int | None) -> dict[str, Any]:
    return {"broker_name": "b", "broker_id": 1, "ts": BEFORE, "day": DAY, "behind_bytes": count}


def route(*takers: tuple[str, int]) -> dict[str, Any]:
    queues = [
        {"broker_name": name, "read_queue_nums": 2, "write_queue_nums": 2, "perm": perm, "topic_sys_flag": 0}
        for name, perm in takers
    ]
    return {"topic": "T", "ts": BEFORE, "day": DAY, "queue_datas": queues}


def exposed(redelivered: int | None = 3) -> dict[str, Any]:
    return {"broker_name": "b", "minute_ts": BEFORE, "day": DAY, "redelivered": redelivered, "unknown_queues": 0}


# Its only name server lists the brokers of b alone.
LISTED = {
    **{"ts": BEFORE, "day": DAY, "record_id": "r", "namesrv_addr": "ns:1", "error": None, "previous_ts": None},
    "brokers": [
        {
            "broker_name": "b",
            "cluster": "c",
            "broker_addrs": [{"key": each, "value": f"h:{each}"} for each in (0, 1)],
        }
    ],
}


GOOD: dict[str, list[dict[str, Any]]] = {
    "silver.broker": [broker(0), broker(1), broker(0, name="c")],
    "silver.broker_runtime": [*(poll(each) | {"commit_log_max_offset": 9} for each in (0, 1)), poll(0, name="c")],
    "gold.replication": [behind(0)],
    "silver.route": [route(*ROUTE)],
    "gold.failover_exposure": [exposed()],
}


def judged(
    folder: Path, broker_id: int = 0, settings: Settings | None = None, **tables: list[dict[str, Any]]
) -> Readiness:
    named = {name.replace("__", "."): rows for name, rows in tables.items()}
    warehouse = made_warehouse(folder, GOOD | named)
    recorded = Recorded(warehouse, "c", AT - dt.timedelta(hours=1), AT)
    found = readiness(recorded, "b", broker_id, AT, settings or Settings())
    assert found is not None
    return found


def test_a_master_with_a_slave_that_has_everything_may_be_restarted(tmp_path):
    found = judged(tmp_path)
    assert found.answer == "yes"
    assert {check.name: check.text for check in found.checks} == {
        "answers": "it answered at 02:29:50 UTC",
        "slaves": "slave 1 answers and is 0 bytes behind",
        "offsets": "if it failed instead, 0 to 3 messages would be delivered again, if members join meanwhile",
        "topics": "each topic can be sent to on another master",
        "owners": "no group reads its queues",
        "findings": "no finding about it is open",
    }


FINDING = {
    **{"finding_id": "e" * 16, "kind": "replication_lag", "severity": "warning", "broker_name": "b"},
    **{"from_ts": BEFORE, "to_ts": None, "day": DAY, "consumer_group": None, "topic": None},
}


@pytest.mark.parametrize(
    ("tables", "name", "says"),
    [
        ({"gold__replication": [behind(7)]}, "slaves", "7 bytes behind: readers would wait"),
        ({"silver__broker_runtime": [poll(0), poll(1, "timeout")]}, "slaves", "no slave of it answers"),
        (
            {
                "silver__broker": [broker(0), broker(0, name="c")],
                "silver__broker_runtime": [poll(0), poll(0, name="c")],
            },
            "slaves",
            "it has no slave",
        ),
        ({"silver__route": [route(("b", 6), ("c", 4))]}, "topics", "nobody could send to 1 topic meanwhile: T"),
        (
            {"silver__broker_runtime": [poll(0), poll(1), poll(0, "refused", "c")]},
            "topics",
            "meanwhile: T; no answer from, or not listed: c",
        ),
        (
            {"silver__cluster_info": [LISTED]},
            "topics",
            "meanwhile: T; no answer from, or not listed: c",
        ),
        (
            {"gold__finding": [FINDING | {"broker_name": "c", "severity": "critical"}]},
            "partners",
            "replication_lag eee",
        ),
        ({"gold__finding": [FINDING]}, "findings", "1 finding about it open: replication_lag eeeeeeee"),
        ({"silver__broker_runtime": [poll(0, "refused"), poll(1)]}, "answers", "down or does not answer"),
    ],
)
def test_each_reason_to_say_no(tmp_path, tables, name, says):
    found = judged(tmp_path, **tables)
    assert found.answer == "no"
    assert next(check.text for check in found.checks if check.answer == "no" and check.name == name).find(says) >= 0


ENDED = FINDING | {"to_ts": AT - dt.timedelta(seconds=50)}


def test_the_settings_say_how_long_a_finding_counts_as_open(tmp_path):
    assert judged(tmp_path / "shipped", gold__finding=[ENDED]).answer == "no", "120 s"
    shorter = Settings(findings=FindingSettings(same_cause_gap_s=20))
    assert judged(tmp_path / "own", settings=shorter, gold__finding=[ENDED]).answer == "yes"


def test_all_faces_use_the_settings_of_the_user(tmp_path, capsys):
    rows = dict.fromkeys(("rows_in", "rows_out", "rows_quarantined", "rows_duplicate"), 0)
    file = rows | {"path": "p", "status": "read", "first_ts": AT - dt.timedelta(hours=1), "last_ts": AT}
    root, conf = str(tmp_path / "w"), tmp_path / "mine.toml"
    made_warehouse(tmp_path / "w", GOOD | {"gold.finding": [ENDED], "bronze.source_file": [file]})
    conf.write_text("[findings]\nsame_cause_gap_s = 20\n")
    for options, answer in (([], "no"), (["--conf", str(conf)], "yes")):
        main(["ready", "b", "--warehouse", root, "--json", *options])
        assert json.loads(capsys.readouterr().out)["answer"] == answer
        assert mqreplay.open(root, conf=(options or [None])[-1]).ready("b").value.answer == answer
        assert Tools(root, load_settings((options or [None])[-1])).ready("b")["answer"] == answer


@pytest.mark.parametrize(
    ("tables", "name"),
    [
        ({"gold__replication": [behind(None)]}, "slaves"),
        ({"silver__broker_runtime": []}, "answers"),
        ({"silver__broker_runtime": [poll(0), poll(1)]}, "topics"),
        ({"silver__route": []}, "topics"),
        ({"gold__failover_exposure": []}, "offsets"),
        ({"gold__failover_exposure": [exposed(None)]}, "offsets"),
    ],
)
def test_what_was_not_recorded_is_undetermined(tmp_path, tables, name):
    found = judged(tmp_path, **tables)
    assert found.answer == "undetermined"
    assert name in {check.name for check in found.checks if check.answer == "undetermined"}


@pytest.mark.parametrize(("role", "answer"), [("ASYNC_MASTER", "yes"), ("SYNC_MASTER", "no")])
def test_the_only_slave_of_a_synchronous_master_is_needed(tmp_path, role, answer):
    found = judged(tmp_path, 1, silver__broker=[broker(0, role), broker(1, role)])
    assert found.answer == answer


def test_another_slave_goes_on_copying(tmp_path):
    brokers = [broker(each, "SYNC_MASTER") for each in range(3)]
    found = judged(tmp_path, 1, silver__broker=brokers, silver__broker_runtime=[poll(each) for each in range(3)])
    assert found.answer == "yes"


def test_a_slave_whose_master_is_down_serves_its_readers(tmp_path):
    found = judged(tmp_path, 1, silver__broker_runtime=[poll(0, "refused"), poll(1)])
    assert [check.name for check in found.checks if check.answer == "no"] == ["master"]


def test_an_unknown_broker_has_no_answer(tmp_path):
    warehouse = made_warehouse(tmp_path, GOOD)
    assert readiness(Recorded(warehouse, "c", AT, AT), "x", 0, AT, Settings()) is None
