"""What the text columns of the tables hold: names of a kind, sentences, paths, or words of a fixed list.

The columns of silver tables are fields of recordings, so that most are replaced as in a redacted bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import polars as pl
import pyarrow as pa

from mqreplay.bundle.fields import FIXED, STRINGS, by_field

FIXED_WORDS: Final = "fixed"  # RocketMQ's or mqreplay's own words and digests
SENTENCE: Final = "sentence"  # text of mqreplay with names in it
REFUSAL: Final = "refusal"  # why a line or file was refused, with the value that it had
PATH_OR_SOURCE: Final = "place"  # a path, or a name that mqreplay makes of others, such as the source of a snapshot
SAMPLE: Final = "sample"  # JSON: rows that break an expectation, the values of a finding
SETTING: Final = "setting"  # properties of a broker or client: the key decides
TEXT: Final = "text"  # messages of RocketMQ: unknown words are removed
NOT_SHOWN: Final = "not shown"  # nothing of it is shown
# Roles with a value for each message: not all of them are collected.
MANY: Final = frozenset({"keys", "message_id"})
MAP_KEY, MAP_VALUE = "key", "value"
CLUSTER: Final = "cluster"  # the partition: rows are selected by it

_FIXED_WORDS: Final = """
broker_role broker_version_desc cause change code component connections decision description
ended event evidence expected_step expectation finding_id flow_control follows_from gap_id consume_record_id
judgement kind language layer lookup mended_in outcome part record_id refusal response_name
rocketmq_version run_id severity sha256 source source_digest stalled_by status step step_id table_name title
topic_type url versions
form advice_form causes cause_kind bound targets codes
arguments actual inputs_digest prediction_id mute_id measure topic_filter_type
"""
_ROLES: Final = {
    **STRINGS,
    **dict.fromkeys((*FIXED, *_FIXED_WORDS.split()), FIXED_WORDS),
    **by_field(
        """
group: group_name closed_consumer_group unregistered_consumer_group unregistered_producer_group
topic: expected_topic
broker: expected_broker_name previous_broker_name worst_broker_name
client: holder
address: slave_addr broker_addrs
sentence: summary reason advice
place: path recording source_name file_name detail_key names
sample: unexpected_sample values
text: listener_frames frames
not shown: attempt_id invoke_id runtime ext scope closed_reason in_message_of by_user channel supposed what
"""
    ),
}
_OF_TABLES: Final = {
    ("bronze.quarantine", "reason"): REFUSAL,
    ("bronze.source_file", "reason"): REFUSAL,
    ("gold.listed_route", "listed"): SENTENCE,
    ("gold.listed_route", "expected"): SENTENCE,
    ("gold.queue_lock", "expected"): FIXED_WORDS,
    ("silver.produce", "properties"): NOT_SHOWN,
    ("silver.broker", "properties"): SETTING,
    ("silver.assignment", "properties"): SETTING,
    ("gold.failover_exposure", "redelivered_by_group"): "group",
}


class Texts(NamedTuple):
    """The texts of a column or of a field in it: what they hold, and the expression for all of them."""

    role: str
    values: pl.Expr


def role_of(table: str, name: str) -> str:
    """Return what a column, or a field in a column, of a table holds; NOT_SHOWN if it is not known.

    >>> role_of("gold.finding", "topic"), role_of("gold.finding", "summary"), role_of("gold.finding", "secret")
    ('topic', 'sentence', 'not shown')
    """
    return _OF_TABLES.get((table, name), _ROLES.get(name, NOT_SHOWN))


def texts_of(table: str, schema: pa.Schema) -> Iterator[Texts]:
    """Yield the texts of all columns, with those of structs, lists and maps. A setting has MAP_KEY and MAP_VALUE."""
    for field in schema:
        yield from _texts(table, field.name, field.type, pl.col(field.name))


def _texts(table: str, name: str, of: pa.DataType, values: pl.Expr) -> Iterator[Texts]:
    role = role_of(table, name)
    if pa.types.is_struct(of):
        for field in of:
            yield from _texts(table, field.name, field.type, values.struct.field(field.name))
    elif pa.types.is_list(of):
        yield from _texts(table, name, of.value_type, values.explode())
    elif pa.types.is_map(of):
        pairs = values.cast(_pairs(of)).explode()
        if role == SETTING:
            yield Texts(role, pairs)
        else:
            yield from _texts(table, name, of.key_type, pairs.struct.field(MAP_KEY))
            yield from _texts(table, name, of.item_type, pairs.struct.field(MAP_VALUE))
    elif pa.types.is_string(of):
        yield Texts(role, values)


def replaced_columns(
    table: str, schema: pa.Schema, replace: Callable[[str, pl.Expr, pl.DataType], pl.Expr]
) -> dict[str, pl.Expr]:
    """Return the columns with other texts than the table has, by name.

    ``replace`` gets a role, the expression of texts or of settings (see `texts_of`), and their type.
    """
    made = {
        field.name: _replaced(table, field.name, field.type, pl.col(field.name), replace)
        for field in schema
        if field.name != CLUSTER
    }
    return {name: each for name, each in made.items() if each is not None}


def _replaced(
    table: str,
    name: str,
    of: pa.DataType,
    values: pl.Expr,
    replace: Callable[[str, pl.Expr, pl.DataType], pl.Expr],
) -> pl.Expr | None:
    """Return the values with other texts; None if they have none."""
    role = role_of(table, name)
    if pa.types.is_struct(of):
        parts = [(field.name, _replaced(table, field.name, field.type, pl.field(field.name), replace)) for field in of]
        new = [part.alias(field) for field, part in parts if part is not None]
        return values.struct.with_fields(new) if new else None
    if pa.types.is_list(of):
        inner = _replaced(table, name, of.value_type, pl.element(), replace)
        return None if inner is None else values.list.eval(inner)
    if pa.types.is_map(of):
        pairs = _pairs(of)
        if role == SETTING:
            inner = replace(role, pl.element(), _struct(of))
        else:
            sides = ((MAP_KEY, of.key_type), (MAP_VALUE, of.item_type))
            parts = [(side, _replaced(table, name, kind, pl.field(side), replace)) for side, kind in sides]
            new = [part.alias(side) for side, part in parts if part is not None]
            inner = pl.element().struct.with_fields(new) if new else None
        return None if inner is None else values.cast(pairs).list.eval(inner).cast(_polars(of))
    return replace(role, values, pl.String()) if pa.types.is_string(of) and role != FIXED_WORDS else None


def _pairs(of: pa.MapType) -> pl.List:
    """Return the type of a map's pairs as a list of structs."""
    return pl.List(_struct(of))


def _struct(of: pa.MapType) -> pl.Struct:
    return pl.Struct({MAP_KEY: _polars(of.key_type), MAP_VALUE: _polars(of.item_type)})


def _polars(of: pa.DataType) -> pl.DataType:
    return pl.Schema(pa.schema([("of", of)]))["of"]
