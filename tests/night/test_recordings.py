"""Patterns of recordings: those of a shell, for folders only."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqreplay.night.recordings import matching_recordings
from mqreplay.words.errors import InputError

FOLDERS = ("orders/2026-11-23", "orders/2026-11-24", "pay/2026-11-24", "pay/.hidden", "[odd]/2026-11-24")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in FOLDERS:
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "pay" / "notes.txt").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*/2026-11-24", ["[odd]/2026-11-24", "orders/2026-11-24", "pay/2026-11-24"]),
        ("./p*/2026-11-2?/", ["./pay/2026-11-24"]),
        ("orders/2026-11-2[3]", ["orders/2026-11-23"]),
        ("pay/*", ["pay/2026-11-24"]),
        ("pay/.h*", ["pay/.hidden"]),
        ("*", ["[odd]", "orders", "pay"]),
        ("[odd]/2026-11-24", ["[odd]/2026-11-24"]),  # the name of a folder
        ("orders/none", ["orders/none"]),  # no pattern: whoever opens it says that it is missing
        ("/*/none-of-this-name", None),
        ("*/2026-12-*", None),
        ("pay/notes.txt/*", None),
    ],
)
def test_patterns_match_as_in_a_shell(folder: Path, pattern: str, found: list[str] | None) -> None:
    if found is None:
        with pytest.raises(InputError, match="no recording matches"):
            matching_recordings(pattern)
    else:
        assert matching_recordings(pattern) == found


def test_absolute_patterns(folder: Path) -> None:
    assert matching_recordings(f"{folder}/*/2026-11-23") == [f"{folder}/orders/2026-11-23"]
