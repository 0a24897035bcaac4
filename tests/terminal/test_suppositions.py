"""What would have been, as lines of a terminal."""

from __future__ import annotations

import polars as pl
import pytest

from mqreplay.language.language import language
from mqreplay.suppose.what_if import Answer
from mqreplay.terminal.suppositions import print_whatif

QUEUE = {"topic": "t", "broker_name": "b"}
RESET = pl.DataFrame(
    [
        QUEUE
        | {"queue_id": 0, "committed": 1281, "offset_min": 56, "offset_max": 56, "again_min": 1225, "again_max": 1225},
        QUEUE
        | {"queue_id": 1, "committed": 282, "offset_min": 55, "offset_max": 56, "again_min": 226, "again_max": 227},
        QUEUE | {"queue_id": 2, "committed": 9, "offset_min": None, "offset_max": 9, "again_min": 0, "again_max": None},
    ]
)


@pytest.mark.parametrize(
    ("lang", "texts"),
    [
        (
            "en",
            [
                "t b 0: 1,225 (committed 1,281, reset to 56)",
                "t b 1: 226 to 227 (committed 282, reset to 55 to 56)",
                "t b 2: unknown (committed 9, reset to unknown)",
            ],
        ),
        (
            "zh",
            [
                "t b 0：1,225（已提交 1,281，重置后：56）",
                "t b 1：226 至 227（已提交 282，重置后：55 至 56）",
                "t b 2：未知（已提交 9，重置后：未知）",
            ],
        ),
    ],
)
def test_bounds_of_a_reset_that_are_equal_are_one_number(lang: str, texts: list[str], capsys) -> None:
    print_whatif(Answer("c", None, None, RESET), as_json=False, words=language(lang))
    assert [line.strip() for line in capsys.readouterr().out.splitlines()[2:]] == texts
