"""Print the test files whose imports reach a module or test that changed: `make test-changed`.

Changed is what differs from a commit, HEAD if none is named. No import shows what is no Python below lib, tests or
tools, such as a contract or a recording, nor what is gone: then all tests are printed.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
LIB, TESTS, TOOLS = ROOT / "lib", ROOT / "tests", ROOT / "tools"
NO_CODE = {"changelog.d", "docs", "CHANGELOG.md", "CONTRIBUTING.md"}  # `make docs` and tests/tools check pages

# Modules that import those of a package by their names.
BY_NAME = {
    "mqreplay.findings.registry": "mqreplay.findings",
    "mqreplay.decode.kinds": "mqreplay.decode",
}


def changed(base: str = "HEAD") -> list[Path]:
    """Return the paths that differ from a commit, and those that git does not know yet."""
    commands = (["git", "diff", "--name-only", base], ["git", "ls-files", "--others", "--exclude-standard"])
    listed = (subprocess.run(each, cwd=ROOT, capture_output=True, text=True, check=True).stdout for each in commands)
    return [ROOT / name for names in listed for name in names.splitlines()]


def module_of(path: Path, root: Path) -> str:
    """Return the dotted name of a file as modules below ``root`` import it."""
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports(path: Path) -> set[str]:
    """Return the modules that a file names in imports, and what it imports from them: either may be a module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@cache
def graph_of_lib() -> grimp.ImportGraph:
    """Return the imports of lib."""
    graph = grimp.build_graph("mqreplay", cache_dir=None)
    for importer, package in BY_NAME.items():
        for imported in graph.find_children(package) - {importer}:
            graph.add_import(importer=importer, imported=imported)
    return graph


def reached(paths: list[Path]) -> list[Path]:
    """Return the test files that reach one of the changed files by imports, or are one of them."""
    graph = graph_of_lib()
    of_lib = {module_of(path, LIB) for path in paths if path.is_relative_to(LIB)} & graph.modules
    hit = of_lib | {name for module in of_lib for name in graph.find_downstream_modules(module)}
    files = {module_of(path, root): path for root in (TESTS, TOOLS) for path in root.rglob("*.py")}
    named = {name: imports(path) for name, path in files.items()}
    hit |= {name for name, path in files.items() if path in paths}
    while new := {name for name, of in named.items() if name not in hit and of & hit}:
        hit |= new
    with_fixtures = [path.parent for path in paths if path.name == "conftest.py"]
    return sorted(
        path
        for name, path in files.items()
        if path.name.startswith("test_") and (name in hit or any(map(path.is_relative_to, with_fixtures)))
    )


def main() -> None:
    """Print the files, one a line."""
    paths = [path for path in changed(*sys.argv[1:]) if path.relative_to(ROOT).parts[0] not in NO_CODE]
    seen = [
        path
        for path in paths
        if path.suffix == ".py" and path.exists() and any(map(path.is_relative_to, (LIB, TESTS, TOOLS)))
    ]
    found = reached(paths) if seen == paths else [TESTS]
    print("\n".join(str(path.relative_to(ROOT)) for path in found))


if __name__ == "__main__":
    main()
