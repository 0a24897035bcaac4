"""Examine a JSONL file, plain or gzipped: number of records, and bad lines with reasons."""

from __future__ import annotations

from collections import Counter

from mqreplay.cli.doctor.kind import POLLED_OFFSETS
from mqreplay.cli.doctor.verdict import Place, Verdict, place_of
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kinds import KINDS
from mqreplay.decode.polled_offsets import decode_polled_offsets
from mqreplay.ingest.lines import KEPT_OF_LINE, Decoder, LineReader, Refusals, Refused
from mqreplay.words.errors import DecodeError
from mqreplay.words.quantity import counted

SHOWN = 5  # bad lines; all are counted


class FirstRefused(Refusals):
    """The first bad lines, and counts of all by code: a damaged file may have millions."""

    def __init__(self) -> None:
        super().__init__(SHOWN)
        self.codes: Counter[str] = Counter()

    def append(self, refused: Refused) -> None:
        """Count a bad line; keep it if it is among the first."""
        self.codes[refused.code] += 1
        super().append(refused)


def examine_line_file(path: str, verdict: Verdict) -> None:
    """Add the number of records of a JSONL file and its first bad lines to the verdict.

    Raises OSError if it cannot be read.
    """
    decode = _decoder(verdict.kind)
    refused = FirstRefused()
    reader = LineReader(path, decode, refused=refused)
    good = sum(1 for _ in reader)
    bad = refused.codes.total()
    verdict.whole = bad == 0
    verdict.facts.update(lines=reader.lines, records=good, bad_lines=bad, codes=dict(refused.codes))
    verdict.say("lines", f"{counted(reader.lines, 'line')}, {counted(good, 'good record')}, {counted(bad, 'bad line')}")
    if bad == 0:
        return
    verdict.say("bad", ", ".join(f"{number:,} {code}" for code, number in refused.codes.most_common()))
    verdict.facts["bad"] = [_say_line(each, decode, verdict) for each in refused]
    if bad > SHOWN:
        verdict.say("", f"… and {counted(bad - SHOWN, 'bad line')} more")
    # The advice depends on the code: print it once per code.
    for advice in dict.fromkeys(each.advice for each in refused):
        verdict.say("mend", advice)


def _decoder(kind: str) -> Decoder:
    if kind == POLLED_OFFSETS:
        return lambda line: decode_polled_offsets(line)._asdict()
    return KINDS[kind].decode if kind in KINDS else read_object


def _say_line(refused: Refused, decode: Decoder, verdict: Verdict) -> dict[str, object]:
    reason = refused.reason.removeprefix(f"{refused.code}: ")
    verdict.say(f"line {refused.line_number}", f"{refused.code}: {reason}")
    place = _place_in(refused, decode)
    if place is not None:
        verdict.say("text", place.shown)
    return {
        "line": refused.line_number,
        "code": refused.code,
        "reason": refused.reason,
        "advice": refused.advice,
        "place": None if place is None else {**place._asdict(), "line": refused.line_number},
    }


def _place_in(refused: Refused, decode: Decoder) -> Place | None:
    if not refused.content or len(refused.content) >= KEPT_OF_LINE:
        return None  # its end was not kept, so it would seem torn
    try:
        decode(refused.content)
    except DecodeError as error:
        return None if error.offset is None else place_of(refused.content, error.offset)
    return None
