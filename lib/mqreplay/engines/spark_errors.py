"""Errors of Spark that a user can mend, as mqreplay's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mqreplay.errors import InputError, MqreplayError, StoreError, StoreUnavailable

# In the text of Spark's errors; a worker's Python that cannot start leaves nothing else.
NO_MODULE = re.compile(r"No module named '?(\w+)")
NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
OTHER_VERSION = re.compile(r"Python in worker has different version: ([\d.]+) than that in driver: ([\d.]+)")
NO_CLIENT = re.compile(r"Class (org\.apache\.hadoop\.fs\.[\w.]+) not found|No FileSystem for scheme \"?(\w+)")
STORE_ERROR = re.compile(r"mqreplay\.errors\.(StoreError|StoreUnavailable): (.+)")


@contextmanager
def known_errors() -> Iterator[None]:
    """Raise errors that are about a store or the workers' Python in one line that says what to do."""
    try:
        yield
    except MqreplayError:
        raise
    except Exception as error:
        known = _of_store(error) or _of_store_client(error) or _of_workers(error)
        if known is not None:
            raise known from None
        raise


def _of_store(error: Exception) -> StoreError | None:
    """Return the error of a store that made a task fail; Spark hands on its text alone."""
    found = STORE_ERROR.search(str(error))
    if found is None:
        return None
    return StoreUnavailable(found[2]) if found[1] == "StoreUnavailable" else StoreError(found[2])


def _of_store_client(error: Exception) -> InputError | None:
    """Return which class of Hadoop Spark lacks to open the tables; None if that is not the reason."""
    found = NO_CLIENT.search(str(error))
    if found is None:
        return None
    return InputError(
        f"Spark cannot open the tables: it has no Hadoop client for them ({found[1] or found[2]}); give spark-submit "
        "--packages with the client in the version of Spark's Hadoop (docs/stores.md), or use --engine local, which "
        "needs none"
    )


def _of_workers(error: Exception) -> MqreplayError | None:
    """Return what is wrong with the Python of the workers; None if that is not the reason."""
    text = str(error)
    if found := NO_MODULE.search(text):
        problem = f"the Python of the workers has no module {found[1]}"
    elif found := NO_PROGRAM.search(text):
        problem = f"the workers have no program {found[1]}"
    elif found := OTHER_VERSION.search(text):
        problem = f"the workers have Python {found[1]}, the driver has {found[2]}"
    else:
        return None
    return InputError(
        f"{problem}; install the same Python and mqreplay on all machines, or give spark-submit --archives "
        "environment.tar.gz#environment and PYSPARK_PYTHON=./environment/bin/python"
    )
