"""RocketMQ's decisions as pure functions: the law. Standard library only (and the parser library, for SQL92 filters).

Each file is one idea, each function one decision, named and argued as RocketMQ names it; docs/decisions.md lists them.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

# A module of 0.2.0 -> the module that has its names; 0.5.0 removes the old names.
MOVED = {
    "allocation_strategy": "allocation",
    "burrow": "status_windows",
    "java_double": "java_numbers",
    "java_text": "java",
    "parse_number": "java_numbers",
    "pop_answer": "pop_receipt",
    "pop_retry_topic": "retry_topic",
    "simple_date_format": "compute_pull_from",
    "sql92_error": "sql92_parse",
    "sql92_evaluate": "sql92",
    "transfer": "slave_suggestion",
}


class _MovedModules(MetaPathFinder, Loader):
    """Finds modules by their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that moved."""
        package, _, name = fullname.rpartition(".")
        return ModuleSpec(fullname, self) if package == __name__ and name in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        """Answer each public name by the module that has it now, with a warning."""
        old = module.__name__
        new = f"{__name__}.{MOVED[old.rpartition('.')[2]]}"

        def moved(name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            value = getattr(import_module(new), name)
            warnings.warn(f"{old} is deprecated, use {new}; 0.5.0 removes it", DeprecationWarning, stacklevel=2)
            return value

        module.__dict__["__getattr__"] = moved


sys.meta_path.append(_MovedModules())
