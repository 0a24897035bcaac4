"""A packet capture alone of groups that consume by POP: its messages and assignments are judged, and nothing alarms."""

from __future__ import annotations

import lzma

import pytest

from mqreplay.cli.__main__ import main
from night.made_nights import DATA, JudgedNight, judge_folder


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> JudgedNight:
    folder = tmp_path_factory.mktemp("pop")
    capture = folder / "pop.pcap"
    capture.write_bytes(lzma.decompress((DATA / "pop-5.3.3.pcap.xz").read_bytes()))
    assert main(["import", str(capture), "--out", str(folder / "recording")]) == 0
    return judge_folder(folder)


def test_nothing_is_found(judged):
    assert judged.findings == []


@pytest.mark.parametrize(
    ("table", "counts"),
    [
        ("gold.pop_receipt", {"agree": 692, "undetermined": 63}),
        ("gold.pop_assignment", {"agree": 48, "undetermined": 14}),
    ],
)
def test_messages_and_assignments_are_judged(judged, table, counts):
    assert dict(judged.table(table).group_by("judgement").len().rows()) == counts


def test_no_decision_differs(judged):
    assert judged.table("gold.judgement").filter(judgement="differ").to_dicts() == []
