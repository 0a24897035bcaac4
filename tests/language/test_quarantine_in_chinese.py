"""Reasons and advice of bronze.quarantine and bronze.source_file: a new one without a translation fails here."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pytest

from each_case import for_each
from language.chinese import ZH, report, unknown
from mqreplay import decode, ingest
from mqreplay.decode.body import body_of
from mqreplay.decode.brokers import decode_brokers
from mqreplay.decode.columns import TIME_MIN, out_of_bounds
from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.decode.delay_offset import decode_delay_offset
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kinds import KINDS
from mqreplay.decode.polled_offsets import decode_polled_offsets
from mqreplay.ingest import lines, polled, snapshot_rows
from mqreplay.ingest.recording import NOT_READ
from mqreplay.words.errors import DecodeError, UnreadableInput

PACKAGES = (decode, ingest)
FOLDERS = {package: Path(str(package.__path__[0])) for package in PACKAGES}
MODULES = {
    ".".join((package.__name__, *path.relative_to(folder).with_suffix("").parts)): path
    for package, folder in FOLDERS.items()
    for path in sorted(folder.rglob("*.py"))
    if path.stem != "__init__"
}
# Of a value that code computes: what it may be. All others are 7, or a quoted text.
VALUES = {
    "error.detail": ["there is only white space", "cut short where a key should follow"],
    "error.code": ["torn"],
    "error.msg": ["Expecting value", "Expecting ',' delimiter"],
    "' or '.join(known)": ["ACK", "ACK or BATCH_ACK", "count or size or span"],
    "_found(others)": ["", " but 'a', 'b', 'c', ..."],
    "words": ["a whole number"],
    "what": ["the offset table", "the queues of 'orders@pay'"],
    "code": ["bad_number"],
    "twice.format(key)": ["'a' is there twice: two files are mixed", "'a' is twice in one line"],
    "queue": ["MessageQueue(topic='t', broker_name='b', queue_id=7)"],
    "lines": ["line 7 is a change", "lines 7 to 9 are changes"],
    "reason": ["torn: the header is incomplete"],
    "_backwards(line.ts, ts, self.first_ts is None)": [
        "its ts is 7, and lies 9 ms before the line before it: its changes are not used either",
        "its ts is 7, and lies 9 ms before the time of its folder: its changes are not used either",
    ],
    "str(error).rpartition(': ')[2]": ["the compressed stream is damaged: unknown"],
    "until": ["no complete table follows", "the next complete table is in line 7"],
    "and_more(more, 'line')": ["and 1 more line was refused", "and 1,200 more lines were refused"],
    "excess": ["line of more than 16,777,216 bytes", "line of more than 500000 objects and lists"],
}
# Functions that make or raise an error of what their callers say: the calls are read, not these.
OF_CALLERS = {"wrong_type", "missing", "out_of_bounds", "bare_int", "fail", "expected"}
REFUSALS = {"_damaged": 0, "self._end": 1, "self.refuse": 2, "self.reader.refuse": 2}  # the place of the reason
ENGLISH = re.compile("[a-z]+ [a-z]+")
VALUE = re.compile(r"\"[^\"]*\"|'[^']*'")
QUOTED = "'a. B; c'"
ADVICE = (*lines.ADVICE.values(), *snapshot_rows.ADVICE.values(), *polled.ADVICE.values())


class Module:
    """The reasons that a module's source has, with sample values."""

    def __init__(self, name: str) -> None:
        self.tree = ast.parse(MODULES[name].read_text("utf-8"))
        self.globals = vars(importlib.import_module(name))
        self.assigned: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.assigned.setdefault(node.targets[0].id, []).append(node.value)

    def reasons(self) -> Iterator[str]:
        """Yield each reason as a table has it."""
        for node in _without(self.tree, OF_CALLERS):
            if isinstance(node, ast.Call):
                yield from self._of_call(ast.unparse(node.func), node.args)

    def _of_call(self, name: str, args: list[ast.expr]) -> Iterator[str]:
        if name in ("DecodeError", "fail") and len(args) > 1:
            at = 7 if len(args) > 2 else None
            yield from (
                str(DecodeError(code, text, at)) for code in self.texts(args[0]) for text in self.texts(args[1])
            )
        elif name == "wrong_type":
            named = [(field, wanted) for field in self.texts(args[0]) for wanted in self.texts(args[1])]
            yield from (f"wrong_type: {field} should be {wanted}, and is {QUOTED}" for field, wanted in named)
        elif name == "missing":
            yield from (
                f"missing_field: {field} is absent or null, but the record needs it" for field in self.texts(args[0])
            )
        elif name == "bare_int":
            for field in self.texts(args[1]):
                yield f"wrong_type: {field} should be a whole number, and is {QUOTED}"
                yield f"bad_number: {field} is not 0 to 7, and is -7"
        elif name == "expected":
            for what in self.texts(args[0]):
                yield f"torn: cut short where {what} should follow; take the .bak (byte 7)"
                yield f"bad_syntax: expected {what}, found {QUOTED} (byte 7)"
        elif not any(isinstance(one, ast.Attribute | ast.Starred) for one in args[1:]):
            yield from (text for one in args[REFUSALS.get(name, len(args)) :][:1] for text in self.texts(one))

    def texts(self, node: ast.expr) -> list[str]:
        """Return the texts that an expression may give."""
        if isinstance(node, ast.Constant):
            return [str(node.value)]
        if isinstance(node, ast.JoinedStr):
            made = [""]
            for part in node.values:
                more = [str(part.value)] if isinstance(part, ast.Constant) else self._field(part)
                made = [text + one for text in made for one in more]
            return made
        return self._value(node)

    def _field(self, node: ast.expr) -> list[str]:
        assert isinstance(node, ast.FormattedValue)
        return [QUOTED] if node.conversion == ord("r") and not _is_constant(node.value) else self._value(node.value)

    def _value(self, node: ast.expr) -> list[str]:
        source = ast.unparse(node).removesuffix(".removesuffix(TAKE_BAK)")
        if _is_constant(node):
            return [str(self.globals[source])]
        if isinstance(node, ast.Name):
            before = [one for one in self.assigned.get(source, ()) if one.lineno <= node.lineno]
            last = max(before, key=lambda one: one.lineno, default=None)
            if isinstance(last, ast.JoinedStr | ast.Constant):
                return self.texts(last)
        return VALUES.get(source, ["7"])


def _without(node: ast.AST, names: Collection[str]) -> Iterator[ast.AST]:
    """Yield the nodes of a tree, except for functions of these names."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.FunctionDef) and child.name in names):
            yield child
            yield from _without(child, names)


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id.isupper() and not hasattr(builtins, node.id)


@for_each(MODULES)
def test_every_reason_of_a_module_is_translated(name: str) -> None:
    missing = unknown(Module(name).reasons())
    assert missing == [], report(missing)


def test_reasons_are_found_in_the_source() -> None:
    found = {reason for name in MODULES for reason in Module(name).reasons()}
    assert len(found) > 200
    assert "torn: cut short inside a string; take the .bak (byte 7)" in found
    assert "too_deep: more than 32 containers in each other, RocketMQ writes a handful (byte 7)" in found


def test_reasons_of_whole_files_are_translated() -> None:
    troubles = [
        "Permission denied",
        "it is a pipe, socket, device or folder, not a file",
        "a link leads out of the recording",
    ]
    texts = [UnreadableInput(trouble).detail for trouble in troubles]
    texts += [lines.and_more(number, what) for number in (1, 1_499_000) for what in ("line", "key")]
    texts += ["and 1 more line lists a file that is not there", "and 7 more lines list files that are not there"]
    texts += ["its SHA-256 is 0a1b, and SHA256SUMS says 2c3d", "SHA256SUMS lists it, but it is missing"]
    texts += ["snapshots after it were read in an earlier run, are needed again, and are missing now"]
    texts += ["truncated: the compressed stream ends within line 7", "it changed while line 7 was read"]
    texts += ["the key 'a. B; c' is not topic@group, so no consumer can commit to it or read it"]
    texts += ["the compressed stream is damaged: invalid block type", "more than 256,000,000 bytes, uncompressed"]
    texts += [str(out_of_bounds("ts", 5, low, 7, "bad_time")) for low in (TIME_MIN, -1)]
    assert unknown([*texts, *NOT_READ.values()]) == []


def test_advice_is_translated() -> None:
    usual = [lines.USUAL_ADVICE, snapshot_rows.USUAL_ADVICE]
    others = [text for name in ("ledger", "brokers", "snapshot_rows") for text in _advice_of(f"mqreplay.ingest.{name}")]
    assert len(others) == 3
    assert unknown([*ADVICE, *usual, *others]) == []


def _advice_of(module: str) -> Iterator[str]:
    """Yield the advice that code writes without a code's table."""
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if (
            isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) == "advice"
            and isinstance(node.value, ast.Constant)
        ):
            yield str(node.value.value)
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (str(v.value) for k, v in pairs if _is_advice(k) and isinstance(v, ast.Constant))


def _is_advice(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value == "advice"


def test_damaged_offsets_are_translated() -> None:
    whole = b'{"dataVersion":{"counter":31},"offsetTable":{"orders@pay":{0:56,1:57},"a@b":{0:1}}}'
    assert _not_translated(decode_consumer_offset, _damaged(whole)) == []
    assert _not_translated(decode_delay_offset, _damaged(b'{"offsetTable":{1:42,2:7}}')) == []
    line = b'{"ts":1795228799427,"changed":{"orders@pay":{"0":12}},"removed":{"orders@pay":[1]}}'
    assert _not_translated(decode_polled_offsets, _damaged(line)) == []


def test_damaged_records_are_translated() -> None:
    line = b'{"ts":1795228808477,"kind":"ACK","queue_offset":-6.5e3,"other":[true,null,"\\u00e9"],"topic":"t"}'
    assert _not_translated(read_object, _damaged(line)) == []
    body = b'{"brokerAddrs":{0:"127.0.0.1:10911","0":-6.5e3},"other":[true,null,"\\u00e9"],"other":1}'
    assert (
        _not_translated(lambda data: body_of({"body": data.decode("utf-8", "replace")}, "body"), _damaged(body)) == []
    )
    assert (
        _not_translated(decode_brokers, _damaged(b'{"cluster":"c","brokers":{"broker-a-0":{"properties":{}}}}')) == []
    )
    hostile = [b"{}", b'{"ts":1}', b'{"ts":"a"}', b'{"ts":1795228808477}', b'{"ts":1795228808477,"kind":"x. Y"}']
    for kind in KINDS.values():
        assert _not_translated(kind.decode, hostile) == []


def _damaged(whole: bytes) -> Iterator[bytes]:
    """Yield a text cut at each byte, and with each byte replaced."""
    for at in range(len(whole)):
        yield whole[:at]
        yield from (
            whole[:at] + byte + whole[at + 1 :] for byte in (b"\x00", b"\xff", b"\n", b'"', b"}", b",", b"x", b"-")
        )
    yield from (whole + b"}", whole + b"\xc3", b"\xef\xbb\xbf" + whole, whole.decode().encode("utf-16"), b"[" * 100_000)


def _not_translated(decoder: object, damaged: Iterable[bytes]) -> list[str]:
    assert callable(decoder)
    reasons = []
    for data in damaged:
        try:
            decoder(data)
        except DecodeError as error:
            reasons += [str(error), f"the file ends within this line: {error}"]
    assert reasons
    return [*unknown(reasons), *(text for text in map(ZH.text, reasons) if ENGLISH.search(VALUE.sub("", text)))]


@pytest.mark.parametrize(
    ("reason", "translation"),
    [
        (
            "torn: body: cut short where a value should follow (byte 15)",
            "torn：body：在应有值的位置被截断（字节偏移 15）",
        ),
        (
            "torn: cut short where ',' or '}' should follow; take the .bak (byte 33)",
            "torn：在应有 ',' 或 '}' 的位置被截断；请用 .bak（字节偏移 33）",
        ),
        (
            "the file ends within this line: torn: the line is cut short (Expecting value); "
            "the recorder died in it (byte 8)",
            "文件在这一行中间结束：torn：该行被截断（应为值）；录制程序在写这一行时退出（字节偏移 8）",
        ),
        (
            "wrong_type: queue_id should be a whole number, and is 'a list. Or; none'",
            "wrong_type：queue_id 应为整数，实际为 'a list. Or; none'",
        ),
        (
            "bad_number: queueId in mqSet should be 0 to 2147483647, and is -2",
            "bad_number：mqSet 中的 queueId 应在 0 至 2147483647 之间，实际为 -2",
        ),
        (
            "line 7 is a change to an unknown table, because the line before was refused or is missing; "
            "the next complete table is in line 9",
            "第 7 行是对未知位点表的变更，因为前一行被拒绝或缺失；下一个完整的位点表在第 9 行",
        ),
    ],
)
def test_a_reason_keeps_its_values(reason: str, translation: str) -> None:
    assert ZH.text(reason) == translation


@for_each(sorted(MODULES))
def test_no_english_is_left(name: str) -> None:
    """A value of a pattern must not swallow the words of another sentence."""
    texts = {reason: ZH.text(reason) for reason in Module(name).reasons()}
    assert {reason: text for reason, text in texts.items() if ENGLISH.search(text)} == {}
