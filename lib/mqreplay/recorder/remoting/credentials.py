"""The access and secret key of mqreplay's user, from a file or the environment, and TLS for its connections.

The file is RocketMQ's tools.yml, or properties with the same names. Errors and repr never contain a key.

A server in permissive mode takes TLS and plain on one port. As in RocketMQ's own client, a private CA is checked
without the host name: brokers are called by the address they register, which their certificates seldom name.
Source: TlsHelper#buildSslContext, TlsSystemConfig.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mqreplay.words.errors import InputError

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


def client_context(
    ca: str | None, cert: str | None, key: str | None, verify: bool, key_password: str | None = None
) -> ssl.SSLContext:
    """Return the settings of TLS connections. All files are PEM.

    Args:
        ca: certificates that sign the servers' own. None: the machine's, and then the host name is checked too.
        cert: this client's certificate, for servers that ask for one (tls.server.need.client.auth).
        key: the certificate's private key. None: it is in the file of the certificate.
        verify: whether a server needs a valid certificate. Without, anyone in between can read the answers.
        key_password: of an encrypted key.

    Raises:
        InputError: a file cannot be read or is not what it should be.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = verify and ca is None
    context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
    if ca is not None:
        context = _private(context)
        try:
            context.load_verify_locations(cafile=ca)
        except OSError as error:
            raise InputError(f"{ca} is not a file of certificates: {_reason(error)}") from None
    if key is not None and cert is None:
        raise InputError(f"{key} is a private key without a certificate: give both")
    if cert is not None:
        try:
            # Without a password, OpenSSL would ask for one at the terminal.
            context.load_cert_chain(cert, key, password=lambda: key_password or "")
        except (OSError, ValueError) as error:
            names = cert if key is None else f"{cert} and {key}"
            raise InputError(f"{names} are not a certificate and its private key: {_reason(error)}") from None
    return context


def _private(context: ssl.SSLContext) -> ssl.SSLContext:
    """Return the settings without the machine's certificates: only the CA of the options counts."""
    private = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    private.minimum_version = context.minimum_version
    private.check_hostname = context.check_hostname
    private.verify_mode = context.verify_mode
    return private


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason.replace("_", " ").lower() if error.reason else "it is not PEM, or the password is wrong"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
