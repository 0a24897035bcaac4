"""ReportData -> one HTML page. Pure: no clock, no file but its templates, no network; every value is escaped."""

from __future__ import annotations

import base64
import datetime as dt
import functools
import hashlib
import json
import re
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mqreplay import __version__
from mqreplay.findings.texts import advice_of, summary_of
from mqreplay.language.language import ENGLISH, LANG_TAGS, Language, in_english, language
from mqreplay.report.coverage import DECISION_NAMES, most_helpful
from mqreplay.report.cursor_states import PLACE_COLUMNS, TITLES, in_html
from mqreplay.report.data import CAP, MOST_FINDINGS, Place, ReportData
from mqreplay.report.finding_tree import nested
from mqreplay.report.next_step import known_issue_text
from mqreplay.report.text import clock, dates, instant, iso, lasting, next_second, number, span, visible, with_code
from mqreplay.report.verdict import NightTime, level, verdict, verdict_in
from mqreplay.words.severity import WORST_FIRST

PLACES = (
    ("consumer_group", "group"),
    ("topic", "topic"),
    ("broker_name", "broker"),
    ("broker_id", "broker id"),
    ("queue_id", "queue"),
    ("client_id", "client"),
)
STYLES = ("style.css", "pictures.css", "cursor.css")
SCRIPTS = ("words.js", "report.js", "cursor.js", "timeline.js")
FILTERS = (("kind", "kind"), ("consumer_group", "group"), ("topic", "topic"), ("broker_name", "broker"))
SIGNS = {"failed": "✕", "critical": "◆", "warning": "▲", "unknown": "?", "info": "●", "quiet": "✓", "none": "·"}
SCRIPT_TEXT = re.compile(r'\bmqText\("([^"]+)"')


def build_report(data: ReportData) -> str:
    """Return the page of one cluster, self-contained, in the language of its data."""
    findings = sorted(data.findings, key=lambda f: (WORST_FIRST.index(f["severity"]), str(f["from_ts"] or "")))
    shown = findings[:MOST_FINDINGS]
    counts = {s: sum(f["severity"] == s for f in findings) for s in WORST_FIRST}
    failed = [e for e in data.expectations if not e["passed"]]
    total = data.findings_total if data.findings_total is not None else len(findings)
    words = language(data.lang)
    style, script = "".join(map(resource, STYLES)), "".join(map(resource, SCRIPTS))
    context: dict[str, Any] = {
        "data": data,
        "style": Markup(style),
        "script": Markup(script),
        "script_words": script_words(script, words),
        "policy": policy(style, script),
        "roots": nested(shown, data.evidence, data.pictures, data.commands, data.known_issues),
        "tail": f"{data.of_cluster} --warehouse …",
        "shown": len(shown),
        "total": total,
        "choices": {key: sorted({str(f[key]) for f in shown if f[key] is not None}) for key, _ in FILTERS},
        "counts": counts,
        "headline": headline(counts, level(findings, data.coverage), words),
        "level": level(findings, data.coverage),
        "verdict": verdict_in(
            verdict(findings, data.coverage, NightTime(data.first_ts, data.last_ts)), findings, words
        ),
        "helps": most_helpful(data.coverage),
        "covered": [each for each in data.coverage if each.state != "none"],
        "judged": sum(each.judged for each in data.coverage),
        "undetermined": sum(each.undetermined for each in data.coverage),
        "day": one_day(data),
        "dates": dates(
            max(filter(None, (data.first_ts and data.first_ts.date(), data.since)), default=None), data.last_ts
        ),
        "recorded": f"{clock(data.first_ts)} – {clock(data.last_ts, data.first_ts)}",
        "lasted": lasting(data.first_ts, data.last_ts, words),
        "failed": failed,
        "held": [e for e in data.expectations if e["passed"]],
        "anchors": {part.place: part.anchor for part in data.parts},
        "drawn": {part.place: [p for p in data.pictures if part.place in p.places] for part in data.parts},
        "sections": sections(data, total, len(failed), words),
    }
    page = environment(data.lang).get_template("report.html").render(context)
    return page.encode("utf-8", "replace").decode("utf-8")


def headline(counts: dict[str, int], how_bad: str, words: Language | None = None) -> str:
    """Return the title of the page: the counts of what went wrong.

    >>> headline({"critical": 0, "warning": 0, "info": 0}, "quiet")
    'no problem found'
    >>> headline({"critical": 1, "warning": 2, "info": 0}, "critical")
    '1 critical finding, 2 warnings'
    """
    numbers = [(counts["critical"], "critical finding"), (counts["warning"], "warning")]
    words = words or in_english()
    wrong = words.filled(", ").join(words.counted(count, noun) for count, noun in numbers if count)
    return wrong or words.filled("not everything was judged" if how_bad == "unknown" else "no problem found")


def policy(style: str, script: str) -> str:
    """Return the page's Content-Security-Policy: nothing is fetched, and only this style and this script apply."""
    parts = ["default-src 'none'", f"style-src {_digest(style)}", f"script-src {_digest(script)}", "img-src data:"]
    return "; ".join([*parts, "base-uri 'none'", "form-action 'none'"])


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def sections(data: ReportData, findings: int, failed: int, words: Language) -> list[tuple[str, str, str]]:
    """Return the page's sections in order: name, title in English, and the text of the link.

    A template bears each name.
    """
    counted = words.counted
    broken = words.filled("{expectations} failed", expectations=counted(failed, "expectation"))
    seen = sum(f["files"] for f in data.files)
    all_ = [
        ("findings", "Findings", counted(findings, "finding")),
        ("pictures", "The night in pictures", counted(sum(p.why_empty is None for p in data.pictures), "picture")),
        ("places", "Groups, brokers and topics", words.filled("groups, brokers and topics")),
        ("coverage", "What was judged", words.filled("what was judged")),
        ("offsets", "Breaks of offsets", counted(data.breaks.total, "offset break")),
        ("gaps", "Missing evidence", counted(data.gaps.total, "gap")),
        ("quarantine", "Quarantine", words.filled("{n} in quarantine", n=number(data.quarantine.total))),
        ("expectations", "Expectations", broken if failed else words.filled("expectations")),
        ("files", "Files", counted(seen, "file")),
    ]
    without = {"pictures": not data.pictures, "places": not data.parts}
    return [each for each in all_ if not without.get(each[0])]


def one_day(data: ReportData) -> dt.date | None:
    """Return the day of the recording, if it is of one day: then tables need not repeat it."""
    if data.first_ts is None or data.last_ts is None or data.first_ts.date() != data.last_ts.date():
        return None
    return data.first_ts.date()


def script_words(script: str, words: Language) -> Markup | None:
    """Return the texts of a script by their English texts, as JSON; None in English, which the script has."""
    if words.name == ENGLISH:
        return None
    texts = {english: words.filled(english) for english in SCRIPT_TEXT.findall(script)}
    return Markup(in_html(json.dumps(texts, ensure_ascii=False, separators=(",", ":"))))


@functools.cache
def resource(name: str) -> str:
    """Return the text of a style or a script."""
    return files("mqreplay.report").joinpath("templates", name).read_text("utf-8")


@functools.cache
def environment(lang: str = ENGLISH) -> Environment:
    """Return the environment of the templates: every value is escaped.

    In templates ``_("English {n}", n=...)`` is a text of the page, ``value|tr`` one that was made elsewhere, and
    ``row|summary`` what a finding says.
    """
    words = language(lang)

    def text(english: str, **values: object) -> str:
        return words.filled(english, **{name: visible(value) for name, value in values.items()})

    environment = Environment(
        loader=PackageLoader("mqreplay.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "tr": words.text,
        "summary": lambda row: summary_of(row, words),
        "advice": lambda row: advice_of(row, words),
        "known_issue": known_issue_text,
        "with_code": with_code,
        "number": number,
        "counted": words.counted,
        "span_of": lambda row, known_day=None: span(row["from_ts"], row["to_ts"], known_day, words),
        "clock": clock,
        "instant": instant,
        "iso": iso,
        "next_second": next_second,
        "as_head": lambda text: (text, ""),
    }
    environment.globals |= {
        "_": text,
        "lang": LANG_TAGS[lang],
        "version": __version__,
        "cap": CAP,
        "severities": WORST_FIRST,
        "signs": SIGNS,
        "decisions": DECISION_NAMES,
        "places": PLACES,
        "part_titles": TITLES,
        "place_of": Place,
        "kinds_of": {column: kind for kind, column in PLACE_COLUMNS.items()},
        "filters": FILTERS,
    }
    return environment
