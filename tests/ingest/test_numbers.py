"""Any number in any field gives a row of the silver table, or is refused by name: no number stops an ingest."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from ingest.arrow_schemas import schema_of
from mqreplay.decode.brokers import decode_brokers
from mqreplay.decode.client_offsets import decode_client_offsets
from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.decode.delay_offset import decode_delay_offset
from mqreplay.decode.kinds import KINDS
from mqreplay.decode.message_request_mode import decode_message_request_mode
from mqreplay.decode.pop_order import decode_pop_order
from mqreplay.decode.subscription_group import decode_subscription_group
from mqreplay.decode.topics import decode_topics
from mqreplay.ingest.records import batches
from mqreplay.lake.contract import load_contracts
from mqreplay.words.errors import DecodeError
from tests_shared import ROOT, SAMPLE

DATA = ROOT / "tests" / "decode" / "data"
# Bare, and in quotes, also in those of a text within the line: {\"queueId\":0, {0:\"a\", \"commitLogMaxOffset\":\"5\".
NUMBER = re.compile(rb'[:\[,{"]\s*(-?[0-9]+)(?=\s*[,\]}:]|\\?")')
SHAPES = 5  # of lines of a kind, that differ in more than their words and numbers
EXTREMES = [
    *(str(n) for n in (0, -1, -2, 7, 10**20, -(10**20), 10**400)),
    *(str(sign * (2**bits + more)) for bits in (31, 53, 63, 64) for more in (-1, 0, 1) for sign in (1, -1)),
    *(str(sign * (2**63 // 1000 + more)) for more in (0, 1) for sign in (1, -1)),
    *(str(n) for n in (946684799999, 4102444800000, 4102444800001, 253402300800000, 1795228808333000)),
    *("9" * 4300, "9" * 4301, "-" + "9" * 5000, "0" * 5000, "1e308", "1e400", "-1e400", "1E5", "0.5", "-0.0", "-0"),
    *("NaN", "Infinity", "-Infinity", "true", "null", "[1]", "{}", "+1", "0x7f", "1_000", "٣", "007"),
]


@cache
def lines(kind: str) -> tuple[bytes, ...]:
    """Real lines of a kind, the shortest of each shape."""
    shortest: dict[bytes, bytes] = {}
    found = (DATA / f"{kind}.jsonl").read_bytes().splitlines()
    for recording in ("orders-4.9.7", "bulk-5.3.3"):
        path = SAMPLE / recording / f"{kind}.jsonl.gz"
        found += gzip.decompress(path.read_bytes()).splitlines() if path.exists() else []
    for line in found:
        words = re.findall(rb"[A-Za-z]\w*", re.sub(rb':"[^"]*"|:\\"[^"\\]*\\"', b"", line))
        shape = b" ".join(sorted(set(words)))
        if len(line) < len(shortest.get(shape, line + b" ")):
            shortest[shape] = line
    return tuple(sorted(shortest.values(), key=len)[:SHAPES])


def with_extremes(text: bytes, most: int = 1000) -> Iterator[bytes]:
    """The text with each of its numbers, of most so many, replaced by each of the extremes."""
    numbers = list(NUMBER.finditer(text))
    for number in numbers[:: -(-len(numbers) // most)]:
        for extreme in EXTREMES:
            yield text[: number.start(1)] + extreme.encode() + text[number.end(1) :]


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_in_a_line_gives_a_row_or_is_refused(kind: str) -> None:
    schema, rows, refused = schema_of(kind), [], 0
    for line in lines(kind):
        for changed in with_extremes(line):
            try:
                row = KINDS[kind].decode(changed)
            except DecodeError:
                refused += 1
                continue
            for name, column in KINDS[kind].renamed.items():
                row[column] = row.pop(name)
            rows.append((changed, row))
    try:
        made = sum(batch.num_rows for batch in batches((row for _, row in rows), schema))
    except Exception:
        for changed, row in rows:
            try:
                list(batches(iter([row]), schema))
            except Exception as error:
                raise AssertionError(f"no row and no refusal: {changed!r}") from error
        raise
    assert made == len(rows)
    assert rows
    assert refused


READERS = {
    "consumerOffset": decode_consumer_offset,
    "topics": decode_topics,
    "subscriptionGroup": decode_subscription_group,
    "delayOffset": decode_delay_offset,
    "messageRequestMode": decode_message_request_mode,
    "consumerOrderInfo": decode_pop_order,
    "brokers": decode_brokers,
    "notice-group.offsets": decode_client_offsets,
}
LONG = range(-(2**63), 2**63)


def whole_numbers(value: object) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from whole_numbers(one)
    elif hasattr(value, "__slots__"):
        for name in value.__slots__:
            yield from whole_numbers(getattr(value, name))


@pytest.mark.parametrize("path", sorted(DATA.glob("*.json")), ids=lambda path: path.name)
def test_any_number_in_a_file_fits_a_table_or_is_refused(path: Path) -> None:
    stem = re.sub(r"-[0-9.]+$", "", path.stem)
    taken = refused = 0
    for changed in with_extremes(path.read_bytes(), most=20):
        try:
            read = READERS[stem](changed)
        except DecodeError:
            refused += 1
            continue
        taken += 1
        assert all(number in LONG for number in whole_numbers(read)), changed
    assert taken
    assert refused


def test_the_schema_is_that_of_spark(spark: object) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema  # the other tests here load no pyspark
    from pyspark.sql.types import StructType

    for name, contract in load_contracts().items():
        columns = StructType.fromDDL(", ".join(f"`{column.name}` {column.type}" for column in contract.columns))
        of_spark = to_arrow_schema(columns, timestamp_utc=True)
        assert shape(pa.struct(list(contract.arrow_schema))) == shape(pa.struct(list(of_spark))), name


def shape(kind: pa.DataType) -> object:
    """A type without the names that Arrow gives the items of lists, and without what may be null."""
    if pa.types.is_struct(kind):
        return [(field.name, shape(field.type)) for field in kind]
    if pa.types.is_map(kind):
        return "map", shape(kind.key_type), shape(kind.item_type)
    return ("list", shape(kind.value_type)) if pa.types.is_list(kind) else kind
