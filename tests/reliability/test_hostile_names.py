"""Names that a recording brings do nothing but be read: in terminal, logs, CSV, JSON, HTML, SQL and file names."""

from __future__ import annotations

import csv
import dataclasses
import datetime as dt
import html.parser
import io
import json
import os
from pathlib import Path

import pytest

from browser_page import Page, chromium
from mqreplay.answers.page_path import file_name
from mqreplay.cli.command_line import main
from mqreplay.machine.crash import crash_line
from mqreplay.report.build import build_report
from mqreplay.report.data import Listing
from mqreplay.words.printable import csv_text, json_text, printable
from reliability.hostile_names import COUNT, FORGED, hostile_names
from report_data import data, evidence, finding, gap, offset_break, refused

NAMES = hostile_names()
SINCE = dt.datetime(2026, 11, 21, 2)
FORMULAS = tuple("=+-@\t\r＝＋－＠")
# Printers that take longer get some names in the short form, from every class.
some_or_all = pytest.mark.parametrize("names", [NAMES[::10], pytest.param(NAMES, marks=pytest.mark.long)], ids=len)


def assert_shows_only(text: str, *, lines: int | None = None) -> None:
    """No character does anything, no line is forged, and there are as many lines as asked for."""
    assert [c for c in text if not c.isprintable() and c != "\n"] == []
    assert not any(line.startswith(FORGED) for line in text.split("\n"))
    if lines is not None:
        assert text.count("\n") == lines, text


def as_argument(name: str) -> str:
    """The name as the command line can have it: no NUL, and stray bytes where there is no text."""
    return name.replace("\x00", "%00").replace("\ud800", "\udcff")


def test_there_are_as_many_names_as_promised() -> None:
    assert len(NAMES) == len(set(NAMES)) == COUNT == 300


@some_or_all
@pytest.mark.parametrize(
    "command", ["sql", "explain", "report", "ingest", "doctor", "import", "conf", "argument", "choice"]
)
def test_errors_on_the_command_line(
    names: list[str], command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in names:
        name = as_argument(name)
        path = f"{tmp_path}/none/{name}"
        missing = {
            "sql": ["sql", "SELECT 1", "--warehouse", path],
            "explain": ["explain", "--warehouse", path, "--", name],
            "report": ["report", "--warehouse", str(tmp_path), "--conf", path],
            "ingest": ["ingest", path, "--warehouse", str(tmp_path / "w")],
            "doctor": ["doctor", path],
            "import": ["import", path, "--out", str(tmp_path / "out")],
            "conf": ["doctor", "--conf", path],
            "argument": ["sql", "SELECT 1", "--warehouse", path, "--", name, name],
            "choice": ["sql", "SELECT 1", "--warehouse", path, f"--format=x{name}"],
        }[command]
        if command in ("argument", "choice"):
            with pytest.raises(SystemExit, match="2"):
                print(main(missing), missing)
        else:
            assert main(missing) == 2, name
        out, err = capsys.readouterr()
        assert out == ""
        assert_shows_only(err, lines=None)
        assert [line for line in err.splitlines() if not line.startswith(("usage: ", "   "))] == err.splitlines()[-1:]


@some_or_all
def test_names_of_files_that_doctor_examines(
    names: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for number, name in enumerate(names):
        part = as_argument(name).replace("/", "∕")[:80]
        folder = tmp_path / str(number) / ("_" + part)
        folder.mkdir(parents=True)
        path = folder / "consumerOffset.json"
        path.write_text('{"offsetTable":{' + json.dumps(f"T@{name}") + ":{0:5}}}", encoding="utf-8")
        assert main(["doctor", str(path)]) in (0, 1), name
        out, err = capsys.readouterr()
        assert_shows_only(out + err)
        assert main(["doctor", "--json", str(path)]) in (0, 1), name
        out = capsys.readouterr().out
        assert_shows_only(out)
        assert json.loads(out)["files"][0]["path"] == str(path)


def rows_of(name: str) -> list[dict[str, object]]:
    return [
        {"n": -5, "text": name, "listed": [name, {"k": name}], "raw": name.encode("utf-8", "replace"), "none": None}
    ]


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_rows_of_a_query(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    from mqreplay.cli.rows import print_rows

    for name in NAMES:
        rows = rows_of(name)
        print_rows([*rows[0]], [[*row.values()] for row in rows], form)
        out = capsys.readouterr().out
        if form == "json":
            assert_shows_only(out, lines=1)
            known = json.loads(out)
            assert (known["n"], known["text"], known["listed"]) == (-5, name, [name, {"k": name}])
        elif form == "csv":
            assert_shows_only(out.replace("\r\n", "\n"), lines=2)
            [_, cells] = csv.reader(io.StringIO(out, newline=""))
            assert cells[0] == "-5"
            assert not any(cell.startswith(FORMULAS) for cell in cells[1:])
            assert cells[1] in (printable(name), f"'{printable(name)}")
        else:
            assert_shows_only(out, lines=5)
            assert printable(name) in out


def test_a_column_may_have_any_name(capsys: pytest.CaptureFixture[str]) -> None:
    from mqreplay.cli.rows import print_rows

    for form in ("table", "csv", "json"):
        print_rows(NAMES, [[1] * len(NAMES)], form)
        assert_shows_only(capsys.readouterr().out.replace("\r\n", "\n"), lines={"table": 5, "csv": 2, "json": 1}[form])


@some_or_all
def test_the_outcome_of_a_run(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from mqreplay.answers.outcome import Outcome
    from mqreplay.terminal.outcome import print_outcome

    for name in names:
        one = finding(kind=name, finding_id=name, summary=f"Group {name} lags.") | {
            "from_ts": SINCE.isoformat(),
            "to_ts": SINCE.isoformat(),
            "follows_from": None,
        }
        failed = {"table_name": name, "day": None, "expectation": name, "arguments": name}
        failed |= {"unexpected_count": None, "unexpected_sample": name}
        outcome = Outcome(name, [one], judgements={name: {"differ": 1}}, expectations=2, failed_expectations=[failed])
        outcome.files, outcome.quarantined, outcome.report = {"read": 1}, 3, f"/w/{name}"
        print_outcome([outcome], "nightly", f"/w/{name}")
        out = capsys.readouterr().out
        assert_shows_only(out)
        assert out.startswith(f"\n{printable(name)}  1 file: 1 read, 3 rows in quarantine\n")
        assert f"Report: /w/{printable(name)}\n" in out


def test_the_progress_of_a_run() -> None:
    from mqreplay.terminal.progress import Progress

    stream = io.StringIO()
    with Progress(stream) as progress:
        for name in NAMES:
            progress(f"{name}: replaying")
    assert_shows_only(stream.getvalue(), lines=COUNT)
    assert all(f"{printable(name)}: replaying" in stream.getvalue() for name in NAMES)


@some_or_all
def test_the_story_of_a_finding(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from mqreplay.answers.explanation import Explanation, decision
    from mqreplay.report.evidence_rows import EvidenceRow, EvidenceRows
    from mqreplay.report.evidence_words import WORDINGS, what, who
    from mqreplay.terminal.explanation import print_explained

    for name in names:
        one = finding(kind=name, summary=name, advice=f"mqadmin -g {name}")
        row = {"topic": name, "client_id": name, "broker_name": name, "pull_from_which_node": 0} | dict.fromkeys(
            ("expected_broker_id", "actual_broker_id", "reason"), name
        )
        wording = WORDINGS["gold.pull_route"]
        rows = [EvidenceRow("gold.pull_route", SINCE, who(row), what(wording, row), row)]
        decisions = [str(decision("gold.pull_route", row))]
        explanation = Explanation(
            one,
            "a rule",
            "",
            EvidenceRows(rows, 1),
            decisions,
            [("02:00:00", name)],
            holders={name: [name]},
            names={"GROUP": name},
            cause=one,
            effects=[one],
        )
        print_explained(explanation, 50)
        assert_shows_only(capsys.readouterr().out)


@some_or_all
def test_the_log_of_a_run_that_failed(names: list[str], tmp_path: Path) -> None:
    for number, name in enumerate(names):
        try:
            raise KeyError(name)
        except KeyError as error:
            warehouse = tmp_path / str(number)
            warehouse.mkdir()
            assert_shows_only(printable(crash_line(error, ["sql", name], str(warehouse))), lines=0)
            [log] = (warehouse / "logs").iterdir()
        text = log.read_text(encoding="utf-8")
        assert_shows_only(text)
        begins = [line.split(":")[0] for line in text.splitlines() if not line.startswith("  ")]
        assert begins[:3] == ["time", "mqreplay", "python"]
        assert begins[-3:] == ["command", "error", "last lines from Java and its Python workers"]


@some_or_all
def test_an_error_may_say_anything(names: list[str], tmp_path: Path) -> None:
    for name in names:
        for error in (ValueError(name), OSError(28, name, name)):
            assert len(crash_line(error, [name], str(tmp_path))) < 1_000
            [log] = (tmp_path / "logs").iterdir()
            assert_shows_only(log.read_text(encoding="utf-8"))
            log.unlink()


def test_names_of_clusters_as_file_names(tmp_path: Path) -> None:
    made = {file_name(name) for name in NAMES}
    assert len(made) == COUNT
    for each in made:
        path = tmp_path / f"{each}.html"
        assert path.resolve().parent == tmp_path.resolve()
        assert each.isascii()
        assert not each.startswith((".", "-rf/"))
        path.touch(exist_ok=False)
    assert len(os.listdir(tmp_path)) == COUNT


def test_text_in_json_and_csv() -> None:
    for name in NAMES:
        assert_shows_only(json_text({name: [name]}, indent=1))
        assert json.loads(json_text({name: [name]})) == {name: [name]}
        assert not csv_text(name).startswith(FORMULAS)


class Tags(html.parser.HTMLParser):
    """Elements and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, "")} | {(tag, name) for name, _ in attrs}


@some_or_all
def test_the_report_has_no_element_more(names: list[str]) -> None:
    usual = Tags(build_report(data(hostile="usual"))).found
    for name in names:
        page = build_report(data(hostile=name or "empty"))
        assert Tags(page).found <= usual, name
        assert [c for c in page if not c.isprintable() and c not in "\n\t\u200c\u200d\u00a0\u3000\U000f0000"] == []
        page.encode("utf-8")


def pages() -> list[str]:
    """Reports that have all names between them, in every place that a recording fills."""
    made = []
    for part in (NAMES[::3], NAMES[1::3], NAMES[2::3]):
        whole = data(hostile=part[0] or "empty")
        texts = [dict.fromkeys(("consumer_group", "topic", "broker_name", "client_id"), name) for name in part]
        found = [
            finding(f"{number:04}{name}", summary=name, advice=name, kind=name, **place)
            for number, (name, place) in enumerate(zip(part, texts, strict=True))
        ]
        breaks = [offset_break(topic=name, consumer_group=name, broker_name=name, cause=name) for name in part]
        gaps = [gap(reason=name, evidence=name, topic=name) for name in part]
        files = [refused(path=name, detail_key=name, reason=name, advice=name) for name in part]
        seen = {f["finding_id"]: evidence(f["summary"], who=f["summary"]) for f in found}
        more = {
            "evidence": seen,
            "breaks": Listing.of(breaks),
            "gaps": Listing.of(gaps),
            "quarantine": Listing.of(files),
        }
        made.append(build_report(dataclasses.replace(whole, findings=found, **more)))
    return made


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    yield from chromium(tmp_path_factory.mktemp("chromium"))


HANDLERS = (
    "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length"
)
ELEMENTS = (
    "script:not(body > script), img, iframe, object, embed, base, form:not(#filters), input:not(#filters input), "
    "link:not([href='data:,']), meta[http-equiv=refresh]"
)


@pytest.mark.browser
@pytest.mark.parametrize("forbidden", [True, False], ids=["as it is", "without its policy"])
def test_the_report_in_chromium(browser, tmp_path: Path, forbidden: bool) -> None:
    for html_page in pages():
        policy = '<meta http-equiv="Content-Security-Policy"'
        assert html_page.count(policy) == 1
        # Without the policy it is the escaping alone that is tested.
        html_page = html_page if forbidden else html_page.replace(policy, '<meta name="none"')
        page = Page(browser, html_page, tmp_path / "report.html", (1280, 900))
        assert page.asks("document.readyState") == "complete"
        assert len(page.all(".finding")) == COUNT // 3
        assert page.browser.title.endswith(": 100 warnings – mqreplay")
        assert page.all(ELEMENTS) == []
        assert page.asks("document.scripts.length") == 1
        assert page.asks(HANDLERS) == 0
        assert page.browser.get_log("browser") == []
        assert page.fetched() == [(tmp_path / "report.html").as_uri()]


def test_values_in_sql(spark, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    from mqreplay.cli.query import query
    from mqreplay.lake.sql import literal
    from mqreplay.settings import load_settings

    (tmp_path / "gold").mkdir()
    whole = [name.encode("utf-8", "replace").decode() for name in NAMES]  # Java has no lone surrogates to give back
    values = ", ".join(f"({number}, {literal(name)})" for number, name in enumerate(whole))
    found = query(str(tmp_path), f"SELECT * FROM VALUES {values} AS t(number, name) ORDER BY number", load_settings())
    assert [row["name"] for row in found.collect()] == whole
    bound = spark.createDataFrame([(name,) for name in whole], "name STRING")
    assert [bound.where(F.col("name") == F.lit(name)).count() for name in whole[::100]] == [1] * 3
