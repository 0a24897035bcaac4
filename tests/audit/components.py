"""The components of mqreplay: the locked Python packages, and the JARs added to Spark, each with its licence."""

from __future__ import annotations

import fnmatch
import hashlib
import importlib.metadata
import re
import tomllib
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REQUIREMENTS = HERE.parents[1] / "requirements"
LOCKS = ("runtime", "build", "dev", "bench")
PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[\w,-]+\])?==([^\s\\;]+)", re.MULTILINE)
JAR = re.compile(r"((?P<artifact>.+?)-)?(?P<version>\d[\w.-]*?)(-shaded-protobuf|-jdk8)?\.jar")
POM = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.xml")
LICENCE_FILE = re.compile(r"(META-INF/)?(LICEN[SC]E)(\.txt|\.md)?", re.IGNORECASE)


@dataclass(frozen=True)
class Component:
    """A package or a JAR. ``licence`` is an SPDX expression, or None where none is known."""

    purl: str
    name: str
    version: str
    licence: str | None
    needed_to_run: bool
    sha256: tuple[str, ...] = ()


def knowledge() -> dict[str, Any]:
    """Return the content of licences.toml."""
    return tomllib.loads((HERE / "licences.toml").read_text(encoding="utf-8"))


def packages() -> Iterator[Component]:
    """The packages of the lock files, each once; a package that is not installed as locked has no licence."""
    seen = set()
    for lock in LOCKS:
        for name, version in PINNED.findall((REQUIREMENTS / f"{lock}.txt").read_text(encoding="utf-8")):
            if (name, version) not in seen:
                seen.add((name, version))
                purl = f"pkg:pypi/{re.sub('[-_.]+', '-', name).lower()}@{version}"
                yield Component(purl, name, version, _package_licence(name, version), lock == "runtime")


def jars(folder: Path) -> Iterator[Component]:
    """The JARs of a folder."""
    for path in sorted(folder.glob("*.jar")):
        with zipfile.ZipFile(path) as packed:
            yield _jar(path, packed)


def spdx(words: str) -> str | None:
    """The SPDX identifier that words of a licence mean, or None.

    >>> spdx("The Apache Software License, Version 2.0"), spdx("MIT License"), spdx("Company Secret")
    ('Apache-2.0', 'MIT', None)
    """
    table = knowledge()["words"].items()
    return next((name for pattern, name in table if re.search(pattern, words, re.IGNORECASE)), None)


def allowed(expression: str | None) -> bool:
    """Whether licences.toml allows an SPDX expression, without parentheses.

    >>> allowed("GPL-3.0-only OR MIT"), allowed("MIT AND GPL-3.0-only"), allowed(None)
    (True, False, False)
    """
    if expression is None:
        return False
    choices = [choice.strip("() ").split(" AND ") for choice in expression.split(" OR ")]
    return any(set(choice) <= set(knowledge()["allowed"]) for choice in choices)


def _package_licence(name: str, version: str) -> str | None:
    try:
        installed = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    if installed.version != version:
        return None
    told = installed.metadata
    if told["License-Expression"]:
        return str(told["License-Expression"])
    if told["License"] and re.fullmatch(r"[\w.-]+( (OR|AND) [\w.-]+)+", told["License"]):
        return str(told["License"])
    classified = [each.rpartition(":: ")[2] for each in told.get_all("Classifier") or [] if each.startswith("License")]
    named = [told["License"] or ""] if len(told["License"] or "") < 80 else []
    return _together([*named, *classified]) or knowledge()["packages"].get(name)


def _together(words: list[str]) -> str | None:
    found = [name for each in words if (name := spdx(each)) is not None]
    exact = [name for name in found if not name.startswith("LicenseRef")] or found
    return " OR ".join(dict.fromkeys(exact)) or None


def _jar(path: Path, packed: zipfile.ZipFile) -> Component:
    poms = {name.split("/")[3]: name for name in packed.namelist() if POM.fullmatch(name)}
    own = max((artifact for artifact in poms if path.name.startswith(f"{artifact}-")), key=len, default="")
    match = JAR.fullmatch(path.name.removeprefix(f"{own}-") if own else path.name)
    artifact, version = own or (match and match["artifact"]) or path.stem, match["version"] if match else ""
    known = next((v for k, v in knowledge()["jars"].items() if fnmatch.fnmatchcase(artifact, k)), None)
    group = poms[own].split("/")[2] if own else known[0] if known else _of_project(artifact)
    licence = known[1] if known else _told(packed, poms.get(own))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Component(f"pkg:maven/{group}/{artifact}@{version}", artifact, version, licence, True, (digest,))


def _of_project(artifact: str) -> str:
    return "org.apache.spark" if artifact.startswith("spark-") else "unknown"


def _told(packed: zipfile.ZipFile, pom: str | None) -> str | None:
    """Return the licence in a JAR: from its pom.xml, its manifest, or the first lines of a licence file."""
    if pom is not None:
        text = re.sub(r'\sxmlns="[^"]*"', "", packed.read(pom).decode("utf-8", "replace"))
        names = [name.text or "" for name in ElementTree.fromstring(text.encode()).findall("licenses/license/name")]
        if found := _together(names):
            return found
    if "META-INF/MANIFEST.MF" in packed.namelist():
        manifest = packed.read("META-INF/MANIFEST.MF").decode("utf-8", "replace").replace("\r", "").replace("\n ", "")
        line = re.search(r"^Bundle-License: (.*)$", manifest, re.MULTILINE)
        if line and (found := _together(line[1].split(","))):
            return found
    texts = [name for name in packed.namelist() if LICENCE_FILE.fullmatch(name)]
    return _together([packed.read(texts[0])[:400].decode("utf-8", "replace")]) if texts else None
