"""The pictures as SVG: escaped, bounded, and honest about what is unknown."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from made_warehouse import CLUSTER, made_warehouse
from mqreplay.report.pictures import Picture, pictures
from report_data import HOSTILE, finding

BEGIN = dt.datetime(2026, 11, 21, 2, tzinfo=dt.UTC)
COUNTS = {"rows_in": 1, "rows_out": 1, "rows_quarantined": 0, "rows_duplicate": 0}
SPAN = {"first_ts": BEGIN, "last_ts": BEGIN + dt.timedelta(hours=1)}
FILE = COUNTS | SPAN | {"kind": "pull_log", "status": "read", "path": "a"}
DAY = {"day": BEGIN.date()}
NO_PLACE = dict.fromkeys(("consumer_group", "topic", "broker_name", "broker_id", "queue_id", "client_id"))


def at(minutes: float) -> dt.datetime:
    return BEGIN + dt.timedelta(minutes=minutes)


def drawn(root: Path, tables: dict[str, list[dict[str, Any]]], findings: list[dict[str, Any]]) -> dict[str, Picture]:
    given = {name: [DAY | row for row in rows] for name, rows in tables.items()}
    warehouse = made_warehouse(root, {"bronze.source_file": [FILE], **given})
    return {p.name: p for p in pictures(warehouse, CLUSTER, findings)}


def shapes(picture: Picture, css: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(str(picture.svg))
    return [e for e in root.iter() if css in (e.get("class") or "").split()]


def look(minutes: float, name: str = "broker-a", **differs: Any) -> dict[str, Any]:
    base = {"ts": at(minutes), "broker_name": name, "broker_id": 0, "record_id": f"{name} {minutes}", "error": None}
    return base | {"boot_ts": BEGIN - dt.timedelta(days=1)} | differs


def test_nothing_recorded_has_no_pictures(tmp_path: Path) -> None:
    assert pictures(made_warehouse(tmp_path, {}), CLUSTER, []) == []


def test_a_picture_without_data_says_which_evidence_would_help(tmp_path: Path) -> None:
    for picture in drawn(tmp_path, {}, []).values():
        assert picture.svg == ""
        assert picture.why_empty


def test_a_broker_is_up_down_and_unknown(tmp_path: Path) -> None:
    looks = [look(m / 4) for m in range(40)]
    looks += [look(10 + m / 4, error="timeout", boot_ts=None) for m in range(8)]
    looks += [look(12 + m / 4, boot_ts=at(11.9)) for m in range(8)]
    looks += [look(40 + m / 4, boot_ts=at(11.9)) for m in range(8)]
    down = finding("d", **NO_PLACE | {"kind": "broker_down", "broker_name": "broker-a", "broker_id": 0})
    picture = drawn(tmp_path, {"silver.broker_runtime": looks}, [down])["brokers"]
    up = [(float(e.get("x", 0)), float(e.get("width", 0))) for e in shapes(picture, "p-up")[:-1]]
    (box,) = [e for e in shapes(picture, "p-down") if "p-hatched" not in (e.get("class") or "")]
    assert len(up) == 3
    assert up[0][0] + up[0][1] == float(box.get("x", 0))
    assert up[1][0] == float(box.get("x", 0)) + float(box.get("width", 0))
    assert up[2][0] > up[1][0] + up[1][1] + 300  # nobody asked between minute 14 and 40
    assert len(shapes(picture, "p-restart")) == 2  # one, and its legend
    assert 'href="#f-d"' in picture.svg


def lag_rows(group: str = "g", topic: str = "t", queues: int = 1, lag: int = 5) -> dict[str, list[dict[str, Any]]]:
    place = {"topic": topic, "broker_name": "b", "consumer_group": group}
    tables: dict[str, list[dict[str, Any]]] = {"silver.pull": [], "silver.offset_commit": []}
    for queue in range(queues):
        one = place | {"queue_id": queue}
        for minute in (*range(20), *range(40, 60)):
            when = at(minute + 0.5)
            ids = {"record_id": f"{group} {queue} {minute}"}
            pull = {"request_ts": when, "response_ts": when, "max_offset": 10 * minute + lag}
            tables["silver.pull"].append(one | ids | pull)
            commit = {"ts": when, "kind": "UPDATE", "commit_offset": 10 * minute}
            tables["silver.offset_commit"].append(one | ids | commit)
    status = {"consumer_group": group, "topic": topic, "from_ts": BEGIN, "to_ts": at(5), "lag": lag}
    return tables | {"gold.group_status": [status]}


def test_lag_is_the_sum_over_queues_and_a_gap_where_an_end_is_unknown(tmp_path: Path) -> None:
    picture = drawn(tmp_path, lag_rows(queues=3), [])["lag"]
    (line,) = shapes(picture, "p-line")
    assert "at most 15 messages" in "".join(line.itertext())
    assert (line.get("d") or "").count("M") == 2  # nobody pulled between minute 20 and 40
    assert picture.cut is None


def test_only_some_groups_are_drawn_and_the_rest_is_counted(tmp_path: Path) -> None:
    tables = lag_rows()
    status = tables["gold.group_status"][0]
    tables["gold.group_status"] += [status | {"consumer_group": f"g{i}", "lag": 1} for i in range(10_000)]
    picture = drawn(tmp_path, tables, [])["lag"]
    assert picture.cut
    assert picture.cut.startswith("10,000 other groups and topics not drawn")


def test_names_are_escaped_and_nothing_invisible_is_left(tmp_path: Path) -> None:
    name = HOSTILE.replace("\ud800", "")
    tables = lag_rows(name, name) | {"silver.broker_runtime": [look(m / 4, name) for m in range(9)]}
    found = finding("1", consumer_group=name, topic=name, summary=name)
    for picture in drawn(tmp_path, tables, [found]).values():
        if picture.svg:
            tags = {e.tag for e in ElementTree.fromstring(str(picture.svg)).iter()}
            assert tags <= {"svg", "path", "rect", "text", "title", "a"}
            assert not re.search(r"<script|<img|url\(", picture.svg)
            assert not set("\u202e\u2066\x00\x1b\u200b\ufeff") & set(picture.svg)
