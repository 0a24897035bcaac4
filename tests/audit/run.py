"""Licences, a bill of materials and known vulnerabilities of what mqreplay is made of.

    make audit

Exit status: 0 all is well, or no database of vulnerabilities can be reached; 1 a licence is not allowed, or a component
that a run needs has a known vulnerability. AUDIT_SERVICE is the address of a database with the API of OSV.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from audit.components import Component, allowed, jars, packages
from audit.vulnerabilities import known_vulnerabilities
from mqreplay import __version__
from mqreplay.lake.jars import jars_folder

SBOM = Path("dist", f"mqreplay-{__version__}.cdx.json")
SERVICE = "https://api.osv.dev"


def main() -> int:
    """Print what is found, write the bill of materials; return the exit status."""
    components = [*packages(), *jars(jars_folder())]
    print(licence_table(components))
    wrong = [component for component in components if not allowed(component.licence)]
    for component in wrong:
        told = component.licence or "no licence is known, or it is not installed as locked"
        print(f"NOT ALLOWED: {component.purl}: {told}")
    SBOM.parent.mkdir(exist_ok=True)
    SBOM.write_text(json.dumps(bill_of_materials(components), indent=1) + "\n", encoding="utf-8")
    print(f"{len(components)} components in {SBOM} (CycloneDX)")
    vulnerable = check_vulnerabilities(components, os.environ.get("AUDIT_SERVICE", SERVICE))
    return 1 if wrong or vulnerable else 0


def licence_table(components: Sequence[Component]) -> str:
    """A line for each licence: how many packages and JARs have it, and the names of the first."""
    groups: dict[str, list[Component]] = defaultdict(list)
    for component in components:
        groups[component.licence or "unknown"].append(component)
    lines = [f"{'licence':58}  packages  JARs  such as"]
    for licence, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        of_java = sum(component.purl.startswith("pkg:maven") for component in group)
        names = ", ".join(component.name for component in group[:3])
        lines.append(f"{licence:58}  {len(group) - of_java:8}  {of_java:4}  {names}")
    return "\n".join(lines)


def bill_of_materials(components: Sequence[Component]) -> dict[str, Any]:
    """The components as CycloneDX 1.5; the same components give the same document."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "mqreplay", "version": __version__}},
        "components": [_entry(component) for component in components],
    }


def check_vulnerabilities(components: Sequence[Component], service: str) -> bool:
    """Print what is known; whether any of it concerns what a run needs."""
    try:
        found = known_vulnerabilities(components, service)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"vulnerabilities were not checked: {service} cannot be asked ({error})")
        return False
    needed = {component.purl for component in components if component.needed_to_run}
    for purl, names in sorted(found.items()):
        print(f"VULNERABLE: {purl}{'' if purl in needed else ' (only for development)'}: {', '.join(names)}")
    print(f"{len(found)} of {len(components)} components have known vulnerabilities")
    return bool(needed & found.keys())


def _entry(component: Component) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "library", "bom-ref": component.purl, "purl": component.purl}
    entry |= {"name": component.name, "version": component.version}
    entry["scope"] = "required" if component.needed_to_run else "excluded"
    if component.licence:
        entry["licenses"] = [{"expression": component.licence}]
    if component.sha256:
        entry["hashes"] = [{"alg": "SHA-256", "content": digest} for digest in component.sha256]
    return entry


if __name__ == "__main__":
    sys.exit(main())
