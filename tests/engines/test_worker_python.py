"""The messages for workers whose Python cannot run tasks, and for stores that Spark cannot open.

tests/jobs/test_packed_environment.py and tests/storage/test_standalone_nights.py have real cases.
"""

from __future__ import annotations

import pytest

from mqreplay.engines.spark_tables import known_errors
from mqreplay.words.errors import InputError

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


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        (
            "java.lang.RuntimeException: java.lang.ClassNotFoundException: Class "
            "org.apache.hadoop.fs.s3a.S3AFileSystem not found",
            "org.apache.hadoop.fs.s3a.S3AFileSystem",
        ),
        ('org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "gs"', "gs"),
    ],
)
def test_a_store_that_spark_has_no_client_for_is_one_line(text: str, lacking: str) -> None:
    with pytest.raises(InputError) as caught, known_errors():
        raise RuntimeError(f"An error occurred while calling o226.load.\n: {text}\n\tat org.apache.spark")
    assert f"no Hadoop client for them ({lacking})" in str(caught.value)
    assert "--packages" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_errors_keep_their_text() -> None:
    with pytest.raises(RuntimeError, match="KeyError: 'x'"), known_errors():
        raise RuntimeError("Job aborted: KeyError: 'x'")
