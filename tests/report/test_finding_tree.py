"""Findings below their causes."""

from __future__ import annotations

from typing import Any

from mqreplay.report.finding_tree import FindingView, nested
from mqreplay.report.pictures.drawing import Picture
from report_data import finding


def shape(views: list[FindingView]) -> list[Any]:
    return [[v.row["finding_id"], *shape(v.effects)] for v in views]


def test_effects_of_effects_are_nested_and_deeper_ones_lie_at_the_deepest_level():
    chain = [finding(str(n), follows_from=str(n - 1) if n else None) for n in range(6)]
    assert shape(nested(chain)) == [["0", ["1", ["2", ["3"], ["4"], ["5"]]]]]
    assert nested(chain)[0].count == 6


def test_findings_that_follow_from_each_other_are_all_shown():
    found = [finding("a", follows_from="b"), finding("b", follows_from="a"), finding("c", follows_from="a")]
    roots = nested(found)
    assert sorted(v.row["finding_id"] for v in roots) + [e.row["finding_id"] for v in roots for e in v.effects] == [
        "a",
        "b",
        "c",
    ]


def test_a_cause_is_as_bad_as_its_worst_effect():
    found = [finding("w"), finding("i", severity="info"), finding("e", severity="critical", follows_from="i")]
    assert shape(nested(found)) == [["i", ["e"]], ["w"]]


def test_a_finding_knows_the_pictures_that_mark_it():
    picture = Picture("lag", "Lag", "", links=("a", "gone"))
    views = {v.row["finding_id"]: v for v in nested([finding("a"), finding("b")], pictures=[picture])}
    assert views["a"].pictures == [picture]
    assert views["b"].pictures == []


def test_a_finding_knows_its_known_issues():
    issues = [{"finding_id": name, "issue": number} for name, number in (("a", 1), ("gone", 1), ("a", 2))]
    views = {v.row["finding_id"]: v for v in nested([finding("a"), finding("b")], known_issues=issues)}
    assert [issue["issue"] for issue in views["a"].known_issues] == [1, 2]
    assert views["b"].known_issues == []
