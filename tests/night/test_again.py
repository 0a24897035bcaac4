"""A repeated run: nothing is read, judged or written twice."""

from __future__ import annotations

from mqreplay.machine.places import conf_dir
from mqreplay.settings import load_settings
from tests_shared import SAMPLE, files_of, run


def test_a_second_run_changes_no_file(night):
    before = files_of(night.root)
    assert len(before) > 100
    said: list[str] = []
    recordings = [str(SAMPLE / name) for name in ("orders-4.9.7", "bulk-5.3.3")]
    outcomes = run(
        "nightly", night.root, load_settings(str(conf_dir() / "sample.toml")), said.append, recordings=recordings
    )
    assert files_of(night.root) == before
    assert {o.cluster: o.findings for o in outcomes} == {c: o.findings for c, o in night.outcomes.items()}
    assert sum("none new or changed" in line for line in said) == 2
