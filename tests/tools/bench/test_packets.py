"""The capture with message bodies that is measured: every message is sent and pulled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bench.packets import PULLED, made_capture
from mqreplay.importer.captures.captured_records import Captures


def test_every_message_is_sent_and_pulled(tmp_path: Path) -> None:
    (tmp_path / "bodies.pcap").write_bytes(made_capture(2 * PULLED, 4096))
    captures = Captures([str(tmp_path / "bodies.pcap")])
    records = list(captures.records())
    assert Counter(stem for stem, _ in records) == {"heartbeats": 1, "sends": 2 * PULLED, "pull_log": 2}
    assert {fields["size"] for stem, fields in records if stem == "sends"} == {4096}
    assert [fields["msg_count"] for stem, fields in records if stem == "pull_log"] == [PULLED, PULLED]
    assert not captures.left_out
