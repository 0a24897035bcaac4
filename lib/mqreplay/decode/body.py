"""The body in a record: text from a broker, name server or client, or the decoded object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqreplay.decode.fastjson_text import Key, Value, read_fastjson_text
from mqreplay.decode.fields import bare_int, object_of, wrong_type
from mqreplay.decode.text import TAKE_BAK, refuse_many
from mqreplay.words.errors import DecodeError


def body_of(record: Mapping[str, Any], name: str) -> Mapping[Key, Value] | None:
    """Return the object in the field ``name``, which is fastjson text or an object. None if absent or null.

    Raises:
        DecodeError: the text is not from fastjson, or not an object; the detail names the field.

    >>> body_of({"body": '{"brokerAddrs":{0:"127.0.0.1:10911"}}'}, "body")
    {'brokerAddrs': {0: '127.0.0.1:10911'}}
    >>> body_of({"body": '{"brokerAddrs":'}, "body")
    Traceback (most recent call last):
    mqreplay.words.errors.DecodeError: torn: body: cut short where a value should follow (byte 15)
    """
    value = record.get(name)
    if isinstance(value, str):
        try:
            refuse_many(value)
            value = read_fastjson_text(value)
        except DecodeError as error:
            raise DecodeError(error.code, f"{name}: {error.detail.removesuffix(TAKE_BAK)}", error.offset) from None
    return None if value is None else object_of(value, name)


def answer_of(record: Mapping[str, Any]) -> Mapping[Key, Value] | None:
    """Return the body of an answer; None if there is an ``error`` or a failed ``response_code``.

    >>> answer_of({"response_code": 206, "remark": "not online", "body": ""}) is None
    True
    """
    failed = record.get("error") is not None or record.get("response_code") not in (None, 0)
    return None if failed else body_of(record, "body")


def items_of(body: Mapping[Key, Value], name: str) -> list[Value]:
    """Return the list in the field ``name``, empty if absent or null.

    >>> items_of({"queueDatas": [1]}, "queueDatas")
    [1]
    """
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong_type(name, "a list", value)
    return value


def texts_of(values: object, name: str) -> list[str]:
    """Return ``values`` as a list of strings.

    >>> texts_of(["a", "b"], "cid_all")
    ['a', 'b']
    """
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise wrong_type(name, "a list of strings", values)
    return values


def broker_addrs_of(value: object, name: str) -> dict[int, str]:
    """Return the map {broker id: address} of a BrokerData, with bare or quoted ids, in written order.

    >>> broker_addrs_of({0: "127.0.0.1:10911", "1": "127.0.0.1:10921"}, "brokerAddrs")
    {0: '127.0.0.1:10911', 1: '127.0.0.1:10921'}
    """
    addrs: dict[int, str] = {}
    for key, addr in object_of(value, name).items():
        broker_id = bare_int(key, f"a broker id in {name}")
        if broker_id in addrs:
            raise DecodeError("duplicate_key", f"broker id {broker_id} is twice in {name}")
        if not isinstance(addr, str):
            raise wrong_type(f"an address in {name}", "a string", addr)
        addrs[broker_id] = addr
    return addrs
