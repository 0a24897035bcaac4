"""`make test-changed` runs the tests that imports connect with a change, also through registries."""

from __future__ import annotations

import pytest

from changed_tests import LIB, ROOT, TESTS, reached


@pytest.mark.parametrize(
    ("changed", "is_reached", "is_not"),
    [
        ("lib/mqreplay/core/allocation.py", "tests/core/test_allocation.py", "tests/core/test_sql92.py"),
        ("lib/mqreplay/findings/clocks.py", "tests/notices/test_watch.py", "tests/core/test_allocation.py"),
        ("tests/night/made_nights.py", "tests/moment/test_last_instant.py", "tests/notices/test_watch.py"),
        ("tools/docs/pages.py", "tests/tools/test_docs_pages.py", "tests/lake/test_commits.py"),
        ("tests/core/test_sql92.py", "tests/core/test_sql92.py", "tests/core/test_allocation.py"),
    ],
)
def test_a_change_reaches_the_tests_of_what_imports_it(changed: str, is_reached: str, is_not: str) -> None:
    found = reached([ROOT / changed])
    assert ROOT / is_reached in found
    assert ROOT / is_not not in found


def test_every_module_is_reached_by_a_test() -> None:
    modules = [path for path in LIB.rglob("*.py") if path.name != "__init__.py"]
    assert len(reached(modules)) > 300
    assert {path.parent for path in reached([TESTS / "storage" / "conftest.py"])} == {TESTS / "storage"}
