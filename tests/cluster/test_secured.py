"""Recordings of clusters with ACL or TLS, and the error line of a refused recorder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.clients import client_processes, wait_until
from cluster.clusters import Cluster
from cluster.recorders import Recorder, recorder
from cluster.secured import ADMINISTRATOR, READER, TLS_CLIENTS, add_acl_broker, create_reader, tls_servers
from recorder.remoting.certificates import Authority

KINDS = ("broker_runtime", "consumer_lists", "consumer_connections", "assignments", "routes", "cluster_info")
pytestmark = [pytest.mark.long, pytest.mark.parametrize("version", ["5.3.3", "4.9.7"])]


def test_acl(tmp_path: Path, version: str) -> None:
    with _cluster(tmp_path, version, acl=True) as cluster:
        reader = {"MQREPLAY_ACCESS_KEY": READER[0], "MQREPLAY_SECRET_KEY": READER[1]}
        with recorder(cluster.name_servers, tmp_path / "right", "--every", "1s", env=reader) as running:
            _recorded(running)
            running.finish()
        assert READER[1] not in running.output()
        _refused(cluster, tmp_path / "wrong", {**reader, "MQREPLAY_SECRET_KEY": "not-the-lantern"}, "check the keys")
        _refused(cluster, tmp_path / "none", {}, "--acl-file")


def test_tls(tmp_path: Path, version: str) -> None:
    with _cluster(tmp_path, version, acl=False) as cluster:
        certificates = tmp_path / "our-ca.pem"
        with recorder(
            cluster.name_servers, tmp_path / "right", "--every", "1s", "--tls-ca", str(certificates)
        ) as running:
            _recorded(running)
            running.finish()
        with recorder(cluster.name_servers, tmp_path / "any", "--every", "1s", "--tls-no-verify") as running:
            _recorded(running)
            running.finish()
        _refused(cluster, tmp_path / "unknown", {}, "certificate", "--tls")
        _refused(cluster, tmp_path / "plain", {}, "tls")


@contextmanager
def _cluster(folder: Path, version: str, *, acl: bool) -> Iterator[Cluster]:
    """Yield a name server, a master and a consumer that ask for signatures, or for TLS."""
    cluster = Cluster(
        folder / "cluster", version, options=[] if acl else tls_servers(*Authority(folder, "our-ca").signed("servers"))
    )
    try:
        cluster.add_name_server()
        if acl:
            add_acl_broker(cluster, "die-1")
        else:
            cluster.add_broker("die-1")
        cluster.start()
        options, credentials = ([], ADMINISTRATOR) if acl else (TLS_CLIENTS, None)
        with client_processes(cluster, "one", options=options, credentials=credentials) as (client,):
            if acl:
                create_reader(cluster, client)
            client.create_topic("coins", {"die-1": 2})
            client.consumer("counters", {"coins": "*"})
            client.send("coins", "coin-1")
            yield cluster
    finally:
        cluster.stop()


def _recorded(running: Recorder) -> None:
    """Wait until the recorder has written an answer of each kind, and none with an error."""

    def complete() -> bool:
        assert running.process.poll() is None, running.output()
        return all(running.lines(kind) for kind in KINDS)

    wait_until(complete, "the recorder has records of all kinds")
    for kind in KINDS:
        for line in running.lines(kind):
            assert not line.get("error"), f"{kind}: {line}"
            assert line.get("response_code", 0) == 0 or "%RETRY%" in str(line), f"{kind}: {line}"


def _refused(cluster: Cluster, out: Path, env: dict[str, str], reason: str, *arguments: str) -> None:
    """Check that a refused recorder prints the reason and the advice in one line."""
    with recorder(cluster.name_servers, out, *arguments, env=env) as running:
        assert running.wait() == 2
    lines = running.output().splitlines()
    assert len(lines) == 1, running.output()
    assert lines[0].startswith("mqreplay: ")
    assert reason in lines[0].lower()
    assert not any(key in lines[0] for key in (READER[1], "not-the-lantern"))
