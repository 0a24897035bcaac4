"""A redacted bundle has no name of the recording, and replays to the same findings."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from mqreplay.bundle.bundle_command import bundle
from mqreplay.bundle.names import Names
from mqreplay.bundle.redact import DAMAGED, redact
from mqreplay.settings import Settings
from mqreplay.words.errors import InputError
from tests_shared import ROOT, run, table_at

DATA = ROOT / "tests" / "data"
SHORTEST = 4  # characters: shorter names are parts of other words
# Groups of kinds550 that are also words of RocketMQ (behind keys of proxies; in the field unitMode), and a topic of its
# own with its group.
RESERVED = {"broadcast", "unit", "DefaultHeartBeatSyncerTopic@CID_DefaultHeartBeatSyncerTopic"}


def unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


def contents(folder: Path) -> bytes:
    """Every path and every byte below a folder, gzipped files also uncompressed."""
    found = b""
    for path in sorted(folder.rglob("*")):
        found += str(path.relative_to(folder)).encode() + b"\n"
        if path.is_file():
            data = path.read_bytes()
            found += data + (gzip.decompress(data) if path.suffix == ".gz" else b"") + b"\n"
    return found


def redacted(lines: list[str], kind: str) -> list[str]:
    names = Names()
    for line in lines:
        redact(line, kind, names)
    names.number()
    return [redact(line, kind, names) for line in lines]


@pytest.mark.parametrize("name", ["pop533-proxy", pytest.param("kinds550", marks=pytest.mark.long)])
def test_a_redacted_bundle_replays_to_the_same_findings_without_a_name(name: str, tmp_path: Path) -> None:
    recording = unpacked(DATA / f"{name}.tar.xz", tmp_path / name)
    mapping = tmp_path / "names.json"
    out = tmp_path / "shared.tar.xz"
    bundle(str(recording), str(out), io.StringIO(), is_redacted=True, mapping=str(mapping), as_json=False)
    shared = unpacked(out, tmp_path / "got") / "shared"
    data = contents(shared)
    replaced = json.loads(mapping.read_text())
    addresses = [*replaced["ip"], *(bytes(map(int, ip.split("."))).hex().upper() for ip in replaced["ip"])]
    kinds = ("topic", "group", "broker", "client", "host")
    # RocketMQ's own names stay as they are.
    named = [
        old for kind in kinds for old, new in replaced.get(kind, {}).items() if old != new and len(old) >= SHORTEST
    ]
    kept = {old for old in [*replaced["client id"], *replaced["cluster"], *addresses, *named] if old.encode() in data}
    assert kept <= RESERVED
    seen = []
    for place, folder in (("before", recording), ("after", shared)):
        warehouse = str(tmp_path / place)
        run("nightly", warehouse, Settings(), lambda _: None, recordings=[str(folder)])
        found = table_at(warehouse, "gold.finding").select("kind", "severity", "from_ts", "to_ts")
        judged = {
            table: Counter(table_at(warehouse, table)["judgement"]) for table in ("gold.judgement", "gold.allocation")
        }
        seen.append((Counter(found.rows()), judged))
    assert seen[0] == seen[1]
    assert seen[0][0]


def test_client_ids_sort_as_before() -> None:
    clients = ["10.0.0.1@7", "10.0.0.10@1", "10.0.0.9@3#8", "shop@x"]
    lines = redacted([f'{{"client_id":"{client}"}}' for client in clients], "pull_log")
    new = [json.loads(line)["client_id"] for line in lines]
    assert sorted(range(4), key=lambda i: new[i]) == sorted(range(4), key=lambda i: clients[i])


def test_hash_codes_follow_the_tags_and_unknown_text_does_not_pass() -> None:
    (line,) = redacted(['{"tags":"A","codeSet":[65],"oops":"ACME","remark":"FOUND ACME"}'], "pull_log")
    assert "ACME" not in line
    assert '"remark":"FOUND ***"' in line
    assert '"codeSet":[-881290988]' in line
    assert redacted(['{"topic":"torn'], "pull_log") == [DAMAGED]


def test_a_bundle_has_no_capture_and_no_log_and_replaces_no_file(tmp_path: Path) -> None:
    recording = tmp_path / "night"
    recording.mkdir()
    (recording / "pull_log.jsonl").write_text('{"topic":"t"}\n')
    (recording / "wire.pcap").write_bytes(b"secret")
    out = io.StringIO()
    file = str(tmp_path / "a.tar.gz")
    bundle(str(recording), file, out, is_redacted=False, mapping=None, as_json=False)
    with tarfile.open(file) as tar:
        assert sorted(tar.getnames()) == ["a/BUNDLE.json", "a/pull_log.jsonl"]
    assert "1  packet captures" in out.getvalue()
    with pytest.raises(InputError, match="exists already"):
        bundle(str(recording), file, out, is_redacted=False, mapping=None, as_json=False)
    with pytest.raises(InputError, match="or name a new folder"):
        bundle(str(recording), str(tmp_path / "a.zip"), out, is_redacted=False, mapping=None, as_json=False)


def test_a_folder_has_the_files_of_an_archive(tmp_path: Path) -> None:
    recording = unpacked(DATA / "pop533-proxy.tar.xz", tmp_path / "night")
    for name in ("a.tar.gz", "b"):
        left = tmp_path / f"{name}.unfinished"
        left.mkdir()  # by a run that was killed
        (left / "half.jsonl").touch()
        bundle(str(recording), str(tmp_path / name), io.StringIO(), is_redacted=True, mapping=None, as_json=False)
    assert contents(tmp_path / "b") == contents(unpacked(tmp_path / "a.tar.gz", tmp_path / "got") / "a")
    assert not list(tmp_path.glob("*.unfinished"))


@pytest.mark.parametrize("is_redacted", [False, True])
def test_bodies_of_messages_never_leave_and_what_is_removed_is_counted(is_redacted: bool, tmp_path: Path) -> None:
    recording = tmp_path / "night"
    recording.mkdir()
    line = '{"topic":"orders","body":"s3cret \\"words\\"","unexpected":"s3cret name"}'
    (recording / "produce_log.jsonl").write_text(f"{line}\n")
    out = io.StringIO()
    file = tmp_path / "a.tar.gz"
    bundle(str(recording), str(file), out, is_redacted=is_redacted, mapping=None, as_json=False)
    shared = unpacked(file, tmp_path / "got") / "a"
    (written,) = (json.loads(each) for each in (shared / "produce_log.jsonl").read_text().splitlines())
    assert "s3cret" not in str(written.get("body"))
    manifest = json.loads((shared / "BUNDLE.json").read_text())
    if is_redacted:
        assert b"s3cret" not in contents(shared)
        assert sum(manifest["removed"].values()) >= 1
        for what, count in manifest["removed"].items():
            assert f"{count}  {what}" in out.getvalue()
        assert manifest["replaced"]["topic"] == 1
    else:
        assert written["unexpected"] == "s3cret name"
        assert "--redact replaces them" in out.getvalue()
