"""docs/symptoms.md: each example is what mqreplay says today, and import advises by what it found."""

from __future__ import annotations

from pathlib import Path

import pytest

from import_shapes import import_folder
from mqreplay.findings.registry import SHIPPED
from mqreplay.importer.symptoms import Symptom, next_pieces, symptoms
from mqreplay.settings import load_settings
from tests_shared import ROOT, rows_at, run

PIECES, SYMPTOMS = symptoms()
EXAMPLES = ROOT / "tests/importer/symptoms"
OF_FOLDERS = [symptom for symptom in SYMPTOMS if (EXAMPLES / symptom.example).is_dir()]
OF_SAMPLE = [symptom for symptom in SYMPTOMS if (ROOT / "data/sample" / symptom.example).is_dir()]


def by_title(some: list[Symptom]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("symptom", some, ids=[one.title for one in some])


@by_title(OF_SAMPLE)
def test_an_example_of_the_sample(symptom: Symptom, night) -> None:
    found = {row["summary"]: row["kind"] for row in rows_at(night.root, "gold.finding")}
    assert set(symptom.says) <= set(found)
    assert {found[each] for each in symptom.says} <= set(symptom.kinds)


@by_title(OF_FOLDERS)
def test_an_example_of_a_folder(symptom: Symptom, tmp_path: Path) -> None:
    imported = import_folder(EXAMPLES / symptom.example, tmp_path / "recording")
    assert imported.status == 0, imported.error
    assert any(symptom.place in each for each in imported.report["would_help"]), symptom.place
    root, settings = str(tmp_path / "warehouse"), load_settings()
    run("ingest", root, settings, lambda what: None, recordings=[str(imported.recording)], cluster=None)
    [outcome] = run("replay", root, settings, lambda what: None)
    assert [finding["summary"] for finding in outcome.findings] == list(symptom.says)
    assert {finding["kind"] for finding in outcome.findings} <= set(symptom.kinds)


def test_each_symptom_has_an_example_and_each_folder_a_symptom() -> None:
    assert len(OF_FOLDERS) + len(OF_SAMPLE) == len(SYMPTOMS) >= 9
    assert {folder.name for folder in EXAMPLES.iterdir()} == {symptom.example for symptom in OF_FOLDERS}
    assert {name for symptom in SYMPTOMS for name in symptom.pieces} == PIECES.keys()
    assert {kind for symptom in SYMPTOMS for kind in symptom.kinds} <= SHIPPED.keys()


@by_title(list(SYMPTOMS))
def test_the_advice_depends_on_what_was_found(symptom: Symptom) -> None:
    first = PIECES[symptom.pieces[0]]
    [sign, *_] = sorted(symptom.signs)
    advised = next_pieces({sign})
    assert all(symptom.place in each for each in advised[:1])
    everything = {gives for piece in PIECES.values() for gives in piece.gives}
    assert next_pieces(everything) == []
    if not first.gives & {sign}:
        assert any(each.startswith(first.collect[:20]) for each in advised)
