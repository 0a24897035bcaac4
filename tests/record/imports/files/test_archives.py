"""Archives: links out of them, bombs, and torn ones."""

from __future__ import annotations

import datetime as dt
import io
import json
import tarfile
import zipfile

import pytest

from mqreplay.cli.command_line import main
from mqreplay.record.imports.files import archives
from mqreplay.record.imports.files.sources import source_of
from record.imports.copied_files import copies, run, snapshots_of, tarball, zipped


def test_an_archive_leads_nowhere_else(tmp_path, capsys):
    file = next(c[2] for c in copies() if c[2].name == "consumerOffset.json")
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        for name in ("../outside/consumerOffset.json.1795228794", "/etc/broker-a-0/consumerOffset.json.1795228795"):
            info = tarfile.TarInfo(name)
            info.size = file.stat().st_size
            tar.addfile(info, file.open("rb"))
        link = tarfile.TarInfo("broker-a-0/topics.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    report = run([tmp_path / "bad.tar"], tmp_path / "out", capsys)
    whys = " ".join(one["why"] for one in report["not_recognised"])
    assert "leads out" in whys
    assert "link or a device" in whys
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.tar", "out"]
    assert list(snapshots_of(tmp_path / "out")) == [("broker-a-0", 1795228795, "consumerOffset.json")]


@pytest.mark.parametrize("bound", [{"bytes_left": 1 << 20}, {"members_left": 3}])
@pytest.mark.parametrize("name", ["bomb.zip", "bomb.tar.gz"])
def test_a_bomb_is_reported_and_leaves_nothing(name, bound, tmp_path):
    sizes = [4 << 20] if "bytes_left" in bound else [9] * 5
    if name.endswith("zip"):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for at, size in enumerate(sizes):
                archive.writestr(f"broker-a-0/consumerOffset.json.{1795228794 + at}", b"0" * size)
    else:
        with tarfile.open(tmp_path / name, "w:gz") as tar:
            for at, size in enumerate(sizes):
                info = tarfile.TarInfo(f"broker-a-0/consumerOffset.json.{1795228794 + at}")
                info.size = size
                tar.addfile(info, io.BytesIO(b"0" * size))
    (tmp_path / "spool").mkdir()
    spool = archives.Spool(tmp_path / "spool", dt.UTC, lambda member: True, **bound)
    assert archives.members_of(source_of(name, tmp_path / name, name), spool) == []
    [(path, why)] = spool.refused
    assert path == name
    assert "unpack it yourself" in why
    assert sum(file.stat().st_size for file in (tmp_path / "spool").iterdir()) <= 1 << 20


@pytest.mark.parametrize("name", ["night.tar.gz", "night.zip", "night.tgz", "a.tar"])
def test_a_torn_archive_is_reported(name, tmp_path, capsys):
    build = zipped if name.endswith("zip") else tarball
    build(tmp_path)
    whole = next(tmp_path.glob("night.*")).read_bytes()
    for cut in (0, 1, 100, len(whole) // 2):
        source = tmp_path / str(cut) / name
        source.parent.mkdir()
        source.write_bytes(whole[:cut])
        assert main(["import", str(source), "--out", str(tmp_path / f"out{cut}"), "--json"]) in (0, 2)
        report = json.loads(capsys.readouterr().out)
        assert "torn or damaged" in report["not_recognised"][0]["why"]
