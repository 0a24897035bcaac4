"""Findings in the formats of other programs: Markdown, JUnit XML and SARIF."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from xml.etree import ElementTree

from mqreplay import __version__
from mqreplay.answers.mutes import mark_text
from mqreplay.findings.every import KINDS
from mqreplay.findings.shape import PLACE, place_text
from mqreplay.findings.texts import advice_of, summary_of
from mqreplay.language.language import Language
from mqreplay.report.next_step import advice_parts, names_of
from mqreplay.words.printable import json_text, printable
from mqreplay.words.time_span import time_span

Finding = Mapping[str, Any]
LEVELS: Final = {"critical": "error", "warning": "warning", "info": "note"}
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
MARKS: Final = {ord(character): f"\\{character}" for character in "\\|`*[]"} | {ord("<"): "&lt;", ord("&"): "&amp;"}


def time_of(finding: Finding) -> str:
    """Return the time of a finding; an open one has no end."""
    return time_span(finding["from_ts"], None if finding.get("open_since") else finding["to_ts"])


def place_of(finding: Finding) -> str:
    """Return where it was: "pay-group/pay-topic/broker-a/0"."""
    return place_text(finding[name] for name in PLACE)


def markdown(findings: Sequence[Finding], with_cluster: bool, words: Language) -> str:
    """Return a table, one row a finding."""
    heads = ["severity", "kind", *(["cluster"] if with_cluster else []), "time", "id", "summary"]
    lines = [_line(map(words.text, heads)), _line(["---"] * len(heads))]
    for each in findings:
        where = [each["cluster"]] if with_cluster else []
        state = f"{words.text('Open.')} " if each["open_since"] else ""
        short = str(each["finding_id"])[:8]
        summary = " ".join(filter(None, (f"{state}{summary_of(each, words)}", words.text(mark_text(each)))))
        cells = [words.text(each["severity"]), each["kind"], *where, words.text(time_of(each)), short, summary]
        lines.append(_line([printable(cell).translate(MARKS) for cell in cells]))
    return "\n".join(lines) if findings else words.text("No findings.")


def junit(findings: Sequence[Finding], words: Language) -> str:
    """Return JUnit XML: a suite a cluster, a case a finding. Warnings and worse fail unless muted."""
    top = ElementTree.Element("testsuites", name="mqreplay", tests=str(len(findings)), failures=_failures(findings))
    for cluster in dict.fromkeys(each["cluster"] for each in findings):
        here = [each for each in findings if each["cluster"] == cluster]
        numbers = {"tests": str(len(here)), "failures": _failures(here), "errors": "0", "skipped": "0"}
        suite = ElementTree.SubElement(top, "testsuite", {"name": printable(cluster), **numbers})
        for each in here:
            name = printable(f"{each['kind']} {place_of(each)} {str(each['finding_id'])[:8]}".replace("  ", " "))
            names = {"classname": printable(f"{cluster}.{each['kind']}"), "name": name, "time": _seconds(each)}
            case = ElementTree.SubElement(suite, "testcase", names)
            summary, when = summary_of(each, words), words.text(time_of(each))
            mark = f"{words.text(mark_text(each))} ".lstrip()
            text = printable(f"{when}: {summary} {mark}{_advice(each, words)}".rstrip())
            if not _fails(each):
                ElementTree.SubElement(case, "system-out").text = text
            else:
                kind = {"message": printable(summary), "type": each["severity"]}
                ElementTree.SubElement(case, "failure", kind).text = text
    ElementTree.indent(top)
    return ElementTree.tostring(top, encoding="unicode", xml_declaration=True)


def sarif(findings: Sequence[Finding], words: Language) -> str:
    """Return SARIF 2.1.0: a rule a kind, a result a finding. Its place is a logical location: no file is at fault."""
    kinds = sorted({str(each["kind"]) for each in findings})
    driver = {"name": "mqreplay", "semanticVersion": __version__, "rules": [_rule(kind, words) for kind in kinds]}
    results = [_result(each, kinds.index(each["kind"]), words) for each in findings]
    run = {"tool": {"driver": driver}, "results": results}
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _rule(name: str, words: Language) -> dict[str, Any]:
    kind = KINDS.get(name)
    if kind is None:  # of a package that is not installed here
        return {"id": name}
    meaning, rule, advice = (kind.text(part, words.name) for part in ("meaning", "rule", "advice"))
    texts = {"shortDescription": meaning or rule, "fullDescription": rule, "help": advice}
    return {"id": name, **{key: {"text": text} for key, text in texts.items()}}


def _result(finding: Finding, rule: int, words: Language) -> dict[str, Any]:
    place = "/".join(filter(None, (str(finding["cluster"]), place_of(finding))))
    more = {name: finding[name] for name in ("cluster", *PLACE, "confidence", "follows_from")}
    times = {name: _iso(finding[name]) for name in ("from_ts", "to_ts", "open_since")}
    mark = mark_text(finding)
    muted = {"suppressions": [{"kind": "external", "justification": words.text(mark)}]} if mark else {}
    return {
        "ruleId": finding["kind"],
        "ruleIndex": rule,
        "level": LEVELS[finding["severity"]],
        "message": {"text": summary_of(finding, words)},
        "locations": [{"logicalLocations": [{"fullyQualifiedName": place}]}],
        "partialFingerprints": {"findingId/v1": finding["finding_id"]},
        **muted,
        "properties": {name: value for name, value in (more | times).items() if value is not None},
    }


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _failures(findings: Iterable[Finding]) -> str:
    return str(sum(map(_fails, findings)))


def _fails(finding: Finding) -> bool:
    return finding["severity"] != "info" and not mark_text(finding)


def _advice(finding: Finding, words: Language) -> str:
    return "`".join(advice_parts(advice_of(finding, words), names_of(dict(finding))))


def _seconds(finding: Finding) -> str:
    if finding["from_ts"] is None or finding["to_ts"] is None:
        return "0"
    return f"{(finding['to_ts'] - finding['from_ts']).total_seconds():.3f}"


def _iso(value: dt.datetime | None) -> str | None:
    return None if value is None else value.isoformat()
