"""`mqreplay findings`: which findings are listed, in which form, and what is no name."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from xml.etree import ElementTree

import pytest

from made_warehouse import made_warehouse
from mqreplay.cli.command_line import main

AT = dt.datetime(2026, 11, 21, 2, tzinfo=dt.UTC)


def finding(name: str, hour: int, **differs: object) -> dict[str, object]:
    begin = AT + dt.timedelta(hours=hour)
    times = {"from_ts": begin, "to_ts": begin + dt.timedelta(minutes=30), "day": begin.date()}
    return (
        {"finding_id": name, "severity": "info", "follows_from": None, "summary": f"{name} happened.\x1b"}
        | times
        | differs
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("warehouse")
    rows = [
        finding("late", 3, kind="clock_skew", consumer_group="g1", topic="t", broker_name="b"),
        finding("down", 1, kind="broker_down", severity="critical", broker_name="a"),
        finding("pull", 2, kind="failover_pull", severity="warning", follows_from="down", cluster="other"),
    ]
    quiet = {"consumer_group": "quiet", "topic": "%RETRY%quiet"}
    made_warehouse(folder, {"gold.finding": rows, "bronze.step": [{}], "silver.rebalance": [quiet]})
    return str(folder)


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], ["down", "pull", "late"]),
        (["--severity", "warning"], ["down", "pull"]),
        (["--kind", "clock_skew", "--kind", "broker_down"], ["down", "late"]),
        (["--group", "g1"], ["late"]),
        (["--topic", "t", "--broker", "b"], ["late"]),
        (["--broker", "a", "--topic", "t"], []),
        (["--broker", "[ab]"], ["down", "late"]),
        (["--kind", "*_pull", "--kind", "clock_skew"], ["pull", "late"]),
        (["--kind", "slave_pull"], []),
        (["--group", "quiet"], []),
        (["--cluster", "other"], ["pull"]),
        (["--since", "2026-11-21T03:30"], ["down", "pull", "late"]),
        (["--since", "2026-11-21T03:31"], ["pull", "late"]),
        (["--until", "2026-11-21T05:00"], ["down", "pull"]),
        (["--since", "2026-11-21T05:31+01:00", "--until", "2026-11-22"], ["late"]),
    ],
)
def test_findings(root: str, capsys, options: list[str], ids: list[str]) -> None:
    assert main(["findings", "--warehouse", root, "--json", *options]) == 0
    assert [each["finding_id"] for each in json.loads(capsys.readouterr().out)["findings"]] == ids
    assert main(["findings", "--warehouse", root, "--format", "csv", *options]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["finding_id"] for row in rows] == ids
    assert main(["findings", "--warehouse", root, *options]) == 0
    out = capsys.readouterr().out
    assert [line.split()[-1] for line in out.splitlines() if " UTC  " in line] == ids
    assert "\x1b" not in out
    assert ("No findings." in out) == (not ids)
    assert ("Follows from down." in out) == ("pull" in ids)


def test_no_findings_of_a_warehouse_that_was_not_judged_is_no_answer(tmp_path, capsys) -> None:
    made_warehouse(tmp_path, {"bronze.step": [{"step": "ingest", "scope": "2026-11-21"}]})
    for form in ("text", "json", "junit"):
        assert main(["findings", "--warehouse", str(tmp_path), "--format", form]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "was judged yet" in err
    days = [{"step": "replay", "scope": f"2026-11-{day}", "cluster": "c"} for day in (20, 21)]
    made_warehouse(tmp_path / "quiet", {"bronze.step": days[1:]})
    assert main(["findings", "--warehouse", str(tmp_path / "quiet")]) == 0
    assert capsys.readouterr().out == "No findings.\njudged: c 2026-11-21\n"
    made_warehouse(tmp_path / "two", {"bronze.step": days})
    assert main(["findings", "--warehouse", str(tmp_path / "two")]) == 0
    assert capsys.readouterr().out == "No findings.\njudged: c 2026-11-20 – 2026-11-21 (2)\n"


def test_an_instant_that_is_none(root: str, capsys) -> None:
    assert main(["findings", "--warehouse", root, "--since", "yesterday"]) == 2
    assert capsys.readouterr().err == (
        "mqreplay: --since 'yesterday' is no instant; write it as 2026-11-21T02:30 or 2026-11-21\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kind", "brokerdown"], "there is no kind brokerdown; did you mean broker_down?"),
        (["--kind", "broker_down", "--kind", "x*"], "there is no kind x*; known are broker_down, "),
        (["--group", "quite"], "there is no group quite; did you mean quiet?"),
        (["--cluster", "z"], "there is no cluster z; known are c, other"),
        (["--topic", "x"], "there is no topic x; known are t"),
    ],
)
def test_a_name_that_the_warehouse_does_not_have_is_an_error(root: str, capsys, options: list[str], message) -> None:
    assert main(["findings", "--warehouse", root, *options]) == 2
    out, error = capsys.readouterr()
    assert error.startswith(f"mqreplay: {message}")
    assert out == ""


def test_of_several_clusters_each_finding_names_its_own(root: str, capsys, tmp_path) -> None:
    assert main(["findings", "--warehouse", root, "--kind", "failover_pull"]) == 0
    assert capsys.readouterr().out.startswith("warning  failover_pull         other  2026-11-21 04:00:00 to 04:30:00")
    made_warehouse(tmp_path, {"gold.finding": [finding("one", 0, kind="broker_down")]})
    assert main(["findings", "--warehouse", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("info     broker_down           2026-11-21 02:00:00 to 02:30:00")


def watched(name: str, **differs: object) -> dict[str, object]:
    seen = {"opened_ts": AT, "first_seen_ts": AT, "last_seen_ts": AT + dt.timedelta(minutes=7), "closed_ts": None}
    row = {"finding_id": name, "kind": "broker_down", "severity": "critical", "undetermined_since": None}
    return row | seen | {"summary": f"{name} is down.", "closed_reason": None} | differs


@pytest.fixture
def live(tmp_path) -> str:
    """A warehouse of watch, and of a nightly run that has judged one of its open findings."""
    closed = watched("over", closed_ts=AT, closed_reason="no evidence of it for 120 s")
    tables = {"gold.open_finding": [watched("now", topic="t"), closed, watched("both")]}
    made_warehouse(tmp_path, tables | {"gold.finding": [finding("both", 0, kind="broker_down")]})
    return str(tmp_path)


def test_findings_that_watch_reports_are_listed_as_open(live: str, capsys) -> None:
    assert main(["findings", "--warehouse", live]) == 0
    stopped = "Watch has reported nothing since: whether it goes on is not known."
    assert " ".join(capsys.readouterr().out.split()) == (
        "critical broker_down open since 2026-11-21 02:00:00 UTC now"
        f" now is down. Last evidence: 2026-11-21 02:07:00 UTC. {stopped}"
        " info broker_down open since 2026-11-21 02:00:00 UTC both"
        f" both happened.{chr(92)}x1b Last evidence: 2026-11-21 02:07:00 UTC. {stopped}"
    )
    # An open finding has not ended: it is listed whatever --since says.
    assert main(["findings", "--warehouse", live, "--json", "--since", "2026-11-22", "--topic", "t"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["findings"]
    assert (row["finding_id"], row["day"], row["open_since"]) == ("now", None, "2026-11-21T02:00:00+00:00")
    assert (row["last_seen_ts"], row["follows_from"]) == ("2026-11-21T02:07:00+00:00", None)


def judged_until(minutes: float) -> dict[str, list[dict[str, object]]]:
    """Tables of a nightly run on a recording that goes so long after AT."""
    file = {"path": "p", "rows_in": 1, "rows_out": 1, "rows_quarantined": 0, "rows_duplicate": 0, "rows_expired": 0}
    file |= {"first_ts": AT, "last_ts": AT + dt.timedelta(minutes=minutes)}
    return {"bronze.source_file": [file], "gold.judgement": [{"day": AT.date()}]}


@pytest.mark.parametrize(
    ("of_night", "minutes", "listed"),
    [
        ({}, 60, "night 02:30"),  # another id: the run dates the begin differently
        ({"broker_name": None}, 60, "night 02:30"),
        ({"broker_name": "b"}, 60, "night 02:30"),  # another broker: the run has judged the time of the first
        ({"broker_name": "b"}, 8, "night 02:30, watch open"),
        ({"kind": "slave_pull"}, 8, "watch open, night 02:30"),
        ({"from_ts": AT + dt.timedelta(minutes=9)}, 8, "watch open, night 02:30"),
        ({}, 30, "night open"),  # it lasts at the end of the recording
        ({"to_ts": AT}, 6.5, "night open"),  # watch has seen it later
    ],
)
def test_the_nightly_run_knows_better_which_findings_are_open(
    tmp_path, capsys, of_night: dict[str, object], minutes: float, listed: str
) -> None:
    night = {"kind": "broker_down", "severity": "critical", "broker_name": "a"} | of_night
    tables = {"gold.open_finding": [watched("watch", broker_name="a")], "gold.finding": [finding("night", 0, **night)]}
    made_warehouse(tmp_path, tables | judged_until(minutes))
    assert main(["findings", "--warehouse", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["findings"]
    shown = {f"{row['finding_id']} {'open' if row['open_since'] else row['to_ts'][11:16]}" for row in rows}
    assert shown == set(listed.split(", "))


def test_watch_that_runs_needs_no_note_and_a_silent_recording_has_one(tmp_path, capsys) -> None:
    now = dt.datetime.now(dt.UTC)
    silent = watched("silent", last_seen_ts=now, undetermined_since=AT, severity="info")
    made_warehouse(tmp_path, {"gold.open_finding": [watched("lives", last_seen_ts=now), silent]})
    assert main(["findings", "--warehouse", str(tmp_path)]) == 0
    first, second = " ".join(capsys.readouterr().out.split()).split(" info ")
    assert first.endswith(f"lives is down. Last evidence: {now:%Y-%m-%d %H:%M:%S} UTC.")
    assert second.endswith("Nothing is recorded since 2026-11-21 02:00:00 UTC: whether it goes on is not known.")


def test_a_finding_that_spans_midnight_is_listed_once(tmp_path, capsys) -> None:
    rows = [finding("down", 21.9, kind="broker_down", day=AT.date() + dt.timedelta(days=days)) for days in (0, 1)]
    made_warehouse(tmp_path, {"gold.finding": rows})
    assert main(["findings", "--warehouse", str(tmp_path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["findings"]
    assert row["day"] == "2026-11-22"


def test_text_leads_to_the_page(root: str, tmp_path, capsys) -> None:
    def pages(folder: object, *options: str) -> list[str]:
        assert main(["findings", "--warehouse", str(folder), *options]) == 0
        return [line for line in capsys.readouterr().out.splitlines() if line.startswith("Page: ")]

    both = [finding(name, 0, kind="broker_down", consumer_group=name) for name in ("one", "two")]
    made_warehouse(tmp_path, {"gold.finding": both})
    assert pages(tmp_path) == []
    (tmp_path / "report").mkdir()
    page = tmp_path / "report" / "c.html"
    page.write_text('<p id="f-one">')
    assert pages(tmp_path) == [f"Page: {page}"]
    assert pages(tmp_path, "--group", "one") == [f"Page: {page}#f-one"]
    assert pages(tmp_path, "--group", "two") == []  # the page does not show it
    assert pages(tmp_path, "--json") == []
    made_warehouse(
        tmp_path / "several", {"gold.finding": [*both, finding("far", 0, cluster="other", kind="lag_grows")]}
    )
    (tmp_path / "several" / "report").mkdir()
    overview = tmp_path / "several" / "report" / "index.html"
    overview.write_text("")
    assert pages(tmp_path / "several") == [f"Page: {overview}"]


def test_without_any_table_of_names_no_name_is_refused(live: str, capsys) -> None:
    assert main(["findings", "--warehouse", live, "--group", "any"]) == 0
    assert capsys.readouterr().out == "No findings.\n"


def printed(root: str, capsys, form: str, *options: str) -> str:
    assert main(["findings", "--warehouse", root, "--format", form, *options]) == 0
    return capsys.readouterr().out


def test_csv_has_one_flat_line_a_finding(root: str, capsys) -> None:
    first, *_ = csv.DictReader(io.StringIO(printed(root, capsys, "csv")))
    assert "evidence" not in first
    assert {"evidence_count", "advice", "open_since"} <= first.keys()
    assert not any("[" in value or "{" in value for value in first.values())


def test_markdown_is_a_table(live: str, root: str, capsys) -> None:
    lines = printed(root, capsys, "md", "--severity", "warning").splitlines()
    assert lines[0] == "| severity | kind | cluster | time | id | summary |"
    assert lines[2] == (
        "| critical | broker_down | c | 2026-11-21 03:00:00 to 03:30:00 UTC | down | down happened.\\\\x1b |"
    )
    assert len(lines) == 4
    assert "| since 2026-11-21 02:00:00 UTC | now | Open. now is down. |" in printed(live, capsys, "md")
    assert printed(root, capsys, "md", "--since", "2027-01-01") == "No findings.\n"


def test_markup_in_names_stays_text(tmp_path, capsys) -> None:
    made_warehouse(tmp_path, {"gold.finding": [finding("f", 0, summary="a|b <i>&\n# [x](y) `z`")]})
    assert printed(str(tmp_path), capsys, "md").count(" | ") == 4 + 4 + 4
    assert r"a\|b &lt;i>&amp;\\n# \[x\](y) \`z\`" in printed(str(tmp_path), capsys, "md")
    (failure,) = ElementTree.fromstring(printed(str(tmp_path), capsys, "junit", "--severity", "info")).iter(
        "system-out"
    )
    assert "a|b <i>&\\n# [x](y) `z`" in str(failure.text)


def test_junit_has_a_suite_a_cluster_and_fails_by_severity(root: str, capsys) -> None:
    top = ElementTree.fromstring(printed(root, capsys, "junit"))
    assert (top.tag, top.get("tests"), top.get("failures")) == ("testsuites", "3", "2")
    suites = {suite.get("name"): suite for suite in top}
    assert {name: suite.get("failures") for name, suite in suites.items()} == {"c": "1", "other": "1"}
    down, late = suites["c"]
    assert (down.get("name"), down.get("classname"), down.get("time")) == (
        "broker_down a down",
        "c.broker_down",
        "1800.000",
    )
    assert [(each.tag, each.get("type"), each.get("message")) for each in down] == [
        ("failure", "critical", "down happened.\\x1b")
    ]
    assert [each.tag for each in late] == ["system-out"]
    empty = ElementTree.fromstring(printed(root, capsys, "junit", "--since", "2027-01-01"))
    assert (empty.get("tests"), len(empty)) == ("0", 0)


def test_sarif_has_what_its_schema_requires(root: str, live: str, capsys) -> None:
    """The required properties of SARIF 2.1.0: section 3.13, 3.14, 3.18, 3.19, 3.27 and 3.49."""
    log = json.loads(printed(root, capsys, "sarif"))
    assert (log["version"], log["$schema"]) == ("2.1.0", "https://json.schemastore.org/sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "mqreplay"
    rules = [rule["id"] for rule in driver["rules"]]
    assert rules == sorted(set(rules)) == ["broker_down", "clock_skew", "failover_pull"]
    assert all(rule[name]["text"] for rule in driver["rules"] for name in ("shortDescription", "help"))
    levels = {}
    for result in run["results"]:
        assert isinstance(result["message"]["text"], str)
        assert rules[result["ruleIndex"]] == result["ruleId"]
        (location,) = result["locations"]
        assert location["logicalLocations"][0]["fullyQualifiedName"]
        levels[result["partialFingerprints"]["findingId/v1"]] = result["level"]
    assert levels == {"down": "error", "pull": "warning", "late": "note"}
    assert run["results"][0]["message"]["text"] == "down happened.\x1b"
    first = json.loads(printed(live, capsys, "sarif"))["runs"][0]["results"][0]
    assert first["properties"]["open_since"] == "2026-11-21T02:00:00+00:00"
    assert json.loads(printed(root, capsys, "sarif", "--since", "2027-01-01"))["runs"][0]["results"] == []
