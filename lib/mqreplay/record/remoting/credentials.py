"""The access and secret key of mqreplay's user, from a file or the environment.

The file is RocketMQ's tools.yml, or properties with the same names. Errors and repr never contain a key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mqreplay.errors import InputError

ACCESS_KEY: Final = "MQREPLAY_ACCESS_KEY"
SECRET_KEY: Final = "MQREPLAY_SECRET_KEY"
SECURITY_TOKEN: Final = "MQREPLAY_SECURITY_TOKEN"
_MAX_BYTES: Final = 16 * 1024
_LINE: Final = re.compile(r"\s*(accessKey|secretKey|securityToken)\s*([:=])\s*(.*?)\s*")
_EXAMPLE: Final = "the file needs two lines: 'accessKey: ...' and 'secretKey: ...'"


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """A user's keys."""

    access_key: str
    secret_key: str
    security_token: str | None = None

    def __repr__(self) -> str:
        return "Credentials(...)"


def load_credentials(path: str | None, environ: Mapping[str, str]) -> Credentials | None:
    """Return the keys of the file, else those of the environment, else None.

    Raises:
        InputError: a key is missing, or the file is not readable.

    >>> load_credentials(None, {})
    """
    if path is not None:
        return _of_file(path)
    access, secret = environ.get(ACCESS_KEY, ""), environ.get(SECRET_KEY, "")
    if not access and not secret:
        return None
    if not access or not secret:
        here, missing = (ACCESS_KEY, SECRET_KEY) if access else (SECRET_KEY, ACCESS_KEY)
        raise InputError(f"{here} is set and {missing} is not: set both, or give a file with both keys")
    token = environ.get(SECURITY_TOKEN) or None
    for name, value in ((ACCESS_KEY, access), (SECRET_KEY, secret), (SECURITY_TOKEN, token)):
        if value is not None:
            _refuse_bad_key(name, value)
    return Credentials(access, secret, token)


def _of_file(path: str) -> Credentials:
    keys: dict[str, str] = {}
    for number, line in enumerate(_lines(path), 1):
        if not line.strip() or line.lstrip().startswith(("#", "!")) or line.strip() == "---":
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise InputError(f"{path}: line {number} is not accessKey, secretKey or securityToken; {_EXAMPLE}")
        name, value = found[1], _value(found[2], found[3])
        if name in keys:
            raise InputError(f"{path}: line {number} has {name} for the second time; give a file with one user")
        _refuse_bad_key(f"{path}: {name}", value)
        keys[name] = value
    missing = [name for name in ("accessKey", "secretKey") if name not in keys]
    if missing:
        raise InputError(f"{path} has no {' and no '.join(missing)}; {_EXAMPLE}")
    return Credentials(keys["accessKey"], keys["secretKey"], keys.get("securityToken"))


def _lines(path: str) -> list[str]:
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise InputError(f"{path} is too large for a file of keys; {_EXAMPLE}")
        return data.decode("utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; {_EXAMPLE}") from None


def _value(sign: str, text: str) -> str:
    """Return the value of a line without YAML quotes and comment.

    >>> _value(":", "'a key' # mine"), _value(":", "12345678 # mine"), _value("=", "a # b")
    ('a key', '12345678', 'a # b')
    """
    quoted = re.fullmatch(r"""(["'])(.*)\1(?:\s+#.*)?""", text)
    if quoted:
        return quoted[2]
    return re.split(r"\s+#|^#", text, maxsplit=1)[0] if sign == ":" else text


def _refuse_bad_key(name: str, value: str) -> None:
    if not value:
        raise InputError(f"{name} is empty")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{name} is not UTF-8 text") from None
    if not value.isprintable():
        raise InputError(f"{name} has a character that is not printable, such as a tab or a line feed")
