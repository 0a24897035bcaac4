"""Silver tables of made-up nights in which consumer offsets move, and the breaks that are found in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import polars as pl

from mqreplay.decisions.offset_continuity import offset_continuity, skips, suspects
from mqreplay.evidence.offsets.offset_causes import offset_resets
from mqreplay.evidence.offsets.queue_ends import queue_ends
from mqreplay.evidence.offsets.queue_events import groups_with_commits_of_shard, queue_events
from silver_moments import at
from silver_rows import rows

PLACE = {"consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0}
CHANGE = PLACE | {"source_name": "b-0", "broker_id": 0}
PULL = PLACE | {"client_id": "c1", "broker_id": 0, "response_code": 0, "min_offset": 0}
COMMIT = PLACE | {"kind": "UPDATE", "client_id": "c1"}
REQUEST = {"client_id": "c1", "request_code": 220, "consumer_group": "g"}
REACH_S = 60

Row = Mapping[str, object]
Tables = dict[str, pl.DataFrame]


def tables(
    changes: Sequence[Row] = (),
    pulls: Sequence[Row] = (),
    commits: Sequence[Row] = (),
    requests: Sequence[Row] = (),
    stats: Sequence[Row] = (),
) -> Tables:
    return {
        "offset_change": rows("silver.offset_change", CHANGE, changes),
        "pull": rows("silver.pull", PULL, pulls),
        "offset_commit": rows("silver.offset_commit", COMMIT, commits),
        "server_request": rows("silver.server_request", REQUEST, requests),
        "topic_stats": rows("silver.topic_stats", {"broker_name": "b", "broker_id": 0, "topic": "T"}, stats),
    }


def continuity(night: Tables, recording: set[str] | None = None) -> pl.DataFrame:
    """The breaks of a shard; ``recording`` are the groups that the whole night has commits of."""
    changes, pull, commits, stats = (night[n] for n in ("offset_change", "pull", "offset_commit", "topic_stats"))
    events = queue_events(changes, commits, pull, stats, set())
    ends, resets = queue_ends(pull, stats), offset_resets(night["server_request"], pull)
    suspect, skipped = (pl.DataFrame(pl.from_arrow(law(events))) for law in (suspects, skips))
    recording = groups_with_commits_of_shard(commits) if recording is None else recording
    return offset_continuity(changes, ends, suspect, resets, skipped, commits, pull, recording, REACH_S)


def change(seconds: float, old: int | None, new: int | None) -> dict[str, object]:
    return {"from_ts": at(seconds - 5), "to_ts": at(seconds), "previous_offset": old, "new_offset": new}


def pull(seconds: float, offset: int, after: int, end: int, **differs: object) -> dict[str, object]:
    return {
        "request_ts": at(seconds),
        "response_ts": at(seconds),
        "queue_offset": offset,
        "next_begin_offset": after,
        "max_offset": end,
    } | differs


def pushed(seconds: float, offset: int, queue: int = 0) -> dict[str, object]:
    return {"ts": at(seconds), "reset_offsets": [("T", "b", queue, offset)]}


def random_night(seed: int) -> Tables:
    """Two groups on a few queues, two brokers' files; rows of one instant do not differ in one offset."""
    rng, night = Random(seed), {name: [] for name in ("changes", "pulls", "commits", "requests", "stats")}
    for queue in range(5):
        here = {"queue_id": queue}
        for group in "gh":
            mine = here | {"consumer_group": group}
            for broker_id in (0, 1):
                offset = None
                for second in sorted(rng.sample(range(0, 200, 5), 8)):
                    new = rng.choice([None, *range(-1, 12), *range(-1, 12)])
                    since = None if offset is None else at(second - 5)
                    file = {"source_name": f"b-{broker_id}", "broker_id": broker_id, "source_digest": str(second)}
                    changed = {"from_ts": since, "to_ts": at(second), "previous_offset": offset, "new_offset": new}
                    night["changes"].append(mine | file | changed)
                    offset = rng.choice([new, new, new, rng.randrange(12)])  # a copy is lost at times
            for _ in range(10):
                began, second = rng.randrange(12), rng.randrange(200)
                answer = {"response_code": rng.choice([0, 0, 0, 21]), "broker_id": rng.choice([0, 0, 1])}
                answer["min_offset"] = rng.choice([None, -1, 0, 3])
                sent = {"sys_flag": rng.choice([2, 3]), "commit_offset": rng.randrange(12)}
                pulled = pull(second, began, began + rng.randrange(3), rng.randrange(6, 14))
                late = {"response_ts": at(second + rng.choice([0, 0, 14]))}
                night["pulls"].append(pulled | mine | answer | sent | late)
            for _ in range(20 if group == "g" else 0):
                night["commits"].append(mine | {"ts": at(rng.randrange(200)), "commit_offset": rng.randrange(12)})
        night["requests"].append(pushed(rng.randrange(200), rng.randrange(12), queue))
        stated = {"topic": "T", "broker_name": "b", "queue_id": queue, "min_offset": 1, "max_offset": rng.randrange(14)}
        night["stats"].append({"ts": at(rng.randrange(200)), "offsets": [stated]})
    # A file that was read twice.
    night["changes"] += night["changes"][:5]
    return tables(*night.values())
