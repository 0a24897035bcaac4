"""The registry of all kinds of findings: the records in the modules of this package, and those of users' packages."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from mqreplay import findings
from mqreplay.findings.kind import FindingKind
from mqreplay.findings.packages import kinds_of_packages

NO_KINDS = frozenset({"registry", "every", "evidence_rules"})  # modules that import the registry, or records of others


def _shipped() -> dict[str, FindingKind]:
    """Return the records of the modules of this package, by name, in the order of the modules and their lines."""
    names = [module.name for module in pkgutil.iter_modules(findings.__path__) if module.name not in NO_KINDS]
    modules = [import_module(f"{findings.__name__}.{name}") for name in names]
    # A module may also import the record of another one: the name counts once.
    records = [value for module in modules for value in vars(module).values() if isinstance(value, FindingKind)]
    kinds = {kind.name: kind for kind in records}
    if len(kinds) < len({id(kind) for kind in records}):
        raise ValueError("two kinds of findings have one name")
    return kinds


SHIPPED: Mapping[str, FindingKind] = MappingProxyType(_shipped())
KINDS: Mapping[str, FindingKind] = MappingProxyType({**SHIPPED, **kinds_of_packages(SHIPPED)})
