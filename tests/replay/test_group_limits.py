"""Groups with thresholds and severities of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqreplay.cli.command_line import main
from mqreplay.lake.warehouse import Warehouse
from mqreplay.replay.day_findings import group_limits
from mqreplay.settings import load_settings
from mqreplay.words.errors import SettingsError
from tests_shared import SAMPLE


def conf(folder: Path, text: str) -> str:
    path = folder / "own.toml"
    path.write_text(text)
    return str(path)


def test_the_first_pattern_counts(tmp_path):
    text = '[findings.groups."pay-*"]\nstuck_s = 90\n[findings.groups."*"]\nseverity = { lag_grows = "info" }\n'
    first, second = group_limits(load_settings(conf(tmp_path, text)))
    assert (first.pattern, first.limits, first.severities) == ("pay-*", {"stuck_s": 90}, {})
    assert (second.pattern, second.limits, second.severities) == ("*", {}, {"lag_grows": "info"})


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("stuk_s = 90", "did you mean stuck_s?"),
        ("stuck_s = 30", "must be at least 60"),
        ("stuck_s = true", "must be 0 to 604800"),
        ('severity = "info"', "kind = info, warning, critical"),
        ('severity = { lag_grows = "bad" }', "kind = info, warning, critical"),
        ('severity = { lag_grow = "info" }', "did you mean lag_grows?"),
        ("silent_s = 30", "has no key silent_s"),
    ],
)
def test_wrong_keys_are_errors(tmp_path, keys, why):
    with pytest.raises(SettingsError, match=r'groups\."g"') as error:
        group_limits(load_settings(conf(tmp_path, f'[findings.groups."g"]\n{keys}\n')))
    assert why in str(error.value)


def test_an_unknown_kind_ends_the_run_before_it_reads_anything(tmp_path, capsys):
    wrong = conf(tmp_path, '[findings.groups."g"]\nseverity = { lag_grow = "info" }\n')
    root = tmp_path / "w"
    assert main(["nightly", str(SAMPLE / "bulk-5.3.3"), "--warehouse", str(root), "--conf", wrong]) == 2
    assert "did you mean lag_grows?" in capsys.readouterr().err
    assert not root.exists()


@pytest.mark.long
def test_only_the_findings_of_the_group_change(tmp_path):
    words = ["nightly", str(SAMPLE / "bulk-5.3.3"), "--warehouse", str(tmp_path / "w"), "--engine", "local"]
    assert main([*words, "--cluster", "c"]) == 0
    shown = ["kind", "consumer_group", "severity", "from_ts"]
    before = Warehouse(str(tmp_path / "w")).read("gold.finding").select(shown).collect().rows()
    (group,) = {group for kind, group, _, _ in before if kind == "stuck_queue"}
    text = f'[findings.groups."{group[:-1]}?"]\nstuck_s = 86400\nseverity = {{ slave_pull = "info" }}\n'
    assert main([*words, "--cluster", "c", "--conf", conf(tmp_path, text)]) == 0
    after = Warehouse(str(tmp_path / "w")).read("gold.finding").select(shown).collect().rows()
    gone = {row for row in before if row[:2] == ("stuck_queue", group)}
    expected = [
        (kind, of, "info" if (kind, of) == ("slave_pull", group) else severity, ts)
        for kind, of, severity, ts in before
        if (kind, of, severity, ts) not in gone
    ]
    assert sorted(map(str, after)) == sorted(map(str, expected))
