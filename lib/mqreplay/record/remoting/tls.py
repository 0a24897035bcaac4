"""TLS for connections to name servers and brokers. A server in permissive mode takes TLS and plain on one port.

As in RocketMQ's own client, a private CA is checked without the host name: brokers are called by the address they
register, which their certificates seldom name. Source: TlsHelper#buildSslContext, TlsSystemConfig.
"""

from __future__ import annotations

import ssl

from mqreplay.errors import InputError


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
