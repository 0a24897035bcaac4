from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from mqreplay.cli.doctor.files import examine_file
from mqreplay.cli.doctor.line_file import SHOWN
from mqreplay.cli.doctor.verdict import Verdict

COMMIT = (Path(__file__).parents[2] / "decode" / "data" / "offset_commits.jsonl").read_bytes().splitlines(True)[0]


def examined(folder: Path, data: bytes, name: str = "offset_commits.jsonl") -> Verdict:
    (folder / name).write_bytes(data)
    return examine_file(str(folder / name))


@pytest.mark.parametrize("name", ["offset_commits.jsonl", "offset_commits.0003.jsonl.gz"])
def test_whole(tmp_path: Path, name: str) -> None:
    data = COMMIT * 3
    verdict = examined(tmp_path, gzip.compress(data) if name.endswith("gz") else data, name)
    assert (verdict.kind, verdict.whole) == ("offset_commits", True)
    assert ("lines", "3 lines, 3 good records, 0 bad lines") in verdict.lines


def test_bad_lines_have_numbers_reasons_and_text(tmp_path: Path) -> None:
    verdict = examined(tmp_path, COMMIT + b"\n" + b'{"ts":1,\t"ts":}\n' + COMMIT + b"[]\n" + COMMIT[:20])
    assert not verdict.whole
    assert ("lines", "5 lines, 2 good records, 3 bad lines") in verdict.lines
    shown = dict(verdict.lines)
    assert shown["line 3"].startswith("bad_syntax: ")
    assert shown["line 5"].startswith("wrong_type: ")
    assert shown["line 6"].startswith("torn: the file ends within this line: ")
    assert ("text", '{"ts":1,⟨TAB⟩"ts": ▶ } ⟨end⟩') in verdict.lines
    bad = verdict.facts["bad"]
    assert [each["line"] for each in bad] == [3, 5, 6]
    assert bad[0]["place"]["line"] == 3


def test_only_the_first_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    verdict = examined(tmp_path, b"x\n" * 5_000 + COMMIT)
    assert ("lines", "5,001 lines, 1 good record, 5,000 bad lines") in verdict.lines
    assert ("bad", "5,000 bad_syntax") in verdict.lines
    assert [what for what, _ in verdict.lines if what.startswith("line ")] == [f"line {n}" for n in range(1, SHOWN + 1)]
    assert ("", "… and 4,995 bad lines more") in verdict.lines
    assert [what for what, _ in verdict.lines].count("mend") == 1


def test_a_torn_gzip_keeps_what_stands_before_the_tear(tmp_path: Path) -> None:
    lines = b"".join(COMMIT.replace(b'"ts":', b'"n":%d,"ts":' % n) for n in range(2_000))
    packed = gzip.compress(lines)
    verdict = examined(tmp_path, packed[: len(packed) // 2], "offset_commits.jsonl.gz")
    assert verdict.facts["codes"] == {"torn_gzip": 1}
    assert 0 < int(str(verdict.facts["records"])) < 2_000


def test_lines_of_no_known_kind_need_only_be_objects(tmp_path: Path) -> None:
    verdict = examined(tmp_path, b'{"a":1}\n{"a":1,"a":2}\n', "index.jsonl")
    assert verdict.kind == "jsonl"
    assert verdict.facts["codes"] == {"duplicate_key": 1}


def test_a_long_bad_line_is_shown_without_its_text(tmp_path: Path) -> None:
    verdict = examined(tmp_path, b'{"a":"' + b"x" * 10_000 + b'"]\n', "index.jsonl")
    assert verdict.facts["codes"] == {"bad_syntax": 1}
    assert "text" not in dict(verdict.lines)


def test_no_line_at_all_is_whole(tmp_path: Path) -> None:
    assert examined(tmp_path, b"").whole


def test_polled_offsets(tmp_path: Path) -> None:
    lines = b'{"ts":1795228794427,"offsetTable":{"T@g":{"0":5}}}\n{"ts":1795228799427,"changed":{"T@g":{"0":"6"}}}\n'
    verdict = examined(tmp_path, gzip.compress(lines), "consumerOffset.jsonl.gz")
    assert verdict.kind == "polled_offsets"
    assert ("lines", "2 lines, 1 good record, 1 bad line") in verdict.lines
