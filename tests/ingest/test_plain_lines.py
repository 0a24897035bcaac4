"""Lines read in blocks equal those of the decoder, or are left to it."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kinds import KINDS
from mqreplay.ingest.plain_lines import PlainLines
from mqreplay.words.errors import DecodeError

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
RECORDINGS = ("orders-4.9.7", "bulk-5.3.3")
PLAIN_KINDS = sorted(stem for stem, kind in KINDS.items() if kind.plain is not None)
PULL = KINDS["pull_log"].plain


def one_by_one(plain: PlainColumns, lines: list[bytes]) -> list[dict] | None:
    try:
        return [plain.take(read_object(line)) for line in lines]
    except DecodeError:
        return None


def many(plain: PlainColumns, lines: list[bytes]) -> list[dict] | None:
    found = PlainLines(plain).read(lines)
    if found is None:
        return None
    assert found.lines == lines
    return found.frame.to_dicts()


@cache
def sample(recording: str, kind: str) -> list[bytes]:
    with gzip.open(SAMPLE / recording / f"{kind}.jsonl.gz") as stream:
        return stream.read().splitlines()


@pytest.mark.parametrize("kind", PLAIN_KINDS)
@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_line_of_the_samples_is_read_at_once_and_alike(recording: str, kind: str) -> None:
    lines = sample(recording, kind)[:3000]
    assert many(KINDS[kind].plain, lines) == one_by_one(KINDS[kind].plain, lines)
    assert many(KINDS[kind].plain, lines) is not None


SMALL = PlainColumns("n int, m bigint, s string, t string, f boolean")
NAMES = st.sampled_from(["n", "m", "s", "t", "f", "new", "s:", "", 'q\\"', "\\u0073", "é"])
TEXTS = ['"x"', '"5"', '""', '":"', '","', '"null"', r'"\""', r'"\\"', r'"\\\""', r'"\\\\"', r'"\u0041"', r'"\ud800"']
TEXTS += [
    r'"\ud83d\ude00"',
    r'"\uDC00"',
    r'"\/\b\f"',
    r'"\x"',
    r'"\u00z0"',
    '"\t"',
    '"é"',
    '"{"',
    '"\x7f"',
    r'"\u0000"',
]
OTHERS = ["1", "-0", "0", "7", "01", "1.0", "1e3", "2147483648", "9223372036854775807", "9223372036854775808", "1e999"]
OTHERS += [
    "null",
    "true",
    "false",
    "NaN",
    "Infinity",
    "-Infinity",
    "nul",
    "True",
    "",
    "[]",
    "{}",
    "[1]",
    '["x"]',
    "[[]]",
]
OTHERS += ['{"s":"x"}', '{"s":null}', '{"n":1,"n":2}', "[null]", "1_0", "+1", "0x1", "'x'"]
BLANKS = st.sampled_from([""] * 8 + [" ", "  ", "\t", "\r", "\x0c", "\xa0"])
FIELDS = st.tuples(NAMES, BLANKS, BLANKS, st.sampled_from([*TEXTS, *OTHERS]), BLANKS)
FITTING = st.one_of(
    *(
        st.tuples(st.just(name), st.just(""), st.sampled_from(["", " "]), st.sampled_from(values), st.just(""))
        for name, values in {"n": ["1", "null"], "s": ["5", '"5"', "null"], "t": ['"x"', "null"], "f": ["true"]}.items()
    )
)


def line_of(fields: list[tuple[str, ...]], ends: tuple[str, str]) -> bytes:
    inner = ",".join(f'"{name}"{before}:{blank}{value}{after}' for name, before, blank, value, after in fields)
    return f'{ends[0]}"pad":"{"p" * 30}"{"," if inner else ""}{inner}{ends[1]}'.encode()


ENDS = st.sampled_from(
    [("{", "}")] * 9 + [("{", ",}"), ("{,", "}"), ("\ufeff{", "}"), ("{", "}}"), ("[{", "}]"), (" {", "} ")]
)
BUILT = st.builds(line_of, st.lists(st.one_of(FIELDS, FITTING, FITTING), max_size=5), ENDS)


@given(st.lists(BUILT, min_size=1, max_size=3))
@example([b'{"pad":"pppppppppppppppppppppppppppp","n":1,"n" :2,"s":5}'])
@example([b'{"pad":"pppppppppppppppppppppppppppp","n":1,"n":null}'])
@example([b'{"pad":"pppppppppppppppppppppppppppp","n":null,"n":1}'])
@example([b'{"pad":"pppppppppppppppppppppppppppp","n":null,"n":null}'])
@example([b'{"pad":"pppppppppppppppppppppppppppp","n":"5","s":5}'])
@example([b'{"pad":"pppppppppppppppppppppppppppp","s":[":"]}', b'{"pad":"pppppppppppppppppppppppppppp","s":"x" }'])
@example(
    [b'{"pad":"pppppppppppppppppppppppppppp","q\\"":null}', b'{"pad":"pppppppppppppppppppppppppppp","\xc3\xa9":null}']
)
def test_what_is_read_at_once_is_what_the_decoder_takes(lines: list[bytes]) -> None:
    found = many(SMALL, lines)
    if found is not None:
        assert found == one_by_one(SMALL, lines)


SIGNS = b'"\\,:{}[] nul0-9.eE\t\n\r\x00\x1f\x80\xff\xed'
EDIT = st.tuples(
    st.sampled_from(["change", "add", "drop", "twice"]),
    st.floats(0, 1, exclude_max=True),
    st.one_of(st.sampled_from(list(SIGNS)), st.integers(0, 255)),
    st.integers(1, 40),
)


def edited(line: bytes, edits: list[tuple[str, float, int, int]]) -> bytes:
    for how, where, sign, size in edits:
        at = int(where * len(line))
        rest = {"change": line[at + 1 :], "add": line[at:], "drop": line[at + size :], "twice": line[at:]}[how]
        middle = {"drop": b"", "twice": line[max(0, at - size) : at]}.get(how, bytes([sign]))
        line = line[:at] + middle + rest
    return line


@given(
    st.sampled_from(RECORDINGS),
    st.sampled_from(PLAIN_KINDS),
    st.lists(st.tuples(st.integers(0, 5000), st.lists(EDIT, max_size=2)), min_size=1, max_size=3),
)
def test_real_lines_with_wrong_bytes_are_read_alike_or_left(recording: str, kind: str, chosen: list) -> None:
    whole = sample(recording, kind)
    text = b"\n".join(edited(whole[number % len(whole)], edits) for number, edits in chosen)
    lines = [line for line in text.split(b"\n") if line.strip()]
    found = many(KINDS[kind].plain, lines)
    if found is not None:
        assert found == one_by_one(KINDS[kind].plain, lines)


WHOLE = {
    "request_ts": 1795228808477,
    "client_id": "c",
    "consumer_group": "g",
    "topic": "t",
    "queue_id": 0,
    "broker_name": "b",
    "queue_offset": 7,
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.sampled_from([0, 1, -1, 2**31, 2**31 - 1, 2**63 - 1, 2**63, 1795228808477, 946684799999]),
    st.floats(allow_nan=True),
    st.text(max_size=4),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers(), max_size=2),
)
LINES = st.dictionaries(st.sampled_from([*PULL.types, "new_field", "other"]), VALUES, max_size=4).map(
    lambda more: json.dumps(WHOLE | more, ensure_ascii=len(more) % 2 == 0).encode("utf-8", "surrogatepass")
)


@given(st.lists(LINES, min_size=1, max_size=4))
def test_records_of_any_values_are_read_alike_or_left(lines: list[bytes]) -> None:
    found = many(PULL, lines)
    if found is not None:
        assert found == one_by_one(PULL, lines)


@given(
    st.lists(
        st.builds(
            lambda remark, new: json.dumps(WHOLE | {"remark": remark, "new": new}, ensure_ascii=False).encode(),
            st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=20)),
            st.integers(0, 9),
        ),
        min_size=1,
    )
)
def test_usual_lines_are_read_at_once(lines: list[bytes]) -> None:
    assert many(PULL, lines) == one_by_one(PULL, lines)


LINE = json.dumps(WHOLE).encode()


@pytest.mark.parametrize(
    "lines",
    [
        [LINE.replace(b'"queue_id": 0', b'"queue_id": 0, "queue_id": 1')],
        [LINE.replace(b"}", b', "x": 1, "x": 2}')],
        [LINE.replace(b"}", b', "x": NaN}')],
        [LINE + b" " + LINE],
        [LINE + LINE, LINE[:20], LINE[20:]],
        [LINE[:-1], b"}"],
        [LINE.replace(b'"c"', b'"\xff"')],
        [LINE.replace(b'"c"', b'"\\ud800"')],
        [LINE.replace(b'"c"', b'["c"]')],
        [LINE.replace(b'"c"', b"5")],
        [b"\xef\xbb\xbf" + LINE],
        [LINE.replace(b"7}", b"07}")],
        [LINE.replace(b"7}", b"7.0}")],
        [LINE.replace(b"7}", b"7,}")],
        [LINE.replace(b"7}", b'"7"}')],
        [LINE.replace(b'"queue_id": 0', b'"queue_id": -1')],
        [LINE.replace(b'"queue_id": 0', b'"queue_id": 2147483648')],
        [LINE, LINE.replace(b"7}", b'7, "opaque": -2147483649}')],
        [LINE.replace(b"1795228808477", b"946684799999"), LINE],
        [LINE.replace(b"1795228808477", b"4102444800001"), LINE],
        [LINE.replace(b"7}", b"9223372036854775808}")],
        [LINE.replace(b'"c"', b'"\t"')],
        [LINE.replace(b"}", b', "x": Inf}')],
        [LINE.replace(b"}", b', "x": [1.5, -Infinity]}')],
        [LINE, LINE.replace(b"}", b', "x": ' + b"9" * 5000 + b"}")],
        [LINE, LINE.replace(b"}", b', "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")],
        [LINE, LINE.replace(b"}", b', "x": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001)],
        [b"[" + LINE + b"]"],
        [b"{}"],
        [],
    ],
)
def test_anything_doubtful_is_left_to_the_decoder(lines: list[bytes]) -> None:
    assert many(PULL, lines) is None


def with_new_names(number: int) -> bytes:
    """A line of 10 names that no other line has."""
    return json.dumps(WHOLE | {f"new-{number}-{i}": i for i in range(10)}).encode()


def test_names_without_end_are_left_to_the_decoder_before_they_fill_the_memory() -> None:
    fast = PlainLines(PULL)
    assert fast.read([with_new_names(n) for n in range(1000)]) is None
    assert fast.read([LINE]) is not None
