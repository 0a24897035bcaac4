"""A query of an agent: in a process of its own, with bounds of rows, bytes, seconds and memory."""

from __future__ import annotations

import json
import pickle
import sys
from typing import TYPE_CHECKING, Any

from mqreplay.answers.query_bounds import MOST_MEMORY, TOO_LARGE
from mqreplay.lake.files import is_remote
from mqreplay.words.errors import InputError, MqreplayError
from mqreplay.words.printable import plain_value

if TYPE_CHECKING:
    from mqreplay.settings import Settings

MOST_ROWS = 200
MOST_BYTES = 1_000_000
MOST_SECONDS = 50  # many clients wait 60 s
PROGRAM = "from mqreplay.mcp.query import answer_parent; answer_parent()"


async def bounded_answer(root: str, query: str, settings: Settings) -> dict[str, Any]:
    """Return columns and rows. Who cancels this ends the query, too. Raises InputError."""
    import anyio

    command = [sys.executable, "-c", PROGRAM]
    try:
        with anyio.fail_after(MOST_SECONDS):
            asked = pickle.dumps((root, query, settings))
            ended = await anyio.run_process(command, input=asked, stderr=None, check=False)
    except TimeoutError:
        raise InputError(
            f"query: it took more than {MOST_SECONDS} s and was ended; add conditions on day or cluster, or a LIMIT"
        ) from None
    if ended.returncode:
        raise InputError(TOO_LARGE)
    answer: dict[str, Any] = json.loads(ended.stdout)
    if "error" in answer:
        raise InputError(answer["error"])
    return answer


def answer_parent() -> None:
    """Read the query of ``bounded_answer`` from stdin, and print its answer as JSON."""
    from mqreplay.lake.separate_process import end_with_parent

    end_with_parent()
    try:
        answer = _answer(*pickle.load(sys.stdin.buffer))
    except MqreplayError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": TOO_LARGE}
    print(json.dumps(answer))


def _answer(root: str, query: str, settings: Settings) -> dict[str, Any]:
    from mqreplay.answers.duckdb_query import duckdb_typed_stream

    if is_remote(root):
        from mqreplay.lake.storage import use_settings

        use_settings(settings)
    head, stream = duckdb_typed_stream(root, query, MOST_MEMORY)
    names = [name for name, _ in head]
    rows: list[list[Any]] = []
    size = 0
    for row in stream:
        if len(rows) == MOST_ROWS:
            break
        rows.append([plain(value) for value in row])
        size += len(json.dumps(rows[-1]))
        if size > MOST_BYTES:
            raise InputError(
                f"query: the answer is larger than {MOST_BYTES:,} bytes; choose fewer columns, shorten long values "
                "with left(column, 200), or add a LIMIT"
            )
    else:
        types = {} if rows else {"types": [kind for _, kind in head]}  # which rows would show
        return {"columns": names, **types, "rows": rows, "count": len(rows)}
    more = f"only the first {MOST_ROWS} rows are here; add conditions, or count and group in the query"
    return {"columns": names, "rows": rows, "count": None, "more": more}


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else plain_value(value)
