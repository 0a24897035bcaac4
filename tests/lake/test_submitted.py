"""Settings that come too late under spark-submit are refused with the option that gives them in time."""

from __future__ import annotations

import pytest

from mqreplay.lake.submitted import DRIVER_MEMORY, MASTER, require_in_time
from mqreplay.settings import SparkSettings
from mqreplay.words.errors import SettingsError

JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    ("settings", "given", "key", "options"),
    [
        (SparkSettings(driver_memory="6g"), {}, "[spark] driver_memory = '6g'", "--driver-memory 6g"),
        (SparkSettings(driver_memory="6g"), {DRIVER_MEMORY: "4g"}, "has '4g'", "--driver-memory 6g"),
        (SparkSettings(driver_memory="huge"), {DRIVER_MEMORY: "4g"}, "'huge'", "--driver-memory huge"),
        (SparkSettings(extra={DRIVER_MEMORY: "6g"}), {}, f"[spark.extra] {DRIVER_MEMORY}", "--driver-memory 6g"),
        (
            SparkSettings(extra={JAVA_OPTIONS: "-Xss4m -Da=b"}),
            {},
            "spark-submit does not have it",
            "--driver-java-options '-Xss4m -Da=b'",
        ),
        (
            SparkSettings(extra={"spark.driver.memoryOverhead": "1g"}),
            {},
            "spark.driver.memoryOverhead",
            "--conf spark.driver.memoryOverhead=1g",
        ),
        (SparkSettings(master="yarn"), {MASTER: "local[*]"}, "[spark] master = 'yarn'", "--master yarn"),
        (
            SparkSettings(master="yarn", driver_memory="2g"),
            {MASTER: "spark://h:7077", DRIVER_MEMORY: "1g"},
            "'spark://h:7077'",
            "--master yarn --driver-memory 2g",
        ),
    ],
)
def test_late_settings_are_refused(settings: SparkSettings, given: dict[str, str], key: str, options: str) -> None:
    with pytest.raises(SettingsError) as error:
        require_in_time(settings, given)
    assert key in str(error.value)
    assert str(error.value).endswith(f": spark-submit {options} ...")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        (SparkSettings(), {MASTER: "yarn"}),
        (SparkSettings(driver_memory="6g"), {DRIVER_MEMORY: "6144m"}),
        (SparkSettings(driver_memory="1024m"), {}),
        (SparkSettings(master="yarn"), {MASTER: "yarn"}),
        (SparkSettings(extra={"spark.driver.maxResultSize": "2g", "spark.executor.memory": "2g"}), {}),
    ],
)
def test_settings_in_time_are_accepted(settings: SparkSettings, given: dict[str, str]) -> None:
    require_in_time(settings, given)
