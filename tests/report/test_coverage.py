"""What was judged of a night, what was not, and what would help most."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from made_warehouse import CLUSTER, made_warehouse
from mqreplay.decisions.replay_gap import missing_kinds, replay_gap
from mqreplay.evidence_advice import Need
from mqreplay.lake.warehouse import Warehouse
from mqreplay.report.coverage import DECISION_KINDS, Coverage, coverage, most_helpful, not_judged
from mqreplay.report.verdict import level, verdict

DAY = dt.date(2026, 11, 21)
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
    gaps = replay_gap(missing_kinds(DAY, lacks, {"slave_pull": (Need("pull_log"),)}), CLUSTER).to_dicts()
    rows = {"bronze.source_file": [COPIES], "gold.judgement": judgements, "gold.replay_gap": gaps}
    named = {name.replace("__", "."): each for name, each in tables.items()}
    found = coverage(made_warehouse(path, {**rows, **named}), CLUSTER)
    return {each.decision: each for each in found}


def test_every_kind_of_decision_is_in_it_though_nothing_was_replayed(tmp_path: Path) -> None:
    found = coverage(Warehouse(str(tmp_path)), CLUSTER)
    assert [each.decision for each in found] == [kind.decision for kind in DECISION_KINDS]
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
    assert verdict([], every) == (
        "Judged: 7 rebalances, without a problem; pulls, slave suggestions, answers to pulls, starts of queues,"
        " batches of pulls and group statuses could not be judged."
    )


def test_offset_changes_and_members_that_could_not_be_judged_are_named(tmp_path: Path) -> None:
    rebalances = [judged("gold.allocation", "agree", 4)]
    gaps = replay_gap(
        missing_kinds(DAY, ["consumer_offset", "heartbeats"], {"consumer_lost": (Need("heartbeats"),)}), CLUSTER
    ).to_dicts()
    owner = {"day": DAY, "consumer_group": "g", "topic": "t", "broker_name": "b", "queue_id": 1, "client_id": "c"}
    owner |= {"from_ts": dt.datetime(2026, 11, 21, tzinfo=dt.UTC), "source": "assignments"}
    owner["to_ts"] = owner["from_ts"]
    tables = {"gold.queue_owner": [owner], "gold.judgement": rebalances, "gold.replay_gap": gaps}
    every = coverage(made_warehouse(tmp_path, {"bronze.source_file": [COPIES], **tables}), CLUSTER)
    assert {"offset changes", "members"} <= {each.name for each in not_judged(every)}
    text = verdict([finding("info")], every)
    assert text.startswith("Judged: 4 rebalances and 1 queue owner, without a problem; 1 finding to know; ")
    assert "offset changes, members" in text
    assert text.endswith("could not be judged.")


def test_members_are_counted_once(tmp_path: Path) -> None:
    beat = {"day": DAY, "ts": dt.datetime(2026, 11, 21, tzinfo=dt.UTC), "kind": "HEART_BEAT", "client_id": "c"}
    beats = [beat, beat, beat | {"client_id": "d"}, beat | {"kind": "UNREGISTER_CLIENT", "client_id": "e"}]
    found = covered(tmp_path, [], silver__heartbeat=beats)["finding consumer_lost"]
    assert (found.state, found.judged, found.agreed) == ("judged", 2, None)


def test_the_sentence_counts_at_most_four_kinds() -> None:
    many = [Coverage(f"gold.{n}", f"thing {n}", f"things {n}", judged=n) for n in range(1, 7)]
    every = [*many, Coverage("gold.o", "offset change", "offset changes", missing=("consumer_offset",))]
    assert verdict([], every) == (
        "Judged: 6 things 6, 5 things 5, 4 things 4, 3 things 3 and 2 more kinds of decisions, without a problem; "
        "offset changes could not be judged."
    )


def test_a_finding_is_named_where_nothing_else_was_judged() -> None:
    nothing = [Coverage("gold.o", "offset change", "offset changes", missing=("consumer_offset",))]
    assert verdict([finding("info", "Group g was reset. More.")], nothing) == (
        "1 finding to know, the first: group g was reset; nothing else could be judged."
    )


def test_a_night_of_which_all_was_judged_is_quiet(tmp_path: Path) -> None:
    every = list(covered(tmp_path, [judged("gold.allocation", "agree", 7)]).values())
    assert (level([], every), verdict([], every)) == ("quiet", "A quiet night.")
    to_know = [finding("info")]
    assert (level(to_know, every), verdict(to_know, every)) == ("info", "A quiet night; 1 finding to know.")


def test_the_verdict_names_the_worst_cause_and_does_not_count_effects(tmp_path: Path) -> None:
    every = list(covered(tmp_path, [judged("gold.pull_route", "agree", 1)]).values())
    found = [finding("warning"), finding("critical", "The master died."), finding("critical", "No.", follows_from="x")]
    assert verdict(found, every) == "1 critical finding and 1 warning, the worst: the master died."
    assert level(found, every) == "critical"


def test_rows_of_tables_without_a_rule_are_counted(tmp_path: Path) -> None:
    status = {"day": DAY, "consumer_group": "g", "topic": "t", "from_ts": dt.datetime(2026, 11, 21, tzinfo=dt.UTC)}
    unknown = {"status": "undetermined", "reason": "the end of 1 queue is not known, so the lag is not known"}
    rows = [{**status, "status": "OK", "reason": "r"}, {**status, "topic": "u", **unknown}]
    found = covered(tmp_path, [], gold__group_status=rows)["gold.group_status"]
    assert (found.judged, found.agreed, found.differing, found.undetermined) == (1, None, None, 1)
    assert found.lacks == "the end of a queue is not known"
    assert found.helps[0].ways == "run `mqreplay record`, or import output of mqadmin topicStatus"


def test_what_lets_the_most_be_judged_comes_first(tmp_path: Path) -> None:
    every = list(covered(tmp_path, [], ["rebalance_log", "assignments", "heartbeats", "produce_log"]).values())
    judged = ["rebalances", "caches of queues", "steps of rebalances", "queue owners"]
    assert most_helpful(every)[0] == ("run `mqreplay record`", judged)
    assert most_helpful(every, 1) == most_helpful(every)[:1]
