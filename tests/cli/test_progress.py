"""Progress lines on stderr."""

from __future__ import annotations

import io
import os

from mqreplay.terminal.progress import Progress


def lines_of(note: str, *texts: str) -> list[str]:
    stream = io.StringIO()
    with Progress(stream, note) as progress:
        for each in texts:
            progress(each)
    return [line.partition(" s  ")[2] for line in stream.getvalue().splitlines()]


def test_the_note_comes_once_before_the_first_line() -> None:
    assert lines_of("engine local: a reason", "reading", "done") == ["engine local: a reason", "reading", "done"]
    assert lines_of("", "reading") == ["reading"]


def test_a_run_goes_on_if_nobody_reads_its_progress() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream, Progress(stream) as progress:
        os.close(reader)
        progress("reading")
        progress("done")


def test_a_run_that_ends_at_once_prints_no_note() -> None:
    assert lines_of("engine local: a reason") == []
