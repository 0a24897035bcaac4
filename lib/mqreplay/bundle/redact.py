"""Replace the names in a line or file of JSON, as RocketMQ and recorders write it.

fastjson writes objects as keys and numbers as bare keys, which no JSON parser reads. So this works on tokens, and
leaves everything but strings as it is. Text that is no such JSON is not copied.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from mqreplay.bundle.fields import FIELDS, FIXED, NESTED, SETTING_FIELDS, STRINGS, TABLES, table_of
from mqreplay.bundle.names import Names
from mqreplay.bundle.texts import replace, setting

DAMAGED: Final = "{"  # in place of a line or file that is no JSON: the reader refuses it too
NO_JSON: Final = "lines and files that are no JSON"
_TOKEN: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([\[\]{},:])|([^"\[\]{},:]+)|"', re.DOTALL)
_BARE: Final = re.compile(r"\s*(?:-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null)?\s*")
_FIXED_TEXT: Final = re.compile(r"[\w.+/=, -]{0,100}", re.ASCII)
_SETTING_NAME: Final = re.compile(r"[+-]?[A-Za-z][\w.]{0,80}", re.ASCII)
RUNTIME: Final = "runtime"  # figures of a broker: the few texts in it are not needed
ENTRY: Final = "entry"
_QUEUE: Final = "queue"  # an object that is a key


class _NoJson(Exception):
    """The text is not JSON of RocketMQ."""


@dataclass(slots=True)
class _Container:
    closing: str
    field: str  # what it is the value of
    expects_key: bool
    key: str = ""


def redact(text: str, kind: str, names: Names) -> str:
    """Return the text of a line or file of a ``kind`` with its names replaced; DAMAGED if it is no JSON.

    >>> names = Names()
    >>> _ = redact('{"topic":"orders","queue_id":3}', "pull_log", names)
    >>> names.number()
    >>> redact('{"topic":"orders","queue_id":3}', "pull_log", names)
    '{"topic":"topic-01","queue_id":3}'
    """
    try:
        return _redacted(text, kind, names)
    except (_NoJson, ValueError):
        names.remove(NO_JSON)
        return DAMAGED


def _redacted(text: str, kind: str, names: Names) -> str:
    out: list[str] = []
    stack = [_Container("", "", False)]
    for match in _TOKEN.finditer(text):
        token, top = match[0], stack[-1]
        if match[1] is not None:
            out.append(_string(token, match[1], top, kind, names))
        elif match[3] is not None:
            out.append(_bare(token, top, names))
        elif token in "{[":
            field = _QUEUE if top.expects_key else (top.key if top.closing == "}" else top.field)
            stack.append(_Container("}" if token == "{" else "]", table_of(kind, field), token == "{"))
            out.append(token)
        elif token in "}]":
            if token != top.closing:
                raise _NoJson
            stack.pop()
            if stack[-1].expects_key:  # a queue as a key
                stack[-1].key = ENTRY
            out.append(token)
        elif token in ",:":
            top.expects_key = token == "," and top.closing == "}"
            out.append(token)
        else:
            raise _NoJson
    if len(stack) > 1:
        raise _NoJson
    return "".join(out)


def _bare(token: str, top: _Container, names: Names) -> str:
    if not _BARE.fullmatch(token):
        raise _NoJson
    if top.expects_key and token.strip():  # a number as a key: of a queue, broker or delay level
        top.key = top.field
    elif top.field == "codeSet" and token.strip():
        return str(names.tag_code(int(token)))
    return token


def _string(token: str, raw: str, top: _Container, kind: str, names: Names) -> str:
    text = raw if "\\" not in raw else json.loads(token, strict=False)
    new = _key(text, top, names) if top.expects_key else _value(text, top, kind, names)
    return token if new == text else json.dumps(new, ensure_ascii=False)


def _key(text: str, top: _Container, names: Names) -> str:
    if text.isdecimal():
        top.key = top.field
        return text
    if top.field in TABLES:
        how, top.key = TABLES[top.field]
        return replace(names, how, text)
    top.key = text
    if top.field in SETTING_FIELDS:
        if _SETTING_NAME.fullmatch(text):
            return text
        head, _, path = text.partition("_/")  # commitLogDiskRatio_/data/store/commitlog
        names.remove("names of settings")
        return (
            f"{head}_{names.replaced('setting', path)}"
            if path and _SETTING_NAME.fullmatch(head)
            else names.replaced("setting", text)
        )
    elif text in FIELDS:
        return text
    else:
        names.remove("unknown fields")
    top.key = ""
    return names.replaced("setting", text)


def _value(text: str, top: _Container, kind: str, names: Names) -> str:
    field = top.key if top.closing == "}" else top.field
    if top.field in SETTING_FIELDS:
        new = setting(names, field, text)
        return "" if top.field == RUNTIME and new != text else new
    if field in NESTED and text[:1] in ("{", "["):
        return redact(text, kind, names)
    if field in STRINGS:
        return replace(names, STRINGS[field], text)
    if field in FIXED and _FIXED_TEXT.fullmatch(text):
        return text
    if text:
        names.remove("texts of unknown fields")
    return ""
