"""The pictures as SVG: escaped, bounded, and honest about what is unknown."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from made_warehouse import CLUSTER, made_warehouse
from mqreplay.moment.instant import Recorded
from mqreplay.moment.night_states import night_states
from mqreplay.report.pictures import pictures
from mqreplay.report.pictures.drawing import Picture
from mqreplay.report.pictures.night import recorded_nights
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
    with_day = {name: [DAY | row for row in rows] for name, rows in tables.items()}
    warehouse = made_warehouse(root, {"bronze.source_file": [FILE], **with_day})
    night = recorded_nights(warehouse, CLUSTER)[-1]
    states = night_states(Recorded(warehouse, CLUSTER, night.first, night.last))
    return {p.name: p for p in pictures(warehouse, CLUSTER, findings, states=states)}


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


def step(minutes: float, name: str, judgement: str | None = "agree", **differs: Any) -> dict[str, Any]:
    base = {"outage_ts": at(10), "broker_name": "broker-a", "broker_id": 0, "step": name, "ts": at(minutes)}
    base |= {"happened": True, "judgement": judgement, "reason": "r", "before_ts": None, "expected_to": None}
    return base | {"expected_from": None, "step_id": f"{name} {minutes}"} | differs


def test_the_steps_of_a_failover_are_marked_on_its_own_time_axis(tmp_path: Path) -> None:
    allowed = {"expected_from": at(9.9), "expected_to": at(12)}
    steps = [step(10, "stopped_answering", None), step(10.1, "removed_by_name_server", **allowed)]
    steps += [step(10.5 + i / 10, "left_route", "differ" if i else "agree", **allowed) for i in range(3)]
    steps += [step(14, "first_slave_read", "undetermined"), step(15, "answers_again", None)]
    steps += [step(12, "left_route", "agree", happened=False, step_id="never seen")]
    down = place(finding("d"), kind="broker_down", broker_name="broker-a", broker_id=0, from_ts=at(10), to_ts=at(15))
    picture = drawn(tmp_path, {"gold.failover_step": steps}, [down])["failovers"]
    drawn_marks = {css: len(shapes(picture, css)) for css in ("p-on-time", "p-late", "p-not-judged", "p-broker")}
    assert drawn_marks == {"p-on-time": 3, "p-late": 3, "p-not-judged": 2, "p-broker": 3}  # each with its legend
    assert len(shapes(picture, "p-allowed")) == 3
    lanes = [float(e.get("x", 0)) for e in shapes(picture, "p-broker")[:2]]
    assert lanes[1] - lanes[0] > 600  # the outage, not the night, is as wide as the picture
    assert picture.links == ("d",)
    assert picture.cut is None


def test_failovers_with_late_steps_come_first(tmp_path: Path) -> None:
    steps = [
        step(10 + i, "removed_by_name_server", "differ" if i == 7 else "agree", outage_ts=at(10 + i), step_id=str(i))
        for i in range(8)
    ]
    steps += [step(10 + i, "stopped_answering", None, outage_ts=at(10 + i), step_id=f"s{i}") for i in range(8)]
    picture = drawn(tmp_path, {"gold.failover_step": steps}, [])["failovers"]
    assert len(shapes(picture, "p-late")) == 2
    assert picture.cut == "4 other failovers not drawn; those with late steps come first."


def lag_rows(group: str = "g", topic: str = "t", queues: int = 1, lag: int = 5) -> dict[str, list[dict[str, Any]]]:
    place = {"topic": topic, "broker_name": "b", "consumer_group": group}
    tables: dict[str, list[dict[str, Any]]] = {"silver.pull": [], "silver.offset_commit": []}
    for queue in range(queues):
        one = place | {"queue_id": queue}
        for minute in (*range(20), *range(40, 60)):
            when = at(minute + 0.5)
            ids = {"record_id": f"{group} {queue} {minute}"}
            pull = {"request_ts": when, "response_ts": when, "max_offset": 10 * minute + lag, "broker_id": 0}
            tables["silver.pull"].append(one | ids | pull)
            commit = {"ts": when, "kind": "UPDATE", "commit_offset": 10 * minute, "broker_id": 0}
            tables["silver.offset_commit"].append(one | ids | commit)
    status = {"consumer_group": group, "topic": topic, "from_ts": BEGIN, "to_ts": at(5), "lag": lag}
    return tables | {"gold.group_status": [status]}


def test_lag_is_the_sum_over_queues_and_a_gap_where_an_end_is_unknown(tmp_path: Path) -> None:
    picture = drawn(tmp_path, lag_rows(queues=3), [])["lag"]
    (line,) = shapes(picture, "p-line")
    assert "at most 15 messages" in "".join(line.itertext())
    assert (line.get("d") or "").count("M") == 2  # nobody pulled between minute 20 and 40
    assert picture.cut is None


@pytest.mark.parametrize("earlier_first", [True, False])
def test_of_offsets_of_one_instant_the_greatest_counts(tmp_path: Path, earlier_first: bool) -> None:
    tables = lag_rows()
    commits = tables["silver.offset_commit"]
    lower = [
        row | {"commit_offset": max(row["commit_offset"] - 3, 0), "record_id": f"{n}"} for n, row in enumerate(commits)
    ]
    tables["silver.offset_commit"] = [*lower, *commits] if earlier_first else [*commits, *lower]
    picture = drawn(tmp_path / "both", tables, [])["lag"]
    assert picture == drawn(tmp_path / "greatest", lag_rows(), [])["lag"]


def test_only_some_groups_are_drawn_and_the_rest_is_counted(tmp_path: Path) -> None:
    tables = lag_rows()
    status = tables["gold.group_status"][0]
    tables["gold.group_status"] += [status | {"consumer_group": f"g{i}", "lag": 1} for i in range(10_000)]
    picture = drawn(tmp_path, tables, [])["lag"]
    assert picture.cut
    assert picture.cut.startswith("10,000 other groups and topics not drawn")


Q = {"consumer_group": "g", "topic": "t", "broker_name": "b"}


def place(finding_: dict[str, Any], **where: Any) -> dict[str, Any]:
    return finding_ | NO_PLACE | where


def offset_rows(queue: int = 0, group: str = "g", to: int = 40) -> dict[str, list[dict[str, Any]]]:
    """Offsets of a queue that go up by 1 a minute, and back to 5 at minute 30."""
    one = Q | {"queue_id": queue, "consumer_group": group, "broker_id": 0}
    offsets = [minute if minute < 30 else minute - 25 for minute in range(to)]
    changes = [
        one | {"from_ts": at(m - 1), "to_ts": at(m), "previous_offset": offsets[m - 1], "new_offset": offsets[m]}
        for m in range(1, to)
    ]
    back = {"from_ts": at(29), "to_ts": at(30), "previous_offset": 29, "new_offset": 5, "kind": "rewind"}
    return {"silver.offset_change": changes, "gold.offset_continuity": [one | back | {"cause": "reset"}]}


def test_a_rewind_is_marked_on_the_curve_and_leads_to_its_finding(tmp_path: Path) -> None:
    found = place(finding("r"), kind="offset_rewind", consumer_group="g", topic="t", from_ts=at(29), to_ts=at(30))
    picture = drawn(tmp_path, offset_rows(), [found])["offsets"]
    (mark,) = [e for e in shapes(picture, "p-break") if e.tag.endswith("path")]
    assert (mark.get("d") or "").startswith("M-6 -5H6L0 6")  # it points down
    assert "29 → 5" in "".join(mark.itertext())
    assert str(picture.svg).count('href="#f-r"') == 2  # the finding's own mark and the break
    assert picture.links == ("r",)
    assert picture.cut is None


def test_queues_that_share_a_fate_are_drawn_twice_and_the_rest_is_counted(tmp_path: Path) -> None:
    tables: dict[str, list[dict[str, Any]]] = {"silver.offset_change": [], "gold.offset_continuity": []}
    for queue in range(9):
        for name, rows in offset_rows(queue).items():
            tables[name] += rows
    picture = drawn(tmp_path, tables, [])["offsets"]
    assert len([e for e in shapes(picture, "p-line") if e.tag.endswith("path")]) == 2
    assert picture.cut == "7 other queues with breaks not drawn."
    assert picture.sql


def owner(client: str, queue: int, begin: float, end: float, **differs: Any) -> dict[str, Any]:
    return Q | {"client_id": client, "queue_id": queue, "from_ts": at(begin), "to_ts": at(end)} | differs


def test_gaps_and_overlaps_of_owners_are_marked(tmp_path: Path) -> None:
    rows = [owner("x", 0, 0, 10), owner("y", 0, 20, 30), owner("x", 1, 0, 30), owner("y", 1, 5, 6)]
    picture = drawn(tmp_path, {"gold.queue_owner": rows}, [])["owners"]
    (gap,) = [e for e in shapes(picture, "p-down") if e.find("{*}title") is not None]
    assert "nobody, 02:10:00 – 02:20:00" in "".join(gap.itertext())
    (double,) = [e for e in shapes(picture, "p-double") if e.find("{*}title") is not None]
    assert "held at once by x, y" in "".join(double.itertext())


def seen(minute: float, queues: list[int], **differs: Any) -> dict[str, Any]:
    listed = [{"broker_name": "b", "queue_id": queue} for queue in queues]
    base = {"consumer_group": "g", "topic": "t", "client_id": "x", "ts": at(minute), "mq_all": listed}
    return base | {"mq_divided": [], "record_id": f"seen {minute}"} | differs


def nobody(picture: Picture) -> list[str]:
    boxes = [e for e in shapes(picture, "p-down") if e.find("{*}title") is not None]
    return ["".join(box.itertext()) for box in boxes]


def test_queues_that_nobody_ever_held_are_drawn_as_unowned(tmp_path: Path) -> None:
    tables = {
        "gold.queue_owner": [owner("x", 0, 0, 30)],
        "silver.rebalance": [seen(1, [0, 1, 2]), seen(12, [0, 1, 2, 3]), seen(13, [7], consumer_group="h")],
    }
    orphan = place(finding("o"), kind="orphan_queue", consumer_group="g", topic="t", from_ts=at(10), to_ts=at(20))
    picture = drawn(tmp_path / "found", tables, [orphan])["owners"]
    assert nobody(picture) == [
        "b / 1: nobody, 02:10:00 – 02:20:00, 10 min",
        "b / 2: nobody, 02:10:00 – 02:20:00, 10 min",
        "b / 3: nobody, 02:12:00 – 02:20:00, 8 min",
    ]
    one = orphan | {"broker_name": "b", "queue_id": 2}
    assert nobody(drawn(tmp_path / "one", tables, [one])["owners"]) == ["b / 2: nobody, 02:10:00 – 02:20:00, 10 min"]
    # Without a finding, an owner may just not be recorded.
    assert nobody(drawn(tmp_path / "none", tables, [])["owners"]) == []


def test_a_topic_without_any_owner_is_drawn_with_the_queues_of_its_route(tmp_path: Path) -> None:
    data = [{"broker_name": "b", "read_queue_nums": 2, "write_queue_nums": 2, "perm": 6, "topic_sys_flag": 0}]
    route = {"topic": "t", "client_id": None, "namesrv_addr": "n", "ts": at(1), "previous_ts": None}
    route |= {"queue_datas": data, "queue_mappings": None, "record_id": "r"}
    orphan = place(finding("o"), kind="orphan_queue", consumer_group="g", topic="t", from_ts=at(10), to_ts=at(20))
    picture = drawn(tmp_path, {"silver.route": [route]}, [orphan])["owners"]
    assert [text.split(":")[0] for text in nobody(picture)] == ["b / 0", "b / 1"]


def test_an_owner_beyond_the_night_is_drawn_to_its_end(tmp_path: Path) -> None:
    picture = drawn(tmp_path, {"gold.queue_owner": [owner("x", 0, 50, 61)]}, [])["owners"]
    bar = next(e for e in shapes(picture, "p-bar") if e.find("{*}title") is not None)
    assert float(bar.get("x", 0)) + float(bar.get("width", 0)) == 940


def test_a_queue_that_comes_late_and_a_group_that_is_off_have_no_gap(tmp_path: Path) -> None:
    rows = [owner("x", 0, 0, 10), owner("x", 0, 20, 30), owner("x", 1, 20, 25)]
    picture = drawn(tmp_path, {"gold.queue_owner": rows}, [])["owners"]
    assert [e for e in shapes(picture, "p-down") if e.find("{*}title") is not None] == []


def test_only_some_groups_and_queues_of_owners_are_drawn(tmp_path: Path) -> None:
    rows = [owner("x", q, 0, 10, consumer_group=f"g{g}") for g in range(300) for q in range(12)]
    found = place(finding("o"), kind="orphan_queue", consumer_group="g222", topic="t")
    picture = drawn(tmp_path, {"gold.queue_owner": rows}, [found])["owners"]
    assert "g222" in str(picture.svg)
    assert picture.cut == ("296 other groups and topics and 16 other queues not drawn; those with findings come first.")


def rebalance(client: str, minute: float, members: list[str], queues: list[int], **differs: Any) -> dict[str, Any]:
    held = [{"broker_name": "b", "queue_id": q} for q in queues]
    base = {"consumer_group": "g", "topic": "t", "client_id": client, "rebalance_ts": at(minute), "actual": held}
    return base | {"cid_all": members, "judgement": "agree", "record_id": f"{client} {minute}"} | differs


def test_queues_got_and_released_are_shown_for_each_rebalance(tmp_path: Path) -> None:
    rows = [
        rebalance("x", 1, ["x"], [0, 1, 2, 3]),
        rebalance("x", 1.3, ["x"], [0, 1, 2, 3]),
        rebalance("y", 5, ["x", "y"], [2, 3], judgement="differ"),
        rebalance("x", 5.2, ["x", "y"], [0, 1]),
        rebalance("x", 9, ["x"], [0, 1, 2, 3]),
    ]
    picture = drawn(tmp_path, {"gold.allocation": rows}, [])["allocation"]
    kept, got, lost = (
        len([e for e in shapes(picture, css) if e.find("{*}title") is not None])
        for css in ("p-kept", "p-got", "p-lost")
    )
    assert (kept, got, lost) == (4 + 2 + 2, 2 + 2, 2 + 2)
    assert len(shapes(picture, "p-differ")) == 1
    assert "y left the group" in str(picture.svg)


def pull(minute: float, from_slave: bool, diff: int | None = 2**20, **differs: Any) -> dict[str, dict[str, Any]]:
    one = Q | {"queue_id": 0, "client_id": "x", "request_ts": at(minute), "record_id": f"{minute}"}
    route = one | {"from_slave": from_slave, "cause": "suggested" if from_slave else None}
    read = one | {"diff_max": diff, "diff_min": diff, "memory": 2**24, "broker_id": int(from_slave)}
    return {"gold.pull_route": route | differs, "gold.slave_suggestion": read}


def test_pulls_from_slaves_and_the_distance_are_drawn_against_the_memory(tmp_path: Path) -> None:
    pulls = [pull(m / 2, 20 <= m < 30, 2**26 if 20 <= m < 30 else 2**20) for m in range(100)]
    tables = {name: [each[name] for each in pulls] for name in ("gold.pull_route", "gold.slave_suggestion")}
    found = place(finding("s"), kind="slave_pull", broker_name="b", from_ts=at(10), to_ts=at(15))
    picture = drawn(tmp_path, tables, [found])["slaves"]
    assert "10 from slaves" in str(picture.svg)
    (limit,) = shapes(picture, "p-limit")
    level = float((limit.get("d") or "").split()[1].split("H")[0])
    line = next(e for e in shapes(picture, "p-line") if e.tag.endswith("path"))
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", line.get("d") or "")]
    assert min(heights) < level < max(heights)  # the readers were beyond the memory for a while
    assert "64 MiB behind" in "".join(line.itertext())
    assert picture.links == ("s",)


def test_findings_over_the_night_are_all_marked_or_counted(tmp_path: Path) -> None:
    found = [finding(str(i), kind="k", from_ts=at(1), to_ts=at(2)) for i in range(9)] + [finding("x", kind="c")]
    picture = drawn(tmp_path, {}, found)["when"]
    assert len(picture.links) == 5
    assert picture.cut == "5 findings not marked; the list below has them."


def test_nights_lie_side_by_side_and_a_box_filters(tmp_path: Path) -> None:
    before = FILE | {"path": "b"} | {k: v - dt.timedelta(days=1) for k, v in SPAN.items()}
    warehouse = made_warehouse(tmp_path, {"bronze.source_file": [FILE, before]})
    found = [finding("1", kind="k&="), finding("2", kind="k&=", from_ts=at(-24 * 60)), finding("3", kind="c")]
    picture = next(p for p in pictures(warehouse, CLUSTER, found) if p.name == "nights")
    assert len(shapes(picture, "p-cell")) == 3
    assert len(shapes(picture, "p-none")) == 1
    assert 'href="#kind=k%26%3D&amp;from=2026-11-20T02:00:00&amp;to=2026-11-20T03:00:00"' in str(picture.svg)


def test_names_are_escaped_and_nothing_invisible_is_left(tmp_path: Path) -> None:
    name = HOSTILE.replace("\ud800", "")
    where = {"consumer_group": name, "topic": name, "broker_name": name, "client_id": name}
    tables = lag_rows(name, name) | {"silver.broker_runtime": [look(m / 4, name) for m in range(9)]}
    tables["gold.queue_owner"] = [owner(name, 0, 0, 10, **where)]
    tables["gold.allocation"] = [rebalance(name, 1, [name], [0], consumer_group=name, topic=name)]
    tables["gold.pull_route"] = [pull(1, True)["gold.pull_route"] | where]
    del where["client_id"]
    for table, rows in offset_rows().items():
        tables[table] = [row | where | ({"cause": name} if "cause" in row else {}) for row in rows]
    found = finding("1", consumer_group=name, topic=name, summary=name)
    for picture in drawn(tmp_path, tables, [found]).values():
        if picture.svg:
            tags = {e.tag for e in ElementTree.fromstring(str(picture.svg)).iter()}
            assert tags <= {"svg", "path", "rect", "text", "title", "a", "g"}
            assert not re.search(r"<script|<img|url\(", picture.svg)
            assert not set("\u202e\u2066\x00\x1b\u200b\ufeff") & set(picture.svg)
