"""What was judged of a night, what was not, and what would help most."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from made_warehouse import CLUSTER, made_warehouse
from mqreplay.decisions.registry import DECISIONS
from mqreplay.decisions.replay_gap import missing_kinds, replay_gap
from mqreplay.decode.recording.advice import Need
from mqreplay.lake.warehouse import Warehouse
from mqreplay.language.language import language
from mqreplay.report.coverage import Coverage, coverage, most_helpful, not_judged
from mqreplay.report.verdict import NightTime, level, limits, verdict, verdict_in

DAY = dt.date(2026, 11, 21)
DECISION_NEEDS = {name: decision.needs for name, decision in DECISIONS.items()}
NO_MEMORY = "the broker's memory or ratio is not known"
COPIES = {
    "kind": "consumer_offset",
    "path": "s",
    "status": "read",
    "rows_in": 1,
    "rows_out": 1,
    "rows_quarantined": 0,
    "rows_duplicate": 0,
}


def judged(decision: str, judgement: str, decisions: int, reason: str = "r") -> dict[str, Any]:
    return {"day": DAY, "decision": decision, "judgement": judgement, "decisions": decisions, "reason": reason}


def finding(severity: str, summary: str = "S stood still.", follows_from: str | None = None) -> dict[str, Any]:
    return {"severity": severity, "summary": summary, "follows_from": follows_from, "from_ts": None}


def covered(
    path: Path, judgements: Sequence[dict[str, Any]], lacks: Sequence[str] = (), **tables: Sequence[dict[str, Any]]
) -> dict[str, Coverage]:
    gaps = replay_gap(
        missing_kinds(DAY, lacks, DECISION_NEEDS | {"finding slave_pull": (Need("pull_log"),)}), CLUSTER
    ).to_dicts()
    rows = {"bronze.source_file": [COPIES], "gold.judgement": judgements, "gold.replay_gap": gaps}
    named = {name.replace("__", "."): each for name, each in tables.items()}
    found = coverage(made_warehouse(path, {**rows, **named}), CLUSTER)
    return {each.decision: each for each in found}


def test_every_kind_of_decision_is_in_it_though_nothing_was_replayed(tmp_path: Path) -> None:
    found = coverage(Warehouse(str(tmp_path)), CLUSTER)
    assert [each.decision for each in found] == [decision.name for decision in DECISIONS.values()]
    assert verdict([], found) == "Nothing could be judged."
    assert level([], found) == "unknown"


def test_judgements_are_counted_and_the_most_frequent_reason_comes_first(tmp_path: Path) -> None:
    rows = [
        judged("gold.slave_suggestion", "agree", 7),
        judged("gold.slave_suggestion", "differ", 2),
        judged("gold.slave_suggestion", "undetermined", 1, "no reason of ours"),
        judged("gold.slave_suggestion", "undetermined", 2_259, NO_MEMORY),
    ]
    found = covered(tmp_path, rows)["gold.slave_suggestion"]
    assert (found.judged, found.agreed, found.differing, found.undetermined) == (9, 7, 2, 2_260)
    assert found.reasons == ((NO_MEMORY, 2_259), ("no reason of ours", 1))
    assert found.state == "partly judged"
    assert found.lacks == "the broker's physical memory is not known; no reason of ours"
    assert found.helps[0].ways == "add physical_memory_bytes to brokers.json"


def test_missing_evidence_is_not_a_quiet_night(tmp_path: Path) -> None:
    found = covered(tmp_path, [judged("gold.allocation", "agree", 7)], ["pull_log"])
    pulls = found["gold.pull_route"]
    assert (pulls.state, pulls.missing, pulls.findings) == ("not judged", ("pull_log",), ("slave_pull",))
    assert pulls.lacks == "no record of pulls"
    assert pulls.helps[0].ways.startswith("capture the brokers' ports with tcpdump")
    every = list(found.values())
    assert [each.name for each in not_judged(every)] == [
        *("pulls", "slave suggestions", "answers to pulls", "starts of queues", "batches of pulls", "group statuses")
    ]
    assert level([], every) == "unknown"
    assert verdict([], every) == "No problem found in what could be judged: 7 rebalances."
    assert limits(every) == (
        "This recording cannot show: pulls, slave suggestions, answers to pulls, starts of queues"
        " and 2 more kinds of decisions."
    )


def test_a_night_without_packets_is_free_of_problems_and_says_what_it_cannot_show(tmp_path: Path) -> None:
    """Of an unrecorded kind of file that `mqreplay record` has, nothing is said to be well."""
    sends = [Coverage("gold.s", "try of a send", "tries of sends", missing=("sends",))]
    night = NightTime(dt.datetime(2026, 11, 21, 2), dt.datetime(2026, 11, 21, 10, 2))
    pulls = [Coverage("gold.p", "pull", "pulls", judged=7, undetermined=2)]
    assert (level([], [*pulls, *sends]), verdict([], [*pulls, *sends], night)) == (
        "quiet",
        "No problem found in 8 h 2 min: 7 pulls judged.",
    )
    assert limits([*pulls, *sends]) == (
        "This recording cannot show: tries of sends; 2 other decisions are undetermined."
    )
    ends = Coverage("gold.g", "group status", "group statuses", missing=("topic_stats",))
    assert (level([], [*pulls, ends]), verdict([], [*pulls, ends], night)) == (
        "unknown",
        "No problem found in what could be judged: 7 pulls in 8 h 2 min.",
    )


def test_the_verdict_says_when_to_the_nearest_second_and_in_both_languages() -> None:
    night = NightTime(dt.datetime(2026, 11, 21, 2), dt.datetime(2026, 11, 21, 10, 2))
    down = finding("critical", "The master of broker-a did not answer for 88 s; 132 pulls went to a slave. More.")
    down |= {"from_ts": dt.datetime(2026, 11, 21, 2, 51, 30, 998_000), "to_ts": dt.datetime(2026, 11, 21, 2, 52, 59)}
    down |= {"kind": "broker_down", "values": None}
    late = down | {"from_ts": down["to_ts"]}
    every = [Coverage("gold.p", "pull", "pulls", judged=7)]
    text = verdict([late, down, finding("warning")], every, night)
    assert text == "2 critical: the master of broker-a did not answer for 88 s from 02:51:31; 1 warning."
    assert verdict([late], every) == (
        "1 critical: the master of broker-a did not answer for 88 s at 2026-11-21 02:52:59."
    )
    stored = [{**row, **{name: str(row[name]) for name in ("from_ts", "to_ts")}} for row in (down, late)]
    assert verdict([*stored, finding("warning")], every, night) == text
    zh = language("zh")
    chinese = verdict_in(text, [late, down], zh)
    assert chinese.startswith("2 个严重问题：")
    assert chinese.endswith("（02:51:31 起）；1 个警告。")
    assert verdict_in("2 critical: unknown here; 1 warning.", [], zh) == "2 个严重问题：unknown here；1 个警告。"
    assert zh.text("No problem found in 8 h 2 min: 7 pulls judged.") == "8 小时 2 分钟内没有发现问题：判断了拉取 7。"


def test_offset_changes_and_members_that_could_not_be_judged_are_named(tmp_path: Path) -> None:
    rebalances = [judged("gold.allocation", "agree", 4)]
    gaps = replay_gap(
        missing_kinds(
            DAY, ["consumer_offset", "heartbeats"], DECISION_NEEDS | {"finding consumer_lost": (Need("heartbeats"),)}
        ),
        CLUSTER,
    ).to_dicts()
    owner = {"day": DAY, "consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 1, "client_id": "c"}
    owner |= {"from_ts": dt.datetime(2026, 11, 21, tzinfo=dt.UTC), "source": "assignments"}
    owner["to_ts"] = owner["from_ts"]
    tables = {"gold.queue_owner": [owner], "gold.judgement": rebalances, "gold.replay_gap": gaps}
    every = coverage(made_warehouse(tmp_path, {"bronze.source_file": [COPIES], **tables}), CLUSTER)
    assert {"offset changes", "members"} <= {each.name for each in not_judged(every)}
    assert verdict([finding("info")], every) == (
        "No problem found in what could be judged: 4 rebalances and 1 queue owner; 1 finding to know."
    )


def test_members_are_counted_once(tmp_path: Path) -> None:
    beat = {"day": DAY, "ts": dt.datetime(2026, 11, 21, tzinfo=dt.UTC), "kind": "HEART_BEAT", "client_id": "c"}
    beats = [beat, beat, beat | {"client_id": "d"}, beat | {"kind": "UNREGISTER_CLIENT", "client_id": "e"}]
    found = covered(tmp_path, [], silver__heartbeat=beats)["finding consumer_lost"]
    assert (found.state, found.judged, found.agreed) == ("judged", 2, None)


def test_the_sentence_counts_at_most_four_kinds() -> None:
    many = [Coverage(f"gold.{n}", f"thing {n}", f"things {n}", judged=n) for n in range(1, 7)]
    every = [*many, Coverage("gold.o", "offset change", "offset changes", missing=("consumer_offset",))]
    assert verdict([], every) == (
        "No problem found in what could be judged: 6 things 6, 5 things 5, 4 things 4, 3 things 3"
        " and 2 more kinds of decisions."
    )
    assert limits(every) == "This recording cannot show: offset changes."


def test_a_finding_is_named_where_nothing_else_was_judged() -> None:
    nothing = [Coverage("gold.o", "offset change", "offset changes", missing=("consumer_offset",))]
    assert verdict([finding("info", "Group g was reset. More.")], nothing) == (
        "1 finding to know, the first: group g was reset."
    )


def test_a_night_of_which_all_was_judged_is_quiet(tmp_path: Path) -> None:
    every = list(covered(tmp_path, [judged("gold.allocation", "agree", 7)]).values())
    assert (level([], every), verdict([], every)) == (
        "quiet",
        "No problem found: 7 rebalances judged.",
    )
    to_know = [finding("info")]
    assert (level(to_know, every), verdict(to_know, every)) == (
        "info",
        "No problem found: 7 rebalances judged; 1 finding to know.",
    )


def test_the_verdict_names_the_worst_cause_and_does_not_count_effects(tmp_path: Path) -> None:
    every = list(covered(tmp_path, [judged("gold.pull_route", "agree", 1)]).values())
    found = [finding("warning"), finding("critical", "The master died."), finding("critical", "No.", follows_from="x")]
    assert verdict(found, every) == "1 critical: the master died; 1 warning."
    assert level(found, every) == "critical"


def test_rows_of_tables_without_a_rule_are_counted(tmp_path: Path) -> None:
    status = {"day": DAY, "consumer_group": "g", "topic": "t", "from_ts": dt.datetime(2026, 11, 21, tzinfo=dt.UTC)}
    unknown = {"status": "undetermined", "reason": "the end of 1 queue is not known, so the lag is not known"}
    rows = [{**status, "status": "OK", "reason": "r"}, {**status, "topic": "u", **unknown}]
    found = covered(tmp_path, [], gold__group_status=rows)["gold.group_status"]
    assert (found.judged, found.agreed, found.differing, found.undetermined) == (1, None, None, 1)
    assert found.lacks == "the end of a queue is not known"
    assert found.helps[0].ways == "run `mqreplay record`, or import output of mqadmin topicStatus"


def test_a_capture_in_the_recording_is_named_with_its_command(tmp_path: Path) -> None:
    recording = tmp_path / "a night"
    recording.mkdir()
    file = {**COPIES, "recording": str(recording)}
    tables = {"bronze__source_file": [file]}
    before = covered(tmp_path / "a", [], ["pull_log"], **tables)["gold.pull_route"].helps[0].best
    assert before.startswith("capture the brokers' ports")
    (recording / "wire.pcap.gz").touch()
    after = covered(tmp_path / "b", [], ["pull_log"], **tables)["gold.pull_route"].helps[0].best
    assert after == (
        f"run `mqreplay import '{recording}/wire.pcap.gz' --out '{recording}-packets'`,"
        " and give both folders to `mqreplay nightly`"
    )
    (tmp_path / "a night-packets").mkdir()
    assert covered(tmp_path / "c", [], ["pull_log"], **tables)["gold.pull_route"].helps[0].best == before


def test_what_lets_the_most_be_judged_comes_first(tmp_path: Path) -> None:
    every = list(covered(tmp_path, [], ["rebalance_log", "assignments", "heartbeats", "produce_log"]).values())
    judged = ["rebalances", "caches of queues", "steps of rebalances", "queue owners"]
    assert most_helpful(every)[0] == ("run `mqreplay record`", judged)
    assert most_helpful(every, 1) == most_helpful(every)[:1]
