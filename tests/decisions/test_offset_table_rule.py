"""Falls of offsets in commits and in copies, against the broker's own table: ConsumerOffsetManager#commitOffset."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import pytest

from mqreplay.core.consumer_offset_manager import OffsetTable, commit_offset, query_offset, topic_at_group
from mqreplay.decode.consumer_offset import decode_consumer_offset
from mqreplay.evidence.offsets.lowered_commits import lowered_commits
from offset_nights import CHANGE, COMMIT, change, continuity, tables
from oracles.offset_file import encode
from silver_moments import at
from silver_rows import rows

KEYS = [(group, topic, queue) for group in ("g", "h") for topic in ("T", "%RETRY%g") for queue in (0, 1)]
PLACE = ("consumer_group", "topic", "queue_id")


class Commit(NamedTuple):
    """A commit, and the offset that it replaced in the broker's table."""

    second: int
    key: tuple[str, str, int]
    offset: int
    before: int | None


def commits(seed: int, table: OffsetTable) -> Iterator[Commit]:
    """Commits of one client, mostly rising; the table has them once they are taken."""
    rng = Random(seed)
    for second in range(200):
        group, topic, queue = key = rng.choice(KEYS)
        last = max(query_offset(table, group, topic, queue), 0)
        offset = max(0, last + rng.choice((0, 1, 5, 300, -1, -200)))
        yield Commit(second, key, offset, commit_offset(table, group, topic, queue, offset))


def row(key: tuple[str, str, int]) -> dict[str, object]:
    return dict(zip(PLACE, key, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_a_commit_lowers_an_offset_where_the_broker_warns(seed: int) -> None:
    sent = list(commits(seed, {}))
    listed = [row(each.key) | {"ts": at(each.second), "commit_offset": each.offset} for each in sent]
    none = {name: rows(f"silver.{name}", {}, []) for name in ("lowered_offset", "offset_change", "pull", "snapshot")}
    found = lowered_commits(rows("silver.offset_commit", COMMIT, listed), **none)
    expected = [
        (*each.key, each.before, each.offset, at(each.second))
        for each in sent
        if each.before is not None and each.offset < each.before
    ]
    assert expected
    names = (*PLACE, "previous_offset", "new_offset", "to_ts")
    assert sorted(found.select(names).rows()) == sorted(expected)


@pytest.mark.parametrize("seed", range(8))
def test_a_copy_shows_a_rewind_where_the_table_has_a_lower_offset(seed: int) -> None:
    table: OffsetTable = {}
    rng, copied = Random(seed), dict.fromkeys(KEYS, -1)
    changes, expected = [], []
    for each in commits(seed, table):
        if rng.random() > 0.3:
            continue
        for key in KEYS:
            old, new = copied[key], query_offset(table, *key)
            if new != old:
                changes.append(row(key) | change(each.second + 5, None if old < 0 else old, new))
            if new < old:
                expected.append((*key, old, new, at(each.second + 5)))
            copied[key] = new
    found = continuity(tables([CHANGE | each for each in changes]))
    assert expected
    assert set(found["kind"]) == {"rewind"}
    names = (*PLACE, "previous_offset", "new_offset", "to_ts")
    assert sorted(found.select(names).rows()) == sorted(expected)


def test_a_copy_names_topic_and_group_as_the_table_does() -> None:
    table: OffsetTable = {}
    list(commits(1, table))
    read = decode_consumer_offset(encode(table, pretty_format=True).encode())
    entries = zip(read.topic, read.consumer_group, read.queue_id, read.offset, strict=True)
    known = {(topic_at_group(str(topic), str(group)), queue): offset for topic, group, queue, offset in entries}
    assert known == {(key, queue): offset for key, queues in table.items() for queue, offset in queues.items()}
