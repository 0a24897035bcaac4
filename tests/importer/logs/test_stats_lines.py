"""stats.log: sums of minutes without offsets are put into words, and no decision uses them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from importer.logs.collected_logs import imported
from mqreplay.importer.logs.line_count import OTHER

MINUTES = range(3)


def lines(minute: int, read: int, sent_back: int, behind_ms: int) -> str:
    sums = {"TOPIC_PUT_NUMS": ("pay", 3000), "GROUP_GET_NUMS": ("pay@g", read), "SNDBCK_PUT_NUMS": ("pay@g", sent_back)}
    head = f"2021-11-09 10:0{minute}:00 INFO - "
    texts = [
        f"[{name}] [{key}] Stats In One Minute, SUM: {total} TPS: 50.00 AVGPT: 1.00"
        for name, (key, total) in sums.items()
    ]
    texts.append(f"[GROUP_GET_FALL_TIME] [0@pay@g] Stats Every 5 Minutes, Value: {behind_ms}")
    texts.append("[TOPIC_PUT_SIZE] [pay] Stats In One Minute, SUM: 9 TPS: 0.15 AVGPT: 1.00")
    return "".join(f"{head}{text}\n" for text in texts)


def left_out(folder: Path, text: str) -> dict[str, tuple[int, str]]:
    """Return the number and the example of each form of lines, by a word of it."""
    (folder / "stats.log").write_text(text)
    records, report = imported(folder, dt.UTC)
    assert not records
    count = report.lines
    assert count.read == sum(count.left_out.values()), "no line is used"
    words = ("sent messages back", "read nothing", "by time", OTHER)
    named = {word: form for word in words for form in count.left_out if word in form}
    return {word: (count.left_out[form], count.examples.get(form, "")) for word, form in named.items()}


def test_a_group_that_stops_and_sends_back_is_described(tmp_path: Path) -> None:
    text = "".join(lines(minute, 0 if minute else 2990, 60 * minute, 300_000 * minute) for minute in MINUTES)
    assert left_out(tmp_path, text) == {
        "sent messages back": (2, "g on pay: 180 messages, 2 times from 10:01:00 UTC to 10:02:00 UTC"),
        "read nothing": (2, "g on pay: 2 times from 10:01:00 UTC to 10:02:00 UTC"),
        "by time": (3, "g on pay/0: 600 s at 10:02:00 UTC"),
        OTHER: (8, ""),
    }


def test_a_group_that_reads_is_not(tmp_path: Path) -> None:
    text = "".join(lines(minute, 3000, 0, 0) for minute in MINUTES)
    assert left_out(tmp_path, text) == {"by time": (3, "g on pay/0: 0 s at 10:02:00 UTC"), OTHER: (12, "")}


def test_a_topic_without_messages_leaves_nothing_to_read(tmp_path: Path) -> None:
    text = lines(0, 0, 0, 0).replace("SUM: 3000", "SUM: 0")
    assert "read nothing" not in left_out(tmp_path, text)
