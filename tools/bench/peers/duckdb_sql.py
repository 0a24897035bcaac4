"""The queries of the DuckDB peer."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

import polars as pl

from .pull_lines import FIELDS, INSTANTS, INT, LONG

# consumerOffset.json of one source: a row a line of the offset table, which fastjson gives a key each.
READ = r"""
CREATE OR REPLACE TEMP TABLE snapshot AS
SELECT f.snap, f.path, f.ts_ms, substr(sha256(content), 1, 32) AS digest,
       position(e'\t"offsetTable":{\n' IN content) AS begins, ends_with(content, e'\n\t\t}\n\t}\n}') AS whole,
       content
FROM read_text('FOLDER/*/consumerOffset.json') r JOIN files f ON f.path = r.filename
"""
BROKEN = "SELECT path FROM snapshot WHERE begins = 0 OR NOT whole"
LINES = r"""
split AS (
    SELECT snap, unnest(string_split(content[begins + 17 : -10], e'\n\t\t},\n')) AS line FROM snapshot
),
line AS (SELECT snap, split_part(line, '"', 2) AS key, split_part(line, ':{', 2) AS body FROM split)
"""
CHANGED_LINES = rf"""
{LINES},
beside AS (
    SELECT snap, key, body,
           lag(body) OVER w AS was, lag(snap) OVER w AS before, lead(snap) OVER w AS after
    FROM line WINDOW w AS (PARTITION BY key ORDER BY snap)
),
moved AS (
    SELECT snap, key, body, CASE WHEN before = snap - 1 THEN was END AS was
    FROM beside WHERE before IS DISTINCT FROM snap - 1 OR was <> body
    UNION ALL
    SELECT snap + 1, key, NULL, body
    FROM beside WHERE after IS DISTINCT FROM snap + 1 AND snap < (SELECT max(snap) FROM files)
),
now AS (SELECT snap, key, unnest(string_split(body, ',')) AS pair FROM moved),
past AS (SELECT snap, key, unnest(string_split(was, ',')) AS pair FROM moved),
n AS (SELECT snap, key, split_part(pair, ':', 1)::INT AS queue_id, split_part(pair, ':', 2)::BIGINT AS o FROM now),
p AS (SELECT snap, key, split_part(pair, ':', 1)::INT AS queue_id, split_part(pair, ':', 2)::BIGINT AS o FROM past),
change AS (
    SELECT snap, key, queue_id, p.o AS previous_offset, n.o AS new_offset
    FROM n FULL JOIN p USING (snap, key, queue_id) WHERE n.o IS DISTINCT FROM p.o
)
"""
CHANGED_ENTRIES = rf"""
{LINES},
pair AS (SELECT snap, key, unnest(string_split(body, ',')) AS pair FROM line),
entry AS (
    SELECT snap, key, split_part(pair, ':', 1)::INT AS queue_id, split_part(pair, ':', 2)::BIGINT AS o FROM pair
),
beside AS (
    SELECT snap, key, queue_id, o, lag(o) OVER w AS was, lag(snap) OVER w AS before, lead(snap) OVER w AS after
    FROM entry WINDOW w AS (PARTITION BY key, queue_id ORDER BY snap)
),
change AS (
    SELECT snap, key, queue_id, CASE WHEN before = snap - 1 THEN was END AS previous_offset, o AS new_offset
    FROM beside WHERE before IS DISTINCT FROM snap - 1 OR was <> o
    UNION ALL
    SELECT snap + 1, key, queue_id, o, NULL
    FROM beside WHERE after IS DISTINCT FROM snap + 1 AND snap < (SELECT max(snap) FROM files)
)
"""
OFFSET_CHANGE = """
WITH {changes},
moment AS (SELECT snap, digest, ts_ms, lag(ts_ms) OVER (ORDER BY snap) AS before_ms FROM snapshot)
SELECT $cluster AS cluster, to_timestamp(ts_ms / 1000)::DATE AS day, $source AS source_name, $name AS broker_name,
       $broker_id::BIGINT AS broker_id, NULL::VARCHAR AS client_id, split_part(key, '@', 1) AS topic,
       split_part(key, '@', 2) AS consumer_group, queue_id, previous_offset, new_offset,
       make_timestamptz(before_ms * 1000) AS from_ts, make_timestamptz(ts_ms * 1000) AS to_ts, digest AS source_digest
FROM change JOIN moment USING (snap)
"""


def digests(paths: list[Path]) -> dict[str, list[str]]:
    """Each file's SHA-256, as far as rows carry it."""
    return {
        "filename": [str(path) for path in paths],
        "source_digest": [hashlib.sha256(path.read_bytes()).hexdigest()[:32] for path in paths],
    }


def pulls(recording: str) -> str:
    """silver.pull out of the recording's pull log."""
    return lines(recording, "pull_log", FIELDS, INSTANTS)


def lines(recording: str, stem: str, fields: Mapping[str, type[pl.DataType]], instants: Collection[str]) -> str:
    """A silver table out of flat lines; its day is that of the first of the fields."""
    kinds = {LONG: "BIGINT", INT: "INTEGER", pl.Boolean: "BOOLEAN"}
    shape = ",".join(f'"{name}":"{kinds.get(kind, "VARCHAR")}"' for name, kind in fields.items())
    named = [f"make_timestamptz({n} * 1000) AS {n}" if n in instants else n for n in fields]
    return f"""
    WITH line AS (
        SELECT filename, substr(sha256(json), 1, 32) AS record_id, unnest(from_json(json, '{{{shape}}}'))
        FROM read_ndjson_objects('{recording}/{stem}.*jsonl.gz', filename = true)
    )
    SELECT $cluster AS cluster, to_timestamp({next(iter(fields))} / 1000)::DATE AS day, {", ".join(named)}, record_id,
           source_digest
    FROM line JOIN digests USING (filename)
    """


PLACE = "client_id, consumer_group, topic, broker_name, queue_id"
OVERLAPS = f"""
SELECT count(*) FROM (
    SELECT request_ts, lag(coalesce(response_ts, request_ts)) OVER (PARTITION BY {PLACE} ORDER BY request_ts, opaque)
           AS answered FROM pull
) WHERE answered > request_ts
"""
# -1 stands for an answer that came, or may have come, unseen; NULL for none, or one without a suggestion.
ASKED = f"""
CREATE OR REPLACE TABLE asked AS
WITH life AS (SELECT client_id, min(sub_version) >= $first AS born FROM pull GROUP BY client_id),
told AS (
    SELECT {PLACE}, request_ts, opaque, broker_id, record_id, day, cluster,
           CASE WHEN response_ts IS NULL AND error IS NULL THEN -1 ELSE suggest_which_broker_id END AS told
    FROM pull
),
kept AS (
    SELECT *, last_value(told IGNORE NULLS) OVER (
        PARTITION BY {PLACE} ORDER BY request_ts, opaque ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS kept
    FROM told
)
SELECT k.* EXCLUDE (kept, told), r.now, nullif(r.before, -1) AS before, broker_id AS actual,
       coalesce(r.before >= 0 AND epoch_ms(request_ts) - r.since < 1000, false) AS fresh,
       CASE WHEN kept = -1 THEN NULL WHEN kept IS NOT NULL THEN kept WHEN born THEN 0 END AS node
FROM kept k JOIN life USING (client_id)
ASOF LEFT JOIN route r
  ON k.client_id = r.client_id AND k.broker_name = r.broker_name AND epoch_ms(k.request_ts) >= r.since
"""
CASE = ("now", "before", "fresh", "node", "actual")
JUDGED = ("expected_broker_id", "judgement", "reason", "cause")
CASES = f"SELECT DISTINCT {', '.join(CASE)} FROM asked"
PULL_ROUTE = f"""
SELECT cluster, day, consumer_group, topic, broker_name, queue_id, client_id, request_ts,
       a.node AS pull_from_which_node, route_broker_ids, expected_broker_id, a.actual AS actual_broker_id,
       a.actual <> 0 AS from_slave, cause, judgement, reason, record_id
FROM asked a JOIN judged j ON {" AND ".join(f"a.{name} IS NOT DISTINCT FROM j.{name}" for name in CASE)}
"""
CONTINUITY = """
WITH pulled AS (SELECT * FROM pull WHERE broker_name = $name),
reached AS (
    SELECT *, max(greatest(next_begin_offset, queue_offset)) OVER (
        PARTITION BY consumer_group, topic, queue_id ORDER BY request_ts, opaque
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS skipped_from
    FROM pulled
),
skip AS (
    SELECT consumer_group, topic, queue_id, skipped_from, queue_offset AS skipped_to, request_ts AS ts
    FROM reached WHERE queue_offset > skipped_from AND queue_offset <= max_offset
),
ends AS (
    SELECT topic, queue_id, coalesce(response_ts, request_ts) AS at, min_offset, max_offset
    FROM pulled WHERE broker_id = 0 AND max_offset IS NOT NULL
),
changed AS (SELECT *, coalesce(from_ts, to_ts) AS since FROM offset_change WHERE broker_name = $name),
ended AS (
    SELECT c.*, e.max_offset FROM changed c
    ASOF LEFT JOIN ends e ON c.topic = e.topic AND c.queue_id = e.queue_id AND c.to_ts <= e.at
),
known AS (
    SELECT c.*, e.min_offset FROM ended c
    ASOF LEFT JOIN ends e ON c.topic = e.topic AND c.queue_id = e.queue_id AND c.since >= e.at
),
jump AS (
    SELECT DISTINCT c.source_name, c.consumer_group, c.topic, c.queue_id, c.to_ts, true AS skipped
    FROM changed c JOIN skip s USING (consumer_group, topic, queue_id)
    WHERE s.skipped_to = c.new_offset AND s.skipped_from <= c.new_offset AND s.skipped_from >= c.previous_offset
      AND s.ts >= c.since - INTERVAL 60 SECOND
),
judged AS (
    SELECT *, CASE WHEN new_offset IS NULL THEN 'vanished' WHEN new_offset < previous_offset THEN 'rewind'
                   WHEN (previous_offset IS NULL OR new_offset > previous_offset) AND new_offset > max_offset
                   THEN 'beyond_max'
                   WHEN new_offset < min_offset THEN 'below_min'
                   WHEN previous_offset IS NOT NULL AND skipped THEN 'jump' END AS kind
    FROM known LEFT JOIN jump USING (source_name, consumer_group, topic, queue_id, to_ts)
)
SELECT cluster, day, broker_name, broker_id, topic, consumer_group, queue_id, kind, previous_offset, new_offset,
       abs(new_offset - coalesce(previous_offset, new_offset)) AS size, since AS from_ts, to_ts
FROM judged WHERE kind IS NOT NULL
"""
