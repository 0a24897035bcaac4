"""Handlers of damaged input catch no error of this machine's own disk."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import mqreplay
from mqreplay.words.errors import OwnDiskError

LIB = Path(mqreplay.__file__).parent
PACKAGES = ("recorder", "importer", "bundle", "decode", "ingest")
# (file, function) of handlers that may catch OSError, and why.
ALLOWED = {
    ("ingest/checksums.py", "_is_too_large"): "only reads input; errors of the machine are raised again",
    ("ingest/digests.py", "_read"): "only reads its own cache: what it lacks is hashed again",
    ("ingest/digests.py", "read"): "only reads input; errors of the machine are raised again",
    ("ingest/lines.py", "_cut"): "raised again after the lines before it",
    ("ingest/lines.py", "blocks"): "only reads input; errors of the machine are raised again",
    ("ingest/lines.py", "read_whole"): "the boundary: makes UnreadableInput",
    ("ingest/walk.py", "_file"): "only asks for the status of input",
    ("ingest/walk.py", "_is_folder"): "only asks for the status of input",
    ("ingest/walk.py", "files"): "only lists folders of input",
    ("machine/local_files.py", "_is_inside"): "a quick check, followed by the full one",
    ("machine/local_files.py", "local_folder"): "a wrong option, before the run",
    (
        "bundle/bundle_command.py",
        "bundle",
    ): "ends the run: a wrong --out; errors of the machine are raised again",
    ("bundle/bundle_files.py", "open"): "ends the run: the recording cannot be read",
    ("recorder/durable.py", "replace_file"): "removes its file before the first error is raised again",
    ("recorder/durable.py", "sync"): "raised again unless the file system cannot sync",
    ("importer/files/archives.py", "_read"): "bz2 has no error class; errors of files are other types",
    ("importer/files/imported_files.py", "_sources"): "only asks for the status of input",
    ("importer/import_command.py", "_is_recording"): "only lists a folder of input",
    ("importer/import_command.py", "zone_of_option"): "only reads the time zones of the system",
    ("importer/files/sources.py", "open_input"): "the boundary: makes UnreadableInput and OwnDiskError",
    ("importer/files/sources.py", "readinto"): "the boundary, and bz2 has no error class",
    ("importer/files/sources.py", "seek"): "makes DecodeError: a position outside of the file",
    ("importer/staging.py", "_remove_abandoned"): "removes what others left; its own files are elsewhere",
    ("importer/staging.py", "_lock"): "a file system without locks",
    ("importer/staging.py", "final_folder"): "a wrong option, before the run",
    ("importer/staging.py", "staged"): "a wrong option, before the run",
    ("recorder/network/brokers_json.py", "earlier_brokers"): "ends the run: a wrong --out",
    ("recorder/network/recorder.py", "_keep"): "ends the run with the error",
    ("recorder/durable.py", "own_disk"): "the boundary: makes OwnDiskError",
    ("recorder/record_files.py", "_changing"): "the boundary: makes RecordingFull",
    ("recorder/record_files.py", "_disk_use"): "only asks for the status of a file",
    ("recorder/record_files.py", "_sync"): "the boundary: makes RecordingFull",
    ("recorder/recording_folder.py", "held_folder"): "ends the run: a wrong --out",
    ("recorder/remoting/connection.py", "_open"): "the network: makes CallFailed",
    ("recorder/remoting/connection.py", "_read"): "the network: makes CallFailed",
    ("recorder/remoting/connection.py", "call"): "the network: makes CallFailed",
    ("recorder/remoting/credentials.py", "_lines"): "ends the run: a wrong option",
    ("recorder/remoting/credentials.py", "client_context"): "ends the run: a wrong option",
    ("recorder/store_folder.py", "_broker_of_option"): "ends the run: a wrong option",
    ("recorder/store_folder.py", "_name_in_topics"): "only reads the broker's store",
    ("recorder/store_folder.py", "broker_store"): "only reads the broker's store",
    ("recorder/whole_copy.py", "_read"): "only reads the broker's store",
    ("recorder/whole_copy.py", "signature_of"): "only asks for the status of input",
}


def test_no_handler_of_damaged_input_catches_errors_of_the_disk() -> None:
    paths = [LIB / "machine/local_files.py", *(path for package in PACKAGES for path in (LIB / package).rglob("*.py"))]
    found = {place for path in paths for place in broad_handlers(path)}
    assert found - ALLOWED.keys() == set(), "separate reading from writing, or raise UnreadableInput / OwnDiskError"
    assert ALLOWED.keys() - found == set(), "these places no longer catch OSError"


def broad_handlers(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (file, function) of each handler that catches OSError, or more, and does not only clean up."""
    name = path.relative_to(LIB).as_posix()
    module = importlib.import_module("mqreplay." + name.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
    tree = ast.parse(path.read_text())
    owners = {
        child: node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and _catches_own_disk(node, module):
            yield name, owners[node]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            yield from [(name, owners[node]) for each in node.args if _caught(each, module)]


def _catches_own_disk(node: ast.Try, module: object) -> bool:
    passed: set[type] = set()  # errors that an earlier handler raises again
    for handler in node.handlers:
        caught = _caught(handler.type or ast.Name("BaseException", ast.Load()), module) - passed
        if _raises_again(handler):
            passed |= caught
        elif caught:
            return True
    return False


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _caught(expression: ast.expr, module: object) -> set[type]:
    code = compile(ast.fix_missing_locations(ast.Expression(expression)), "handler", "eval")
    kinds = eval(code, vars(module))  # names of constants, such as UNREADABLE, too
    return {own for own in (OSError, OwnDiskError) if issubclass(own, kinds)}
