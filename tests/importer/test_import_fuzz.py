"""Paths and texts of all kinds: only our own errors."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import pytest

from mqreplay.decode.kinds import KINDS
from mqreplay.importer.brokers.broker_names import BrokerNames
from mqreplay.importer.files.layout import place_of
from mqreplay.importer.mqadmin.admin import Admin
from mqreplay.importer.mqadmin.outputs import outputs_of
from mqreplay.importer.staging import line_of
from mqreplay.importer.times.name_times import dated
from mqreplay.words.errors import DecodeError

DATA = Path(__file__).parent / "mqadmin" / "data"
TEXTS = [p.read_text() for p in sorted(DATA.rglob("*")) if p.is_file() and p.stat().st_size < 20_000]
PIECES = [
    *("consumerOffset", "topics", "subscriptionGroup", "delayOffset", ".json", ".bak", ".gz", ".tmp", "offsets.json"),
    *("broker-a-0", "broker-a", "0", "1", "slave", "_", "-", ".", "/", "@", ":", " ", "T", "Z", "+08:00", "snapshots"),
    *("2026", "11", "21", "20261121", "030000", "03:00", "1795228794", "1795228794427", "99999999999999", "0000-00-00"),
    *("2026-13-45", "client-10.0.0.1@7", "pull_log", ".jsonl", ".tar", ".zip", "é", "\ud800", "\x00", "\n", "٣", "𝟘"),
]


def check_path(rng):
    path = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 12)))
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    if not parts:
        return
    zone = dt.timezone(dt.timedelta(hours=rng.randint(-12, 14)))
    place = place_of(parts, zone)
    when = dated(place.time, rng.choice([None, 0, -5, 1795228794427, 10**17]))
    assert when is None or 0 <= when.ms <= 4_102_444_800_000
    names = BrokerNames(rng.choice([None, ("die-1", 0)]))
    names.add("broker-a", 0, "broker:1")
    names.find(place.broker_hints)


def check_text(rng):
    text = rng.choice(TEXTS)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(5):
            case 0:
                text = text[:at] + text[at + rng.randint(1, 80) :]
            case 1:
                text = text[:at] + rng.choice([*PIECES, "\t", "{", "}", "9" * 30, "-", "#Topic", "=" * 9]) + text[at:]
            case 2:
                text = text[:at]
            case 3:
                text = text[:at] + rng.choice(TEXTS)[rng.randrange(200) :][:2000]
            case _:
                lines = text.splitlines(keepends=True)
                rng.shuffle(lines)
                text = "".join(lines)
        text = text or " "
    text = text.encode("utf-8", "replace").decode("utf-8", "replace")
    admin = Admin(dt.UTC, BrokerNames())
    for output in outputs_of(text, dt.UTC):
        try:
            admin.learn(output, 1795228794427)
            for stem, record in admin.records_of(output, 1795228794427, ["x"]):
                KINDS[stem].decode(line_of(record))
        except DecodeError:
            continue


@pytest.mark.parametrize("check", [check_path, check_text])
def test_only_our_own_errors(check):
    for seed in range(600):
        check(random.Random(seed))


@pytest.mark.long
@pytest.mark.parametrize("check", [check_path, check_text])
def test_only_our_own_errors_100_000_times(check):
    for seed in range(100_000):
        check(random.Random(seed))
