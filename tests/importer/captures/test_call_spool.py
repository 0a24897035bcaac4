"""Calls of captures that wait on disk until their names are known."""

from __future__ import annotations

import errno
import os
from io import BytesIO
from pathlib import Path

import pytest

from decode.capture.test_lines import register
from decode.capture.wire import Talk, command, framed, heartbeat, pcap
from importer.captures.small_captures import CAPTURE, import_captures
from mqreplay.decode.capture.calls import Call, Calls
from mqreplay.decode.capture.messages import without_messages
from mqreplay.decode.capture.packets import segments
from mqreplay.importer.captures import call_spool
from mqreplay.importer.captures.call_spool import CallSpool
from mqreplay.words.errors import OwnDiskError


def calls() -> list[Call]:
    talk = Talk()
    sent = [talk.ask(heartbeat("c@1", 1)), talk.answer(command(0, 1, 1)), talk.ask(command(10, 2, body=b"m" * 5000))]
    sent += [talk.answer(command(0, 2, 1, {"queueOffset": "7"})), talk.ask(command(11, 3)), talk.ask(command(999, 4))]
    return list(Calls(segments(BytesIO(pcap(framed(sent))))))


@pytest.mark.parametrize("batch_bytes", [0, 1 << 20])
def test_calls_come_back_in_order_without_messages(tmp_path: Path, monkeypatch, batch_bytes: int) -> None:
    monkeypatch.setattr(call_spool, "_BATCH_BYTES", batch_bytes)
    spool = CallSpool(tmp_path)
    assert list(spool.keep(calls())) == calls(), "those who ask for names get all of them"
    kept = list(spool)
    assert kept == [without_messages(call) for call in calls() if call.request.code != 999]
    assert [(call.request.body, call.request.body_bytes) for call in kept if call.request.code == 10] == [(b"", 5000)]
    assert os.listdir(tmp_path) == [], "a run that is killed leaves no file"


def test_a_disk_that_is_full_is_no_error_of_the_capture(tmp_path: Path, monkeypatch) -> None:
    spool = CallSpool(tmp_path)

    class Full(BytesIO):
        def write(self, _: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spool, "_file", Full())
    with pytest.raises(OwnDiskError, match="No space left"):
        list(spool.keep(calls()))


def test_of_several_captures_a_damaged_one_does_not_end_the_others(tmp_path: Path) -> None:
    damaged = bytearray(CAPTURE.read_bytes())
    damaged[100_000] ^= 1
    (tmp_path / "damaged.pcap.gz").write_bytes(damaged)
    talk = Talk()
    (tmp_path / "sound.pcap").write_bytes(pcap(framed([register(), talk.ask(heartbeat("c@1", 1))])))
    reported = import_captures([tmp_path / "damaged.pcap.gz", tmp_path / "sound.pcap"], tmp_path / "out")
    assert reported["records"] == {"heartbeats.jsonl.gz": 1}
    assert "it is damaged: " in str(reported["not_recognised"])
