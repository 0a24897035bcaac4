"""Connections over TLS: certificates that are right, wrong, asked for and missing. The server is one of the tests."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from mqreplay.recorder.remoting.connection import CallFailed, Connections
from mqreplay.recorder.remoting.credentials import client_context
from mqreplay.recorder.remoting.requests import ReadCode, Request
from mqreplay.words.errors import InputError
from recorder.remoting.certificates import Authority
from recorder.remoting.remoting_server import Peer, echo, serving

PASSWORD = "s3cret"


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ours"), "our-ca")


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("others"), "other-ca")


def server_context(authority: Authority, cert: str, key: str, asks: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if asks:
        context.load_verify_locations(authority.ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def outcome(server: ssl.SSLContext | None, client: ssl.SSLContext | None, behave=echo) -> str:
    """How a call ends: "answered", or the kind of failure and its detail."""

    async def talk() -> str:
        async with serving(behave, server) as address:
            connections = Connections(None, client)
            try:
                await connections.call(address, Request(ReadCode.GET_BROKER_RUNTIME_INFO), 5)
            except CallFailed as error:
                return f"{error.kind}: {error.detail}".replace(address, "ADDR")
            finally:
                await connections.close()
        return "answered"

    return asyncio.run(talk())


def test_a_server_whose_ca_is_known_needs_no_name(ours):
    server = server_context(ours, *ours.signed("server"))
    assert outcome(server, client_context(ours.ca, None, None, True)) == "answered"


def test_a_server_of_another_ca_is_refused(ours, others):
    server = server_context(others, *others.signed("server"))
    output = "unreachable: no connection to ADDR: its certificate is refused: "
    assert outcome(server, client_context(ours.ca, None, None, True)).startswith(output)
    assert outcome(server, client_context(None, None, None, True)).startswith(output)
    assert outcome(server, client_context(None, None, None, False)) == "answered"
    assert outcome(server, client_context(ours.ca, None, None, False)) == "answered"


def test_with_the_certificates_of_the_machine_the_name_counts(ours, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", ours.ca)
    nameless = server_context(ours, *ours.signed("nameless"))
    named = server_context(ours, *ours.signed("named", "127.0.0.1"))
    assert outcome(named, client_context(None, None, None, True)) == "answered"
    assert "IP address mismatch" in outcome(nameless, client_context(None, None, None, True))


def test_a_server_that_asks_for_a_certificate(ours, others):
    server = server_context(ours, *ours.signed("server"), asks=True)
    assert outcome(server, client_context(ours.ca, *ours.signed("client"), True)) == "answered"
    locked = ours.signed("locked", password=PASSWORD)
    assert outcome(server, client_context(ours.ca, *locked, True, PASSWORD)) == "answered"
    for client in (client_context(ours.ca, None, None, True), client_context(ours.ca, *others.signed("client"), True)):
        # TLS 1.3: the server refuses after the client's handshake is done.
        assert outcome(server, client) == (
            "closed: ADDR: the server closed the connection before it answered; does it want a client certificate?"
        )


def test_plain_where_tls_is_wanted_gives_the_hint(ours):
    """RocketMQ's server closes such a connection."""
    server = server_context(ours, *ours.signed("server"))
    assert outcome(server, None) == (
        "closed: ADDR: the server closed the connection before it answered; does it want TLS?"
    )


def test_tls_where_none_is_spoken():
    async def closes(peer: Peer) -> None:
        await peer.reader.read(4)

    output = outcome(None, client_context(None, None, None, False), closes)
    assert output.startswith("unreachable: no connection to ADDR: ")
    assert output.endswith("does it speak TLS?")


def test_files_that_are_wrong_are_named(ours, others, tmp_path):
    cert, key = ours.signed("client")
    _, other_key = others.signed("client")
    _, locked = ours.signed("locked", password=PASSWORD)
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    none = str(tmp_path / "none.pem")
    for arguments, output in (
        ((none, None, None, True), "none.pem is not a file of certificates: No such file or directory"),
        ((str(empty), None, None, True), "empty.pem is not a file of certificates: no certificate or crl found"),
        ((key, None, None, True), "client.key is not a file of certificates: no certificate or crl found"),
        ((ours.ca, none, None, True), "none.pem are not a certificate and its private key: No such file or directory"),
        ((ours.ca, cert, other_key, True), "client.key are not a certificate and its private key: key values mismatch"),
        ((ours.ca, None, key, True), "client.key is a private key without a certificate: give both"),
        ((ours.ca, cert, locked, True), "are not a certificate and its private key: it is not PEM, or the password"),
        ((ours.ca, cert, locked, True, "wr0ng"), "are not a certificate and its private key: "),
    ):
        with pytest.raises(InputError) as caught:
            client_context(*arguments)
        assert output in str(caught.value)
        assert "wr0ng" not in str(caught.value)
