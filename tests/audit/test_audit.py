"""The audit: every component has an allowed licence, and its known vulnerabilities are reported."""

from __future__ import annotations

import json
import re
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from audit import components, run
from audit.components import LOCKS, REQUIREMENTS, Component, allowed, jars, packages, spdx
from mqreplay.lake.jars import delta_release, jars_folder

POM = """<project xmlns="any"><licenses><license><name>{}</name></license></licenses></project>"""


@pytest.fixture(scope="module")
def found() -> list[Component]:
    return [*packages(), *jars(jars_folder())]


def test_every_component_has_a_licence_that_is_allowed(found: list[Component]) -> None:
    assert [(each.purl, each.licence) for each in found if not allowed(each.licence)] == []


def test_every_locked_package_and_every_jar_is_there_once(found: list[Component]) -> None:
    purls = [component.purl for component in found]
    assert len(set(purls)) == len(purls)
    for lock in LOCKS:
        for line in (REQUIREMENTS / f"{lock}.txt").read_text(encoding="utf-8").splitlines():
            if match := re.match(r"([\w.-]+)==([\w.]+)", line):
                assert f"pkg:pypi/{match[1].lower().replace('_', '-')}@{match[2]}" in purls
    digests = {digest for component in found for digest in component.sha256}
    assert set(delta_release().jars.values()) <= digests
    assert sum(purl.startswith("pkg:maven/") for purl in purls) == len(list(jars_folder().glob("*.jar")))
    assert not [purl for purl in purls if "/unknown/" in purl or purl.endswith("@")]


def test_bill_of_materials_is_cyclonedx(found: list[Component]) -> None:
    bill = run.bill_of_materials(found)
    assert (bill["bomFormat"], bill["specVersion"], len(bill["components"])) == ("CycloneDX", "1.5", len(found))
    by_name = {entry["name"]: entry for entry in bill["components"]}
    assert by_name["pyspark"]["purl"].startswith("pkg:pypi/pyspark@")
    assert (by_name["pyspark"]["scope"], by_name["pytest"]["scope"]) == ("required", "excluded")
    assert by_name["delta-storage"]["purl"] == "pkg:maven/io.delta/delta-storage@4.4.0"
    assert by_name["delta-storage"]["licenses"] == [{"expression": "Apache-2.0"}]
    digest = delta_release().jars["delta-storage-4.4.0.jar"]
    assert by_name["delta-storage"]["hashes"] == [{"alg": "SHA-256", "content": digest}]


@pytest.mark.parametrize(
    ("words", "licence", "good"),
    [
        ("GNU General Public License v3 (GPLv3)", "GPL-2.0-only", False),
        ("GNU AFFERO GENERAL PUBLIC LICENSE (AGPL)", "AGPL-3.0-only", False),
        ("LGPL 2.1", "LGPL-2.1-only", False),
        ("Commercial", None, False),
        ("MIT License", "MIT", True),
        ("The BSD 3-Clause License", "BSD-3-Clause", True),
    ],
)
def test_licence_of_a_jar_is_read_and_judged(words: str, licence: str | None, good: bool, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "thing-extra-1.2.3.jar", "w") as packed:
        packed.writestr("META-INF/maven/org.thing/thing-extra/pom.xml", POM.format(words))
    (jar,) = jars(tmp_path)
    assert (jar.purl, jar.licence) == ("pkg:maven/org.thing/thing-extra@1.2.3", licence)
    assert (spdx(words), allowed(jar.licence)) == (licence, good)


def test_package_that_is_not_installed_as_locked_fails(tmp_path: Path, monkeypatch, capsys) -> None:
    for lock in LOCKS:
        (tmp_path / f"{lock}.txt").write_text("pytest==0.0.1 \\\n    --hash=sha256:00\nno-such-package==1 \\\n")
    monkeypatch.setattr(components, "REQUIREMENTS", tmp_path)
    monkeypatch.setattr(run, "jars_folder", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    with database({}) as address:
        monkeypatch.setenv("AUDIT_SERVICE", address)
        assert run.main() == 1
    told = capsys.readouterr().out
    assert told.count("NOT ALLOWED: pkg:pypi/") == 2
    assert "NOT ALLOWED: pkg:pypi/pytest@0.0.1: no licence is known, or it is not installed as locked" in told


@contextmanager
def database(known: dict[str, str]) -> Iterator[str]:
    """A server that answers as OSV does: of a purl (its beginning), the vulnerability that is known."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            purls = [query["package"]["purl"] for query in asked]
            names = [[name for begin, name in known.items() if purl.startswith(begin)] for purl in purls]
            results = [{"vulns": [{"id": name, "modified": ""} for name in found]} if found else {} for found in names]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"results": results}).encode())

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(("needed", "fails"), [("pkg:maven/org.lz4/", True), ("pkg:pypi/pytest@", False)])
def test_known_vulnerability_of_what_a_run_needs_fails(found, needed: str, fails: bool, capsys) -> None:
    with database({needed: "CVE-2999-1"}) as address:
        assert run.check_vulnerabilities(found, address) == fails
    told = capsys.readouterr().out
    assert f"VULNERABLE: {needed}" in told
    assert f"1 of {len(found)} components have known vulnerabilities" in told


def test_database_that_cannot_be_asked_is_told_in_one_line(found, capsys) -> None:
    assert not run.check_vulnerabilities(found[:3], "http://127.0.0.1:9")
    assert capsys.readouterr().out.count("\n") == 1
