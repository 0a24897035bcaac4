"""A recording gets its name when all of it is on the disk."""

from __future__ import annotations

import os

from mqreplay.record.imports import staging


def test_all_is_synced_before_the_rename_and_the_name_after(tmp_path, monkeypatch):
    out, seen = tmp_path / "rec", []
    monkeypatch.setattr(os, "sync", lambda: seen.append((out.exists(), sorted(os.listdir(staging.staging_of(out))))))
    monkeypatch.setattr(staging, "sync", lambda path: seen.append((out.exists(), path)))
    with staging.staged(out) as folder:
        (folder / "brokers.json").write_text("{}")
    assert seen == [(False, ["brokers.json"]), (True, tmp_path)]
