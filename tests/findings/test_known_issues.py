"""Known faults of RocketMQ: the data file, and which of them can explain a finding of which version."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from mqreplay.core.version import version_key
from mqreplay.evidence.recorded_versions import RecordedVersions, broker_versions, client_versions, pop_groups
from mqreplay.findings import known_issues as module
from mqreplay.findings.known_issues import (
    COMPONENTS,
    ISSUE_SCHEMA,
    FaultyReleases,
    KnownIssue,
    KnownIssues,
    issues_of_findings,
    known_issues,
)
from mqreplay.findings.registry import SHIPPED
from mqreplay.lake.contract import load_contracts
from silver_moments import at
from silver_rows import rows

KNOWN = known_issues()
by_issue = pytest.mark.parametrize("issue", KNOWN.issues, ids=lambda issue: str(issue.number))


def texts_of_findings() -> list[str]:
    """Return the text files of all kinds: what can be part of a summary."""
    paths = Path(module.__file__).parent.glob("*.toml")
    return [path.read_text(encoding="utf-8") for path in paths if path.stem != "known_issues"]


TEXTS = texts_of_findings()


@by_issue
def test_a_record_is_whole(issue: KnownIssue) -> None:
    assert issue.number > 0
    assert issue.component in COMPONENTS
    assert issue.broker_role in (None, "slave")
    assert issue.message_model in (None, "CLUSTERING", "BROADCASTING")
    assert {each.kind for each in issue.findings} <= SHIPPED.keys()
    assert issue.findings
    assert issue.title[0].islower(), "the title is part of a sentence"
    assert issue.title[-1] != "."
    assert issue.advice.endswith(".")
    assert issue.number not in issue.related
    of_brokers = issue.settings or issue.unless or issue.broker_role
    assert not of_brokers or issue.component == "broker"
    assert issue.message_model is None or issue.component == "client"


@by_issue
def test_its_releases_are_in_order(issue: KnownIssue) -> None:
    ends = [end for each in issue.faulty for end in (each.first, each.mended) if end is not None]
    assert ends == sorted(ends, key=version_key)
    assert len(set(ends)) == len(ends)
    assert all(each.mended for each in issue.faulty[:-1]), "only the last range may be open"
    assert version_key(ends[-1]) <= version_key(KNOWN.checked_until)


@by_issue
def test_its_texts_are_those_of_summaries(issue: KnownIssue) -> None:
    for each in issue.findings:
        for phrase in each.summary:
            # "(code 17)" is made of "(code {response_code})", "The master of" of "[...The master|Slave {broker_id}] of"
            parts = ["(code {response_code})"] if phrase.startswith("(code ") else [phrase.removesuffix(" of")]
            assert all(any(part in text for text in TEXTS) for part in parts), phrase


def test_issues_are_named_once_and_in_order() -> None:
    numbers = [issue.number for issue in KNOWN.issues]
    assert numbers == sorted(set(numbers))
    assert not {other for issue in KNOWN.issues for other in issue.related} & set(numbers)


def test_the_rows_are_those_of_the_contract() -> None:
    columns = [column.name for column in load_contracts()["gold.known_issue"].columns]
    assert columns == ["cluster", *ISSUE_SCHEMA]


@by_issue
def test_only_its_releases_have_the_fault(issue: KnownIssue) -> None:
    for releases in issue.faulty:
        fault = issue.fault_of(releases.first, KNOWN.checked_until)
        assert fault is not None
        assert fault.mended_in == releases.mended
        snapshot = issue.fault_of(f"V{releases.first.replace('.', '_')}", KNOWN.checked_until)
        assert snapshot is not None, "as MQVersion names it"
        if releases.mended is not None:
            after = issue.fault_of(releases.mended, KNOWN.checked_until)
            assert after is None
    assert issue.fault_of("3.5.8", KNOWN.checked_until) is None
    assert issue.fault_of("99.0.0", KNOWN.checked_until) is None, "nobody checked it"
    assert issue.fault_of("no version", KNOWN.checked_until) is None


@pytest.mark.parametrize(
    ("number", "version", "mended_in"),
    [
        (4215, "4.9.3", "4.9.4"),
        (4215, "4.9.4", None),
        (4215, "4.9.7", None),
        (4215, "5.0.0", None),
        (9249, "4.9.8", None),  # 4.x went back to the message itself
        (9249, "5.3.2", "5.3.3"),
        (9249, "5.3.3", None),
        (9984, "5.3.1", None),
        (9984, "5.4.0", "5.5.0"),
        (9403, "5.3.3", "5.3.4"),
        (9717, "5.1.4", None),  # had no jRaft controller
        (9717, "5.3.3", "5.3.4"),
        (7740, "4.9.7", "4.9.8"),
        (7740, "4.9.8", None),
        (7740, "5.1.4", "5.2.0"),
    ],
)
def test_versions_with_and_without_the_mend(number: int, version: str, mended_in: str | None) -> None:
    (issue,) = [issue for issue in KNOWN.issues if issue.number == number]
    fault = issue.fault_of(version, KNOWN.checked_until)
    assert (fault and fault.mended_in) == mended_in


DAY = dt.date(2026, 11, 21)
# As the sample recordings have them.
REFUSING_SLAVE = {
    "finding_id": "refusing",
    "kind": "slave_pull",
    "broker_name": "rmq-south",
    "broker_id": 1,
    "topic": "meter-readings",
    "summary": "Slave 1 of rmq-south refused 351 pulls that its master had sent to it: reads from it are disabled.",
}
READ_FROM_SLAVE = {
    "finding_id": "read",
    "kind": "duplicate_delivery",
    "broker_name": "broker-a",
    "consumer_group": "ship-circle-group",
    "topic": "ship-topic",
    "summary": "Group ship-circle-group received 3 messages of ship-topic more than once: reads went from the master to"
    " a slave and back.",
}
BEYOND_MAX = {
    "finding_id": "beyond",
    "kind": "offset_beyond_max",
    "consumer_group": "reset-group",
    "topic": "pay-topic",
    "summary": "Group reset-group on pay-topic: the offset of 1 queue was set to 999999, past the end of the queue at"
    " 178, by a change from outside: no client committed it.",
}
LACKING_SLAVE = {
    "finding_id": "lacking",
    "kind": "slave_config_drift",
    "broker_name": "b",
    "broker_id": 1,
    "summary": "Slave 1 of b had another configuration than its master for 300 s: it lacked topic orders.",
}
NO_PULLS = {
    "finding_id": "pulls",
    "kind": "pull_expired",
    "consumer_group": "g",
    "client_id": "10.0.0.1@7",
    "summary": "",
}
LAG = {"finding_id": "lag", "kind": "lag_grows", "consumer_group": "g", "summary": "Group g did not advance."}


def found(*findings: dict) -> pl.DataFrame:
    base = {"day": DAY, "severity": "warning", "from_ts": at(100), "confidence": 1.0, "advice": ""}
    return rows("gold.finding", base, list(findings))


def broker(version: str | None, name: str = "b", broker_id: int = 0, ts: float = 50, **settings: str) -> dict:
    properties = list(settings.items())
    place = {"broker_name": name, "broker_id": broker_id, "ts": at(ts)}
    return place | {"rocketmq_version": version, "properties": properties}


def versions_of(
    *brokers: dict,
    clients: pl.DataFrame | None = None,
    polled: list[dict] | None = None,
    pop: frozenset[str] = frozenset(),
) -> RecordedVersions:
    runtime = rows("silver.broker_runtime", {"ts": at(60)}, polled or [])
    none = rows("silver.consumer_connection", {}, [])
    described = broker_versions(rows("silver.broker", {}, list(brokers)), runtime)
    return RecordedVersions(described, client_versions(none if clients is None else clients), pop)


def connected(*clients: tuple[str, str, int], group: str = "g", model: str = "CLUSTERING") -> pl.DataFrame:
    each = [{"client_id": c, "client_addr": "a", "language": language, "version": n} for c, language, n in clients]
    return rows(
        "silver.consumer_connection", {"consumer_group": group, "message_model": model}, [{"connections": each}]
    )


def named(findings: pl.DataFrame, versions: RecordedVersions) -> list[tuple]:
    made = issues_of_findings(findings, versions, KNOWN)
    assert dict(made.schema) == ISSUE_SCHEMA
    return [(r["finding_id"], r["issue"], r["versions"], r["mended_in"]) for r in made.to_dicts()]


def test_the_findings_of_the_sample_and_their_issues() -> None:
    orders = versions_of(broker("4.9.7", "broker-a"), broker("4.9.7", "broker-b"))
    assert named(found(READ_FROM_SLAVE, BEYOND_MAX), orders) == [("read", 1094, ["4.9.7"], None)]
    bulk = versions_of(broker("5.3.3", "rmq-south", 1, slaveReadEnable="false"))
    assert named(found(REFUSING_SLAVE), bulk) == [("refusing", 8322, ["5.3.3"], None)]


def test_a_row_says_what_goes_wrong_and_where_to_read_of_it() -> None:
    (row,) = issues_of_findings(found(BEYOND_MAX), versions_of(broker("4.9.3")), KNOWN).to_dicts()
    assert row["url"] == "https://github.com/apache/rocketmq/issues/4215"
    assert row["title"].startswith("a pull past the end of a queue")
    assert (row["component"], row["versions"], row["mended_in"]) == ("broker", ["4.9.3"], "4.9.4")
    assert row["day"] == DAY
    assert "resetOffsetByTime" in row["advice"]


def test_a_version_with_the_mend_or_without_a_version_has_no_issue() -> None:
    assert named(found(BEYOND_MAX), versions_of(broker("4.9.4"))) == []
    assert named(found(BEYOND_MAX), versions_of(broker(None))) == []
    assert named(found(BEYOND_MAX), versions_of()) == []


def test_a_polled_version_counts_where_the_description_has_none() -> None:
    polled = [{"broker_name": name, "broker_id": 0, "broker_version_desc": "V4_9_3"} for name in ("b", "c")]
    expected = [("beyond", 4215, ["4.9.3"], "4.9.4")]
    assert named(found(BEYOND_MAX), versions_of(broker(None), polled=polled)) == expected
    assert named(found(BEYOND_MAX), versions_of(polled=polled)) == expected
    assert named(found(BEYOND_MAX), versions_of(broker("4.9.4"), polled=polled[:1])) == []


def test_the_version_at_the_begin_of_the_finding_counts() -> None:
    upgraded = versions_of(broker("4.9.3", ts=10), broker("4.9.7", ts=90))
    assert named(found(BEYOND_MAX), upgraded) == []
    assert named(found(BEYOND_MAX | {"from_ts": at(80)}), upgraded) == [("beyond", 4215, ["4.9.3"], "4.9.4")]


def test_another_broker_than_the_findings_does_not_count() -> None:
    assert named(found(BEYOND_MAX | {"broker_name": "c"}), versions_of(broker("4.9.3"))) == []
    both = versions_of(broker("4.9.3"), broker("4.9.1", "c"), broker("4.9.7", "d"))
    assert named(found(BEYOND_MAX), both) == [("beyond", 4215, ["4.9.1", "4.9.3"], "4.9.4")]


def test_the_settings_of_the_broker_count() -> None:
    asked = found(REFUSING_SLAVE | {"broker_name": "b"})
    assert named(asked, versions_of(broker("5.3.3", "b", 1, slaveReadEnable="true"))) == []
    assert named(asked, versions_of(broker("5.3.3", "b", 1))) == [], "not known"
    acting = versions_of(broker("5.3.3", "broker-a", enableSlaveActingMaster="true"))
    assert named(found(READ_FROM_SLAVE), acting) == []


def test_a_master_that_hangs_is_not_replaced_by_a_jraft_controller() -> None:
    """RaftBrokerHeartBeatManager#scanNotActiveBroker returns at once, a second after the first heartbeat."""
    down = {"finding_id": "down", "kind": "broker_down", "broker_name": "b", "broker_id": 0}
    hung = found(down | {"summary": "The master of b did not answer for 88 s."})
    elected = versions_of(broker("5.3.3", enableControllerMode="true"))
    assert named(hung, elected) == [("down", 9717, ["5.3.3"], "5.3.4")]
    assert named(hung, versions_of(broker("5.3.3", enableControllerMode="false"))) == []
    slave = found(down | {"summary": "Slave 1 of b did not answer for 88 s."})
    assert named(slave, elected) == []


def test_a_fault_of_slaves_needs_a_finding_about_a_slave() -> None:
    brokers = [broker("5.3.2", "b", 0), broker("5.3.2", "b", 1)]
    of_slave = [("lacking", 9403, ["5.3.2"], "5.3.4"), ("lacking", 9984, ["5.3.2"], "5.5.0")]
    assert named(found(LACKING_SLAVE), versions_of(*brokers)) == of_slave
    refused = LACKING_SLAVE | {"kind": "pull_refused", "summary": "Slave 1 of b refused 9 pulls for 60 s (code 17): x."}
    assert named(found(refused), versions_of(*brokers)) == of_slave
    assert (
        named(found(refused | {"summary": "Slave 1 of b refused 9 pulls (code 24): x."}), versions_of(*brokers)) == []
    )
    assert named(found(refused | {"broker_id": 0}), versions_of(*brokers)) == []


def test_clients_of_the_group_count_and_only_java_clients_of_the_remoting_protocol() -> None:
    old = connected(("10.0.0.1@7", "JAVA", 477), ("10.0.0.2@8", "JAVA", 479))
    assert named(found(NO_PULLS), versions_of(clients=old)) == [("pulls", 1918, ["5.3.2"], "5.3.3")]
    assert named(found(NO_PULLS | {"client_id": "10.0.0.2@8"}), versions_of(clients=old)) == []
    assert named(found(NO_PULLS | {"client_id": None}), versions_of(clients=old)) == [
        ("pulls", 1918, ["5.3.2"], "5.3.3")
    ]
    assert named(found(NO_PULLS | {"consumer_group": "h"}), versions_of(clients=old)) == []
    others = connected(("10.0.0.1@7", "GO", 477), ("host@7@0@abc", "JAVA", 413), ("10.0.0.1@7", "JAVA", 0))
    assert named(found(NO_PULLS | {"client_id": None}), versions_of(clients=others)) == []


def test_a_fault_of_broadcasting_clients() -> None:
    clients = connected(("10.0.0.1@7", "JAVA", 407), group="reset-group", model="BROADCASTING")
    assert named(found(BEYOND_MAX), versions_of(clients=clients)) == [("beyond", 7740, ["4.9.7"], "4.9.8")]
    assert named(found(BEYOND_MAX), versions_of(clients=connected(("c@1", "JAVA", 407), group="reset-group"))) == []


def test_the_mend_of_several_versions_is_that_of_the_latest() -> None:
    clients = connected(("a@1", "JAVA", 407), ("b@1", "JAVA", 413), group="reset-group", model="BROADCASTING")
    assert named(found(BEYOND_MAX), versions_of(clients=clients)) == [("beyond", 7740, ["4.9.7", "5.0.0"], "5.2.0")]


def test_a_fault_of_pop_needs_a_group_that_consumes_by_pop() -> None:
    popped = rows("silver.pop", {}, [{"consumer_group": "g"}])
    asked = rows(
        "silver.pop_assignment", {}, [{"consumer_group": "h", "mode": "POP"}, {"consumer_group": "i", "mode": "PULL"}]
    )
    groups = pop_groups(popped, asked)
    assert groups == {"g", "h"}
    assert named(found(LAG), versions_of(broker("5.3.0"))) == []
    assert named(found(LAG), versions_of(broker("5.3.0"), pop=groups)) == [("lag", 8472, ["5.3.0"], "5.3.1")]


def test_no_findings_have_no_issues() -> None:
    assert named(found(), versions_of(broker("4.9.3"))) == []


def test_an_open_fault_is_not_known_of_later_releases() -> None:
    open_fault = replace(KNOWN.issues[0], faulty=(FaultyReleases("5.0.0"),))
    known = KnownIssues("5.5.0", (open_fault,))
    assert issues_of_findings(found(READ_FROM_SLAVE), versions_of(broker("5.5.0", "broker-a")), known).height == 1
    assert issues_of_findings(found(READ_FROM_SLAVE), versions_of(broker("5.6.0", "broker-a")), known).is_empty()
