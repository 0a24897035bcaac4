"""The message for workers whose Python cannot run tasks. tests/jobs/test_packed_environment.py has a real case."""

from __future__ import annotations

import pytest

from mqreplay.engines.spark_errors import known_errors
from mqreplay.errors import InputError

SPARK_SAYS = {
    "Error from python worker:\n  /usr/bin/python3: Error while finding module specification for "
    "'mqreplay.lake.worker_daemon' (ModuleNotFoundError: No module named 'mqreplay')\nPYTHONPATH was:": (
        "the Python of the workers has no module mqreplay; "
    ),
    'java.io.IOException: Cannot run program "./environment/bin/python": error=2, No such file or directory': (
        "the workers have no program ./environment/bin/python; "
    ),
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot "
    "run with different minor versions.": "the workers have Python 3.12, the driver has 3.11; ",
}


@pytest.mark.parametrize(("text", "problem"), SPARK_SAYS.items())
def test_one_line_names_the_problem_and_what_to_do(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught, known_errors():
        raise RuntimeError(f"Job aborted due to stage failure: {text}")
    error = caught.value
    assert str(error).startswith(problem)
    assert "--archives environment.tar.gz#environment" in str(error)
    assert "\n" not in str(error)


def test_other_errors_keep_their_text() -> None:
    with pytest.raises(RuntimeError, match="KeyError: 'x'"), known_errors():
        raise RuntimeError("Job aborted: KeyError: 'x'")
