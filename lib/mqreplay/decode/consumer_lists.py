"""consumer_lists: answers to GET_CONSUMER_LIST_BY_GROUP, the members of a group that a broker knows."""

from __future__ import annotations

from typing import Final

from mqreplay.decode.body import body_of, items_of, texts_of
from mqreplay.decode.columns import PlainColumns
from mqreplay.decode.jsonl import read_object
from mqreplay.decode.kind import Kind

_PLAIN: Final = PlainColumns(
    """
    ts timestamp_ms not null, response_ts timestamp_ms, previous_ts timestamp_ms, client_id string,
    consumer_group string not null, broker_name string, broker_addr string, broker_id bigint, response_code int,
    remark string, error string
    """
)
COLUMNS: Final = {**_PLAIN.types, "cid_all": "array<string>"}


def decode_consumer_list(line: bytes) -> dict[str, object]:
    """Return the columns of one line of consumer_lists; times in epoch ms.

    ``cid_all`` is unsorted, as received: the record's own, else the body's consumerIdList; None without
    an answer. Source: GetConsumerListByGroupResponseBody.

    Raises:
        DecodeError: see `mqreplay.decode.jsonl` and `PlainColumns.take`.

    >>> line = b'{"ts":1795228808278,"consumer_group":"g","body":"{\\\\"consumerIdList\\\\":[\\\\"c\\\\"]}"}'
    >>> decode_consumer_list(line)["cid_all"]
    ['c']
    """
    record = read_object(line)
    answer = _PLAIN.take(record)
    cid_all = record.get("cid_all")
    if cid_all is None and (body := body_of(record, "body")) is not None:
        cid_all = items_of(body, "consumerIdList")
    answer["cid_all"] = None if cid_all is None else texts_of(cid_all, "cid_all")
    return answer


KIND: Final = Kind(
    stem="consumer_lists",
    table="silver.consumer_list",
    label="lists of the groups' members",
    decode=decode_consumer_list,
    columns=COLUMNS,
    required=_PLAIN.required,
    phrases=("{broker_name} lists {cid_all}", "error: {error}"),
)
