"""Errors that mqadmin, the JVM or the shell prints instead of an output, or after one. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

_CAUSE = re.compile(
    r"(?:Exception in thread \"[^\"]*\" )?(Caused by: )?(?:[\w$]+\.)+(\w*(?:Exception|Error))(?:: (.*))?$"
)
_CODE = re.compile(r"\bCODE:? ?([0-9]+)[,;]?\s+(?:DESC: ?)?(\S[^\n]*)")
_MESSAGE = re.compile(
    r"(?i)^(?:-?(?:ba|z|k|da)?sh: .*|.*: (?:command not found|No such file or directory|Permission denied)|"
    r"the sub command .* not exist.*|error: .*|\[error\].*|usage: mqadmin .*|.* is not recognized as .*|"
    r".*(?:not online|not exist)\b.*)$"
)
_SHOWN: Final = 200


def failure_of(lines: Sequence[str]) -> str | None:
    """Return mqadmin's error message of a failed command; None if there is no exception.

    An error code says more than an exception, and the last cause more than the first exception.

    >>> failure_of(["Caused by: org.apache.MQClientException: CODE: 17  DESC: No topic route info"])
    'code 17: No topic route info'
    >>> failure_of(["a.b.SubCommandException: X command failed", "Caused by: a.b.RemotingConnectException: connect"])
    'RemotingConnectException: connect'
    """
    first = cause = None
    for line in map(str.strip, lines):
        if (code := _CODE.search(line)) is not None:
            return f"code {code[1]}: {code[2].strip()[:_SHOWN]}"
        if (match := _CAUSE.match(line)) is not None:
            text = match[2] if match[3] is None else f"{match[2]}: {match[3].strip()[:_SHOWN]}"
            first = first or text
            cause = text if match[1] else cause
    return cause or first


def message_of(lines: Sequence[str]) -> str | None:
    """Return the message of a shell or of mqadmin in an output without a table; None without one.

    >>> message_of(["The sub command fooBar not exist."])
    'The sub command fooBar not exist.'
    """
    return next((line.strip()[:_SHOWN] for line in lines if _MESSAGE.match(line.strip())), None)


def failed(command: str, options: Mapping[str, str], why: str) -> str:
    """Return that a command failed, with the group or topic that it was for.

    >>> failed("consumerProgress", {"g": "pay", "n": "h:9876"}, "code 17: No topic route info")
    'mqadmin consumerProgress -g pay failed: code 17: No topic route info'
    """
    asked = "".join(f" -{name} {options[name]}" for name in ("g", "t", "b", "i") if options.get(name))
    return f"mqadmin {command}{asked} failed: {why}"
