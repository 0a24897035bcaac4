"""Copies of the sample's snapshot files, and a run of the import, for tests."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import tarfile
import zipfile

from mqreplay.cli.command_line import main
from tests_shared import ROOT

NIGHT = ROOT / "data/sample/orders-4.9.7"
EACH = 12  # copies of a broker, of those with several in a second the first


def copies():
    """(broker, epoch ms, file), no two of a second."""
    found = []
    for broker in sorted((NIGHT / "snapshots").iterdir()):
        if broker.name.startswith("broker"):
            folders = sorted(broker.iterdir())[:EACH]
            found += [(broker.name, int(folder.name), file) for folder in folders for file in sorted(folder.iterdir())]
    return found


def iso(ms, hours=0):
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC) + dt.timedelta(hours=hours)


def put(to, file, ms=None):
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)
    if ms is not None:
        os.utime(to, ns=(ms * 10**6, ms * 10**6))


def epoch_names(root):
    for broker, ms, file in copies():
        put(root / broker / f"{file.name}.{ms}", file)


def iso_folders(root):
    for broker, ms, file in copies():
        put(root / iso(ms).strftime("%Y-%m-%dT%H-%M-%SZ") / broker / file.name, file)


def last_changes(root):
    for at, (broker, ms, file) in enumerate(copies()):
        put(root / broker / str(at % 7) / str(at) / file.name, file, ms)


def tarball(root):
    last_changes(root / "in")
    with tarfile.open(root / "night.tar.gz", "w:gz") as tar:
        tar.add(root / "in", "config")
    shutil.rmtree(root / "in")


def zipped(root):
    iso_folders(root / "in")
    with zipfile.ZipFile(root / "night.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(p for p in (root / "in").rglob("*") if p.is_file()):
            archive.write(file, file.relative_to(root))
    shutil.rmtree(root / "in")


def run(paths, out, capsys, *options, status=0):
    """The report of an import."""
    assert main(["import", *map(str, paths), "--out", str(out), "--json", *options]) == status
    captured = capsys.readouterr()
    return json.loads(captured.out) if captured.out else captured.err


def snapshots_of(recording, by_second=True):
    """Contents by broker, time and name. A name with seconds has lost the milliseconds."""
    found = {}
    for file in sorted((recording / "snapshots").rglob("*")):
        if file.is_file():
            ms = int(file.parent.name)
            found[file.parent.parent.name, ms // 1000 if by_second else ms, file.name] = file.read_bytes()
    return found


WANTED = {(broker, ms // 1000, file.name): file.read_bytes() for broker, ms, file in copies()}
