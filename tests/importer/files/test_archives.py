"""Archives: links out of them, bombs, and torn ones."""

from __future__ import annotations

import bz2
import copy
import datetime as dt
import gzip
import io
import json
import lzma
import tarfile
import zipfile

import pytest

from importer.copied_files import copies, run, snapshots_of, tarball, zipped
from mqreplay.cli.command_line import main
from mqreplay.importer.files import archives
from mqreplay.importer.files.sources import source_of


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


LINE = b"2026-11-21 00:00:00 INFO BrokerControllerScheduledThread1 - hello hello\n"
LOG = LINE * (1 << 16)  # 4.8 MB


def deflated(members):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def tar_of(content):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        info = tarfile.TarInfo("broker.log")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def unpacked(name, data, folder):
    """(paths of members, [(path, why)], bytes left on disk) of an archive."""
    (folder / name).write_bytes(data)
    (folder / "spool").mkdir()
    spool = archives.Spool(folder / "spool", dt.UTC, lambda member: True)
    members = archives.members_of(source_of(name, folder / name, name), spool)
    size = sum(file.stat().st_size for file in (folder / "spool").iterdir())
    return [member.path for member in members], spool.refused, size


@pytest.mark.parametrize("shift", [0, 40])
def test_members_that_share_bytes_are_refused(shift, tmp_path):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", LINE * 9)
        # The second member begins in the data of the first, or is the first again.
        twin = copy.copy(archive.filelist[0])
        twin.filename, twin.header_offset = "b.log", shift
        archive.filelist.insert(0, twin)
    members, [(path, why)], size = unpacked("night.zip", data.getvalue(), tmp_path)
    assert (members, path, size) == ([], "night.zip", 0)
    assert "its members overlap" in why
    assert "check where it comes from" in why


def test_members_in_another_order_than_their_bytes_are_read(tmp_path):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a.log", "b.log"):
            archive.writestr(zipfile.ZipInfo(name), LINE)
        archive.filelist.reverse()
    assert unpacked("night.zip", b"#!/bin/sh\n" + data.getvalue(), tmp_path)[:2] == (
        ["night.zip/b.log", "night.zip/a.log"],
        [],
    )


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("night.zip", lambda content: deflated({"a.log": LINE, "broker.log": content})),
        ("night.tar.gz", lambda content: gzip.compress(tar_of(content))),
        ("night.tar.bz2", lambda content: bz2.compress(tar_of(content))),
        ("night.tar.xz", lambda content: lzma.compress(tar_of(content))),
    ],
)
def test_an_archive_of_a_ratio_beyond_logs_is_refused(name, pack, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_DEFLATED", (1 << 20, 600))
    monkeypatch.setattr(archives, "_DENSE", (1 << 20, 2000))
    members, [(path, why)], size = unpacked(name, pack(bytes(8 << 20)), tmp_path)
    assert (members, path, size) == ([], name, 0)
    assert "check where it comes from; if it is right, unpack it yourself" in why


@pytest.mark.parametrize("minimum", [1 << 20, 1 << 30])
def test_an_archive_in_an_archive_counts_for_both(minimum, tmp_path, monkeypatch):
    """One repeated line is packed 294 times, and what is packed of it 12 times more in each further zip."""
    monkeypatch.setattr(archives, "_DEFLATED", (1 << 20, 600))
    monkeypatch.setattr(archives, "_DENSE", (minimum, 2000))
    inner = deflated({"broker.log": LOG * 4})
    members, refused, size = unpacked("night.zip", deflated({"a.log": LINE, "in.zip": inner}), tmp_path)
    if minimum == 1 << 20:
        assert (members, size) == (["night.zip/a.log"], len(LINE))
        assert [path for path, _ in refused] == ["night.zip/in.zip"]
    else:
        assert (members, refused) == (["night.zip/a.log", "night.zip/in.zip/broker.log"], [])


@pytest.mark.parametrize("name", ["night.zip", "night.tar.xz"])
def test_a_log_of_one_line_is_read(name, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "_DEFLATED", (1 << 20, archives._DEFLATED[1]))
    data = deflated({"broker.log": LOG}) if name.endswith("zip") else lzma.compress(tar_of(LOG))
    assert unpacked(name, data, tmp_path) == ([f"{name}/broker.log"], [], len(LOG))
