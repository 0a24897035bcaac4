"""Messages of a night: sent once to each channel, again if it was not taken, never while they are muted."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from made_warehouse import made_warehouse
from mqreplay.answers.alert import Alert
from mqreplay.answers.open_findings import write_findings
from mqreplay.cli.command_line import main
from mqreplay.cli.notify import Notifier
from mqreplay.findings.opened import ENDED_EVENT, Change, OpenFinding
from mqreplay.findings.shape import PLACE
from mqreplay.lake.row_filter import RowFilter
from mqreplay.lake.warehouse import Warehouse
from mqreplay.night.overview import LastRuns
from mqreplay.night.reported import Reported
from mqreplay.notices import channel
from mqreplay.notices.channel import channels_of
from mqreplay.notices.notify import notify
from mqreplay.notices.watch import ClusterRound, RoundDone
from mqreplay.settings import Settings
from mqreplay.words.errors import InputError
from notices.hook import hook
from tests_shared import SAMPLE

WORDS = ["nightly", str(SAMPLE / "bulk-5.3.3"), "--engine", "local", "--cluster", "c"]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "WAIT_S", 0.0)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A warehouse with the night, without messages."""
    root = str(tmp_path_factory.mktemp("notify") / "w")
    assert main([*WORDS, "--warehouse", root]) == 0
    return root


@pytest.fixture
def root(judged: str) -> Any:
    """The warehouse; the messages and mutes of a test are removed after it."""
    yield judged
    warehouse = Warehouse(judged)
    for name in ("gold.notification", "gold.mute"):
        if warehouse.exists(name):
            warehouse.replace_rows(name, [], RowFilter("c"))


def run(root: str, *options: str) -> int:
    return main([*WORDS, "--warehouse", root, *options])


def noted(root: str) -> list[tuple[Any, ...]]:
    rows = Warehouse(root).read("gold.notification").select("what", "kind", "severity", "is_open").collect().rows()
    return sorted(rows)


def test_each_finding_is_sent_once(root, capsys):
    with hook() as server:
        url = f"json://{server.address}/hook?token=secret"
        assert run(root, "--notify", url) == 0
        titles = [body["title"] for _, body in server.got]
        assert all(re.search(r"(from|at) \d\d:\d\d:\d\d \(c\)$", title) for title in titles), titles
        assert {title.partition(":")[0] for title in titles} == {"critical", "warning"}
        assert run(root, "--notify", url) == 0
        assert len(server.got) == len(titles)
    assert len(noted(root)) == len(titles)
    assert "secret" not in str(Warehouse(root).read("gold.notification").collect().rows())
    assert f"c: {len(titles)} messages sent" in capsys.readouterr().err


def test_a_message_has_cause_page_and_command(root):
    with hook() as server:
        assert run(root, "--notify", f"json://{server.address}/") == 0
        lines = server.got[0][1]["message"].splitlines()
    heads = [line.partition(":")[0] for line in lines[1:]]
    assert heads == ["When", "Next", "Page", "Evidence"]
    page, command = lines[3].removeprefix("Page: "), lines[4].removeprefix("Evidence: ")
    path, _, anchor = page.partition("#")
    assert f'id="{anchor}"' in Path(path).read_text(encoding="utf-8")
    assert main(command.split()[1:]) == 0


def test_a_message_is_in_the_language_of_the_reports(root):
    with hook() as server:
        assert run(root, "--notify", f"json://{server.address}/", "--lang", "zh") == 0
        titles = [body["title"] for _, body in server.got]
        heads = [line.partition("：")[0] for line in server.got[0][1]["message"].splitlines()[1:]]
    assert all(re.fullmatch(r"(严重|警告)：[^A-Z].+（\D*\d\d:\d\d:\d\d\D*）（c）", title) for title in titles), titles
    assert heads == ["时间", "处理建议", "页面", "证据"]


def test_a_service_that_does_not_answer_gets_the_messages_in_the_next_run(root, capsys):
    with hook() as server:
        url = f"json://{server.address}/"
        server.status = 503
        assert run(root, "--notify", url) == 0
        assert server.tries == channel.TRIES
        assert "are due again in the next run" in capsys.readouterr().err
        assert noted(root) == []
        server.status = 200
        assert run(root, "--notify", url) == 0
        assert len(server.got) == len(noted(root)) > 0


def test_a_message_that_was_not_taken_is_sent_after_the_next_night(tmp_path):
    root, now = str(tmp_path), dt.datetime.now(dt.UTC)
    alert = Alert("a1", "stuck_queue", "critical", (None,) * len(PLACE), now, now, True, "It stood still.", "")
    with hook() as server:
        channels = channels_of([f"json://{server.address}/"], [])

        def send(*opening: str) -> int:
            return notify(root, Settings().notify, channels, "c", [alert], None, opening=opening).messages

        runs = LastRuns(reported={"c": Reported()})
        runs.write(root)
        server.status = 503
        assert send("a1") == 0
        server.status = 200
        assert [send(), send()] == [1, 0]
    assert LastRuns.of(root).reported["c"].unsent == frozenset()


def test_one_message_counts_those_beyond_the_limit(root, tmp_path):
    conf = tmp_path / "conf.toml"
    conf.write_text('[notify]\nmessages = 1\nseverity = "info"\n')
    with hook() as server:
        assert run(root, "--notify", f"json://{server.address}/", "--conf", str(conf)) == 0
        first, rest = (body for _, body in server.got)
        assert first["title"].startswith("critical: ")
        count = int(rest["title"].partition(" ")[0])
        assert rest["title"].startswith(f"{count} more messages; warning: ")
        assert sum(int(line.partition(" ")[0]) for line in rest["message"].splitlines()[:-1]) == count
    assert len(noted(root)) > count


def test_alertmanager_gets_alerts_with_labels(root):
    with hook() as server:
        assert run(root, "--notify", f"alertmanager://{server.address}/am") == 0
        path, (alert,) = server.got[0]
        assert path == "/am/api/v2/alerts"
    assert alert["labels"].items() >= {"cluster": "c", "severity": "critical"}.items()
    assert alert["annotations"]["summary"].startswith("critical: slave 1 of rmq-south refused")
    begin, end = (dt.datetime.fromisoformat(alert[name]) for name in ("startsAt", "endsAt"))
    assert begin < dt.datetime.now(dt.UTC) < end


def test_a_mute_holds_messages_back_until_it_ends(root, capsys):
    with hook() as server:
        url = f"json://{server.address}/"
        mute = ["mute", "--kind", "*", "--for", "8h", "--reason", "load test", "--warehouse", root]
        assert main(mute) == 0
        assert run(root, "--notify", url, "--fail-on", "info") == 0
        assert server.got == []
        capsys.readouterr()
        assert main(["mute", "--list", "--warehouse", root]) == 0
        listed = capsys.readouterr().out
        assert "kind *" in listed
        assert "load test" in listed
        assert main(["mute", "--end", listed.split()[1], "--warehouse", root]) == 0
        assert run(root, "--notify", url, "--fail-on", "info") == 1
        assert server.got != []


def test_an_acknowledged_finding_has_no_message(root, capsys):
    critical = Warehouse(root).read("gold.finding").filter(severity="critical").collect()["finding_id"][0]
    assert main(["mute", critical[:8], "--reason", "OPS-1", "--warehouse", root]) == 0
    capsys.readouterr()
    assert main(["findings", "--severity", "critical", "--warehouse", root]) == 0
    assert re.search(r"Muted\s+until", capsys.readouterr().out)
    with hook() as server:
        assert run(root, "--notify", f"json://{server.address}/") == 0
        assert all(critical[:8] not in body["message"] for _, body in server.got)
        assert server.got != []


def test_an_acknowledged_finding_is_marked_everywhere(root, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # a mark may be broken anywhere in a narrow terminal
    critical = Warehouse(root).read("gold.finding").filter(severity="critical").collect()["finding_id"][0]
    assert main(["mute", critical[:8], "--reason", "OPS-1", "--warehouse", root]) == 0

    def printed(*words: str) -> str:
        capsys.readouterr()
        assert main([*words, "--warehouse", root]) == 0
        return capsys.readouterr().out

    assert re.search(r"Muted\s+until .*OPS-1", printed(*WORDS, "--metrics", str(tmp_path / "m.prom")), re.DOTALL)
    (night,) = json.loads(printed(*WORDS, "--json"))["clusters"]
    of_night = {row["finding_id"]: row["muted_reason"] for row in night["findings"]}
    of_findings = {
        row["finding_id"]: row["muted_reason"] for row in json.loads(printed("findings", "--json"))["findings"]
    }
    marks = dict.fromkeys(of_night) | {critical: "OPS-1"}
    assert of_night == of_findings == marks
    page = Path(night["report"]).read_text(encoding="utf-8")
    assert page.count("Muted until") == 1
    metrics = (tmp_path / "m.prom").read_text()
    assert sum('severity="critical"' in line and 'muted="true"' in line for line in metrics.splitlines()) == 1
    suites = ElementTree.fromstring(printed("findings", "--format", "junit"))
    assert int(suites.attrib["failures"]) == sum(
        row["severity"] != "info" and row["finding_id"] != critical for row in night["findings"]
    )
    (run_,) = json.loads(printed("findings", "--format", "sarif"))["runs"]
    assert [one["partialFingerprints"]["findingId/v1"] for one in run_["results"] if "suppressions" in one] == [
        critical
    ]
    assert "OPS-1" in printed("findings", "--format", "md")
    assert "OPS-1" in printed("findings", "--format", "csv")


def test_a_round_of_watch_sends_what_opens_and_what_closes(root):
    now = dt.datetime(2026, 11, 21, 2, 42, tzinfo=dt.UTC)
    row = ("0123456789abcdef", "stuck_queue", "warning", "billing", "orders", "broker-a", None, 0, None)
    stuck = OpenFinding(*row, now, now, now, None, None, None, 1.0, "Group billing stands still.", "Look.", None, [], 3)
    over = replace(stuck, closed_ts=now, closed_reason="its evidence ended")
    warehouse = Warehouse(root)
    with hook() as server:
        args = argparse.Namespace(notify=[f"json://{server.address}/"], warehouse=root, catalog=None)
        notifier = Notifier(args, Settings())
        for number, (what, finding) in enumerate((("opened", stuck), ("closed", over)), start=1):
            write_findings(warehouse, "c", [finding])
            one = ClusterRound("c", [Change(what, finding)], 1, now, 3.2, is_silent=False)
            notifier.of_round(RoundDone(number, now, 1, 1, 0.1, [one], []))
        words = [body["title"] for _, body in server.got]
    write_findings(warehouse, "c", [])
    sentence = f"group billing stands still {{}} {now:%H:%M:%S} (c)"
    assert words == [f"warning: {sentence.format('from')}", f"warning, closed: {sentence.format('at')}"]


def test_what_was_over_before_watch_found_it_is_one_message(tmp_path):
    now = dt.datetime(2026, 11, 21, 2, 42, tzinfo=dt.UTC)
    row = ("0123456789abcdef", "stuck_queue", "warning", "billing", "orders", "broker-a", None, 0, None)
    times = (
        now - dt.timedelta(minutes=9),
        now,
        now - dt.timedelta(minutes=5),
        now,
        "no evidence of it for 120 s",
        None,
    )
    over = OpenFinding(*row, *times, 1.0, "Group billing stands still.", "Look.", None, [], 3)
    root = str(tmp_path / "w")
    write_findings(Warehouse(root), "c", [over])
    with hook() as server:
        notifier = Notifier(
            argparse.Namespace(notify=[f"json://{server.address}/"], warehouse=root, catalog=None), Settings()
        )
        for number in (1, 2):  # the second round finds it again
            one = ClusterRound("c", [Change(ENDED_EVENT, over)], 0, now, 3.2, is_silent=False)
            notifier.of_round(RoundDone(number, now, 1, 1, 0.1, [one], []))
    ((_, body),) = server.got
    assert body["title"] == "warning: group billing stands still from 02:33:00 (c)"
    assert "02:33:00 to 2026-11-21 02:37:00 UTC; ended 5 min ago" in body["message"]


def test_a_finding_of_watch_alone_is_acknowledged(tmp_path, capsys):
    now = dt.datetime(2026, 11, 21, 2, 42, tzinfo=dt.UTC)
    row = ("0123456789abcdef", "stuck_queue", "warning", "billing", "orders", "broker-a", None, 0, None)
    stuck = OpenFinding(*row, now, now, now, None, None, None, 1.0, "Group billing stands still.", "Look.", None, [], 3)
    root = str(tmp_path / "w")
    write_findings(Warehouse(root), "c", [stuck])
    assert main(["mute", "01234567", "--reason", "OPS-2", "--warehouse", root]) == 0
    assert "finding 01234567" in capsys.readouterr().out


def test_an_unknown_group_is_muted_with_a_note(tmp_path, capsys):
    warehouse = made_warehouse(tmp_path, {"gold.finding": [{"consumer_group": "pay-group", "finding_id": "f"}]})
    for group, note in (("pay-grup", "note: there is no group pay-grup; did you mean pay-group?"), ("pay-*", "")):
        assert main(["mute", "--group", group, "--reason", "x", "--warehouse", warehouse.root]) == 0
        out, err = capsys.readouterr()
        assert f"group {group}  until" in out
        assert err.strip().removeprefix("mqreplay: ") == note


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["mute", "--reason", "x"], "or a --kind, --group, --topic or --broker"),
        (["mute", "--kind", "brokerdown", "--reason", "x"], "did you mean broker_down?"),
        (["mute", "--group", "g"], "say why with --reason"),
        (["mute", "--group", "g", "--reason", "x", "--for", "9000h"], "a year at most"),
        (["mute", "--group", "g", "--reason", "x", "--until", "2020-01-01"], "is over"),
        (["mute", "--end", "nothing"], "nothing is muted by nothing"),
        (["mute", "zzzz", "--reason", "x"], "no finding has an id that begins with zzzz; `mqreplay findings"),
        (["mute", "--group", "g", "--reason", "x", "--cluster", "d"], "has no cluster d; it has c"),
    ],
)
def test_wrong_mutes_are_errors(root, capsys, words, why):
    assert main([*words, "--warehouse", root]) == 2
    assert why in capsys.readouterr().err


def test_addresses_come_from_a_file(tmp_path):
    file = tmp_path / "urls"
    file.write_text("# our channels\njson://user:word@host/path\n\nalertmanagers://am:9093\n")
    names = [one.name for one in channels_of([], [str(file)])]
    assert names[0].startswith("json://user:****@host ")
    assert names[1] == "alertmanagers://am:9093"


@pytest.mark.parametrize("url", ["slak://token-that-is-secret", "nonsense", "alertmanager://"])
def test_a_wrong_address_is_an_error_that_shows_no_secret(url):
    with pytest.raises(InputError) as error:
        channels_of([url], [])
    assert "secret" not in str(error.value)


def test_a_file_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        channels_of([], [str(tmp_path / "nothing")])
